// Takes nodes of given ops out of the graph; their consumers read what they read.
#include <algorithm>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_split.h"
#include "graph/nearest.h"
#include "graph/op_schema.h"
#include "graph/status.h"
#include "transforms/pass.h"
#include "transforms/rewrites/splicing.h"

namespace permafrost {
namespace {

struct Params {
  std::vector<std::string> op;
  int32_t max_inputs = 1;
};

// Which ops are meant.
class OpSelection {
 public:
  static absl::StatusOr<OpSelection> Parse(const std::vector<std::string>& values) {
    OpSelection selection;
    for (const std::string& value : values) {
      for (const absl::string_view name : absl::StrSplit(value, '|')) {
        if (name.empty()) {
          return absl::InvalidArgumentError(
              absl::StrCat("parameter 'op': found '", value, "', expected names of ops with | between them, or *"));
        }
        if (name == "*") {
          selection.all_ = true;
        } else {
          selection.ops_.insert(Op::Named(name));
          selection.names_.emplace_back(name);
        }
      }
    }
    return selection;
  }

  // "*" leaves control flow alone: without it frames and branches do not fit together.
  bool Includes(Op op) const {
    if (ops_.contains(op)) return true;
    if (!all_) return false;
    const OpSchema* schema = FindSchema(op);
    return schema == nullptr || !schema->Is(kControlFlow);
  }

  // Says which of the names no node has.
  void NoteAbsent(const Graph& graph, PassContext* context) const {
    absl::flat_hash_set<Op> present;
    for (const Node* node = graph.first(); node != nullptr; node = node->next()) present.insert(node->op());
    std::vector<absl::string_view> present_names;
    for (const Op op : present) present_names.push_back(op.name());
    std::sort(present_names.begin(), present_names.end());
    for (const std::string& name : names_) {
      if (present.contains(Op::Named(name))) continue;
      context->Note(absl::StrCat("no node has the op '", name, "'", DidYouMean(name, present_names)));
    }
  }

 private:
  bool all_ = false;
  absl::flat_hash_set<Op> ops_;
  std::vector<std::string> names_;
};

absl::StatusOr<int64_t> Remove(Graph* graph, const Params& params, PassContext* context) {
  PF_ASSIGN_OR_RETURN(const OpSelection selection, OpSelection::Parse(params.op));
  selection.NoteAbsent(*graph, context);
  return SpliceOut(
      graph,
      [&](const Node& node) {
        if (!selection.Includes(node.op())) return kNoSource;
        if (node.num_data_inputs() <= params.max_inputs) return 0;
        context->MissIfWanted(node, "has ", node.num_data_inputs(), " inputs, and max_inputs is ", params.max_inputs);
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
      .Param("op", &Params::op, "The ops to remove: \"A\", \"A|B\" for several, \"*\" for all.", Required())
      .Param("max_inputs", &Params::max_inputs, "Nodes with more data inputs than this stay.", AtLeast(1))
      .Numerics(Exact())
      .Idempotent()
      .Run(Remove);
}

}  // namespace permafrost
