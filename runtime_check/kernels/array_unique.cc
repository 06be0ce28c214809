// Unique, UniqueWithCounts and their second versions: the distinct elements of a vector, or slices of a tensor.
// ListDiff: the elements of a vector that another does not have.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/hash/hash.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "graph/base/status.h"
#include "runtime_check/kernel.h"
#include "runtime_check/kernels/prepare.h"
#include "runtime_check/threads/cancellation.h"

namespace permafrost {
namespace {

absl::Status Prepare(PrepareContext* context) {
  PF_RETURN_IF_ERROR(RequireRank(context, 0, 1));
  if (context->output_type(1) == DType::kInt32 && context->input_shape(0).dim(0) > INT32_MAX) {
    return absl::InvalidArgumentError("the indices exceed int32: use out_idx int64");
  }
  context->OutputShapeDependsOnValues(0);
  context->SetOutputShape(1, context->input_shape(0));
  if (context->num_outputs() > 2) context->OutputShapeDependsOnValues(2);
  return absl::OkStatus();
}

// Returns the key for comparisons: 0 and -0 are equal, and a NaN is not equal to anything.
template <typename T>
auto Key(const T& x) {
  if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>) {
    return ToFloat(x);
  } else if constexpr (std::is_same_v<T, std::string>) {
    return absl::string_view(x);
  } else {
    return x;
  }
}

// Fills the indices, and returns the first position and the count of each distinct element. O(elements).
template <typename T, typename Index>
void FindUnique(const T* x, int64_t count, Index* indices, std::vector<int64_t>* first, std::vector<Index>* counts) {
  absl::flat_hash_map<decltype(Key(*x)), Index> numbers;
  for (int64_t i = 0; i < count; ++i) {
    const auto key = Key(x[i]);
    indices[i] = static_cast<Index>(first->size());
    // The map does not hold NaN, because NaNs of the same bits have the same hash and are never found.
    if (key == key) indices[i] = numbers.try_emplace(key, indices[i]).first->second;
    if (static_cast<size_t>(indices[i]) == first->size()) {
      first->push_back(i);
      counts->push_back(0);
    }
    ++(*counts)[indices[i]];
  }
}

template <typename T, typename Index>
absl::Status Run(ComputeContext* context, const T* x) {
  const int64_t count = context->input_shape(0).num_elements();
  // The size of the map and the lists if all elements are distinct.
  PF_ASSIGN_OR_RETURN(const Reservation reservation,
                      Reservation::Take(&context->budget(), count * static_cast<int64_t>(2 * sizeof(Key(T())) + 48),
                                        "the different elements"));
  std::vector<int64_t> first;
  std::vector<Index> counts;
  FindUnique(x, count, context->output<Index>(1), &first, &counts);
  const Shape shape({static_cast<int64_t>(first.size())});
  PF_RETURN_IF_ERROR(context->AllocateOutput(0, shape));
  for (size_t i = 0; i < first.size(); ++i) {
    if constexpr (std::is_same_v<T, std::string>) {
      (context->output_strings(0))[i] = x[first[i]];
    } else {
      context->output<T>(0)[i] = x[first[i]];
    }
  }
  if (context->num_outputs() > 2) {
    PF_RETURN_IF_ERROR(context->AllocateOutput(2, shape));
    std::copy(counts.begin(), counts.end(), context->output<Index>(2));
  }
  return absl::OkStatus();
}

// --- Slices along an axis --------------------------------------------------------------------------------------------

// The input as [outer, size, inner]; slice i has the elements [., i, .].
struct SliceState : KernelState {
  int axis = 0;
  int64_t outer = 1, size = 0, inner = 1;
};

absl::Status PrepareV2(PrepareContext* context) {
  PF_RETURN_IF_ERROR(RequireRank(context, 1, 1));
  PF_ASSIGN_OR_RETURN(const std::vector<int64_t> axes, IntegerVectorInput(context, 1));
  const Shape& input = context->input_shape(0);
  auto state = std::make_unique<SliceState>();
  if (axes.size() > 1) {
    return absl::InvalidArgumentError(absl::StrCat("'axis' has ", axes.size(), " elements, expected at most 1"));
  }
  if (axes.empty()) {
    PF_RETURN_IF_ERROR(RequireRank(context, 0, 1));
  } else {
    PF_ASSIGN_OR_RETURN(state->axis, ResolveAxis(axes[0], input.rank()));
  }
  state->outer = ProductOfDims(input, 0, state->axis);
  state->size = input.dim(state->axis);
  state->inner = ProductOfDims(input, state->axis + 1, input.rank());
  if (context->output_type(1) == DType::kInt32 && state->size > INT32_MAX) {
    return absl::InvalidArgumentError("the indices exceed int32: use out_idx int64");
  }
  context->OutputShapeDependsOnValues(0);
  PF_RETURN_IF_ERROR(SetCheckedShape(context, 1, Shape({state->size})));
  if (context->num_outputs() > 2) context->OutputShapeDependsOnValues(2);
  context->SetState(std::move(state));
  return absl::OkStatus();
}

// As FindUnique, for slices. Slices without elements are equal.
template <typename T, typename Index>
void FindUniqueSlices(const SliceState& state, const T* x, Index* indices, std::vector<int64_t>* first,
                      std::vector<Index>* counts) {
  const auto element = [&](int64_t slice, int64_t e) {
    return Key(x[(e / state.inner * state.size + slice) * state.inner + e % state.inner]);
  };
  const int64_t elements = state.outer * state.inner;
  const auto hash = [&](int64_t slice) {
    size_t value = 0;
    for (int64_t e = 0; e < elements; ++e) value = absl::HashOf(value, element(slice, e));
    return value;
  };
  const auto equal = [&](int64_t a, int64_t b) {
    for (int64_t e = 0; e < elements; ++e) {
      if (!(element(a, e) == element(b, e))) return false;
    }
    return true;
  };
  absl::flat_hash_map<int64_t, Index, decltype(hash), decltype(equal)> numbers(0, hash, equal);
  for (int64_t i = 0; i < state.size && !RunIsCancelled(); ++i) {
    indices[i] = static_cast<Index>(first->size());
    // Like single elements, slices with NaN are not equal to anything.
    if (equal(i, i)) indices[i] = numbers.try_emplace(i, indices[i]).first->second;
    if (static_cast<size_t>(indices[i]) == first->size()) {
      first->push_back(i);
      counts->push_back(0);
    }
    ++(*counts)[static_cast<size_t>(indices[i])];
  }
}

template <typename T, typename Index>
absl::Status RunSlices(ComputeContext* context, const T* x) {
  const auto& state = context->state<SliceState>();
  // The size of the map and the lists if all slices are distinct.
  PF_ASSIGN_OR_RETURN(const Reservation reservation,
                      Reservation::Take(&context->budget(), state.size * int64_t{64}, "the different slices"));
  std::vector<int64_t> first;
  std::vector<Index> counts;
  FindUniqueSlices(state, x, context->output<Index>(1), &first, &counts);
  const auto found = static_cast<int64_t>(first.size());
  Shape shape = context->input_shape(0);
  shape.set_dim(state.axis, found);
  PF_RETURN_IF_ERROR(context->AllocateOutput(0, shape));
  T* output;
  if constexpr (std::is_same_v<T, std::string>) {
    output = context->output_strings(0).data();
  } else {
    output = context->output<T>(0);
  }
  for (int64_t o = 0; o < state.outer && shape.num_elements() > 0; ++o) {
    for (int64_t i = 0; i < found; ++i) {
      std::copy_n(x + (o * state.size + first[static_cast<size_t>(i)]) * state.inner, state.inner,
                  output + (o * found + i) * state.inner);
    }
  }
  if (context->num_outputs() > 2) {
    PF_RETURN_IF_ERROR(context->AllocateOutput(2, Shape({found})));
    std::copy(counts.begin(), counts.end(), context->output<Index>(2));
  }
  return absl::OkStatus();
}

// --- ListDiff --------------------------------------------------------------------------------------------------------

absl::Status PrepareListDiff(PrepareContext* context) {
  PF_RETURN_IF_ERROR(RequireRank(context, 0, 1));
  PF_RETURN_IF_ERROR(RequireRank(context, 1, 1));
  if (context->output_type(1) == DType::kInt32 && context->input_shape(0).dim(0) > INT32_MAX) {
    return absl::InvalidArgumentError("the indices exceed int32: use out_idx int64");
  }
  context->OutputShapeDependsOnValues(0);
  context->OutputShapeDependsOnValues(1);
  return absl::OkStatus();
}

template <typename T>
absl::Status RunListDiff(ComputeContext* context, const T* x, const T* y) {
  const int64_t count = context->input_shape(0).num_elements(), others = context->input_shape(1).num_elements();
  PF_ASSIGN_OR_RETURN(const Reservation reservation,
                      Reservation::Take(&context->budget(), others * static_cast<int64_t>(2 * sizeof(Key(T())) + 16),
                                        "the different elements"));
  absl::flat_hash_set<decltype(Key(*y))> keys;
  for (int64_t i = 0; i < others; ++i) {
    const auto key = Key(y[i]);
    if (key == key) keys.insert(key);  // Each NaN would be another element.
  }
  std::vector<int64_t> kept;
  for (int64_t i = 0; i < count; ++i) {
    if (keys.count(Key(x[i])) == 0) kept.push_back(i);
  }
  const Shape shape({static_cast<int64_t>(kept.size())});
  PF_RETURN_IF_ERROR(context->AllocateOutput(0, shape));
  PF_RETURN_IF_ERROR(context->AllocateOutput(1, shape));
  for (size_t i = 0; i < kept.size(); ++i) {
    if constexpr (std::is_same_v<T, std::string>) {
      (context->output_strings(0))[i] = x[kept[i]];
    } else {
      context->output<T>(0)[i] = x[kept[i]];
    }
  }
  DispatchOn<int32_t, int64_t>(context->output_type(1), [&](auto tag) {
    using Index = typename decltype(tag)::type;
    std::transform(kept.begin(), kept.end(), context->output<Index>(1),
                   [](int64_t i) { return static_cast<Index>(i); });
  });
  return absl::OkStatus();
}

absl::Status ComputeListDiff(ComputeContext* context) {
  if (context->input_at(0).dtype == DType::kString) {
    return RunListDiff(context, context->input_strings(0).data(), context->input_strings(1).data());
  }
  absl::Status status;
  DispatchOn<float, double, Half, BFloat16, int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t,
             bool>(context->input_at(0).dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    status = RunListDiff(context, context->input<T>(0), context->input<T>(1));
  });
  return status;
}

template <typename T>
absl::Status RunFor(ComputeContext* context, const T* x) {
  if (context->num_inputs() > 1) {
    return context->output_at(1).dtype == DType::kInt32 ? RunSlices<T, int32_t>(context, x)
                                                        : RunSlices<T, int64_t>(context, x);
  }
  return context->output_at(1).dtype == DType::kInt32 ? Run<T, int32_t>(context, x) : Run<T, int64_t>(context, x);
}

absl::Status Compute(ComputeContext* context) {
  if (context->input_at(0).dtype == DType::kString) return RunFor(context, context->input_strings(0).data());
  absl::Status status;
  DispatchOn<float, double, Half, BFloat16, int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t,
             bool>(context->input_at(0).dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    status = RunFor(context, context->input<T>(0));
  });
  return status;
}

std::vector<DType> ComparableTypes() {
  std::vector<DType> types = NumberTypes();
  types.push_back(DType::kBool);
  types.push_back(DType::kString);
  return types;
}

Kernel UniqueKernel(const char* formula) {
  return Kernel(formula)
      .TypeNumbers("T", ComparableTypes())
      .TypeNumbers("out_idx", IndexTypes())
      .Prepare(Prepare)
      .Compute(Compute);
}

}  // namespace

DEFINE_KERNEL(Unique) {
  return UniqueKernel("the distinct elements, and for each element the index of its value among them");
}
DEFINE_KERNEL(UniqueWithCounts) {
  return UniqueKernel(
      "the distinct elements, for each element the index of its value among them, and the count of each value");
}

DEFINE_KERNEL(UniqueV2) {
  return UniqueKernel("the distinct slices along an axis, and for each slice the index of its value among them")
      .Prepare(PrepareV2);
}
DEFINE_KERNEL(UniqueWithCountsV2) {
  return UniqueKernel(
             "the distinct slices along an axis, for each slice the index of its value among them, and the count of "
             "each value")
      .Prepare(PrepareV2);
}
DEFINE_KERNEL(ListDiff) {
  return UniqueKernel("the elements of x that y does not have, and their indices")
      .Prepare(PrepareListDiff)
      .Compute(ComputeListDiff);
}

}  // namespace permafrost
