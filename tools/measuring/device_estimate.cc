// Multiplies the work of groups by its cost on a device.
#include "tools/measuring/device_estimate.h"

#include <algorithm>
#include <array>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace permafrost {
namespace {

constexpr double kGiga = 1e9;

// The time of kernels divided by the time at peak arithmetic, or at peak memory bandwidth: the inverse of the share
// that they reach. 0 if the other part explains all of the time.
struct ClassCosts {
  double arithmetic, traffic;
};

struct Shares {
  absl::string_view kernels;
  bool fuses;
  std::array<ClassCosts, kNumWorkClasses> classes;  // By WorkClass.
  double start;                                     // In units of Device::node_seconds.
  double step, hard;                                // FLOPs per element of a step.
  double weights;                                   // In the unit of ClassCosts::traffic.
};

// Printed by tests/bench/device_estimates.py.
constexpr Shares kShares[] = {
    {"onednn",
     true,
     {{{1.2, 1},
       {0.833, 0.898},
       {0.905, 1.23},
       {2.13, 1.09},
       {1.94, 1.16},
       {1.49, 0.997},
       {1.5, 1.07},
       {1.5, 1.03},
       {1.5, 0.885},
       {1.5, 0.968}}},
     0.282,
     0.84,
     43,
     0.32},
    {"reference",
     false,
     {{{1.65, 1.3},
       {3.09, 1.38},
       {0.988, 1.85},
       {2.58, 1.44},
       {1.95, 1.18},
       {1.49, 0.997},
       {1.5, 1.76},
       {1.5, 0.138},
       {1.5, 0.576},
       {1.5, 0.986}}},
     0,
     8.36,
     47.1,
     0.242},
};

const Shares* FindShares(absl::string_view delegate) {
  for (const Shares& shares : kShares) {
    if (shares.kernels == delegate) return &shares;
  }
  return nullptr;
}

}  // namespace

absl::Status CheckHasShares(absl::string_view delegate) {
  if (FindShares(delegate) != nullptr) return absl::OkStatus();
  std::string known;
  for (const Shares& shares : kShares) absl::StrAppend(&known, known.empty() ? "" : ", ", shares.kernels);
  return absl::InvalidArgumentError(
      absl::StrCat("found '", delegate, "', expected one that was calibrated for estimates: ", known));
}

bool Fuses(absl::string_view delegate) {
  const Shares* shares = FindShares(delegate);
  return shares != nullptr && shares->fuses;
}

DeviceEstimate EstimateOn(const Device& device, const ModelWork& work, absl::string_view delegate, int num_threads) {
  const Shares& shares = *FindShares(delegate);
  DeviceEstimate estimate;
  estimate.device = device;
  estimate.kernels = std::string(delegate);
  estimate.num_threads = std::max(1, std::min(num_threads, static_cast<int>(device.cores)));
  const double threads = estimate.num_threads;
  const double flops_per_second = device.flops_per_second * threads;
  const double cache_rate = std::max(device.cache_bytes_per_second * threads, device.bytes_per_second);
  // Returns the time to move `bytes`, a part of the `all` bytes used in turn: the part beyond the cache comes from
  // memory.
  const auto passing = [&](double bytes, double all) {
    const double near = all > 0 ? std::min(1.0, device.cache_bytes * threads / all) : 1.0;
    return bytes * (near / cache_rate + (1 - near) / device.bytes_per_second);
  };
  for (const NodeWork& group : work.groups) {
    const ClassCosts& costs = shares.classes[static_cast<size_t>(group.work_class)];
    GroupEstimate& made = estimate.groups.emplace_back();
    made.work = group;
    made.arithmetic_seconds =
        (group.flops * costs.arithmetic + group.step_elements * shares.step + group.hard_elements * shares.hard) /
        flops_per_second;
    made.traffic_seconds = passing(group.activation_bytes, group.activation_bytes) * costs.traffic +
                           passing(group.weight_bytes, work.weight_bytes) * shares.weights;
    made.seconds = made.arithmetic_seconds + made.traffic_seconds + device.node_seconds * shares.start;
    estimate.seconds += made.seconds;
  }
  return estimate;
}

void PrintEstimate(const DeviceEstimate& estimate, size_t limit, const Console& console) {
  const Device& device = estimate.device;
  console.out << "device: " << Printable(device.name);
  if (!device.description.empty()) console.out << " (" << Printable(device.description) << ")";
  console.out << absl::StrFormat("\n  %.1f GFLOP/s and %.1f GB/s from the cache a core, %.1f GB/s from memory\n",
                                 device.flops_per_second / kGiga, device.cache_bytes_per_second / kGiga,
                                 device.bytes_per_second / kGiga);
  if (!device.source.empty()) console.out << "  " << Printable(device.source) << "\n";
  double arithmetic = 0, traffic = 0;
  for (const GroupEstimate& group : estimate.groups) {
    arithmetic += group.arithmetic_seconds;
    traffic += group.traffic_seconds;
  }
  // Rounding may have made a rest of 0 negative.
  const double rest = std::max(0.0, estimate.seconds - arithmetic - traffic);
  console.out << "estimate: " << FormatSeconds(estimate.seconds) << " a run with kernels like " << estimate.kernels
              << "'s on " << estimate.num_threads << " thread" << (estimate.num_threads == 1 ? "" : "s")
              << ": arithmetic " << FormatSeconds(arithmetic) << ", memory " << FormatSeconds(traffic) << ", starting "
              << estimate.groups.size() << " kernels " << FormatSeconds(rest) << "\n";
  std::vector<size_t> order(estimate.groups.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return estimate.groups[a].seconds > estimate.groups[b].seconds; });
  Table table({{"node"},
               {"kind"},
               {"nodes", true},
               {"time", true},
               {"share", true},
               {"MFLOP", true},
               {"KB", true},
               {"bound by"}});
  for (size_t i = 0; i < order.size() && (limit == 0 || i < limit); ++i) {
    const GroupEstimate& group = estimate.groups[order[i]];
    table.AddRow({Printable(group.work.node->name()), std::string(WorkClassName(group.work.work_class)),
                  absl::StrCat(group.work.members.size()), FormatSeconds(group.seconds),
                  absl::StrFormat("%.1f %%", estimate.seconds > 0 ? 100 * group.seconds / estimate.seconds : 0),
                  absl::StrFormat("%.2f", group.work.flops * 1e-6),
                  absl::StrFormat("%.1f", (group.work.activation_bytes + group.work.weight_bytes) * 1e-3),
                  group.traffic_seconds > group.arithmetic_seconds ? "memory" : "arithmetic"});
  }
  if (!table.empty()) table.Print(console, "  ");
}

void WriteEstimate(const DeviceEstimate& estimate, JsonWriter* json) {
  const Device& device = estimate.device;
  json->BeginObject();
  json->Key("device").BeginObject();
  json->Key("name").Text(device.name);
  json->Key("description").Text(device.description);
  json->Key("source").Text(device.source);
  json->Key("cores").Number(device.cores);
  json->Key("flops_per_second").Number(device.flops_per_second);
  json->Key("bytes_per_second").Number(device.bytes_per_second);
  json->Key("cache_bytes_per_second").Number(device.cache_bytes_per_second);
  json->Key("cache_bytes").Number(device.cache_bytes);
  json->Key("node_seconds").Number(device.node_seconds);
  json->End();
  json->Key("kernels").Text(estimate.kernels);
  json->Key("threads").Integer(estimate.num_threads);
  json->Key("seconds").Number(estimate.seconds);
  json->Key("groups").BeginArray();
  for (const GroupEstimate& group : estimate.groups) {
    json->BeginObject();
    json->Key("node").Text(group.work.node->name());
    json->Key("op").Text(group.work.node->op().name());
    json->Key("kind").Text(WorkClassName(group.work.work_class));
    json->Key("members").BeginArray();
    for (const Node* member : group.work.members) json->Text(member->name());
    json->End();
    json->Key("flops").Number(group.work.flops);
    json->Key("activation_bytes").Number(group.work.activation_bytes);
    json->Key("weight_bytes").Number(group.work.weight_bytes);
    json->Key("step_elements").Number(group.work.step_elements);
    json->Key("hard_elements").Number(group.work.hard_elements);
    json->Key("arithmetic_seconds").Number(group.arithmetic_seconds);
    json->Key("traffic_seconds").Number(group.traffic_seconds);
    json->Key("seconds").Number(group.seconds);
    json->End();
  }
  json->End();
  json->End();
}

}  // namespace permafrost
