// Compares Winograd's forms with the direct form on single convolutions of floats: winograd_layers [THREADS [SIZES...]]
// prints the time of each form as a share of the direct one, beside the estimate by which the delegate chooses. Each
// SIZES is HEIGHTxWIDTHxINPUTSxOUTPUTSxTAPS, TAPS being 3, 5 or 7 (square), or 13, 31, 15, 51, 17 or 71 (a line).
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "graph/base/status.h"
#include "runtime_check/delegates/onednn/openmp.h"
#include "runtime_check/delegates/onednn/weighted.h"
#include "runtime_check/delegates/onednn/winograd_convolution.h"

namespace permafrost {
namespace onednn {
namespace {

using Clock = std::chrono::steady_clock;

struct Layer {
  int64_t height, width, inputs, outputs, taps_y, taps_x;
};

ParsedNode Parsed(const Layer& layer) {
  ParsedNode parsed;
  parsed.kind = NodeKind::kConvolution;
  WindowGeometry& window = parsed.window;
  window.batch = 1;
  window.input_channels = layer.inputs;
  window.output_channels = layer.outputs;
  window.y = {layer.height, layer.taps_y, 1, 1, layer.taps_y / 2, layer.height};
  window.x = {layer.width, layer.taps_x, 1, 1, layer.taps_x / 2, layer.width};
  return parsed;
}

std::vector<float> Random(int64_t count, float scale) {
  std::vector<float> values(static_cast<size_t>(count));
  uint32_t state = 7;
  for (float& value : values) {
    state = state * 1664525 + 1013904223;
    value = (static_cast<float>(state >> 8) * 0x1p-23f - 1.0f) * scale;
  }
  return values;
}

// One piece with memory of its own.
struct Runner {
  std::unique_ptr<Piece> piece;
  std::vector<char> scratch;
  std::vector<char*> tensors;
  double least = 1e30;

  // As in a large model, the weights are not in a cache, but the source is.
  void Time(int num_threads, const std::vector<float>& source) {
    static std::vector<int64_t> other(8 << 20);
    int64_t sum = 0;
    for (int64_t& value : other) sum += ++value;
    for (size_t i = 0; i < source.size(); i += 16) sum += static_cast<int64_t>(source[i]);
    if (sum == 42) std::printf("\n");
    std::atomic<bool> non_finite = false;
    const auto address = reinterpret_cast<uintptr_t>(scratch.data());
    const RunContext context{tensors.data(), scratch.data() + (64 - address % 64) % 64, num_threads, &non_finite};
    const auto start = Clock::now();
    if (!piece->Run(context).ok()) std::abort();
    least = std::min(least, std::chrono::duration<double, std::micro>(Clock::now() - start).count());
  }
};

void Compare(const Layer& layer, int num_threads) {
  const ParsedNode parsed = Parsed(layer);
  WeightedOp op;
  op.parsed = parsed;
  op.name = "layer";
  op.weights = Tensor::FromVector<float>(Shape({layer.taps_y, layer.taps_x, layer.inputs, layer.outputs}),
                                         Random(layer.taps_y * layer.taps_x * layer.inputs * layer.outputs,
                                                1.0f / static_cast<float>(layer.inputs * layer.taps_x * layer.taps_y)));
  op.bias = Random(layer.outputs, 0.1f);
  Step relu(Shape({1, layer.height, layer.width, layer.outputs}));
  relu.op = LoopOp::kRelu;
  op.post_steps = {relu};
  op.input = 0;
  op.output = 1;
  std::vector<float> source = Random(layer.height * layer.width * layer.inputs + 16, 1.0f);
  const auto aligned = [](std::vector<float>& floats) {
    return reinterpret_cast<char*>((reinterpret_cast<uintptr_t>(floats.data()) + 63) / 64 * 64);
  };
  std::vector<WinogradForm> forms;
  for (const WinogradForm& form :
       {WinogradForm{{4, 3}, {4, 3}}, WinogradForm{{2, 3}, {2, 3}}, WinogradForm{{2, 5}, {2, 5}},
        WinogradForm{{}, {2, 3}}, WinogradForm{{}, {4, 3}}, WinogradForm{{}, {6, 3}}, WinogradForm{{}, {2, 5}},
        WinogradForm{{}, {4, 5}}, WinogradForm{{}, {2, 7}}, WinogradForm{{2, 3}, {}}, WinogradForm{{4, 3}, {}},
        WinogradForm{{6, 3}, {}}, WinogradForm{{2, 5}, {}}, WinogradForm{{4, 5}, {}}, WinogradForm{{2, 7}, {}}}) {
    if (form.y.taps == layer.taps_y && form.x.taps == layer.taps_x) forms.push_back(form);
  }
  std::vector<Runner> runners;
  std::vector<std::vector<float>> targets;
  for (size_t i = 0; i <= forms.size(); ++i) {
    Runner& runner = runners.emplace_back();
    if (i == 0) {
      runner.piece = *MakeWeighted(op, {}, num_threads, nullptr);
    } else {
      auto made = MakeWinograd(op, {forms[i - 1], 1}, {}, num_threads, nullptr);
      if (!made.ok()) {
        std::printf("%s\n", made.status().ToString().c_str());
        return;
      }
      runner.piece = *std::move(made);
    }
    targets.emplace_back(static_cast<size_t>(layer.height * layer.width * layer.outputs + 16));
    runner.scratch.resize(static_cast<size_t>(runner.piece->scratch_bytes()) + 64);
    runner.tensors = {aligned(source), aligned(targets.back())};
  }
  for (Runner& runner : runners) runner.Time(num_threads, source);
  const auto end = Clock::now() + std::chrono::milliseconds(400);
  while (Clock::now() < end) {
    for (Runner& runner : runners) runner.Time(num_threads, source);
  }
  const double products = static_cast<double>(Products(parsed));
  std::printf("%3dx%-3d %4d -> %4d, %dx%d: direct %7.1f us, %5.1f products/ns;", static_cast<int>(layer.height),
              static_cast<int>(layer.width), static_cast<int>(layer.inputs), static_cast<int>(layer.outputs),
              static_cast<int>(layer.taps_y), static_cast<int>(layer.taps_x), runners[0].least,
              products / runners[0].least / 1000);
  for (size_t i = 0; i < forms.size(); ++i) {
    const float *direct = reinterpret_cast<const float*>(runners[0].tensors[1]),
                *own = reinterpret_cast<const float*>(runners[i + 1].tensors[1]);
    double error = 0, largest = 0;
    for (int64_t k = 0; k < layer.height * layer.width * layer.outputs; ++k) {
      error = std::max(error, std::abs(static_cast<double>(direct[k]) - own[k]));
      largest = std::max(largest, std::abs(static_cast<double>(direct[k])));
    }
    std::printf(" F(%dx%d) %.3f, estimate %.3f, error %.1e;", forms[i].y.outputs, forms[i].x.outputs,
                runners[i + 1].least / runners[0].least, EstimateWinograd(parsed, forms[i], num_threads),
                error / largest);
  }
  const absl::StatusOr<WinogradChoice> choice = ChooseWinograd(parsed, num_threads);
  std::printf(" %s\n", choice.ok()
                           ? absl::StrCat("chosen: ", choice->form.y.outputs, "x", choice->form.x.outputs).c_str()
                           : std::string(choice.status().message()).c_str());
}

std::vector<Layer> Layers() {
  std::vector<Layer> layers;
  for (const int64_t size : {7, 8, 14, 28, 35, 56, 73, 112}) {
    for (const int64_t channels : {8, 16, 32, 64, 128, 256, 512}) {
      const int64_t work = size * size * channels * channels * 9;
      if (work < 2'000'000 || work > 500'000'000) continue;
      layers.push_back({size, size, channels, channels, 3, 3});
    }
  }
  layers.push_back({147, 147, 32, 32, 3, 3});
  layers.push_back({147, 147, 32, 64, 3, 3});
  layers.push_back({73, 73, 80, 192, 3, 3});
  layers.push_back({35, 35, 64, 96, 3, 3});
  layers.push_back({35, 35, 96, 96, 3, 3});
  layers.push_back({35, 35, 48, 64, 5, 5});
  layers.push_back({17, 17, 128, 128, 1, 7});
  layers.push_back({17, 17, 160, 160, 7, 1});
  layers.push_back({17, 17, 192, 192, 1, 7});
  layers.push_back({17, 17, 192, 192, 7, 1});
  layers.push_back({8, 8, 384, 384, 1, 3});
  layers.push_back({8, 8, 384, 384, 3, 1});
  layers.push_back({8, 8, 448, 384, 3, 3});
  layers.push_back({35, 35, 64, 64, 1, 3});
  layers.push_back({56, 56, 64, 64, 3, 1});
  layers.push_back({28, 28, 96, 96, 1, 5});
  return layers;
}

int Main(int argc, char** argv) {
  const int num_threads = argc > 1 ? std::atoi(argv[1]) : 1;
  std::vector<Layer> layers;
  for (int i = 2; i < argc; ++i) {
    std::vector<int64_t> numbers;
    for (const absl::string_view number : absl::StrSplit(argv[i], 'x')) {
      if (!absl::SimpleAtoi(number, &numbers.emplace_back()) || numbers.back() <= 0) return 2;
    }
    if (numbers.size() != 5) return 2;
    const int64_t taps = numbers[4];
    layers.push_back(
        {numbers[0], numbers[1], numbers[2], numbers[3], taps < 10 ? taps : taps / 10, taps < 10 ? taps : taps % 10});
  }
  const ThreadsInScope threads(num_threads);
  absl::StatusOr<TeamLease> lease = TeamLease::Take(num_threads);
  if (!lease.ok()) return 1;
  const TeamInScope team(*std::move(lease));
  for (const Layer& layer : layers.empty() ? Layers() : layers) Compare(layer, num_threads);
  return 0;
}

}  // namespace
}  // namespace onednn
}  // namespace permafrost

int main(int argc, char** argv) { return permafrost::onednn::Main(argc, argv); }
