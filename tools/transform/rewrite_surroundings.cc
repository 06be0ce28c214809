// Collects nodes and values near a rewrite.
#include "tools/transform/rewrite_surroundings.h"

#include <cmath>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"

namespace permafrost {
namespace {

// Returns, for example, "Conv2D(x, w:1, ^init)".
std::string NodeText(const Node* node) {
  if (node == nullptr) return "";
  constexpr int kMostInputs = 8;
  std::string text = absl::StrCat(node->op().name(), "(");
  for (int i = 0; i < node->num_inputs() && i < kMostInputs; ++i) {
    absl::StrAppend(&text, i == 0 ? "" : ", ", node->input(i).ToString());
  }
  return absl::StrCat(text, node->num_inputs() > kMostInputs ? ", ..." : "", ")");
}

class Neighbourhood {
 public:
  Neighbourhood(const Graph& before, const Graph& after) : before_(before), after_(after) {}

  void Add(absl::string_view name) {
    if (nodes_.size() >= kMostNearby || name.empty()) return;
    const Node* before = before_.Find(name);
    const Node* after = after_.Find(name);
    if ((before == nullptr && after == nullptr) || !seen_.emplace(name).second) return;
    nodes_.push_back({std::string(name), NodeText(before), NodeText(after)});
  }

  void AddNeighboursOf(absl::string_view name) {
    for (const Graph* graph : {&before_, &after_}) {
      const Node* node = graph->Find(name);
      if (node == nullptr) continue;
      for (int i = 0; i < node->num_inputs() && nodes_.size() < kMostNearby; ++i) Add(node->input(i).node->name());
      for (const Use& use : node->uses()) {
        if (nodes_.size() >= kMostNearby) break;
        Add(use.consumer->name());
      }
    }
  }

  std::vector<NearbyNode> Release() { return std::move(nodes_); }

 private:
  const Graph& before_;
  const Graph& after_;
  absl::flat_hash_set<std::string> seen_;
  std::vector<NearbyNode> nodes_;
};

// Returns the index of the element at `position` in row-major order.
std::vector<int64_t> IndexOf(const Shape& shape, int64_t position) {
  std::vector<int64_t> index(shape.rank());
  for (int i = shape.rank() - 1; i >= 0; --i) {
    index[i] = position % shape.dim(i);
    position /= shape.dim(i);
  }
  return index;
}

// Returns the distance of two numbers, for finding the largest change.
double Distance(double a, double b) {
  if (a == b || (std::isnan(a) && std::isnan(b))) return 0;
  const double distance = std::fabs(a - b);
  return std::isfinite(distance) ? distance : HUGE_VAL;
}

ValueChange ChangeOf(const Tensor& before, const Tensor& after) {
  ValueChange change;
  change.difference = CompareTensors(before, after);
  if (before.dtype() != DType::kFloat || after.dtype() != DType::kFloat || before.shape() != after.shape())
    return change;
  const UnalignedSpan<float> a = before.elements<float>();
  const UnalignedSpan<float> b = after.elements<float>();
  if (a.size() == 0) return change;
  size_t worst = 0;
  for (size_t i = 1; i < a.size(); ++i) {
    if (Distance(a[i], b[i]) > Distance(a[worst], b[worst])) worst = i;
  }
  change.index = IndexOf(before.shape(), static_cast<int64_t>(worst));
  change.before = a[worst];
  change.after = b[worst];
  return change;
}

}  // namespace

std::vector<NearbyNode> NodesNear(const Graph& before, const Graph& after, const std::vector<std::string>& matched,
                                  const std::vector<GraphDifference>& differences) {
  Neighbourhood near(before, after);
  for (const std::string& name : matched) near.Add(name);
  for (const GraphDifference& difference : differences) near.Add(difference.node);
  for (const std::string& name : matched) near.AddNeighboursOf(name);
  return near.Release();
}

std::vector<ValueChange> ChangedValues(const Graph& before, const Graph& after, const std::vector<std::string>& matched,
                                       const Verifier& verifier) {
  std::vector<std::string> fetches_before, fetches_after;
  for (const Endpoint& output : before.outputs()) fetches_before.push_back(output.text);
  for (const Endpoint& output : after.outputs()) fetches_after.push_back(output.text);
  const size_t num_outputs = fetches_before.size();
  for (const std::string& name : matched) {
    if (before.Find(name) == nullptr || after.Find(name) == nullptr || before.IsEndpoint(before.Find(name))) continue;
    fetches_before.push_back(name);
    fetches_after.push_back(name);
    break;
  }
  const auto values_before = verifier.RunOnFirst(before, fetches_before);
  const auto values_after = verifier.RunOnFirst(after, fetches_after);
  std::vector<ValueChange> changes;
  if (!values_before.ok() || !values_after.ok()) return changes;
  for (size_t i = 0; i < values_before->size() && i < values_after->size(); ++i) {
    ValueChange change = ChangeOf((*values_before)[i], (*values_after)[i]);
    if (change.difference.is_identical()) continue;
    change.tensor = fetches_before[i];
    change.is_output = i < num_outputs;
    changes.push_back(std::move(change));
  }
  return changes;
}

}  // namespace permafrost
