// The combining functions of the reductions, and their loops over contiguous elements.
#ifndef PERMAFROST_RUNTIME_CHECK_KERNELS_REDUCTION_LOOPS_H_
#define PERMAFROST_RUNTIME_CHECK_KERNELS_REDUCTION_LOOPS_H_

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "graph/base/multiversion.h"
#include "graph/dtype.h"
#include "runtime_check/kernels/elementwise.h"
#include "runtime_check/kernels/wide_elements.h"

namespace permafrost::reduction {

// Number of independent accumulators per output: enough to hide the latency of vector additions.
inline constexpr int64_t kLanes = 16;

// --- What is combined, and how: Accumulator<T>, Start, Add, Merge (of two accumulators) and Finish (for a number of
// elements).

struct SumOf {
  template <typename T>
  using Accumulator = Total<T>;
  template <typename T>
  static PF_INLINE Total<T> Start() {
    return 0;
  }
  template <typename T>
  static PF_INLINE Total<T> Add(Total<T> sum, T x) {
    return sum + static_cast<Total<T>>(x);
  }
  template <typename T>
  static PF_INLINE Total<T> Merge(Total<T> a, Total<T> b) {
    return a + b;
  }
  template <typename T>
  static T Finish(Total<T> sum, int64_t) {
    return static_cast<T>(sum);
  }
};

// For integers the mean is truncated towards zero.
struct MeanOf : SumOf {
  template <typename T>
  static T Finish(Total<T> sum, int64_t count) {
    if constexpr (!std::is_integral_v<T>) {
      return static_cast<T>(sum / static_cast<double>(count));
    } else if constexpr (std::is_same_v<T, uint64_t>) {
      return count == 0 ? T(0) : sum / static_cast<uint64_t>(count);
    } else {
      return count == 0 ? T(0) : static_cast<T>(static_cast<int64_t>(sum) / count);
    }
  }
};

struct ProductOf {
  template <typename T>
  using Accumulator = Total<T>;
  template <typename T>
  static PF_INLINE Total<T> Start() {
    return 1;
  }
  template <typename T>
  static PF_INLINE Total<T> Add(Total<T> product, T x) {
    return product * static_cast<Total<T>>(x);
  }
  template <typename T>
  static PF_INLINE Total<T> Merge(Total<T> a, Total<T> b) {
    return a * b;
  }
  template <typename T>
  static T Finish(Total<T> product, int64_t) {
    return static_cast<T>(product);
  }
};

struct SquaresOf : SumOf {
  template <typename T>
  static PF_INLINE Total<T> Add(Total<T> sum, T x) {
    return sum + static_cast<Total<T>>(x) * Conjugate(static_cast<Total<T>>(x));
  }
};

inline double RealPart(double x) { return x; }
inline double RealPart(uint64_t x) { return static_cast<double>(x); }
inline double RealPart(std::complex<double> x) { return x.real(); }

// For integers the norm is truncated and saturates.
struct NormOf : SquaresOf {
  template <typename T>
  static T Finish(Total<T> sum, int64_t) {
    const double norm = std::sqrt(RealPart(sum));
    if constexpr (std::is_integral_v<T>) {
      if (norm >= static_cast<double>(std::numeric_limits<T>::max())) return std::numeric_limits<T>::max();
    }
    return static_cast<T>(norm);
  }
};

struct HalfSquaresOf : SquaresOf {
  template <typename T>
  static T Finish(Total<T> sum, int64_t) {
    return static_cast<T>(sum / 2);
  }
};

template <typename T>
constexpr T Infinity() {
  return std::is_floating_point_v<T> ? std::numeric_limits<T>::infinity() : std::numeric_limits<T>::max();
}

// The largest or the smallest element. NaN propagates.
template <bool kIsLargest>
struct BestOf {
  template <typename T>
  using Accumulator = T;
  template <typename T>
  static PF_INLINE T Start() {
    if (!kIsLargest) return Infinity<T>();
    return std::is_floating_point_v<T> ? -Infinity<T>() : std::numeric_limits<T>::min();
  }
  template <typename T>
  static PF_INLINE T Add(T best, T x) {
    return (kIsLargest ? x > best : x < best) | (x != x) ? x : best;
  }
  template <typename T>
  static PF_INLINE T Merge(T a, T b) {
    return Add<T>(a, b);
  }
  template <typename T>
  static T Finish(T best, int64_t) {
    return best;
  }
};
using MaximumOf = BestOf<true>;
using MinimumOf = BestOf<false>;

// True if all elements are true, or if any is.
template <bool kIsAll>
struct TruthOf {
  template <typename T>
  using Accumulator = bool;
  template <typename T>
  static PF_INLINE bool Start() {
    return kIsAll;
  }
  template <typename T>
  static PF_INLINE bool Add(bool truth, T x) {
    return kIsAll ? truth & x : truth | x;
  }
  template <typename T>
  static PF_INLINE bool Merge(bool a, bool b) {
    return kIsAll ? a & b : a | b;
  }
  template <typename T>
  static bool Finish(bool truth, int64_t) {
    return truth;
  }
};
using AllOf = TruthOf<true>;
using AnyOf = TruthOf<false>;

// --- Loops for one type.

struct ReductionLoops {
  void (*start)(char* accumulators, int64_t count);
  // Adds `count` elements to `count` accumulators, one each.
  void (*add_each)(const char* x, int64_t count, char* accumulators);
  // Adds `count` elements to one accumulator.
  void (*add_all)(const char* x, int64_t count, char* accumulator);
  void (*finish)(const char* accumulators, int64_t count, int64_t num_reduced, char* output);
};

template <typename R, typename T>
struct LoopsOf {
  using A = typename R::template Accumulator<T>;

  static void Start(char* accumulators, int64_t count) {
    std::fill_n(reinterpret_cast<A*>(accumulators), count, R::template Start<T>());
  }
  static void AddEach(const char* bytes, int64_t count, char* accumulators) {
    const T* x = reinterpret_cast<const T*>(bytes);
    A* a = reinterpret_cast<A*>(accumulators);
    Multiversion([&]() PF_INLINE {
      for (int64_t i = 0; i < count; ++i) a[i] = R::template Add<T>(a[i], x[i]);
    });
  }
  static void AddAll(const char* bytes, int64_t count, char* accumulator) {
    const T* x = reinterpret_cast<const T*>(bytes);
    A& result = *reinterpret_cast<A*>(accumulator);
    int64_t i = 0;
    if (count >= 2 * kLanes) {
      A lanes[kLanes];
      std::fill_n(lanes, kLanes, R::template Start<T>());
      Multiversion([&]() PF_INLINE {
        for (; i + kLanes <= count; i += kLanes) {
          for (int64_t lane = 0; lane < kLanes; ++lane) lanes[lane] = R::template Add<T>(lanes[lane], x[i + lane]);
        }
      });
      for (A lane : lanes) result = R::template Merge<T>(result, lane);
    }
    for (; i < count; ++i) result = R::template Add<T>(result, x[i]);
  }
  static void Finish(const char* accumulators, int64_t count, int64_t num_reduced, char* output) {
    const A* a = reinterpret_cast<const A*>(accumulators);
    T* y = reinterpret_cast<T*>(output);
    for (int64_t i = 0; i < count; ++i) y[i] = R::template Finish<T>(a[i], num_reduced);
  }

  static constexpr ReductionLoops kLoops = {Start, AddEach, AddAll, Finish};
};

template <typename R>
inline constexpr bool kKnowsComplex =
    std::is_same_v<R, SumOf> || std::is_same_v<R, MeanOf> || std::is_same_v<R, ProductOf> || std::is_same_v<R, NormOf>;

template <typename R>
const ReductionLoops* LoopsFor(DType dtype) {
  const ReductionLoops* loops = nullptr;
  if constexpr (std::is_same_v<R, AllOf> || std::is_same_v<R, AnyOf>) {
    if (dtype == DType::kBool) loops = &LoopsOf<R, bool>::kLoops;
  } else {
    DispatchOn<float, double, int32_t, int64_t, uint64_t>(
        dtype, [&](auto tag) { loops = &LoopsOf<R, typename decltype(tag)::type>::kLoops; });
    if constexpr (kKnowsComplex<R>) {
      DispatchOn<std::complex<float>, std::complex<double>>(
          dtype, [&](auto tag) { loops = &LoopsOf<R, typename decltype(tag)::type>::kLoops; });
    }
  }
  return loops;
}

}  // namespace permafrost::reduction

#endif  // PERMAFROST_RUNTIME_CHECK_KERNELS_REDUCTION_LOOPS_H_
