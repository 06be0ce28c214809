// Implements FindInterface: propagates facts forward along edges, then chooses outputs, then inputs.
#include "graph/analysis/interface_finder.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "graph/analysis/order.h"
#include "graph/ops/op_schema.h"

namespace permafrost {

std::string FoundEndpoint::name() const {
  return port == 0 ? std::string(node->name()) : absl::StrCat(node->name(), ":", port);
}

std::vector<std::string> ChosenNames(const std::vector<FoundEndpoint>& endpoints) {
  std::vector<std::string> names;
  for (const FoundEndpoint& endpoint : endpoints) {
    if (endpoint.is_chosen) names.push_back(endpoint.name());
  }
  return names;
}

std::vector<Node*> ChosenNodes(const std::vector<FoundEndpoint>& endpoints) {
  std::vector<Node*> nodes;
  for (const FoundEndpoint& endpoint : endpoints) {
    // The ports of a node are adjacent.
    if (endpoint.is_chosen && (nodes.empty() || nodes.back() != endpoint.node)) nodes.push_back(endpoint.node);
  }
  return nodes;
}

std::vector<int> OutputPorts(const Node& node) {
  const absl::StatusOr<std::vector<DType>> types = OutputTypes(node);
  // FusedBatchNorm, V2 and V3: mean, variance and reserve spaces follow the result.
  if (!types.ok() || types->size() < 2 || absl::StartsWith(node.op().name(), "FusedBatchNorm")) return {0};
  std::vector<int> ports;
  for (size_t i = 0; i < types->size(); ++i) {
    const DType type = RemoveRef((*types)[i]);
    if (type != DType::kResource && type != DType::kVariant) ports.push_back(static_cast<int>(i));
  }
  if (ports.empty()) ports.push_back(0);
  return ports;
}

namespace {

// With more outputs than this, the inputs that each output needs are not compared.
constexpr size_t kMaxComparedOutputs = 64;
// Number of nodes visited from an input to decide whether it holds labels.
constexpr size_t kMaxFollowed = 20;

// Facts about a node that follow from its predecessors; bits of a mask.
constexpr uint8_t kBehindInput = 1;
constexpr uint8_t kBehindLoss = 2;   // Depends on an op that only training needs.
constexpr uint8_t kBehindLabel = 4;  // Depends on an input that holds labels.
constexpr uint8_t kBehindUnfed = 8;  // Depends on a placeholder that is not among the given inputs.

bool IsPlaceholder(Op op) { return op == ops::kPlaceholder || op == ops::kPlaceholderV2; }

bool IsTrainingOp(Op op) {
  // Compares names, because a selective build has ids only for the ops that it runs.
  for (const absl::string_view known : {"SoftmaxCrossEntropyWithLogits", "SparseSoftmaxCrossEntropyWithLogits",
                                        "L2Loss", "InTopK", "InTopKV2", "Conv2DBackpropFilter"}) {
    if (op.name() == known) return true;
  }
  return absl::EndsWith(op.name(), "Grad") || absl::EndsWith(op.name(), "GradV2") ||
         absl::EndsWith(op.name(), "GradV3");
}

// True if the op produces data from outside the graph and is not a placeholder.
bool IsSource(Op op) {
  return op.name() == "IteratorGetNext" || absl::StartsWith(op.name(), "QueueDequeue") ||
         absl::StartsWith(op.name(), "Decode") || absl::StartsWith(op.name(), "Parse");
}

bool IsFeedable(Op op) { return IsPlaceholder(op) || op == ops::kPlaceholderWithDefault || IsSource(op); }

bool IsSummary(Op op) { return absl::EndsWith(op.name(), "Summary") || absl::EndsWith(op.name(), "SummaryV2"); }

// True if the op forwards labels without changing their meaning.
bool ForwardsLabels(Op op) {
  for (const Op known :
       {ops::kIdentity, ops::kCast, ops::kReshape, ops::kSqueeze, ops::kOneHot, ops::kExpandDims, ops::kStopGradient}) {
    if (op == known) return true;
  }
  return false;
}

// True if the original summarize_graph ignores the node, or if it has no outputs or only side effects.
bool HasNoResult(const Node& node) {
  const Op op = node.op();
  if (op == ops::kConst || op == ops::kAssign || op == ops::kNoOp || IsPlaceholder(op)) return true;
  const OpSchema* schema = FindSchema(op);
  return schema != nullptr && (schema->Is(kHasSideEffect) || schema->fixed_outputs == 0);
}

// True if `input` holds labels: it feeds only losses and comparisons, directly or through ops that forward labels.
bool IsLabel(const Node& input) {
  std::vector<const Node*> open = {&input};
  std::vector<const Node*> seen = open;
  bool reaches_loss = false;
  while (!open.empty()) {
    const Node* node = open.back();
    open.pop_back();
    for (const Use& use : node->uses()) {
      const Op op = use.consumer->op();
      if (IsTrainingOp(op) || op == ops::kEqual) {
        reaches_loss = true;
      } else if (ForwardsLabels(op) && seen.size() < kMaxFollowed) {
        if (std::find(seen.begin(), seen.end(), use.consumer) != seen.end()) continue;
        open.push_back(use.consumer);
        seen.push_back(use.consumer);
      } else {
        return false;
      }
    }
  }
  return reaches_loss;
}

// Returns, by node id, the mask of facts about the node's predecessors. The inputs in `given` (chosen by the caller;
// may be null) hide their own predecessors. Visits each node at most once per bit, so it terminates on cycles.
std::vector<uint8_t> SpreadForward(const Graph& graph, const std::vector<Node*>* given) {
  std::vector<uint8_t> mask(graph.id_limit(), 0);
  std::vector<bool> is_given(graph.id_limit(), false);
  std::vector<const Node*> open;
  const auto add = [&](const Node* node, uint8_t bits) {
    if ((mask[node->id()] | bits) == mask[node->id()]) return;
    mask[node->id()] |= bits;
    open.push_back(node);
  };
  if (given != nullptr) {
    for (const Node* node : *given) {
      is_given[node->id()] = true;
      add(node, static_cast<uint8_t>(kBehindInput | (IsLabel(*node) ? kBehindLabel : 0)));
    }
  }
  for (const Node* node = graph.first(); node != nullptr; node = node->next()) {
    const Op op = node->op();
    if (is_given[node->id()]) continue;
    if (IsTrainingOp(op)) add(node, kBehindLoss);
    if (given == nullptr ? IsFeedable(op) : IsPlaceholder(op)) {
      add(node,
          static_cast<uint8_t>((given == nullptr ? kBehindInput : kBehindUnfed) | (IsLabel(*node) ? kBehindLabel : 0)));
    }
  }
  while (!open.empty()) {
    const Node* node = open.back();
    open.pop_back();
    for (const Use& use : node->uses()) {
      if (!is_given[use.consumer->id()]) add(use.consumer, mask[node->id()]);
    }
  }
  return mask;
}

std::vector<FoundEndpoint> FindOutputs(const Graph& graph, const std::vector<Node*>* given, std::string* doubt) {
  const std::vector<uint8_t> mask = SpreadForward(graph, given);
  std::vector<FoundEndpoint> outputs;
  bool any_behind_input = false;
  for (Node* node = graph.first(); node != nullptr; node = node->next()) {
    if (!node->uses().empty() || HasNoResult(*node)) continue;
    FoundEndpoint output{node, false, "", 0};
    if (IsSummary(node->op())) {
      output.reason = "a summary";
    } else if ((mask[node->id()] & kBehindLoss) != 0) {
      output.reason = "comes from a loss or a gradient, which only training needs";
    } else if ((mask[node->id()] & kBehindLabel) != 0) {
      output.reason = "reads labels, which exist only in training and evaluation";
    } else if ((mask[node->id()] & kBehindUnfed) != 0) {
      output.reason = "needs a placeholder that is not among the inputs given";
    } else {
      output.is_chosen = true;
      output.reason = "no node reads it";
      any_behind_input = any_behind_input || (mask[node->id()] & kBehindInput) != 0;
    }
    for (const int port : OutputPorts(*node)) {
      output.port = port;
      outputs.push_back(output);
    }
  }
  for (FoundEndpoint& output : outputs) {
    if (output.is_chosen && any_behind_input && (mask[output.node->id()] & kBehindInput) == 0) {
      output.is_chosen = false;
      output.reason = "depends on no input";
    }
  }
  if (ChosenNodes(outputs).empty()) {
    *doubt = outputs.empty() ? "every node has consumers or no result"
                             : "every node without consumers belongs to training or needs inputs that are not given";
  }
  return outputs;
}

// Marks the inputs that the chosen outputs need. Records a doubt if the outputs do not all need the same inputs.
void ChooseInputs(const Graph& graph, const std::vector<Node*>& outputs, bool outputs_are_given,
                  FoundInterface* found) {
  const std::vector<bool> needed = ReachedBackwards(graph, outputs, {});
  const bool has_placeholder = std::any_of(found->inputs.begin(), found->inputs.end(), [&](const FoundEndpoint& input) {
    return IsPlaceholder(input.node->op()) && needed[input.node->id()];
  });
  for (FoundEndpoint& input : found->inputs) {
    const Op op = input.node->op();
    if (!needed[input.node->id()]) {
      input.reason = "no output needs it";
    } else if (IsSource(op)) {
      input.reason = "reads data from outside the graph, but its result could be fed";
    } else if (!IsPlaceholder(op) && has_placeholder) {
      input.reason = "has a default";
    } else {
      input.is_chosen = true;
      input.reason =
          IsPlaceholder(op) ? "a placeholder that the outputs need" : "the graph has no other kind of placeholder";
    }
  }
  const std::vector<Node*> inputs = ChosenNodes(found->inputs);
  if (inputs.empty()) {
    const bool has_source = std::any_of(found->inputs.begin(), found->inputs.end(),
                                        [&](const FoundEndpoint& input) { return needed[input.node->id()]; });
    if (has_source) found->inputs_doubt = "the graph has no placeholder, but nodes that read outside data";
    return;
  }
  if (outputs_are_given || outputs.size() < 2 || outputs.size() > kMaxComparedOutputs) return;
  // For each input, one output that needs it and one that does not.
  std::vector<std::pair<const Node*, const Node*>> examples(inputs.size());
  for (Node* output : outputs) {
    const std::vector<bool> reached = ReachedBackwards(graph, {output}, {});
    for (size_t i = 0; i < inputs.size(); ++i) {
      (reached[inputs[i]->id()] ? examples[i].first : examples[i].second) = output;
    }
  }
  for (size_t i = 0; i < inputs.size(); ++i) {
    const auto [with, without] = examples[i];
    if (with == nullptr || without == nullptr) continue;
    found->outputs_doubt = absl::StrCat("'", with->name(), "' needs input '", inputs[i]->name(), "', and '",
                                        without->name(), "' does not");
    return;
  }
}

// Returns the nodes of "x" and "x:1" that exist.
std::vector<Node*> NodesOf(const Graph& graph, const std::vector<std::string>& names) {
  std::vector<Node*> nodes;
  for (const std::string& name : names) {
    if (Node* node = graph.Find(absl::string_view(name).substr(0, name.rfind(':'))); node != nullptr) {
      nodes.push_back(node);
    }
  }
  return nodes;
}

std::vector<std::string> DeclaredNames(const std::vector<Endpoint>& endpoints) {
  std::vector<std::string> names;
  for (const Endpoint& endpoint : endpoints) names.push_back(endpoint.text);
  return names;
}

}  // namespace

InterfaceChoice ChooseInterface(const Graph& graph, const std::vector<std::string>* inputs,
                                const std::vector<std::string>* outputs) {
  InterfaceChoice choice;
  if (inputs != nullptr) choice.inputs = *inputs;
  if (outputs != nullptr) choice.outputs = *outputs;
  if (inputs != nullptr && outputs != nullptr) return choice;
  const bool is_declared = !graph.outputs().empty();
  const auto source = is_declared ? InterfaceChoice::Source::kDeclared : InterfaceChoice::Source::kFound;
  if (!is_declared) {
    const std::vector<Node*> input_nodes = NodesOf(graph, choice.inputs), output_nodes = NodesOf(graph, choice.outputs);
    choice.found =
        FindInterface(graph, inputs != nullptr ? &input_nodes : nullptr, outputs != nullptr ? &output_nodes : nullptr);
  }
  if (inputs == nullptr) {
    choice.inputs = is_declared ? DeclaredNames(graph.inputs()) : ChosenNames(choice.found.inputs);
    choice.inputs_source = source;
  }
  if (outputs == nullptr) {
    choice.outputs = is_declared ? DeclaredNames(graph.outputs()) : ChosenNames(choice.found.outputs);
    choice.outputs_source = source;
  }
  return choice;
}

FoundInterface FindInterface(const Graph& graph, const std::vector<Node*>* inputs, const std::vector<Node*>* outputs) {
  FoundInterface found;
  if (inputs != nullptr) {
    for (Node* node : *inputs) found.inputs.push_back({node, true, "given", 0});
  } else {
    for (Node* node = graph.first(); node != nullptr; node = node->next()) {
      if (IsFeedable(node->op())) found.inputs.push_back({node, false, "", 0});
    }
  }
  if (outputs != nullptr) {
    for (Node* node : *outputs) found.outputs.push_back({node, true, "given", 0});
  } else {
    found.outputs = FindOutputs(graph, inputs, &found.outputs_doubt);
  }
  if (inputs == nullptr) ChooseInputs(graph, ChosenNodes(found.outputs), outputs != nullptr, &found);
  return found;
}

}  // namespace permafrost
