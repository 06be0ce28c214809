// What benchmark_model feeds: inputs with types, shapes and values, as its flags say or as the model does.
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

// The flags, as the user wrote them. Lists have one item for each input, in the order of the inputs.
struct BenchmarkInputFlags {
  std::optional<std::string> shapes;  // "1,224,224,3:8": items separated by ":", an empty one is a scalar.
  std::optional<std::string> types;   // "float,int32".
  // "0.5,1:7": items separated by ":"; they fill the first elements, and the rest is zero. An empty item says nothing.
  std::optional<std::string> values;
  std::vector<std::string> files;  // "image=photo.npy" or "image:photo.bin"; several separated by commas.
  uint64_t seed = 1;               // Of the random numbers that fill what nobody gives values for.
};

struct BenchmarkInput {
  std::string name;
  Tensor tensor;
};

// One for each declared input of the graph. Errors name the flag, and the input with found and expected.
absl::StatusOr<std::vector<BenchmarkInput>> MakeBenchmarkInputs(const Graph& graph, const BenchmarkInputFlags& flags,
                                                                FileSystem& files);

// By the name of the node, as shape inference takes them.
absl::flat_hash_map<std::string, Shape> FedShapes(const Graph& graph, const std::vector<BenchmarkInput>& inputs);

}  // namespace permafrost

#endif  // PERMAFROST_TOOLS_BENCHMARK_BENCHMARK_INPUTS_H_
