// Special functions of one input: Lgamma, Digamma, Erfinv, Ndtri, BesselI0e, BesselI1e.
#include <cmath>
#include <limits>

#include "runtime_check/kernels/elementwise.h"
#include "runtime_check/kernels/prepare.h"

namespace permafrost {
namespace {

constexpr int64_t kGrain = 1 << 11;
constexpr double kPi = 3.14159265358979323846;
constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// lgamma() of the C library writes the global signgam; lgamma_r does not.
double LogGamma(double x) {
  int sign;
  return lgamma_r(x, &sign);
}

// Reflection for negative numbers, the recurrence up to 10, then the asymptotic series in 1 / x^2, whose coefficients
// are B(2k) / 2k; the first one left out is below 1e-16 there.
double Digamma(double x) {
  if (x == 0 || (x < 0 && x == std::floor(x))) return kNan;
  if (x == -kInfinity) return kNan;
  double shift = 0;
  if (x < 0) {
    const double fraction = x - std::floor(x);
    if (fraction != 0.5) shift = kPi / std::tan(kPi * fraction);
    x = 1 - x;
    return Digamma(x) - shift;
  }
  for (; x < 10; ++x) shift -= 1 / x;
  const double y = 1 / (x * x);
  const double series =
      y * (1. / 12 -
           y * (1. / 120 - y * (1. / 252 - y * (1. / 240 - y * (1. / 132 - y * (691. / 32760 - y * (1. / 12)))))));
  return shift + std::log(x) - 0.5 / x - series;
}

// The inverse of the normal distribution: a start value from the tail's asymptote, then Halley's method on erfc, whose
// relative accuracy in the tail makes each step cubic.
double NormalQuantile(double p) {
  if (p == 0) return -kInfinity;
  if (p == 1) return kInfinity;
  if (!(p > 0 && p < 1)) return kNan;
  const bool upper = p > 0.5;
  const double q = upper ? 1 - p : p;  // Exact for p above 1/2.
  if (q == 0.5) return 0;
  // Abramowitz and Stegun 26.2.23, whose error is below 4.5e-4.
  const double t = std::sqrt(-2 * std::log(q));
  double z = (2.515517 + t * (0.802853 + t * 0.010328)) / (1 + t * (1.432788 + t * (0.189269 + t * 0.001308))) - t;
  for (int i = 0; i < 3; ++i) {
    const double error = 0.5 * std::erfc(-z / std::sqrt(2.)) - q;
    const double density = std::exp(-z * z / 2) / std::sqrt(2 * kPi);
    if (density == 0) break;
    const double step = error / density;
    z -= step / (1 + z * step / 2);
  }
  return upper ? -z : z;
}

double InverseErf(double x) {
  if (x == 0) return x;
  if (std::fabs(x) == 1) return x * kInfinity;
  if (!(std::fabs(x) < 1)) return kNan;
  // From half of 1 - |x|, so that small numbers keep their digits where x is near 0 and where it is near 1.
  double z =
      std::fabs(x) < 0.5 ? std::fabs(x) * std::sqrt(kPi) / 2 : -NormalQuantile((1 - std::fabs(x)) / 2) / std::sqrt(2.);
  if (std::fabs(x) < 0.5) {
    for (int i = 0; i < 5; ++i) {
      const double step = (std::erf(z) - std::fabs(x)) * std::sqrt(kPi) / 2 * std::exp(z * z);
      z -= step / (1 + z * step);
    }
  }
  return std::copysign(z, x);
}

// The modified Bessel function of order 0 or 1 times exp(-|x|): the integral of exp(|x| (cos t - 1)) cos(order t) over
// half a period, divided by pi. The trapezoidal rule on a periodic function converges faster than any power; the
// integrand has the width 1 / sqrt(|x|), so larger numbers use the asymptotic series instead.
double ScaledBessel(int order, double x) {
  const double a = std::fabs(x);
  if (a != a) return a;
  double result;
  if (a < 60) {
    constexpr int kPoints = 128;
    double sum = (1 + (order == 0 ? 1 : -1) * std::exp(-2 * a)) / 2;
    for (int i = 1; i < kPoints; ++i) {
      const double cosine = std::cos(kPi * i / kPoints);
      sum += std::exp(a * (cosine - 1)) * (order == 0 ? 1 : cosine);
    }
    result = sum / kPoints;
    if (order == 1 && a < 1e-3) result = std::exp(-a) * a / 2 * (1 + a * a / 8);  // Where the terms cancel.
  } else {
    const double mu = 4. * order * order;
    double term = 1, sum = 1;
    for (int k = 1; k <= 12; ++k) {
      term *= -(mu - (2. * k - 1) * (2. * k - 1)) / (k * 8 * a);
      sum += term;
    }
    result = a == kInfinity ? 0 : sum / std::sqrt(2 * kPi * a);
  }
  return order == 1 && x < 0 ? -result : result;
}

template <double (*function)(double)>
struct Special {
  template <typename T>
  static T Of(T x) {
    return static_cast<T>(function(static_cast<double>(x)));
  }
};

double BesselI0e(double x) { return ScaledBessel(0, x); }
double BesselI1e(double x) { return ScaledBessel(1, x); }

template <double (*function)(double)>
constexpr UnaryLoops kLoops = UnaryOfFloats<Special<function>>(kGrain);

template <double (*function)(double)>
absl::Status Prepare(PrepareContext* context) {
  static constexpr UnaryLoops loops = kLoops<function>;
  return PrepareUnaryLoops(context, &loops);
}

template <double (*function)(double)>
Kernel SpecialKernel(const char* formula) {
  return Kernel(formula)
      .TypeNumbers("T", FloatingTypes())
      .InPlace(0)
      .Prepare(Prepare<function>)
      .Compute(ComputeUnaryLoops);
}

}  // namespace

DEFINE_KERNEL(Lgamma) { return SpecialKernel<LogGamma>("the logarithm of the absolute value of the gamma function"); }
DEFINE_KERNEL(Digamma) { return SpecialKernel<Digamma>("the derivative of the logarithm of the gamma function"); }
DEFINE_KERNEL(Erfinv) { return SpecialKernel<InverseErf>("the inverse of the error function"); }
DEFINE_KERNEL(Ndtri) { return SpecialKernel<NormalQuantile>("the quantile of the standard normal distribution"); }
DEFINE_KERNEL(BesselI0e) { return SpecialKernel<BesselI0e>("the modified Bessel function I0 of x, times exp(-|x|)"); }
DEFINE_KERNEL(BesselI1e) { return SpecialKernel<BesselI1e>("the modified Bessel function I1 of x, times exp(-|x|)"); }

}  // namespace permafrost
