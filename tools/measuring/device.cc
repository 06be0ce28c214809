// The table of devices, and the parser of descriptions.
#include "tools/measuring/device.h"

#include <algorithm>
#include <cmath>
#include <thread>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "graph/base/nearest.h"
#include "graph/base/status.h"
#include "io/formats/json_value.h"
#include "tools/measuring/machine_peaks.h"

namespace permafrost {
namespace {

constexpr absl::string_view kThisDevice = "this";
// Default cache bandwidth: two bytes per FLOP, which is 8 bytes per cycle for a core with four FLOPs per cycle.
constexpr double kCacheBytesForFlop = 2;
constexpr double kUsualCacheBytes = 256 << 10;

struct Field {
  const char* name;
  double Device::*value;
  bool is_required;
  double least, most;
};
constexpr Field kFields[] = {
    {"cores", &Device::cores, false, 1, 1024},
    {"flops_per_second", &Device::flops_per_second, true, 1e3, 1e18},
    {"bytes_per_second", &Device::bytes_per_second, true, 1e3, 1e18},
    {"cache_bytes_per_second", &Device::cache_bytes_per_second, false, 1e3, 1e18},
    {"cache_bytes", &Device::cache_bytes, false, 0, 1e15},
    {"node_seconds", &Device::node_seconds, false, 0, 1},
};

absl::Status CheckFields(const JsonValue& object) {
  std::vector<absl::string_view> known = {"name", "description", "source"};
  for (const Field& field : kFields) known.push_back(field.name);
  for (const auto& [key, value] : object.members) {
    if (std::find(known.begin(), known.end(), key) != known.end()) continue;
    return absl::InvalidArgumentError(absl::StrCat("field '", key, "' is not known", DidYouMean(key, known)));
  }
  return absl::OkStatus();
}

absl::Status ReadText(const JsonValue& object, absl::string_view key, std::string* text) {
  if (object.Find(key) == nullptr) return absl::OkStatus();
  PF_ASSIGN_OR_RETURN(*text, TextMember(object, key));
  return absl::OkStatus();
}

}  // namespace

// FLOPs per cycle are those of WikiChip's table "FLOPs by microarchitecture". Memory bandwidth is that of STREAM's
// triad where a source is named, otherwise 0.7 of the wire rate: Texas Instruments' application note SPRACV1B measured
// 0.67 to 0.74 of it on Cortex-A53. Bandwidths of second-level caches are not published. They are assumed to be 4 bytes
// per cycle for a Cortex-A53, 8 for a Cortex-A7x, 16 for a Cortex-X1 and 32 for a Xeon. Starting a kernel takes about
// 1,000 cycles on a Xeon (measured), and twice that is assumed for the others.
const std::vector<Device>& KnownDevices() {
  static const auto* const devices = new std::vector<Device>{
      {"cortex-a53", "Raspberry Pi 3: 4 Cortex-A53 at 1.2 GHz",
       "8 FLOPs a cycle; LPDDR2-900 of 32 bits, 3.6 GB/s by wire; 512 KiB for four cores (BCM2837)", 4, 9.6e9, 2.5e9,
       4.8e9, 128 << 10, 1.7e-6},
      {"cortex-a72", "Raspberry Pi 4: 4 Cortex-A72 at 1.5 GHz",
       "8 FLOPs a cycle; STREAM triad 4.84 GB/s (sci-pi.org.uk); 1 MiB for four cores (BCM2711)", 4, 12e9, 4.84e9, 12e9,
       256 << 10, 1.3e-6},
      {"cortex-a76", "Raspberry Pi 5: 4 Cortex-A76 at 2.4 GHz",
       "16 FLOPs a cycle; LPDDR4X-4267 of 32 bits, 17.1 GB/s by wire; 512 KiB a core (BCM2712)", 4, 38.4e9, 12e9,
       19.2e9, 512 << 10, 8e-7},
      {"pixel-4", "Pixel 4: the 4 Cortex-A76 of a Snapdragon 855, at 2.42 GHz",
       "16 FLOPs a cycle; LPDDR4X-4266 of 64 bits, 34.1 GB/s by wire; 256 KiB a core", 4, 38.7e9, 23.9e9, 19.4e9,
       256 << 10, 8e-7},
      {"pixel", "Pixel 6: the 2 Cortex-X1 of a Tensor, at 2.8 GHz",
       "32 FLOPs a cycle; LPDDR5-6400 of 64 bits, 51.2 GB/s by wire; 1 MiB a core", 2, 89.6e9, 35.8e9, 44.8e9, 1 << 20,
       7e-7},
      {"x86-server", "Xeon Gold 6148: 20 cores at 1.6 GHz, its base with AVX-512",
       "64 FLOPs a cycle; 6 channels of DDR4-2666, 128 GB/s by wire; 1 MiB a core (Intel's data sheet)", 20, 102.4e9,
       89.6e9, 51.2e9, 1 << 20, 6e-7},
  };
  return *devices;
}

std::string DeviceNames() {
  std::string names;
  for (const Device& device : KnownDevices()) absl::StrAppend(&names, device.name, ", ");
  return absl::StrCat(names, kThisDevice);
}

absl::StatusOr<Device> ParseDevice(absl::string_view text) {
  PF_ASSIGN_OR_RETURN(const JsonValue json, ParseJson(text));
  if (json.kind != JsonValue::Kind::kObject) return absl::InvalidArgumentError("expected an object with fields");
  PF_RETURN_IF_ERROR(CheckFields(json));
  Device device;
  device.name = "device";
  PF_RETURN_IF_ERROR(ReadText(json, "name", &device.name));
  PF_RETURN_IF_ERROR(ReadText(json, "description", &device.description));
  PF_RETURN_IF_ERROR(ReadText(json, "source", &device.source));
  device.cache_bytes = kUsualCacheBytes;
  for (const Field& field : kFields) {
    const JsonValue* member = json.Find(field.name);
    if (member == nullptr) {
      if (field.is_required) return absl::InvalidArgumentError(absl::StrCat("field '", field.name, "' is missing"));
      continue;
    }
    const bool fits =
        member->kind == JsonValue::Kind::kNumber && member->number >= field.least && member->number <= field.most;
    if (!fits) {
      return absl::InvalidArgumentError(
          absl::StrCat("field '", field.name, "': found ",
                       member->kind == JsonValue::Kind::kNumber ? absl::StrCat(member->number) : "no number",
                       ", expected a number from ", field.least, " to ", field.most));
    }
    device.*field.value = member->number;
  }
  if (device.cache_bytes_per_second == 0) {
    device.cache_bytes_per_second = std::max(device.bytes_per_second, kCacheBytesForFlop * device.flops_per_second);
  }
  return device;
}

Device MeasureThisDevice() {
  Device device;
  device.name = std::string(kThisDevice);
  device.description = "this machine";
  device.source = "measured now";
  device.cores = std::max(1u, std::thread::hardware_concurrency());
  const MachinePeaks one = MeasureMachinePeaks(1);
  const MachinePeaks all = MeasureMachinePeaks(static_cast<int>(device.cores));
  device.flops_per_second = one.flops_per_second;
  device.cache_bytes_per_second = one.cache_bytes_per_second;
  device.bytes_per_second = std::max(one.bytes_per_second, all.bytes_per_second);
  device.cache_bytes = one.cache_bytes;
  return device;
}

absl::StatusOr<Device> FindDevice(const std::string& name, FileSystem& files) {
  if (name == kThisDevice) return MeasureThisDevice();
  std::vector<absl::string_view> known = {kThisDevice};
  for (const Device& device : KnownDevices()) {
    if (device.name == name) return device;
    known.push_back(device.name);
  }
  if (!absl::StrContains(name, '/') && !absl::StrContains(name, '.') && !files.Exists(name)) {
    return absl::NotFoundError(absl::StrCat("found '", name, "', expected one of ", DeviceNames(),
                                            ", or a file that describes a device", DidYouMean(name, known)));
  }
  PF_ASSIGN_OR_RETURN(const std::string text, files.ReadFile(name));
  absl::StatusOr<Device> device = ParseDevice(text);
  PF_RETURN_IF_ERROR(Annotate(device.status(), absl::StrCat("'", name, "'")));
  return device;
}

}  // namespace permafrost
