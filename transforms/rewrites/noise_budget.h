// Chooses which of many lossy edits to leave out so that a measured noise stays within a budget.
#ifndef PERMAFROST_TRANSFORMS_REWRITES_NOISE_BUDGET_H_
#define PERMAFROST_TRANSFORMS_REWRITES_NOISE_BUDGET_H_

#include <cstddef>
#include <functional>
#include <vector>

#include "absl/status/statusor.h"

namespace permafrost {

// Measures the noise power with the edits i applied for which applied[i]. 1 is what is allowed.
using NoiseMeasurement = std::function<absl::StatusOr<double>(const std::vector<bool>& applied)>;

struct NoiseChoice {
  std::vector<bool> applied;
  double noise = 0;       // As measured with these edits.
  bool is_within = true;  // False where the noise is too large without any edit: all are applied then.
  int num_measurements = 0;
};

// Applies as many of `count` edits as the budget bears. Noise of different edits mostly adds up, so the edits with the
// most noise are found by halving groups, the noisiest group first, and left out until the rest fits. The choice itself
// is measured. One measurement if all edits fit, otherwise about two for each edit that is left out and halving, and at
// most `max_measurements` plus a few; groups that are not taken apart by then are left out whole. Errors are those of
// `measure`.
absl::StatusOr<NoiseChoice> ChooseWithinNoise(size_t count, const NoiseMeasurement& measure, int max_measurements);

}  // namespace permafrost

#endif  // PERMAFROST_TRANSFORMS_REWRITES_NOISE_BUDGET_H_
