// Discrete Fourier transforms along the last dimension, or the last two.
#include <algorithm>
#include <complex>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "runtime_check/kernel.h"
#include "runtime_check/kernels/fourier.h"
#include "runtime_check/kernels/gemm.h"
#include "runtime_check/kernels/prepare.h"
#include "runtime_check/kernels/scratch.h"
#include "runtime_check/threads/cancellation.h"

namespace permafrost {
namespace {

enum class SpectrumKind { kComplex, kFromReal, kToReal };

// The transforms of one precision; those that the node does not need are absent.
template <typename T>
struct Transforms {
  std::optional<RealTransform<T>> real_rows;
  std::optional<ComplexTransform<T>> rows;
  std::optional<ComplexTransform<T>> columns;  // Of images with more than one line.
};

// Images of [lines, columns] complex numbers. A real image has `points` numbers per line. A transform along one
// dimension has images of one line.
struct SpectrumState : KernelState {
  int64_t images = 0;
  int64_t lines = 1, points = 0;  // Size of the transform.
  int64_t columns = 0;            // Complex numbers per line: points, or points / 2 + 1.
  int64_t given_lines = 1, given = 0;
  int64_t lanes = 1;      // Sequences that are transformed together.
  int64_t work_part = 0;  // Offset in the scratch memory; a part for each thread.
  int64_t work_size = 0;  // Elements per thread.
  int64_t plane_part = 0;
  Transforms<float> floats;
  Transforms<double> doubles;

  template <typename T>
  const Transforms<T>& transforms() const {
    if constexpr (std::is_same_v<T, float>) {
      return floats;
    } else {
      return doubles;
    }
  }
};

// Returns the number of results for `points` real numbers; the others follow by symmetry.
int64_t HalfSpectrum(int64_t points) { return points == 0 ? 0 : points / 2 + 1; }

// Creates the transforms, and requests scratch memory.
template <typename T>
absl::Status PlanTransforms(PrepareContext* context, SpectrumKind kind, SpectrumState* state,
                            Transforms<T>* transforms) {
  int64_t per_lane = 0;
  if (kind == SpectrumKind::kComplex) {
    transforms->rows.emplace(state->points);
    per_lane = transforms->rows->work_size();
  } else {
    transforms->real_rows.emplace(state->points);
    per_lane = transforms->real_rows->work_size();
  }
  if (state->lines > 1) {
    transforms->columns.emplace(state->lines);
    per_lane = std::max(per_lane, transforms->columns->work_size());
  }
  // The images of a transform along one dimension are lines that follow each other.
  const int64_t lines = state->lines == 1 ? state->images : state->lines;
  const int64_t sequences = std::max(lines, state->lines == 1 ? 0 : state->columns);
  constexpr int64_t kMostWorkBytes = 1 << 20;  // Of a thread, so that it stays in the second-level cache.
  const bool is_long = per_lane * kFourierLanes * int64_t{sizeof(T)} > kMostWorkBytes;
  state->lanes = is_long ? 1 : std::min(kFourierLanes, sequences);
  state->work_size = per_lane * state->lanes;
  const int64_t groups = (std::max(sequences, state->images * state->lines) + state->lanes - 1) / state->lanes;
  const int64_t threads = std::min<int64_t>(groups, context->num_threads());
  ScratchParts parts;
  PF_ASSIGN_OR_RETURN(state->work_part, parts.Add(state->work_size * threads, sizeof(T)));
  if (kind == SpectrumKind::kToReal && state->lines > 1) {
    PF_ASSIGN_OR_RETURN(state->plane_part, parts.Add(state->lines * state->columns, sizeof(std::complex<T>)));
  }
  parts.Request(context);
  return absl::OkStatus();
}

// Prepares a transform along the last `rank` dimensions, one or two.
absl::Status PrepareTransform(PrepareContext* context, SpectrumKind kind, int rank) {
  const Shape& input = context->input_shape(0);
  if (input.rank() < rank) {
    return absl::InvalidArgumentError(
        absl::StrCat("the input has the shape ", input.ToString(), ", expected a rank of at least ", rank));
  }
  auto state = std::make_unique<SpectrumState>();
  const int last = input.rank() - 1;
  if (rank == 2) state->lines = state->given_lines = input.dim(last - 1);
  state->columns = state->points = state->given = input.dim(last);
  if (kind != SpectrumKind::kComplex) {
    PF_ASSIGN_OR_RETURN(const std::vector<int64_t> length, IntegerVectorInput(context, 1));
    if (length.size() != static_cast<size_t>(rank)) {
      return absl::InvalidArgumentError(absl::StrCat("fft_length has ", length.size(), " elements, expected ", rank));
    }
    if (rank == 2) state->lines = length[0];
    state->points = length.back();
  }
  PF_RETURN_IF_ERROR(CheckFourierPoints(state->lines));
  PF_RETURN_IF_ERROR(CheckFourierPoints(state->points));
  if (kind != SpectrumKind::kComplex) state->columns = HalfSpectrum(state->points);
  const int64_t used = kind == SpectrumKind::kFromReal ? state->points : state->columns;
  const bool has_results =
      state->lines > 0 && state->points > 0 && (rank == 1 || ProductOfDims(input, 0, last - 1) > 0);
  if (has_results && (state->given_lines < state->lines || state->given < used)) {
    return absl::InvalidArgumentError(
        rank == 1 ? absl::StrCat("the last dimension of the input is ", state->given, ", expected at least ", used,
                                 " for ", state->points, " points")
                  : absl::StrCat("the input has the shape ", input.ToString(), ", expected at least ", state->lines,
                                 " by ", used, " for ", state->lines, " by ", state->points, " points"));
  }
  Shape output = input;
  if (rank == 2) output.set_dim(last - 1, state->lines);
  output.set_dim(last, kind == SpectrumKind::kToReal ? state->points : state->columns);
  PF_RETURN_IF_ERROR(SetCheckedShape(context, 0, output));
  const bool is_empty = output.num_elements() == 0;
  state->images = is_empty ? 0 : ProductOfDims(output, 0, input.rank() - rank);
  if (!is_empty) {
    const DType real = kind == SpectrumKind::kToReal ? context->output_type(0) : context->input_type(0);
    const bool is_double = real == DType::kDouble || real == DType::kComplex128;
    PF_RETURN_IF_ERROR(is_double ? PlanTransforms(context, kind, state.get(), &state->doubles)
                                 : PlanTransforms(context, kind, state.get(), &state->floats));
  }
  context->SetState(std::move(state));
  return absl::OkStatus();
}

template <SpectrumKind kind, int rank>
absl::Status Prepare(PrepareContext* context) {
  return PrepareTransform(context, kind, rank);
}

// Work memory for one thread.
template <typename T>
T* WorkOf(ComputeContext* context, int worker) {
  const auto& state = context->state<SpectrumState>();
  return reinterpret_cast<T*>(context->scratch() + state.work_part) + worker * state.work_size;
}

// Calls transform(first, count, work) for groups of `sequences` sequences, on all threads.
template <typename T, typename F>
void ForGroups(ComputeContext* context, int64_t sequences, F transform) {
  const int64_t lanes = context->state<SpectrumState>().lanes;
  const int64_t groups = (sequences + lanes - 1) / lanes;
  ForEachPiece(context->threads(), groups, [&](int worker, int64_t group) {
    if (RunIsCancelled()) return;
    const int64_t first = group * lanes;
    transform(first, std::min(lanes, sequences - first), WorkOf<T>(context, worker));
  });
}

// Calls transform(image, line, count, work) for groups of lines.
template <typename T, typename F>
void ForLines(ComputeContext* context, F transform) {
  const auto& state = context->state<SpectrumState>();
  if (state.lines == state.given_lines) {  // The lines of all images follow each other.
    ForGroups<T>(context, state.images * state.lines,
                 [&](int64_t first, int64_t count, T* work) { transform(0, first, count, work); });
    return;
  }
  for (int64_t i = 0; i < state.images; ++i) {
    ForGroups<T>(context, state.lines,
                 [&](int64_t first, int64_t count, T* work) { transform(i, first, count, work); });
  }
}

// Transforms the columns of an image of complex numbers with `row` numbers per line to an image with state.columns.
template <typename T>
void TransformColumns(ComputeContext* context, bool is_inverse, const std::complex<T>* x, int64_t row,
                      std::complex<T>* y) {
  const auto& state = context->state<SpectrumState>();
  const ComplexTransform<T>& columns = *state.transforms<T>().columns;
  ForGroups<T>(context, state.columns, [&](int64_t first, int64_t count, T* work) {
    const Sequences<const std::complex<T>> from = {x + first, row, 1};
    const Sequences<std::complex<T>> to = {y + first, state.columns, 1};
    is_inverse ? columns.Inverse(count, from, to, work) : columns.Forward(count, from, to, work);
  });
}

template <typename T>
void TransformColumnsOfOutput(ComputeContext* context, bool is_inverse) {
  const auto& state = context->state<SpectrumState>();
  if (state.lines == 1) return;
  for (int64_t i = 0; i < state.images && !RunIsCancelled(); ++i) {
    std::complex<T>* image = context->output<std::complex<T>>(0) + i * state.lines * state.columns;
    TransformColumns<T>(context, is_inverse, image, state.columns, image);
  }
}

template <bool is_inverse>
absl::Status ComputeComplex(ComputeContext* context) {
  const auto& state = context->state<SpectrumState>();
  if (state.images == 0) return absl::OkStatus();
  DispatchOn<std::complex<float>, std::complex<double>>(context->input_type(0), [&](auto tag) {
    using Number = typename decltype(tag)::type;
    using T = typename Number::value_type;
    const Number* x = context->input<Number>(0);
    Number* y = context->output<Number>(0);
    const ComplexTransform<T>& rows = *state.transforms<T>().rows;
    ForLines<T>(context, [&](int64_t, int64_t line, int64_t count, T* work) {
      const int64_t start = line * state.points;
      const Sequences<const Number> from = {x + start, 1, state.points};
      const Sequences<Number> to = {y + start, 1, state.points};
      is_inverse ? rows.Inverse(count, from, to, work) : rows.Forward(count, from, to, work);
    });
    TransformColumnsOfOutput<T>(context, is_inverse);
  });
  return absl::OkStatus();
}

absl::Status ComputeFromReal(ComputeContext* context) {
  const auto& state = context->state<SpectrumState>();
  if (state.images == 0) return absl::OkStatus();
  DispatchOn<float, double>(context->input_type(0), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* x = context->input<T>(0);
    std::complex<T>* y = context->output<std::complex<T>>(0);
    const RealTransform<T>& rows = *state.transforms<T>().real_rows;
    ForLines<T>(context, [&](int64_t image, int64_t line, int64_t count, T* work) {
      rows.Forward(count, x + (image * state.given_lines + line) * state.given, state.given,
                   y + (image * state.lines + line) * state.columns, state.columns, work);
    });
    TransformColumnsOfOutput<T>(context, /*is_inverse=*/false);
  });
  return absl::OkStatus();
}

absl::Status ComputeToReal(ComputeContext* context) {
  const auto& state = context->state<SpectrumState>();
  if (state.images == 0) return absl::OkStatus();
  DispatchOn<float, double>(context->output_type(0), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const std::complex<T>* x = context->input<std::complex<T>>(0);
    T* y = context->output<T>(0);
    const RealTransform<T>& rows = *state.transforms<T>().real_rows;
    if (state.lines == 1) {
      ForLines<T>(context, [&](int64_t image, int64_t line, int64_t count, T* work) {
        rows.Inverse(count, x + (image * state.given_lines + line) * state.given, state.given,
                     y + (image + line) * state.points, state.points, work);
      });
      return;
    }
    auto* plane = reinterpret_cast<std::complex<T>*>(context->scratch() + state.plane_part);
    for (int64_t i = 0; i < state.images && !RunIsCancelled(); ++i) {
      TransformColumns<T>(context, /*is_inverse=*/true, x + i * state.given_lines * state.given, state.given, plane);
      ForGroups<T>(context, state.lines, [&](int64_t line, int64_t count, T* work) {
        rows.Inverse(count, plane + line * state.columns, state.columns, y + (i * state.lines + line) * state.points,
                     state.points, work);
      });
    }
  });
  return absl::OkStatus();
}

}  // namespace

DEFINE_KERNEL(FFT) {
  return Kernel("the discrete Fourier transform of the last dimension")
      .Types<std::complex<float>, std::complex<double>>("Tcomplex")
      .Prepare(Prepare<SpectrumKind::kComplex, 1>)
      .Compute(ComputeComplex<false>);
}

DEFINE_KERNEL(IFFT) {
  return Kernel("the inverse discrete Fourier transform of the last dimension")
      .Types<std::complex<float>, std::complex<double>>("Tcomplex")
      .Prepare(Prepare<SpectrumKind::kComplex, 1>)
      .Compute(ComputeComplex<true>);
}

DEFINE_KERNEL(RFFT) {
  return Kernel("the discrete Fourier transform of fft_length real numbers: its first fft_length / 2 + 1 values")
      .Types<float, double>("Treal")
      .Prepare(Prepare<SpectrumKind::kFromReal, 1>)
      .Compute(ComputeFromReal);
}

DEFINE_KERNEL(IRFFT) {
  return Kernel("the inverse of RFFT: fft_length real numbers from fft_length / 2 + 1 complex values")
      .Types<float, double>("Treal")
      .Prepare(Prepare<SpectrumKind::kToReal, 1>)
      .Compute(ComputeToReal);
}

DEFINE_KERNEL(FFT2D) {
  return Kernel("the discrete Fourier transform of the last two dimensions")
      .Types<std::complex<float>, std::complex<double>>("Tcomplex")
      .Prepare(Prepare<SpectrumKind::kComplex, 2>)
      .Compute(ComputeComplex<false>);
}

DEFINE_KERNEL(IFFT2D) {
  return Kernel("the inverse discrete Fourier transform of the last two dimensions")
      .Types<std::complex<float>, std::complex<double>>("Tcomplex")
      .Prepare(Prepare<SpectrumKind::kComplex, 2>)
      .Compute(ComputeComplex<true>);
}

DEFINE_KERNEL(RFFT2D) {
  return Kernel("the two-dimensional Fourier transform of real numbers: its first fft_length[1] / 2 + 1 columns")
      .Types<float, double>("Treal")
      .Prepare(Prepare<SpectrumKind::kFromReal, 2>)
      .Compute(ComputeFromReal);
}

DEFINE_KERNEL(IRFFT2D) {
  return Kernel("the inverse of RFFT2D: real numbers from fft_length[1] / 2 + 1 columns of complex values")
      .Types<float, double>("Treal")
      .Prepare(Prepare<SpectrumKind::kToReal, 2>)
      .Compute(ComputeToReal);
}

}  // namespace permafrost
