// The engine of the elementwise kernels: loops over rows for few types, conversions for the others, broadcasting.
//
// A loop is instantiated for float, double, int32, int64 and uint64, and for complex numbers where the op has them.
// Narrower types are computed in blocks that are converted to the type that holds all their results: half and bfloat16
// as float, small integers as int32, uint32 as int64. Rounding or truncating the result gives the same as arithmetic in
// the narrow type.
#ifndef PERMAFROST_RUNTIME_CHECK_KERNELS_ELEMENTWISE_H_
#define PERMAFROST_RUNTIME_CHECK_KERNELS_ELEMENTWISE_H_

#include <cmath>
#include <complex>
#include <cstdint>
#include <type_traits>

#include "absl/status/status.h"
#include "graph/base/multiversion.h"
#include "graph/dtype.h"
#include "runtime_check/kernel.h"

namespace permafrost {

// How elements of a narrow type become those of the type that they are computed in, and back.
struct Conversion {
  DType wide;
  size_t narrow_size;
  size_t wide_size;
  void (*widen)(const char* from, char* to, int64_t count);
  void (*narrow)(const char* from, char* to, int64_t count);
};

// Null for a type that loops compute as it is. Quantised types are taken for the integers that their codes are.
const Conversion* ConversionFor(DType dtype);

// Computes count results. False when an element is not allowed (division by zero).
using UnaryLoop = bool (*)(const char* x, char* y, int64_t count);
// A scalar input stays at its one element for the whole row.
using BinaryLoop = bool (*)(const char* x, bool x_is_scalar, const char* y, bool y_is_scalar, char* z, int64_t count);

// The work of one loop for all types of an op: which loop for which type, and what its failure means.
struct UnaryLoops {
  UnaryLoop for_float = nullptr;
  UnaryLoop for_double = nullptr;
  UnaryLoop for_int32 = nullptr;
  UnaryLoop for_int64 = nullptr;
  UnaryLoop for_uint64 = nullptr;
  // The smallest number of elements that is worth another thread.
  int64_t grain = 1 << 15;
  UnaryLoop for_complex64 = nullptr;
  UnaryLoop for_complex128 = nullptr;
};

struct BinaryLoops {
  BinaryLoop for_float = nullptr;
  BinaryLoop for_double = nullptr;
  BinaryLoop for_int32 = nullptr;
  BinaryLoop for_int64 = nullptr;
  BinaryLoop for_uint64 = nullptr;
  BinaryLoop for_bool = nullptr;
  int64_t grain = 1 << 15;
  const char* failure = "";  // The message when a loop returned false.
  BinaryLoop for_complex64 = nullptr;
  BinaryLoop for_complex128 = nullptr;
};

// `loops` must outlive the prepared kernel. The output is of the inputs' type or, for comparisons, bool.
absl::Status PrepareUnaryLoops(PrepareContext* context, const UnaryLoops* loops);
absl::Status ComputeUnaryLoops(ComputeContext* context);
absl::Status PrepareBinaryLoops(PrepareContext* context, const BinaryLoops* loops);
absl::Status ComputeBinaryLoops(ComputeContext* context);

// --- Loops from a struct with a static function
// -------------------------------------------------------------------------

// Op: struct { template <typename T> static PF_INLINE T Of(T x); }
template <typename Op, typename T>
bool RunUnary(const char* x_bytes, char* y_bytes, int64_t count) {
  // No restrict: the output may be the input.
  const T* x = reinterpret_cast<const T*>(x_bytes);
  using Result = decltype(Op::Of(T()));
  Result* y = reinterpret_cast<Result*>(y_bytes);
  Multiversion([&]() PF_INLINE {
    for (int64_t i = 0; i < count; ++i) y[i] = Op::Of(x[i]);
  });
  return true;
}

// Op: struct { template <typename T> static PF_INLINE T Of(T x, T y); }; for comparisons it returns bool. An op that
// has restrictions derives from Restricted and has `template <typename T> static bool Allows(T y)`.
struct Restricted {};

template <typename Op, typename T>
bool RunBinary(const char* x_bytes, bool x_is_scalar, const char* y_bytes, bool y_is_scalar, char* z_bytes,
               int64_t count) {
  const T* x = reinterpret_cast<const T*>(x_bytes);
  const T* y = reinterpret_cast<const T*>(y_bytes);
  using Result = decltype(Op::Of(T(), T()));
  Result* z = reinterpret_cast<Result*>(z_bytes);
  if constexpr (std::is_base_of_v<Restricted, Op> && std::is_integral_v<T>) {
    for (int64_t i = 0, end = y_is_scalar && count > 0 ? 1 : count; i < end; ++i) {
      if (!Op::Allows(y[i])) return false;
    }
  }
  if (x_is_scalar && y_is_scalar) {
    if (count > 0) {
      const Result value = Op::Of(x[0], y[0]);
      for (int64_t i = 0; i < count; ++i) z[i] = value;
    }
  } else if (x_is_scalar) {
    Multiversion([&]() PF_INLINE {
      const T value = x[0];
      for (int64_t i = 0; i < count; ++i) z[i] = Op::Of(value, y[i]);
    });
  } else if (y_is_scalar) {
    Multiversion([&]() PF_INLINE {
      const T value = y[0];
      for (int64_t i = 0; i < count; ++i) z[i] = Op::Of(x[i], value);
    });
  } else {
    Multiversion([&]() PF_INLINE {
      for (int64_t i = 0; i < count; ++i) z[i] = Op::Of(x[i], y[i]);
    });
  }
  return true;
}

// The loop for one type; none where a selective build has no use for it.
template <typename Op, typename T>
constexpr UnaryLoop UnaryOf() {
  if constexpr (IsSelected(DTypeOf<T>::value)) return RunUnary<Op, T>;
  return nullptr;
}
template <typename Op, typename T>
constexpr BinaryLoop BinaryOf() {
  if constexpr (IsSelected(DTypeOf<T>::value)) return RunBinary<Op, T>;
  return nullptr;
}

// Loops for all numbers, and for those that an op like Atan2 knows.
template <typename Op>
constexpr UnaryLoops UnaryOfNumbers(int64_t grain = 1 << 15) {
  return {UnaryOf<Op, float>(),   UnaryOf<Op, double>(),   UnaryOf<Op, int32_t>(),
          UnaryOf<Op, int64_t>(), UnaryOf<Op, uint64_t>(), grain};
}
template <typename Op>
constexpr UnaryLoops UnaryOfFloats(int64_t grain) {
  return {UnaryOf<Op, float>(), UnaryOf<Op, double>(), nullptr, nullptr, nullptr, grain};
}
template <typename Op>
constexpr BinaryLoops BinaryOfNumbers(const char* failure = "", int64_t grain = 1 << 15) {
  return {BinaryOf<Op, float>(),
          BinaryOf<Op, double>(),
          BinaryOf<Op, int32_t>(),
          BinaryOf<Op, int64_t>(),
          BinaryOf<Op, uint64_t>(),
          nullptr,
          grain,
          failure};
}
template <typename Op>
constexpr BinaryLoops BinaryOfFloats(int64_t grain = 1 << 15) {
  return {BinaryOf<Op, float>(), BinaryOf<Op, double>(), nullptr, nullptr, nullptr, nullptr, grain, ""};
}

// The same loops, and those of `Op` for complex numbers.
template <typename Op>
constexpr UnaryLoops WithComplex(UnaryLoops loops) {
  loops.for_complex64 = UnaryOf<Op, std::complex<float>>();
  loops.for_complex128 = UnaryOf<Op, std::complex<double>>();
  return loops;
}
template <typename Op>
constexpr BinaryLoops WithComplex(BinaryLoops loops) {
  loops.for_complex64 = BinaryOf<Op, std::complex<float>>();
  loops.for_complex128 = BinaryOf<Op, std::complex<double>>();
  return loops;
}

// For DEFINE_KERNEL: PrepareLoops<kAddLoops>.
template <const UnaryLoops& loops>
absl::Status PrepareUnary(PrepareContext* context) {
  return PrepareUnaryLoops(context, &loops);
}
template <const BinaryLoops& loops>
absl::Status PrepareBinary(PrepareContext* context) {
  return PrepareBinaryLoops(context, &loops);
}

template <typename T>
inline constexpr bool kIsComplex = std::is_same_v<T, std::complex<float>> || std::is_same_v<T, std::complex<double>>;

// x of a real number; the conjugate of a complex one.
template <typename T>
PF_INLINE inline T Conjugate(const T& x) {
  if constexpr (kIsComplex<T>) {
    return std::conj(x);
  } else {
    return x;
  }
}

// ln(1 + x), exact for small x.
template <typename T>
PF_INLINE inline T LogOnePlus(const T& x) {
  if constexpr (kIsComplex<T>) {
    using Real = typename T::value_type;
    const Real real = x.real(), imaginary = x.imag();
    return T(std::log1p(2 * real + real * real + imaginary * imaginary) / 2, std::atan2(imaginary, 1 + real));
  } else {
    return std::log1p(x);
  }
}

}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_KERNELS_ELEMENTWISE_H_
