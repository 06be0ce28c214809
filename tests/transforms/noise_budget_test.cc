// Tests the search for edits that exceed a noise budget.
#include "transforms/rewrites/noise_budget.h"

#include <gtest/gtest.h>

namespace permafrost {
namespace {

// Returns a measurement in which noise powers add up to `base` plus the sum.
NoiseMeasurement Sum(const std::vector<double>& noises, double base = 0) {
  return [noises, base](const std::vector<bool>& applied) {
    double sum = base;
    for (size_t i = 0; i < noises.size(); ++i) sum += applied[i] ? noises[i] : 0;
    return sum;
  };
}

TEST(NoiseBudgetTest, AppliesAllThatFits) {
  const NoiseChoice choice = ChooseWithinNoise(50, Sum(std::vector<double>(50, 0.01)), 64).value();
  EXPECT_EQ(choice.applied, std::vector<bool>(50, true));
  EXPECT_EQ(choice.num_measurements, 1);
}

TEST(NoiseBudgetTest, LeavesOutTheNoisiest) {
  std::vector<double> noises(100, 0.002);
  noises[17] = 3;
  noises[71] = 5;
  const NoiseChoice choice = ChooseWithinNoise(100, Sum(noises), 64).value();
  for (size_t i = 0; i < 100; ++i) EXPECT_EQ(choice.applied[i], i != 17 && i != 71) << i;
  EXPECT_LE(choice.noise, 1);
  EXPECT_LT(choice.num_measurements, 40);
}

TEST(NoiseBudgetTest, NoiseThatIsCorrelatedIsMeasured) {
  // Amplitudes add up: the power of all edits is far more than the sum of the powers.
  const NoiseMeasurement measure = [](const std::vector<bool>& applied) {
    double amplitude = 0;
    for (const bool is_applied : applied) amplitude += is_applied ? 0.2 : 0;
    return amplitude * amplitude;
  };
  const NoiseChoice choice = ChooseWithinNoise(30, measure, 200).value();
  EXPECT_LE(choice.noise, 1);
  EXPECT_LE(measure(choice.applied).value(), 1);
}

TEST(NoiseBudgetTest, EndsWithinItsMeasurements) {
  int count = 0;
  const std::vector<double> noises(1000, 0.5);
  const NoiseMeasurement measure = [&](const std::vector<bool>& applied) {
    ++count;
    return Sum(noises)(applied);
  };
  const NoiseChoice choice = ChooseWithinNoise(1000, measure, 20).value();
  EXPECT_LE(choice.noise, 1);
  EXPECT_LT(count, 40);
}

TEST(NoiseBudgetTest, NoiseFromElsewhereIsReported) {
  const NoiseChoice choice = ChooseWithinNoise(4, Sum({0, 0, 0, 0}, 2), 64).value();
  EXPECT_FALSE(choice.is_within);
}

TEST(NoiseBudgetTest, ErrorsOfMeasurementsComeOut) {
  const NoiseMeasurement fails = [](const std::vector<bool>&) -> absl::StatusOr<double> {
    return absl::UnimplementedError("no kernel");
  };
  EXPECT_EQ(ChooseWithinNoise(3, fails, 64).status().message(), "no kernel");
}

}  // namespace
}  // namespace permafrost
