// How long a model would take on a device that is only described.
//
// The time of a group of nodes (node_work.h) is the sum of what its parts would take alone:
//     arithmetic  FLOPs / (peak of the cores * the share of it that kernels of this class reach)
//     traffic     bytes of activations / (rate * the share of it that kernels of this class reach)
//     weights     bytes / (rate * share)
//     steps       elements of fused elementwise nodes / (peak * share)
//     start       Device::node_seconds * the part of it that these kernels take
// Of what is needed in turn, the tensors of a group or all weights, as much as the cache holds passes at its rate, and
// the rest at that of memory.
// The shares were calibrated on one machine for each kind of kernels, with the models that
// tests/bench/device_estimates.py is given; that script fits them again, and checks the estimates by leaving out one
// model at a time.
#ifndef PERMAFROST_TOOLS_MEASURING_DEVICE_ESTIMATE_H_
#define PERMAFROST_TOOLS_MEASURING_DEVICE_ESTIMATE_H_

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "tools/command_line/console.h"
#include "tools/command_line/json.h"
#include "tools/measuring/device.h"
#include "tools/measuring/node_work.h"

namespace permafrost {

struct GroupEstimate {
  NodeWork work;
  double seconds = 0;
  double arithmetic_seconds = 0, traffic_seconds = 0;  // Of them; steps count as arithmetic.
};

struct DeviceEstimate {
  Device device;
  std::string kernels;  // Whose shares were taken: "onednn" or "reference".
  int num_threads = 1;
  double seconds = 0;
  std::vector<GroupEstimate> groups;  // As in ModelWork.
};

// Whether estimates for a delegate of this name exist; others are refused with the known ones.
absl::Status CheckHasShares(absl::string_view delegate);
// Whether the kernels of the delegate compute elementwise nodes together with what is before them.
bool Fuses(absl::string_view delegate);

// REQUIRES: CheckHasShares(delegate).ok(). More threads than the device has cores count as so many.
DeviceEstimate EstimateOn(const Device& device, const ModelWork& work, absl::string_view delegate, int num_threads);

// The sum, what it is made of, and the `limit` slowest groups; 0: all.
void PrintEstimate(const DeviceEstimate& estimate, size_t limit, const Console& console);
void WriteEstimate(const DeviceEstimate& estimate, JsonWriter* json);

}  // namespace permafrost

#endif  // PERMAFROST_TOOLS_MEASURING_DEVICE_ESTIMATE_H_
