// Functions of one input, element by element, and ClipByValue.
#include <cmath>
#include <complex>
#include <limits>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "runtime_check/kernels/elementwise.h"
#include "runtime_check/kernels/prepare.h"
#include "runtime_check/kernels/wide_elements.h"

namespace permafrost {
namespace {

constexpr int64_t kCheapGrain = 1 << 15;
constexpr int64_t kCostlyGrain = 1 << 12;

struct AbsOp {
  template <typename T>
  static PF_INLINE T Of(T x) {
    if constexpr (std::is_integral_v<T>) {
      return x < 0 ? static_cast<T>(Wrapping<T>(0) - static_cast<Wrapping<T>>(x)) : x;
    } else {
      return std::fabs(x);
    }
  }
};

struct NegOp {
  template <typename T>
  static PF_INLINE T Of(T x) {
    if constexpr (std::is_integral_v<T>) {
      return static_cast<T>(Wrapping<T>(0) - static_cast<Wrapping<T>>(x));
    } else {
      return -x;
    }
  }
};

struct SquareOp {
  template <typename T>
  static PF_INLINE T Of(T x) {
    return static_cast<T>(static_cast<Wrapping<T>>(x) * static_cast<Wrapping<T>>(x));
  }
};

// NaN propagates, and the sign of either zero is 0. For complex numbers: the number of magnitude 1 in the same
// direction.
struct SignOp {
  template <typename T>
  static PF_INLINE T Of(T x) {
    if constexpr (kIsComplex<T>) {
      return x == T(0) ? x : x / std::abs(x);
    } else {
      const T sign = static_cast<T>(x > 0) - static_cast<T>(x < 0);
      return x != x ? x : sign;
    }
  }
};

// Rounding does not change integers.
struct FloorOp {
  template <typename T>
  static PF_INLINE T Of(T x) {
    return std::floor(x);
  }
};

struct CeilOp {
  template <typename T>
  static PF_INLINE T Of(T x) {
    return std::ceil(x);
  }
};

struct RoundOp {
  template <typename T>
  static PF_INLINE T Of(T x) {
    if constexpr (std::is_integral_v<T>) {
      return x;
    } else {
      return std::nearbyint(x);
    }
  }
};

struct SqrtOp {
  template <typename T>
  static PF_INLINE T Of(T x) {
    return std::sqrt(x);
  }
};

// The result for -0 is -infinity, by division.
struct RsqrtOp {
  template <typename T>
  static PF_INLINE T Of(T x) {
    return T(1) / std::sqrt(x);
  }
};

struct ReciprocalOp {
  template <typename T>
  static PF_INLINE T Of(T x) {
    return T(1) / x;
  }
};

struct ExpOp {
  template <typename T>
  static PF_INLINE T Of(T x) {
    return std::exp(x);
  }
};
struct Expm1Op {
  template <typename T>
  static PF_INLINE T Of(T x) {
    if constexpr (kIsComplex<T>) {
      // Computes e^a cos b - 1 without cancellation of two numbers close to 1.
      using Real = typename T::value_type;
      const Real half_sine = std::sin(x.imag() / 2), grown = std::expm1(x.real());
      return T(grown * std::cos(x.imag()) - 2 * half_sine * half_sine, (grown + 1) * std::sin(x.imag()));
    } else {
      return std::expm1(x);
    }
  }
};
struct LogOp {
  template <typename T>
  static PF_INLINE T Of(T x) {
    return std::log(x);
  }
};
struct Log1pOp {
  template <typename T>
  static PF_INLINE T Of(T x) {
    return LogOnePlus(x);
  }
};
struct SinOp {
  template <typename T>
  static PF_INLINE T Of(T x) {
    return std::sin(x);
  }
};
struct CosOp {
  template <typename T>
  static PF_INLINE T Of(T x) {
    return std::cos(x);
  }
};
struct TanOp {
  template <typename T>
  static PF_INLINE T Of(T x) {
    return std::tan(x);
  }
};
struct AsinOp {
  template <typename T>
  static PF_INLINE T Of(T x) {
    return std::asin(x);
  }
};
struct AcosOp {
  template <typename T>
  static PF_INLINE T Of(T x) {
    return std::acos(x);
  }
};
struct AtanOp {
  template <typename T>
  static PF_INLINE T Of(T x) {
    return std::atan(x);
  }
};
struct SinhOp {
  template <typename T>
  static PF_INLINE T Of(T x) {
    return std::sinh(x);
  }
};
struct CoshOp {
  template <typename T>
  static PF_INLINE T Of(T x) {
    return std::cosh(x);
  }
};
struct AsinhOp {
  template <typename T>
  static PF_INLINE T Of(T x) {
    return std::asinh(x);
  }
};
struct AcoshOp {
  template <typename T>
  static PF_INLINE T Of(T x) {
    return std::acosh(x);
  }
};
struct AtanhOp {
  template <typename T>
  static PF_INLINE T Of(T x) {
    return std::atanh(x);
  }
};
struct ErfOp {
  template <typename T>
  static PF_INLINE T Of(T x) {
    return std::erf(x);
  }
};
struct ErfcOp {
  template <typename T>
  static PF_INLINE T Of(T x) {
    return std::erfc(x);
  }
};

struct IsNanOp {
  template <typename T>
  static PF_INLINE bool Of(T x) {
    return x != x;
  }
};
struct IsInfOp {
  template <typename T>
  static PF_INLINE bool Of(T x) {
    return std::fabs(x) == std::numeric_limits<T>::infinity();
  }
};
struct IsFiniteOp {
  template <typename T>
  static PF_INLINE bool Of(T x) {
    return std::fabs(x) < std::numeric_limits<T>::infinity();
  }
};

constexpr UnaryLoops kAbs = UnaryOfNumbers<AbsOp>();
constexpr UnaryLoops kNeg = WithComplex<NegOp>(UnaryOfNumbers<NegOp>());
constexpr UnaryLoops kSquare = WithComplex<SquareOp>(UnaryOfNumbers<SquareOp>());
constexpr UnaryLoops kSign = WithComplex<SignOp>(UnaryOfNumbers<SignOp>());
constexpr UnaryLoops kRound = UnaryOfNumbers<RoundOp>();
constexpr UnaryLoops kFloor = UnaryOfFloats<FloorOp>(kCheapGrain);
constexpr UnaryLoops kCeil = UnaryOfFloats<CeilOp>(kCheapGrain);
constexpr UnaryLoops kRint = UnaryOfFloats<RoundOp>(kCheapGrain);
constexpr UnaryLoops kSqrt = WithComplex<SqrtOp>(UnaryOfFloats<SqrtOp>(kCheapGrain));
constexpr UnaryLoops kRsqrt = WithComplex<RsqrtOp>(UnaryOfFloats<RsqrtOp>(kCheapGrain));
constexpr UnaryLoops kReciprocal = WithComplex<ReciprocalOp>(UnaryOfFloats<ReciprocalOp>(kCheapGrain));
constexpr UnaryLoops kIsNan = UnaryOfFloats<IsNanOp>(kCheapGrain);
constexpr UnaryLoops kIsInf = UnaryOfFloats<IsInfOp>(kCheapGrain);
constexpr UnaryLoops kIsFinite = UnaryOfFloats<IsFiniteOp>(kCheapGrain);
constexpr UnaryLoops kExp = WithComplex<ExpOp>(UnaryOfFloats<ExpOp>(kCostlyGrain));
constexpr UnaryLoops kExpm1 = WithComplex<Expm1Op>(UnaryOfFloats<Expm1Op>(kCostlyGrain));
constexpr UnaryLoops kLog = WithComplex<LogOp>(UnaryOfFloats<LogOp>(kCostlyGrain));
constexpr UnaryLoops kLog1p = WithComplex<Log1pOp>(UnaryOfFloats<Log1pOp>(kCostlyGrain));
constexpr UnaryLoops kSin = WithComplex<SinOp>(UnaryOfFloats<SinOp>(kCostlyGrain));
constexpr UnaryLoops kCos = WithComplex<CosOp>(UnaryOfFloats<CosOp>(kCostlyGrain));
constexpr UnaryLoops kTan = WithComplex<TanOp>(UnaryOfFloats<TanOp>(kCostlyGrain));
constexpr UnaryLoops kAsin = WithComplex<AsinOp>(UnaryOfFloats<AsinOp>(kCostlyGrain));
constexpr UnaryLoops kAcos = WithComplex<AcosOp>(UnaryOfFloats<AcosOp>(kCostlyGrain));
constexpr UnaryLoops kAtan = WithComplex<AtanOp>(UnaryOfFloats<AtanOp>(kCostlyGrain));
constexpr UnaryLoops kSinh = WithComplex<SinhOp>(UnaryOfFloats<SinhOp>(kCostlyGrain));
constexpr UnaryLoops kCosh = WithComplex<CoshOp>(UnaryOfFloats<CoshOp>(kCostlyGrain));
constexpr UnaryLoops kAsinh = WithComplex<AsinhOp>(UnaryOfFloats<AsinhOp>(kCostlyGrain));
constexpr UnaryLoops kAcosh = WithComplex<AcoshOp>(UnaryOfFloats<AcoshOp>(kCostlyGrain));
constexpr UnaryLoops kAtanh = WithComplex<AtanhOp>(UnaryOfFloats<AtanhOp>(kCostlyGrain));
constexpr UnaryLoops kErf = UnaryOfFloats<ErfOp>(kCostlyGrain);
constexpr UnaryLoops kErfc = UnaryOfFloats<ErfcOp>(kCostlyGrain);

template <const UnaryLoops& loops>
Kernel UnaryKernel(const char* formula, std::vector<DType> types) {
  return Kernel(formula)
      .TypeNumbers("T", std::move(types))
      .InPlace(0)
      .Prepare(PrepareUnary<loops>)
      .Compute(ComputeUnaryLoops);
}

template <const UnaryLoops& loops>
Kernel FloatKernel(const char* formula) {
  return UnaryKernel<loops>(formula, loops.for_complex64 == nullptr ? FloatingTypes() : FloatingAndComplexTypes());
}

template <const UnaryLoops& loops>
Kernel NumberKernel(const char* formula) {
  return UnaryKernel<loops>(formula, loops.for_complex64 == nullptr ? NumberTypes() : NumberAndComplexTypes());
}

// --- ClipByValue ----------------------------------------------------------------------------------------------------

// A bound has one value, or one per element.
absl::Status PrepareClip(PrepareContext* context) {
  for (int i : {1, 2}) {
    PF_ASSIGN_OR_RETURN(int64_t count, context->input_shape(i).CheckedNumElements());
    if (count != 1 && context->input_shape(i) != context->input_shape(0)) {
      return absl::InvalidArgumentError(absl::StrCat("input ", i, " has the shape ", context->input_shape(i).ToString(),
                                                     ", expected a scalar or ", context->input_shape(0).ToString()));
    }
  }
  return SameShape(context);
}

// Clips t. NaN in t propagates, and a bound that is NaN has no effect.
template <typename T>
PF_INLINE inline T Clipped(T t, T least, T most) {
  const T below = Comparable(t) > Comparable(most) ? most : t;
  return Comparable(below) < Comparable(least) ? least : below;
}
// Clips the real and the imaginary part separately.
template <typename T>
PF_INLINE inline std::complex<T> Clipped(std::complex<T> t, std::complex<T> least, std::complex<T> most) {
  return {Clipped(t.real(), least.real(), most.real()), Clipped(t.imag(), least.imag(), most.imag())};
}

template <typename T>
void Clip(ComputeContext* context) {
  const int64_t lower_step = context->input_shape(1).num_elements() == 1 ? 0 : 1;
  const int64_t upper_step = context->input_shape(2).num_elements() == 1 ? 0 : 1;
  context->threads().ParallelFor(context->input_shape(0).num_elements(), kCheapGrain, [&](int64_t begin, int64_t end) {
    const T* t = context->input<T>(0) + begin;
    const T* lower = context->input<T>(1) + lower_step * begin;
    const T* upper = context->input<T>(2) + upper_step * begin;
    T* output = context->output<T>(0) + begin;
    for (int64_t i = 0; i < end - begin; ++i) {
      output[i] = Clipped(t[i], lower[i * lower_step], upper[i * upper_step]);
    }
  });
}

absl::Status ComputeClip(ComputeContext* context) {
  DispatchOn<float, double, Half, BFloat16, int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t,
             std::complex<float>, std::complex<double>>(context->input_at(0).dtype,
                                                        [&](auto tag) { Clip<typename decltype(tag)::type>(context); });
  return absl::OkStatus();
}

}  // namespace

DEFINE_KERNEL(Abs) { return NumberKernel<kAbs>("|x|"); }
DEFINE_KERNEL(Neg) { return NumberKernel<kNeg>("-x"); }
DEFINE_KERNEL(Square) { return NumberKernel<kSquare>("x^2"); }
DEFINE_KERNEL(Sign) { return NumberKernel<kSign>("-1, 0 or 1; NaN for NaN; x / |x| for complex numbers"); }
DEFINE_KERNEL(Round) { return NumberKernel<kRound>("the nearest integer; ties round to even"); }
DEFINE_KERNEL(Rint) { return FloatKernel<kRint>("the nearest integer; ties round to even"); }
DEFINE_KERNEL(Floor) { return FloatKernel<kFloor>("the largest integer not greater than x"); }
DEFINE_KERNEL(Ceil) { return FloatKernel<kCeil>("the smallest integer not less than x"); }
DEFINE_KERNEL(Sqrt) { return FloatKernel<kSqrt>("sqrt(x)"); }
DEFINE_KERNEL(Rsqrt) { return FloatKernel<kRsqrt>("1 / sqrt(x)"); }
DEFINE_KERNEL(Reciprocal) { return FloatKernel<kReciprocal>("1 / x"); }
DEFINE_KERNEL(Inv) { return FloatKernel<kReciprocal>("1 / x"); }
DEFINE_KERNEL(Exp) { return FloatKernel<kExp>("e^x"); }
DEFINE_KERNEL(Expm1) { return FloatKernel<kExpm1>("e^x - 1"); }
DEFINE_KERNEL(Log) { return FloatKernel<kLog>("ln(x)"); }
DEFINE_KERNEL(Log1p) { return FloatKernel<kLog1p>("ln(1 + x)"); }
DEFINE_KERNEL(Sin) { return FloatKernel<kSin>("sin(x)"); }
DEFINE_KERNEL(Cos) { return FloatKernel<kCos>("cos(x)"); }
DEFINE_KERNEL(Tan) { return FloatKernel<kTan>("tan(x)"); }
DEFINE_KERNEL(Asin) { return FloatKernel<kAsin>("asin(x)"); }
DEFINE_KERNEL(Acos) { return FloatKernel<kAcos>("acos(x)"); }
DEFINE_KERNEL(Atan) { return FloatKernel<kAtan>("atan(x)"); }
DEFINE_KERNEL(Sinh) { return FloatKernel<kSinh>("sinh(x)"); }
DEFINE_KERNEL(Cosh) { return FloatKernel<kCosh>("cosh(x)"); }
DEFINE_KERNEL(Asinh) { return FloatKernel<kAsinh>("asinh(x)"); }
DEFINE_KERNEL(Acosh) { return FloatKernel<kAcosh>("acosh(x)"); }
DEFINE_KERNEL(Atanh) { return FloatKernel<kAtanh>("atanh(x)"); }
DEFINE_KERNEL(Erf) { return FloatKernel<kErf>("the error function of x"); }
DEFINE_KERNEL(Erfc) { return FloatKernel<kErfc>("1 - the error function of x"); }
DEFINE_KERNEL(IsNan) { return FloatKernel<kIsNan>("whether x is NaN"); }
DEFINE_KERNEL(IsInf) { return FloatKernel<kIsInf>("whether x is infinite"); }
DEFINE_KERNEL(IsFinite) { return FloatKernel<kIsFinite>("whether x is neither infinite nor NaN"); }

DEFINE_KERNEL(ClipByValue) {
  return Kernel("max(min(t, upper), lower); by real and imaginary part for complex numbers")
      .TypeNumbers("T", NumberAndComplexTypes())
      .InPlace(0)
      .Prepare(PrepareClip)
      .Compute(ComputeClip);
}

}  // namespace permafrost
