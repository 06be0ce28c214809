// Inputs of benchmark_model: types, shapes and values, taken from its flags or from the model.
#ifndef PERMAFROST_TOOLS_BENCHMARK_BENCHMARK_INPUTS_H_
#define PERMAFROST_TOOLS_BENCHMARK_BENCHMARK_INPUTS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "graph/graph.h"
#include "graph/tensor.h"
#include "io/file_system.h"

namespace permafrost {

// The flags, as the user wrote them. Lists have one item per input, in the order of the inputs.
struct BenchmarkInputFlags {
  std::optional<std::string> shapes;  // "1,224,224,3:8": items separated by ":"; an empty item is a scalar.
  std::optional<std::string> types;   // "float,int32".
  // "0.5,1:7": items separated by ":". The values of an item fill the first elements of its input; the rest is zero. An
  // empty item means unset.
  std::optional<std::string> values;
  std::optional<std::string> ranges;  // "image,0,255:mask,0,1": ranges of inputs that are filled with random numbers.
  std::vector<std::string> files;     // "image=photo.npy" or "image:photo.bin"; several separated by commas.
  uint64_t seed = 1;                  // Seeds the random numbers that fill inputs without given values.
};

struct BenchmarkInput {
  std::string name;
  Tensor tensor;
  bool has_chosen_sizes = false;  // Unknown dimensions other than the batch took sizes with which the graph runs.
};

// Returns one input for each declared input of the graph. Unknown dimensions take the sizes of ChooseInputShapes, the
// batch 1. Errors name the flag, and the input with found and expected.
absl::StatusOr<std::vector<BenchmarkInput>> MakeBenchmarkInputs(const Graph& graph, const BenchmarkInputFlags& flags,
                                                                FileSystem& files);

// Returns the shapes by node name, as shape inference takes them.
absl::flat_hash_map<std::string, Shape> FedShapes(const Graph& graph, const std::vector<BenchmarkInput>& inputs);

}  // namespace permafrost

#endif  // PERMAFROST_TOOLS_BENCHMARK_BENCHMARK_INPUTS_H_
