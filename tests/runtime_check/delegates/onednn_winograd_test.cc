// Tests convolutions in Winograd's forms: the transforms of each instruction set, results compared with the direct
// form, and the convolutions that stay direct.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime_check/delegates/onednn/onednn_delegate.h"
#include "runtime_check/delegates/onednn/winograd_convolution.h"
#include "runtime_check/kernels/inner_loops.h"
#include "tests/runtime_check/delegates/conformance.h"
#include "tests/runtime_check/delegates/delegate_run.h"
#include "tests/runtime_check/delegates/image_graph.h"
#include "tests/runtime_check/delegates/memory_weights.h"

namespace permafrost {
namespace onednn {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::SizeIs;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

std::vector<float> Floats(int64_t count, uint32_t seed) {
  const Tensor tensor = SomeFloats({count}, seed);
  return FloatsOf(tensor);
}

std::string NameOfForm(const WinogradForm& form) {
  return absl::StrCat("F(", form.y.outputs, "x", form.x.outputs, ", ", form.y.taps, "x", form.x.taps, ")");
}

// --- Transforms ------------------------------------------------------------------------------------------------------

// Computes one tile with `channels` input channels and as many independent output channels, in which channel c of the
// result is the convolution of channel c, and compares it with the definition.
void CheckTransforms(const WinogradLoops& loops, int64_t channels) {
  const WinogradForm& form = loops.form;
  const int64_t height = form.y.points(), width = form.x.points(), points = form.points();
  const int64_t taps_y = form.y.taps, taps_x = form.x.taps;
  const int64_t padded = (channels + 15) / 16 * 16;
  const std::vector<float> pixels = Floats(height * width * channels, 1);
  const std::vector<float> taps = Floats(taps_y * taps_x * channels, 2);
  const std::vector<float> bias = Floats(padded, 3), scale = Floats(padded, 4);
  std::vector<float> values(points * padded), filter(points * padded), sums(points * padded);
  loops.transform_source({pixels.data(), width * channels, channels, channels, values.data(), padded});
  loops.transform_filter({taps.data(), channels, channels, scale.data(), filter.data(), padded});
  for (int64_t i = 0; i < points * padded; ++i) sums[i] = values[i] * filter[i];
  const int64_t outputs_y = form.y.outputs, outputs_x = form.x.outputs;
  const std::vector<float> addends = Floats(outputs_y * outputs_x * channels, 5);
  std::vector<float> results(outputs_y * outputs_x * channels + 1, 77.0f);
  WinogradTarget target{sums.data(),    padded,     channels,  bias.data(),    nullptr,
                        addends.data(), -kInfinity, kInfinity, results.data(), outputs_x * channels,
                        channels,       outputs_y,  outputs_x};
  EXPECT_TRUE(loops.transform_target(target));
  EXPECT_EQ(results.back(), 77.0f);  // Nothing is written past the channels.
  for (int64_t y = 0; y < outputs_y; ++y) {
    for (int64_t x = 0; x < outputs_x; ++x) {
      for (int64_t c = 0; c < channels; ++c) {
        double expected = static_cast<double>(bias[c]) + addends[(y * outputs_x + x) * channels + c];
        for (int64_t ty = 0; ty < taps_y; ++ty) {
          for (int64_t tx = 0; tx < taps_x; ++tx) {
            expected += static_cast<double>(pixels[((y + ty) * width + x + tx) * channels + c]) *
                        taps[(ty * taps_x + tx) * channels + c] * scale[c];
          }
        }
        ASSERT_NEAR(results[(y * outputs_x + x) * channels + c], expected, 3e-4)
            << NameOfForm(form) << ", " << channels << " channels, at " << y << " " << x << " " << c;
      }
    }
  }
  // A sum that is not finite is found in each channel, also where the rows and columns are outside of the image.
  for (const float bad : {kInfinity, -kInfinity, std::nanf("")}) {
    sums[channels - 1] = bad;
    target.rows = target.columns = 1;
    EXPECT_FALSE(loops.transform_target(target)) << NameOfForm(form) << " " << bad;
  }
}

TEST(WinogradLoopsTest, ComputeConvolutionsWithEveryInstructionSet) {
  for (const InnerLoops* set : SupportedInnerLoops()) {
    SCOPED_TRACE(set->name);
    EXPECT_GE(WinogradLoopsFor(*set).size(), 15u);
    for (const WinogradLoops& loops : WinogradLoopsFor(*set)) {
      for (const int64_t channels : {1, 3, 8, 16, 17, 37}) CheckTransforms(loops, channels);
    }
  }
}

TEST(WinogradLoopsTest, SlopesAndBoundsApplyInOrder) {
  for (const InnerLoops* set : SupportedInnerLoops()) {
    for (const WinogradLoops& loops : WinogradLoopsFor(*set)) {
      const int64_t points = loops.form.points();
      const std::vector<float> sums(points * 16, 0.0f), slopes(16, 0.5f);
      std::vector<float> bias(16, 0.0f), results(loops.form.y.outputs * loops.form.x.outputs * 16);
      bias[0] = -4, bias[1] = -10, bias[2] = 5, bias[3] = 1;
      EXPECT_TRUE(
          loops.transform_target({sums.data(), 16, 16, bias.data(), slopes.data(), nullptr, -3, 3, results.data(),
                                  loops.form.x.outputs * 16, 16, loops.form.y.outputs, loops.form.x.outputs}));
      EXPECT_THAT(std::vector<float>(results.begin(), results.begin() + 4), ElementsAre(-2, -3, 3, 1));
    }
  }
}

// --- Convolutions ----------------------------------------------------------------------------------------------------

struct Sizes {
  int64_t batch, height, width, inputs, outputs;
};

WeightedOp OpOf(const WinogradForm& form, const Sizes& sizes, int64_t pad_y, int64_t pad_x, int64_t pad_after) {
  WeightedOp op;
  op.parsed.kind = NodeKind::kConvolution;
  WindowGeometry& window = op.parsed.window;
  window.batch = sizes.batch;
  window.input_channels = sizes.inputs;
  window.output_channels = sizes.outputs;
  const auto axis = [&](int64_t size, int64_t taps, int64_t pad) {
    return WindowAxis{size, taps, 1, 1, pad, size + pad + pad_after - taps + 1};
  };
  window.y = axis(sizes.height, form.y.taps, pad_y);
  window.x = axis(sizes.width, form.x.taps, pad_x);
  op.name = "layer";
  op.weights = SomeFloats({form.y.taps, form.x.taps, sizes.inputs, sizes.outputs}, 7);
  op.scale = Floats(sizes.outputs, 8);
  op.bias = Floats(sizes.outputs, 9);
  op.input = 0;
  op.output = 1;
  return op;
}

// Runs a piece that reads storage 0 and maybe 2, and writes storage 1.
std::vector<float> RunPiece(Piece* piece, const WeightedOp& op, const std::vector<float>& source,
                            const std::vector<float>& other = {}) {
  const WindowGeometry& window = op.parsed.window;
  const int64_t count = window.batch * window.y.output * window.x.output * window.output_channels;
  std::vector<float> from = source, second = other, to(count + 1, 77.0f);
  std::vector<char> scratch(piece->scratch_bytes() + 64);
  const auto address = reinterpret_cast<uintptr_t>(scratch.data());
  std::vector<char*> tensors = {reinterpret_cast<char*>(from.data()), reinterpret_cast<char*>(to.data()),
                                reinterpret_cast<char*>(second.data())};
  std::atomic<bool> non_finite = false;
  const RunContext context{tensors.data(), scratch.data() + (64 - address % 64) % 64, 2, &non_finite};
  const absl::Status status = piece->Run(context);
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(to.back(), 77.0f);
  to.pop_back();
  return to;
}

double Activated(double value, const std::string& activation) {
  if (activation == "relu") return std::max(0.0, value);
  if (activation == "clip") return std::min(6.0, std::max(-1.0, value));
  if (activation == "leaky") return value < 0 ? 0.25 * value : value;
  if (activation == "sigmoid") return 1 / (1 + std::exp(-value));
  return value;
}

// The definition in double precision.
std::vector<double> Expected(const WeightedOp& op, const std::vector<float>& source, const std::vector<float>& other,
                             const std::string& activation) {
  const WindowGeometry& window = op.parsed.window;
  const std::vector<float> weights = FloatsOf(op.weights);
  std::vector<double> results;
  for (int64_t n = 0; n < window.batch; ++n) {
    for (int64_t y = 0; y < window.y.output; ++y) {
      for (int64_t x = 0; x < window.x.output; ++x) {
        for (int64_t k = 0; k < window.output_channels; ++k) {
          double sum = 0;
          for (int64_t ty = 0; ty < window.y.taps; ++ty) {
            for (int64_t tx = 0; tx < window.x.taps; ++tx) {
              const int64_t row = window.y.First(y) + ty, column = window.x.First(x) + tx;
              if (row < 0 || row >= window.y.input || column < 0 || column >= window.x.input) continue;
              for (int64_t c = 0; c < window.input_channels; ++c) {
                sum += static_cast<double>(
                           source[((n * window.y.input + row) * window.x.input + column) * window.input_channels + c]) *
                       weights[((ty * window.x.taps + tx) * window.input_channels + c) * window.output_channels + k];
              }
            }
          }
          sum = sum * op.scale[k] + op.bias[k];
          if (!other.empty()) sum += other[results.size()];
          results.push_back(Activated(sum, activation));
        }
      }
    }
  }
  return results;
}

void CheckClose(const std::vector<float>& actual, const std::vector<double>& expected, const std::string& where) {
  ASSERT_EQ(actual.size(), expected.size());
  double largest = 0, error = 0;
  for (size_t i = 0; i < actual.size(); ++i) {
    largest = std::max(largest, std::abs(expected[i]));
    const double difference = std::abs(actual[i] - expected[i]);
    if (!(difference <= error)) error = difference;
  }
  EXPECT_LE(error, 1e-5 * largest) << where;
}

class WinogradTest : public testing::TestWithParam<int> {
 protected:
  std::unique_ptr<Piece> Make(const WeightedOp& op, const WinogradForm& form, PackedWeights* packed = nullptr) {
    auto made = MakeWinograd(op, {form, 0.5}, {}, GetParam(), packed);
    EXPECT_TRUE(made.ok()) << made.status();
    return *std::move(made);
  }
};

TEST_P(WinogradTest, EveryFormComputesImagesOfAllSizes) {
  for (const WinogradLoops& loops : WinogradLoopsFor(BestInnerLoops())) {
    const WinogradForm& form = loops.form;
    for (const Sizes& sizes : {Sizes{1, 1, 1, 16, 16}, Sizes{1, 5, 5, 1, 5}, Sizes{2, 7, 9, 17, 33},
                               Sizes{1, 13, 3, 20, 70}, Sizes{3, 1, 11, 8, 16}, Sizes{1, 22, 23, 9, 40}}) {
      const std::vector<float> source = Floats(sizes.batch * sizes.height * sizes.width * sizes.inputs, 3);
      const WeightedOp op = OpOf(form, sizes, form.y.taps / 2, form.x.taps / 2, std::max(form.y.taps, form.x.taps) / 2);
      CheckClose(RunPiece(Make(op, form).get(), op, source), Expected(op, source, {}, ""),
                 absl::StrCat(NameOfForm(form), " on ", sizes.height, "x", sizes.width));
    }
    // No padding, and more padding than taps.
    const Sizes sizes = {2, 9, 8, 6, 18};
    const std::vector<float> source = Floats(sizes.batch * sizes.height * sizes.width * sizes.inputs, 3);
    for (const WeightedOp& op : {OpOf(form, sizes, 0, 0, 0), OpOf(form, sizes, 0, 9, 10)}) {
      CheckClose(RunPiece(Make(op, form).get(), op, source), Expected(op, source, {}, ""), NameOfForm(form));
    }
  }
}

TEST_P(WinogradTest, AppliesPostSteps) {
  const WinogradForm form = {{4, 3}, {4, 3}};
  const Sizes sizes = {1, 11, 14, 16, 40};
  const WeightedOp bare = OpOf(form, sizes, 1, 1, 1);
  const std::vector<float> source = Floats(11 * 14 * 16, 3), other = Floats(11 * 14 * 40, 4);
  Step add(Shape({1, 11, 14, 40})), relu = add, clip = add, leaky = add, sigmoid = add;
  add.op = LoopOp::kAdd;
  add.other = 2;
  relu.op = LoopOp::kRelu;
  clip.op = LoopOp::kClip;
  clip.alpha = -1, clip.beta = 6;
  leaky.op = LoopOp::kLeakyRelu;
  leaky.alpha = 0.25f;
  sigmoid.op = LoopOp::kSigmoid;
  for (const auto& [step, activation] :
       {std::pair(relu, "relu"), {clip, "clip"}, {leaky, "leaky"}, {sigmoid, "sigmoid"}}) {
    WeightedOp op = bare;
    op.post_steps = {step};
    // A sigmoid loses the size of its operand, to which the error is relative.
    for (float& factor : op.scale) factor *= step.op == LoopOp::kSigmoid ? 0.01f : 1.0f;
    const auto piece = Make(op, form);
    EXPECT_THAT(piece->Describe(), HasSubstr(" + "));
    CheckClose(RunPiece(piece.get(), op, source), Expected(op, source, {}, activation), activation);
    op.post_steps = {add, step};
    CheckClose(RunPiece(Make(op, form).get(), op, source, other), Expected(op, source, other, activation), activation);
    // The steps behind a clip run in a loop nest.
    op.post_steps = {clip, add};
    op.scale = bare.scale;
    std::vector<double> expected = Expected(op, source, {}, "clip");
    for (size_t i = 0; i < expected.size(); ++i) expected[i] += other[i];
    CheckClose(RunPiece(Make(op, form).get(), op, source, other), expected, "clip, then addends");
  }
}

TEST_P(WinogradTest, NonFinitePixelsReachOnlyTheirResults) {
  for (const WinogradLoops& loops : WinogradLoopsFor(BestInnerLoops())) {
    const WinogradForm& form = loops.form;
    const Sizes sizes = {1, 12, 13, 16, 20};
    const WeightedOp op = OpOf(form, sizes, form.y.taps / 2, form.x.taps / 2, std::max(form.y.taps, form.x.taps) / 2);
    for (const float bad : {kInfinity, -kInfinity, std::nanf("")}) {
      std::vector<float> source = Floats(12 * 13 * 16, 3);
      source[(5 * 13 + 6) * 16 + 3] = bad;
      const std::vector<float> actual = RunPiece(Make(op, form).get(), op, source);
      const std::vector<double> expected = Expected(op, source, {}, "");
      ASSERT_EQ(actual.size(), expected.size());
      for (size_t i = 0; i < actual.size(); ++i) {
        ASSERT_EQ(std::isnan(actual[i]), std::isnan(expected[i])) << NameOfForm(form) << " " << i;
        ASSERT_EQ(std::isinf(actual[i]), std::isinf(expected[i])) << NameOfForm(form) << " " << i;
      }
    }
  }
}

TEST_P(WinogradTest, LargePixelsDoNotOverflowInTheTransforms) {
  // The direct sums are finite, those of the transformed pixels are not.
  const WinogradForm form = {{4, 3}, {4, 3}};
  WeightedOp op = OpOf(form, {1, 9, 9, 16, 16}, 1, 1, 1);
  op.scale.assign(16, 1e-4f);
  const std::vector<float> source(9 * 9 * 16, 2e38f);
  const std::vector<float> actual = RunPiece(Make(op, form).get(), op, source);
  CheckClose(actual, Expected(op, source, {}, ""), "large pixels");
}

INSTANTIATE_TEST_SUITE_P(Threads, WinogradTest, testing::Values(1, 2, 3));

// --- Layers that stay direct -----------------------------------------------------------------------------------------

TEST(WinogradChoiceTest, DependsOnTheSize) {
  const WinogradForm form = {{4, 3}, {4, 3}};
  for (const int threads : {1, 2}) {
    const auto wide = ChooseWinograd(OpOf(form, {1, 56, 56, 64, 64}, 1, 1, 1).parsed, threads);
    ASSERT_TRUE(wide.ok()) << wide.status();
    EXPECT_TRUE(wide->form == form);
    EXPECT_LT(wide->share, 0.6);
    const absl::Status narrow = ChooseWinograd(OpOf(form, {1, 56, 56, 8, 8}, 1, 1, 1).parsed, threads).status();
    EXPECT_TRUE(absl::IsUnimplemented(narrow)) << narrow;
    EXPECT_THAT(narrow.message(), HasSubstr("% of its time"));
  }
  WeightedOp strided = OpOf(form, {1, 56, 56, 64, 64}, 1, 1, 1);
  strided.parsed.window.x.stride = 2;
  EXPECT_TRUE(absl::IsInvalidArgument(ChooseWinograd(strided.parsed, 1).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(ChooseWinograd(OpOf({}, {1, 56, 56, 64, 64}, 0, 0, 0).parsed, 1).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(ChooseWinograd(OpOf(form, {0, 56, 56, 64, 64}, 1, 1, 1).parsed, 1).status()));
}

// Sets all filters to one whose taps are nearly zero in sum: on pixels that are nearly equal its results are small.
void SetToEdges(WeightedOp* op) {
  std::vector<float> weights;
  const int64_t each = op->parsed.window.input_channels * op->parsed.window.output_channels;
  for (const float tap : {0.f, 1.f, 0.f, 1.f, -4.f, 1.f, 0.f, 1.f, 0.f}) weights.insert(weights.end(), each, tap);
  op->weights = Tensor::FromVector<float>(op->weights.shape(), std::move(weights));
}

TEST(WinogradChoiceTest, LayersWithGreatErrorsStayDirect) {
  const WinogradForm form = {{4, 3}, {4, 3}};
  WeightedOp op = OpOf(form, {1, 20, 20, 64, 64}, 1, 1, 1);
  SetToEdges(&op);
  op.weights_name = "edges";
  MemoryWeights packed;
  for (int i = 0; i < 2; ++i) {
    // The second time the verdict comes from the cache.
    const absl::Status status = MakeWinograd(op, {form, 0.5}, {}, 1, &packed).status();
    EXPECT_TRUE(absl::IsUnimplemented(status)) << status;
    EXPECT_THAT(status.message(), HasSubstr(i == 0 ? "has an error of" : "when weights were packed"));
  }
}

TEST(WinogradChoiceTest, WeightsThatAreNotFiniteStayDirect) {
  const WinogradForm form = {{4, 3}, {4, 3}};
  for (const float bad : {kInfinity, std::nanf("")}) {
    WeightedOp op = OpOf(form, {1, 9, 9, 16, 16}, 1, 1, 1);
    std::vector<float> weights = FloatsOf(op.weights);
    weights[77] = bad;
    op.weights = Tensor::FromVector<float>(op.weights.shape(), weights);
    EXPECT_TRUE(absl::IsUnimplemented(MakeWinograd(op, {form, 0.5}, {}, 1, nullptr).status()));
    op = OpOf(form, {1, 9, 9, 16, 16}, 1, 1, 1);
    op.bias[3] = bad;
    EXPECT_TRUE(absl::IsUnimplemented(MakeWinograd(op, {form, 0.5}, {}, 1, nullptr).status()));
  }
}

TEST(WinogradPackingTest, PackedFiltersGiveTheSameBits) {
  const WinogradForm form = {{2, 5}, {2, 5}};
  const WeightedOp op = OpOf(form, {1, 14, 14, 24, 40}, 2, 2, 2);
  const std::vector<float> source = Floats(14 * 14 * 24, 3);
  MemoryWeights packed;
  std::vector<float> before;
  for (int i = 0; i < 3; ++i) {
    const auto piece = *MakeWinograd(op, {form, 0.5}, {}, i == 2 ? 2 : 1, &packed);
    EXPECT_EQ(absl::StrContains(piece->Describe(), "packed before"), i > 0);
    const std::vector<float> result = RunPiece(piece.get(), op, source);
    if (i > 0) {
      EXPECT_EQ(result, before);
    }
    before = result;
  }
}

// --- Graphs ----------------------------------------------------------------------------------------------------------

const Shape kImage = {1, 28, 28, 48};

std::vector<std::string> PiecesOf(const std::shared_ptr<const Delegate>& delegate, const ImageGraph& graph,
                                  const std::string& fetch, const Tensor& input, std::vector<float>* result) {
  const auto session = *MakeSession(AlwaysWorthwhile(delegate), graph.graph(), {"x"}, {fetch}, 1);
  const auto outputs = session->Run({input});
  EXPECT_TRUE(outputs.ok()) << outputs.status();
  *result = FloatsOf((*outputs)[0]);
  const DelegationReport& report = session->report().delegation;
  EXPECT_EQ(report.failure, "");
  EXPECT_THAT(report.partitions, SizeIs(1));
  return report.partitions.empty() ? std::vector<std::string>() : report.partitions[0].pieces;
}

TEST(WinogradGraphTest, ExplainsTheFormAndTheSwitchTurnsItOff) {
  ImageGraph graph(kImage);
  graph.Convolution("conv", "x", {3, 3, 48, 64});
  graph.Float("relu", "Relu", {"conv"});
  graph.Convolution("small", "relu", {3, 3, 64, 8});
  const Tensor input = SomeFloats(kImage, 5);
  std::vector<float> result, direct;
  EXPECT_THAT(PiecesOf(*MakeOneDnnDelegate({}), graph, "small", input, &result),
              ElementsAre(AllOf(HasSubstr("conv: convolution + relu (winograd F(4x4, 3x3)"), HasSubstr("% of direct)")),
                          HasSubstr("small: convolution (")));
  EXPECT_THAT(PiecesOf(*MakeOneDnnDelegate({}, nullptr, /*uses_winograd=*/false), graph, "small", input, &direct),
              testing::Each(Not(HasSubstr("winograd"))));
  CheckClose(result, {direct.begin(), direct.end()}, "graph");
}

TEST(WinogradGraphTest, NonFiniteInputsGiveTheClassesOfTheReference) {
  ImageGraph graph(kImage);
  graph.Convolution("first", "x", {3, 3, 48, 48});
  graph.Float("relu", "Relu", {"first"});
  graph.Convolution("second", "relu", {3, 3, 48, 48});
  graph.Float("out", "Relu6", {"second"});
  for (const float bad : {kInfinity, -kInfinity, std::nanf(""), 3e38f}) {
    std::vector<float> pixels = FloatsOf(SomeFloats(kImage, 5));
    pixels[(13 * 28 + 17) * 48 + 5] = bad;
    const Tensor input = Tensor::FromVector<float>(kImage, pixels);
    std::vector<float> result;
    PiecesOf(*MakeOneDnnDelegate({}), graph, "out", input, &result);
    const auto reference = *MakeSession(nullptr, graph.graph(), {"x"}, {"out"}, 1);
    const std::vector<float> expected = FloatsOf((*reference->Run({input}))[0]);
    ASSERT_EQ(result.size(), expected.size());
    for (size_t i = 0; i < result.size(); ++i) {
      ASSERT_EQ(std::isnan(result[i]), std::isnan(expected[i])) << bad << " at " << i;
    }
  }
}

TEST(WinogradGraphTest, ComputesBatchesOfAnySize) {
  ImageGraph graph({-1, 28, 28, 48});
  graph.Convolution("conv", "x", {3, 3, 48, 64});
  const auto session = *MakeSession(AlwaysWorthwhile(*MakeOneDnnDelegate({})), graph.graph(), {"x"}, {"conv"}, 2);
  const auto reference = *MakeSession(nullptr, graph.graph(), {"x"}, {"conv"}, 2);
  for (const int64_t batch : {0, 1, 3}) {
    const Tensor input = SomeFloats({batch, 28, 28, 48}, 5);
    const auto actual = session->Run({input});
    ASSERT_TRUE(actual.ok()) << actual.status();
    const std::vector<float> expected = FloatsOf((*reference->Run({input}))[0]);
    CheckClose(FloatsOf((*actual)[0]), {expected.begin(), expected.end()}, absl::StrCat("batch ", batch));
  }
}

}  // namespace
}  // namespace onednn
}  // namespace permafrost
