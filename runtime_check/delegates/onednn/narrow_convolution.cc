// Computes each output as a few scalar products of contiguous runs of floats. A run is all taps of a row with all their
// channels.
#include "runtime_check/delegates/onednn/narrow_convolution.h"

#include <omp.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime_check/delegates/onednn/loops.h"

namespace permafrost {
namespace onednn {
namespace {

constexpr int64_t kMostChannels = 4;
// Shorter products do not benefit from vectors.
constexpr int64_t kShortestProduct = 8;
// Number of neighbouring outputs that are computed at once.
constexpr int64_t kMoves = 64;
// oneDNN generates code for each product. This costs as much as some ten thousand runs of a product with this number of
// multiplications.
constexpr int64_t kFewMultiplications = 1024;
// Minimum number of multiplications per thread.
constexpr int64_t kWorthAThread = 65536;

// [H, W, I, O] to [O, H, W, I], scaled; also the columns of a matrix one after the other.
std::vector<float> OutputsFirst(const WeightedOp& op) {
  const std::vector<float> given = FloatsOf(op.weights);
  const size_t outputs = static_cast<size_t>(op.output_channels());
  const size_t each = given.size() / outputs;
  const bool is_given_so = op.parsed.kind == NodeKind::kMatMul && op.parsed.transpose_b;
  std::vector<float> weights(given.size());
  for (size_t o = 0; o < outputs; ++o) {
    for (size_t i = 0; i < each; ++i) {
      weights[o * each + i] =
          given[is_given_so ? o * each + i : i * outputs + o] * (op.scale.empty() ? 1.0f : op.scale[o]);
    }
  }
  return weights;
}

// Returns the window; a matrix product is a one-pixel window on a line of rows.
WindowGeometry WindowOf(const ParsedNode& parsed) {
  if (parsed.kind != NodeKind::kMatMul) return parsed.window;
  WindowGeometry window;
  window.batch = 1;
  window.input_channels = parsed.depth;
  window.output_channels = parsed.columns;
  window.y.input = window.y.output = 1;
  window.x.input = window.x.output = parsed.rows;
  return window;
}

class NarrowConvolution final : public Piece {
 public:
  NarrowConvolution(const WeightedOp& op, int num_threads)
      : window_(WindowOf(op.parsed)),
        weights_(OutputsFirst(op)),
        bias_(op.bias),
        kind_(op.parsed.kind == NodeKind::kMatMul ? "matmul" : "convolution") {
    bias_.resize(static_cast<size_t>(window_.output_channels), 0.0f);
    const int64_t work = window_.batch * window_.y.output * window_.x.output * static_cast<int64_t>(weights_.size());
    num_threads_ = work < kWorthAThread ? 1 : num_threads;
  }

  absl::Status Run(const RunContext& context) override {
    const int64_t height = window_.y.output;
#pragma omp parallel for num_threads(num_threads_) if (num_threads_ > 1)
    for (int64_t line = 0; line < window_.batch * height; ++line) RunLine(context, line / height, line % height);
    return absl::OkStatus();
  }

  int64_t constant_bytes() const override {
    return static_cast<int64_t>((weights_.size() + bias_.size()) * sizeof(float));
  }
  std::string Describe() const override { return absl::StrCat(name, ": narrow ", kind_, " (loops)"); }

 private:
  void RunLine(const RunContext& context, int64_t image, int64_t y) const {
    const WindowAxis &down = window_.y, &across = window_.x;
    const int64_t inputs = window_.input_channels, outputs = window_.output_channels;
    const float* from = context.at<float>(reads[0]) + image * down.input * across.input * inputs;
    float* to = context.at<float>(writes[0]) + (image * down.output + y) * across.output * outputs;
    int64_t first_y, last_y;
    down.TapsInside(y, &first_y, &last_y);
    const int64_t rows = last_y - first_y;
    const int64_t row_step = down.dilation * across.input * inputs, weight_step = across.taps * inputs;
    const float* top = from + (down.First(y) + first_y * down.dilation) * across.input * inputs;
    // Computes the output pixels [x, x + moves), which all have the same taps inside the image.
    const auto run = [&](int64_t x, int64_t moves) {
      int64_t first_x, last_x;
      across.TapsInside(x, &first_x, &last_x);
      const Block moving{top + (across.First(x) + first_x) * inputs, row_step};
      for (int64_t o = 0; o < outputs; ++o) {
        const Block fixed{weights_.data() + ((o * down.taps + first_y) * across.taps + first_x) * inputs, weight_step};
        float results[kMoves];
        MovingProducts(moves, across.stride * inputs, rows, (last_x - first_x) * inputs, moving, fixed, results);
        for (int64_t m = 0; m < moves; ++m) to[(x + m) * outputs + o] = results[m] + bias_[o];
      }
    };
    int64_t first_full, last_full;
    across.FullPositions(&first_full, &last_full);
    for (int64_t x = 0; x < across.output;) {
      const int64_t moves = x >= first_full && x < last_full ? std::min(kMoves, last_full - x) : 1;
      run(x, moves);
      x += moves;
    }
  }

  const WindowGeometry window_;
  std::vector<float> weights_, bias_;
  const absl::string_view kind_;
  int num_threads_;
};

// A transposed convolution: each line of input pixels adds its products to the lines of outputs that it reaches.
class NarrowTransposed final : public Piece {
 public:
  // The weights have the layout [H, W, O, I].
  NarrowTransposed(const WeightedOp& op, int num_threads)
      : window_(op.parsed.window), weights_(FloatsOf(op.weights)), bias_(op.bias) {
    bias_.resize(static_cast<size_t>(window_.output_channels), 0.0f);
    const int64_t pixels = window_.batch * window_.y.output * window_.x.output;
    num_threads_ = pixels * static_cast<int64_t>(weights_.size()) < kWorthAThread ? 1 : num_threads;
    products_.resize(static_cast<size_t>(num_threads_ * window_.x.output));
    if (op.scale.empty()) return;
    const auto inputs = static_cast<size_t>(window_.input_channels), outputs = bias_.size();
    for (size_t i = 0; i < weights_.size(); ++i) weights_[i] *= op.scale[i / inputs % outputs];
  }

  absl::Status Run(const RunContext& context) override {
    const WindowAxis &down = window_.y, &across = window_.x;
    const int64_t inputs = window_.input_channels, outputs = window_.output_channels;
    const float* pixels = context.at<float>(reads[0]);
    float* image = context.at<float>(writes[0]);
    const int64_t results = down.input * across.input;
    for (int64_t n = 0; n < window_.batch; ++n, image += results * outputs) {
      for (int64_t i = 0; i < results; ++i) std::copy(bias_.begin(), bias_.end(), image + i * outputs);
      // Lines that do not share outputs can be added concurrently.
      const int threads = down.taps <= down.stride && down.dilation == 1 ? num_threads_ : 1;
#pragma omp parallel for num_threads(threads) if (threads > 1)
      for (int64_t y = 0; y < down.output; ++y) {
        float* products = products_.data() + omp_get_thread_num() * across.output;
        int64_t first_y, last_y;
        down.TapsInside(y, &first_y, &last_y);
        for (int64_t ty = first_y; ty < last_y; ++ty) {
          float* row = image + (down.First(y) + ty * down.dilation) * across.input * outputs;
          for (int64_t tx = 0; tx < across.taps; ++tx) {
            AddTap(pixels + y * across.output * inputs, ty, tx, products, row);
          }
        }
      }
      pixels += down.output * across.output * inputs;
    }
    return absl::OkStatus();
  }

  int64_t constant_bytes() const override {
    return static_cast<int64_t>((weights_.size() + bias_.size()) * sizeof(float));
  }
  std::string Describe() const override { return absl::StrCat(name, ": narrow transposed convolution (loops)"); }

 private:
  // Adds the contribution of one tap and a line of input pixels to a line of outputs.
  void AddTap(const float* pixels, int64_t ty, int64_t tx, float* products, float* row) const {
    const WindowAxis& across = window_.x;
    const int64_t inputs = window_.input_channels, outputs = window_.output_channels;
    for (int64_t o = 0; o < outputs; ++o) {
      const Block fixed{weights_.data() + ((ty * across.taps + tx) * outputs + o) * inputs, 0};
      MovingProducts(across.output, inputs, 1, inputs, {pixels, 0}, fixed, products);
      for (int64_t x = 0; x < across.output; ++x) {
        const int64_t column = across.First(x) + tx * across.dilation;
        if (column >= 0 && column < across.input) row[column * outputs + o] += products[x];
      }
    }
  }

  const WindowGeometry window_;
  std::vector<float> weights_, bias_;
  int num_threads_;
  std::vector<float> products_;  // For one line of pixels per thread.
};

}  // namespace

bool IsNarrow(const ParsedNode& parsed) {
  if (parsed.kind == NodeKind::kMatMul) {
    // oneDNN computes a product with one column only through its GEMM, which takes milliseconds to set up.
    if (parsed.columns <= kMostChannels && parsed.depth >= kShortestProduct) return true;
    return parsed.rows * parsed.depth * parsed.columns <= kFewMultiplications;
  }
  const WindowGeometry& window = parsed.window;
  if (window.groups != 1 || window.output_channels > kMostChannels) return false;
  if (parsed.kind == NodeKind::kTransposedConvolution) return window.input_channels >= kShortestProduct;
  return parsed.kind == NodeKind::kConvolution && window.x.dilation == 1 &&
         window.x.taps * window.input_channels >= kShortestProduct;
}

std::unique_ptr<Piece> MakeNarrow(const WeightedOp& op, int num_threads) {
  std::unique_ptr<Piece> piece;
  if (op.parsed.kind == NodeKind::kTransposedConvolution) {
    piece = std::make_unique<NarrowTransposed>(op, num_threads);
  } else {
    piece = std::make_unique<NarrowConvolution>(op, num_threads);
  }
  piece->name = op.name;
  piece->reads = {op.input};
  piece->writes = {op.output};
  return piece;
}

}  // namespace onednn
}  // namespace permafrost
