// Ops that construct complex numbers and return their parts.
#include <cmath>
#include <complex>
#include <memory>
#include <utility>

#include "graph/base/status.h"
#include "runtime_check/kernel.h"
#include "runtime_check/kernels/broadcast.h"
#include "runtime_check/kernels/prepare.h"

namespace permafrost {
namespace {

constexpr int64_t kGrain = 1 << 14;

template <typename From, typename To, typename F>
void Map(ComputeContext* context, F f) {
  const From* x = context->input<From>(0);
  To* y = context->output<To>(0);
  context->threads().ParallelFor(context->output_shape(0).num_elements(), kGrain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) y[i] = f(x[i]);
  });
}

// F: a struct with a static function from a complex number to one of its parts.
template <typename F>
absl::Status ComputePart(ComputeContext* context) {
  DispatchOn<std::complex<float>, std::complex<double>>(context->input_at(0).dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    Map<T, typename T::value_type>(context, [](const T& x) { return F::Of(x); });
  });
  return absl::OkStatus();
}

struct RealPart {
  template <typename T>
  static auto Of(const T& x) {
    return x.real();
  }
};
struct ImaginaryPart {
  template <typename T>
  static auto Of(const T& x) {
    return x.imag();
  }
};
struct Magnitude {
  template <typename T>
  static auto Of(const T& x) {
    return std::abs(x);
  }
};
struct Argument {
  template <typename T>
  static auto Of(const T& x) {
    return std::arg(x);
  }
};

absl::Status ComputeConj(ComputeContext* context) {
  DispatchOn<std::complex<float>, std::complex<double>>(context->input_at(0).dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    Map<T, T>(context, [](const T& x) { return std::conj(x); });
  });
  return absl::OkStatus();
}

struct ComplexState : KernelState {
  Broadcast broadcast;
};

absl::Status PrepareComplex(PrepareContext* context) {
  const Shape &real = context->input_shape(0), &imaginary = context->input_shape(1);
  PF_ASSIGN_OR_RETURN(const Shape shape, BroadcastShapes(real, imaginary));
  PF_RETURN_IF_ERROR(SetCheckedShape(context, 0, shape));
  auto state = std::make_unique<ComplexState>();
  state->broadcast = Broadcast({real, imaginary}, shape);
  context->SetState(std::move(state));
  return absl::OkStatus();
}

absl::Status ComputeComplex(ComputeContext* context) {
  DispatchOn<float, double>(context->input_at(0).dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* real = context->input<T>(0);
    const T* imaginary = context->input<T>(1);
    std::complex<T>* y = context->output<std::complex<T>>(0);
    const Broadcast& broadcast = context->state<ComplexState>().broadcast;
    const int64_t real_step = broadcast.IsScalarInRow(0) ? 0 : 1, imaginary_step = broadcast.IsScalarInRow(1) ? 0 : 1;
    context->threads().ParallelFor(context->output_shape(0).num_elements(), kGrain, [&](int64_t begin, int64_t end) {
      broadcast.ForEachRow(begin, end, [&](const int64_t* offsets, int64_t output, int64_t count) {
        for (int64_t i = 0; i < count; ++i) {
          y[output + i] = {real[offsets[0] + i * real_step], imaginary[offsets[1] + i * imaginary_step]};
        }
      });
    });
  });
  return absl::OkStatus();
}

}  // namespace

DEFINE_KERNEL(Real) {
  return Kernel("the real part")
      .Types<std::complex<float>, std::complex<double>>("T")
      .Prepare(SameShape)
      .Compute(ComputePart<RealPart>);
}

DEFINE_KERNEL(Imag) {
  return Kernel("the imaginary part")
      .Types<std::complex<float>, std::complex<double>>("T")
      .Prepare(SameShape)
      .Compute(ComputePart<ImaginaryPart>);
}

DEFINE_KERNEL(ComplexAbs) {
  return Kernel("sqrt(real^2 + imag^2)")
      .Types<std::complex<float>, std::complex<double>>("T")
      .Prepare(SameShape)
      .Compute(ComputePart<Magnitude>);
}

DEFINE_KERNEL(Angle) {
  return Kernel("atan2(imag, real)")
      .Types<std::complex<float>, std::complex<double>>("T")
      .Prepare(SameShape)
      .Compute(ComputePart<Argument>);
}

DEFINE_KERNEL(Conj) {
  return Kernel("real - i * imag")
      .Types<std::complex<float>, std::complex<double>>("T")
      .InPlace(0)
      .Prepare(SameShape)
      .Compute(ComputeConj);
}

DEFINE_KERNEL(Complex) {
  return Kernel("real + i * imag, broadcast").Types<float, double>("T").Prepare(PrepareComplex).Compute(ComputeComplex);
}

}  // namespace permafrost
