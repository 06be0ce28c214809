// Discrete Fourier transforms along the last dimension, or the last two.
#include <algorithm>
#include <complex>
#include <limits>
#include <memory>
#include <unsupported/Eigen/FFT>
#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "runtime_check/kernel.h"
#include "runtime_check/kernels/prepare.h"
#include "runtime_check/kernels/scratch.h"
#include "runtime_check/threads/cancellation.h"

namespace permafrost {
namespace {

// Limits the memory for twiddle factors, which grows with the length, and the time for lengths with large prime
// factors, which is quadratic.
constexpr int64_t kMostPoints = 1 << 24;

struct SpectrumState : KernelState {
  int64_t rows = 0;
  int64_t points = 0;   // Length of the transform.
  int64_t given = 0;    // Length of a row of the input.
  int64_t results = 0;  // Length of a row of the output.
};

absl::Status CheckPoints(int64_t points) {
  if (points >= 0 && points <= kMostPoints) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("the transform has ", points, " points, expected 0 to ", kMostPoints));
}

absl::Status Finish(PrepareContext* context, std::unique_ptr<SpectrumState> state) {
  PF_RETURN_IF_ERROR(CheckPoints(state->points));
  Shape output = context->input_shape(0);
  const int last = output.rank() - 1;
  output.set_dim(last, state->results);
  PF_RETURN_IF_ERROR(SetCheckedShape(context, 0, output));
  state->rows = output.num_elements() == 0 ? 0 : ProductOfDims(output, 0, last);
  // Scratch memory for one row, truncated or zero-padded, and one row of results, in the widest type.
  context->RequestScratch(static_cast<size_t>(state->points + 2) * 2 * sizeof(std::complex<double>));
  context->SetState(std::move(state));
  return absl::OkStatus();
}

absl::Status RequireRows(PrepareContext* context) {
  if (context->input_shape(0).rank() >= 1) return absl::OkStatus();
  return absl::InvalidArgumentError("the input is a scalar, expected a rank of at least 1");
}

absl::Status PrepareComplex(PrepareContext* context) {
  PF_RETURN_IF_ERROR(RequireRows(context));
  auto state = std::make_unique<SpectrumState>();
  const Shape& input = context->input_shape(0);
  state->points = state->given = state->results = input.dim(input.rank() - 1);
  return Finish(context, std::move(state));
}

absl::Status PrepareReal(PrepareContext* context, bool is_inverse) {
  PF_RETURN_IF_ERROR(RequireRows(context));
  PF_ASSIGN_OR_RETURN(const std::vector<int64_t> length, IntegerVectorInput(context, 1));
  if (length.size() != 1) {
    return absl::InvalidArgumentError(absl::StrCat("fft_length has ", length.size(), " elements, expected 1"));
  }
  auto state = std::make_unique<SpectrumState>();
  const Shape& input = context->input_shape(0);
  state->points = length[0];
  state->given = input.dim(input.rank() - 1);
  const int64_t used = is_inverse ? state->points / 2 + 1 : state->points;
  if (state->points > 0 && state->given < used) {
    return absl::InvalidArgumentError(absl::StrCat("the last dimension of the input is ", state->given,
                                                   ", expected at least ", used, " for ", state->points, " points"));
  }
  state->results = is_inverse ? state->points : state->points == 0 ? 0 : state->points / 2 + 1;
  return Finish(context, std::move(state));
}

absl::Status PrepareRfft(PrepareContext* context) { return PrepareReal(context, /*is_inverse=*/false); }
absl::Status PrepareIrfft(PrepareContext* context) { return PrepareReal(context, /*is_inverse=*/true); }

template <typename T>
void Assign(const T& from, T* to) {
  *to = from;
}
template <typename T>
void Assign(const T& from, std::complex<T>* to) {
  *to = from;
}
template <typename T>
void Assign(const std::complex<T>& from, T* to) {
  *to = from.real();
}

// Calls transform(row of From, row of To). The results are in scratch memory, since they may need more room than the
// output has. A transform may overwrite the `used` elements of the input.
template <typename From, typename To, typename F>
void ForRows(ComputeContext* context, int64_t used, F transform) {
  const auto& state = context->state<SpectrumState>();
  From* row = reinterpret_cast<From*>(context->scratch());
  To* result = reinterpret_cast<To*>(context->scratch() + (state.points + 2) * sizeof(std::complex<double>));
  for (int64_t i = 0; i < state.rows && !RunIsCancelled(); ++i) {
    const From* x = context->input<From>(0) + i * state.given;
    std::copy(x, x + used, row);
    if (state.points == 1) {  // The transform of one number is the number; the library does not support this.
      Assign(row[0], result);
    } else {
      transform(row, result);
    }
    std::copy(result, result + state.results, context->output<To>(0) + i * state.results);
  }
}

template <bool is_inverse>
absl::Status ComputeFft(ComputeContext* context) {
  const auto& state = context->state<SpectrumState>();
  DispatchOn<std::complex<float>, std::complex<double>>(context->input_at(0).dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    Eigen::FFT<typename T::value_type> fft;
    ForRows<T, T>(context, state.points, [&](const T* row, T* result) {
      is_inverse ? fft.inv(result, row, state.points) : fft.fwd(result, row, state.points);
    });
  });
  return absl::OkStatus();
}

absl::Status ComputeRfft(ComputeContext* context) {
  const auto& state = context->state<SpectrumState>();
  DispatchOn<float, double>(context->input_at(0).dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    Eigen::FFT<T> fft;
    fft.SetFlag(Eigen::FFT<T>::HalfSpectrum);
    ForRows<T, std::complex<T>>(context, state.points,
                                [&](const T* row, std::complex<T>* result) { fft.fwd(result, row, state.points); });
  });
  return absl::OkStatus();
}

absl::Status ComputeIrfft(ComputeContext* context) {
  const auto& state = context->state<SpectrumState>();
  DispatchOn<float, double>(context->output_at(0).dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    Eigen::FFT<T> fft;
    fft.SetFlag(Eigen::FFT<T>::HalfSpectrum);
    ForRows<std::complex<T>, T>(context, state.points / 2 + 1,
                                [&](const std::complex<T>* row, T* result) { fft.inv(result, row, state.points); });
  });
  return absl::OkStatus();
}

// --- Along two dimensions --------------------------------------------------------------------------------------------

// Images of [lines, columns] complex numbers in the scratch memory. A real image has `points` numbers per line.
struct PlaneState : KernelState {
  int64_t images = 0;
  int64_t lines = 0, points = 0;  // Size of the transform.
  int64_t columns = 0;            // Complex numbers per line: points, or points / 2 + 1.
  int64_t given_lines = 0, given = 0;
};

// Returns the number of results for `points` real numbers; the others follow by symmetry.
int64_t HalfSpectrum(int64_t points) { return points == 0 ? 0 : points / 2 + 1; }

enum class PlaneKind { kComplex, kFromReal, kToReal };

template <PlaneKind kind>
absl::Status PreparePlane(PrepareContext* context) {
  const Shape& input = context->input_shape(0);
  const int rank = input.rank();
  if (rank < 2) {
    return absl::InvalidArgumentError(
        absl::StrCat("the input has the shape ", input.ToString(), ", expected a rank of at least 2"));
  }
  auto state = std::make_unique<PlaneState>();
  state->lines = state->given_lines = input.dim(rank - 2);
  state->columns = state->points = state->given = input.dim(rank - 1);
  if (kind != PlaneKind::kComplex) {
    PF_ASSIGN_OR_RETURN(const std::vector<int64_t> length, IntegerVectorInput(context, 1));
    if (length.size() != 2) {
      return absl::InvalidArgumentError(absl::StrCat("fft_length has ", length.size(), " elements, expected 2"));
    }
    state->lines = length[0];
    state->points = length[1];
    PF_RETURN_IF_ERROR(CheckPoints(state->points));
    state->columns = HalfSpectrum(state->points);
  }
  PF_RETURN_IF_ERROR(CheckPoints(state->lines));
  PF_RETURN_IF_ERROR(CheckPoints(state->points));
  const int64_t used = kind == PlaneKind::kFromReal ? state->points : state->columns;
  const bool has_results = state->lines > 0 && state->points > 0 && ProductOfDims(input, 0, rank - 2) > 0;
  if (has_results && (state->given_lines < state->lines || state->given < used)) {
    return absl::InvalidArgumentError(absl::StrCat("the input has the shape ", input.ToString(), ", expected at least ",
                                                   state->lines, " by ", used, " for ", state->lines, " by ",
                                                   state->points, " points"));
  }
  Shape output = input;
  output.set_dim(rank - 2, state->lines);
  output.set_dim(rank - 1, kind == PlaneKind::kToReal ? state->points : state->columns);
  PF_RETURN_IF_ERROR(SetCheckedShape(context, 0, output));
  state->images = output.num_elements() == 0 || input.num_elements() == 0 ? 0 : ProductOfDims(output, 0, rank - 2);
  // Scratch memory for one image, and one line before and after its transform, in the widest type.
  const int64_t line = std::max(state->lines, state->points) + 2;
  ScratchParts parts;
  PF_RETURN_IF_ERROR(parts.Add(state->columns * state->lines + 2 * line, sizeof(std::complex<double>)).status());
  parts.Request(context);
  context->SetState(std::move(state));
  return absl::OkStatus();
}

template <typename T>
struct Plane {
  using Complex = std::complex<T>;

  explicit Plane(ComputeContext* context)
      : state(context->state<PlaneState>()),
        numbers(reinterpret_cast<Complex*>(context->scratch())),
        line(numbers + state.lines * state.columns),
        result(line + std::max(state.lines, state.points) + 2) {
    real_fft.SetFlag(Eigen::FFT<T>::HalfSpectrum);
  }

  // Computes, in `result`, the transform of the first `count` numbers of `line`. The transform of one number is the
  // number; the library does not support this.
  void TransformLine(int64_t count, bool is_inverse) {
    if (count == 1) {
      result[0] = line[0];
    } else if (is_inverse) {
      fft.inv(result, line, count);
    } else {
      fft.fwd(result, line, count);
    }
  }

  void TransformColumns(bool is_inverse) {
    for (int64_t c = 0; c < state.columns && !RunIsCancelled(); ++c) {
      for (int64_t y = 0; y < state.lines; ++y) line[y] = numbers[y * state.columns + c];
      TransformLine(state.lines, is_inverse);
      for (int64_t y = 0; y < state.lines; ++y) numbers[y * state.columns + c] = result[y];
    }
  }

  const PlaneState& state;
  Complex *numbers, *line, *result;
  Eigen::FFT<T> fft, real_fft;
};

template <bool is_inverse>
absl::Status ComputeComplexPlane(ComputeContext* context) {
  DispatchOn<std::complex<float>, std::complex<double>>(context->input_at(0).dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    Plane<typename T::value_type> plane(context);
    const PlaneState& state = plane.state;
    const int64_t count = state.lines * state.columns;
    for (int64_t i = 0; i < state.images && !RunIsCancelled(); ++i) {
      const T* x = context->input<T>(0) + i * count;
      for (int64_t y = 0; y < state.lines; ++y) {
        std::copy_n(x + y * state.columns, state.columns, plane.line);
        plane.TransformLine(state.columns, is_inverse);
        std::copy_n(plane.result, state.columns, plane.numbers + y * state.columns);
      }
      plane.TransformColumns(is_inverse);
      std::copy_n(plane.numbers, count, context->output<T>(0) + i * count);
    }
  });
  return absl::OkStatus();
}

absl::Status ComputePlaneFromReal(ComputeContext* context) {
  DispatchOn<float, double>(context->input_at(0).dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    Plane<T> plane(context);
    const PlaneState& state = plane.state;
    T* row = reinterpret_cast<T*>(plane.line);
    for (int64_t i = 0; i < state.images && !RunIsCancelled(); ++i) {
      for (int64_t y = 0; y < state.lines; ++y) {
        std::copy_n(context->input<T>(0) + (i * state.given_lines + y) * state.given, state.points, row);
        if (state.points == 1) {
          plane.result[0] = row[0];
        } else {
          plane.real_fft.fwd(plane.result, row, state.points);
        }
        std::copy_n(plane.result, state.columns, plane.numbers + y * state.columns);
      }
      plane.TransformColumns(/*is_inverse=*/false);
      const int64_t count = state.lines * state.columns;
      std::copy_n(plane.numbers, count, context->output<std::complex<T>>(0) + i * count);
    }
  });
  return absl::OkStatus();
}

absl::Status ComputePlaneToReal(ComputeContext* context) {
  DispatchOn<float, double>(context->output_at(0).dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    Plane<T> plane(context);
    const PlaneState& state = plane.state;
    for (int64_t i = 0; i < state.images && !RunIsCancelled(); ++i) {
      const std::complex<T>* x = context->input<std::complex<T>>(0) + i * state.given_lines * state.given;
      for (int64_t y = 0; y < state.lines; ++y) {
        std::copy_n(x + y * state.given, state.columns, plane.numbers + y * state.columns);
      }
      plane.TransformColumns(/*is_inverse=*/true);
      for (int64_t y = 0; y < state.lines; ++y) {
        std::copy_n(plane.numbers + y * state.columns, state.columns, plane.line);
        T* row = reinterpret_cast<T*>(plane.result);
        if (state.points == 1) {
          row[0] = plane.line[0].real();
        } else {
          plane.real_fft.inv(row, plane.line, state.points);
        }
        std::copy_n(row, state.points, context->output<T>(0) + (i * state.lines + y) * state.points);
      }
    }
  });
  return absl::OkStatus();
}

}  // namespace

DEFINE_KERNEL(FFT) {
  return Kernel("the discrete Fourier transform of the last dimension")
      .Types<std::complex<float>, std::complex<double>>("Tcomplex")
      .Prepare(PrepareComplex)
      .Compute(ComputeFft<false>);
}

DEFINE_KERNEL(IFFT) {
  return Kernel("the inverse discrete Fourier transform of the last dimension")
      .Types<std::complex<float>, std::complex<double>>("Tcomplex")
      .Prepare(PrepareComplex)
      .Compute(ComputeFft<true>);
}

DEFINE_KERNEL(RFFT) {
  return Kernel("the discrete Fourier transform of fft_length real numbers: its first fft_length / 2 + 1 values")
      .Types<float, double>("Treal")
      .Prepare(PrepareRfft)
      .Compute(ComputeRfft);
}

DEFINE_KERNEL(IRFFT) {
  return Kernel("the inverse of RFFT: fft_length real numbers from fft_length / 2 + 1 complex values")
      .Types<float, double>("Treal")
      .Prepare(PrepareIrfft)
      .Compute(ComputeIrfft);
}

DEFINE_KERNEL(FFT2D) {
  return Kernel("the discrete Fourier transform of the last two dimensions")
      .Types<std::complex<float>, std::complex<double>>("Tcomplex")
      .Prepare(PreparePlane<PlaneKind::kComplex>)
      .Compute(ComputeComplexPlane<false>);
}

DEFINE_KERNEL(IFFT2D) {
  return Kernel("the inverse discrete Fourier transform of the last two dimensions")
      .Types<std::complex<float>, std::complex<double>>("Tcomplex")
      .Prepare(PreparePlane<PlaneKind::kComplex>)
      .Compute(ComputeComplexPlane<true>);
}

DEFINE_KERNEL(RFFT2D) {
  return Kernel("the two-dimensional Fourier transform of real numbers: its first fft_length[1] / 2 + 1 columns")
      .Types<float, double>("Treal")
      .Prepare(PreparePlane<PlaneKind::kFromReal>)
      .Compute(ComputePlaneFromReal);
}

DEFINE_KERNEL(IRFFT2D) {
  return Kernel("the inverse of RFFT2D: real numbers from fft_length[1] / 2 + 1 columns of complex values")
      .Types<float, double>("Treal")
      .Prepare(PreparePlane<PlaneKind::kToReal>)
      .Compute(ComputePlaneToReal);
}

}  // namespace permafrost
