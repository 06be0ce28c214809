// Tests of rounding by inputs: the errors of products, and the pass quantize_weights with its codes.
#include "tools/transform/weight_rounding.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "io/file_system.h"
#include "io/model_file.h"
#include "tests/shared_models.h"
#include "tools/model/model_inputs.h"
#include "tools/transform/calibration.h"
#include "tools/transform/verification.h"
#include "transforms/pipeline/pipeline.h"
#include "transforms/rewrites/channel_ranges.h"

namespace permafrost {
namespace {

using testing::HasSubstr;

// Correlated inputs with a mean.
class Products {
 public:
  static constexpr int kWidth = 24, kChannels = 6, kSamples = 400;

  Products() : weights_(kWidth * kChannels), samples_(kSamples * kWidth), moments_(kWidth, true) {
    std::mt19937 random(2);
    std::normal_distribution<float> normal(0, 1);
    for (float& weight : weights_) weight = normal(random);
    for (int s = 0; s < kSamples; ++s) {
      const float common = normal(random);
      for (int k = 0; k < kWidth; ++k) samples_[s * kWidth + k] = 1 + common + 0.3f * normal(random);
      moments_.Add(&samples_[s * kWidth]);
    }
    moments_.Finish();
  }

  RoundedWeights Round(const CodeGrid& grid, RoundingMethod method) const {
    return RoundForInputs(weights_, kChannels, moments_, grid, method);
  }

  double Error(const RoundedWeights& rounded, const CodeGrid& grid, bool corrected) const {
    const int block = grid.block > 0 ? static_cast<int>(grid.block) : kWidth;
    double sum = 0;
    for (int s = 0; s < kSamples; ++s) {
      for (int c = 0; c < kChannels; ++c) {
        double difference = corrected ? rounded.corrections[c] : 0;
        for (int k = 0; k < kWidth; ++k) {
          const int i = k * kChannels + c;
          const double scale = rounded.scales[k / block * kChannels + c];
          difference += (rounded.codes[i] * scale - weights_[i]) * samples_[s * kWidth + k];
        }
        sum += difference * difference;
      }
    }
    return sum;
  }

  const std::vector<float>& weights() const { return weights_; }

 private:
  std::vector<float> weights_, samples_;
  InputMoments moments_;
};

CodeGrid Grid(int steps, int64_t block = 0) {
  CodeGrid grid;
  grid.lowest = -steps;
  grid.highest = steps;
  grid.block = block;
  return grid;
}

TEST(WeightRoundingTest, EachMethodReducesTheErrorOfProducts) {
  const Products products;
  for (const int steps : {7, 127}) {
    for (const int64_t block : {0, 8}) {
      SCOPED_TRACE(absl::StrCat(steps, " steps, block ", block));
      const CodeGrid grid = Grid(steps, block);
      std::map<std::string, double> errors;
      for (const std::string& name : RoundingMethodNames()) {
        const RoundedWeights rounded = products.Round(grid, *ParseRoundingMethod(name));
        for (const int8_t code : rounded.codes) EXPECT_LE(std::abs(code), steps);
        EXPECT_EQ(rounded.scales.size(), block == 0 ? 6u : 18u);
        errors[name] = products.Error(rounded, grid, true);
        // Biases take the mean error.
        EXPECT_LT(errors[name], products.Error(rounded, grid, false));
      }
      EXPECT_LT(errors["gptq"], 0.5 * errors["nearest"]);
      EXPECT_LT(errors["adaround"], 0.5 * errors["nearest"]);
      EXPECT_LE(errors["descent"], errors["gptq"]);
    }
  }
}

TEST(WeightRoundingTest, AdaRoundStaysNextToTheWeights) {
  const Products products;
  const RoundedWeights rounded = products.Round(Grid(7), RoundingMethod::kAdaRound);
  for (size_t i = 0; i < rounded.codes.size(); ++i) {
    const float place = products.weights()[i] / rounded.scales[i % 6];
    if (std::abs(place) < 7) {
      EXPECT_LT(std::abs(static_cast<float>(rounded.codes[i]) - place), 1);
    }
  }
}

TEST(WeightRoundingTest, CoarseScalesAreBfloat16) {
  const Products products;
  CodeGrid grid = Grid(7, 8);
  grid.coarse_unit = 1;
  for (const float scale : products.Round(grid, RoundingMethod::kDescent).scales) {
    EXPECT_EQ(ToFloat(ToBFloat16(scale)), scale);
  }
}

// Any number of samples, of which some are added at once, gives the covariances of the definition.
TEST(WeightRoundingTest, AddsProductsOfAllSamples) {
  constexpr int kWidth = 11;
  std::mt19937 random(3);
  std::normal_distribution<float> normal(0, 1);
  for (const int count : {1, 7, 8, 9, 20}) {
    std::vector<float> samples(static_cast<size_t>(count * kWidth));
    for (float& value : samples) value = std::max(0.f, normal(random));
    InputMoments moments(kWidth, true);
    for (int s = 0; s < count; ++s) moments.Add(&samples[static_cast<size_t>(s * kWidth)]);
    moments.Finish();
    for (int i = 0; i < kWidth; ++i) {
      for (int j = 0; j < i; ++j) {
        double product = 0, a = 0, b = 0;
        for (int s = 0; s < count; ++s) {
          product += samples[s * kWidth + i] * static_cast<double>(samples[s * kWidth + j]) / count;
          a += static_cast<double>(samples[s * kWidth + i]) / count;
          b += static_cast<double>(samples[s * kWidth + j]) / count;
        }
        EXPECT_NEAR(moments.covariance(i, j), product - a * b, 1e-5) << count << " " << i << " " << j;
      }
    }
  }
}

// Adds samples at once, one by one, and with two objects.
TEST(WeightRoundingTest, AddsShiftsOfAllSamples) {
  constexpr int kWidth = 5;
  std::mt19937 random(4);
  std::normal_distribution<float> normal(0, 1);
  for (const int count : {1, 8, 21}) {
    std::vector<float> samples(static_cast<size_t>(count * kWidth)), originals(samples.size());
    for (size_t i = 0; i < samples.size(); ++i) {
      originals[i] = normal(random);
      samples[i] = 0.8f * originals[i] + 0.1f * normal(random) + 0.3f;
    }
    InputMoments all(kWidth, true, true), first(kWidth, true, true), second(kWidth, true, true);
    for (int s = 0; s < count; ++s) {
      const size_t at = static_cast<size_t>(s * kWidth);
      all.Add(&samples[at], &originals[at]);
      (s % 3 == 0 ? first : second).Add(&samples[at], &originals[at]);
    }
    for (InputMoments* moments : {&all, &first, &second}) moments->Finish();
    first.Merge(second);
    EXPECT_EQ(first.count(), count);
    for (int j = 0; j < kWidth; ++j) {
      double shift = 0;
      for (int s = 0; s < count; ++s) {
        shift += static_cast<double>(originals[s * kWidth + j] - samples[s * kWidth + j]) / count;
      }
      EXPECT_NEAR(all.mean_shift(j), shift, 1e-5);
      EXPECT_NEAR(first.mean_shift(j), shift, 1e-5);
      for (int i = 0; i < kWidth; ++i) {
        double product = 0;
        for (int s = 0; s < count; ++s) {
          product += samples[s * kWidth + i] *
                     static_cast<double>(originals[s * kWidth + j] - samples[s * kWidth + j]) / count;
        }
        EXPECT_NEAR(all.shift_covariance(i, j), product - all.mean(i) * shift, 1e-4) << count << " " << i << " " << j;
        EXPECT_NEAR(first.shift_covariance(i, j), product - all.mean(i) * shift, 1e-4);
      }
    }
  }
}

// Inputs that a quantised model has changed: `gain` and `offset` change all alike, `noise` by chance.
class ShiftedProducts {
 public:
  static constexpr int kWidth = 16, kChannels = 4, kSamples = 300;

  ShiftedProducts(float gain, float offset, float noise)
      : weights_(kWidth * kChannels), originals_(kSamples * kWidth), samples_(originals_.size()) {
    std::mt19937 random(5);
    std::normal_distribution<float> normal(0, 1);
    for (float& weight : weights_) weight = normal(random);
    for (int s = 0; s < kSamples; ++s) {
      const float common = normal(random);
      for (int k = 0; k < kWidth; ++k) {
        const size_t i = static_cast<size_t>(s * kWidth + k);
        originals_[i] = 1 + common + normal(random);
        samples_[i] = gain * originals_[i] + offset + noise * normal(random);
      }
    }
  }

  RoundedWeights Round(bool makes_up) const {
    CodeGrid grid;
    std::array<InputMoments, 2> halves = {InputMoments(kWidth, true, true), InputMoments(kWidth, true, true)};
    InputMoments all(kWidth, true);
    for (int s = 0; s < kSamples / 2; ++s) {  // The other half judges.
      halves[s % 2].Add(&samples_[s * kWidth], &originals_[s * kWidth]);
      all.Add(&samples_[s * kWidth]);
    }
    for (InputMoments* moments : {&halves[0], &halves[1], &all}) moments->Finish();
    return makes_up ? RoundForShiftedInputs(weights_, kChannels, halves, grid, RoundingMethod::kDescent)
                    : RoundForInputs(weights_, kChannels, all, grid, RoundingMethod::kDescent);
  }

  // The error of products with the samples that were not used, as a part of the original products.
  double Error(const RoundedWeights& rounded) const {
    double noise = 0, signal = 0;
    for (int s = kSamples / 2; s < kSamples; ++s) {
      for (int c = 0; c < kChannels; ++c) {
        double wanted = 0, found = rounded.corrections[c];
        for (int k = 0; k < kWidth; ++k) {
          wanted += static_cast<double>(weights_[k * kChannels + c]) * originals_[s * kWidth + k];
          found += static_cast<double>(rounded.codes[k * kChannels + c]) * rounded.scales[c] * samples_[s * kWidth + k];
        }
        noise += (wanted - found) * (wanted - found);
        signal += wanted * wanted;
      }
    }
    return std::sqrt(noise / signal);
  }

 private:
  std::vector<float> weights_, originals_, samples_;
};

TEST(WeightRoundingTest, WeightsAndBiasesMakeUpForShifts) {
  const ShiftedProducts systematic(0.8f, 0.3f, 0.02f);
  EXPECT_LT(systematic.Error(systematic.Round(true)), 0.2 * systematic.Error(systematic.Round(false)));
  // Noise cannot be made up for, and must not make weights worse.
  const ShiftedProducts noisy(1, 0, 0.3f);
  EXPECT_LT(noisy.Error(noisy.Round(true)), 1.02 * noisy.Error(noisy.Round(false)));
}

TEST(WeightRoundingTest, SurvivesDegenerateInputs) {
  InputMoments moments(3, true);
  const float zeros[3] = {0, 0, 0}, nan[3] = {NAN, 0, 0};
  for (int i = 0; i < 100; ++i) moments.Add(zeros);
  moments.Add(nan);
  moments.Finish();
  EXPECT_EQ(moments.count(), 100);
  for (const std::string& name : RoundingMethodNames()) {
    const RoundedWeights rounded =
        RoundForInputs({0, 0, 0, 1, -1, 0.5f}, 2, moments, Grid(127), *ParseRoundingMethod(name));
    for (const float scale : rounded.scales) EXPECT_GT(scale, 0);
    for (const float correction : rounded.corrections) EXPECT_EQ(correction, 0);
  }
  // One input that never changes, two that are always equal.
  InputMoments dependent(3, true);
  for (int i = 0; i < 100; ++i) {
    const float value = static_cast<float>(i % 7);
    const float sample[3] = {5, value, value};
    dependent.Add(sample);
  }
  dependent.Finish();
  for (const std::string& name : RoundingMethodNames()) {
    const RoundedWeights rounded =
        RoundForInputs({1e-30f, 1e30f, 1, 2, -1, 3}, 2, dependent, Grid(7), *ParseRoundingMethod(name));
    for (const float correction : rounded.corrections) EXPECT_TRUE(std::isfinite(correction)) << name;
  }
  EXPECT_TRUE(absl::IsInvalidArgument(ParseRoundingMethod("up").status()));
}

std::unique_ptr<Graph> Digits() {
  absl::StatusOr<std::unique_ptr<Graph>> graph = OpenModel(RealFileSystem(), DataFile("tests/models/digits/digits.pb"));
  EXPECT_TRUE(graph.ok()) << graph.status();
  EXPECT_TRUE((*graph)->DeclareInterface({"image"}, {"probabilities"}).ok());
  return *std::move(graph);
}

class CalibratedPassTest : public testing::Test {
 protected:
  CalibratedPassTest() : graph_(Digits()) {
    absl::StatusOr<std::vector<InputSet>> sets =
        ReadInputSets(RealFileSystem(), {DataFile("tests/models/digits/eval_images.npy")}, *graph_, /*any_batch=*/true);
    EXPECT_TRUE(sets.ok()) << sets.status();
    inputs_ = *SplitBatches(*sets, 100);
    inputs_.resize(2);
    verifier_ = std::make_unique<Verifier>(*graph_, inputs_, SessionOptions());
    context_.read_file = [this](absl::string_view path) -> absl::StatusOr<std::string> {
      const std::optional<CalibrationRequest> request = CalibrationRequest::OfPath(path);
      if (!request.has_value()) return calibration_;
      absl::StatusOr<std::string> text = Calibrate(*graph_, inputs_, SessionOptions(), *request, threads_);
      if (text.ok()) calibration_ = *text;
      return text;
    };
  }

  std::unique_ptr<Graph> Run(const std::string& transforms) {
    std::unique_ptr<Graph> graph = graph_->Clone();
    absl::StatusOr<std::vector<PassCall>> calls = ParseTransforms(transforms);
    EXPECT_TRUE(calls.ok()) << calls.status();
    const auto reports = RunPipeline(&graph, *calls, &context_);
    EXPECT_TRUE(reports.ok()) << reports.status();
    return graph;
  }

  // The error of the output relative to its size.
  double Error(const Graph& graph) const {
    const absl::StatusOr<std::vector<double>> sqnr = verifier_->MeasureOutputs(graph);
    EXPECT_TRUE(sqnr.ok()) << sqnr.status();
    return std::pow(10, -(*sqnr)[0] / 20);
  }

  std::unique_ptr<Graph> graph_;
  std::vector<InputSet> inputs_;
  std::unique_ptr<Verifier> verifier_;
  PassContext context_;
  std::string calibration_;
  int threads_ = 1;
};

TEST_F(CalibratedPassTest, CodesChosenByInputsAreBetterAndReplayed) {
  const std::string plain = "quantize_weights(bits=4, per_channel=true, minimum_size=256";
  for (const char* block : {"", ", block=32"}) {
    SCOPED_TRACE(block);
    const double before = Error(*Run(absl::StrCat(plain, block, ")")));
    calibration_.clear();
    const std::unique_ptr<Graph> rounded = Run(absl::StrCat(plain, block, ", rounding=descent)"));
    EXPECT_LT(Error(*rounded), 0.95 * before);
    ASSERT_THAT(calibration_, HasSubstr("@rounded "));
    // The file makes the same graph, whatever the number of threads.
    const std::string text = calibration_;
    threads_ = 3;
    const std::unique_ptr<Graph> replayed = Run(absl::StrCat(plain, block, ", calibration=file)"));
    EXPECT_EQ(*EncodedSize(*replayed), *EncodedSize(*rounded));
    EXPECT_EQ(Error(*replayed), Error(*rounded));
    Run(absl::StrCat(plain, block, ", rounding=descent)"));
    EXPECT_EQ(calibration_, text);
  }
}

TEST_F(CalibratedPassTest, LayersMakeUpForThoseBefore) {
  const std::string call = "quantize_weights(bits=4, per_channel=true, minimum_size=256, rounding=";
  const double descent = Error(*Run(absl::StrCat(call, "descent)")));
  const std::unique_ptr<Graph> sequential = Run(absl::StrCat(call, "sequential)"));
  EXPECT_LT(Error(*sequential), 0.9 * descent);
  const std::string text = calibration_;
  const std::unique_ptr<Graph> replayed =
      Run("quantize_weights(bits=4, per_channel=true, minimum_size=256, calibration=file)");
  EXPECT_EQ(Error(*replayed), Error(*sequential));
  threads_ = 3;
  Run(absl::StrCat(call, "sequential)"));
  EXPECT_EQ(calibration_, text);
}

TEST_F(CalibratedPassTest, EqualisedChannelsComputeTheSame) {
  const std::unique_ptr<Graph> graph = Run("equalize_channels(by=activations)");
  ASSERT_THAT(calibration_, HasSubstr("@channels "));
  EXPECT_LT(Error(*graph), 1e-5);
  const absl::StatusOr<ChannelRanges> ranges = ParseChannelRanges(calibration_);
  ASSERT_TRUE(ranges.ok()) << ranges.status();
  for (const auto& [tensor, range] : *ranges) {
    for (size_t c = 0; c < range.low.size(); ++c) EXPECT_LE(range.low[c], range.high[c]) << tensor;
  }
}

}  // namespace
}  // namespace permafrost
