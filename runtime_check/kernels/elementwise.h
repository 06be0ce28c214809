// The engine of the elementwise kernels: loops over rows for a few types, conversions for the other types,
// broadcasting.
//
// Loops are instantiated for float, double, int32, int64 and uint64, and for complex numbers if the op supports them.
// Narrower types are converted in blocks to the type that holds all their results: half and bfloat16 to float, small
// integers to int32, uint32 to int64. Rounding or truncating the result gives the same as arithmetic in the narrow
// type.
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

// The conversion of elements of a narrow type to the type of the computation, and back.
struct Conversion {
  DType wide;
  size_t narrow_size;
  size_t wide_size;
  void (*widen)(const char* from, char* to, int64_t count);
  void (*narrow)(const char* from, char* to, int64_t count);
};

// Returns the conversion for a type; null for a type that loops support directly. Quantised types are treated as the
// integers of their codes.
const Conversion* ConversionFor(DType dtype);

// Computes `count` results. Returns false for an invalid element (division by zero).
using UnaryLoop = bool (*)(const char* x, char* y, int64_t count);
// Computes `count` results. A scalar input stays at its one element for the whole row.
using BinaryLoop = bool (*)(const char* x, bool x_is_scalar, const char* y, bool y_is_scalar, char* z, int64_t count);

// The loops of an op for all types, and the error message for a loop that fails.
struct UnaryLoops {
  UnaryLoop for_float = nullptr;
  UnaryLoop for_double = nullptr;
  UnaryLoop for_int32 = nullptr;
  UnaryLoop for_int64 = nullptr;
  UnaryLoop for_uint64 = nullptr;
  // Minimum number of elements per thread.
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
  const char* failure = "";  // Error message if a loop returns false.
  BinaryLoop for_complex64 = nullptr;
  BinaryLoop for_complex128 = nullptr;
};

// Prepare and compute an op with these loops. `loops` must outlive the prepared kernel. The output has the type of the
// inputs or, for comparisons, bool.
absl::Status PrepareUnaryLoops(PrepareContext* context, const UnaryLoops* loops);
absl::Status ComputeUnaryLoops(ComputeContext* context);
absl::Status PrepareBinaryLoops(PrepareContext* context, const BinaryLoops* loops);
absl::Status ComputeBinaryLoops(ComputeContext* context);

// --- Loops from a struct with a static function ----------------------------------------------------------------------

// Op: struct { template <typename T> static PF_INLINE T Of(T x); }
template <typename Op, typename T>
bool RunUnary(const char* x_bytes, char* y_bytes, int64_t count) {
  // Not restrict, since the output may be the input.
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

// Returns the loop for one type; null if a selective build does not need it.
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

// Returns the loops for all numbers, and those for the floating-point types of an op such as Atan2.
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

// Returns the same loops, with those of `Op` for complex numbers added.
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

// Prepare and Compute functions for DEFINE_KERNEL, for a table of loops.
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

// Returns x for a real number, the conjugate for a complex one.
template <typename T>
PF_INLINE inline T Conjugate(const T& x) {
  if constexpr (kIsComplex<T>) {
    return std::conj(x);
  } else {
    return x;
  }
}

// Returns ln(1 + x), accurate for small x.
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
