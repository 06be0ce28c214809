// Lists partitions, reasons and custom kernels.
#include "tools/model/delegation_listing.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

namespace permafrost {
namespace {

using Taken = DelegationReport::Taken;

// Maximum number of names and of pieces in a printed list.
constexpr size_t kMostListed = 12;

std::string Nodes(size_t count) { return absl::StrCat(count, count == 1 ? " node" : " nodes"); }

// Returns, for example, "'a', 'b' and 3 more".
std::string ListNames(const std::vector<std::string>& names) {
  std::string text;
  const size_t count = std::min(names.size(), kMostListed);
  for (size_t i = 0; i < count; ++i) absl::StrAppend(&text, i == 0 ? "'" : ", '", Printable(names[i]), "'");
  if (names.size() > count) absl::StrAppend(&text, " and ", names.size() - count, " more");
  return text;
}

// Returns the function that contains a node; empty for the graph itself.
std::string Place(const std::string& function) {
  return function.empty() ? "" : absl::StrCat(" in function '", Printable(function), "'");
}

void PrintPartition(const Taken& taken, const Console& console) {
  console.out << "  " << Printable(taken.delegate) << " runs " << Nodes(taken.nodes.size()) << Place(taken.function)
              << ": " << ListNames(taken.nodes) << "\n";
  console.out << "    keeps " << FormatBytes(static_cast<uint64_t>(std::max<int64_t>(0, taken.constant_bytes)))
              << ", works in " << FormatBytes(static_cast<uint64_t>(std::max<int64_t>(0, taken.scratch_bytes))) << "\n";
  const size_t count = std::min(taken.pieces.size(), kMostListed);
  for (size_t i = 0; i < count; ++i) console.out << "    " << Printable(taken.pieces[i]) << "\n";
  if (taken.pieces.size() > count) console.out << "    and " << taken.pieces.size() - count << " more pieces\n";
}

// Nodes grouped by a common property, the largest group first.
using Groups = std::vector<std::pair<std::string, std::vector<std::string>>>;
Groups Sorted(const std::map<std::string, std::vector<std::string>>& by_text) {
  Groups groups(by_text.begin(), by_text.end());
  std::stable_sort(groups.begin(), groups.end(),
                   [](const auto& a, const auto& b) { return a.second.size() > b.second.size(); });
  return groups;
}

}  // namespace

void PrintDelegation(const PlanReport& report, const Console& console) {
  const DelegationReport& delegation = report.delegation;
  size_t num_taken = 0;
  for (const Taken& taken : delegation.partitions) num_taken += taken.nodes.size();
  console.out << "the candidate runs in " << report.num_steps << (report.num_steps == 1 ? " step" : " steps")
              << ", with " << FormatBytes(static_cast<uint64_t>(report.arena_bytes)) << " for activations; ";
  if (delegation.partitions.empty()) {
    console.out << "no delegate takes part\n";
  } else {
    console.out << delegation.partitions.size() << (delegation.partitions.size() == 1 ? " partition" : " partitions")
                << " of " << Nodes(num_taken) << "\n";
  }
  if (report.num_lanes > 1 && report.num_stretches == 0) {
    console.out << "  no step runs beside others: it would gain nothing\n";
  } else if (report.num_lanes > 1) {
    console.out << "  " << report.num_beside << " steps run beside others, up to " << report.num_lanes
                << " at the same time, in " << report.num_stretches
                << (report.num_stretches == 1 ? " stretch\n" : " stretches\n");
  }
  for (const Taken& taken : delegation.partitions) PrintPartition(taken, console);
  for (const LoopReport& loop : report.loops) {
    console.out << "  loop '" << Printable(loop.loop) << "'" << Place(loop.function)
                << (loop.reason.empty() ? " runs as one plan" : " runs node by node: ") << Printable(loop.reason)
                << "\n";
    if (!loop.reason.empty()) continue;
    for (const std::string& step : loop.steps) console.out << "    " << Printable(step) << "\n";
  }
  std::map<std::string, std::vector<std::string>> left, custom;
  for (const DelegationReport::Left& node : delegation.left) {
    left[absl::StrCat(node.op, Place(node.function), ": ", node.reason)].push_back(node.node);
  }
  for (const CustomNode& node : report.custom) {
    custom[absl::StrCat(node.op, Place(node.function), ": ", node.kernel)].push_back(node.node);
  }
  for (const auto& [text, nodes] : Sorted(left)) {
    console.out << "  left to the kernels: " << Nodes(nodes.size()) << ", " << Printable(text) << ": "
                << ListNames(nodes) << "\n";
  }
  for (const auto& [text, nodes] : Sorted(custom)) {
    console.out << "  custom kernel: " << Nodes(nodes.size()) << ", " << Printable(text) << ": " << ListNames(nodes)
                << "\n";
  }
}

void WriteDelegation(const PlanReport& report, JsonWriter* json) {
  json->BeginObject();
  json->Key("steps").Integer(report.num_steps);
  json->Key("arena_bytes").Integer(report.arena_bytes);
  json->Key("steps_beside").Integer(report.num_beside);
  json->Key("failure").Text(report.delegation.failure);
  json->Key("partitions").BeginArray();
  for (const Taken& taken : report.delegation.partitions) {
    json->BeginObject();
    json->Key("delegate").Text(taken.delegate);
    json->Key("function").Text(taken.function);
    json->Key("nodes").Texts(taken.nodes);
    json->Key("pieces").Texts(taken.pieces);
    json->Key("constant_bytes").Integer(taken.constant_bytes);
    json->Key("scratch_bytes").Integer(taken.scratch_bytes);
    json->End();
  }
  json->End();
  json->Key("left").BeginArray();
  for (const DelegationReport::Left& node : report.delegation.left) {
    json->BeginObject();
    json->Key("node").Text(node.node);
    json->Key("op").Text(node.op);
    json->Key("function").Text(node.function);
    json->Key("reason").Text(node.reason);
    json->End();
  }
  json->End();
  json->Key("loops").BeginArray();
  for (const LoopReport& loop : report.loops) {
    json->BeginObject();
    json->Key("loop").Text(loop.loop);
    json->Key("function").Text(loop.function);
    json->Key("steps").Texts(loop.steps);
    json->Key("reason").Text(loop.reason);
    json->End();
  }
  json->End();
  json->Key("custom").BeginArray();
  for (const CustomNode& node : report.custom) {
    json->BeginObject();
    json->Key("node").Text(node.node);
    json->Key("op").Text(node.op);
    json->Key("function").Text(node.function);
    json->Key("kernel").Text(node.kernel);
    json->End();
  }
  json->End();
  json->End();
}

}  // namespace permafrost
