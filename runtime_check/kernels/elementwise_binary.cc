// Arithmetic of two inputs with broadcasting, and AddN.
#include <cmath>
#include <complex>
#include <cstring>
#include <limits>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "runtime_check/kernels/elementwise.h"
#include "runtime_check/kernels/prepare.h"
#include "runtime_check/kernels/string_pairs.h"
#include "runtime_check/kernels/wide_elements.h"

namespace permafrost {
namespace {

// Minimum number of elements per thread for ops that call a function of the C library for each element.
constexpr int64_t kCostlyGrain = 1 << 12;

struct AddOp {
  template <typename T>
  static PF_INLINE T Of(T x, T y) {
    return static_cast<T>(static_cast<Wrapping<T>>(x) + static_cast<Wrapping<T>>(y));
  }
};

struct SubOp {
  template <typename T>
  static PF_INLINE T Of(T x, T y) {
    return static_cast<T>(static_cast<Wrapping<T>>(x) - static_cast<Wrapping<T>>(y));
  }
};

struct MulOp {
  template <typename T>
  static PF_INLINE T Of(T x, T y) {
    return static_cast<T>(static_cast<Wrapping<T>>(x) * static_cast<Wrapping<T>>(y));
  }
};

struct NonZeroDivisor : Restricted {
  template <typename T>
  static bool Allows(T y) {
    return y != 0;
  }
};

// Integers truncate towards zero; the smallest integer divided by -1 wraps around to itself.
struct DivOp : NonZeroDivisor {
  template <typename T>
  static PF_INLINE T Of(T x, T y) {
    if constexpr (std::is_integral_v<T>) {
      return std::is_signed_v<T> && y == T(-1) ? SubOp::Of(T(0), x) : static_cast<T>(x / y);
    } else {
      return x / y;
    }
  }
};

struct TruncateDivOp : NonZeroDivisor {
  template <typename T>
  static PF_INLINE T Of(T x, T y) {
    if constexpr (std::is_integral_v<T>) {
      return DivOp::Of(x, y);
    } else {
      return std::trunc(x / y);
    }
  }
};

struct FloorDivOp : NonZeroDivisor {
  template <typename T>
  static PF_INLINE T Of(T x, T y) {
    if constexpr (std::is_integral_v<T>) {
      const T quotient = DivOp::Of(x, y);
      return (x < 0) != (y < 0) && MulOp::Of(quotient, y) != x ? quotient - 1 : quotient;
    } else {
      return std::floor(x / y);
    }
  }
};

// The remainder of truncating division: it has the sign of x.
struct ModOp : NonZeroDivisor {
  template <typename T>
  static PF_INLINE T Of(T x, T y) {
    if constexpr (std::is_integral_v<T>) {
      return std::is_signed_v<T> && y == T(-1) ? T(0) : static_cast<T>(x % y);
    } else {
      return std::fmod(x, y);
    }
  }
};

// The remainder of flooring division: it has the sign of y.
struct FloorModOp : NonZeroDivisor {
  template <typename T>
  static PF_INLINE T Of(T x, T y) {
    const T remainder = ModOp::Of(x, y);
    return remainder != 0 && (remainder < 0) != (y < 0) ? remainder + y : remainder;
  }
};

// NaN propagates.
struct MaximumOp {
  template <typename T>
  static PF_INLINE T Of(T x, T y) {
    const T larger = x > y ? x : y;
    return x != x ? x : larger;
  }
};

struct MinimumOp {
  template <typename T>
  static PF_INLINE T Of(T x, T y) {
    const T smaller = x < y ? x : y;
    return x != x ? x : smaller;
  }
};

struct PowOp : Restricted {
  template <typename T>
  static bool Allows(T y) {
    return y >= 0;
  }
  template <typename T>
  static PF_INLINE T Of(T x, T y) {
    if constexpr (std::is_integral_v<T>) {
      T result = 1;
      for (; y > 0; y >>= 1) {
        if (y & 1) result = MulOp::Of(result, x);
        x = MulOp::Of(x, x);
      }
      return result;
    } else {
      return std::pow(x, y);
    }
  }
};

struct SquaredDifferenceOp {
  template <typename T>
  static PF_INLINE T Of(T x, T y) {
    const T difference = SubOp::Of(x, y);
    return MulOp::Of(difference, Conjugate(difference));
  }
};

struct DivNoNanOp {
  template <typename T>
  static PF_INLINE T Of(T x, T y) {
    const T quotient = x / y;
    return y == T(0) ? T(0) : quotient;
  }
};

struct MulNoNanOp {
  template <typename T>
  static PF_INLINE T Of(T x, T y) {
    const T product = x * y;
    return y == T(0) ? T(0) : product;
  }
};

struct XdivyOp {
  template <typename T>
  static PF_INLINE T Of(T x, T y) {
    const T quotient = x / y;
    return x == T(0) ? T(0) : quotient;
  }
};

struct XlogyOp {
  template <typename T>
  static PF_INLINE T Of(T x, T y) {
    return x == T(0) ? T(0) : x * std::log(y);
  }
};

struct Xlog1pyOp {
  template <typename T>
  static PF_INLINE T Of(T x, T y) {
    return x == T(0) ? T(0) : x * LogOnePlus(y);
  }
};

struct Atan2Op {
  template <typename T>
  static PF_INLINE T Of(T y, T x) {
    return std::atan2(y, x);
  }
};

// Gradients: the output is computed from the value of the function, y, and the incoming gradient, dy. Gradients of
// roots conjugate complex numbers and are zero where dy is, for any y; those of TensorFlow's sigmoid and tanh are
// computed as they stand.
struct RsqrtGradOp {
  template <typename T>
  static PF_INLINE T Of(T y, T dy) {
    const T conjugate = Conjugate(y);
    const T gradient = T(-0.5) * dy * conjugate * conjugate * conjugate;
    return dy == T(0) ? T(0) : gradient;
  }
};

struct SigmoidGradOp {
  template <typename T>
  static PF_INLINE T Of(T y, T dy) {
    return dy * y * (T(1) - y);
  }
};

struct TanhGradOp {
  template <typename T>
  static PF_INLINE T Of(T y, T dy) {
    return dy * (T(1) - y * y);
  }
};

struct SqrtGradOp {
  template <typename T>
  static PF_INLINE T Of(T y, T dy) {
    const T gradient = T(0.5) * dy / Conjugate(y);
    return dy == T(0) ? T(0) : gradient;
  }
};

constexpr char kDivisionByZero[] = "integer division by zero";

constexpr BinaryLoops kAdd = WithComplex<AddOp>(BinaryOfNumbers<AddOp>());
constexpr BinaryLoops kSub = WithComplex<SubOp>(BinaryOfNumbers<SubOp>());
constexpr BinaryLoops kMul = WithComplex<MulOp>(BinaryOfNumbers<MulOp>());
constexpr BinaryLoops kDiv = WithComplex<DivOp>(BinaryOfNumbers<DivOp>(kDivisionByZero));
constexpr BinaryLoops kTruncateDiv = BinaryOfNumbers<TruncateDivOp>(kDivisionByZero);
constexpr BinaryLoops kFloorDiv = BinaryOfNumbers<FloorDivOp>(kDivisionByZero);
constexpr BinaryLoops kMod = BinaryOfNumbers<ModOp>(kDivisionByZero, kCostlyGrain);
constexpr BinaryLoops kFloorMod = BinaryOfNumbers<FloorModOp>(kDivisionByZero, kCostlyGrain);
constexpr BinaryLoops kMaximum = BinaryOfNumbers<MaximumOp>();
constexpr BinaryLoops kMinimum = BinaryOfNumbers<MinimumOp>();
constexpr BinaryLoops kPow =
    WithComplex<PowOp>(BinaryOfNumbers<PowOp>("integer to a negative integer power", kCostlyGrain));
constexpr BinaryLoops kSquaredDifference = WithComplex<SquaredDifferenceOp>(BinaryOfNumbers<SquaredDifferenceOp>());
constexpr BinaryLoops kDivNoNan = WithComplex<DivNoNanOp>(BinaryOfFloats<DivNoNanOp>());
constexpr BinaryLoops kMulNoNan = WithComplex<MulNoNanOp>(BinaryOfFloats<MulNoNanOp>());
constexpr BinaryLoops kXdivy = WithComplex<XdivyOp>(BinaryOfFloats<XdivyOp>());
constexpr BinaryLoops kXlogy = WithComplex<XlogyOp>(BinaryOfFloats<XlogyOp>(kCostlyGrain));
constexpr BinaryLoops kXlog1py = WithComplex<Xlog1pyOp>(BinaryOfFloats<Xlog1pyOp>(kCostlyGrain));
constexpr BinaryLoops kAtan2 = BinaryOfFloats<Atan2Op>(kCostlyGrain);
constexpr BinaryLoops kRsqrtGrad = WithComplex<RsqrtGradOp>(BinaryOfFloats<RsqrtGradOp>());
constexpr BinaryLoops kSigmoidGrad = WithComplex<SigmoidGradOp>(BinaryOfFloats<SigmoidGradOp>());
constexpr BinaryLoops kTanhGrad = WithComplex<TanhGradOp>(BinaryOfFloats<TanhGradOp>());
constexpr BinaryLoops kSqrtGrad = WithComplex<SqrtGradOp>(BinaryOfFloats<SqrtGradOp>());

template <const BinaryLoops& loops>
Kernel BinaryKernel(const char* formula, std::vector<DType> types) {
  return Kernel(formula)
      .TypeNumbers("T", std::move(types))
      .InPlace(0)
      .InPlace(1)
      .Prepare(PrepareBinary<loops>)
      .Compute(ComputeBinaryLoops);
}

template <const BinaryLoops& loops>
Kernel NumberKernel(const char* formula) {
  return BinaryKernel<loops>(formula, loops.for_complex64 == nullptr ? NumberTypes() : NumberAndComplexTypes());
}

template <const BinaryLoops& loops>
Kernel FloatKernel(const char* formula) {
  return BinaryKernel<loops>(formula, loops.for_complex64 == nullptr ? FloatingTypes() : FloatingAndComplexTypes());
}

// --- Add, which joins strings ----------------------------------------------------------------------------------------

absl::Status PrepareAdd(PrepareContext* context) {
  return context->input_type(0) == DType::kString ? PrepareStringPairs(context) : PrepareBinaryLoops(context, &kAdd);
}

absl::Status ComputeAdd(ComputeContext* context) {
  if (context->input_at(0).dtype != DType::kString) return ComputeBinaryLoops(context);
  std::vector<std::string>& output = context->output_strings(0);
  output.resize(context->output_shape(0).num_elements());
  ForEachStringPair(context, [&](const std::string& x, const std::string& y, int64_t to) { output[to] = x + y; });
  return absl::OkStatus();
}

std::vector<DType> AddTypes() {
  std::vector<DType> types = NumberAndComplexTypes();
  types.push_back(DType::kString);
  return types;
}

// --- AddN -----------------------------------------------------------------------------------------------------------

struct AddNState : KernelState {
  BinaryLoop add;
  const Conversion* conversion;
};

absl::Status PrepareAddN(PrepareContext* context) {
  if (context->num_inputs() < 1) return absl::InvalidArgumentError("no inputs, expected at least 1");
  for (int i = 1; i < context->num_inputs(); ++i) {
    if (context->input_shape(i) != context->input_shape(0)) {
      return absl::InvalidArgumentError(absl::StrCat("input ", i, " has the shape ", context->input_shape(i).ToString(),
                                                     ", expected ", context->input_shape(0).ToString()));
    }
  }
  auto state = std::make_unique<AddNState>();
  state->conversion = ConversionFor(context->input_type(0));
  DispatchOn<float, double, int32_t, int64_t, uint64_t, std::complex<float>, std::complex<double>>(
      state->conversion == nullptr ? context->input_type(0) : state->conversion->wide,
      [&](auto tag) { state->add = RunBinary<AddOp, typename decltype(tag)::type>; });
  context->SetState(std::move(state));
  return SameShape(context);
}

absl::Status ComputeAddN(ComputeContext* context) {
  const auto& state = context->state<AddNState>();
  const size_t size = SizeOf(context->input_at(0).dtype);
  // Sums one block over all inputs before the next block, so that partial sums stay in the cache.
  constexpr int64_t kBlock = 1024;
  context->threads().ParallelFor(context->input_shape(0).num_elements(), 1 << 14, [&](int64_t begin, int64_t end) {
    alignas(64) char sum[kBlock * sizeof(std::complex<double>)];
    alignas(64) char term[kBlock * sizeof(std::complex<double>)];
    for (; begin < end; begin += kBlock) {
      const int64_t n = std::min(kBlock, end - begin);
      for (int i = 0; i < context->num_inputs(); ++i) {
        const char* input = context->input_bytes(i) + begin * size;
        if (state.conversion != nullptr) {
          state.conversion->widen(input, i == 0 ? sum : term, n);
          input = term;
        } else if (i == 0) {
          std::memcpy(sum, input, n * size);
        }
        if (i > 0) state.add(sum, false, input, false, sum, n);
      }
      char* output = context->output_bytes(0) + begin * size;
      if (state.conversion != nullptr) {
        state.conversion->narrow(sum, output, n);
      } else {
        std::memcpy(output, sum, n * size);
      }
    }
  });
  return absl::OkStatus();
}

}  // namespace

DEFINE_KERNEL(Add) {
  return BinaryKernel<kAdd>("x + y; strings are concatenated", AddTypes()).Prepare(PrepareAdd).Compute(ComputeAdd);
}
DEFINE_KERNEL(AddV2) { return NumberKernel<kAdd>("x + y"); }
DEFINE_KERNEL(Sub) { return NumberKernel<kSub>("x - y"); }
DEFINE_KERNEL(Mul) { return NumberKernel<kMul>("x * y"); }
DEFINE_KERNEL(Div) { return NumberKernel<kDiv>("x / y; integer division truncates"); }
DEFINE_KERNEL(RealDiv) { return NumberKernel<kDiv>("x / y"); }
DEFINE_KERNEL(TruncateDiv) { return NumberKernel<kTruncateDiv>("trunc(x / y)"); }
DEFINE_KERNEL(FloorDiv) { return NumberKernel<kFloorDiv>("floor(x / y)"); }
DEFINE_KERNEL(Mod) { return NumberKernel<kMod>("x - trunc(x / y) * y"); }
DEFINE_KERNEL(TruncateMod) { return NumberKernel<kMod>("x - trunc(x / y) * y"); }
DEFINE_KERNEL(FloorMod) { return NumberKernel<kFloorMod>("x - floor(x / y) * y"); }
DEFINE_KERNEL(Maximum) { return NumberKernel<kMaximum>("max(x, y); NaN if x or y is NaN"); }
DEFINE_KERNEL(Minimum) { return NumberKernel<kMinimum>("min(x, y); NaN if x or y is NaN"); }
DEFINE_KERNEL(Pow) { return NumberKernel<kPow>("x ^ y"); }
DEFINE_KERNEL(SquaredDifference) { return NumberKernel<kSquaredDifference>("(x - y)^2"); }
DEFINE_KERNEL(DivNoNan) { return FloatKernel<kDivNoNan>("y == 0 ? 0 : x / y"); }
DEFINE_KERNEL(MulNoNan) { return FloatKernel<kMulNoNan>("y == 0 ? 0 : x * y"); }
DEFINE_KERNEL(Xdivy) { return FloatKernel<kXdivy>("x == 0 ? 0 : x / y"); }
DEFINE_KERNEL(Xlogy) { return FloatKernel<kXlogy>("x == 0 ? 0 : x * ln(y)"); }
DEFINE_KERNEL(Xlog1py) { return FloatKernel<kXlog1py>("x == 0 ? 0 : x * ln(1 + y)"); }
DEFINE_KERNEL(Atan2) { return FloatKernel<kAtan2>("the angle of the point (x, y)"); }
DEFINE_KERNEL(RsqrtGrad) { return FloatKernel<kRsqrtGrad>("-dy / 2 * y^3; 0 if dy is 0"); }
DEFINE_KERNEL(SqrtGrad) { return FloatKernel<kSqrtGrad>("dy / 2 / y; 0 if dy is 0"); }
DEFINE_KERNEL(SigmoidGrad) { return FloatKernel<kSigmoidGrad>("dy * y * (1 - y)"); }
DEFINE_KERNEL(TanhGrad) { return FloatKernel<kTanhGrad>("dy * (1 - y^2)"); }

DEFINE_KERNEL(AddN) {
  return Kernel("the sum of all inputs")
      .TypeNumbers("T", NumberAndComplexTypes())
      .InPlace(0)
      .Prepare(PrepareAddN)
      .Compute(ComputeAddN);
}

}  // namespace permafrost
