// Generated source text of elementwise steps.
#ifndef PERMAFROST_RUNTIME_CHECK_DELEGATES_OPENCL_STEP_CODE_H_
#define PERMAFROST_RUNTIME_CHECK_DELEGATES_OPENCL_STEP_CODE_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "runtime_check/delegates/onednn/piece.h"
#include "runtime_check/delegates/onednn/steps.h"
#include "runtime_check/delegates/opencl/launch.h"

namespace permafrost {
namespace opencl {

// Writes one statement for each step. The text depends on the operations alone: numbers, and the positions of
// constants, are in a table, so that equal chains of different layers are one program.
class StepCode {
 public:
  // `rows` is the shape of all results; `images` divides its rows.
  StepCode(const onednn::Rows& rows, int64_t images, Constants* constants);

  // Declares that a variable holds the elements of the storage: the result of a step, or the value of a kernel (-1).
  void Define(int storage, int result) { variables_[storage] = result; }
  // Appends a step, and returns the number of its result.
  int Append(const onednn::Step& step);
  // Returns the name of the variable.
  static std::string NameOf(int result);

  const std::string& statements() const { return statements_; }
  // The same steps for the host. Operands are numbered as in operands().
  const std::vector<LaunchStep>& steps() const { return steps_; }
  // The storages that are read, in the order of the parameters o0, o1 and so on.
  const std::vector<int>& operands() const { return operands_; }
  const Table& table() const { return table_; }

 private:
  std::string Load(int storage, onednn::Meeting meeting, LaunchStep::Operand* operand);

  Constants* const constants_;
  std::map<int, int> variables_;   // By storage: the number of the result.
  std::map<int, int> parameters_;  // By storage: its index in operands_.
  std::vector<int> operands_;
  std::string statements_;
  Table table_;
  std::vector<LaunchStep> steps_;
};

// Returns the program of a kernel in `file`, whose results pass through the steps. Appends the arguments of the steps
// to the launch. Each step reads the result of the previous one.
std::string ProgramWithSteps(absl::string_view file, absl::Span<const onednn::Step> steps, const onednn::Rows& rows,
                             int64_t images, Constants* constants, Launch* launch);

// Makes a launch that computes the steps element by element. `results` are the storages with other readers.
Launch MakeElementwise(absl::Span<const onednn::Step* const> steps, absl::Span<const int> results,
                       Constants* constants);

// Returns the program of a kernel in `file`, with additional definitions in front of it.
std::string ProgramOf(absl::string_view file, absl::string_view definitions = "");

}  // namespace opencl
}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_DELEGATES_OPENCL_STEP_CODE_H_
