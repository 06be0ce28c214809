// Reads the forms of loops.
#include "graph/analysis/loop_form.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "graph/ops/op.h"

namespace permafrost {
namespace {

bool IsEnter(const Node& node) { return node.op() == ops::kEnter || node.op() == ops::kRefEnter; }
bool IsMerge(const Node& node) { return node.op() == ops::kMerge || node.op() == ops::kRefMerge; }
bool IsSwitch(const Node& node) { return node.op() == ops::kSwitch || node.op() == ops::kRefSwitch; }
bool IsExit(const Node& node) { return node.op() == ops::kExit || node.op() == ops::kRefExit; }
bool IsNextIteration(const Node& node) {
  return node.op() == ops::kNextIteration || node.op() == ops::kRefNextIteration;
}

absl::Status OtherForm(const Node& node, absl::string_view reason) {
  return absl::UnimplementedError(absl::StrCat(node.Describe(), ": ", reason));
}

// A variable does not change if its next value is one of the tensors that hold it.
void FindInvariants(LoopForm* form) {
  for (LoopVariable& variable : form->variables) {
    if (variable.next.node == nullptr) continue;
    const TensorRef next = BehindPasses(variable.next);
    if (std::find(variable.reads.begin(), variable.reads.end(), next) != variable.reads.end()) {
      variable.next = {nullptr, 0};
    }
  }
}

class FrameReader {
 public:
  explicit FrameReader(absl::Span<const Node* const> nodes) : nodes_(nodes) {}

  absl::StatusOr<LoopForm> Read() {
    for (const Node* node : nodes_) {
      if (IsMerge(*node)) PF_RETURN_IF_ERROR(AddVariable(*node));
    }
    if (form_.variables.empty()) return absl::UnimplementedError("the frame has no variable");
    for (const Node* node : nodes_) PF_RETURN_IF_ERROR(Add(*node));
    for (const LoopVariable& variable : form_.variables) {
      // A Merge without a Switch is read in each iteration, but the loop would not end with it.
      if (variable.next.node != nullptr && variable.reads.size() < 2) {
        return OtherForm(*variable.reads[0].node, "has no Switch");
      }
    }
    if (form_.condition.node == nullptr) return absl::UnimplementedError("the frame has no LoopCond");
    FindInvariants(&form_);
    return std::move(form_);
  }

 private:
  absl::Status AddVariable(const Node& merge) {
    if (merge.num_data_inputs() != 2) return OtherForm(merge, "has other inputs than an Enter and a NextIteration");
    const Node &first = *merge.input(0).node, &second = *merge.input(1).node;
    const Node& enter = IsEnter(first) ? first : second;
    const Node& next = IsEnter(first) ? second : first;
    if (!IsEnter(enter) || !IsNextIteration(next) || enter.num_data_inputs() != 1 || next.num_data_inputs() != 1) {
      return OtherForm(merge, "has other inputs than an Enter and a NextIteration");
    }
    if (!by_merge_.emplace(&merge, form_.variables.size()).second) return absl::OkStatus();
    LoopVariable variable;
    variable.enter = &enter;
    variable.initial = enter.input(0);
    variable.next = next.input(0);
    variable.reads = {{const_cast<Node*>(&merge), 0}};
    form_.variables.push_back(std::move(variable));
    return absl::OkStatus();
  }

  absl::Status Add(const Node& node) {
    PF_RETURN_IF_ERROR(AddConstants(node));
    if (IsMerge(node) || IsNextIteration(node)) return absl::OkStatus();
    if (IsEnter(node)) return OtherForm(node, "leads into another frame");
    if (IsExit(node)) return AddExit(node);
    if (IsSwitch(node)) return AddSwitch(node);
    if (node.op() == ops::kLoopCond) {
      if (form_.condition.node != nullptr || node.num_data_inputs() != 1) {
        return OtherForm(node, "is not the only condition of its frame");
      }
      form_.condition = node.input(0);
      return absl::OkStatus();
    }
    form_.body_nodes.push_back(&node);
    return absl::OkStatus();
  }

  // Adds the constants that the node reads from Enter nodes.
  absl::Status AddConstants(const Node& node) {
    if (IsMerge(node)) return absl::OkStatus();
    for (int i = 0; i < node.num_data_inputs(); ++i) {
      const Node& enter = *node.input(i).node;
      if (!IsEnter(enter) || enter.num_data_inputs() != 1) continue;
      if (!BoolAttr(enter, "is_constant").value_or(false)) {
        return OtherForm(enter, "is read outside of a Merge, in the first iteration alone");
      }
      if (!by_enter_.insert({&enter, 0}).second) continue;
      LoopVariable constant;
      constant.enter = &enter;
      constant.initial = enter.input(0);
      constant.reads = {{const_cast<Node*>(&enter), 0}};
      form_.variables.push_back(std::move(constant));
    }
    return absl::OkStatus();
  }

  absl::Status AddSwitch(const Node& node) {
    if (node.num_data_inputs() != 2 || node.input(1).node->op() != ops::kLoopCond) {
      return OtherForm(node, "is a branch inside the loop");
    }
    const auto found = by_merge_.find(node.input(0).node);
    if (found == by_merge_.end() || node.input(0).port != 0) return OtherForm(node, "is a branch inside the loop");
    form_.variables[found->second].reads.push_back({const_cast<Node*>(&node), 1});
    return absl::OkStatus();
  }

  absl::Status AddExit(const Node& node) {
    if (node.num_data_inputs() != 1 || !IsSwitch(*node.input(0).node) || node.input(0).port != 0) {
      return OtherForm(node, "does not follow a Switch");
    }
    const auto found = by_merge_.find(node.input(0).node->input(0).node);
    if (found == by_merge_.end() || form_.variables[found->second].exit != nullptr) {
      return OtherForm(node, "is not the only Exit of a variable");
    }
    form_.variables[found->second].exit = &node;
    return absl::OkStatus();
  }

  absl::Span<const Node* const> nodes_;
  LoopForm form_;
  absl::flat_hash_map<const Node*, size_t> by_merge_;
  absl::flat_hash_map<const Node*, int> by_enter_;
};

}  // namespace

TensorRef BehindPasses(TensorRef ref) {
  while (ref.port < ref.node->num_data_inputs()) {
    const Op op = ref.node->op();
    const bool passes = op == ops::kIdentity || op == ops::kIdentityN || op == ops::kStopGradient ||
                        op == ops::kPreventGradient || op == ops::kSnapshot ||
                        (IsEnter(*ref.node) && BoolAttr(*ref.node, "is_constant").value_or(false));
    if (!passes) break;
    ref = ref.node->input(ref.port);
  }
  return ref;
}

absl::StatusOr<LoopForm> FormOfWhile(const LoopFunction& condition, const LoopFunction& body) {
  const size_t count = body.arguments.size();
  if (condition.arguments.size() != count || body.results.size() != count || condition.results.size() != 1) {
    return absl::InvalidArgumentError(absl::StrCat("found ", condition.arguments.size(), " arguments and ",
                                                   condition.results.size(), " results of the condition, ", count,
                                                   " and ", body.results.size(), " of the body"));
  }
  LoopForm form;
  for (size_t i = 0; i < count; ++i) {
    LoopVariable& variable = form.variables.emplace_back();
    variable.reads = {condition.arguments[i], body.arguments[i]};
    variable.next = body.results[i];
  }
  form.condition = condition.results[0];
  form.condition_nodes = condition.nodes;
  form.body_nodes = body.nodes;
  FindInvariants(&form);
  return form;
}

absl::StatusOr<LoopForm> FormOfFrame(absl::Span<const Node* const> nodes) { return FrameReader(nodes).Read(); }

}  // namespace permafrost
