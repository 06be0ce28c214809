// Implements the building blocks of shape functions.
#include "graph/shapes/dims.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "graph/base/status.h"

namespace permafrost::shapes {

absl::StatusOr<int64_t> AddDims(int64_t a, int64_t b) {
  if (a < 0 || b < 0) return kUnknownDim;
  int64_t sum;
  if (__builtin_add_overflow(a, b, &sum)) {
    return absl::InvalidArgumentError(absl::StrCat("the dimension ", a, " + ", b, " exceeds 2^63 - 1"));
  }
  return sum;
}

absl::StatusOr<int64_t> MultiplyDims(int64_t a, int64_t b) {
  if (a == 0 || b == 0) return 0;
  if (a < 0 || b < 0) return kUnknownDim;
  int64_t product;
  if (__builtin_mul_overflow(a, b, &product)) {
    return absl::InvalidArgumentError(absl::StrCat("the dimension ", a, " * ", b, " exceeds 2^63 - 1"));
  }
  return product;
}

absl::StatusOr<int64_t> MergeDims(int64_t a, int64_t b, absl::string_view what) {
  if (a < 0) return b;
  if (b < 0 || a == b) return a;
  return absl::InvalidArgumentError(absl::StrCat(what, ": found ", a, " and ", b, ", expected the same"));
}

absl::StatusOr<int> NormalizeAxis(int64_t axis, int rank) {
  if (axis >= rank || axis < -rank) {
    return absl::InvalidArgumentError(
        absl::StrCat("found the axis ", axis, ", expected one for a tensor of rank ", rank));
  }
  return static_cast<int>(axis < 0 ? axis + rank : axis);
}

absl::StatusOr<int64_t> CountElements(const Shape& shape) {
  if (!shape.has_rank()) return kUnknownDim;
  int64_t count = 1;
  bool unknown = false;
  for (const int64_t dim : shape.dims()) {
    if (dim == 0) return 0;
    if (dim < 0) {
      unknown = true;
      continue;
    }
    PF_ASSIGN_OR_RETURN(count, MultiplyDims(count, dim));
  }
  return unknown ? kUnknownDim : count;
}

Shape UnknownDims(int rank) {
  return Shape(absl::MakeConstSpan(std::vector<int64_t>(static_cast<size_t>(rank), kUnknownDim)));
}

absl::StatusOr<std::optional<int64_t>> KnownScalar(const ShapeContext& context, int i) {
  const KnownIntegers* known = context.integers(i);
  if (known == nullptr) return std::nullopt;
  if (known->elements.size() != 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("input ", i, " has the shape ", known->shape.ToString(), ", expected a single number"));
  }
  if (known->elements[0] == KnownIntegers::kUnknown) return std::nullopt;
  return known->elements[0];
}

absl::StatusOr<Shape> ShapeFromInput(const ShapeContext& context, int i) {
  if (const KnownIntegers* known = context.integers(i); known != nullptr) {
    if (known->shape.rank() > 1) {
      return absl::InvalidArgumentError(
          absl::StrCat("input ", i, " has the shape ", known->shape.ToString(), ", expected a vector"));
    }
    if (known->shape.rank() == 0) return Shape::UnknownRank();  // A scalar -1 represents "any shape".
    if (known->elements.size() > kMaxRank) {
      return absl::InvalidArgumentError(absl::StrCat("input ", i, " specifies a tensor of rank ",
                                                     known->elements.size(), ", expected at most ", kMaxRank));
    }
    Shape shape;
    for (const int64_t element : known->elements) {
      if (element < kUnknownDim && element != KnownIntegers::kUnknown) {
        return absl::InvalidArgumentError(
            absl::StrCat("input ", i, " specifies dimension ", element, ", expected -1 or more"));
      }
      shape.AddDim(std::max(element, kUnknownDim));
    }
    return shape;
  }
  const Shape& of_input = context.input(i);
  if (!of_input.has_rank() || of_input.rank() != 1) return Shape::UnknownRank();
  const int64_t rank = of_input.dim(0);
  if (rank > kMaxRank) {
    return absl::InvalidArgumentError(
        absl::StrCat("input ", i, " specifies a tensor of rank ", rank, ", expected at most ", kMaxRank));
  }
  return rank < 0 ? Shape::UnknownRank() : UnknownDims(static_cast<int>(rank));
}

const KnownIntegers* AllIntegers(const ShapeContext& context, int i) {
  const KnownIntegers* known = context.integers(i);
  return known != nullptr && known->AllKnown() ? known : nullptr;
}

absl::StatusOr<std::optional<ImageLayout>> LayoutOf(const Node& node, int spatial) {
  ImageLayout layout;
  std::string format = spatial == 3 ? "NDHWC" : "NHWC";
  absl::StatusOr<std::string> given = StringAttr(node, "data_format");
  if (given.ok()) {
    format = *std::move(given);
  } else if (!absl::IsNotFound(given.status())) {
    return given.status();
  }
  const bool last = format == "NHWC" || format == "NDHWC";
  if (!last && format != "NCHW" && format != "NCDHW") {
    if (format == "NCHW_VECT_C" || format == "NHWC_VECT_W" || format == "HWNC" || format == "HWCN") return std::nullopt;
    return absl::InvalidArgumentError(
        absl::StrCat("attr 'data_format' is '", format, "', expected 'NHWC', 'NCHW', 'NDHWC' or 'NCDHW'"));
  }
  if (static_cast<int>(format.size()) != spatial + 2) {
    return absl::InvalidArgumentError(
        absl::StrCat("attr 'data_format' is '", format, "', expected one with ", spatial + 2, " dimensions"));
  }
  layout.channel = last ? spatial + 1 : 1;
  for (int i = 0; i < spatial; ++i) layout.spatial.push_back(last ? 1 + i : 2 + i);
  return layout;
}

absl::StatusOr<Padding> PaddingOf(const Node& node, int rank) {
  PF_ASSIGN_OR_RETURN(const std::string text, StringAttr(node, "padding"));
  Padding padding;
  if (text == "SAME") {
    padding.kind = Padding::Kind::kSame;
  } else if (text == "VALID") {
    padding.kind = Padding::Kind::kValid;
  } else if (text == "EXPLICIT") {
    padding.kind = Padding::Kind::kExplicit;
    PF_ASSIGN_OR_RETURN(padding.explicit_paddings, IntListAttr(node, "explicit_paddings"));
    if (padding.explicit_paddings.size() != static_cast<size_t>(rank) * 2) {
      return absl::InvalidArgumentError(absl::StrCat("attr 'explicit_paddings' has ", padding.explicit_paddings.size(),
                                                     " values, expected ", rank * 2));
    }
    for (const int64_t value : padding.explicit_paddings) {
      if (value < 0) {
        return absl::InvalidArgumentError(
            absl::StrCat("attr 'explicit_paddings' has the value ", value, ", expected 0 or more"));
      }
    }
  } else {
    return absl::InvalidArgumentError(
        absl::StrCat("attr 'padding' is '", text, "', expected 'SAME', 'VALID' or 'EXPLICIT'"));
  }
  return padding;
}

absl::StatusOr<int64_t> WindowCount(int64_t input, int64_t filter, int64_t dilation, int64_t stride,
                                    const Padding& padding, int index) {
  if (stride < 1 || dilation < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("dimension ", index, " has stride ", stride, " and dilation ", dilation, ", expected 1 or more"));
  }
  if (input < 0) return kUnknownDim;
  if (padding.kind == Padding::Kind::kSame) return input / stride + (input % stride != 0 ? 1 : 0);
  if (filter < 0) return kUnknownDim;
  if (filter == 0) return absl::InvalidArgumentError(absl::StrCat("dimension ", index, " has a window of size 0"));
  PF_ASSIGN_OR_RETURN(int64_t reach, MultiplyDims(filter - 1, dilation));
  PF_ASSIGN_OR_RETURN(reach, AddDims(reach, 1));
  int64_t padded = input;
  if (padding.kind == Padding::Kind::kExplicit) {
    PF_ASSIGN_OR_RETURN(padded, AddDims(padded, padding.explicit_paddings[2 * index]));
    PF_ASSIGN_OR_RETURN(padded, AddDims(padded, padding.explicit_paddings[2 * index + 1]));
  }
  if (padded < reach) {
    // TensorFlow rounds towards zero, so the output is empty if the window exceeds the input by less than two strides.
    if (reach - padded - stride < stride) return 0;
    return absl::InvalidArgumentError(absl::StrCat("dimension ", index, " of the input has the size ", padded,
                                                   ", which is smaller than the window of ", reach));
  }
  return (padded - reach) / stride + 1;
}

absl::StatusOr<std::vector<int64_t>> PerDimension(const Node& node, absl::string_view attr, int rank) {
  PF_ASSIGN_OR_RETURN(std::vector<int64_t> values, IntListAttr(node, attr));
  if (values.size() != static_cast<size_t>(rank)) {
    return absl::InvalidArgumentError(
        absl::StrCat("attr '", attr, "' has ", values.size(), " values, expected ", rank));
  }
  for (const int64_t value : values) {
    if (value < 1) {
      return absl::InvalidArgumentError(
          absl::StrCat("attr '", attr, "' has the value ", value, ", expected 1 or more"));
    }
  }
  return values;
}

absl::StatusOr<Shape> SlideWindows(const Shape& input, const ImageLayout& layout, const std::vector<int64_t>& filter,
                                   const std::vector<int64_t>& strides, const std::vector<int64_t>& dilations,
                                   const Padding& padding, int64_t channels) {
  const int rank = static_cast<int>(layout.spatial.size()) + 2;
  Shape output = UnknownDims(rank);
  output.set_dim(layout.channel, channels);
  if (input.has_rank()) output.set_dim(layout.batch, input.dim(layout.batch));
  for (size_t k = 0; k < layout.spatial.size(); ++k) {
    const int index = layout.spatial[k];
    PF_ASSIGN_OR_RETURN(const int64_t count, WindowCount(input.has_rank() ? input.dim(index) : kUnknownDim, filter[k],
                                                         dilations[index], strides[index], padding, index));
    output.set_dim(index, count);
  }
  return output;
}

}  // namespace permafrost::shapes
