// Ops that write slices by index: ScatterNd, ScatterNdNonAliasingAdd, TensorScatterUpdate and its variants.
#include <algorithm>
#include <complex>
#include <cstring>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "runtime_check/kernels/prepare.h"
#include "runtime_check/kernels/slice_index.h"
#include "runtime_check/kernels/stand_in.h"
#include "runtime_check/kernels/wide_elements.h"

namespace permafrost {
namespace {

// Prepares the scatter of input `updates` by input `indices` into a tensor of shape `target`, and checks the shapes.
absl::Status PrepareScatterWith(PrepareContext* context, int indices, int updates, const Shape& target) {
  const Shape& rows = context->input_shape(indices);
  PF_ASSIGN_OR_RETURN(std::unique_ptr<SliceIndex> state, ReadSliceIndex(context->node(), rows, target));
  const Shape expected = ShapeOfSlices(*state, rows, target);
  if (context->input_shape(updates) != expected) {
    return absl::InvalidArgumentError(absl::StrCat("'updates' has the shape ", context->input_shape(updates).ToString(),
                                                   ", expected ", expected.ToString()));
  }
  PF_RETURN_IF_ERROR(SetCheckedShape(context, 0, target));
  context->SetState(std::move(state));
  return absl::OkStatus();
}

absl::Status PrepareScatterNd(PrepareContext* context) {
  PF_RETURN_IF_ERROR(RequireRank(context, 2, 1));
  PF_ASSIGN_OR_RETURN(std::vector<int64_t> dims, IntegerVectorInput(context, 2));
  const Shape output(dims);
  PF_RETURN_IF_ERROR(SetCheckedShape(context, 0, output));
  return PrepareScatterWith(context, 0, 1, output);
}

absl::Status PrepareTensorScatter(PrepareContext* context) {
  return PrepareScatterWith(context, 1, 2, context->input_shape(0));
}

// --- What an element becomes -----------------------------------------------------------------------------------------

struct Replace {
  template <typename T>
  static void Into(T update, T* x) {
    *x = update;
  }
};
struct Plus {
  template <typename T>
  static void Into(T update, T* x) {
    *x = Narrow<T>(Widen(*x) + Widen(update));
  }
};
struct Minus {
  template <typename T>
  static void Into(T update, T* x) {
    *x = Narrow<T>(Widen(*x) - Widen(update));
  }
};
struct Larger {
  template <typename T>
  static void Into(T update, T* x) {
    *x = Comparable(*x) < Comparable(update) ? update : *x;
  }
};
struct Smaller {
  template <typename T>
  static void Into(T update, T* x) {
    *x = Comparable(update) < Comparable(*x) ? update : *x;
  }
};
struct Append {
  static void Into(const std::string& update, std::string* x) { *x += update; }
};

// --- Walking the rows ------------------------------------------------------------------------------------------------

// Processes one row after the other, since several may address the same slice.
template <typename Op, typename T, typename Index>
absl::Status ScatterRows(ComputeContext* context, int indices_input, const T* updates, T* output) {
  const auto& state = context->state<SliceIndex>();
  const int64_t depth = static_cast<int64_t>(state.dims.size());
  const Index* indices = context->input<Index>(indices_input);
  if (state.slice_elements == 0) return absl::OkStatus();  // The number of rows is then not limited.
  for (int64_t row = 0; row < state.num_rows; ++row) {
    const int64_t slice = state.SliceOf(indices + row * depth);
    if (slice < 0 && state.skips_bad_rows) continue;
    if (slice < 0) return BadRow(row);
    T* target = output + slice * state.slice_elements;
    const T* source = updates + row * state.slice_elements;
    for (int64_t i = 0; i < state.slice_elements; ++i) Op::Into(source[i], &target[i]);
  }
  return absl::OkStatus();
}

template <typename Op, typename T>
absl::Status ScatterElements(ComputeContext* context, int indices_input, const T* updates, T* output) {
  return context->input_at(indices_input).dtype == DType::kInt32
             ? ScatterRows<Op, T, int32_t>(context, indices_input, updates, output)
             : ScatterRows<Op, T, int64_t>(context, indices_input, updates, output);
}

template <typename Op, typename... Types>
absl::Status Scatter(ComputeContext* context, int indices_input) {
  absl::Status status = absl::InternalError("a type that does not scatter");
  DispatchOn<Types...>(context->output_at(0).dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    status = ScatterElements<Op>(context, indices_input, context->input<T>(indices_input + 1), context->output<T>(0));
  });
  return status;
}

size_t OutputBytes(ComputeContext* context) {
  return context->output_shape(0).num_elements() * SizeOf(context->output_at(0).dtype);
}

absl::Status ComputeScatterNd(ComputeContext* context) {
  if (context->output_at(0).dtype == DType::kString) {
    std::vector<std::string>& output = context->output_strings(0);
    output.assign(static_cast<size_t>(context->output_shape(0).num_elements()), "");
    return ScatterElements<Append, std::string>(context, 0, context->input_strings(1).data(), output.data());
  }
  if (const size_t bytes = OutputBytes(context); bytes > 0) std::memset(context->output_bytes(0), 0, bytes);
  return Scatter<Plus, float, double, Half, BFloat16, int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t,
                 uint64_t, bool, std::complex<float>, std::complex<double>>(context, 0);
}

// Initialises the output with the tensor, unless both share memory.
void CopyTensor(ComputeContext* context) {
  const size_t bytes = OutputBytes(context);
  if (bytes == 0 || context->output_bytes(0) == context->input_bytes(0)) return;
  std::memcpy(context->output_bytes(0), context->input_bytes(0), bytes);
}

// Copies elements of any type.
absl::Status ComputeUpdate(ComputeContext* context) {
  CopyTensor(context);
  const auto scatter = [&](auto tag) {
    using T = typename decltype(tag)::type;
    return ScatterElements<Replace>(context, 1, context->input_bits<T>(2), context->output_bits<T>(0));
  };
  switch (SizeOf(context->output_at(0).dtype)) {
    case 1:
      return scatter(TypeTag<uint8_t>());
    case 2:
      return scatter(TypeTag<uint16_t>());
    case 4:
      return scatter(TypeTag<uint32_t>());
    case 8:
      return scatter(TypeTag<uint64_t>());
    default:
      return scatter(TypeTag<std::complex<double>>());
  }
}

template <typename Op>
absl::Status ComputeSum(ComputeContext* context) {
  CopyTensor(context);
  return Scatter<Op, float, double, Half, BFloat16, int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t,
                 uint64_t, std::complex<float>, std::complex<double>>(context, 1);
}

template <typename Op>
absl::Status ComputeExtreme(ComputeContext* context) {
  CopyTensor(context);
  return Scatter<Op, float, double, Half, BFloat16, int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t,
                 uint64_t>(context, 1);
}

std::vector<DType> AddableTypes() {
  std::vector<DType> types = NumberAndComplexTypes();
  types.push_back(DType::kBool);
  types.push_back(DType::kString);
  return types;
}

Kernel TensorScatter(const char* formula, std::vector<DType> types, ComputeFunction compute) {
  return Kernel(formula)
      .TypeNumbers("T", std::move(types))
      .TypeNumbers("Tindices", IndexTypes())
      .InPlace(0)
      .Prepare(PrepareTensorScatter)
      .Compute(compute);
}

}  // namespace

DEFINE_KERNEL(ScatterNd) {
  return Kernel("zeros, with the updates added at the positions in the rows of indices; strings are appended")
      .TypeNumbers("T", AddableTypes())
      .TypeNumbers("Tindices", IndexTypes())
      .Prepare(PrepareScatterNd)
      .Compute(ComputeScatterNd);
}

DEFINE_KERNEL(TensorScatterUpdate) {
  return TensorScatter("tensor, with the updates assigned at the positions in the rows of indices",
                       MovableAndStringTypes(), ComputeNumbered<ComputeUpdate>)
      .Prepare(PrepareNumbered<PrepareTensorScatter>);
}

DEFINE_KERNEL(TensorScatterAdd) {
  return TensorScatter("tensor, with the updates added at the positions in the rows of indices",
                       NumberAndComplexTypes(), ComputeSum<Plus>);
}

DEFINE_KERNEL(ScatterNdNonAliasingAdd) {
  return TensorScatter("input, with the updates added at the positions in the rows of indices", NumberAndComplexTypes(),
                       ComputeSum<Plus>);
}

DEFINE_KERNEL(TensorScatterSub) {
  return TensorScatter("tensor, with the updates subtracted at the positions in the rows of indices",
                       NumberAndComplexTypes(), ComputeSum<Minus>);
}

DEFINE_KERNEL(TensorScatterMax) {
  return TensorScatter("tensor, with max(tensor, updates) at the positions in the rows of indices", NumberTypes(),
                       ComputeExtreme<Larger>);
}

DEFINE_KERNEL(TensorScatterMin) {
  return TensorScatter("tensor, with min(tensor, updates) at the positions in the rows of indices", NumberTypes(),
                       ComputeExtreme<Smaller>);
}

}  // namespace permafrost
