// Groups the nodes of a float graph into operators that TensorFlow Lite computes on codes.
#ifndef PERMAFROST_TRANSFORMS_REWRITES_QUANTIZABLE_OPERATORS_H_
#define PERMAFROST_TRANSFORMS_REWRITES_QUANTIZABLE_OPERATORS_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "graph/graph.h"
#include "graph/matching/composed_functions.h"
#include "graph/shapes/shape_inference.h"

namespace permafrost {

enum class QuantizableKind : uint8_t {
  kWeighted,  // A convolution or matrix product with constant weights.
  kComputed,  // Computes with the numbers that codes represent.
  kMoved,     // Codes are moved or compared: operands and results have one scale.
};

// A fixed scale of a result, which kernels demand.
struct FixedScale {
  float scale = 0;
  int32_t zero_point = 0;
};

// One operator.
struct QuantizableOperator {
  QuantizableKind kind = QuantizableKind::kMoved;
  Node* root = nullptr;        // The last node. Its outputs are the results.
  Node* core = nullptr;        // The node that computes; `root` if nothing follows it.
  Node* activation = nullptr;  // Relu or Relu6, or null.
  TensorRef bias;              // A constant of one number for each channel; kWeighted.
  int bias_input = -1;         // The input of the bias's node that the core's result is.
  std::optional<Composition> composition;
  std::vector<int> operands;  // The inputs of `core` (of the composition: 0) that have codes.
  int weights = -1;           // The input of `core` with the weights; kWeighted.
  bool has_one_scale = false;
  bool takes_int16 = false;
  bool has_code_result = true;  // False if the results are integers, such as indices.
  std::optional<FixedScale> fixed8, fixed16;
  std::vector<Node*> nodes;  // All nodes, `root` first.

  // Returns operand i as a tensor.
  TensorRef Operand(size_t i) const { return composition.has_value() ? composition->x : core->input(operands[i]); }
};

// Returns the operators among the nodes that the outputs need, in topological order. Nodes inside of an operator are
// read by it alone and are no endpoints. Only float operators are returned.
absl::StatusOr<std::vector<QuantizableOperator>> FindQuantizableOperators(const Graph& graph, const ShapeMap& shapes);

}  // namespace permafrost

#endif  // PERMAFROST_TRANSFORMS_REWRITES_QUANTIZABLE_OPERATORS_H_
