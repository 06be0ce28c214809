// The model under measurement: its graph, its inputs, and the sessions that run it.
#ifndef PERMAFROST_TOOLS_BENCHMARK_BENCHMARK_SUBJECT_H_
#define PERMAFROST_TOOLS_BENCHMARK_BENCHMARK_SUBJECT_H_

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "graph/graph.h"
#include "graph/tensor.h"
#include "io/file_system.h"
#include "runtime_check/session.h"
#include "tools/benchmark/benchmark_inputs.h"
#include "tools/command_line/console.h"
#include "tools/model/model_flags.h"

namespace permafrost {

// The model, and the part of it to run; absent names are found.
struct SubjectFlags {
  std::string graph;
  std::optional<std::string> input_layer;   // Comma separated names.
  std::optional<std::string> output_layer;  // Comma separated names.
  std::string target_layer;                 // Nodes that run without being fetched.
  BenchmarkInputFlags inputs;
  ReadFlags read;
};

// A model opened for measurement. It owns the graph and the inputs.
class BenchmarkSubject {
 public:
  // Reads the model. Errors are those of OpenModelFile, DeclareOrFindInterface and MakeBenchmarkInputs; InvalidArgument
  // for a target that does not exist, with the nearest names.
  static absl::StatusOr<std::unique_ptr<BenchmarkSubject>> Open(const SubjectFlags& flags, FileSystem& files,
                                                                Console& console);

  const Graph& graph() const { return *graph_; }
  const std::vector<BenchmarkInput>& inputs() const { return inputs_; }
  const std::vector<Tensor>& feeds() const { return feeds_; }
  const std::vector<std::string>& outputs() const { return outputs_; }
  const std::vector<std::string>& targets() const { return targets_; }
  double load_seconds() const { return load_seconds_; }
  bool is_tflite() const { return is_tflite_; }  // The file is a TensorFlow Lite model.
  absl::flat_hash_map<std::string, Shape> fed_shapes() const { return FedShapes(*graph_, inputs_); }

  // Returns a session for this model, already planned for the inputs, so that only caches are cold in its first run.
  absl::StatusOr<std::unique_ptr<Session>> NewSession(SessionOptions options) const;

 private:
  BenchmarkSubject() = default;

  std::unique_ptr<Graph> graph_;
  std::vector<BenchmarkInput> inputs_;
  std::vector<Tensor> feeds_;
  std::vector<std::string> feed_names_, outputs_, targets_;
  double load_seconds_ = 0;
  bool is_tflite_ = false;
};

// Returns one line for each output that contains NaN or infinite elements.
std::vector<std::string> NonFiniteNotes(const std::vector<std::string>& names, absl::Span<const Tensor> outputs);

// Runs nodes once, in a new session. Errors name the node.
absl::Status RunOnce(const Graph& graph, const std::vector<std::string>& nodes, SessionOptions options);

}  // namespace permafrost

#endif  // PERMAFROST_TOOLS_BENCHMARK_BENCHMARK_SUBJECT_H_
