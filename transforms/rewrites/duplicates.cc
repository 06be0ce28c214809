// Merges nodes that compute the same values from the same inputs.
#include "transforms/rewrites/duplicates.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/hash/hash.h"
#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "graph/ops/op_schema.h"
#include "transforms/rewrites/attr_content.h"
#include "transforms/rewrites/colocation.h"
#include "transforms/rewrites/redirection.h"

namespace permafrost {
namespace {

bool IsBackEdge(const Node& producer, const Node& consumer) {
  return (consumer.op() == ops::kMerge || consumer.op() == ops::kRefMerge) &&
         (producer.op() == ops::kNextIteration || producer.op() == ops::kRefNextIteration);
}

// f(a, b) is bitwise equal to f(b, a).
bool IsCommutative(Op op) {
  switch (op.id()) {
    case ops::kAdd:
    case ops::kAddV2:
    case ops::kMul:
    case ops::kMaximum:
    case ops::kMinimum:
    case ops::kSquaredDifference:
    case ops::kEqual:
    case ops::kNotEqual:
    case ops::kLogicalAnd:
    case ops::kLogicalOr:
    case ops::kBitwiseAnd:
    case ops::kBitwiseOr:
    case ops::kBitwiseXor:
      return true;
    default:
      return false;
  }
}

// Returns producers before consumers, except for the edges that close loops. Omits nodes in other cycles and their
// consumers.
std::vector<Node*> ProducersFirst(const Graph& graph) {
  std::vector<uint32_t> pending(graph.id_limit(), 0);
  std::vector<Node*> order;
  order.reserve(graph.num_nodes());
  for (Node* node = graph.first(); node != nullptr; node = node->next()) {
    for (int i = 0; i < node->num_inputs(); ++i) pending[node->id()] += IsBackEdge(*node->input(i).node, *node) ? 0 : 1;
    if (pending[node->id()] == 0) order.push_back(node);
  }
  for (size_t next = 0; next < order.size(); ++next) {
    for (const Use& use : order[next]->uses()) {
      if (IsBackEdge(*order[next], *use.consumer)) continue;
      if (--pending[use.consumer->id()] == 0) order.push_back(use.consumer);
    }
  }
  return order;
}

// Value numbering: equal nodes have equal numbers. Every node begins with a number of its own.
class Numbering {
 public:
  Numbering(const Graph& graph, OperandOrder operand_order, PassContext* context)
      : graph_(graph),
        operand_order_(operand_order),
        context_(context),
        number_(graph.id_limit()),
        hash_(graph.id_limit(), 0),
        same_(16, Hash{this}, Same{this}) {
    for (uint32_t id = 0; id < number_.size(); ++id) number_[id] = id;
  }

  void Run() {
    HashAttrs();
    for (Node* node : ProducersFirst(graph_)) {
      if (MayMerge(*node)) Number(node);
    }
  }

  uint32_t NumberOf(const Node* node) const { return number_[node->id()]; }

 private:
  struct Hash {
    const Numbering* numbering;
    size_t operator()(const Node* node) const { return numbering->hash_[node->id()]; }
  };
  struct Same {
    const Numbering* numbering;
    bool operator()(const Node* a, const Node* b) const { return a == b || numbering->AreEqual(*a, *b); }
  };

  bool MayMerge(const Node& node) const {
    const OpSchema* schema = FindSchema(node.op());
    if (schema == nullptr) {
      context_->MissIfWanted(node, "the op is not in the op table and may have state");
      return false;
    }
    if (schema->Is(kStateful | kRandom | kHasSideEffect)) return false;
    // A node that may be fed is never a duplicate.
    if (node.op() == ops::kPlaceholderWithDefault) return false;
    for (int i = 0; i < node.num_inputs(); ++i) {
      if (IsBackEdge(*node.input(i).node, node)) return false;
    }
    return true;
  }

  void Number(Node* node) {
    const std::vector<uint32_t> controls = Controls(*node);
    size_t hash = absl::HashOf(hash_[node->id()], node->op(), node->num_data_inputs());
    const bool swaps = HasSwappedOperands(*node);
    for (int i = 0; i < node->num_data_inputs(); ++i) {
      const TensorRef input = node->input(swaps ? 1 - i : i);
      hash = absl::HashOf(hash, NumberOf(input.node), input.port);
    }
    const size_t computed = hash;  // Hash of the computation, without device and control inputs.
    hash = absl::HashOf(hash, node->device(), controls);
    hash_[node->id()] = hash;
    if (graph_.IsEndpoint(node)) {
      if (!context_->wants_misses) return;
      if (const auto twin = same_.find(node); twin != same_.end()) {
        context_->Miss(*node, absl::StrCat("equals ", (*twin)->Describe(), ", but is a declared ",
                                           graph_.IsOutput(node) ? "output" : "input"));
      }
      return;
    }
    const auto [first, is_new] = same_.insert(node);
    number_[node->id()] = (*first)->id();
    if (is_new && context_->wants_misses) TellLostTwin(*node, computed, controls);
  }

  // Records a miss with the difference to the first node that computes the same from the same inputs.
  void TellLostTwin(const Node& node, size_t computed, const std::vector<uint32_t>& controls) {
    const auto [first, is_new] = first_computing_.try_emplace(computed, &node);
    const Node& twin = *first->second;
    if (is_new || twin.op() != node.op() || !ReadTheSame(node, twin) || !HasEqualAttrs(node, twin)) return;
    if (twin.device() != node.device()) {
      const auto place = [](const Node& each) {
        return each.device().empty() ? "no device" : absl::StrCat("'", each.device(), "'");
      };
      context_->MissIfWanted(node, WayOut{"run remove_device first if that is not needed"}, "equals ", twin.Describe(),
                             ", but is on ", place(node), " and that on ", place(twin));
    } else if (Controls(twin) != controls) {
      context_->MissIfWanted(node, WayOut{"run remove_control_dependencies first if that is not needed"}, "equals ",
                             twin.Describe(), ", but has other control inputs");
    }
  }

  // Compares the operands of a commutative op in the order of their numbers; returns true if that is not the node's own
  // order.
  bool HasSwappedOperands(const Node& node) const {
    if (operand_order_ != OperandOrder::kAny || node.num_data_inputs() != 2 || !IsCommutative(node.op())) return false;
    const auto key = [&](int i) { return std::make_pair(NumberOf(node.input(i).node), node.input(i).port); };
    return key(1) < key(0);
  }

  // Returns the numbers of the control inputs, in an order that does not depend on the file's.
  std::vector<uint32_t> Controls(const Node& node) const {
    std::vector<uint32_t> controls;
    for (int i = node.num_data_inputs(); i < node.num_inputs(); ++i) controls.push_back(NumberOf(node.input(i).node));
    std::sort(controls.begin(), controls.end());
    controls.erase(std::unique(controls.begin(), controls.end()), controls.end());
    return controls;
  }

  // Returns true for attributes that affect the node's results, other than placement and defaults of the op.
  static bool Counts(const Node& node, const Attr& attr) {
    if (attr.key == kColocationAttr) return false;
    const AttrValue* fallback = attr.value.held_tensor() == nullptr ? DefaultAttr(node.op(), attr.key) : nullptr;
    return fallback == nullptr || !SameContent(*fallback, attr.value);
  }

  uint64_t AttrHash(const Node& node, ContentHashing hashing) const {
    uint64_t sum = 0;  // A sum, since the order of attributes is irrelevant.
    for (const Attr& attr : node.attrs()) {
      if (Counts(node, attr)) sum += absl::HashOf(attr.key, ContentHash(attr.value, hashing));
    }
    return sum;
  }

  // Large tensors are read whole only if their samples are equal.
  void HashAttrs() {
    absl::flat_hash_map<uint64_t, Node*> first_large;
    for (Node* node = graph_.first(); node != nullptr; node = node->next()) {
      const uint64_t sampled = AttrHash(*node, ContentHashing::kSampled);
      hash_[node->id()] = sampled;
      const bool is_large = std::any_of(node->attrs().begin(), node->attrs().end(),
                                        [](const Attr& attr) { return IsLargeTensor(attr.value); });
      if (!is_large) continue;
      const auto [entry, is_first] = first_large.try_emplace(sampled, node);
      if (is_first) continue;
      hash_[node->id()] = AttrHash(*node, ContentHashing::kWhole);
      if (entry->second != nullptr) {
        hash_[entry->second->id()] = AttrHash(*entry->second, ContentHashing::kWhole);
        entry->second = nullptr;
      }
    }
  }

  static bool HasEqualAttrs(const Node& a, const Node& b) {
    int counted = 0;
    for (const Attr& attr : a.attrs()) {
      if (!Counts(a, attr)) continue;
      ++counted;
      const AttrValue* other = b.FindAttr(attr.key);
      if (other == nullptr || !SameContent(attr.value, *other)) return false;
    }
    return counted == std::count_if(b.attrs().begin(), b.attrs().end(), [&](const Attr& x) { return Counts(b, x); });
  }

  bool AreEqual(const Node& a, const Node& b) const {
    if (hash_[a.id()] != hash_[b.id()] || a.op() != b.op() || a.device() != b.device()) return false;
    return ReadTheSame(a, b) && Controls(a) == Controls(b) && HasEqualAttrs(a, b);
  }

  // Returns true if the data inputs are equal.
  bool ReadTheSame(const Node& a, const Node& b) const {
    if (a.num_data_inputs() != b.num_data_inputs()) return false;
    const bool swaps_a = HasSwappedOperands(a), swaps_b = HasSwappedOperands(b);
    for (int i = 0; i < a.num_data_inputs(); ++i) {
      const TensorRef from_a = a.input(swaps_a ? 1 - i : i), from_b = b.input(swaps_b ? 1 - i : i);
      if (from_a.port != from_b.port || NumberOf(from_a.node) != NumberOf(from_b.node)) return false;
    }
    return true;
  }

  const Graph& graph_;
  const OperandOrder operand_order_;
  PassContext* context_;
  std::vector<uint32_t> number_;  // By node id.
  std::vector<size_t> hash_;      // By node id: hash of the attributes; after numbering, of everything.
  absl::flat_hash_set<const Node*, Hash, Same> same_;
  absl::flat_hash_map<size_t, const Node*>
      first_computing_;  // By the hash of everything except device and control inputs.
};

}  // namespace

absl::StatusOr<int64_t> MergeDuplicates(Graph* graph, OperandOrder operand_order, PassContext* context) {
  Numbering numbering(*graph, operand_order, context);
  numbering.Run();

  // The first node in the file is kept.
  std::vector<Node*> survivor(graph->id_limit(), nullptr);  // By number.
  std::vector<bool> remove(graph->id_limit(), false);
  int64_t removed = 0;
  for (Node* node = graph->first(); node != nullptr; node = node->next()) {
    Node*& first = survivor[numbering.NumberOf(node)];
    if (first == nullptr) {
      first = node;
    } else if (context->AllowRewrite(*node)) {
      graph->AddOrigins(first, node);
      remove[node->id()] = true;
      ++removed;
    }
  }
  if (removed == 0) return 0;
  const auto now = [&](TensorRef ref) {
    return remove[ref.node->id()] ? TensorRef{survivor[numbering.NumberOf(ref.node)], ref.port} : ref;
  };
  for (Node* node = graph->first(); node != nullptr; node = node->next()) {
    if (!remove[node->id()]) RedirectInputs(graph, node, now);
  }
  RelocateColocations(graph, [&](absl::string_view name) {
    Node* node = graph->Find(name);
    return node == nullptr ? name : now({node, 0}).node->name();
  });
  PF_RETURN_IF_ERROR(graph->RemoveNodes(remove));
  context->Note(absl::StrCat("merged ", removed, " nodes into others that are equal"));
  return removed;
}

}  // namespace permafrost
