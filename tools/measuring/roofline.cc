// Divides costs by measured times.
#include "tools/measuring/roofline.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace permafrost {
namespace {

constexpr double kGiga = 1e9;

}  // namespace

Roofline MakeRoofline(const ProfileSummary& summary, const NodeCosts& costs, const MachinePeaks& peaks) {
  Roofline roofline;
  roofline.peaks = peaks;
  for (const ProfileRow& from : summary.Rows()) {
    const NodeCost* cost = costs.Find(from.label);
    const double seconds = from.total_us / static_cast<double>(from.num_runs) * 1e-6;
    if (cost == nullptr || seconds <= 0) continue;
    const auto flops = static_cast<double>(cost->flops);
    const double bytes = static_cast<double>(cost->input_bytes) + static_cast<double>(cost->output_bytes);
    if (flops + bytes <= 0) continue;
    RooflineRow& row = roofline.rows.emplace_back();
    row.name = from.shown.name;
    row.type = from.shown.type;
    row.seconds = seconds;
    row.flops_per_second = flops / seconds;
    row.bytes_per_second = bytes / seconds;
    row.intensity = bytes > 0 ? flops / bytes : 0;
    const double computing = flops / peaks.flops_per_second, moving = bytes / peaks.bytes_per_second;
    row.is_bound_by_memory = moving > computing;
    row.share_of_roof = std::max(computing, moving) / seconds;
  }
  std::stable_sort(roofline.rows.begin(), roofline.rows.end(),
                   [](const RooflineRow& a, const RooflineRow& b) { return a.seconds > b.seconds; });
  return roofline;
}

void PrintRoofline(const Roofline& roofline, size_t limit, const Console& console) {
  const MachinePeaks& peaks = roofline.peaks;
  console.out << absl::StrFormat("Roofline: this machine does %.1f GFLOP/s (%s) and moves %.1f GB/s with %d thread%s\n",
                                 peaks.flops_per_second / kGiga, peaks.instructions, peaks.bytes_per_second / kGiga,
                                 peaks.num_threads, peaks.num_threads == 1 ? "" : "s");
  Table table({{"node"},
               {"type"},
               {"time", true},
               {"GFLOP/s", true},
               {"GB/s", true},
               {"FLOP/byte", true},
               {"of the roof", true},
               {"bound by"}});
  size_t count = 0;
  for (const RooflineRow& row : roofline.rows) {
    if (limit > 0 && count++ == limit) break;
    table.AddRow({Printable(row.name), Printable(row.type), FormatSeconds(row.seconds),
                  absl::StrFormat("%.1f", row.flops_per_second / kGiga),
                  absl::StrFormat("%.1f", row.bytes_per_second / kGiga), absl::StrFormat("%.1f", row.intensity),
                  absl::StrFormat("%.0f %%", 100 * row.share_of_roof),
                  row.is_bound_by_memory ? "memory" : "arithmetic"});
  }
  table.Print(console, "  ");
  const bool has_cached = std::any_of(roofline.rows.begin(), roofline.rows.end(), [](const RooflineRow& row) {
    return row.is_bound_by_memory && row.share_of_roof > 1;
  });
  if (has_cached) {
    console.out
        << "  more than 100 % of the roof: the tensors fit the processor's cache, which is faster than the memory "
           "that was measured\n";
  }
}

void WriteRoofline(const Roofline& roofline, JsonWriter* json) {
  json->BeginObject();
  json->Key("peak_flops_per_second").Number(roofline.peaks.flops_per_second);
  json->Key("peak_bytes_per_second").Number(roofline.peaks.bytes_per_second);
  json->Key("instructions").Text(roofline.peaks.instructions);
  json->Key("threads").Integer(roofline.peaks.num_threads);
  json->Key("nodes").BeginArray();
  for (const RooflineRow& row : roofline.rows) {
    json->BeginObject();
    json->Key("name").Text(row.name);
    json->Key("type").Text(row.type);
    json->Key("mean_seconds").Number(row.seconds);
    json->Key("flops_per_second").Number(row.flops_per_second);
    json->Key("bytes_per_second").Number(row.bytes_per_second);
    json->Key("flops_per_byte").Number(row.intensity);
    json->Key("share_of_roof").Number(row.share_of_roof);
    json->Key("bound_by").Text(row.is_bound_by_memory ? "memory" : "arithmetic");
    json->End();
  }
  json->End();
  json->End();
}

}  // namespace permafrost
