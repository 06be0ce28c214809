// Ops that select elements by a condition: Select, SelectV2, Where.
#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "runtime_check/kernels/broadcast.h"
#include "runtime_check/kernels/prepare.h"
#include "runtime_check/kernels/stand_in.h"
#include "runtime_check/kernels/wide_elements.h"

namespace permafrost {
namespace {

struct SelectState : KernelState {
  Broadcast broadcast;
};

// Prepares the broadcast of inputs with these shapes, which may differ from the actual shapes.
absl::Status PrepareSelectWith(PrepareContext* context, absl::Span<const Shape> inputs) {
  PF_ASSIGN_OR_RETURN(Shape values, BroadcastShapes(inputs[1], inputs[2]));
  PF_ASSIGN_OR_RETURN(Shape output, BroadcastShapes(inputs[0], values));
  PF_RETURN_IF_ERROR(SetCheckedShape(context, 0, output));
  auto state = std::make_unique<SelectState>();
  state->broadcast = Broadcast(inputs, output);
  context->SetState(std::move(state));
  return absl::OkStatus();
}

absl::Status PrepareSelectV2(PrepareContext* context) {
  return PrepareSelectWith(context, {context->input_shape(0), context->input_shape(1), context->input_shape(2)});
}

// The condition has the shape of the values, or is one bool, or has one bool per slice along the first dimension.
absl::Status PrepareSelect(PrepareContext* context) {
  Shape condition = context->input_shape(0);
  const Shape& values = context->input_shape(1);
  if (context->input_shape(2) != values) {
    return absl::InvalidArgumentError(
        absl::StrCat("input 2 has the shape ", context->input_shape(2).ToString(), ", expected ", values.ToString()));
  }
  const bool is_vector = condition.rank() == 1 && values.rank() >= 1 && condition.dim(0) == values.dim(0);
  if (condition != values && condition.rank() != 0 && !is_vector) {
    return absl::InvalidArgumentError(absl::StrCat("the condition has the shape ", condition.ToString(),
                                                   ", expected a scalar, ", values.ToString(),
                                                   " or a vector of its first dimension"));
  }
  if (is_vector) {
    while (condition.rank() < values.rank()) condition.AddDim(1);
  }
  return PrepareSelectWith(context, {condition, values, values});
}

template <typename T>
void SelectRow(const bool* condition, bool condition_is_scalar, const T* x, bool x_is_scalar, const T* y,
               bool y_is_scalar, T* z, int64_t count) {
  if (condition_is_scalar) {
    const T* source = *condition ? x : y;
    if (*condition ? x_is_scalar : y_is_scalar) {
      std::fill_n(z, count, *source);
    } else {
      std::memmove(static_cast<void*>(z), source, count * sizeof(T));
    }
  } else if (!x_is_scalar && !y_is_scalar) {
    for (int64_t i = 0; i < count; ++i) z[i] = condition[i] ? x[i] : y[i];
  } else {
    const int64_t x_step = x_is_scalar ? 0 : 1;
    const int64_t y_step = y_is_scalar ? 0 : 1;
    for (int64_t i = 0; i < count; ++i) z[i] = condition[i] ? x[i * x_step] : y[i * y_step];
  }
}

// T is any type of the elements' size.
template <typename T>
void SelectAll(ComputeContext* context) {
  const Broadcast& broadcast = context->state<SelectState>().broadcast;
  const bool* condition = context->input<bool>(0);
  const T* x = context->input_bits<T>(1);
  const T* y = context->input_bits<T>(2);
  T* z = context->output_bits<T>(0);
  context->threads().ParallelFor(broadcast.num_elements(), 1 << 15, [&](int64_t begin, int64_t end) {
    broadcast.ForEachRow(begin, end, [&](const int64_t* offsets, int64_t to, int64_t count) {
      SelectRow(condition + offsets[0], broadcast.IsScalarInRow(0), x + offsets[1], broadcast.IsScalarInRow(1),
                y + offsets[2], broadcast.IsScalarInRow(2), z + to, count);
    });
  });
}

absl::Status ComputeSelect(ComputeContext* context) {
  switch (SizeOf(context->output_at(0).dtype)) {
    case 1:
      SelectAll<uint8_t>(context);
      break;
    case 2:
      SelectAll<uint16_t>(context);
      break;
    case 4:
      SelectAll<uint32_t>(context);
      break;
    case 8:
      SelectAll<uint64_t>(context);
      break;
    default:
      SelectAll<std::complex<double>>(context);
  }
  return absl::OkStatus();
}

// --- Where -----------------------------------------------------------------------------------------------------------

absl::Status PrepareWhere(PrepareContext* context) {
  context->OutputShapeDependsOnValues(0);
  return absl::OkStatus();
}

template <typename T>
bool IsSet(T x) {
  return Comparable(x) != decltype(Comparable(x))(0);
}

template <typename T>
absl::Status FindSet(ComputeContext* context) {
  const T* x = context->input<T>(0);
  const Shape shape = context->input_shape(0);
  const int64_t count = shape.num_elements();
  int64_t found = 0;
  for (int64_t i = 0; i < count; ++i) found += IsSet(x[i]);
  const int rank = shape.rank();
  PF_RETURN_IF_ERROR(context->AllocateOutput(0, Shape({found, rank})));
  int64_t* row = context->output<int64_t>(0);
  for (int64_t i = 0; i < count; ++i) {
    if (!IsSet(x[i])) continue;
    int64_t rest = i;
    for (int d = rank - 1; d >= 0; --d) {
      row[d] = rest % shape.dim(d);
      rest /= shape.dim(d);
    }
    row += rank;
  }
  return absl::OkStatus();
}

absl::Status ComputeWhere(ComputeContext* context) {
  absl::Status status;
  DispatchOn<bool, float, double, Half, BFloat16, int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t,
             uint64_t, std::complex<float>, std::complex<double>>(
      context->input_at(0).dtype, [&](auto tag) { status = FindSet<typename decltype(tag)::type>(context); });
  return status;
}

std::vector<DType> WhereTypes() {
  std::vector<DType> types = NumberAndComplexTypes();
  types.push_back(DType::kBool);
  return types;
}

}  // namespace

DEFINE_KERNEL(Select) {
  return Kernel("condition ? t : e; a vector condition selects slices")
      .TypeNumbers("T", MovableAndStringTypes())
      .InPlace(1)
      .InPlace(2)
      .Prepare(PrepareNumbered<PrepareSelect>)
      .Compute(ComputeNumbered<ComputeSelect>);
}

DEFINE_KERNEL(SelectV2) {
  return Kernel("condition ? t : e, with broadcasting")
      .TypeNumbers("T", MovableAndStringTypes())
      .InPlace(1)
      .InPlace(2)
      .Prepare(PrepareNumbered<PrepareSelectV2>)
      .Compute(ComputeNumbered<ComputeSelect>);
}

DEFINE_KERNEL(Where) {
  return Kernel("the indices of the nonzero elements")
      .TypeNumbers("T", WhereTypes())
      .Prepare(PrepareWhere)
      .Compute(ComputeWhere);
}

}  // namespace permafrost
