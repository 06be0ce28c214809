// Ops that find the largest or smallest elements: ArgMax, ArgMin, TopK, TopKV2.
#include <algorithm>
#include <limits>
#include <memory>
#include <numeric>
#include <type_traits>

#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "runtime_check/kernels/elementwise.h"
#include "runtime_check/kernels/gemm.h"
#include "runtime_check/kernels/prepare.h"
#include "runtime_check/kernels/wide_elements.h"

namespace permafrost {
namespace {

constexpr int64_t kBlock = 256;
constexpr int64_t kGrain = 1 << 14;

// The input as [outer, size, inner]: the search runs along `size`.
struct ArgState : KernelState {
  int64_t outer, size, inner;
  bool largest;
};

absl::Status PrepareArg(PrepareContext* context, bool largest) {
  PF_ASSIGN_OR_RETURN(int64_t given, IntegerInput(context, 1));
  const Shape& input = context->input_shape(0);
  PF_ASSIGN_OR_RETURN(int axis, ResolveAxis(given, input.rank()));
  if (input.dim(axis) == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("the input has the shape ", input.ToString(), ", empty at axis ", axis));
  }
  int64_t most = std::numeric_limits<int64_t>::max();
  DispatchOn<int16_t, uint16_t, int32_t>(
      context->output_type(0), [&](auto tag) { most = std::numeric_limits<typename decltype(tag)::type>::max(); });
  if (input.dim(axis) > most) {
    return absl::InvalidArgumentError(
        absl::StrCat("the indices exceed ", DTypeName(context->output_type(0)), ": use output_type int64"));
  }
  Shape output;
  for (int d = 0; d < input.rank(); ++d) {
    if (d != axis) output.AddDim(input.dim(d));
  }
  auto state = std::make_unique<ArgState>();
  state->outer = ProductOfDims(input, 0, axis);
  state->size = input.dim(axis);
  state->inner = ProductOfDims(input, axis + 1, input.rank());
  state->largest = largest;
  context->SetState(std::move(state));
  context->SetOutputShape(0, std::move(output));
  return absl::OkStatus();
}

absl::Status PrepareArgMax(PrepareContext* context) { return PrepareArg(context, true); }
absl::Status PrepareArgMin(PrepareContext* context) { return PrepareArg(context, false); }

// Returns the index of the best of `size` elements in a row: the first of equal ones. The row is searched in lanes,
// which the compiler turns into the elements of a register.
template <typename T, bool largest>
int64_t BestOfRow(const T* x, int64_t size, decltype(Comparable(T())) worst) {
  using V = decltype(Comparable(T()));
  constexpr int64_t kLanes = 16;
  const auto is_better = [](V a, V b) { return largest ? a > b : a < b; };
  V best[kLanes];
  // Rows of this many lanes are below 2^31, since larger ones are searched in parts.
  int32_t at[kLanes];
  V found = worst;
  int64_t index = 0;
  constexpr int64_t kMostRounds = 1 << 30;
  for (int64_t from = 0; from < size; from += kMostRounds * kLanes) {
    const int64_t rounds = std::min(kMostRounds, (size - from) / kLanes);
    std::fill_n(best, kLanes, worst);
    std::fill_n(at, kLanes, -1);
    Multiversion([&]() PF_INLINE {
      for (int64_t k = 0; k < rounds; ++k) {
        const T* lanes = x + from + k * kLanes;
        for (int64_t j = 0; j < kLanes; ++j) {
          const V value = Comparable(lanes[j]);
          const bool better = largest ? value > best[j] : value < best[j];
          best[j] = better ? value : best[j];
          at[j] = better ? static_cast<int32_t>(k) : at[j];
        }
      }
    });
    int64_t part_index = -1;
    V part = worst;
    for (int64_t j = 0; j < kLanes; ++j) {
      if (at[j] < 0) continue;
      const int64_t here = from + int64_t{at[j]} * kLanes + j;
      if (part_index < 0 || is_better(best[j], part) || (best[j] == part && here < part_index)) {
        part = best[j];
        part_index = here;
      }
    }
    if (part_index >= 0 && is_better(part, found)) {
      found = part;
      index = part_index;
    }
    for (int64_t i = from + rounds * kLanes; i < std::min(size, from + kMostRounds * kLanes); ++i) {
      const V value = Comparable(x[i]);
      if (!is_better(value, found)) continue;
      found = value;
      index = i;
    }
  }
  return index;
}

// Finds the first of equal elements; a number is preferred to NaN.
template <typename T, typename Index, bool largest>
void FindBest(ComputeContext* context, const ArgState& state) {
  using V = decltype(Comparable(T()));
  const T* input = context->input<T>(0);
  Index* output = context->output<Index>(0);
  constexpr bool kHasInfinity = std::numeric_limits<V>::has_infinity;
  const V worst = largest ? (kHasInfinity ? -std::numeric_limits<V>::infinity() : std::numeric_limits<V>::lowest())
                          : (kHasInfinity ? std::numeric_limits<V>::infinity() : std::numeric_limits<V>::max());
  const int64_t blocks = (state.inner + kBlock - 1) / kBlock;
  const int64_t work = state.size * std::min(state.inner, kBlock);
  context->threads().ParallelFor(state.outer * blocks, std::max<int64_t>(1, kGrain / work),
                                 [&](int64_t begin, int64_t end) {
                                   for (int64_t i = begin; i < end; ++i) {
                                     const int64_t column = i % blocks * kBlock;
                                     const int64_t count = std::min(kBlock, state.inner - column);
                                     const T* x = input + i / blocks * state.size * state.inner + column;
                                     Index* y = output + i / blocks * state.inner + column;
                                     if (state.inner == 1) {
                                       *y = static_cast<Index>(BestOfRow<T, largest>(x, state.size, worst));
                                       continue;
                                     }
                                     V best[kBlock];
                                     std::fill_n(best, count, worst);
                                     std::fill_n(y, count, Index(0));
                                     for (int64_t k = 0; k < state.size; ++k, x += state.inner) {
                                       for (int64_t j = 0; j < count; ++j) {
                                         const V value = Comparable(x[j]);
                                         if (largest ? value > best[j] : value < best[j]) {
                                           best[j] = value;
                                           y[j] = static_cast<Index>(k);
                                         }
                                       }
                                     }
                                   }
                                 });
}

template <typename T, typename Index>
void FindBest(ComputeContext* context) {
  const auto& state = context->state<ArgState>();
  if (context->output_shape(0).num_elements() == 0) return;
  if (state.largest) {
    FindBest<T, Index, true>(context, state);
  } else {
    FindBest<T, Index, false>(context, state);
  }
}

absl::Status ComputeArg(ComputeContext* context) {
  absl::Status status = absl::UnimplementedError("an output_type without indices");
  DispatchOn<float, double, Half, BFloat16, int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t,
             bool>(context->input_at(0).dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    DispatchOn<int16_t, uint16_t, int32_t, int64_t>(context->output_at(0).dtype, [&](auto index) {
      FindBest<T, typename decltype(index)::type>(context);
      status = absl::OkStatus();
    });
  });
  return status;
}

// --- TopK, TopKV2 ---------------------------------------------------------------------------------------------------

struct TopKState : KernelState {
  int64_t rows, size, k;
};

absl::Status PrepareTopKOf(PrepareContext* context, int64_t k) {
  const Shape& input = context->input_shape(0);
  if (input.rank() < 1) return absl::InvalidArgumentError("the input is a scalar, expected a rank of at least 1");
  const int last = input.rank() - 1;
  if (k < 0 || k > input.dim(last)) {
    return absl::InvalidArgumentError(
        absl::StrCat("k is ", k, ", expected at most ", input.dim(last), ", the last dimension of the input"));
  }
  if (context->output_type(1) != DType::kInt64 && input.dim(last) > std::numeric_limits<int16_t>::max() &&
      (context->output_type(1) == DType::kInt16 || input.dim(last) > std::numeric_limits<int32_t>::max())) {
    return absl::InvalidArgumentError("the indices exceed the type of the second output");
  }
  auto state = std::make_unique<TopKState>();
  state->rows = ProductOfDims(input, 0, last);
  state->size = input.dim(last);
  state->k = k;
  Shape output = input;
  output.set_dim(last, k);
  context->SetOutputShape(0, output);
  context->SetOutputShape(1, std::move(output));
  int64_t bytes;
  if (__builtin_mul_overflow(state->size, static_cast<int64_t>(sizeof(int64_t)), &bytes)) {
    return absl::InvalidArgumentError("the last dimension of the input fits no memory");
  }
  // Each thread sorts the indices of one row.
  const int64_t workers = std::clamp<int64_t>(state->rows, 1, context->num_threads());
  if (__builtin_mul_overflow(bytes, workers, &bytes)) {
    return absl::InvalidArgumentError("the last dimension of the input fits no memory");
  }
  context->RequestScratch(bytes);
  context->SetState(std::move(state));
  return absl::OkStatus();
}

absl::Status PrepareTopK(PrepareContext* context) {
  PF_ASSIGN_OR_RETURN(const int64_t k, IntAttr(context->node(), "k"));
  return PrepareTopKOf(context, k);
}

absl::Status PrepareTopKV2(PrepareContext* context) {
  PF_ASSIGN_OR_RETURN(const int64_t k, IntegerInput(context, 1));
  return PrepareTopKOf(context, k);
}

// Orders by descending value, then by ascending index; NaN counts as the largest. This is a strict weak order, as
// sorting requires.
template <typename T>
void SortRows(ComputeContext* context) {
  const auto& state = context->state<TopKState>();
  ForEachPiece(context->threads(), state.rows, [&](int worker, int64_t row) {
    int64_t* order = reinterpret_cast<int64_t*>(context->scratch()) + worker * state.size;
    const T* x = context->input<T>(0) + row * state.size;
    std::iota(order, order + state.size, int64_t{0});
    std::partial_sort(order, order + state.k, order + state.size, [x](int64_t i, int64_t j) {
      const auto a = Comparable(x[i]);
      const auto b = Comparable(x[j]);
      const bool a_is_nan = a != a;
      const bool b_is_nan = b != b;
      if (a_is_nan != b_is_nan) return a_is_nan;
      if (!a_is_nan && a != b) return a > b;
      return i < j;
    });
    T* values = context->output<T>(0) + row * state.k;
    for (int64_t i = 0; i < state.k; ++i) values[i] = x[order[i]];
    DispatchOn<int16_t, int32_t, int64_t>(context->output_at(1).dtype, [&](auto tag) {
      using Index = typename decltype(tag)::type;
      Index* indices = context->output<Index>(1) + row * state.k;
      for (int64_t i = 0; i < state.k; ++i) indices[i] = static_cast<Index>(order[i]);
    });
  });
}

absl::Status ComputeTopK(ComputeContext* context) {
  if (context->output_shape(0).num_elements() == 0) return absl::OkStatus();
  DispatchOn<float, double, Half, BFloat16, int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t>(
      context->input_at(0).dtype, [&](auto tag) { SortRows<typename decltype(tag)::type>(context); });
  return absl::OkStatus();
}

std::vector<DType> ArgTypes() {
  std::vector<DType> types = NumberTypes();
  types.push_back(DType::kBool);
  return types;
}

}  // namespace

DEFINE_KERNEL(ArgMax) {
  return Kernel("the index of the maximum along an axis; the first index if several are equal")
      .TypeNumbers("T", ArgTypes())
      .Types<int16_t, uint16_t, int32_t, int64_t>("output_type")
      .Prepare(PrepareArgMax)
      .Compute(ComputeArg);
}

DEFINE_KERNEL(ArgMin) {
  return Kernel("the index of the minimum along an axis; the first index if several are equal")
      .TypeNumbers("T", ArgTypes())
      .TypeNumbers("output_type", IndexTypes())
      .Prepare(PrepareArgMin)
      .Compute(ComputeArg);
}

DEFINE_KERNEL(TopK) {
  return Kernel("the k largest elements along the last dimension in descending order, and their indices")
      .TypeNumbers("T", NumberTypes())
      .Prepare(PrepareTopK)
      .Compute(ComputeTopK);
}

DEFINE_KERNEL(TopKV2) {
  return Kernel("the k largest elements along the last dimension in descending order, and their indices")
      .TypeNumbers("T", NumberTypes())
      .Prepare(PrepareTopKV2)
      .Compute(ComputeTopK);
}

}  // namespace permafrost
