// Computes blocks of tiles: the tiles' pixels are transformed, one matrix product for each point sums over the
// channels, and the sums are transformed to results, which pass through the post-steps on the way to memory.
#include "runtime_check/delegates/onednn/winograd_convolution.h"

#include <omp.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "runtime_check/delegates/onednn/loop_nest.h"
#include "runtime_check/delegates/onednn/narrow_convolution.h"
#include "runtime_check/delegates/onednn/packing.h"
#include "runtime_check/kernels/inner_loops.h"

namespace permafrost {
namespace onednn {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr int64_t kFloatBytes = sizeof(float);

int64_t RoundUp(int64_t count, int64_t to) { return (count + to - 1) / to * to; }
int64_t Blocks(int64_t count, int64_t each) { return (count + each - 1) / each; }

// Returns the size of the second-level cache, which is 1 MiB if the system does not tell it.
int64_t SecondLevelCacheBytes() {
  static const int64_t bytes = [] {
    const long found = sysconf(_SC_LEVEL2_CACHE_SIZE);
    return found > 0 ? static_cast<int64_t>(found) : int64_t{1} << 20;
  }();
  return bytes;
}

// --- Choice of the form ----------------------------------------------------------------------------------------------

// The largest error of a sample, as a share of the largest result. Outputs of a model may differ by 1e-4 of the largest
// one; a layer may use a quarter of it, since samples do not show the worst case.
constexpr double kMostError = 2.5e-5;
// Number of output channels that a sample computes directly: those with the largest filters, which have the largest
// errors.
constexpr int kSampledChannels = 16;

// The forms that are considered for taps of a window.
std::vector<WinogradForm> FormsOf(const WindowGeometry& window) {
  std::vector<WinogradForm> forms;
  const auto add = [&](WinogradAxis y, WinogradAxis x) { forms.push_back({y, x}); };
  const int64_t y = window.y.taps, x = window.x.taps;
  if (y == 3 && x == 3) add({4, 3}, {4, 3}), add({2, 3}, {2, 3});
  if (y == 5 && x == 5) add({2, 5}, {2, 5});
  const auto add_line = [&](int64_t taps, auto add_axis) {
    for (const int outputs : {2, 4, 6}) {
      // More points have greater errors; 8 are the most.
      if (outputs + taps - 1 <= 8) add_axis(WinogradAxis{outputs, static_cast<int>(taps)});
    }
  };
  const auto is_line = [](int64_t taps) { return taps == 3 || taps == 5 || taps == 7; };
  if (y == 1 && is_line(x)) add_line(x, [&](WinogradAxis axis) { add({}, axis); });
  if (x == 1 && is_line(y)) add_line(y, [&](WinogradAxis axis) { add(axis, {}); });
  return forms;
}

std::string TextOf(const WinogradForm& form) {
  if (form.y.taps == 1) return absl::StrCat("F(1x", form.x.outputs, ", 1x", form.x.taps, ")");
  if (form.x.taps == 1) return absl::StrCat("F(", form.y.outputs, "x1, ", form.y.taps, "x1)");
  return absl::StrCat("F(", form.y.outputs, "x", form.x.outputs, ", ", form.y.taps, "x", form.x.taps, ")");
}

// Costs in products of the direct form, fitted to about 60 forms of 30 layers on an EPYC with AVX-512, whose weights
// were not in a cache. Of 54 estimates for 16 and more channels, about 43 are within 20 % of the measured share
// (winograd_layers prints both).
constexpr double kDirectWeight = 8.6;  // A weight that is read.
constexpr double kDirectNumber = 39;   // A number of the source or the result.
constexpr double kProduct = 1.03;      // A product of transformed numbers.
constexpr double kSourceValue = 37.6;  // A transformed number of the source.
constexpr double kSum = 6.5;           // A sum that is transformed.
constexpr double kFilter = 7.3;        // A number of the transformed filters that is read by the first block.
constexpr double kFilterAgain = 0.6;   // The same for another block.
constexpr double kStart = 64e3;        // A run,
constexpr double kShare = 250e3;       // with several threads.
// A form is used up to this share of the direct form's time: less may be an error of the estimate.
constexpr double kMostShare = 0.9;

// The division of a convolution into tiles, and of the work among threads.
struct Tiling {
  int64_t points, rows, columns, tiles;  // `rows` x `columns` tiles for each image.
  int64_t block_tiles, blocks;
  int64_t source_channels;  // Input channels in whole vectors.
  int64_t width;            // Channels of a panel of the transformed filter.
  int64_t panels, last_width;
  int num_threads;
  // True if the threads share one block, and each computes some of the panels. So each reads only a part of the
  // filters.
  bool is_by_panels = false;
  double cost;  // See the constants above.

  Tiling(const WinogradForm& form, const WindowGeometry& window, int threads) {
    const InnerLoops& loops = BestInnerLoops();
    points = form.points();
    rows = Blocks(window.y.output, form.y.outputs);
    columns = Blocks(window.x.output, form.x.outputs);
    tiles = std::max<int64_t>(1, window.batch * rows * columns);
    source_channels = RoundUp(window.input_channels, loops.vector_floats);
    width = loops.panel_width;
    panels = Blocks(window.output_channels, width);
    last_width = RoundUp(window.output_channels - (panels - 1) * width, loops.vector_floats);
    // Half of the cache for the transformed pixels leaves room for the sums and for the filters that pass.
    const int64_t tile_bytes = points * source_channels * kFloatBytes;
    const int64_t most = std::max<int64_t>(loops.tile_rows, SecondLevelCacheBytes() / 2 / tile_bytes);
    const int64_t fewest_blocks = Blocks(tiles, most);
    SetBlocks(window, RoundUp(fewest_blocks, std::min<int64_t>(threads, tiles)), threads);
    if (threads == 1 || fewest_blocks > 1 || panels < threads) return;
    const Tiling by_tiles = *this;
    is_by_panels = true;
    SetBlocks(window, 1, threads);
    if (by_tiles.cost <= cost) *this = by_tiles;
  }
  int64_t padded_outputs() const { return (panels - 1) * width + last_width; }
  int64_t filter_floats(const WindowGeometry& window) const {
    return points * window.input_channels * padded_outputs();
  }
  // Steps from one point to the next, in floats. The additional cache line keeps the points of a tile in different sets
  // of the first-level cache.
  int64_t source_point_step() const { return block_tiles * source_channels + 16; }
  int64_t sum_point_step() const { return block_tiles * width + 16; }

 private:
  void SetBlocks(const WindowGeometry& window, int64_t wanted, int threads) {
    block_tiles = Blocks(tiles, wanted);
    blocks = Blocks(tiles, block_tiles);
    num_threads = static_cast<int>(std::min<int64_t>(threads, is_by_panels ? panels : blocks));
    const auto count = static_cast<double>(tiles * points);
    const auto outputs = static_cast<double>(padded_outputs());
    const auto filters = static_cast<double>(filter_floats(window));
    const double products = count * static_cast<double>(window.input_channels) * outputs;
    // The thread with the most work.
    const int64_t parts = is_by_panels ? panels : blocks;
    const double part = static_cast<double>(Blocks(parts, num_threads)) / static_cast<double>(parts);
    cost = part * (kProduct * products + kSum * count * outputs) +
           (is_by_panels ? 1.0 / num_threads : part) * kSourceValue * count * static_cast<double>(source_channels) +
           // Threads that read the same filters find a part of them in the shared cache.
           (is_by_panels ? part : (1.0 + part) / 2) * kFilter * filters +
           static_cast<double>(Blocks(blocks, num_threads) - 1) * kFilterAgain * filters + kStart +
           (num_threads > 1 ? kShare : 0);
  }
};

// --- The piece -------------------------------------------------------------------------------------------------------

// Memory for floats, aligned for vectors.
std::shared_ptr<std::vector<float>> AlignedFloats(int64_t count, float** data) {
  auto memory = std::make_shared<std::vector<float>>(static_cast<size_t>(count) + 16);
  const auto address = reinterpret_cast<uintptr_t>(memory->data());
  *data = memory->data() + (64 - address % 64) % 64 / kFloatBytes;
  return memory;
}

class Winograd final : public Piece {
 public:
  Winograd(const WinogradChoice& choice, const WindowGeometry& window, int num_threads)
      : form_(choice.form),
        share_(choice.share),
        window_(window),
        tiling_(choice.form, window, num_threads),
        loops_(FindWinogradLoops(choice.form)) {}

  absl::Status Init(const WeightedOp& op, const StorageTypes& types, int num_threads, PackedWeights* packed) {
    name = op.name;
    reads = {op.input};
    writes = {op.output};
    bias_ = op.bias;
    bias_.resize(static_cast<size_t>(tiling_.padded_outputs()), 0.0f);
    PF_RETURN_IF_ERROR(PackFilters(op, packed));
    TakeSteps(op, types, num_threads);
    direct_op_ = std::make_unique<WeightedOp>(op);
    direct_op_->post_steps.clear();
    types_ = types;
    direct_threads_ = num_threads;
    return absl::OkStatus();
  }

  absl::Status Run(const RunContext& context) override {
    if (context.HasNonFinite()) return RunDirect(context);
    std::atomic<bool> is_finite = true;
    if (tiling_.num_threads > 1) {
#pragma omp parallel num_threads(tiling_.num_threads)
      if (!RunPart(context, omp_get_thread_num(), omp_get_num_threads())) is_finite = false;
    } else {
      is_finite = RunPart(context, 0, 1);
    }
    if (!is_finite) {
      // NaN and infinity would spread to all results of their tile.
      context.NoteNonFinite();
      return RunDirect(context);
    }
    return rest_ == nullptr ? absl::OkStatus() : rest_->Run(context);
  }

  int64_t scratch_bytes() const override {
    const int64_t own = ScratchFloats() * kFloatBytes;
    const int64_t of_rest = rest_ == nullptr ? 0 : rest_->scratch_bytes();
    return std::max({own, of_rest, all_ == nullptr ? 0 : all_->scratch_bytes()});
  }
  int64_t constant_bytes() const override {
    return static_cast<int64_t>((is_packed_ ? 0 : tiling_.filter_floats(window_)) + bias_.size()) * kFloatBytes;
  }
  std::string Describe() const override {
    return absl::StrCat(name, ": convolution", description_, " (winograd ", TextOf(form_), " ", BestInnerLoops().name,
                        ", estimated at ", std::lround(share_ * 100), " % of direct)",
                        is_packed_ ? ", packed before" : "");
  }

 private:
  // Scratch memory: the transformed pixels of each block that is computed at the same time; for each thread the sums of
  // a panel, and a tile that extends past the image, between zeros.
  int64_t ValueFloats() const { return tiling_.points * tiling_.source_point_step(); }
  int64_t ThreadFloats() const {
    return tiling_.points * tiling_.sum_point_step() + RoundUp(tiling_.points * window_.input_channels, 16);
  }
  int64_t ScratchFloats() const {
    return (tiling_.is_by_panels ? 1 : tiling_.num_threads) * ValueFloats() + tiling_.num_threads * ThreadFloats();
  }

  // Does a thread's part of the work. Returns false if a sum is not finite.
  bool RunPart(const RunContext& context, int64_t thread, int64_t team) const {
    float* const scratch = reinterpret_cast<float*>(context.scratch);
    const int64_t blocks_at_once = tiling_.is_by_panels ? 1 : tiling_.num_threads;
    float* const sums = scratch + blocks_at_once * ValueFloats() + thread * ThreadFloats();
    float* const edge = sums + tiling_.points * tiling_.sum_point_step();
    bool is_finite = true;
    if (tiling_.is_by_panels) {
      TransformTiles(context, 0, tiling_.tiles * thread / team, tiling_.tiles * (thread + 1) / team, edge, scratch);
#pragma omp barrier
      for (int64_t panel = thread; panel < tiling_.panels; panel += team) {
        is_finite = RunPanel(context, panel, 0, tiling_.tiles, scratch, sums) && is_finite;
      }
      return is_finite;
    }
    float* const values = scratch + thread * ValueFloats();
    for (int64_t block = thread; block < tiling_.blocks; block += team) {
      const int64_t first = block * tiling_.block_tiles;
      const int64_t last = std::min(first + tiling_.block_tiles, tiling_.tiles);
      TransformTiles(context, first, first, last, edge, values);
      for (int64_t panel = 0; panel < tiling_.panels; ++panel) {
        is_finite = RunPanel(context, panel, first, last, values, sums) && is_finite;
      }
    }
    return is_finite;
  }

  // Transforms the tiles from `begin` to `end` of the block that starts with tile `first`.
  void TransformTiles(const RunContext& context, int64_t first, int64_t begin, int64_t end, float* edge,
                      float* values) const {
    for (int64_t tile = begin; tile < end; ++tile) {
      TransformTile(context.at<float>(reads[0]), tile, edge, values + (tile - first) * tiling_.source_channels);
    }
  }

  bool RunPanel(const RunContext& context, int64_t panel, int64_t first, int64_t last, const float* values,
                float* sums) const {
    Multiply(panel, last - first, values, sums);
    bool is_finite = true;
    for (int64_t tile = first; tile < last; ++tile) {
      is_finite = WriteTile(context, panel, tile, sums + (tile - first) * WidthOf(panel)) && is_finite;
    }
    return is_finite;
  }

  int64_t WidthOf(int64_t panel) const { return panel + 1 == tiling_.panels ? tiling_.last_width : tiling_.width; }

  void TransformTile(const float* images, int64_t tile, float* edge, float* values) const {
    const WindowAxis &down = window_.y, &across = window_.x;
    const int64_t channels = window_.input_channels, line = across.input * channels;
    const int64_t image = tile / (tiling_.rows * tiling_.columns);
    const int64_t y = tile / tiling_.columns % tiling_.rows * form_.y.outputs - down.pad_before;
    const int64_t x = tile % tiling_.columns * form_.x.outputs - across.pad_before;
    const int64_t height = form_.y.points(), width = form_.x.points();
    const float* pixels = images + image * down.input * line;
    WinogradSource source;
    source.channels = channels;
    source.values = values;
    source.point_step = tiling_.source_point_step();
    if (y >= 0 && x >= 0 && y + height <= down.input && x + width <= across.input) {
      source.pixels = pixels + y * line + x * channels;
      source.row_step = line;
      source.pixel_step = channels;
      return loops_->transform_source(source);
    }
    const int64_t first = std::max<int64_t>(0, -x), last = std::min(width, across.input - x);
    for (int64_t row = 0; row < height; ++row) {
      float* const to = edge + row * width * channels;
      if (y + row < 0 || y + row >= down.input || first >= last) {
        std::fill(to, to + width * channels, 0.0f);
        continue;
      }
      std::fill(to, to + first * channels, 0.0f);
      std::memcpy(to + first * channels, pixels + (y + row) * line + (x + first) * channels,
                  static_cast<size_t>((last - first) * channels * kFloatBytes));
      std::fill(to + last * channels, to + width * channels, 0.0f);
    }
    source.pixels = edge;
    source.row_step = width * channels;
    source.pixel_step = channels;
    loops_->transform_source(source);
  }

  void Multiply(int64_t panel, int64_t count, const float* values, float* sums) const {
    const InnerLoops& loops = BestInnerLoops();
    const int64_t channels = window_.input_channels, width = WidthOf(panel);
    const float* filter = filters_ + panel * tiling_.points * channels * tiling_.width;
    for (int64_t point = 0; point < tiling_.points; ++point) {
      loops.multiply_panel(count, width, channels, values + point * tiling_.source_point_step(),
                           tiling_.source_channels, filter + point * channels * width,
                           sums + point * tiling_.sum_point_step(), width, /*accumulate=*/false);
    }
  }

  bool WriteTile(const RunContext& context, int64_t panel, int64_t tile, const float* sums) const {
    const int64_t outputs = window_.output_channels, first = panel * tiling_.width;
    const int64_t image = tile / (tiling_.rows * tiling_.columns);
    const int64_t y = tile / tiling_.columns % tiling_.rows * form_.y.outputs;
    const int64_t x = tile % tiling_.columns * form_.x.outputs;
    const int64_t offset = ((image * window_.y.output + y) * window_.x.output + x) * outputs + first;
    WinogradTarget target;
    target.sums = sums;
    target.point_step = tiling_.sum_point_step();
    target.channels = std::min(tiling_.width, outputs - first);
    target.bias = bias_.data() + first;
    target.slopes = slopes_.empty() ? nullptr : slopes_.data() + first;
    target.addends = addends_ < 0 ? nullptr : context.at<float>(addends_) + offset;
    target.least = least_;
    target.most = most_;
    target.results = context.at<float>(writes[0]) + offset;
    target.row_step = window_.x.output * outputs;
    target.pixel_step = outputs;
    target.rows = std::min<int64_t>(form_.y.outputs, window_.y.output - y);
    target.columns = std::min<int64_t>(form_.x.outputs, window_.x.output - x);
    return loops_->transform_target(target);
  }

  // Takes the leading steps that the transform applies; the others become a loop nest.
  void TakeSteps(const WeightedOp& op, const StorageTypes& types, int num_threads) {
    size_t taken = 0;
    while (taken < op.post_steps.size() && TakeStep(op.post_steps[taken], types)) ++taken;
    for (const Step& step : op.post_steps) absl::StrAppend(&description_, " + ", NameOf(step.op));
    if (taken < op.post_steps.size()) {
      rest_ = MakeStepsInPlace({op.post_steps.begin() + static_cast<std::ptrdiff_t>(taken), op.post_steps.end()},
                               op.output, types, op.name, num_threads);
    }
    if (!op.post_steps.empty()) all_ = MakeStepsInPlace(op.post_steps, op.output, types, op.name, num_threads);
    for (const Step& step : op.post_steps) {
      if (step.other >= 0) reads.push_back(step.other);
    }
  }

  // The order of the transform is addends, slopes, clip.
  bool TakeStep(const Step& step, const StorageTypes& types) {
    const bool is_clipped = least_ != -kInfinity || most_ != kInfinity;
    if (is_clipped) return false;
    switch (step.op) {
      case LoopOp::kAdd:
        if (step.other < 0 || step.meeting != Meeting::kSame || addends_ >= 0 || !slopes_.empty()) return false;
        if (!types.Of(step.other).IsFloat()) return false;
        addends_ = step.other;
        return true;
      case LoopOp::kRelu:
        least_ = 0;
        return true;
      case LoopOp::kClip:
        if (!(step.alpha <= step.beta)) return false;  // NaN, or bounds in the wrong order.
        least_ = step.alpha;
        most_ = step.beta;
        return true;
      case LoopOp::kLeakyRelu:
        if (!slopes_.empty()) return false;
        slopes_.assign(static_cast<size_t>(tiling_.padded_outputs()), step.alpha);
        return true;
      default:
        return false;
    }
  }

  // --- Filters ---

  // An entry of one byte, instead of the filters, means that the layer stays direct.
  std::string CacheKey(const WeightedOp& op) const {
    return absl::StrCat(PackingKey(op, Element::kFloat), " winograd ", TextOf(form_), " in panels of ", tiling_.width);
  }

  absl::Status PackFilters(const WeightedOp& op, PackedWeights* packed) {
    const std::string key = packed == nullptr ? "" : CacheKey(op);
    const size_t bytes = static_cast<size_t>(tiling_.filter_floats(window_) * kFloatBytes);
    if (packed != nullptr) {
      std::optional<PackedBytes> found = packed->Find(key);
      if (found.has_value() && found->bytes.size() == 1) {
        return absl::UnimplementedError("direct, since the error with winograd was too great when weights were packed");
      }
      if (found.has_value() && found->bytes.size() == bytes &&
          reinterpret_cast<uintptr_t>(found->bytes.data()) % 64 == 0) {
        filters_ = reinterpret_cast<const float*>(found->bytes.data());
        owner_ = std::move(found->owner);
        is_packed_ = true;
        return absl::OkStatus();
      }
    }
    const std::vector<float> given = FloatsOf(op.weights);
    float* filters = nullptr;
    auto memory = AlignedFloats(tiling_.filter_floats(window_), &filters);
    const int64_t inputs = window_.input_channels, outputs = window_.output_channels;
#pragma omp parallel for num_threads(tiling_.num_threads) if (tiling_.num_threads > 1) collapse(2)
    for (int64_t panel = 0; panel < tiling_.panels; ++panel) {
      for (int64_t c = 0; c < inputs; ++c) {
        const int64_t first = panel * tiling_.width, width = WidthOf(panel);
        WinogradFilter filter;
        filter.taps = given.data() + c * outputs + first;
        filter.tap_step = inputs * outputs;
        filter.channels = std::min(width, outputs - first);
        filter.scale = op.scale.empty() ? nullptr : op.scale.data() + first;
        filter.values = filters + panel * tiling_.points * inputs * tiling_.width + c * width;
        filter.point_step = inputs * width;
        loops_->transform_filter(filter);
      }
    }
    filters_ = filters;
    if (HasNonFinite(reinterpret_cast<const char*>(filters), tiling_.filter_floats(window_)) ||
        HasNonFinite(reinterpret_cast<const char*>(bias_.data()), static_cast<int64_t>(bias_.size()))) {
      return absl::UnimplementedError("direct, since its weights are not all finite");
    }
    const double error = SampledError(op, given);
    if (!(error <= kMostError)) {
      if (packed != nullptr) {
        const auto refusal = std::make_shared<const std::string>("-");
        packed->Keep(key, {*refusal, refusal});
      }
      return absl::UnimplementedError(absl::StrCat("direct, since winograd ", TextOf(form_), " has an error of ", error,
                                                   " of the largest result, expected at most ", kMostError));
    }
    if (packed != nullptr) packed->Keep(key, {{reinterpret_cast<const char*>(filters), bytes}, memory});
    owner_ = std::move(memory);
    return absl::OkStatus();
  }

  // Computes three tiles in this form and directly in double precision: random pixels in [0, 1) and in [-1, 1), and
  // nearly equal ones. Returns the largest difference as a share of the largest result of the same tile.
  double SampledError(const WeightedOp& op, const std::vector<float>& weights) const {
    constexpr int64_t kTiles = 3;
    const int64_t channels = window_.input_channels, outputs = window_.output_channels;
    const int64_t width = form_.x.points();
    const int64_t results_y = form_.y.outputs, results_x = form_.x.outputs;
    std::vector<float> pixels(static_cast<size_t>(kTiles * tiling_.points * channels));
    uint32_t random = 1;
    for (size_t i = 0; i < pixels.size(); ++i) {
      random = random * 1664525 + 1013904223;  // The generator of Numerical Recipes.
      const float number = static_cast<float>(random >> 8) * 0x1p-24f;
      const size_t tile = i / (pixels.size() / kTiles);
      pixels[i] = tile == 0 ? number : tile == 1 ? 2 * number - 1 : 1 + number / 64;
    }
    const int64_t value_step = kTiles * tiling_.source_channels, sum_step = kTiles * tiling_.width;
    std::vector<float> values(static_cast<size_t>(tiling_.points * value_step));
    std::vector<float> sums(static_cast<size_t>(tiling_.points * sum_step));
    for (int64_t tile = 0; tile < kTiles; ++tile) {
      loops_->transform_source({pixels.data() + tile * tiling_.points * channels, width * channels, channels, channels,
                                values.data() + tile * tiling_.source_channels, value_step});
    }
    const std::vector<int64_t> chosen = LargestFilters(op, weights);
    const std::vector<float> no_bias(static_cast<size_t>(tiling_.width), 0.0f);
    std::vector<float> results(static_cast<size_t>(results_y * results_x * tiling_.width));
    double largest[kTiles] = {}, error[kTiles] = {};
    for (int64_t panel = 0; panel < tiling_.panels; ++panel) {
      const int64_t first = panel * tiling_.width, columns = WidthOf(panel);
      const auto is_here = [&](int64_t channel) { return channel / tiling_.width == panel; };
      if (std::none_of(chosen.begin(), chosen.end(), is_here)) continue;
      const float* filter = filters_ + panel * tiling_.points * channels * tiling_.width;
      for (int64_t point = 0; point < tiling_.points; ++point) {
        BestInnerLoops().multiply_panel(kTiles, columns, channels, values.data() + point * value_step,
                                        tiling_.source_channels, filter + point * channels * columns,
                                        sums.data() + point * sum_step, columns, /*accumulate=*/false);
      }
      for (int64_t tile = 0; tile < kTiles; ++tile) {
        loops_->transform_target({sums.data() + tile * columns, sum_step, std::min(columns, outputs - first),
                                  no_bias.data(), nullptr, nullptr, -kInfinity, kInfinity, results.data(),
                                  results_x * tiling_.width, tiling_.width, results_y, results_x});
        const float* from = pixels.data() + tile * tiling_.points * channels;
        for (const int64_t channel : chosen) {
          if (!is_here(channel)) continue;
          const double scale = op.scale.empty() ? 1 : op.scale[static_cast<size_t>(channel)];
          for (int64_t y = 0; y < results_y; ++y) {
            for (int64_t x = 0; x < results_x; ++x) {
              double sum = 0;
              for (int64_t ty = 0; ty < form_.y.taps; ++ty) {
                for (int64_t tx = 0; tx < form_.x.taps; ++tx) {
                  const float* pixel = from + ((y + ty) * width + x + tx) * channels;
                  const float* taps = weights.data() + (ty * form_.x.taps + tx) * channels * outputs + channel;
                  for (int64_t c = 0; c < channels; ++c) sum += static_cast<double>(pixel[c]) * taps[c * outputs];
                }
              }
              sum *= scale;
              largest[tile] = std::max(largest[tile], std::abs(sum));
              error[tile] = std::max(
                  error[tile],
                  std::abs(results[static_cast<size_t>((y * results_x + x) * tiling_.width + channel - first)] - sum));
            }
          }
        }
      }
    }
    double relative = 0;
    for (int64_t tile = 0; tile < kTiles; ++tile) {
      if (error[tile] != 0) relative = std::max(relative, error[tile] / largest[tile]);
    }
    return relative;
  }

  // Returns the output channels with the largest sums of squares.
  std::vector<int64_t> LargestFilters(const WeightedOp& op, const std::vector<float>& weights) const {
    const auto outputs = static_cast<size_t>(window_.output_channels);
    std::vector<double> squares(outputs, 0.0);
    for (size_t i = 0; i < weights.size(); i += outputs) {
      for (size_t k = 0; k < outputs; ++k) squares[k] += static_cast<double>(weights[i + k]) * weights[i + k];
    }
    for (size_t k = 0; k < outputs && !op.scale.empty(); ++k)
      squares[k] *= static_cast<double>(op.scale[k]) * op.scale[k];
    std::vector<int64_t> order(outputs);
    std::iota(order.begin(), order.end(), 0);
    const auto count = std::min<size_t>(outputs, kSampledChannels);
    std::partial_sort(
        order.begin(), order.begin() + static_cast<std::ptrdiff_t>(count), order.end(),
        [&](int64_t a, int64_t b) { return squares[a] > squares[b] || (squares[a] == squares[b] && a < b); });
    order.resize(count);
    return order;
  }

  // --- The direct form, for sums that are not finite ---

  absl::Status RunDirect(const RunContext& context) {
    if (direct_ == nullptr) {
      PF_ASSIGN_OR_RETURN(direct_, MakeWeighted(*direct_op_, types_, direct_threads_, nullptr));
      direct_scratch_.resize(static_cast<size_t>(direct_->scratch_bytes()) + 64);
    }
    RunContext direct_context = context;
    const auto address = reinterpret_cast<uintptr_t>(direct_scratch_.data());
    direct_context.scratch = direct_scratch_.data() + (64 - address % 64) % 64;
    PF_RETURN_IF_ERROR(direct_->Run(direct_context));
    return all_ == nullptr ? absl::OkStatus() : all_->Run(context);
  }

  const WinogradForm form_;
  const double share_;
  const WindowGeometry window_;
  const Tiling tiling_;
  const WinogradLoops* const loops_;
  const float* filters_ = nullptr;  // By panel: [points, input channels, channels of the panel].
  Owner owner_;
  bool is_packed_ = false;  // True if the filters are in memory of the cache.
  std::vector<float> bias_, slopes_;
  int addends_ = -1;
  float least_ = -kInfinity, most_ = kInfinity;
  std::string description_;
  std::unique_ptr<Piece> rest_, all_;  // The post-steps that the transform does not apply, and all; may be null.
  // Used for sums that are not finite.
  std::unique_ptr<WeightedOp> direct_op_;
  StorageTypes types_;
  int direct_threads_ = 1;
  std::unique_ptr<Piece> direct_;
  std::vector<char> direct_scratch_;
};

}  // namespace

double EstimateWinograd(const ParsedNode& parsed, const WinogradForm& form, int num_threads) {
  const WindowGeometry& window = parsed.window;
  const int64_t pixels = window.batch * window.y.output * window.x.output;
  const int64_t weights = window.y.taps * window.x.taps * window.input_channels * window.output_channels;
  const double direct = static_cast<double>(Products(parsed)) + kDirectWeight * static_cast<double>(weights) +
                        kDirectNumber * static_cast<double>(pixels * (window.input_channels + window.output_channels));
  return Tiling(form, window, num_threads).cost * num_threads / direct;
}

absl::StatusOr<WinogradChoice> ChooseWinograd(const ParsedNode& parsed, int num_threads) {
  const WindowGeometry& window = parsed.window;
  if (parsed.kind != NodeKind::kConvolution || window.groups != 1 || window.y.stride != 1 || window.x.stride != 1 ||
      window.y.dilation != 1 || window.x.dilation != 1) {
    return absl::InvalidArgumentError("not a dense convolution with stride 1");
  }
  const std::vector<WinogradForm> forms = FormsOf(window);
  if (forms.empty() || Products(parsed) == 0 || IsNarrow(parsed)) {
    return absl::InvalidArgumentError("no Winograd form has these taps or so few channels");
  }
  WinogradChoice best{forms[0], std::numeric_limits<double>::infinity()};
  for (const WinogradForm& form : forms) {
    const double share = EstimateWinograd(parsed, form, num_threads);
    if (share < best.share) best = {form, share};
  }
  if (best.share <= kMostShare) return best;
  return absl::UnimplementedError(absl::StrCat("direct, since winograd ", TextOf(best.form), " is estimated at ",
                                               std::lround(best.share * 100), " % of its time"));
}

absl::StatusOr<std::unique_ptr<Piece>> MakeWinograd(const WeightedOp& op, const WinogradChoice& choice,
                                                    const StorageTypes& types, int num_threads, PackedWeights* packed) {
  if (FindWinogradLoops(choice.form) == nullptr) return absl::UnimplementedError("no transforms for the form");
  auto piece = std::make_unique<Winograd>(choice, op.parsed.window, num_threads);
  PF_RETURN_IF_ERROR(piece->Init(op, types, num_threads, packed));
  return std::unique_ptr<Piece>(std::move(piece));
}

}  // namespace onednn
}  // namespace permafrost
