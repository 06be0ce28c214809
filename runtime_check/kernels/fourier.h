// Discrete Fourier transforms of several sequences at once: X[k] = sum of x[i] exp(-2 pi sqrt(-1) i k / n) for a
// sequence of n numbers. The inverse is scaled by 1 / n.
//
//   const RealTransform<float> transform(512);                     // In Prepare.
//   transform.Forward(lanes, x, x_distance, y, y_distance, work);  // In Compute; lanes sequences from x to y.
//
// Immutable after construction; thread-safe if each thread has its own work memory.
#ifndef PERMAFROST_RUNTIME_CHECK_KERNELS_FOURIER_H_
#define PERMAFROST_RUNTIME_CHECK_KERNELS_FOURIER_H_

#include <complex>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"

namespace permafrost {

// Number of sequences that are best transformed together: those of a vector register.
inline constexpr int64_t kFourierLanes = 8;

// Returns InvalidArgument unless transforms of `points` numbers are supported: 0 to 2^24 points, or 2^22 if a prime
// factor is large. Tables of factors grow with the number of points.
absl::Status CheckFourierPoints(int64_t points);

// Where the numbers of several sequences are: number i of sequence l is first[i * step + l * distance].
template <typename Number>
struct Sequences {
  Number* first = nullptr;
  int64_t step = 1;
  int64_t distance = 0;
};

// Real and imaginary parts in arrays of their own: number i of sequence l is at [i * lanes + l].
template <typename T>
struct SplitNumbers {
  T* re = nullptr;
  T* im = nullptr;
};

// Transforms of complex numbers. T is float or double.
template <typename T>
class ComplexTransform {
 public:
  // REQUIRES: points >= 1 and CheckFourierPoints(points).
  explicit ComplexTransform(int64_t points);
  ~ComplexTransform();

  int64_t points() const { return points_; }
  // Returns the number of elements that `work` needs per sequence.
  int64_t work_size() const { return 4 * room_; }

  // Transforms `lanes` sequences. `y` may be `x`.
  void Forward(int64_t lanes, Sequences<const std::complex<T>> x, Sequences<std::complex<T>> y, T* work) const;
  void Inverse(int64_t lanes, Sequences<const std::complex<T>> x, Sequences<std::complex<T>> y, T* work) const;

  // For sequences in other forms: the caller fills Numbers(), then calls Transform(), which returns the results. Both
  // are parts of `work`. The inverse is not scaled.
  SplitNumbers<T> Numbers(int64_t lanes, T* work) const { return {work, work + room_ * lanes}; }
  SplitNumbers<T> Transform(int64_t lanes, bool is_inverse, T* work) const;

 private:
  // One step of the transform: `groups` independent transforms of `radix` points for each of the results of the steps
  // before it.
  struct Step {
    int64_t radix = 0;
    int64_t groups = 0;
    // Factors of each group: radix - 1 complex numbers, real part first.
    std::vector<T> factors;
  };
  // Tables for a length with a large prime factor.
  struct Chirp;

  // Transforms `x`, using `other` as memory for intermediate results. Returns the one that holds the results.
  SplitNumbers<T> RunSteps(int64_t lanes, SplitNumbers<T> x, SplitNumbers<T> other) const;
  SplitNumbers<T> RunChirp(int64_t lanes, SplitNumbers<T> x, SplitNumbers<T> other) const;
  void Run(int64_t lanes, bool is_inverse, Sequences<const std::complex<T>> x, Sequences<std::complex<T>> y,
           T* work) const;

  int64_t points_;
  int64_t room_;  // Numbers per sequence in each of the four arrays of the work memory.
  std::vector<Step> steps_;
  std::unique_ptr<const Chirp> chirp_;  // Null if all prime factors are small.
};

// Transforms between real numbers and the first points / 2 + 1 of the results, which determine the others.
template <typename T>
class RealTransform {
 public:
  // REQUIRES: points >= 1 and CheckFourierPoints(points).
  explicit RealTransform(int64_t points);

  int64_t points() const { return points_; }
  int64_t results() const { return points_ / 2 + 1; }
  int64_t work_size() const { return complex_.work_size(); }

  // Transforms `lanes` sequences; the numbers of sequence l start at x + l * x_distance, its results at
  // y + l * y_distance.
  void Forward(int64_t lanes, const T* x, int64_t x_distance, std::complex<T>* y, int64_t y_distance, T* work) const;
  // Ignores the imaginary parts of x[0] and, if `points` is even, x[points / 2].
  void Inverse(int64_t lanes, const std::complex<T>* x, int64_t x_distance, T* y, int64_t y_distance, T* work) const;

 private:
  int64_t points_;
  // If `points` is even, it transforms half as many complex numbers.
  ComplexTransform<T> complex_;
  std::vector<std::complex<T>> rotations_;  // exp(-2 pi sqrt(-1) k / points); empty if `points` is odd.
};

extern template class ComplexTransform<float>;
extern template class ComplexTransform<double>;
extern template class RealTransform<float>;
extern template class RealTransform<double>;

}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_KERNELS_FOURIER_H_
