// Fourier transforms in mixed radix: each step reads one array and writes another so that the results are in order
// without a permutation (Stockham's autosort form; C. Van Loan, Computational Frameworks for the Fast Fourier
// Transform, 1992, section 1.7). The innermost loops run over the sequences and the results of earlier steps, which are
// contiguous, so the compiler vectorises them. Lengths with large prime factors become a convolution with a chirp of a
// length that is a power of two (L. Bluestein, IEEE Transactions on Audio and Electroacoustics 18, 1970).
#include "runtime_check/kernels/fourier.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "graph/base/multiversion.h"

namespace permafrost {
namespace {

constexpr double kPi = 3.14159265358979323846;
// Larger prime factors cost more than the convolution, since a step takes time in proportion to its radix.
constexpr int64_t kMostRadix = 61;
constexpr int64_t kMostPoints = int64_t{1} << 24;
// The convolution has up to four times as many points, and three tables.
constexpr int64_t kMostChirpPoints = int64_t{1} << 22;

// Returns exp(-2 pi sqrt(-1) k / n).
std::complex<double> Root(int64_t k, int64_t n) {
  const double angle = -2 * kPi * static_cast<double>(k % n) / static_cast<double>(n);
  return {std::cos(angle), std::sin(angle)};
}

int64_t LargestPrimeFactor(int64_t n) {
  int64_t largest = 1;
  for (int64_t factor = 2; factor * factor <= n; ++factor) {
    while (n % factor == 0) {
      largest = factor;
      n /= factor;
    }
  }
  return std::max(n, largest);
}

// Returns radices whose product is `n`, whose prime factors are at most kMostRadix.
std::vector<int64_t> Radices(int64_t n) {
  std::vector<int64_t> radices;
  for (const int64_t radix : {4, 2}) {
    for (; n % radix == 0; n /= radix) radices.push_back(radix);
  }
  for (int64_t radix = 3; n > 1; radix += 2) {
    for (; n % radix == 0; n /= radix) radices.push_back(radix);
  }
  return radices;
}

// In a step of radix r with `groups` groups, number k of group g is at x[(k * groups + g) * width], and result j is
// written to y[(g * r + j) * width], both for `width` transforms side by side. kWidth is `width`, or 0 for any. The
// arrays do not overlap, which the compiler cannot know.

template <typename T, int64_t kWidth>
inline PF_INLINE void RunRadix2(int64_t groups, int64_t width, const T* factors, SplitNumbers<T> x, SplitNumbers<T> y) {
  if (kWidth > 0) width = kWidth;
  const int64_t half = groups * width;
  for (int64_t g = 0; g < groups; ++g, factors += 2) {
    const T wr = factors[0], wi = factors[1];
    const T* xr = x.re + g * width;
    const T* xi = x.im + g * width;
    T* yr = y.re + 2 * g * width;
    T* yi = y.im + 2 * g * width;
#pragma GCC ivdep
    for (int64_t q = 0; q < width; ++q) {
      const T dr = xr[q] - xr[half + q], di = xi[q] - xi[half + q];
      yr[q] = xr[q] + xr[half + q];
      yi[q] = xi[q] + xi[half + q];
      yr[width + q] = dr * wr - di * wi;
      yi[width + q] = dr * wi + di * wr;
    }
  }
}

template <typename T, int64_t kWidth>
inline PF_INLINE void RunRadix4(int64_t groups, int64_t width, const T* factors, SplitNumbers<T> x, SplitNumbers<T> y) {
  if (kWidth > 0) width = kWidth;
  const int64_t quarter = groups * width;
  for (int64_t g = 0; g < groups; ++g, factors += 6) {
    const T w1r = factors[0], w1i = factors[1], w2r = factors[2], w2i = factors[3], w3r = factors[4], w3i = factors[5];
    const T* xr = x.re + g * width;
    const T* xi = x.im + g * width;
    T* yr = y.re + 4 * g * width;
    T* yi = y.im + 4 * g * width;
#pragma GCC ivdep
    for (int64_t q = 0; q < width; ++q) {
      const T sr = xr[q] + xr[2 * quarter + q], si = xi[q] + xi[2 * quarter + q];
      const T dr = xr[q] - xr[2 * quarter + q], di = xi[q] - xi[2 * quarter + q];
      const T tr = xr[quarter + q] + xr[3 * quarter + q], ti = xi[quarter + q] + xi[3 * quarter + q];
      // The difference, multiplied by -sqrt(-1).
      const T er = xi[quarter + q] - xi[3 * quarter + q], ei = xr[3 * quarter + q] - xr[quarter + q];
      const T ar = dr + er, ai = di + ei, br = sr - tr, bi = si - ti, cr = dr - er, ci = di - ei;
      yr[q] = sr + tr;
      yi[q] = si + ti;
      yr[width + q] = ar * w1r - ai * w1i;
      yi[width + q] = ar * w1i + ai * w1r;
      yr[2 * width + q] = br * w2r - bi * w2i;
      yi[2 * width + q] = br * w2i + bi * w2r;
      yr[3 * width + q] = cr * w3r - ci * w3i;
      yi[3 * width + q] = cr * w3i + ci * w3r;
    }
  }
}

// One step of an odd radix. Adds and subtracts numbers k and radix - k first, because their factors are conjugates.
template <typename T>
inline PF_INLINE void RunOddRadix(int64_t radix, int64_t groups, int64_t width, const T* factors, SplitNumbers<T> x,
                                  SplitNumbers<T> y) {
  constexpr int64_t kBlock = 8;
  constexpr int64_t kMostPairs = kMostRadix / 2;
  const int64_t pairs = radix / 2;
  T cosines[kMostRadix], sines[kMostRadix];
  for (int64_t k = 0; k < radix; ++k) {
    const std::complex<double> root = Root(k, radix);
    cosines[k] = static_cast<T>(root.real());
    sines[k] = static_cast<T>(root.imag());
  }
  T sr[kMostPairs][kBlock], si[kMostPairs][kBlock], dr[kMostPairs][kBlock], di[kMostPairs][kBlock];
  for (int64_t g = 0; g < groups; ++g, factors += 2 * (radix - 1)) {
    for (int64_t first = 0; first < width; first += kBlock) {
      const int64_t count = std::min(kBlock, width - first);
      const auto load = [&](const T* from, int64_t k, T* block) PF_INLINE {
        const T* numbers = from + (k * groups + g) * width + first;
        for (int64_t q = 0; q < kBlock; ++q) block[q] = q < count ? numbers[q] : T{0};
      };
      T zero_r[kBlock], zero_i[kBlock], sum_r[kBlock], sum_i[kBlock];
      load(x.re, 0, zero_r);
      load(x.im, 0, zero_i);
      std::copy_n(zero_r, kBlock, sum_r);
      std::copy_n(zero_i, kBlock, sum_i);
      for (int64_t k = 0; k < pairs; ++k) {
        T ar[kBlock], ai[kBlock], br[kBlock], bi[kBlock];
        load(x.re, k + 1, ar);
        load(x.im, k + 1, ai);
        load(x.re, radix - 1 - k, br);
        load(x.im, radix - 1 - k, bi);
        for (int64_t q = 0; q < kBlock; ++q) {
          sr[k][q] = ar[q] + br[q];
          si[k][q] = ai[q] + bi[q];
          dr[k][q] = ar[q] - br[q];
          di[k][q] = ai[q] - bi[q];
          sum_r[q] += sr[k][q];
          sum_i[q] += si[k][q];
        }
      }
      T* yr = y.re + g * radix * width + first;
      T* yi = y.im + g * radix * width + first;
      std::copy_n(sum_r, count, yr);
      std::copy_n(sum_i, count, yi);
      for (int64_t j = 1; j <= pairs; ++j) {
        T even_r[kBlock], even_i[kBlock], odd_r[kBlock] = {}, odd_i[kBlock] = {};
        std::copy_n(zero_r, kBlock, even_r);
        std::copy_n(zero_i, kBlock, even_i);
        for (int64_t k = 0, turn = j; k < pairs; ++k, turn = turn + j < radix ? turn + j : turn + j - radix) {
          const T c = cosines[turn], s = sines[turn];
          for (int64_t q = 0; q < kBlock; ++q) {
            even_r[q] += c * sr[k][q];
            even_i[q] += c * si[k][q];
            odd_r[q] -= s * di[k][q];
            odd_i[q] += s * dr[k][q];
          }
        }
        const T* w = factors + 2 * (j - 1);
        const T* v = factors + 2 * (radix - j - 1);
        T lower_r[kBlock], lower_i[kBlock], upper_r[kBlock], upper_i[kBlock];
        for (int64_t q = 0; q < kBlock; ++q) {
          const T lr = even_r[q] + odd_r[q], li = even_i[q] + odd_i[q];
          const T ur = even_r[q] - odd_r[q], ui = even_i[q] - odd_i[q];
          lower_r[q] = lr * w[0] - li * w[1];
          lower_i[q] = lr * w[1] + li * w[0];
          upper_r[q] = ur * v[0] - ui * v[1];
          upper_i[q] = ur * v[1] + ui * v[0];
        }
        std::copy_n(lower_r, count, yr + j * width);
        std::copy_n(lower_i, count, yi + j * width);
        std::copy_n(upper_r, count, yr + (radix - j) * width);
        std::copy_n(upper_i, count, yi + (radix - j) * width);
      }
    }
  }
}

template <typename T, int64_t kWidth>
inline PF_INLINE void RunStep(int64_t radix, int64_t groups, int64_t width, const T* factors, SplitNumbers<T> x,
                              SplitNumbers<T> y) {
  if (radix == 4) {
    RunRadix4<T, kWidth>(groups, width, factors, x, y);
  } else if (radix == 2) {
    RunRadix2<T, kWidth>(groups, width, factors, x, y);
  } else {
    RunOddRadix(radix, groups, width, factors, x, y);
  }
}

// Multiplies x[i] by `factors`[i], count times, for `lanes` sequences.
template <typename T>
void MultiplyBy(const std::vector<std::complex<T>>& factors, int64_t lanes, SplitNumbers<T> x) {
  for (size_t i = 0; i < factors.size(); ++i) {
    const T wr = factors[i].real(), wi = factors[i].imag();
    T* re = x.re + static_cast<int64_t>(i) * lanes;
    T* im = x.im + static_cast<int64_t>(i) * lanes;
    for (int64_t l = 0; l < lanes; ++l) {
      const T r = re[l] * wr - im[l] * wi;
      im[l] = re[l] * wi + im[l] * wr;
      re[l] = r;
    }
  }
}

}  // namespace

absl::Status CheckFourierPoints(int64_t points) {
  if (points < 0 || points > kMostPoints) {
    return absl::InvalidArgumentError(
        absl::StrCat("the transform has ", points, " points, expected 0 to ", kMostPoints));
  }
  if (points <= kMostChirpPoints) return absl::OkStatus();
  const int64_t factor = LargestPrimeFactor(points);
  if (factor <= kMostRadix) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("the transform has ", points, " points, expected at most ",
                                                 kMostChirpPoints, ", because its prime factor ", factor, " exceeds ",
                                                 kMostRadix));
}

template <typename T>
struct ComplexTransform<T>::Chirp {
  explicit Chirp(int64_t size) : transform(size) {}

  ComplexTransform<T> transform;         // Of the convolution.
  std::vector<std::complex<T>> factors;  // exp(-pi sqrt(-1) i^2 / points).
  std::vector<std::complex<T>> filter;   // Transform of the conjugates, divided by the size of the convolution.
};

template <typename T>
ComplexTransform<T>::ComplexTransform(int64_t points) : points_(points), room_(points) {
  if (LargestPrimeFactor(points) > kMostRadix) {
    int64_t size = 1;
    while (size < 2 * points - 1) size *= 2;
    room_ = size;
    auto chirp = std::make_unique<Chirp>(size);
    std::vector<std::complex<T>> filter(size);
    for (int64_t i = 0; i < points; ++i) {
      // i^2 fits, because points is at most 2^22.
      const std::complex<double> root = Root(i * i % (2 * points), 2 * points);
      chirp->factors.emplace_back(static_cast<T>(root.real()), static_cast<T>(root.imag()));
      filter[i] = std::conj(chirp->factors.back()) / static_cast<T>(size);
      filter[(size - i) % size] = filter[i];
    }
    std::vector<T> work(chirp->transform.work_size());
    chirp->filter.resize(size);
    chirp->transform.Forward(1, {filter.data(), 1, 0}, {chirp->filter.data(), 1, 0}, work.data());
    chirp_ = std::move(chirp);
    return;
  }
  int64_t length = points;
  for (const int64_t radix : Radices(points)) {
    Step step;
    step.radix = radix;
    step.groups = length / radix;
    step.factors.reserve(2 * (radix - 1) * step.groups);
    for (int64_t g = 0; g < step.groups; ++g) {
      for (int64_t j = 1; j < radix; ++j) {
        const std::complex<double> root = Root(j * g, length);
        step.factors.push_back(static_cast<T>(root.real()));
        step.factors.push_back(static_cast<T>(root.imag()));
      }
    }
    steps_.push_back(std::move(step));
    length /= radix;
  }
}

template <typename T>
ComplexTransform<T>::~ComplexTransform() = default;

template <typename T>
SplitNumbers<T> ComplexTransform<T>::RunSteps(int64_t lanes, SplitNumbers<T> x, SplitNumbers<T> other) const {
  int64_t width = lanes;
  for (const Step& step : steps_) {
    Multiversion([&]() PF_INLINE {
      const T* factors = step.factors.data();
      if (width == kFourierLanes) {
        RunStep<T, kFourierLanes>(step.radix, step.groups, width, factors, x, other);
      } else {
        RunStep<T, 0>(step.radix, step.groups, width, factors, x, other);
      }
    });
    width *= step.radix;
    std::swap(x, other);
  }
  return x;
}

template <typename T>
SplitNumbers<T> ComplexTransform<T>::RunChirp(int64_t lanes, SplitNumbers<T> x, SplitNumbers<T> other) const {
  MultiplyBy(chirp_->factors, lanes, x);
  std::fill(x.re + points_ * lanes, x.re + room_ * lanes, T{0});
  std::fill(x.im + points_ * lanes, x.im + room_ * lanes, T{0});
  const SplitNumbers<T> spectrum = chirp_->transform.RunSteps(lanes, x, other);
  MultiplyBy(chirp_->filter, lanes, spectrum);
  // An inverse transform is a transform with the real and the imaginary parts exchanged.
  const SplitNumbers<T> unused = spectrum.re == x.re ? other : x;
  const SplitNumbers<T> swapped = chirp_->transform.RunSteps(lanes, {spectrum.im, spectrum.re}, {unused.im, unused.re});
  const SplitNumbers<T> result = {swapped.im, swapped.re};
  MultiplyBy(chirp_->factors, lanes, result);
  return result;
}

template <typename T>
SplitNumbers<T> ComplexTransform<T>::Transform(int64_t lanes, bool is_inverse, T* work) const {
  SplitNumbers<T> x = Numbers(lanes, work);
  SplitNumbers<T> other = Numbers(lanes, work + 2 * room_ * lanes);
  if (is_inverse) std::swap(x.re, x.im);
  SplitNumbers<T> result = chirp_ != nullptr ? RunChirp(lanes, x, other) : RunSteps(lanes, x, other);
  if (is_inverse) std::swap(result.re, result.im);
  return result;
}

template <typename T>
void ComplexTransform<T>::Run(int64_t lanes, bool is_inverse, Sequences<const std::complex<T>> x,
                              Sequences<std::complex<T>> y, T* work) const {
  const SplitNumbers<T> numbers = Numbers(lanes, work);
  for (int64_t i = 0; i < points_; ++i) {
    for (int64_t l = 0; l < lanes; ++l) {
      const std::complex<T> number = x.first[i * x.step + l * x.distance];
      numbers.re[i * lanes + l] = number.real();
      numbers.im[i * lanes + l] = number.imag();
    }
  }
  const SplitNumbers<T> result = Transform(lanes, is_inverse, work);
  const T scale = is_inverse ? 1 / static_cast<T>(points_) : T{1};
  for (int64_t i = 0; i < points_; ++i) {
    for (int64_t l = 0; l < lanes; ++l) {
      y.first[i * y.step + l * y.distance] = {result.re[i * lanes + l] * scale, result.im[i * lanes + l] * scale};
    }
  }
}

template <typename T>
void ComplexTransform<T>::Forward(int64_t lanes, Sequences<const std::complex<T>> x, Sequences<std::complex<T>> y,
                                  T* work) const {
  Run(lanes, /*is_inverse=*/false, x, y, work);
}

template <typename T>
void ComplexTransform<T>::Inverse(int64_t lanes, Sequences<const std::complex<T>> x, Sequences<std::complex<T>> y,
                                  T* work) const {
  Run(lanes, /*is_inverse=*/true, x, y, work);
}

template <typename T>
RealTransform<T>::RealTransform(int64_t points) : points_(points), complex_(points % 2 == 0 ? points / 2 : points) {
  if (points % 2 != 0) return;
  for (int64_t k = 0; k <= points / 2; ++k) {
    const std::complex<double> root = Root(k, points);
    rotations_.emplace_back(static_cast<T>(root.real()), static_cast<T>(root.imag()));
  }
}

// An even number of real numbers is transformed as half as many complex numbers, x[2 i] + sqrt(-1) x[2 i + 1]. With Z
// their transform, E and O those of the even and the odd numbers, and h = points / 2:
//   E[k] = (Z[k] + conj(Z[h - k])) / 2,  O[k] = (Z[k] - conj(Z[h - k])) / (2 sqrt(-1)),
//   X[k] = E[k] + exp(-2 pi sqrt(-1) k / points) O[k].
template <typename T>
void RealTransform<T>::Forward(int64_t lanes, const T* x, int64_t x_distance, std::complex<T>* y, int64_t y_distance,
                               T* work) const {
  const SplitNumbers<T> numbers = complex_.Numbers(lanes, work);
  const bool is_odd = points_ % 2 != 0;
  const int64_t count = complex_.points();
  for (int64_t l = 0; l < lanes; ++l) {
    const T* sequence = x + l * x_distance;
    for (int64_t i = 0; i < count; ++i) {
      numbers.re[i * lanes + l] = is_odd ? sequence[i] : sequence[2 * i];
      numbers.im[i * lanes + l] = is_odd ? T{0} : sequence[2 * i + 1];
    }
  }
  const SplitNumbers<T> z = complex_.Transform(lanes, /*is_inverse=*/false, work);
  for (int64_t k = 0; k < results(); ++k) {
    const T* re = z.re + k % count * lanes;
    const T* im = z.im + k % count * lanes;
    if (is_odd) {
      for (int64_t l = 0; l < lanes; ++l) y[l * y_distance + k] = {re[l], im[l]};
      continue;
    }
    const T* mirrored_re = z.re + (count - k) % count * lanes;
    const T* mirrored_im = z.im + (count - k) % count * lanes;
    const T wr = rotations_[k].real(), wi = rotations_[k].imag();
    for (int64_t l = 0; l < lanes; ++l) {
      const T er = re[l] + mirrored_re[l], ei = im[l] - mirrored_im[l];
      const T odd_r = im[l] + mirrored_im[l], odd_i = mirrored_re[l] - re[l];
      y[l * y_distance + k] = {T(0.5) * (er + (odd_r * wr - odd_i * wi)), T(0.5) * (ei + (odd_r * wi + odd_i * wr))};
    }
  }
}

// The inverse of the formulas above: Z[k] = E[k] + sqrt(-1) O[k].
template <typename T>
void RealTransform<T>::Inverse(int64_t lanes, const std::complex<T>* x, int64_t x_distance, T* y, int64_t y_distance,
                               T* work) const {
  const SplitNumbers<T> numbers = complex_.Numbers(lanes, work);
  const bool is_odd = points_ % 2 != 0;
  const int64_t count = complex_.points();
  for (int64_t l = 0; l < lanes; ++l) {
    const std::complex<T>* sequence = x + l * x_distance;
    // Number k of the input, without what must be ignored.
    const auto number = [&](int64_t k) {
      return k == 0 || (!is_odd && k == count) ? std::complex<T>(sequence[k].real(), 0) : sequence[k];
    };
    for (int64_t k = 0; k < count; ++k) {
      T re, im;
      if (is_odd) {
        const std::complex<T> value = 2 * k < count ? number(k) : std::conj(number(count - k));
        re = value.real();
        im = value.imag();
      } else {
        const std::complex<T> a = number(k), b = std::conj(number(count - k));
        const T dr = a.real() - b.real(), di = a.imag() - b.imag();
        const T wr = rotations_[k].real(), wi = -rotations_[k].imag();
        re = T(0.5) * (a.real() + b.real() - (dr * wi + di * wr));
        im = T(0.5) * (a.imag() + b.imag() + (dr * wr - di * wi));
      }
      numbers.re[k * lanes + l] = re;
      numbers.im[k * lanes + l] = im;
    }
  }
  const SplitNumbers<T> z = complex_.Transform(lanes, /*is_inverse=*/true, work);
  const T scale = 1 / static_cast<T>(count);
  for (int64_t l = 0; l < lanes; ++l) {
    T* sequence = y + l * y_distance;
    for (int64_t i = 0; i < count; ++i) {
      if (is_odd) {
        sequence[i] = z.re[i * lanes + l] * scale;
      } else {
        sequence[2 * i] = z.re[i * lanes + l] * scale;
        sequence[2 * i + 1] = z.im[i * lanes + l] * scale;
      }
    }
  }
}

template class ComplexTransform<float>;
template class ComplexTransform<double>;
template class RealTransform<float>;
template class RealTransform<double>;

}  // namespace permafrost
