// Implements CountNodeFlops: each output element is a sum of as many products as the filter or the row has elements for
// it.
#include "graph/analysis/node_flops.h"

#include <initializer_list>

#include "absl/status/statusor.h"
#include "graph/ops/op.h"

namespace permafrost {
namespace {

// Returns twice the product of the number of elements of `shape` and `factors`, or nothing if it is unknown or exceeds
// 64 bits.
std::optional<uint64_t> TwiceProduct(const Shape& shape, std::initializer_list<int64_t> factors) {
  if (!shape.IsFullyKnown()) return std::nullopt;
  const absl::StatusOr<int64_t> elements = shape.CheckedNumElements();
  int64_t product;
  if (!elements.ok() || __builtin_mul_overflow(*elements, int64_t{2}, &product)) return std::nullopt;
  for (const int64_t factor : factors) {
    if (factor < 0 || __builtin_mul_overflow(product, factor, &product)) return std::nullopt;
  }
  return static_cast<uint64_t>(product);
}

}  // namespace

bool CountNodeFlops(const Node& node, absl::FunctionRef<Shape(int)> input, const Shape& output,
                    std::optional<uint64_t>* flops) {
  const Op op = node.op();
  if (op == ops::kConv2D || op == ops::k_FusedConv2D || op == ops::kQuantizedConv2D || op == ops::kFusedPadConv2D ||
      op == ops::kFusedResizeAndPadConv2D) {
    const int filter_index = op == ops::kFusedPadConv2D ? 2 : op == ops::kFusedResizeAndPadConv2D ? 3 : 1;
    const Shape filter = input(filter_index);
    if (filter.has_rank() && filter.rank() == 4) {
      *flops = TwiceProduct(output, {filter.dim(0), filter.dim(1), filter.dim(2)});
    }
    return true;
  }
  if (op == ops::kConv3D) {
    const Shape filter = input(1);
    if (filter.has_rank() && filter.rank() == 5) {
      *flops = TwiceProduct(output, {filter.dim(0), filter.dim(1), filter.dim(2), filter.dim(3)});
    }
    return true;
  }
  if (op == ops::kDepthwiseConv2dNative || op == ops::k_FusedDepthwiseConv2dNative) {
    const Shape filter = input(1);
    if (filter.has_rank() && filter.rank() == 4) *flops = TwiceProduct(output, {filter.dim(0), filter.dim(1)});
    return true;
  }
  if (op == ops::kConv2DBackpropInput) {
    // Each element of out_backprop is multiplied by all filter elements of its channel.
    const Shape filter = input(1);
    if (filter.has_rank() && filter.rank() == 4) {
      *flops = TwiceProduct(input(2), {filter.dim(0), filter.dim(1), filter.dim(2)});
    }
    return true;
  }
  const bool is_matmul = op == ops::kMatMul || op == ops::k_FusedMatMul || op == ops::kQuantizedMatMul;
  if (is_matmul || op == ops::kBatchMatMul || op == ops::kBatchMatMulV2 || op == ops::kBatchMatMulV3) {
    const Shape a = input(0);
    const absl::StatusOr<bool> transposed = BoolAttr(node, is_matmul ? "transpose_a" : "adj_x");
    if (a.has_rank() && a.rank() >= 2) {
      *flops = TwiceProduct(output, {a.dim(a.rank() - (transposed.value_or(false) ? 2 : 1))});
    }
    return true;
  }
  return false;
}

}  // namespace permafrost
