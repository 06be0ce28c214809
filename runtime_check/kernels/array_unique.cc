// Unique and UniqueWithCounts: the distinct elements of a vector.
#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "graph/base/status.h"
#include "runtime_check/kernel.h"
#include "runtime_check/kernels/prepare.h"

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

template <typename T>
absl::Status RunFor(ComputeContext* context, const T* x) {
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

}  // namespace permafrost
