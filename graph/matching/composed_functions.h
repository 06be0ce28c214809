// Recognises functions that a graph composes of several ops: hard swish, GELU, PReLU, normalisation by length.
#ifndef PERMAFROST_GRAPH_MATCHING_COMPOSED_FUNCTIONS_H_
#define PERMAFROST_GRAPH_MATCHING_COMPOSED_FUNCTIONS_H_

#include <functional>
#include <optional>
#include <vector>

#include "graph/graph.h"
#include "graph/shape.h"
#include "graph/tensor.h"

namespace permafrost {

enum class ComposedFunction {
  kHardSwish,        // x Relu6(x + 3) / 6, in any order of the factors.
  kGelu,             // x (1 + erf(x / sqrt(2))) / 2.
  kGeluApproximate,  // x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) / 2.
  kPRelu,            // Relu(x) - a Relu(-x), Relu(x) + a' Relu(-x) or Relu(x) + a'' (x - |x|), a' = -a, a'' = a / 2.
  kL2Normalization,  // x Rsqrt(Maximum(Sum(x^2), 1e-12)) or x / Maximum(Sqrt(Sum(x^2)), 1e-6), in the last dimension.
};

// A recognised function. `x` is its operand.
struct Composition {
  ComposedFunction function;
  TensorRef x;
  // kPRelu: `slope` times `slope_factor` is the slope of negative numbers. `slope` is a constant if `slope_value` has a
  // type, or else a dequantised tensor.
  TensorRef slope;
  Tensor slope_value;
  float slope_factor = 1;
  std::vector<Node*> inner;  // The nodes other than the root; constants are not among them.
};

// Facts that the recognition needs in addition to the graph.
struct CompositionContext {
  // Returns whether the function is the only reader of a node, and the node is no endpoint.
  std::function<bool(const Node&)> is_read_once;
  std::function<Shape(TensorRef)> shape_of;
};

// Returns the function whose last node is `root`, or nothing. The nodes between `x` and `root` have no other readers.
std::optional<Composition> MatchComposition(Node& root, const CompositionContext& context);

}  // namespace permafrost

#endif  // PERMAFROST_GRAPH_MATCHING_COMPOSED_FUNCTIONS_H_
