// Ranks sections by what fewer bits in them cost and save, and takes as many as fit.
#include "runtime_check/precision_search.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "absl/time/clock.h"
#include "graph/op.h"
#include "graph/status.h"

namespace permafrost {
namespace {

constexpr size_t kMostSections = 40, kFewestSections = 6;
// Of the budget, for inputs that are not among the samples.
constexpr double kMargin = 0.85;
// Of the time that the search may take; then it is content with what it has.
constexpr double kMostOvertime = 1.5;

bool IsLayer(const Graph& graph, const std::string& name) {
  const Node* node = graph.Find(name);
  if (node == nullptr) return false;
  switch (node->op().id()) {
    case ops::kConv2D:
    case ops::k_FusedConv2D:
    case ops::kDepthwiseConv2dNative:
    case ops::k_FusedDepthwiseConv2dNative:
    case ops::kConv2DBackpropInput:
    case ops::kMatMul:
    case ops::k_FusedMatMul:
      return true;
    default:
      return false;
  }
}

// One section a layer: from it to the next. What comes before the first belongs to it.
std::vector<PlanSection> LayersOf(const Graph& graph, const DelegationReport& report) {
  std::vector<PlanSection> sections;
  for (const DelegationReport::Taken& taken : report.partitions) {
    if (!taken.function.empty()) continue;
    for (const std::string& name : taken.nodes) {
      const bool is_layer = IsLayer(graph, name);
      if (sections.empty() || (is_layer && !sections.back().layers.empty())) sections.emplace_back();
      sections.back().nodes.push_back(name);
      if (is_layer) sections.back().layers.push_back(name);
    }
  }
  return sections;
}

// A section with fewer bits than f32.
struct Change {
  size_t section = 0;
  Precision precision = Precision::kF32;
  double saved = 0;  // Seconds.
  double harm = 0;   // The largest of the squares of the shares, when nothing else is changed.
};

PrecisionPlan Uniform(const PrecisionPlan& base, Precision precision) {
  PrecisionPlan plan = base;
  plan.precision = precision;
  plan.nodes.clear();
  return plan;
}

std::vector<double> TimesOf(const std::vector<PlanSection>& sections, const PlanMeasurement& measured) {
  std::map<std::string, size_t> section_of;
  for (size_t s = 0; s < sections.size(); ++s) {
    for (const std::string& node : sections[s].nodes) section_of[node] = s;
  }
  std::vector<double> times(sections.size(), 0.0);
  for (const auto& [node, seconds] : measured.times) {
    const auto found = section_of.find(node);
    if (found != section_of.end()) times[found->second] += seconds;
  }
  return times;
}

}  // namespace

std::vector<PlanSection> SectionsOf(const Graph& graph, const DelegationReport& report,
                                    const std::function<double(const std::string&)>& cost, size_t most) {
  std::vector<PlanSection> layers = LayersOf(graph, report);
  if (layers.size() <= most) return layers;
  std::vector<double> costs;
  double total = 0;
  for (const PlanSection& layer : layers) {
    double sum = 0;
    for (const std::string& node : layer.nodes) sum += cost(node);
    costs.push_back(sum);
    total += sum;
  }
  std::vector<PlanSection> sections;
  double before = 0;
  for (size_t i = 0; i < layers.size(); ++i) {
    // By the middle of what it costs.
    const double place = total > 0 ? (before + costs[i] / 2) / total : static_cast<double>(i) / layers.size();
    const auto wanted = std::min(most, static_cast<size_t>(place * static_cast<double>(most)) + 1);
    if (sections.size() < wanted) {
      sections.push_back(std::move(layers[i]));
    } else {
      PlanSection& last = sections.back();
      last.nodes.insert(last.nodes.end(), layers[i].nodes.begin(), layers[i].nodes.end());
      last.layers.insert(last.layers.end(), layers[i].layers.begin(), layers[i].layers.end());
    }
    before += costs[i];
  }
  return sections;
}

PrecisionPlan EightBitPlan(const Graph& graph, const DelegationReport& report, PrecisionPlan base) {
  PrecisionPlan plan = Uniform(base, Precision::kInt8);
  const std::vector<PlanSection> layers = LayersOf(graph, report);
  if (layers.empty()) return plan;
  for (const PlanSection* section : {&layers.front(), &layers.back()}) {
    for (const std::string& node : section->nodes) plan.nodes[node] = Precision::kBf16;
  }
  return plan;
}

absl::StatusOr<SearchResult> SearchPlan(const Graph& graph, const DelegationReport& report, const PrecisionPlan& base,
                                        absl::Span<const Precision> precisions, double seconds,
                                        const MeasurePlan& measure) {
  SearchResult result;
  const auto measured = [&](PrecisionPlan plan, bool with_times) {
    ++result.measurements;
    return measure(std::make_shared<const PrecisionPlan>(std::move(plan)), with_times);
  };
  const absl::Time start = absl::Now();
  PF_ASSIGN_OR_RETURN(const PlanMeasurement full, measured(Uniform(base, Precision::kF32), true));
  std::vector<PlanMeasurement> uniform;
  for (const Precision precision : precisions) {
    PF_ASSIGN_OR_RETURN(uniform.emplace_back(), measured(Uniform(base, precision), true));
  }
  const double each = absl::ToDoubleSeconds(absl::Now() - start) / static_cast<double>(1 + precisions.size());
  const double affordable =
      seconds / std::max(each * static_cast<double>(std::max<size_t>(1, precisions.size())), 1e-6);
  const size_t most =
      std::max(kFewestSections, static_cast<size_t>(std::min(affordable, static_cast<double>(kMostSections))));
  std::map<std::string, double> costs;
  for (const auto& [node, time] : full.times) costs[node] += time;
  result.sections = SectionsOf(
      graph, report, [&](const std::string& node) { return costs.count(node) > 0 ? costs[node] : 0; }, most);
  if (result.sections.empty()) return absl::NotFoundError("the delegate runs nothing that has a choice of precision");

  std::vector<Change> changes;
  const std::vector<double> full_times = TimesOf(result.sections, full);
  for (size_t p = 0; p < precisions.size(); ++p) {
    const std::vector<double> times = TimesOf(result.sections, uniform[p]);
    for (size_t s = 0; s < result.sections.size(); ++s) {
      // What takes as long with fewer bits may still spare its neighbours conversions.
      if (times[s] > 1.03 * full_times[s]) continue;
      PrecisionPlan plan = Uniform(base, Precision::kF32);
      for (const std::string& node : result.sections[s].nodes) plan.nodes[node] = precisions[p];
      PF_ASSIGN_OR_RETURN(const PlanMeasurement alone, measured(std::move(plan), false));
      Change change{s, precisions[p], std::max(full_times[s] - times[s], 0.01 * full_times[s]), 1e-9};
      for (const double share : alone.shares) change.harm = std::max(change.harm, share * share);
      if (!alone.has_other_class && change.harm <= kMargin * kMargin) changes.push_back(change);
    }
  }
  std::sort(changes.begin(), changes.end(),
            [](const Change& a, const Change& b) { return a.harm * b.saved < b.harm * a.saved; });

  // What each section has, and what it saves by that.
  std::vector<Change> chosen(result.sections.size());
  const auto with = [&](size_t begin, size_t end) {
    std::vector<Change> changed = chosen;
    for (size_t i = begin; i < end; ++i) {
      if (changes[i].saved > changed[changes[i].section].saved) changed[changes[i].section] = changes[i];
    }
    return changed;
  };
  const auto plan_of = [&](const std::vector<Change>& of_sections) {
    PrecisionPlan plan = Uniform(base, Precision::kF32);
    for (size_t s = 0; s < of_sections.size(); ++s) {
      if (of_sections[s].precision == Precision::kF32) continue;
      for (const std::string& node : result.sections[s].nodes) plan.nodes[node] = of_sections[s].precision;
    }
    return plan;
  };
  // All changes at once; of those that do not fit, the better half and then the other, and so on.
  std::vector<std::pair<size_t, size_t>> ranges = {{0, changes.size()}};
  while (!ranges.empty()) {
    const auto [begin, end] = ranges.back();
    ranges.pop_back();
    if (begin == end) continue;
    if (absl::ToDoubleSeconds(absl::Now() - start) > kMostOvertime * seconds) break;
    std::vector<Change> changed = with(begin, end);
    PF_ASSIGN_OR_RETURN(const PlanMeasurement together, measured(plan_of(changed), false));
    const bool is_inside = !together.has_other_class && std::all_of(together.shares.begin(), together.shares.end(),
                                                                    [](double share) { return share <= kMargin; });
    if (is_inside) {
      chosen = std::move(changed);
    } else if (end - begin > 1) {
      const size_t middle = begin + (end - begin) / 2;
      ranges.emplace_back(middle, end);
      ranges.emplace_back(begin, middle);
    }
  }
  for (size_t s = 0; s < chosen.size(); ++s) result.sections[s].precision = chosen[s].precision;
  if (std::all_of(chosen.begin(), chosen.end(), [](const Change& c) { return c.precision == Precision::kF32; })) {
    return absl::NotFoundError("no choice of nodes with fewer bits stays inside the budget");
  }
  result.plan = plan_of(chosen);
  return result;
}

}  // namespace permafrost
