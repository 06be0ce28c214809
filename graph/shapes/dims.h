// What the shape functions of all families share: arithmetic on dimensions that may be unknown, axes, and shapes that
// an input holds as values. Nothing overflows; every index is checked before it is used.
#ifndef PERMAFROST_GRAPH_SHAPES_DIMS_H_
#define PERMAFROST_GRAPH_SHAPES_DIMS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "graph/shapes/shape_inference.h"

namespace permafrost::shapes {

// Sums and products; unknown when an operand is (but 0 times anything is 0). InvalidArgument beyond int64 or below 0.
absl::StatusOr<int64_t> AddDims(int64_t a, int64_t b);
absl::StatusOr<int64_t> MultiplyDims(int64_t a, int64_t b);

// The dimension that fits both. InvalidArgument, with `what` in front, when they differ.
absl::StatusOr<int64_t> MergeDims(int64_t a, int64_t b, absl::string_view what);

// The axis from 0 on. InvalidArgument unless -rank <= axis < rank.
absl::StatusOr<int> NormalizeAxis(int64_t axis, int rank);

// The product of all dimensions, or kUnknownDim.
absl::StatusOr<int64_t> CountElements(const Shape& shape);

// A shape with this many unknown dimensions. REQUIRES: rank <= kMaxRank.
Shape UnknownDims(int rank);

// Input i as a single known integer, or nothing. InvalidArgument when it is a known vector of another size than 1.
absl::StatusOr<std::optional<int64_t>> KnownScalar(const ShapeContext& context, int i);

// The shape that input i, a vector of integers, holds: elements -1 or unknown give unknown dimensions; when nothing is
// known but the length, only the rank is. InvalidArgument for an element below -1 or more than kMaxRank of them.
absl::StatusOr<Shape> ShapeFromInput(const ShapeContext& context, int i);

// Input i as known integers, all of them, or null.
const KnownIntegers* AllIntegers(const ShapeContext& context, int i);

// "NHWC" and its kin: which dimension is what.
struct ImageLayout {
  int batch = 0;
  int channel = 0;
  std::vector<int> spatial;
};

// Of attribute `data_format` (or the default layout, channels last, where the op has none), for `spatial` spatial
// dimensions. Nothing for a layout that packs channels (NCHW_VECT_C and the like); InvalidArgument for an unheard-of
// one.
absl::StatusOr<std::optional<ImageLayout>> LayoutOf(const Node& node, int spatial);

// How a window that slides over one dimension is padded.
struct Padding {
  enum class Kind { kSame, kValid, kExplicit } kind = Kind::kValid;
  std::vector<int64_t> explicit_paddings;  // Before and after, for each dimension of the tensor.
};

// Of attributes `padding` and `explicit_paddings`, for tensors of this rank.
absl::StatusOr<Padding> PaddingOf(const Node& node, int rank);

// The number of windows along dimension `index` of the tensor. InvalidArgument for a stride, dilation or filter size
// below 1, and when the window does not fit.
absl::StatusOr<int64_t> WindowCount(int64_t input, int64_t filter, int64_t dilation, int64_t stride,
                                    const Padding& padding, int index);

// A list attribute with one entry for each of `rank` dimensions, all at least 1.
absl::StatusOr<std::vector<int64_t>> PerDimension(const Node& node, absl::string_view attr, int rank);

// Where the output of a pooling or convolution along `layout.spatial` goes; used by both families.
// `filter[k]` belongs to layout.spatial[k].
absl::StatusOr<Shape> SlideWindows(const Shape& input, const ImageLayout& layout, const std::vector<int64_t>& filter,
                                   const std::vector<int64_t>& strides, const std::vector<int64_t>& dilations,
                                   const Padding& padding, int64_t channels);

// Inputs first .. first + count - 1 put together along the axis (when it is known); defined in slicing.cc.
absl::StatusOr<Shape> ConcatenatedShape(const ShapeContext& context, int first, int count, std::optional<int64_t> axis);

}  // namespace permafrost::shapes

#endif  // PERMAFROST_GRAPH_SHAPES_DIMS_H_
