// Activation functions: Relu and its variants, Sigmoid, Tanh, Softplus, Softsign, Softmax and LogSoftmax.
#include <algorithm>
#include <cmath>
#include <complex>
#include <limits>
#include <memory>
#include <type_traits>

#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "runtime_check/kernel.h"
#include "runtime_check/kernels/inner_loops.h"
#include "runtime_check/kernels/prepare.h"

namespace permafrost {
namespace {

// --- How one element of each type is computed ------------------------------------------------------------------------

// 16-bit floats are computed as float and rounded once.
template <typename T>
struct ComputeType {
  using type = T;
  static T From(T x) { return x; }
  static T To(T x) { return x; }
};
template <>
struct ComputeType<Half> {
  using type = float;
  static float From(Half x) { return ToFloat(x); }
  static Half To(float x) { return ToHalf(x); }
};
template <>
struct ComputeType<BFloat16> {
  using type = float;
  static float From(BFloat16 x) { return ToFloat(x); }
  static BFloat16 To(float x) { return ToBFloat16(x); }
};

constexpr int64_t kGrain = 16 << 10;  // Elements per task: a few microseconds of work, more than waking a thread costs.

// Computes y = f(x) for all elements. `f` maps single numbers; `loop`, if not null, maps floats in bulk.
template <typename... Types, typename F>
absl::Status Map(ComputeContext* context, F f, absl::FunctionRef<void(int64_t, const float*, float*)>* loop = nullptr) {
  const Value& input = context->input_at(0);
  const int64_t count = input.shape.num_elements();
  context->threads().ParallelFor(count, kGrain, [&](int64_t begin, int64_t end) {
    if (loop != nullptr && input.dtype == DType::kFloat) {
      (*loop)(end - begin, context->input<float>(0) + begin, context->output<float>(0) + begin);
      return;
    }
    DispatchOn<Types...>(input.dtype, [&](auto tag) {
      using T = typename decltype(tag)::type;
      const T* x = context->input<T>(0);
      T* y = context->output<T>(0);
      for (int64_t i = begin; i < end; ++i) y[i] = ComputeType<T>::To(f(ComputeType<T>::From(x[i])));
    });
  });
  return absl::OkStatus();
}

template <typename F>
absl::Status MapFloating(ComputeContext* context, F f,
                         absl::FunctionRef<void(int64_t, const float*, float*)>* loop = nullptr) {
  return Map<float, double, Half, BFloat16>(context, f, loop);
}

template <typename F>
absl::Status MapFloatingAndComplex(ComputeContext* context, F f,
                                   absl::FunctionRef<void(int64_t, const float*, float*)>* loop) {
  return Map<float, double, Half, BFloat16, std::complex<float>, std::complex<double>>(context, f, loop);
}

template <typename F>
absl::Status MapNumbers(ComputeContext* context, F f,
                        absl::FunctionRef<void(int64_t, const float*, float*)>* loop = nullptr) {
  return Map<float, double, Half, BFloat16, int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t>(
      context, f, loop);
}

using Loop = absl::FunctionRef<void(int64_t, const float*, float*)>;

// --- The functions ---------------------------------------------------------------------------------------------------

absl::Status ComputeRelu(ComputeContext* context) {
  Loop loop = BestInnerLoops().relu;
  return MapNumbers(
      context,
      [](auto x) {
        using T = decltype(x);
        return x < T(0) ? T(0) : x;
      },
      &loop);
}

absl::Status ComputeRelu6(ComputeContext* context) {
  Loop loop = BestInnerLoops().relu6;
  return MapNumbers(
      context,
      [](auto x) {
        using T = decltype(x);
        return x < T(0) ? T(0) : x > T(6) ? T(6) : x;
      },
      &loop);
}

struct LeakyReluState : public KernelState {
  float alpha = 0;
};

absl::Status PrepareLeakyRelu(PrepareContext* context) {
  auto state = std::make_unique<LeakyReluState>();
  PF_ASSIGN_OR_RETURN(state->alpha, FloatAttr(context->node(), "alpha"));
  context->SetState(std::move(state));
  return SameShape(context);
}

absl::Status ComputeLeakyRelu(ComputeContext* context) {
  const float alpha = context->state<LeakyReluState>().alpha;
  const auto bulk = [&](int64_t count, const float* x, float* y) { BestInnerLoops().leaky_relu(count, alpha, x, y); };
  Loop loop = bulk;
  return MapFloating(
      context, [alpha](auto x) { return x < 0 ? x * static_cast<decltype(x)>(alpha) : x; }, &loop);
}

absl::Status ComputeElu(ComputeContext* context) {
  return MapFloating(context, [](auto x) { return x < 0 ? std::expm1(x) : x; });
}

// The constants of the paper "Self-Normalizing Neural Networks": scale, and scale * alpha.
absl::Status ComputeSelu(ComputeContext* context) {
  return MapFloating(context, [](auto x) {
    using T = decltype(x);
    return x < 0 ? T(1.7580993408473768599) * std::expm1(x) : T(1.0507009873554804934) * x;
  });
}

absl::Status ComputeSigmoid(ComputeContext* context) {
  Loop loop = BestInnerLoops().sigmoid;
  return MapFloatingAndComplex(
      context,
      [](auto x) {
        using T = decltype(x);
        return T(1) / (T(1) + std::exp(-x));
      },
      &loop);
}

absl::Status ComputeTanh(ComputeContext* context) {
  Loop loop = BestInnerLoops().tanh;
  return MapFloatingAndComplex(
      context, [](auto x) { return std::tanh(x); }, &loop);
}

absl::Status ComputeSoftplus(ComputeContext* context) {
  // log(1 + exp(x)), written so that exp cannot overflow.
  return MapFloating(context, [](auto x) { return x > 0 ? x + std::log1p(std::exp(-x)) : std::log1p(std::exp(x)); });
}

absl::Status ComputeSoftsign(ComputeContext* context) {
  return MapFloating(context, [](auto x) { return x / (1 + std::abs(x)); });
}

// --- Softmax ---------------------------------------------------------------------------------------------------------

absl::Status PrepareSoftmax(PrepareContext* context) {
  if (context->input_shape(0).rank() < 1) {
    return absl::InvalidArgumentError("input 0 is a scalar, expected rank 1 or more");
  }
  return SameShape(context);
}

// Computes one row along the last dimension. With `log`, x - max - log(sum of exp(x - max)); else exp(x - max) over
// that sum. The maximum is subtracted so that exp cannot overflow.
template <typename T>
void SoftmaxRow(int64_t count, bool log, const T* x, T* y) {
  using C = ComputeType<T>;
  using Number = typename C::type;
  Number largest = -std::numeric_limits<Number>::infinity();
  for (int64_t i = 0; i < count; ++i) largest = std::max(largest, C::From(x[i]));
  Number sum = 0;
  for (int64_t i = 0; i < count; ++i) sum += std::exp(C::From(x[i]) - largest);
  const Number shift = largest + std::log(sum);
  for (int64_t i = 0; i < count; ++i) {
    const Number value = C::From(x[i]);
    y[i] = C::To(log ? value - largest - (shift - largest) : std::exp(value - largest) / sum);
  }
}

// As above for floats, with the exponentials in bulk.
void SoftmaxRow(int64_t count, bool log, const float* x, float* y) {
  const InnerLoops& loops = BestInnerLoops();
  float largest = -std::numeric_limits<float>::infinity();
  for (int64_t i = 0; i < count; ++i) largest = std::max(largest, x[i]);
  if (selection::HoldsOp("LogSoftmax") && log) {
    float sum = 0;
    for (int64_t i = 0; i < count; ++i) sum += std::exp(x[i] - largest);
    const float logarithm = std::log(sum);
    for (int64_t i = 0; i < count; ++i) y[i] = x[i] - largest - logarithm;
    return;
  }
  loops.add_scalar(count, x, -largest, y);
  loops.exp(count, y, y);
  float sum = 0;
  for (int64_t i = 0; i < count; ++i) sum += y[i];
  loops.scale(count, 1 / sum, y);
}

absl::Status Softmax(ComputeContext* context, bool log) {
  const Value& input = context->input_at(0);
  const int64_t count = input.shape.dim(input.shape.rank() - 1);
  if (input.shape.num_elements() == 0) return absl::OkStatus();
  DispatchOn<float, double, Half, BFloat16>(input.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* x = context->input<T>(0);
    T* y = context->output<T>(0);
    context->threads().ParallelFor(input.shape.num_elements() / count, 1 + kGrain / count,
                                   [&](int64_t begin, int64_t end) {
                                     for (int64_t row = begin; row < end; ++row) {
                                       SoftmaxRow(count, log, x + row * count, y + row * count);
                                     }
                                   });
  });
  return absl::OkStatus();
}

absl::Status ComputeSoftmax(ComputeContext* context) { return Softmax(context, false); }
absl::Status ComputeLogSoftmax(ComputeContext* context) { return Softmax(context, true); }

// Defines an elementwise function of floating-point numbers.
Kernel Activation(const char* formula, ComputeFunction compute) {
  return Kernel(formula).TypeNumbers("T", FloatingTypes()).InPlace(0).Prepare(SameShape).Compute(compute);
}

// Defines an elementwise function of floating-point and complex numbers.
Kernel ComplexActivation(const char* formula, ComputeFunction compute) {
  return Kernel(formula).TypeNumbers("T", FloatingAndComplexTypes()).InPlace(0).Prepare(SameShape).Compute(compute);
}

// Defines an elementwise function of all real numbers.
Kernel NumberActivation(const char* formula, ComputeFunction compute) {
  return Kernel(formula).TypeNumbers("T", NumberTypes()).InPlace(0).Prepare(SameShape).Compute(compute);
}

}  // namespace

DEFINE_KERNEL(Relu) { return NumberActivation("max(features, 0)", ComputeRelu); }

DEFINE_KERNEL(Relu6) { return NumberActivation("min(max(features, 0), 6)", ComputeRelu6); }

DEFINE_KERNEL(LeakyRelu) {
  return Activation("features < 0 ? alpha * features : features", ComputeLeakyRelu).Prepare(PrepareLeakyRelu);
}

DEFINE_KERNEL(Elu) { return Activation("features < 0 ? exp(features) - 1 : features", ComputeElu); }

DEFINE_KERNEL(Selu) {
  return Activation("1.0507 * (features < 0 ? 1.6733 * (exp(features) - 1) : features)", ComputeSelu);
}

DEFINE_KERNEL(Sigmoid) { return ComplexActivation("1 / (1 + exp(-x))", ComputeSigmoid); }

DEFINE_KERNEL(Tanh) { return ComplexActivation("tanh(x)", ComputeTanh); }

DEFINE_KERNEL(Softplus) { return Activation("log(1 + exp(features))", ComputeSoftplus); }

DEFINE_KERNEL(Softsign) { return Activation("features / (1 + abs(features))", ComputeSoftsign); }

DEFINE_KERNEL(Softmax) {
  return Activation("exp(logits) / sum of exp(logits), along the last dimension", ComputeSoftmax)
      .Prepare(PrepareSoftmax);
}

DEFINE_KERNEL(LogSoftmax) {
  return Activation("logits - log(sum of exp(logits)), along the last dimension", ComputeLogSoftmax)
      .Prepare(PrepareSoftmax);
}

}  // namespace permafrost
