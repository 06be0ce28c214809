// Devices that are described by a few numbers, so that a model's time on one can be estimated without having it.
#ifndef PERMAFROST_TOOLS_MEASURING_DEVICE_H_
#define PERMAFROST_TOOLS_MEASURING_DEVICE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "io/file_system.h"

namespace permafrost {

struct Device {
  std::string name;
  std::string description;
  std::string source;                 // Where the numbers are from.
  double cores = 1;                   // That a model is run on: of big.LITTLE processors the big ones.
  double flops_per_second = 0;        // Of one core: floats, two for each fused pair.
  double bytes_per_second = 0;        // Memory traffic, of all cores together.
  double cache_bytes_per_second = 0;  // Of one core, in its second-level cache.
  double cache_bytes = 0;             // What is about that near to one core.
  double node_seconds = 4e-7;         // What starting a kernel costs.
};

// The table, in the order of docs/guide/benchmark_model.md.
const std::vector<Device>& KnownDevices();

// What --device takes beside files, separated by commas.
std::string DeviceNames();

// The device that --device names: one of the table, "this" for this machine, whose numbers are measured now in about a
// second, or else a file. NotFound with the nearest names for what is none of these; for a file, InvalidArgument with
// line and column, or the field with found and expected.
absl::StatusOr<Device> FindDevice(const std::string& name, FileSystem& files);

// Reads a description:
//   {"name": "my board", "cores": 4, "flops_per_second": 9.6e9, "bytes_per_second": 2.4e9,
//    "cache_bytes": 131072, "cache_bytes_per_second": 9.6e9, "node_seconds": 2e-6, "source": "the data sheet"}
// `flops_per_second` and `bytes_per_second` are required. Left out, the cache is as fast as 2 bytes for each FLOP and
// of 256 KiB.
absl::StatusOr<Device> ParseDevice(absl::string_view text);

// Measures this machine.
Device MeasureThisDevice();

}  // namespace permafrost

#endif  // PERMAFROST_TOOLS_MEASURING_DEVICE_H_
