// Selects which of many lossy edits to omit so that the measured noise stays within a budget.
#ifndef PERMAFROST_TRANSFORMS_REWRITES_NOISE_BUDGET_H_
#define PERMAFROST_TRANSFORMS_REWRITES_NOISE_BUDGET_H_

#include <cstddef>
#include <functional>
#include <vector>

#include "absl/status/statusor.h"

namespace permafrost {

// Measures the noise power with the edits i applied for which applied[i] is true. The budget is 1.
using NoiseMeasurement = std::function<absl::StatusOr<double>(const std::vector<bool>& applied)>;

struct NoiseChoice {
  std::vector<bool> applied;
  double noise = 0;       // Measured with these edits.
  bool is_within = true;  // False if the noise exceeds the budget even without any edit; all edits are applied then.
  int num_measurements = 0;
};

// Applies as many of `count` edits as the budget allows. Noise of different edits is mostly additive. The search halves
// the noisiest group until it finds the noisiest edits, and omits these until the remaining ones fit. The final choice
// is measured. Takes one measurement if all edits fit. Otherwise it takes about two for each omitted edit and halving,
// and at most `max_measurements` plus a few; groups that are not yet split by then are omitted whole. Returns the
// errors of `measure`.
absl::StatusOr<NoiseChoice> ChooseWithinNoise(size_t count, const NoiseMeasurement& measure, int max_measurements);

}  // namespace permafrost

#endif  // PERMAFROST_TRANSFORMS_REWRITES_NOISE_BUDGET_H_
