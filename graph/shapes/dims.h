// Building blocks of shape functions: arithmetic on dimensions that may be unknown, axes, layouts, windows, and shapes
// held by inputs as values. Arithmetic never overflows, and indices are checked before use.
#ifndef PERMAFROST_GRAPH_SHAPES_DIMS_H_
#define PERMAFROST_GRAPH_SHAPES_DIMS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "graph/shapes/shape_inference.h"

namespace permafrost::shapes {

// Return the sum or product. The result is unknown if an operand is unknown, except that 0 times anything is 0. Return
// InvalidArgument for results that exceed int64 or are negative.
absl::StatusOr<int64_t> AddDims(int64_t a, int64_t b);
absl::StatusOr<int64_t> MultiplyDims(int64_t a, int64_t b);

// Returns the dimension that matches both. Returns InvalidArgument, prefixed with `what`, if they differ.
absl::StatusOr<int64_t> MergeDims(int64_t a, int64_t b, absl::string_view what);

// Returns the axis counted from 0. Returns InvalidArgument unless -rank <= axis < rank.
absl::StatusOr<int> NormalizeAxis(int64_t axis, int rank);

// Returns the product of all dimensions, or kUnknownDim.
absl::StatusOr<int64_t> CountElements(const Shape& shape);

// Returns a shape with `rank` unknown dimensions. REQUIRES: rank <= kMaxRank.
Shape UnknownDims(int rank);

// Returns the value of input i if it is a single known integer, or nothing. Returns InvalidArgument if the input is a
// known vector whose size is not 1.
absl::StatusOr<std::optional<int64_t>> KnownScalar(const ShapeContext& context, int i);

// Returns the shape that input i, a vector of integers, holds. Elements that are -1 or unknown become unknown
// dimensions; if only the length is known, all dimensions are unknown. Returns InvalidArgument for an element below -1
// and for more than kMaxRank elements.
absl::StatusOr<Shape> ShapeFromInput(const ShapeContext& context, int i);

// Returns the integers of input i, or null unless all are known.
const KnownIntegers* AllIntegers(const ShapeContext& context, int i);

// Positions of the dimensions in a data format such as "NHWC".
struct ImageLayout {
  int batch = 0;
  int channel = 0;
  std::vector<int> spatial;
};

// Returns the layout of attribute `data_format`, or channels last if the op has no such attribute, for `spatial`
// spatial dimensions. Returns nothing for formats with packed channels (NCHW_VECT_C and similar), InvalidArgument for
// an unknown format.
absl::StatusOr<std::optional<ImageLayout>> LayoutOf(const Node& node, int spatial);

// Padding of a window that slides over spatial dimensions.
struct Padding {
  enum class Kind { kSame, kValid, kExplicit } kind = Kind::kValid;
  std::vector<int64_t> explicit_paddings;  // Before and after, for each dimension of the tensor.
};

// Returns the padding of attributes `padding` and `explicit_paddings`, for tensors of this rank.
absl::StatusOr<Padding> PaddingOf(const Node& node, int rank);

// Returns the number of windows along dimension `index` of the tensor. Returns InvalidArgument if stride, dilation or
// filter size is below 1, or if the window is larger than the padded input.
absl::StatusOr<int64_t> WindowCount(int64_t input, int64_t filter, int64_t dilation, int64_t stride,
                                    const Padding& padding, int index);

// Returns a list attribute with one entry for each of `rank` dimensions. Returns InvalidArgument unless all entries are
// at least 1.
absl::StatusOr<std::vector<int64_t>> PerDimension(const Node& node, absl::string_view attr, int rank);

// Returns the output shape of a pooling or convolution along `layout.spatial`. `filter[k]` is the size along
// layout.spatial[k].
absl::StatusOr<Shape> SlideWindows(const Shape& input, const ImageLayout& layout, const std::vector<int64_t>& filter,
                                   const std::vector<int64_t>& strides, const std::vector<int64_t>& dilations,
                                   const Padding& padding, int64_t channels);

// Returns the shape of the concatenation of inputs first .. first + count - 1 along `axis`, which may be unknown.
// Defined in slicing.cc.
absl::StatusOr<Shape> ConcatenatedShape(const ShapeContext& context, int first, int count, std::optional<int64_t> axis);

}  // namespace permafrost::shapes

#endif  // PERMAFROST_GRAPH_SHAPES_DIMS_H_
