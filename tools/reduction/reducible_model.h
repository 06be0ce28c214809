// A model with recorded inputs that can be cut to a part of itself.
#ifndef PERMAFROST_TOOLS_REDUCTION_REDUCIBLE_MODEL_H_
#define PERMAFROST_TOOLS_REDUCTION_REDUCIBLE_MODEL_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/status/statusor.h"
#include "graph/graph.h"
#include "tools/model/model_inputs.h"

namespace permafrost {

// A graph with its declared interface, and one value of each declared input. A value may be missing (an invalid
// tensor).
struct ReducibleModel {
  std::unique_ptr<Graph> graph;
  InputSet inputs;

  ReducibleModel Copy() const { return {graph->Clone(), inputs}; }
  std::vector<std::string> InputNames() const;
  std::vector<std::string> OutputNames() const;
};

// Returns the names of the nodes that can be kept or cut, in topological order: all but constants and declared inputs.
// Errors are those of a cyclic graph.
absl::StatusOr<std::vector<std::string>> CuttableNodes(const Graph& graph);

// A tensor of the whole model that becomes an input of the part, by name of its node and port, and the name of the new
// placeholder.
struct CutTensor {
  std::string source;  // "node" or "node:1", which can be fetched.
  std::string placeholder;
};

// A part of a model. The values of its first inputs are those of the whole model; those of `cut` follow, to be
// computed.
struct ModelPart {
  ReducibleModel model;
  std::vector<CutTensor> cut;
};

// Returns the part with the nodes `kept`, and the constants and inputs that they read. Tensors that they read from
// other nodes become placeholders, and tensors that other nodes read, or that were outputs, become outputs. Control
// edges from other nodes are dropped, and functions that nothing calls. FailedPrecondition if a cut tensor has an
// unknown type, or nothing remains.
absl::StatusOr<ModelPart> PartOf(const ReducibleModel& whole, const absl::flat_hash_set<std::string>& kept);

// Sets the value of an input, and its exact type and shape at its placeholder.
void SetInputValue(ReducibleModel* model, size_t index, Tensor value);

// Returns a model in which each dimension of `from` elements of constants and inputs has the first `to` ones, and
// integer constants of one dimension have `to` where they had `from` (shapes for Reshape and the like). Null if none
// has such a dimension.
absl::StatusOr<std::unique_ptr<ReducibleModel>> WithSmallerDimension(const ReducibleModel& model, int64_t from,
                                                                     int64_t to);
// Returns the sizes of the dimensions of float constants and inputs, largest first, without 1.
std::vector<int64_t> DimensionSizes(const ReducibleModel& model);

// Returns `tensor` with its floats replaced by seeded noise of the same mean and deviation; other types are unchanged.
Tensor NoiseLike(const Tensor& tensor, uint64_t seed);

}  // namespace permafrost

#endif  // PERMAFROST_TOOLS_REDUCTION_REDUCIBLE_MODEL_H_
