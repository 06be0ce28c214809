// Conv2D and _FusedConv2D as a matrix product. The left matrix has one row per output pixel, with the input pixels
// under the window. The right matrix is the filter, [taps * input channels][output channels].
#include "runtime_check/kernels/convolution.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "runtime_check/kernels/elementwise.h"
#include "runtime_check/kernels/planes.h"
#include "runtime_check/kernels/prepare.h"
#include "runtime_check/kernels/stand_in.h"
#include "runtime_check/kernels/wide_elements.h"
#include "runtime_check/threads/cancellation.h"

namespace permafrost {
namespace {

// Returns true if rows collide in the L1 cache. At a distance of a multiple of 2 KB, rows share few sets of an 8-way
// cache of 32 KB, and the 14 rows of a tile do not fit.
bool RowsCollide(int64_t stride) { return stride % (2048 / sizeof(float)) == 0; }

// Packs the filter [taps_y][taps_x][group_inputs][output_channels], group after group.
void PackFilter(const Convolution& convolution, const float* filter, float* packed) {
  for (int64_t g = 0; g < convolution.groups; ++g) {
    Pack(*convolution.loops, convolution.matrix, filter + g * convolution.group_outputs, convolution.output_channels, 1,
         packed + g * convolution.matrix_size);
  }
}

// Code optimised for size omits special cases that only improve speed.
#ifdef __OPTIMIZE_SIZE__
constexpr bool kIsForSize = true;
#else
constexpr bool kIsForSize = false;
#endif

// Number of floats copied at once.
constexpr int64_t kRun = 8;

// Copies `count` floats. If `may_overrun`, may write up to kRun - 1 floats past them, which avoids a function call for
// the few floats of a three-channel image.
inline void CopyRuns(const float* from, int64_t count, bool may_overrun, float* to) {
  constexpr int64_t kMostRuns = 8;
  if (kIsForSize || !may_overrun || count > kMostRuns * kRun) {
    std::memcpy(to, from, count * sizeof(float));
    return;
  }
  for (int64_t i = 0; i < count; i += kRun) std::memcpy(to + i, from + i, kRun * sizeof(float));
}

// Writes the pixels under the window of output pixels [begin, begin + count), for one group of channels, to `rows`.
void GatherRows(const Convolution& convolution, const float* input, int64_t group, int64_t begin, int64_t count,
                float* rows) {
  const WindowAxis &y = convolution.window.y, &x = convolution.window.x;
  const int64_t channels = convolution.group_inputs;
  // Adjacent taps are contiguous in memory: one copy for all.
  const bool is_contiguous = x.dilation == 1 && convolution.groups == 1;
  // A copy may overrun if it stays inside the input and the rows: the next copies overwrite what it wrote too much.
  const int64_t last_pixel = convolution.batch * y.input * x.input - x.taps - kRun;
  const float* const end = rows + count * convolution.row_stride;
  int64_t column = begin % x.output, line = begin / x.output % y.output, image = begin / x.output / y.output;
  int64_t y_begin = 0, y_end = 0;
  for (int64_t r = 0; r < count; ++r, rows += convolution.row_stride) {
    if (kIsForSize || r == 0 || column == 0) y.TapsInside(line, &y_begin, &y_end);
    int64_t x_begin = 0, x_end = x.taps;
    if (kIsForSize || !x.IsInside(column)) x.TapsInside(column, &x_begin, &x_end);
    const int64_t before = x_begin * channels, after = (x.taps - x_end) * channels;
    float* to = rows;
    std::fill_n(to, y_begin * x.taps * channels, 0.f);
    to += y_begin * x.taps * channels;
    for (int64_t ty = y_begin; ty < y_end; ++ty) {
      const int64_t pixel = (image * y.input + y.First(line) + ty * y.dilation) * x.input + x.First(column);
      std::fill_n(to, before, 0.f);
      to += before;
      if (is_contiguous) {
        const int64_t floats = (x_end - x_begin) * channels;
        CopyRuns(input + (pixel + x_begin) * channels, floats, pixel < last_pixel && end - to >= floats + kRun, to);
        to += floats;
      } else {
        for (int64_t tx = x_begin; tx < x_end; ++tx, to += channels) {
          std::memcpy(to, input + (pixel + tx * x.dilation) * convolution.input_channels + group * channels,
                      channels * sizeof(float));
        }
      }
      std::fill_n(to, after, 0.f);
      to += after;
    }
    std::fill_n(to, (y.taps - y_end) * x.taps * channels, 0.f);
    if (++column == x.output) {
      column = 0;
      if (++line == y.output) {
        line = 0;
        ++image;
      }
    }
  }
}

// Returns true if the rows of most output pixels can be read in place: the taps of a line are contiguous, and those of
// the next output pixel are at a fixed distance. Gathering costs more than the product of a line with few terms.
bool ReadsLinesInPlace(const Convolution& convolution) {
  const WindowAxis& x = convolution.window.x;
  return !kIsForSize && convolution.groups == 1 && x.dilation == 1 && x.output >= 4 * convolution.loops->tile_rows &&
         !RowsCollide(x.stride * convolution.group_inputs);
}

// The product for output pixels [begin, begin + count). `rows` holds the rows that must be gathered.
class PixelProduct {
 public:
  PixelProduct(const Convolution& convolution, const float* input, int64_t group, const float* weights,
               int64_t panel_begin, int64_t panel_end, float* rows)
      : convolution_(convolution),
        input_(input),
        group_(group),
        weights_(weights),
        panel_begin_(panel_begin),
        panel_end_(panel_end),
        rows_(rows) {}

  // Computes gathered rows; `product` is that of pixel `begin`.
  void Gathered(int64_t begin, int64_t count, float* product) const {
    if (count <= 0) return;
    GatherRows(convolution_, input_, group_, begin, count, rows_);
    Multiply(*convolution_.loops, count, convolution_.matrix, rows_, convolution_.row_stride, weights_, product,
             convolution_.output_channels, panel_begin_, panel_end_);
  }

  // Computes rows in place, line by line. REQUIRES: convolution.reads_lines.
  void InPlace(int64_t begin, int64_t count, float* product) const {
    const WindowAxis &y = convolution_.window.y, &x = convolution_.window.x;
    int64_t inside_begin, inside_end;
    x.FullPositions(&inside_begin, &inside_end);
    for (int64_t end = begin + count; begin < end;) {
      const int64_t column = begin % x.output, line = begin / x.output % y.output, image = begin / x.output / y.output;
      const int64_t column_end = std::min(x.output, column + end - begin);
      int64_t from = std::clamp(inside_begin, column, column_end), to = std::clamp(inside_end, from, column_end);
      if (!y.IsInside(line)) from = to = column_end;
      const auto at = [&](int64_t c) { return product + (c - column) * convolution_.output_channels; };
      Gathered(begin, from - column, product);
      if (to > from) OfLine((image * y.input + y.First(line)) * x.input + x.First(from), to - from, at(from));
      Gathered(begin + to - column, column_end - to, at(to));
      product = at(column_end);
      begin += column_end - column;
    }
  }

 private:
  // Computes `count` output pixels of a line, the first of which has its first tap at `pixel`. Sums are bit-identical
  // to those of Multiply.
  void OfLine(int64_t pixel, int64_t count, float* product) const {
    const WindowAxis &y = convolution_.window.y, &x = convolution_.window.x;
    const int64_t channels = convolution_.group_inputs;
    for (int64_t ty = 0; ty < y.taps; ++ty) {
      MultiplyPart(*convolution_.loops, count, convolution_.matrix,
                   {ty * x.taps * channels, (ty + 1) * x.taps * channels},
                   input_ + (pixel + ty * y.dilation * x.input) * channels, x.stride * channels, weights_, product,
                   convolution_.output_channels, panel_begin_, panel_end_);
    }
  }

  const Convolution& convolution_;
  const float* const input_;
  const int64_t group_;
  const float* const weights_;
  const int64_t panel_begin_, panel_end_;
  float* const rows_;
};

}  // namespace

absl::StatusOr<Convolution> PrepareConvolutionOf(PrepareContext* context, const ImageLayout& layout, const Shape& image,
                                                 int filter_input, ScratchParts* parts) {
  PF_RETURN_IF_ERROR(RequireRank(context, filter_input, 4));
  const Shape& filter = context->input_shape(filter_input);
  Convolution convolution;
  convolution.filter_input = filter_input;
  convolution.loops = &BestInnerLoops();
  convolution.layout = layout;
  PF_ASSIGN_OR_RETURN(convolution.window, ReadWindow(context->node(), layout, {filter.dim(0), filter.dim(1)},
                                                     image.dim(layout.height), image.dim(layout.width)));
  convolution.batch = image.dim(0);
  convolution.input_channels = image.dim(layout.channel);
  convolution.group_inputs = filter.dim(2);
  convolution.output_channels = filter.dim(3);
  if (convolution.input_channels == 0 || convolution.group_inputs == 0 ||
      convolution.input_channels % convolution.group_inputs != 0) {
    return absl::InvalidArgumentError(absl::StrCat("the input has ", convolution.input_channels,
                                                   " channels, expected a positive multiple of the filter's ",
                                                   convolution.group_inputs));
  }
  convolution.groups = convolution.input_channels / convolution.group_inputs;
  if (convolution.output_channels % convolution.groups != 0) {
    return absl::InvalidArgumentError(absl::StrCat("the filter makes ", convolution.output_channels,
                                                   " channels, which is no multiple of the ", convolution.groups,
                                                   " groups of input channels"));
  }
  convolution.group_outputs = convolution.output_channels / convolution.groups;
  const WindowAxis &y = convolution.window.y, &x = convolution.window.x;
  PF_RETURN_IF_ERROR(
      SetCheckedShape(context, 0, layout.ShapeOf(convolution.batch, y.output, x.output, convolution.output_channels)));

  if (context->input_type(0) != DType::kFloat) {
    PF_ASSIGN_OR_RETURN(convolution.post_ops,
                        ReadPostOps(context, filter_input + 1, convolution.output_channels, parts));
    return convolution;
  }

  // The element count of the filter fits in int64, so this product does too.
  convolution.matrix = {y.taps * x.taps * convolution.group_inputs, convolution.group_outputs};
  PF_ASSIGN_OR_RETURN(convolution.matrix_size, convolution.matrix.Size(*convolution.loops));
  convolution.grid = DivideWork(*convolution.loops, convolution.num_rows(), convolution.matrix, context->num_threads());
  convolution.in_place = convolution.groups == 1 && y.taps == 1 && x.taps == 1 && y.stride == 1 && x.stride == 1 &&
                         y.output == y.input && x.output == x.input && !RowsCollide(convolution.input_channels);
  convolution.reads_lines = ReadsLinesInPlace(convolution);
  convolution.row_stride = convolution.matrix.depth + (RowsCollide(convolution.matrix.depth) ? 16 : 0);

  int64_t all_weights = 0;
  if (__builtin_mul_overflow(convolution.groups, convolution.matrix_size, &all_weights)) {
    return absl::InvalidArgumentError("the filter is too large");
  }
  PF_RETURN_IF_ERROR(convolution.weights.Take(
      context, filter_input, *convolution.loops, all_weights,
      [&] { return absl::StrCat("filter of ", convolution.groups, " groups"); },
      [&](const float* value, float* packed) { PackFilter(convolution, value, packed); }));
  if (convolution.weights.data() == nullptr) {
    PF_ASSIGN_OR_RETURN(convolution.weights_part, parts->Add(all_weights));
  }
  if (!convolution.in_place) {
    int64_t rows = 0;
    if (__builtin_mul_overflow(convolution.grid.rows_per_block, convolution.row_stride, &rows)) {
      return absl::InvalidArgumentError("the window is too large");
    }
    PF_ASSIGN_OR_RETURN(convolution.rows_part, parts->Add(rows, context->num_threads() * sizeof(float)));
  }
  if (layout.is_nchw()) {
    PF_ASSIGN_OR_RETURN(convolution.input_part, parts->Add(image.num_elements()));
    PF_ASSIGN_OR_RETURN(convolution.output_part,
                        parts->Add(convolution.num_rows(), convolution.output_channels * sizeof(float)));
  }
  PF_ASSIGN_OR_RETURN(convolution.post_ops, ReadPostOps(context, filter_input + 1, convolution.output_channels, parts));
  return convolution;
}

void Convolve(ComputeContext* context, const Convolution& convolution, const float* image) {
  const int64_t rows = convolution.num_rows();
  if (rows == 0 || convolution.output_channels == 0) return;
  const float* input = image;
  float* output = context->output<float>(0);
  const float* weights = convolution.weights.data();
  if (weights == nullptr) {
    float* packed = ScratchAt(context, convolution.weights_part);
    PackFilter(convolution, context->input<float>(convolution.filter_input), packed);
    weights = packed;
  }
  const int64_t input_pixels = convolution.window.y.input * convolution.window.x.input;
  const int64_t output_pixels = convolution.window.y.output * convolution.window.x.output;
  if (convolution.layout.is_nchw()) {
    float* pixels = ScratchAt(context, convolution.input_part);
    TransposeMatrices(context->threads(), convolution.batch, convolution.input_channels, input_pixels, input, pixels);
    input = pixels;
    output = ScratchAt(context, convolution.output_part);
  }

  const WorkGrid& grid = convolution.grid;
  const int64_t panels = convolution.matrix.NumPanels(*convolution.loops);
  const BoundPostOps post_ops(convolution.post_ops, context);
  float* gathered = ScratchAt(context, convolution.rows_part);
  ForEachPiece(context->threads(), convolution.groups * grid.num_pieces(), [&](int worker, int64_t piece) {
    const int64_t group = piece / grid.num_pieces();
    const int64_t row = piece % grid.num_pieces() / grid.panel_groups * grid.rows_per_block;
    const int64_t panel = piece % grid.panel_groups * grid.panels_per_group;
    const int64_t count = std::min(grid.rows_per_block, rows - row);
    const int64_t panel_end = std::min(panel + grid.panels_per_group, panels);
    float* product = output + row * convolution.output_channels + group * convolution.group_outputs;
    const float* const matrix = weights + group * convolution.matrix_size;
    if (convolution.in_place) {
      Multiply(*convolution.loops, count, convolution.matrix, input + row * convolution.input_channels,
               convolution.input_channels, matrix, product, convolution.output_channels, panel, panel_end);
    } else {
      const PixelProduct pixels(convolution, input, group, matrix, panel, panel_end,
                                gathered + worker * grid.rows_per_block * convolution.row_stride);
      if (!kIsForSize && convolution.reads_lines) {
        pixels.InPlace(row, count, product);
      } else {
        pixels.Gathered(row, count, product);
      }
    }
    if (!post_ops.is_empty()) {
      const int64_t first = panel * convolution.loops->panel_width;
      const int64_t end = std::min(panel_end * convolution.loops->panel_width, convolution.group_outputs);
      post_ops.Apply(count, group * convolution.group_outputs + first, end - first, product + first,
                     convolution.output_channels);
    }
  });

  if (convolution.layout.is_nchw()) {
    TransposeMatrices(context->threads(), convolution.batch, output_pixels, convolution.output_channels, output,
                      context->output<float>(0));
  }
}

namespace {

struct ConvolutionState : public KernelState {
  Convolution convolution;
};

absl::Status PrepareConvolution(PrepareContext* context) {
  PF_RETURN_IF_ERROR(RequireRank(context, 0, 4));
  auto state = std::make_unique<ConvolutionState>();
  ScratchParts parts;
  PF_ASSIGN_OR_RETURN(const ImageLayout layout, ReadImageLayout(context->node()));
  PF_ASSIGN_OR_RETURN(state->convolution, PrepareConvolutionOf(context, layout, context->input_shape(0), 1, &parts));
  parts.Request(context);
  context->SetState(std::move(state));
  return absl::OkStatus();
}

absl::Status PrepareFused(PrepareContext* context) {
  PF_ASSIGN_OR_RETURN(const std::string format, StringAttr(context->node(), "filter_format"));
  if (format != "HWIO") {
    return absl::UnimplementedError(absl::StrCat("attr 'filter_format' is '", format, "', expected 'HWIO'"));
  }
  PF_ASSIGN_OR_RETURN(const int64_t host_args, IntAttr(context->node(), "num_host_args"));
  if (host_args != 0) {
    return absl::UnimplementedError(absl::StrCat("attr 'num_host_args' is ", host_args, ", expected 0"));
  }
  return PrepareConvolution(context);
}

// Computes element by element, for types without a matrix product. Integers wrap around.
template <typename T>
void ConvolvePlain(ComputeContext* context, const Convolution& convolution, const T* input) {
  if (context->output_shape(0).num_elements() == 0) return;
  const WindowAxis &y = convolution.window.y, &x = convolution.window.x;
  const ImageStrides in(convolution.layout, y.input, x.input, convolution.input_channels);
  const ImageStrides out(convolution.layout, y.output, x.output, convolution.output_channels);
  const T* filter = context->input<T>(convolution.filter_input);
  const BoundPostOps post_ops(convolution.post_ops, context);
  T* output = context->output<T>(0);
  context->threads().ParallelFor(convolution.num_rows(), 1, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end && !RunIsCancelled(); ++row) {
      const int64_t column = row % x.output, line = row / x.output % y.output, image = row / x.output / y.output;
      int64_t y_begin, y_end, x_begin, x_end;
      y.TapsInside(line, &y_begin, &y_end);
      x.TapsInside(column, &x_begin, &x_end);
      for (int64_t o = 0; o < convolution.output_channels; ++o) {
        Wrapping<T> sum = 0;
        for (int64_t ty = y_begin; ty < y_end; ++ty) {
          for (int64_t tx = x_begin; tx < x_end; ++tx) {
            const T* pixel = input + image * in.batch + (y.First(line) + ty * y.dilation) * in.y +
                             (x.First(column) + tx * x.dilation) * in.x +
                             o / convolution.group_outputs * convolution.group_inputs * in.channel;
            const T* weights = filter + (ty * x.taps + tx) * convolution.group_inputs * convolution.output_channels + o;
            for (int64_t c = 0; c < convolution.group_inputs; ++c) {
              sum += static_cast<Wrapping<T>>(pixel[c * in.channel]) *
                     static_cast<Wrapping<T>>(weights[c * convolution.output_channels]);
            }
          }
        }
        if constexpr (std::is_same_v<T, double>) {
          if (!post_ops.is_empty()) sum = post_ops.Of(o, sum);
        }
        output[image * out.batch + line * out.y + column * out.x + o * out.channel] = static_cast<T>(sum);
      }
    }
  });
}

absl::Status ComputeConvolution(ComputeContext* context) {
  const Convolution& convolution = context->state<ConvolutionState>().convolution;
  const bool is_plain = DispatchOn<double, int32_t>(context->input_at(0).dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    ConvolvePlain(context, convolution, context->input<T>(0));
  });
  if (!is_plain) Convolve(context, convolution, context->input<float>(0));
  return absl::OkStatus();
}

}  // namespace

void Convolve(ComputeContext* context, const Convolution& convolution, const double* input) {
  ConvolvePlain(context, convolution, input);
}

DEFINE_KERNEL(Conv2D) {
  return Kernel(
             "output[n,y,x,o] = sum over dy,dx,i of input[n, y*stride+dy*dilation-pad, x*..., i] * filter[dy,dx,i,o]")
      .Types<float, double, Half, BFloat16, int32_t>("T")
      .Prepare(PrepareWidened<PrepareConvolution>)
      .Compute(ComputeWidened<ComputeConvolution>);
}

DEFINE_KERNEL(_FusedConv2D) {
  return Kernel(
             "Conv2D followed by the ops in fused_ops: a bias or a batch norm with parameters from args, then an "
             "activation")
      .Types<float, double, Half, BFloat16>("T")
      .Prepare(PrepareWidened<PrepareFused>)
      .Compute(ComputeWidened<ComputeConvolution>);
}

}  // namespace permafrost
