// Quantised tensors in a graph: UniformQuantize and UniformDequantize nodes around float ops, and the attributes that
// mark which of these float ops stand for integer arithmetic.
//
// A tensor of codes represents real = scale * (code - zero point), with one scale or one for each slice of an axis. The
// node that ends a quantised operator has the attribute kRoundingAttr: the UniformQuantize of its result, or the
// operator's own last node if its result is not quantised. runtime_check/program/integer_fusion.h replaces such an
// operator by an integer kernel. Without the attribute, the float ops are computed as they are.
#ifndef PERMAFROST_GRAPH_ANALYSIS_UNIFORM_QUANTIZATION_H_
#define PERMAFROST_GRAPH_ANALYSIS_UNIFORM_QUANTIZATION_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "graph/graph.h"

namespace permafrost {

// A string attribute. "twice", "exact" and "once" name the rounding of accumulators (docs/design/tflite.md). "dynamic"
// marks an operator with float input and int8 weights, whose input is quantised when it runs.
inline constexpr absl::string_view kRoundingAttr = "_rounding";
// A bool attribute of a UniformQuantize with kRoundingAttr: the operator aligns operands, whose scales are powers of
// two, by shifts.
inline constexpr absl::string_view kPowersOfTwoAttr = "_powers_of_two";
// A bool attribute of a node that is marked "dynamic": the input's codes have a zero point.
inline constexpr absl::string_view kAsymmetricAttr = "_asymmetric_inputs";

// Attributes (float and int) of an input or output of codes that quantize_for_tflite changed from float: its scale and
// zero point.
inline constexpr absl::string_view kInterfaceScaleAttr = "_interface_scale";
inline constexpr absl::string_view kInterfaceZeroPointAttr = "_interface_zero_point";

// The ops UniformQuantize and UniformDequantize (graph/ops/named_ops.def).
inline Op UniformQuantizeOp() {
  static const Op op = Op::Named("UniformQuantize");
  return op;
}
inline Op UniformDequantizeOp() {
  static const Op op = Op::Named("UniformDequantize");
  return op;
}

// The scales of a UniformQuantize or UniformDequantize node.
struct UniformScales {
  std::vector<float> scales;         // One, or one for each slice of `axis`.
  std::vector<int32_t> zero_points;  // As many as scales.
  int axis = -1;                     // -1: one scale for the whole tensor.
  bool has_four_bits = false;        // Codes of int8 are -8 to 7 at most, so files may store them in four bits.
};

// Reads the scales of a node. Returns InvalidArgument, which does not name the node, unless scales and zero points are
// constants of the same size and scales are positive and finite.
absl::StatusOr<UniformScales> ReadUniformScales(const Node& node);

}  // namespace permafrost

#endif  // PERMAFROST_GRAPH_ANALYSIS_UNIFORM_QUANTIZATION_H_
