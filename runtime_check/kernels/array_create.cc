// Ops that create tensors: Empty, Fill, Range, LinSpace, ZerosLike, OnesLike, OneHot.
#include <algorithm>
#include <cmath>
#include <complex>
#include <cstring>
#include <limits>
#include <memory>
#include <type_traits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "runtime_check/kernels/copy_list.h"
#include "runtime_check/kernels/moving_kernel.h"
#include "runtime_check/kernels/prepare.h"
#include "runtime_check/kernels/stand_in.h"
#include "runtime_check/kernels/wide_elements.h"

namespace permafrost {
namespace {

absl::Status PrepareFill(PrepareContext* context) {
  PF_RETURN_IF_ERROR(RequireRank(context, 0, 1));
  PF_ASSIGN_OR_RETURN(std::vector<int64_t> dims, IntegerVectorInput(context, 0));
  if (context->input_shape(1).CheckedNumElements().value_or(0) != 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("'value' has the shape ", context->input_shape(1).ToString(), ", expected a scalar"));
  }
  Shape output(dims);
  PF_RETURN_IF_ERROR(SetCheckedShape(context, 0, output));
  auto copies = std::make_unique<CopyList>(SizeOf(context->output_type(0)));
  copies->Add(1, 0, 0, 0, {{output.num_elements(), 0, 1}});
  context->SetState(std::move(copies));
  return absl::OkStatus();
}

absl::Status PrepareEmpty(PrepareContext* context) {
  PF_RETURN_IF_ERROR(RequireRank(context, 0, 1));
  PF_ASSIGN_OR_RETURN(const std::vector<int64_t> dims, IntegerVectorInput(context, 0));
  return SetCheckedShape(context, 0, Shape(dims));
}

absl::Status ComputeZeros(ComputeContext* context) {
  const Value& output = context->output_at(0);
  const size_t bytes = output.shape.num_elements() * SizeOf(output.dtype);
  if (bytes > 0) std::memset(context->output_bytes(0), 0, bytes);
  return absl::OkStatus();
}

absl::Status ComputeOnes(ComputeContext* context) {
  Value& output = context->output_at(0);
  DispatchOn<float, double, int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t, bool, Half,
             BFloat16, std::complex<float>, std::complex<double>>(output.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    T one;
    if constexpr (std::is_same_v<T, Half>) {
      one = ToHalf(1);
    } else if constexpr (std::is_same_v<T, BFloat16>) {
      one = ToBFloat16(1);
    } else {
      one = 1;
    }
    std::fill_n(context->output<T>(0), output.shape.num_elements(), one);
  });
  return absl::OkStatus();
}

// --- Range, LinSpace -------------------------------------------------------------------------------------------------

// Returns a scalar input whose value Prepare needs.
absl::StatusOr<const Tensor*> ScalarInput(PrepareContext* context, int i) {
  if (context->input_shape(i).CheckedNumElements().value_or(0) != 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("input ", i, " has the shape ", context->input_shape(i).ToString(), ", expected a scalar"));
  }
  const Tensor* value = context->input_value(i);
  if (value == nullptr) return context->NeedsValueOf(i);
  return value;
}

// Returns how many of start, start + delta, ... are before limit.
template <typename T>
absl::StatusOr<int64_t> RangeSize(T start, T limit, T delta) {
  if (delta == 0) return absl::InvalidArgumentError("'delta' is 0");
  if (start == limit) return 0;
  if ((start < limit) != (delta > 0)) {
    return absl::InvalidArgumentError(absl::StrCat("there is no range from ", start, " to ", limit, " by ", delta));
  }
  if constexpr (std::is_integral_v<T>) {
    const uint64_t distance = start < limit ? static_cast<uint64_t>(limit) - static_cast<uint64_t>(start)
                                            : static_cast<uint64_t>(start) - static_cast<uint64_t>(limit);
    const uint64_t step = delta > 0 ? static_cast<uint64_t>(delta) : uint64_t{0} - static_cast<uint64_t>(delta);
    const uint64_t size = distance / step + (distance % step != 0);
    if (size > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
      return absl::InvalidArgumentError("the range has more elements than int64 counts");
    }
    return static_cast<int64_t>(size);
  } else {
    const double size = std::ceil(std::abs((static_cast<double>(limit) - start) / delta));
    // 2^63 is the first double that exceeds int64; the comparison is false for NaN.
    if (!(size < 9223372036854775808.0)) {
      return absl::InvalidArgumentError("the range has more elements than int64 counts");
    }
    return static_cast<int64_t>(size);
  }
}

// As RangeSize, for 16-bit floats: each step is rounded to their type, as in TensorFlow.
template <typename T>
absl::StatusOr<int64_t> RangeSizeOf16Bits(T start, T limit, T delta) {
  const float distance = ToFloat(limit) - ToFloat(start);
  PF_RETURN_IF_ERROR(RangeSize<float>(ToFloat(start), ToFloat(limit), ToFloat(delta)).status());
  const float steps = std::abs(ToFloat(Narrow<T>(ToFloat(Narrow<T>(distance)) / ToFloat(delta))));
  return RangeSize<float>(0, steps, 1);
}

absl::Status PrepareRange(PrepareContext* context) {
  PF_ASSIGN_OR_RETURN(const Tensor* start, ScalarInput(context, 0));
  PF_ASSIGN_OR_RETURN(const Tensor* limit, ScalarInput(context, 1));
  PF_ASSIGN_OR_RETURN(const Tensor* delta, ScalarInput(context, 2));
  absl::StatusOr<int64_t> size = absl::InternalError("a type without a range");
  DispatchOn<int32_t, int64_t, float, double>(context->input_type(0), [&](auto tag) {
    using T = typename decltype(tag)::type;
    size = RangeSize<T>(start->elements<T>()[0], limit->elements<T>()[0], delta->elements<T>()[0]);
  });
  DispatchOn<Half, BFloat16>(context->input_type(0), [&](auto tag) {
    using T = typename decltype(tag)::type;
    size = RangeSizeOf16Bits<T>(start->elements<T>()[0], limit->elements<T>()[0], delta->elements<T>()[0]);
  });
  PF_RETURN_IF_ERROR(size.status());
  return SetCheckedShape(context, 0, Shape({*size}));
}

absl::Status ComputeRange(ComputeContext* context) {
  DispatchOn<int32_t, int64_t, float, double>(context->input_at(0).dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T start = *context->input<T>(0);
    const T delta = *context->input<T>(2);
    T* output = context->output<T>(0);
    const int64_t size = context->output_shape(0).num_elements();
    // Intermediate integers may wrap around, though every result is in range.
    using Number = typename std::conditional_t<std::is_integral_v<T>, TypeTag<uint64_t>, TypeTag<T>>::type;
    for (int64_t i = 0; i < size; ++i) {
      output[i] = static_cast<T>(static_cast<Number>(start) + static_cast<Number>(i) * static_cast<Number>(delta));
    }
  });
  DispatchOn<Half, BFloat16>(context->input_at(0).dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const float start = ToFloat(*context->input<T>(0)), delta = ToFloat(*context->input<T>(2));
    const auto round = [](float x) { return ToFloat(Narrow<T>(x)); };
    T* output = context->output<T>(0);
    for (int64_t i = 0; i < context->output_shape(0).num_elements(); ++i) {
      output[i] = Narrow<T>(start + round(round(static_cast<float>(i)) * delta));
    }
  });
  return absl::OkStatus();
}

absl::Status PrepareLinSpace(PrepareContext* context) {
  for (int i : {0, 1}) {
    if (context->input_shape(i).CheckedNumElements().value_or(0) != 1) {
      return absl::InvalidArgumentError(
          absl::StrCat("input ", i, " has the shape ", context->input_shape(i).ToString(), ", expected a scalar"));
    }
  }
  PF_ASSIGN_OR_RETURN(int64_t count, IntegerInput(context, 2));
  if (count < 1) return absl::InvalidArgumentError(absl::StrCat("'num' is ", count, ", expected at least 1"));
  return SetCheckedShape(context, 0, Shape({count}));
}

absl::Status ComputeLinSpace(ComputeContext* context) {
  DispatchOn<float, double>(context->input_at(0).dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T start = *context->input<T>(0);
    const T stop = *context->input<T>(1);
    const int64_t count = context->output_shape(0).num_elements();
    T* output = context->output<T>(0);
    const T step = count > 1 ? (stop - start) / static_cast<T>(count - 1) : T(0);
    for (int64_t i = 0; i < count; ++i) output[i] = start + step * static_cast<T>(i);
    if (count > 1) output[count - 1] = stop;
  });
  return absl::OkStatus();
}

// --- OneHot ----------------------------------------------------------------------------------------------------------

struct OneHotState : KernelState {
  CopyList off;
  int64_t depth;
  int64_t inner;  // Number of indices after the axis.

  explicit OneHotState(size_t element_size) : off(element_size) {}
};

absl::Status PrepareOneHot(PrepareContext* context) {
  PF_ASSIGN_OR_RETURN(int64_t attr, IntAttr(context->node(), "axis"));
  PF_ASSIGN_OR_RETURN(int64_t depth, IntegerInput(context, 1));
  const Shape& indices = context->input_shape(0);
  PF_ASSIGN_OR_RETURN(int axis, ResolveAxis(attr, indices.rank() + 1));
  for (int i : {2, 3}) {
    if (context->input_shape(i).CheckedNumElements().value_or(0) != 1) {
      return absl::InvalidArgumentError(
          absl::StrCat("input ", i, " has the shape ", context->input_shape(i).ToString(), ", expected a scalar"));
    }
  }
  Shape output;
  for (int d = 0; d <= indices.rank(); ++d) {
    if (d == axis) output.AddDim(depth);
    if (d < indices.rank()) output.AddDim(indices.dim(d));
  }
  PF_RETURN_IF_ERROR(SetCheckedShape(context, 0, output));
  auto state = std::make_unique<OneHotState>(SizeOf(context->output_type(0)));
  state->off.Add(3, 0, 0, 0, {{output.num_elements(), 0, 1}});
  state->depth = depth;
  state->inner = ProductOfDims(indices, axis, indices.rank());
  context->SetState(std::move(state));
  return absl::OkStatus();
}

// An index out of [0, depth) gives off_value everywhere.
absl::Status ComputeOneHot(ComputeContext* context) {
  const auto& state = context->state<OneHotState>();
  state.off.Run(context);
  if (context->output_shape(0).num_elements() == 0) return absl::OkStatus();
  const size_t size = SizeOf(context->output_at(0).dtype);
  const char* on = context->input_bytes(2);
  char* output = context->output_bytes(0);
  const int64_t count = context->input_shape(0).num_elements();
  DispatchOn<uint8_t, int8_t, int32_t, int64_t>(context->input_at(0).dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* indices = context->input<T>(0);
    for (int64_t i = 0; i < count; ++i) {
      const int64_t index = indices[i];
      if (index < 0 || index >= state.depth) continue;
      const int64_t position = (i / state.inner * state.depth + index) * state.inner + i % state.inner;
      std::memcpy(output + position * size, on, size);
    }
  });
  return absl::OkStatus();
}

std::vector<DType> OnesTypes() {
  std::vector<DType> types = NumberAndComplexTypes();
  types.push_back(DType::kBool);
  return types;
}

}  // namespace

DEFINE_KERNEL(Fill) { return MovingKernel<PrepareFill>("a tensor with the given shape, filled with one value"); }

DEFINE_KERNEL(Empty) {
  return Kernel("zeros with the given shape, whatever 'init' says")
      .TypeNumbers("dtype", MovableAndStringTypes())
      .Prepare(PrepareNumbered<PrepareEmpty>)
      .Compute(ComputeNumbered<ComputeZeros>);
}

DEFINE_KERNEL(ZerosLike) {
  return Kernel("zeros with the shape of x")
      .TypeNumbers("T", MovableAndStringTypes())
      .InPlace(0)
      .Prepare(PrepareNumbered<SameShape>)
      .Compute(ComputeNumbered<ComputeZeros>);
}

DEFINE_KERNEL(OnesLike) {
  return Kernel("ones with the shape of x")
      .TypeNumbers("T", OnesTypes())
      .InPlace(0)
      .Prepare(SameShape)
      .Compute(ComputeOnes);
}

DEFINE_KERNEL(Range) {
  return Kernel("the numbers start, start + delta, ... before limit")
      .Types<int32_t, int64_t, float, double, Half, BFloat16>("Tidx")
      .Prepare(PrepareRange)
      .Compute(ComputeRange);
}

DEFINE_KERNEL(LinSpace) {
  return Kernel("num evenly spaced values from start to stop")
      .Types<float, double>("T")
      .Prepare(PrepareLinSpace)
      .Compute(ComputeLinSpace);
}

DEFINE_KERNEL(OneHot) {
  return Kernel("along a new axis, on_value at the position given by the index and off_value elsewhere")
      .Types<uint8_t, int8_t, int32_t, int64_t>("TI")
      .TypeNumbers("T", MovableAndStringTypes())
      .Prepare(PrepareNumbered<PrepareOneHot>)
      .Compute(ComputeNumbered<ComputeOneHot>);
}

}  // namespace permafrost
