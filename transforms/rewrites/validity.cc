// Compares the validity of a graph before and after an edit.
#include "transforms/rewrites/validity.h"

#include "absl/strings/str_cat.h"
#include "graph/shape_inference.h"
#include "graph/status.h"
#include "graph/validate.h"

namespace permafrost {
namespace {

absl::Status CheckGraph(const Graph& graph) {
  PF_RETURN_IF_ERROR(Validate(graph));
  return InferShapes(graph).status();
}

}  // namespace

ValidityGuard::ValidityGuard(const Graph& graph) : was_valid_(CheckGraph(graph).ok()) {}

absl::Status ValidityGuard::Check(const Graph& graph) const {
  if (!was_valid_) return absl::OkStatus();
  const absl::Status status = CheckGraph(graph);
  if (status.ok()) return status;
  return absl::InvalidArgumentError(absl::StrCat("the graph would not be valid any more: ", status.message()));
}

}  // namespace permafrost
