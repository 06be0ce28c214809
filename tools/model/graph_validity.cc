// Validates the part of a graph that its outputs need.
#include "tools/model/graph_validity.h"

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "graph/analysis/order.h"
#include "graph/base/status.h"
#include "graph/functions/function.h"
#include "graph/validation/validate.h"

namespace permafrost {
namespace {

// Returns a copy of the graph without the nodes and functions that its outputs do not need.
absl::StatusOr<std::unique_ptr<Graph>> NeededPart(const Graph& graph) {
  std::unique_ptr<Graph> part = graph.Clone();
  std::vector<Node*> roots;
  for (const auto* endpoints : {&part->inputs(), &part->outputs()}) {
    for (const Endpoint& endpoint : *endpoints) {
      if (endpoint.node != nullptr) roots.push_back(endpoint.node);
    }
  }
  std::vector<bool> is_removed = ReachedBackwards(*part, roots, {});
  is_removed.flip();
  PF_RETURN_IF_ERROR(part->RemoveNodes(is_removed));
  PF_ASSIGN_OR_RETURN(FunctionLibrary library, FunctionLibrary::Of(*part));
  PF_ASSIGN_OR_RETURN(const auto called, library.Reachable(library.CalledBy(*part)));
  library.Retain(called);
  library.Store(part.get());
  return part;
}

}  // namespace

absl::Status CheckValidity(const Graph& graph) {
  const auto check = [](const Graph& checked) {
    const absl::Status nodes = Validate(checked);
    return nodes.ok() && !checked.library().empty() ? ValidateFunctions(checked) : nodes;
  };
  if (check(graph).ok()) return absl::OkStatus();
  PF_ASSIGN_OR_RETURN(const std::unique_ptr<Graph> part, NeededPart(graph));
  return check(*part);
}

}  // namespace permafrost
