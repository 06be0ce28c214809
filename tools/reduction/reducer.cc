// Runs ddmin (Zeller and Hildebrandt: Simplifying and Isolating Failure-Inducing Input, 2002) on nodes, and tries to
// simplify the rest.
#include "tools/reduction/reducer.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "graph/ops/op_schema.h"

namespace permafrost {
namespace {

class Reducer {
 public:
  Reducer(const ReductionSettings& settings, ReducibleModel* best) : settings_(settings), best_(best) {}

  absl::StatusOr<ReductionReport> Run() {
    PF_RETURN_IF_ERROR(ReduceNodes());
    PF_RETURN_IF_ERROR(ReduceDimensions());
    // Smaller dimensions may make nodes superfluous.
    PF_RETURN_IF_ERROR(ReduceNodes());
    if (!settings_.keep_weights) PF_RETURN_IF_ERROR(ReplaceValues());
    PF_RETURN_IF_ERROR(RemoveAttributes());
    if (!settings_.keep_names) PF_RETURN_IF_ERROR(ReplaceNames());
    return std::move(report_);
  }

 private:
  bool MustStop() {
    if (!report_.was_stopped && settings_.must_stop()) report_.was_stopped = true;
    return report_.was_stopped;
  }

  // Keeps the candidate if it shows the failure.
  absl::StatusOr<bool> Try(ReducibleModel candidate, const char* what) {
    if (MustStop()) return false;
    ++report_.trials;
    settings_.progress(absl::StrCat(what, ": ", best_->graph->num_nodes(), " nodes, trial ", report_.trials));
    if (!settings_.shows_failure(candidate)) return false;
    *best_ = std::move(candidate);
    PF_RETURN_IF_ERROR(settings_.keep(*best_));
    return true;
  }

  absl::StatusOr<bool> TryNodes(const std::vector<std::string>& kept) {
    if (MustStop()) return false;
    absl::StatusOr<ModelPart> part = PartOf(*best_, {kept.begin(), kept.end()});
    if (!part.ok()) return false;
    if (settings_.compute != nullptr && !part->cut.empty()) {
      std::vector<std::string> sources;
      for (const CutTensor& cut : part->cut) sources.push_back(cut.source);
      absl::StatusOr<std::vector<Tensor>> values = settings_.compute(*best_, sources);
      if (!values.ok() || values->size() != sources.size()) return false;
      const size_t first = part->model.inputs.size() - sources.size();
      for (size_t i = 0; i < sources.size(); ++i) SetInputValue(&part->model, first + i, std::move((*values)[i]));
    }
    return Try(std::move(part->model), "cutting nodes");
  }

  absl::Status ReduceNodes() {
    PF_ASSIGN_OR_RETURN(std::vector<std::string> nodes, CuttableNodes(*best_->graph));
    size_t parts = 2;
    while (nodes.size() >= 2 && !MustStop()) {
      parts = std::min(parts, nodes.size());
      bool is_smaller = false;
      // First each part alone, then everything but a part.
      for (const bool alone : {true, false}) {
        if (!alone && parts == 2) break;  // The same as the other part alone.
        for (size_t i = 0; i < parts && !is_smaller; ++i) {
          const size_t begin = nodes.size() * i / parts, end = nodes.size() * (i + 1) / parts;
          std::vector<std::string> kept;
          for (size_t k = 0; k < nodes.size(); ++k) {
            if ((k >= begin && k < end) == alone) kept.push_back(nodes[k]);
          }
          if (kept.empty()) continue;
          PF_ASSIGN_OR_RETURN(is_smaller, TryNodes(kept));
          if (!is_smaller) continue;
          PF_ASSIGN_OR_RETURN(nodes, CuttableNodes(*best_->graph));
          parts = alone ? 2 : std::max<size_t>(2, parts - 1);
        }
        if (is_smaller) break;
      }
      if (is_smaller) continue;
      if (parts == nodes.size()) break;
      parts *= 2;
    }
    return absl::OkStatus();
  }

  absl::Status ReduceDimensions() {
    for (const int64_t size : DimensionSizes(*best_)) {
      int64_t now = size;
      for (int64_t smaller = 1; smaller < now && !MustStop(); smaller = std::max(smaller + 1, now / 2)) {
        absl::StatusOr<std::unique_ptr<ReducibleModel>> candidate = WithSmallerDimension(*best_, now, smaller);
        if (!candidate.ok() || *candidate == nullptr) break;
        PF_ASSIGN_OR_RETURN(const bool is_smaller, Try(std::move(**candidate), "shrinking dimensions"));
        if (is_smaller) {
          now = smaller;
          smaller = 0;
        } else if (smaller > 1) {
          break;
        }
      }
    }
    return absl::OkStatus();
  }

  // Replaces the values of constants and inputs by noise: all at once if that shows the failure, else one by one.
  absl::Status ReplaceValues() {
    std::vector<std::string> constants;
    for (const Node* node = best_->graph->first(); node != nullptr; node = node->next()) {
      if (node->op() != ops::kConst) continue;
      const absl::StatusOr<Tensor> value = ConstValue(*node);
      if (value.ok() && value->dtype() == DType::kFloat) constants.emplace_back(node->name());
    }
    std::vector<size_t> inputs;
    for (size_t i = 0; i < best_->inputs.size(); ++i) {
      if (best_->inputs[i].dtype() == DType::kFloat) inputs.push_back(i);
    }
    PF_ASSIGN_OR_RETURN(const bool all, TryNoise(constants, inputs));
    if (all) return absl::OkStatus();
    for (const std::string& constant : constants) {
      PF_ASSIGN_OR_RETURN(const bool is_replaced, TryNoise({constant}, {}));
      if (!is_replaced && !report_.was_stopped) report_.real_constants.push_back(constant);
    }
    for (const size_t input : inputs) {
      PF_ASSIGN_OR_RETURN(const bool is_replaced, TryNoise({}, {input}));
      if (!is_replaced && !report_.was_stopped) {
        report_.real_constants.push_back(best_->graph->inputs()[input].text);
      }
    }
    return absl::OkStatus();
  }

  absl::StatusOr<bool> TryNoise(const std::vector<std::string>& constants, const std::vector<size_t>& inputs) {
    if (constants.empty() && inputs.empty()) return true;
    ReducibleModel candidate = best_->Copy();
    uint64_t seed = settings_.seed;
    for (const std::string& name : constants) {
      Node* node = candidate.graph->Find(name);
      PF_ASSIGN_OR_RETURN(const Tensor value, ConstValue(*node));
      node->SetAttr("value", AttrValue::OfTensor(NoiseLike(value, ++seed)));
    }
    for (const size_t input : inputs) candidate.inputs[input] = NoiseLike(candidate.inputs[input], ++seed);
    return Try(std::move(candidate), "replacing values");
  }

  // Removes attributes that a graph can do without: internal ones, those with a default, devices and debug information.
  absl::Status RemoveAttributes() {
    const auto removable = [](const Node& node) {
      std::vector<std::string> keys;
      for (const Attr& attr : node.attrs()) {
        if (node.op() == ops::kPlaceholder && attr.key == "shape") continue;  // Tells what to feed.
        if (absl::StartsWith(attr.key, "_") || DefaultAttr(node.op(), attr.key) != nullptr) keys.emplace_back(attr.key);
      }
      return keys;
    };
    ReducibleModel bare = best_->Copy();
    for (Node* node : bare.graph->Nodes()) {
      for (const std::string& key : removable(*node)) node->RemoveAttr(key);
      node->set_device("");
      node->set_extra_fields("");
    }
    PF_ASSIGN_OR_RETURN(const bool all, Try(std::move(bare), "removing attributes"));
    if (all) return absl::OkStatus();
    std::vector<std::pair<std::string, std::string>> attributes;
    for (const Node* node = best_->graph->first(); node != nullptr; node = node->next()) {
      for (const std::string& key : removable(*node)) attributes.emplace_back(node->name(), key);
    }
    for (const auto& [name, key] : attributes) {
      if (MustStop()) break;
      ReducibleModel candidate = best_->Copy();
      candidate.graph->Find(name)->RemoveAttr(key);
      PF_RETURN_IF_ERROR(Try(std::move(candidate), "removing attributes").status());
    }
    return absl::OkStatus();
  }

  absl::Status ReplaceNames() {
    std::vector<std::string> names;
    for (const Node* node = best_->graph->first(); node != nullptr; node = node->next())
      names.emplace_back(node->name());
    PF_ASSIGN_OR_RETURN(const bool all, TryNames(names));
    if (all) return absl::OkStatus();
    for (const std::string& name : names) {
      PF_ASSIGN_OR_RETURN(const bool is_renamed, TryNames({name}));
      if (!is_renamed && !report_.was_stopped) report_.real_names.push_back(name);
    }
    return absl::OkStatus();
  }

  absl::StatusOr<bool> TryNames(const std::vector<std::string>& names) {
    ReducibleModel candidate = best_->Copy();
    std::vector<std::pair<Node*, std::string>> renamed;
    int number = 0;
    for (const std::string& name : names) {
      std::string other;
      do {
        other = absl::StrCat("n", number++);
      } while (candidate.graph->Find(other) != nullptr);
      renamed.emplace_back(candidate.graph->Find(name), other);
    }
    PF_RETURN_IF_ERROR(candidate.graph->RenameAll(renamed));
    return Try(std::move(candidate), "replacing names");
  }

  const ReductionSettings& settings_;
  ReducibleModel* best_;
  ReductionReport report_;
};

}  // namespace

absl::StatusOr<ReductionReport> Reduce(const ReductionSettings& settings, ReducibleModel* model) {
  return Reducer(settings, model).Run();
}

}  // namespace permafrost
