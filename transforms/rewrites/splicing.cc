// Removes nodes whose users can read an input of the node instead.
#include "transforms/rewrites/splicing.h"

#include <algorithm>
#include <map>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "graph/base/status.h"
#include "graph/ops/op_schema.h"
#include "transforms/rewrites/absorption.h"
#include "transforms/rewrites/colocation.h"
#include "transforms/rewrites/redirection.h"

namespace permafrost {
namespace {

// A node is kept if its removal would give each of its consumers more control inputs than this. Otherwise the number of
// edges could grow quadratically with the length of a chain of such nodes.
constexpr size_t kMostHandedOn = 64;

bool IsBranchPoint(Op op) {
  return op == ops::kSwitch || op == ops::kRefSwitch || op == ops::kMerge || op == ops::kRefMerge;
}

// Decides for every node, producers before consumers, whether it is removed, and what replaces it.
class Removal {
 public:
  Removal(const Graph& graph, SourceInput source_input, PassContext* context)
      : context_(context), state_(graph.id_limit(), State::kStays), replaced_(graph.id_limit(), 0) {
    for (const Node* node = graph.first(); node != nullptr; node = node->next()) {
      const OpSchema* schema = FindSchema(node->op());
      has_control_flow_ |= schema != nullptr && schema->Is(kControlFlow);
    }
    for (Node* node = graph.first(); node != nullptr; node = node->next()) {
      if (node->num_data_inputs() == 0) continue;
      const int source = source_input(*node);
      if (source == kNoSource) continue;
      if (graph.IsEndpoint(node)) {
        context->Miss(*node, NotMatched(NearMiss::Kind::kEndpoint, {node, 0},
                                        absl::StrCat("is a declared ", graph.IsOutput(node) ? "output" : "input")));
        continue;
      }
      if (const absl::Status unmarked = RequireUnmarked(*node); !unmarked.ok()) {
        context->Miss(*node, unmarked);
        continue;
      }
      state_[node->id()] = State::kUndecided;
      if (source == kEachPort) {
        used_ports_.emplace(node, UsedPorts(*node));
      } else if (source != 0) {
        other_source_.emplace(node, source);
      }
    }
  }

  // Returns InvalidArgument for candidates that form a cycle.
  absl::Status Decide(const Graph& graph) {
    for (Node* node = graph.first(); node != nullptr; node = node->next()) {
      PF_RETURN_IF_ERROR(DecideWithProducers(node));
    }
    return absl::OkStatus();
  }

  // Returns true if input `i` replaces an output of the removed node.
  bool IsSource(const Node& node, int i) const {
    const auto ports = used_ports_.find(&node);
    if (ports != used_ports_.end()) return std::binary_search(ports->second.begin(), ports->second.end(), i);
    return i == FirstSource(node);
  }

  bool Goes(const Node* node) const { return state_[node->id()] == State::kGoes; }

  // Returns the replacement of `ref` after the removal.
  TensorRef Now(TensorRef ref) const {
    if (!Goes(ref.node)) return ref;
    const Place& place = place_[replaced_[ref.node->id()]];
    if (ref.is_control()) return {place.sources[0].node, kControlPort};
    const auto ports = used_ports_.find(ref.node);
    if (ports == used_ports_.end()) return place.sources[0];
    const auto port = std::lower_bound(ports->second.begin(), ports->second.end(), ref.port);
    return place.sources[port - ports->second.begin()];
  }

  // Returns the control inputs that the consumers of a removed node take over. None of them is removed.
  const std::vector<Node*>& HandedOn(const Node* node) const { return place_[replaced_[node->id()]].handed_on; }

 private:
  enum class State : uint8_t { kStays, kUndecided, kOpen, kGoes };
  struct Place {
    absl::InlinedVector<TensorRef, 1> sources;  // One for each used port with kEachPort, else one.
    std::vector<Node*> handed_on;
  };

  // Returns the used ports of a kEachPort node, sorted; all ports if the node has control uses, which wait for all
  // inputs. At least one.
  static std::vector<int> UsedPorts(const Node& node) {
    std::vector<int> ports;
    for (const Use& use : node.uses()) {
      const TensorRef ref = use.consumer->input(static_cast<int>(use.index));
      if (!ref.is_control()) {
        ports.push_back(ref.port);
        continue;
      }
      for (int i = 0; i < node.num_data_inputs(); ++i) ports.push_back(i);
    }
    std::sort(ports.begin(), ports.end());
    ports.erase(std::unique(ports.begin(), ports.end()), ports.end());
    if (ports.empty()) ports.push_back(0);
    return ports;
  }

  int FirstSource(const Node& node) const {
    const auto other = other_source_.find(&node);
    return other == other_source_.end() ? 0 : other->second;
  }
  int NumSources(const Node& node) const {
    const auto ports = used_ports_.find(&node);
    return ports == used_ports_.end() ? 1 : static_cast<int>(ports->second.size());
  }

  // Returns the number of inputs that the decision about a node depends on: its sources, and the control inputs.
  int NumDeciding(const Node& node) const { return NumSources(node) + node.num_inputs() - node.num_data_inputs(); }
  TensorRef Deciding(const Node& node, int i) const {
    const int num_sources = NumSources(node);
    if (i >= num_sources) return node.input(node.num_data_inputs() + i - num_sources);
    const auto ports = used_ports_.find(&node);
    return node.input(ports == used_ports_.end() ? FirstSource(node) : ports->second[i]);
  }

  // Decides depth first over candidates, with an explicit stack.
  absl::Status DecideWithProducers(Node* root) {
    if (state_[root->id()] != State::kUndecided) return absl::OkStatus();
    struct Step {
      Node* node;
      int next_input;
    };
    std::vector<Step> path = {{root, 0}};
    state_[root->id()] = State::kOpen;
    while (!path.empty()) {
      Node* node = path.back().node;
      if (path.back().next_input == NumDeciding(*node)) {
        path.pop_back();
        state_[node->id()] = MayGo(node) ? State::kGoes : State::kStays;
        continue;
      }
      Node* producer = Deciding(*node, path.back().next_input++).node;
      if (state_[producer->id()] == State::kOpen) {
        return absl::InvalidArgumentError(absl::StrCat(node->Describe(), " and ", producer->Describe(),
                                                       " are to be removed and read each other in a cycle"));
      }
      if (state_[producer->id()] != State::kUndecided) continue;
      state_[producer->id()] = State::kOpen;
      path.push_back({producer, 0});
    }
    return absl::OkStatus();
  }

  // Records the replacement of `node`, or the reason why it is kept. All its producers are decided.
  bool MayGo(Node* node) {
    const bool has_each_port = used_ports_.contains(node);
    if (has_each_port && has_control_flow_ && node->num_data_inputs() > 1) {
      context_->MissIfWanted(*node, "makes its readers depend on all its inputs, which may be dead after a Switch");
      return false;
    }
    bool feeds_merge = false, has_control_uses = false;
    for (const Use& use : node->uses()) {
      const int port = use.consumer->input(use.index).port;
      if (port > 0 && (!has_each_port || port >= node->num_data_inputs())) {
        context_->MissIfWanted(*node, "its output ", port, " is used too");
        return false;
      }
      if (port == kControlPort) {
        has_control_uses = true;
      } else {
        feeds_merge |= use.consumer->op() == ops::kMerge || use.consumer->op() == ops::kRefMerge;
      }
    }
    Place place;
    const int num_sources = NumSources(*node);
    for (int i = 0; i < num_sources; ++i) place.sources.push_back(Now(Deciding(*node, i)));
    Node* source = place.sources[0].node;
    if (has_control_uses && IsBranchPoint(source->op())) {
      context_->MissIfWanted(*node, "carries control edges of one branch of ", source->Describe());
      return false;
    }
    absl::flat_hash_set<const Node*> seen;
    for (int i = 0; i < NumDeciding(*node); ++i) {
      Node* producer = Deciding(*node, i).node;
      if (Goes(producer)) {
        for (Node* handed_on : HandedOn(producer)) {
          if (seen.insert(handed_on).second) place.handed_on.push_back(handed_on);
        }
      }
      // The producers of further sources must be waited for only if the node has control uses.
      if (i == 0 || (i < num_sources && !has_control_uses)) continue;
      Node* control = i < num_sources ? place.sources[i].node : Now({producer, kControlPort}).node;
      if (control != source && seen.insert(control).second) place.handed_on.push_back(control);
    }
    if (place.handed_on.size() > kMostHandedOn) {
      context_->MissIfWanted(*node, "has more than ", kMostHandedOn, " control inputs to transfer");
      return false;
    }
    if (feeds_merge && !place.handed_on.empty()) {
      context_->MissIfWanted(*node, "feeds a Merge, which would wait for its control inputs in every branch");
      return false;
    }
    if (!context_->AllowRewrite(*node)) return false;
    replaced_[node->id()] = static_cast<uint32_t>(place_.size());
    place_.push_back(std::move(place));
    return true;
  }

  PassContext* context_;
  std::vector<State> state_;        // By node id.
  std::vector<uint32_t> replaced_;  // By node id: index in place_ of a removed node.
  std::vector<Place> place_;
  absl::flat_hash_map<const Node*, int> other_source_;             // Source inputs other than 0.
  absl::flat_hash_map<const Node*, std::vector<int>> used_ports_;  // Only for nodes with kEachPort.
  bool has_control_flow_ = false;
};

}  // namespace

bool MayGoUnread(const Node& node) {
  const OpSchema* schema = FindSchema(node.op());
  if (schema == nullptr || schema->Is(kHasSideEffect | kControlFlow)) return false;
  return !schema->Is(kStateful) || schema->Is(kRandom);
}

absl::StatusOr<int64_t> RemoveUnread(Graph* graph, std::vector<Node*> nodes,
                                     absl::FunctionRef<bool(const Node&)> may_go) {
  int64_t removed = 0;
  std::vector<bool> gone(graph->id_limit(), false);
  while (!nodes.empty()) {
    Node* node = nodes.back();
    nodes.pop_back();
    if (gone[node->id()] || !node->uses().empty() || graph->IsEndpoint(node) || !may_go(*node)) continue;
    for (int i = 0; i < node->num_inputs(); ++i) nodes.push_back(node->input(i).node);
    gone[node->id()] = true;
    PF_RETURN_IF_ERROR(graph->RemoveNode(node));
    ++removed;
  }
  return removed;
}

absl::StatusOr<int64_t> SpliceOut(Graph* graph, SourceInput source_input, PassContext* context) {
  Removal removal(*graph, source_input, context);
  PF_RETURN_IF_ERROR(removal.Decide(*graph));

  std::vector<bool> remove(graph->id_limit(), false);
  std::map<absl::string_view, int64_t> removed_by_op;
  std::vector<Node*> no_longer_read;
  int64_t removed = 0;
  for (Node* node = graph->first(); node != nullptr; node = node->next()) {
    if (removal.Goes(node)) {
      for (int i = 0; i < node->num_data_inputs(); ++i) {
        if (!removal.IsSource(*node, i) && !removal.Goes(node->input(i).node))
          no_longer_read.push_back(node->input(i).node);
      }
      remove[node->id()] = true;
      ++removed_by_op[node->op().name()];
      graph->AddOrigins(removal.Now({node, kControlPort}).node, node);
      ++removed;
      continue;
    }
    bool reads_removed = false;
    std::vector<Node*> controls;
    for (int i = 0; i < node->num_inputs(); ++i) {
      const Node* producer = node->input(i).node;
      if (!removal.Goes(producer)) continue;
      reads_removed = true;
      const std::vector<Node*>& handed_on = removal.HandedOn(producer);
      controls.insert(controls.end(), handed_on.begin(), handed_on.end());
    }
    if (reads_removed)
      RedirectInputs(
          graph, node, [&](TensorRef ref) { return removal.Now(ref); }, controls);
  }
  if (removed == 0) return 0;
  absl::flat_hash_set<absl::string_view> names;  // Strings owned by the graph.
  for (const Node* node = graph->first(); node != nullptr; node = node->next()) names.insert(node->name());
  PF_RETURN_IF_ERROR(graph->RemoveNodes(remove));
  PF_ASSIGN_OR_RETURN(const int64_t unread, RemoveUnread(graph, std::move(no_longer_read)));
  RelocateColocations(graph, [&](absl::string_view name) {
    return names.contains(name) && graph->Find(name) == nullptr ? absl::string_view() : name;
  });
  if (unread > 0) context->Note(absl::StrCat("removed ", unread, " nodes that only these read"));
  context->Note(absl::StrCat("removed ", absl::StrJoin(removed_by_op, ", ", [](std::string* out, const auto& entry) {
                               absl::StrAppend(out, entry.second, " ", entry.first);
                             })));
  return removed + unread;
}

}  // namespace permafrost
