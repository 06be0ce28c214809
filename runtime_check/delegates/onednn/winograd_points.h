// The evaluation points of Winograd forms: zero, pairs +p and -p, and infinity.
#ifndef PERMAFROST_RUNTIME_CHECK_DELEGATES_ONEDNN_WINOGRAD_POINTS_H_
#define PERMAFROST_RUNTIME_CHECK_DELEGATES_ONEDNN_WINOGRAD_POINTS_H_

namespace permafrost {
namespace onednn {

constexpr int kMostWinogradPairs = 3;

// The points of forms with 2 * kPairs + 2 points, in this order: zero, +p and -p for each pair, infinity. Of pairs
// whose powers are exact in floats, these have the smallest error on random filters, in rms of the results: 9e-7 for
// F(4x4, 3x3) and F(2, 7), 1.0e-6 for F(2x2, 5x5), 8e-7 for F(6, 3). With the usual 1 and 2, F(4x4, 3x3) has 1.9e-6.
template <int kPairs>
struct WinogradPoints;
template <>
struct WinogradPoints<0> {
  static constexpr double kPair[1] = {0};
};
template <>
struct WinogradPoints<1> {
  static constexpr double kPair[1] = {1};
};
template <>
struct WinogradPoints<2> {
  static constexpr double kPair[2] = {0.625, 1.5};
};
template <>
struct WinogradPoints<3> {
  static constexpr double kPair[3] = {0.5, 1, 2};
};

// Coefficients of a polynomial in x^2, lowest power first.
struct EvenPolynomial {
  double of[kMostWinogradPairs + 1] = {};
};

// Returns the product of x^2 - p^2 over all pairs except number `without`.
template <int kPairs>
constexpr EvenPolynomial ProductOfPairs(int without) {
  EvenPolynomial product;
  product.of[0] = 1;
  for (int i = 0; i < kPairs; ++i) {
    if (i == without) continue;
    const double square = WinogradPoints<kPairs>::kPair[i] * WinogradPoints<kPairs>::kPair[i];
    for (int k = kMostWinogradPairs; k >= 0; --k) {
      product.of[k] = (k > 0 ? product.of[k - 1] : 0) - square * product.of[k];
    }
  }
  return product;
}

constexpr double PowerOf(double x, int exponent) {
  double power = 1;
  for (int i = 0; i < exponent; ++i) power *= x;
  return power;
}

// Returns the matrix element that transforms a tap of a filter to a point.
template <int kPairs>
constexpr double FilterFactor(int point, int tap, int taps) {
  constexpr int kLast = 2 * kPairs + 1;
  if (point == kLast) return tap == taps - 1 ? 1 : 0;
  const auto at = [](int i) { return i == 0 ? 0 : (i % 2 == 1 ? 1 : -1) * WinogradPoints<kPairs>::kPair[(i - 1) / 2]; };
  double divisor = 1;
  for (int i = 0; i < kLast; ++i) divisor *= i == point ? 1 : at(point) - at(i);
  return PowerOf(at(point), tap) / divisor;
}

}  // namespace onednn
}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_DELEGATES_ONEDNN_WINOGRAD_POINTS_H_
