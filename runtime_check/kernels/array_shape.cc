// Ops that change or return the shape of a tensor.
#include <cstdint>
#include <cstring>
#include <limits>

#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "runtime_check/kernels/prepare.h"
#include "runtime_check/kernels/quantized_ranges.h"

namespace permafrost {
namespace {

// Returns the shape that `wanted` describes. One dimension may be -1 and is computed from the number of elements.
absl::StatusOr<Shape> ResolveReshape(const Shape& input, absl::Span<const int64_t> wanted) {
  PF_ASSIGN_OR_RETURN(int64_t count, input.CheckedNumElements());
  Shape shape(wanted);
  int unknown = -1;
  int64_t known = 1;
  for (int i = 0; i < shape.rank(); ++i) {
    if (shape.dim(i) == -1 && unknown < 0) {
      unknown = i;
    } else if (shape.dim(i) < 0 || __builtin_mul_overflow(known, shape.dim(i), &known)) {
      return absl::InvalidArgumentError(absl::StrCat("the wanted shape ", shape.ToString(), " is not a shape"));
    }
  }
  if (unknown >= 0) {
    if (known == 0 && count == 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("the wanted shape ", shape.ToString(), " does not determine the dimension that is -1"));
    }
    if (known > 0 && count % known == 0) shape.set_dim(unknown, count / known);
  }
  if (!shape.IsFullyKnown() || *shape.CheckedNumElements() != count) {
    return absl::InvalidArgumentError(absl::StrCat("the input has the shape ", input.ToString(), " with ", count,
                                                   " elements, which the wanted shape ", shape.ToString(),
                                                   " does not hold"));
  }
  return shape;
}

absl::Status PrepareReshape(PrepareContext* context) {
  PF_RETURN_IF_ERROR(RequireRank(context, 1, 1));
  PF_ASSIGN_OR_RETURN(std::vector<int64_t> wanted, IntegerVectorInput(context, 1));
  PF_ASSIGN_OR_RETURN(Shape shape, ResolveReshape(context->input_shape(0), wanted));
  context->SetOutputShape(0, std::move(shape));
  return absl::OkStatus();
}

absl::Status PrepareQuantizedReshape(PrepareContext* context) {
  PF_RETURN_IF_ERROR(RequireRangeInputs(context, 2, 2));
  SetRangeOutputShapes(context);
  return PrepareReshape(context);
}

absl::Status ComputeQuantizedReshape(ComputeContext* context) {
  SetRangeOutput(context, RangeInput(*context, 2));
  const char* input = context->input_bytes(0);
  char* output = context->output_bytes(0);
  const size_t bytes = static_cast<size_t>(context->input_shape(0).num_elements()) * SizeOf(context->input_type(0));
  if (bytes > 0 && output != input) std::memcpy(output, input, bytes);
  return absl::OkStatus();
}

absl::Status PrepareSqueeze(PrepareContext* context) {
  PF_ASSIGN_OR_RETURN(std::vector<int64_t> axes, IntListAttr(context->node(), "squeeze_dims"));
  const Shape& input = context->input_shape(0);
  std::vector<bool> named(input.rank(), false);
  for (int64_t axis : axes) {
    PF_ASSIGN_OR_RETURN(int resolved, ResolveAxis(axis, input.rank()));
    if (input.dim(resolved) != 1) {
      return absl::InvalidArgumentError(
          absl::StrCat("the input has the shape ", input.ToString(), ", expected 1 at axis ", resolved));
    }
    named[resolved] = true;
  }
  Shape output;
  for (int i = 0; i < input.rank(); ++i) {
    if (!(axes.empty() ? input.dim(i) == 1 : named[i])) output.AddDim(input.dim(i));
  }
  context->SetOutputShape(0, std::move(output));
  return absl::OkStatus();
}

absl::Status PrepareExpandDims(PrepareContext* context) {
  const Shape& input = context->input_shape(0);
  PF_ASSIGN_OR_RETURN(int64_t axis, IntegerInput(context, 1));
  PF_ASSIGN_OR_RETURN(int position, ResolveAxis(axis, input.rank() + 1));
  Shape output;
  for (int i = 0; i <= input.rank(); ++i) {
    if (i == position) output.AddDim(1);
    if (i < input.rank()) output.AddDim(input.dim(i));
  }
  context->SetOutputShape(0, std::move(output));
  return absl::OkStatus();
}

// --- Shape, ShapeN, Rank, Size ---------------------------------------------------------------------------------------

absl::Status PrepareShape(PrepareContext* context) {
  for (int i = 0; i < context->num_inputs(); ++i) {
    for (int64_t dim : context->input_shape(i).dims()) {
      if (context->output_type(i) == DType::kInt32 && dim > std::numeric_limits<int32_t>::max()) {
        return absl::InvalidArgumentError(absl::StrCat("input ", i, " has the shape ",
                                                       context->input_shape(i).ToString(),
                                                       ", which int32 does not hold: use out_type int64"));
      }
    }
    context->SetOutputShape(i, Shape({context->input_shape(i).rank()}));
  }
  return absl::OkStatus();
}

absl::Status ComputeShape(ComputeContext* context) {
  for (int i = 0; i < context->num_inputs(); ++i) {
    DispatchOn<int32_t, int64_t>(context->output_at(i).dtype, [&](auto tag) {
      using T = typename decltype(tag)::type;
      for (int d = 0; d < context->input_shape(i).rank(); ++d) {
        context->output<T>(i)[d] = static_cast<T>(context->input_shape(i).dim(d));
      }
    });
  }
  return absl::OkStatus();
}

absl::Status PrepareScalar(PrepareContext* context) {
  context->SetOutputShape(0, Shape());
  return absl::OkStatus();
}

absl::Status ComputeRank(ComputeContext* context) {
  *context->output<int32_t>(0) = context->input_shape(0).rank();
  return absl::OkStatus();
}

absl::Status PrepareSize(PrepareContext* context) {
  PF_ASSIGN_OR_RETURN(int64_t count, context->input_shape(0).CheckedNumElements());
  if (context->output_type(0) == DType::kInt32 && count > std::numeric_limits<int32_t>::max()) {
    return absl::InvalidArgumentError(
        absl::StrCat("the input has ", count, " elements, which int32 does not hold: use out_type int64"));
  }
  return PrepareScalar(context);
}

absl::Status ComputeSize(ComputeContext* context) {
  DispatchOn<int32_t, int64_t>(context->output_at(0).dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    *context->output<T>(0) = static_cast<T>(context->input_shape(0).num_elements());
  });
  return absl::OkStatus();
}

}  // namespace

DEFINE_KERNEL(Reshape) {
  return Kernel("the elements of the input with another shape").Alias().Prepare(PrepareReshape);
}
DEFINE_KERNEL(QuantizedReshape) {
  return Kernel("the codes of the input with another shape")
      .Types<QInt8, QUint8, QInt16, QUint16, QInt32>("T")
      .InPlace(0)
      .Prepare(PrepareQuantizedReshape)
      .Compute(ComputeQuantizedReshape);
}
DEFINE_KERNEL(Squeeze) { return Kernel("the input without dimensions of size 1").Alias().Prepare(PrepareSqueeze); }
DEFINE_KERNEL(ExpandDims) {
  return Kernel("the input with a new dimension of size 1").Alias().Prepare(PrepareExpandDims);
}
DEFINE_KERNEL(Shape) {
  return Kernel("the shape of the input").ReadsShapesOnly().Prepare(PrepareShape).Compute(ComputeShape);
}
DEFINE_KERNEL(ShapeN) {
  return Kernel("the shape of each input").ReadsShapesOnly().Prepare(PrepareShape).Compute(ComputeShape);
}
DEFINE_KERNEL(Rank) {
  return Kernel("the number of dimensions of the input").ReadsShapesOnly().Prepare(PrepareScalar).Compute(ComputeRank);
}
DEFINE_KERNEL(Size) {
  return Kernel("the number of elements of the input").ReadsShapesOnly().Prepare(PrepareSize).Compute(ComputeSize);
}

}  // namespace permafrost
