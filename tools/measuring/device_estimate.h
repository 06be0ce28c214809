// Estimates the latency of a model on a device given only by its description.
//
// The time of a group of nodes (node_work.h) is the sum of the times that its parts would take alone:
//     arithmetic  FLOPs / (peak of the cores * the share of it that kernels of this class reach)
//     traffic     bytes of activations / (rate * the share of it that kernels of this class reach)
//     weights     bytes / (rate * share)
//     steps       elements of fused elementwise nodes / (peak * share)
//     start       Device::node_seconds * the part of it that these kernels take
// For data used in turn (the tensors of a group, or all weights), the part that fits the cache moves at the cache's
// rate, and the rest at the memory's. The shares were calibrated on one machine for each kind of kernels, with the
// models passed to tests/bench/device_estimates.py. That script fits them again, and cross-validates the estimates by
// leaving out one model at a time.
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
  double arithmetic_seconds = 0, traffic_seconds = 0;  // Parts of `seconds`; steps count as arithmetic.
};

// The estimate for a model, with its parts.
struct DeviceEstimate {
  Device device;
  std::string kernels;  // The kernels whose shares were used: "onednn" or "reference".
  int num_threads = 1;
  double seconds = 0;
  std::vector<GroupEstimate> groups;  // As in ModelWork.
};

// Checks that estimates exist for a delegate of this name. The error lists the known delegates.
absl::Status CheckHasShares(absl::string_view delegate);
// Returns whether the kernels of the delegate fuse elementwise nodes into the node before them.
bool Fuses(absl::string_view delegate);

// Estimates the latency. REQUIRES: CheckHasShares(delegate).ok(). The number of threads is capped at the device's
// cores.
DeviceEstimate EstimateOn(const Device& device, const ModelWork& work, absl::string_view delegate, int num_threads);

// Prints the total, its parts, and the `limit` slowest groups; 0: all.
void PrintEstimate(const DeviceEstimate& estimate, size_t limit, const Console& console);
void WriteEstimate(const DeviceEstimate& estimate, JsonWriter* json);

}  // namespace permafrost

#endif  // PERMAFROST_TOOLS_MEASURING_DEVICE_ESTIMATE_H_
