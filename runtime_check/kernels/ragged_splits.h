// The row splits of ragged tensors: row i has the values [splits[i], splits[i + 1]).
#ifndef PERMAFROST_RUNTIME_CHECK_KERNELS_RAGGED_SPLITS_H_
#define PERMAFROST_RUNTIME_CHECK_KERNELS_RAGGED_SPLITS_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace permafrost {

// Returns InvalidArgument unless the splits ascend from 0 to `num_values`. Without values, empty splits are also valid.
template <typename Split>
absl::Status CheckSplits(const Split* splits, int64_t num_splits, int64_t num_values) {
  if (num_splits == 0 && num_values == 0) return absl::OkStatus();
  if (num_splits == 0) return absl::InvalidArgumentError("the splits are empty, expected a 0");
  for (int64_t i = 0; i < num_splits; ++i) {
    const bool ascends = i == 0 ? splits[0] == 0 : splits[i] >= splits[i - 1];
    if (ascends && (i + 1 < num_splits || static_cast<int64_t>(splits[i]) == num_values)) continue;
    return absl::InvalidArgumentError(absl::StrCat("the splits have ", splits[i], " at element ", i,
                                                   ", expected ascending numbers from 0 to ", num_values));
  }
  return absl::OkStatus();
}

}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_KERNELS_RAGGED_SPLITS_H_
