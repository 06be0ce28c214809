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

// Returns whether readers of the first output accept the first input in its place, as far as the types are known.
bool KeepsType(const Node& node, PassContext* context) {
  const absl::StatusOr<std::vector<DType>> inputs = InputTypes(node), outputs = OutputTypes(node);
  if (!inputs.ok() || !outputs.ok() || inputs->empty() || outputs->empty()) return true;
  const DType from = RemoveRef(inputs->front()), to = RemoveRef(outputs->front());
  if (from == to) return true;
  context->MissIfWanted(node, "changes the type from ", DTypeName(from), " to ", DTypeName(to));
  return false;
}

absl::StatusOr<int64_t> Remove(Graph* graph, const Params& params, PassContext* context) {
  PF_ASSIGN_OR_RETURN(const OpSelection selection, OpSelection::Parse("op", params.op));
  selection.NoteAbsent(*graph, context);
  return SpliceOut(
      graph,
      [&](const Node& node) {
        if (!Takes(selection, node.op())) return kNoSource;
        if (node.num_data_inputs() <= params.max_inputs) return KeepsType(node, context) ? 0 : kNoSource;
        context->MissIfWanted(node, WayOut{"raise max_inputs"}, "has ", node.num_data_inputs(),
                              " inputs, and max_inputs is ", params.max_inputs);
        return kNoSource;
      },
      context);
}

}  // namespace

// Removes nodes of the given ops; their readers read the first input of the node instead. Nodes that computed only the
// other inputs are removed as well. The control inputs of the node become control inputs of its readers, and control
// edges from the node are replaced by control edges from its input.
//
//   Relu(Identity(x, ^init))   =>   Relu(x, ^init)
//
// Leaves unchanged declared inputs and outputs; nodes whose second or later output is read; nodes whose output has
// another type than their input; nodes that carry control edges of a branch, directly after Switch or Merge; nodes with
// control inputs directly before a Merge; and, unless named explicitly, control flow ops. The pass is exact for
// Identity and similar ops. Removing an op that computes something changes the outputs, which verification reports.
DEFINE_PASS(remove_nodes) {
  return Pass<Params>("Removes nodes of the given ops and connects their readers to their inputs.")
      .Why(
          "Identity, CheckNumerics and similar ops serve training; in inference they cost time and hide adjacent ops "
          "from other passes.")
      .Param("op", &Params::op, "The ops to remove: \"A\", \"A|B\" for several, \"*\" for all.", Required())
      .Param("max_inputs", &Params::max_inputs, "Maximum number of data inputs of a node to remove.", AtLeast(1))
      .Numerics(Exact())
      .Idempotent()
      .Run(Remove);
}

}  // namespace permafrost
