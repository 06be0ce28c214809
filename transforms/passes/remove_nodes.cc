// Removes nodes of given ops from the graph; their consumers read their inputs.
#include "graph/base/status.h"
#include "graph/ops/op_schema.h"
#include "transforms/pass.h"
#include "transforms/rewrites/op_selection.h"
#include "transforms/rewrites/splicing.h"

namespace permafrost {
namespace {

struct Params {
  std::vector<std::string> op;
  int32_t max_inputs = 1;
};

// "*" excludes control flow, without which frames and branches are inconsistent.
bool Takes(const OpSelection& selection, Op op) {
  if (selection.Names(op)) return true;
  if (!selection.takes_all()) return false;
  const OpSchema* schema = FindSchema(op);
  return schema == nullptr || !schema->Is(kControlFlow);
}

absl::StatusOr<int64_t> Remove(Graph* graph, const Params& params, PassContext* context) {
  PF_ASSIGN_OR_RETURN(const OpSelection selection, OpSelection::Parse("op", params.op));
  selection.NoteAbsent(*graph, context);
  return SpliceOut(
      graph,
      [&](const Node& node) {
        if (!Takes(selection, node.op())) return kNoSource;
        if (node.num_data_inputs() <= params.max_inputs) return 0;
        context->MissIfWanted(node, WayOut{"raise max_inputs"}, "has ", node.num_data_inputs(),
                              " inputs, and max_inputs is ", params.max_inputs);
        return kNoSource;
      },
      context);
}

}  // namespace

// Takes nodes of the given ops out of the graph; their consumers read what they read first. What computed its
// other inputs goes too, if nobody else needs it. Its control inputs become control inputs of its consumers, and who
// waited for it waits for what it read.
//
//   Relu(Identity(x, ^init))   =>   Relu(x, ^init)
//
// Left alone are declared inputs and outputs; nodes whose second or later output is used; nodes that carry control
// edges of a branch, right behind Switch or Merge; nodes with control inputs right before a Merge; and, unless named,
// ops of control flow. Exact for Identity and the like; removing an op that computes something is up to the caller, and
// a check of the results tells the difference.
DEFINE_PASS(remove_nodes) {
  return Pass<Params>("Takes nodes of the given ops out of the graph; their consumers read what they read.")
      .Why(
          "Identity, CheckNumerics and the like serve training; in a model that only answers they cost time, and hide "
          "from other passes what stands side by side.")
      .Param("op", &Params::op, "The ops to remove: \"A\", \"A|B\" for several, \"*\" for all.", Required())
      .Param("max_inputs", &Params::max_inputs, "Nodes with more data inputs than this stay.", AtLeast(1))
      .Numerics(Exact())
      .Idempotent()
      .Run(Remove);
}

}  // namespace permafrost
