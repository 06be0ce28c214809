// A session that runs a program file. Has the interface of Session (runtime_check/session.h), and a fraction of its
// code, since the decisions of a plan are in the file.
#ifndef PERMAFROST_RUNTIME_CHECK_PROGRAM_FILE_PROGRAM_SESSION_H_
#define PERMAFROST_RUNTIME_CHECK_PROGRAM_FILE_PROGRAM_SESSION_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "graph/tensor.h"
#include "runtime_check/planning/plan_report.h"
#include "runtime_check/program_file/program_file.h"
#include "runtime_check/session.h"
#include "runtime_check/session_options.h"

namespace permafrost {

// Computes all outputs of a program file, for the input shapes of the file. The results are those of a Session with the
// reference kernels, bit for bit. Not thread-safe; any number of sessions may share a file.
//
// A file may come from anywhere: kernels check all attributes and shapes again, their accesses to tensors are checked,
// and the shapes that they compute must be those of the file.
class ProgramSession {
 public:
  // Prepares all steps. `feeds` name all inputs of the program, `fetches` some outputs, in any order. `program` must
  // outlive the session. InvalidArgument for names that the program does not have; Unimplemented, with the name of the
  // step, for an op or a type that the build lacks; DataLoss for steps that contradict the tensors of the file;
  // ResourceExhausted beyond the memory limit. Options for delegates, loops and concurrent nodes have no effect.
  static absl::StatusOr<std::unique_ptr<ProgramSession>> Create(const ProgramFile& program,
                                                                absl::Span<const std::string> feeds,
                                                                absl::Span<const std::string> fetches,
                                                                SessionOptions options = {});
  ~ProgramSession();
  ProgramSession(const ProgramSession&) = delete;
  ProgramSession& operator=(const ProgramSession&) = delete;

  // The functions of Session, with one difference: only the input shapes of the file are accepted.
  std::vector<TensorSpec> Inputs() const;
  absl::StatusOr<std::vector<TensorSpec>> Plan(absl::Span<const Shape> input_shapes);
  absl::StatusOr<std::vector<Tensor>> Run(absl::Span<const Tensor> feeds);
  // Copies the outputs into the caller's memory.
  absl::Status RunInto(absl::Span<const Tensor> feeds, absl::Span<const absl::Span<char>> outputs);
  const PlanReport& report() const;
  PlanReport FullReport() const { return report(); }
  int num_threads() const;

 private:
  class Impl;

  explicit ProgramSession(std::unique_ptr<Impl> impl);

  std::unique_ptr<Impl> impl_;
};

}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_PROGRAM_FILE_PROGRAM_SESSION_H_
