// Removes Transpose nodes that cancel each other, also across ops that do not depend on the order of dimensions.
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "graph/analysis/order.h"
#include "graph/base/status.h"
#include "graph/shapes/shape_inference.h"
#include "transforms/pass.h"
#include "transforms/rewrites/absorption.h"
#include "transforms/rewrites/permutation.h"
#include "transforms/rewrites/splicing.h"
#include "transforms/rewrites/transposed_region.h"

namespace permafrost {
namespace {

// Maximum number of orders tried for one node. No layout has more, and each costs a walk over its region.
constexpr int kMostOrdersTried = 4;

// Merges a Transpose of a Transpose into one. Visits producers first, so that a chain collapses in one walk.
absl::StatusOr<int64_t> JoinNeighbours(Graph* graph, PassContext* context) {
  PF_ASSIGN_OR_RETURN(const std::vector<Node*> order, StableTopologicalOrder(*graph));
  int64_t joined = 0;
  std::vector<Node*> maybe_unread;
  for (Node* node : order) {
    if (node->op() != ops::kTranspose || node->num_data_inputs() != 2) continue;
    Node* inner = node->input(0).node;
    const auto first = OrderOf(*inner), second = OrderOf(*node);
    if (!second.has_value()) {
      context->Miss(*node, BlockedByVariable(*node, 1, "has an order that is not a constant permutation"));
      continue;
    }
    if (inner->op() != ops::kTranspose || inner->num_data_inputs() != 2) continue;
    if (!MaySkip(*node, *inner, context)) continue;
    if (!first.has_value()) continue;  // The miss is recorded at that node.
    if (first->size() != second->size()) {
      context->MissIfWanted(*node, "has an order of ", second->size(), " dimensions, and that of ", inner->Describe(),
                            " before it has ", first->size());
      continue;
    }
    const RewriteScope rewrite(context, graph, {node, inner});
    if (!rewrite) break;
    const std::string name = graph->UniqueName(absl::StrCat(node->name(), "/perm"));
    PF_ASSIGN_OR_RETURN(
        Node * constant,
        graph->AddConst(
            name, Tensor::FromVector(Shape({static_cast<int64_t>(first->size())}), Composed(*first, *second)), node));
    maybe_unread.insert(maybe_unread.end(), {inner, node->input(1).node});
    graph->SetInput(node, 0, inner->input(0));
    graph->SetInput(node, 1, {constant, 0});
    node->SetAttr("Tperm", AttrValue::Type(DType::kInt32));
    ++joined;
  }
  PF_RETURN_IF_ERROR(RemoveUnread(graph, std::move(maybe_unread)).status());
  return joined;
}

absl::StatusOr<int64_t> RemoveIdentities(Graph* graph, PassContext* context) {
  return SpliceOut(
      graph,
      [](const Node& node) {
        const auto order = OrderOf(node);
        return order.has_value() && IsIdentity(*order) ? 0 : kNoSource;
      },
      context);
}

// Records why the consumer of a Transpose is not the seed of a region.
void TellWhyNot(const Node& transpose, const Use& use, int rank, const ShapeMap& shapes, PassContext* context) {
  const Node& consumer = *use.consumer;
  if (consumer.graph().IsEndpoint(&consumer)) {
    context->Miss(transpose, Annotate(BlockedByEndpoint(consumer), "is read by an endpoint"));
    return;
  }
  const Shape shape = shapes.Of({use.consumer, 0});
  if (!shape.has_rank()) {
    context->MissIfWanted(transpose, WayOut{"give the input a shape"}, "is read by ", consumer.Describe(),
                          ", whose rank is not known");
  } else if (shape.rank() != rank) {
    context->MissIfWanted(transpose, "is read by ", consumer.Describe(), ", whose result has ", shape.rank(),
                          " dimensions, expected ", rank);
  } else {
    context->MissIfWanted(transpose, "is read by ", consumer.Describe(), ", which depends on the order of dimensions");
  }
}

// Finds nodes that read a Transpose, with its order, and tries each as the seed of a region.
absl::StatusOr<int64_t> ChangeRegions(Graph* graph, PassContext* context) {
  const absl::StatusOr<ShapeMap> shapes = InferShapes(*graph);
  if (!shapes.ok()) {
    context->Note(absl::StrCat("only neighbours are joined: shapes are not known: ", shapes.status().message()));
    return 0;
  }
  int64_t total = 0;
  absl::flat_hash_map<const Node*, std::vector<Permutation>> tried;
  for (Node* transpose : graph->Nodes()) {
    const auto order = OrderOf(*transpose);
    if (!order.has_value()) continue;
    for (const Use& use : graph->UsesOf({transpose, 0})) {
      if (use.index != 0 && use.consumer->op() == ops::kTranspose) continue;
      const int rank = static_cast<int>(order->size());
      if (!MayChangeOrder(*use.consumer, rank, *graph, *shapes)) {
        TellWhyNot(*transpose, use, rank, *shapes, context);
        continue;
      }
      std::vector<Permutation>& before = tried[use.consumer];
      if (before.size() >= kMostOrdersTried || absl::c_linear_search(before, *order)) continue;
      TransposedRegion region(graph, *shapes, use.consumer, *order);
      for (const Node* node : region.nodes()) tried[node].push_back(*order);
      const int64_t gain = region.Gain();
      if (gain <= 0) {
        context->MissIfWanted(*transpose, "could move past ", region.nodes().size(),
                              " nodes, but the number of Transpose nodes would not decrease (", -gain, " more)");
        continue;
      }
      const RewriteScope rewrite(context, graph, {use.consumer, transpose});
      if (!rewrite) return total;
      PF_RETURN_IF_ERROR(region.ChangeOrder());  // Only the ranks in `shapes` are used, and these do not change.
      total += gain;
    }
  }
  return total;
}

// Removes Transpose nodes that are no longer read.
absl::Status RemoveUnreadTransposes(Graph* graph) {
  std::vector<Node*> unread;
  for (Node* node = graph->first(); node != nullptr; node = node->next()) {
    if (node->op() == ops::kTranspose && node->uses().empty()) unread.push_back(node);
  }
  return RemoveUnread(graph, std::move(unread)).status();
}

absl::StatusOr<int64_t> FoldTransposes(Graph* graph, const NoParams&, PassContext* context) {
  int64_t rewrites = 0;
  for (;;) {
    context->misses.clear();  // Only the misses of the last round count.
    PF_ASSIGN_OR_RETURN(const int64_t joined, JoinNeighbours(graph, context));
    PF_ASSIGN_OR_RETURN(const int64_t removed, RemoveIdentities(graph, context));
    PF_ASSIGN_OR_RETURN(const int64_t changed, ChangeRegions(graph, context));
    if (changed > 0) PF_RETURN_IF_ERROR(RemoveUnreadTransposes(graph));
    if (joined + removed + changed == 0) return rewrites;
    rewrites += joined + removed + changed;
  }
}

}  // namespace

// Removes Transpose nodes that cancel each other.
//
//   Transpose(Relu(AddV2(Transpose(x, NCHW), c)), NHWC)   =>   Relu(AddV2(x, c in the order of x))
//
// Two consecutive Transposes become one, or none. They may be separated by ops that are independent of the order of
// dimensions: elementwise ops, AddN, ConcatV2, Pad, and reductions that keep their dimensions. The constants and axes
// of these ops are permuted. An edge that enters or leaves such a region without a Transpose gets one, and the region
// is changed only if the total number of Transposes decreases.
//
// Leaves unchanged declared inputs and outputs, tensors of unknown rank, and permutations that are not constant.
DEFINE_PASS(fold_transposes) {
  return Pass<NoParams>(
             "Removes Transpose nodes that cancel each other, also across ops that are independent of the layout.")
      .Why(
          "A model trained in one data format and exported in another contains many Transposes, and each one copies "
          "its whole input.")
      .LooksFor({ops::kTranspose})
      .Numerics(Within(1e-5))  // Reductions may add in another order.
      .Idempotent()
      .Run(FoldTransposes);
}

}  // namespace permafrost
