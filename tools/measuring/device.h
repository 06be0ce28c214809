// Devices described by a few numbers, so that the latency of a model can be estimated without the device.
#ifndef PERMAFROST_TOOLS_MEASURING_DEVICE_H_
#define PERMAFROST_TOOLS_MEASURING_DEVICE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "io/file_system.h"

namespace permafrost {

// The description of a device.
struct Device {
  std::string name;
  std::string description;
  std::string source;                 // Source of the numbers.
  double cores = 1;                   // Cores used for a model: on big.LITTLE processors the big cores.
  double flops_per_second = 0;        // Of one core, in float; a fused multiply-add counts as two.
  double bytes_per_second = 0;        // Memory bandwidth of all cores together.
  double cache_bytes_per_second = 0;  // Bandwidth of one core from its second-level cache.
  double cache_bytes = 0;             // Capacity per core of that cache.
  double node_seconds = 4e-7;         // Cost of starting a kernel.
};

// Returns the table of devices, in the order of docs/guide/benchmark_model.md.
const std::vector<Device>& KnownDevices();

// Returns the names that --device takes besides files, separated by commas.
std::string DeviceNames();

// Returns the device named by --device: a name in the table, "this" for this machine (measured in about one second), or
// else a file. NotFound with the nearest names for any other text. For a file, InvalidArgument with line and column, or
// with the field, found and expected.
absl::StatusOr<Device> FindDevice(const std::string& name, FileSystem& files);

// Parses a description:
//   {"name": "my board", "cores": 4, "flops_per_second": 9.6e9, "bytes_per_second": 2.4e9,
//    "cache_bytes": 131072, "cache_bytes_per_second": 9.6e9, "node_seconds": 2e-6, "source": "the data sheet"}
// `flops_per_second` and `bytes_per_second` are required. The cache defaults to 256 KiB and 2 bytes per FLOP.
absl::StatusOr<Device> ParseDevice(absl::string_view text);

// Measures this machine.
Device MeasureThisDevice();

}  // namespace permafrost

#endif  // PERMAFROST_TOOLS_MEASURING_DEVICE_H_
