// Finds the cause of a near miss, and names the pass or the flag that removes it.
#include "transforms/way_out.h"

#include <algorithm>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "graph/ops/op_schema.h"

namespace permafrost {
namespace {

// Maximum number of nodes visited upstream of a tensor that is not constant. A tensor further from a constant is rarely
// meant to be one.
constexpr size_t kMostNodes = 256;

bool IsVariable(Op op) {
  return op == ops::kVariable || op == ops::kVariableV2 || op == ops::kVarHandleOp || op == ops::kReadVariableOp;
}

// Returns a remedy that makes `ref` constant, or names the input, variable or op that it depends on. Empty if the
// search visits too many nodes.
std::string WayToConstant(TensorRef ref) {
  std::vector<const Node*> pending = {ref.node};
  absl::flat_hash_set<const Node*> seen(pending.begin(), pending.end());
  while (!pending.empty()) {
    const Node* node = pending.back();
    pending.pop_back();
    const bool is_fed =
        node->graph().IsInput(node) || node->op() == ops::kPlaceholder || node->op() == ops::kPlaceholderV2;
    if (is_fed) return absl::StrCat("it depends on the input '", node->name(), "'");
    if (IsVariable(node->op())) return absl::StrCat("freeze the variable '", node->name(), "' into a constant first");
    const OpSchema* schema = FindSchema(node->op());
    if (schema == nullptr) return absl::StrCat("it depends on ", node->Describe(), ", of an op that is not known");
    if (schema->Is(kStateful | kRandom)) {
      return absl::StrCat("it depends on ", node->Describe(), ", which gives another value each time");
    }
    for (int i = 0; i < node->num_data_inputs(); ++i) {
      const Node* input = node->input(i).node;
      if (seen.insert(input).second) pending.push_back(input);
    }
    if (seen.size() > kMostNodes) return "";
  }
  return "run fold_constants first";
}

bool ReadsTheSame(const Node& a, const Node& b) {
  if (a.op() != b.op() || a.num_inputs() != b.num_inputs()) return false;
  for (int i = 0; i < a.num_inputs(); ++i) {
    if (a.input(i) != b.input(i)) return false;
  }
  return true;
}

std::string WayToOneUser(const Node& node) {
  if (node.uses().empty() || node.uses().size() > kMostNodes) return "";
  const auto is_control = [](const Use& use) { return use.consumer->input(use.index).is_control(); };
  const auto controls = std::count_if(node.uses().begin(), node.uses().end(), is_control);
  if (controls + 1 == static_cast<std::ptrdiff_t>(node.uses().size())) {
    return "the other uses are control edges, which remove_control_dependencies removes";
  }
  const Node* first = node.uses()[0].consumer;
  const bool all_equal = std::all_of(node.uses().begin(), node.uses().end(),
                                     [&](const Use& use) { return ReadsTheSame(*use.consumer, *first); });
  return all_equal ? "run merge_duplicate_nodes first" : "";
}

// Ops that pass their input on.
bool IsPassive(Op op) {
  return op == ops::kIdentity || op == ops::kStopGradient || op == ops::kCheckNumerics || op == ops::kSnapshot ||
         op == ops::kPreventGradient;
}

}  // namespace

std::string WayOutOf(const NearMiss& near_miss) {
  if (!near_miss.way_out.empty()) return near_miss.way_out;
  const Node* node = near_miss.found.node;
  if (node == nullptr) return "";
  switch (near_miss.kind) {
    case NearMiss::Kind::kNotConstant:
      return WayToConstant(near_miss.found);
    case NearMiss::Kind::kShared:
      return WayToOneUser(*node);
    case NearMiss::Kind::kEndpoint:
      return node->graph().IsOutput(node)
                 ? absl::StrCat("if you do not fetch '", node->name(), "', leave it out of the outputs")
                 : absl::StrCat("if you do not feed '", node->name(), "', leave it out of the inputs");
    case NearMiss::Kind::kOtherOp:
      return IsPassive(node->op()) ? absl::StrCat("run remove_nodes(op=", node->op().name(), ") first") : "";
    case NearMiss::Kind::kOther:
    case NearMiss::Kind::kOtherPort:
    case NearMiss::Kind::kArity:
      return "";
  }
  return "";
}

}  // namespace permafrost
