// Ranks sections by the error and the time saved with fewer bits, and changes as many as the budget allows.
#include "runtime_check/precision/precision_search.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <utility>

#include "absl/time/clock.h"
#include "graph/base/status.h"
#include "graph/ops/op.h"

namespace permafrost {
namespace {

constexpr size_t kMostSections = 32, kFewestSections = 10;
// Share of the budget that is used; the rest is for inputs that are not among the samples.
constexpr double kMargin = 0.85;
// Multiple of the search time after which the search stops with its current result.
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

// Returns one section per layer, from the layer to the next. Nodes before the first layer belong to it.
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

// A set of layers with fewer bits than f32.
struct Change {
  std::vector<size_t> layers;
  Precision precision = Precision::kF32;
  double saved = 0;  // Seconds per run.
  double harm = 0;   // The largest squared share, when nothing else is changed.
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

// Joins adjacent layers into at most `most` sections of about the same cost.
std::vector<std::vector<size_t>> SectionsOf(const std::vector<double>& costs, size_t most) {
  const double total = std::accumulate(costs.begin(), costs.end(), 0.0);
  std::vector<std::vector<size_t>> sections;
  double before = 0;
  for (size_t l = 0; l < costs.size(); ++l) {
    // The middle of the layer's cost decides its section.
    const double place = total > 0 ? (before + costs[l] / 2) / total : 0;
    const size_t wanted = costs.size() <= most ? l + 1 : static_cast<size_t>(place * static_cast<double>(most)) + 1;
    if (sections.empty() || sections.size() < wanted) sections.emplace_back();
    sections.back().push_back(l);
    before += costs[l];
  }
  return sections;
}

}  // namespace

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
  result.sections = LayersOf(graph, report);
  const std::vector<PlanSection>& layers = result.sections;
  if (layers.empty()) return absl::NotFoundError("the delegate runs nothing that has a choice of precision");
  const std::vector<double> full_times = TimesOf(layers, full);
  const std::vector<std::vector<size_t>> sections = SectionsOf(full_times, most);

  // By precision and layer: the seconds saved. A layer that is not faster with fewer bits may still save conversions in
  // adjacent layers.
  std::map<Precision, std::vector<double>> saved;
  std::vector<Change> changes, too_large;
  for (size_t p = 0; p < precisions.size(); ++p) {
    std::vector<double>& by_layer = saved[precisions[p]];
    const std::vector<double> times = TimesOf(layers, uniform[p]);
    for (size_t l = 0; l < layers.size(); ++l) {
      const double difference = full_times[l] - times[l];
      by_layer.push_back(difference < -0.03 * full_times[l] ? -1.0 : std::max(difference, 0.01 * full_times[l]));
    }
    for (const std::vector<size_t>& section : sections) {
      Change change{{}, precisions[p], 0, 1e-9};
      PrecisionPlan plan = Uniform(base, Precision::kF32);
      for (const size_t l : section) {
        if (by_layer[l] <= 0) continue;
        change.layers.push_back(l);
        change.saved += by_layer[l];
        for (const std::string& node : layers[l].nodes) plan.nodes[node] = precisions[p];
      }
      if (change.layers.empty()) continue;
      PF_ASSIGN_OR_RETURN(const PlanMeasurement alone, measured(std::move(plan), false));
      for (const double share : alone.shares) change.harm = std::max(change.harm, share * share);
      const bool fits = !alone.has_other_class && change.harm <= kMargin * kMargin;
      (fits ? changes : too_large).push_back(std::move(change));
    }
  }
  const auto by_ratio = [](const Change& a, const Change& b) { return a.harm * b.saved < b.harm * a.saved; };
  std::sort(changes.begin(), changes.end(), by_ratio);
  std::sort(too_large.begin(), too_large.end(), by_ratio);

  std::vector<Precision> chosen(layers.size(), Precision::kF32);
  const auto with = [&](const std::vector<Change>& more) {
    std::vector<Precision> changed = chosen;
    for (const Change& change : more) {
      for (const size_t l : change.layers) {
        const bool is_full = changed[l] == Precision::kF32;
        if (is_full || saved[change.precision][l] > saved[changed[l]][l]) changed[l] = change.precision;
      }
    }
    return changed;
  };
  const auto plan_of = [&](const std::vector<Precision>& of_layers) {
    PrecisionPlan plan = Uniform(base, Precision::kF32);
    for (size_t l = 0; l < of_layers.size(); ++l) {
      if (of_layers[l] == Precision::kF32) continue;
      for (const std::string& node : layers[l].nodes) plan.nodes[node] = of_layers[l];
    }
    return plan;
  };
  // Tries all changes at once. If they exceed the budget, tries the better half and then the other half, recursively
  // down to single layers.
  std::vector<std::vector<Change>> next;
  const auto halve = [&](std::vector<Change> tried) {
    if (tried.size() == 1) {
      Change& first = tried[0];
      if (first.layers.size() == 1) return;
      const auto middle = first.layers.begin() + static_cast<ptrdiff_t>(first.layers.size() / 2);
      Change second = first;
      second.layers.assign(middle, first.layers.end());
      first.layers.erase(middle, first.layers.end());
      next.push_back({std::move(second)});
      next.push_back(std::move(tried));
      return;
    }
    const auto middle = tried.begin() + static_cast<ptrdiff_t>(tried.size() / 2);
    next.emplace_back(middle, tried.end());
    next.emplace_back(tried.begin(), middle);
  };
  for (auto change = too_large.rbegin(); change != too_large.rend(); ++change) halve({std::move(*change)});
  if (!changes.empty()) next.push_back(std::move(changes));
  while (!next.empty() && absl::ToDoubleSeconds(absl::Now() - start) < kMostOvertime * seconds) {
    std::vector<Change> tried = std::move(next.back());
    next.pop_back();
    std::vector<Precision> changed = with(tried);
    if (changed == chosen) continue;
    PF_ASSIGN_OR_RETURN(const PlanMeasurement together, measured(plan_of(changed), false));
    const bool is_inside = !together.has_other_class && std::all_of(together.shares.begin(), together.shares.end(),
                                                                    [](double share) { return share <= kMargin; });
    if (is_inside) {
      chosen = std::move(changed);
    } else {
      halve(std::move(tried));
    }
  }
  if (std::all_of(chosen.begin(), chosen.end(), [](Precision p) { return p == Precision::kF32; })) {
    return absl::NotFoundError("no choice of nodes with fewer bits stays inside the budget");
  }
  result.plan = plan_of(chosen);
  for (size_t l = 0; l < layers.size(); ++l) result.sections[l].precision = chosen[l];
  return result;
}

}  // namespace permafrost
