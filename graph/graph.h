// The graph that everything else reads and edits. Start here.
//
// A Graph owns its nodes; Node pointers stay valid until the node is removed or the graph dies. The order of the nodes
// is that of the file and reaches the output. Every edit keeps the lists of uses current, so a rewrite costs what it
// touches, not the graph. A Graph is well-formed by construction: names are unique and every input names an existing
// node; what a construction cannot guarantee (ports, types, cycles) is checked by graph/validation/validate.h.
//
// Not thread-safe; several threads may read one graph that nobody edits.
#ifndef PERMAFROST_GRAPH_GRAPH_H_
#define PERMAFROST_GRAPH_GRAPH_H_

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "graph/attr.h"
#include "graph/ops/op.h"
#include "graph/tensor.h"

namespace permafrost {

class Graph;
class Lineage;
class Node;

inline constexpr int kControlPort = -1;

// An output of a node, or, with kControlPort, the node's completion.
struct TensorRef {
  Node* node = nullptr;
  int port = 0;

  bool is_control() const { return port == kControlPort; }
  // "n", "n:1", "^n".
  std::string ToString() const;
  friend bool operator==(const TensorRef& a, const TensorRef& b) { return a.node == b.node && a.port == b.port; }
  friend bool operator!=(const TensorRef& a, const TensorRef& b) { return !(a == b); }
  template <typename H>
  friend H AbslHashValue(H h, const TensorRef& ref) {
    return H::combine(std::move(h), ref.node, ref.port);
  }
};

// Where an output is used: input `index` of `consumer`.
struct Use {
  Node* consumer;
  uint32_t index;
};

struct Attr {
  absl::string_view key;  // Kept alive by the graph.
  AttrValue value;
};

class Node {
 public:
  absl::string_view name() const { return name_; }
  Op op() const { return op_; }
  absl::string_view device() const { return device_; }
  // Small, dense and stable during the life of the graph (removed nodes leave gaps): fit to index a vector of size
  // Graph::id_limit().
  uint32_t id() const { return id_; }
  const Graph& graph() const { return *graph_; }

  // All inputs: the data inputs, then the control inputs.
  int num_inputs() const { return static_cast<int>(inputs_.size()); }
  int num_data_inputs() const { return static_cast<int>(num_data_inputs_); }
  TensorRef input(int i) const { return {inputs_[i].producer, inputs_[i].port}; }
  // True where the file spells output 0 as "name:0" instead of "name".
  bool input_spells_zero(int i) const { return inputs_[i].spells_zero; }

  // Uses of any output, control uses included, in no meaningful order. To read the consumers of one port, filter by
  // use.consumer->input(use.index).port.
  absl::Span<const Use> uses() const { return uses_; }

  absl::Span<const Attr> attrs() const { return attrs_; }
  // Null when the node has no such attribute. Valid until the attribute is set or removed.
  const AttrValue* FindAttr(absl::string_view key) const;
  bool HasAttr(absl::string_view key) const { return FindAttr(key) != nullptr; }
  void SetAttr(absl::string_view key, AttrValue value);  // Overwrites in place, or appends.
  bool RemoveAttr(absl::string_view key);                // False when there was none.
  void ClearAttrs() { attrs_.clear(); }
  void CopyAttrs(const Node& from);

  void set_op(Op op) { op_ = op; }
  void set_device(absl::string_view device);

  // Wire bytes of fields of NodeDef that the IR has no member for (debug info, future fields).
  absl::string_view extra_fields() const { return extra_fields_; }
  void set_extra_fields(absl::string_view bytes);

  Node* next() const { return next_; }
  Node* previous() const { return previous_; }

  // "node 'conv1' (Conv2D)": how messages name it.
  std::string Describe() const;

 private:
  friend class Graph;

  struct Input {
    Node* producer;
    int32_t port;
    bool spells_zero;
    uint32_t use_index;  // Where producer->uses_ lists this input.
  };

  Graph* graph_ = nullptr;
  Node* previous_ = nullptr;
  Node* next_ = nullptr;
  absl::string_view name_;
  absl::string_view device_;
  absl::string_view extra_fields_;
  Op op_;
  uint32_t id_ = 0;
  uint32_t num_data_inputs_ = 0;
  absl::InlinedVector<Input, 2> inputs_;
  absl::InlinedVector<Use, 2> uses_;
  absl::InlinedVector<Attr, 2> attrs_;
};

// What the caller feeds or fetches. `node` may be null for a declared input that the graph does not have (the original
// tools tolerate that for inputs).
struct Endpoint {
  std::string text;  // As declared: "x" or "x:1".
  Node* node = nullptr;
  int port = 0;
};

class Graph {
 public:
  Graph();
  ~Graph();
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  // A deep copy that shares the buffers of all tensors, with the lineage if it is recorded.
  std::unique_ptr<Graph> Clone() const;

  // --- Reading -----------------------------------------------------------------------------------------------------
  size_t num_nodes() const { return num_nodes_; }
  // All ids are smaller.
  size_t id_limit() const { return storage_.size(); }
  Node* first() const { return first_; }
  Node* last() const { return last_; }
  // A snapshot in file order, safe against edits while one walks it (but removed nodes must be skipped by the caller).
  std::vector<Node*> Nodes() const;
  Node* Find(absl::string_view name) const;  // Null when there is none.
  // `base`, or `base` with a suffix "_1", "_2" ... that makes it free. Constant time on average.
  std::string UniqueName(absl::string_view base) const;

  // --- Nodes -------------------------------------------------------------------------------------------------------
  // A node without inputs or attributes before `position` (at the end when null). AlreadyExists for a taken name,
  // InvalidArgument for an empty one.
  absl::StatusOr<Node*> AddNode(absl::string_view name, Op op, Node* position = nullptr);
  // A Const with `dtype` and `value`.
  absl::StatusOr<Node*> AddConst(absl::string_view name, Tensor value, Node* position = nullptr);
  // FailedPrecondition while the node is used or declared as an input or output.
  absl::Status RemoveNode(Node* node);
  // Removes all nodes for which `remove[node->id()]` is set; these may use each other. FailedPrecondition, and nothing
  // removed, when one that stays, or a declared endpoint, needs one that goes.
  absl::Status RemoveNodes(const std::vector<bool>& remove);
  // AlreadyExists for the name of another node. Declared endpoints follow.
  absl::Status Rename(Node* node, absl::string_view name);
  // Gives every node a new name at once, so that names may be exchanged. Nodes that are absent keep theirs.
  absl::Status RenameAll(const std::vector<std::pair<Node*, std::string>>& names);
  void MoveBefore(Node* node, Node* position);
  // REQUIRES: a permutation of Nodes().
  void SetOrder(const std::vector<Node*>& order);

  // --- Edges -------------------------------------------------------------------------------------------------------
  void AddInput(Node* node, TensorRef input, bool spells_zero = false);  // A data input goes before the control inputs.
  void AddControlInput(Node* node, Node* producer);                      // Once, and never from itself.
  void SetInput(Node* node, int index, TensorRef input);  // REQUIRES: data stays data, control stays control.
  // The others keep their order; but where a node has very many control inputs, the last takes the place of the one
  // that goes, which costs the same for any number.
  void RemoveInput(Node* node, int index);
  void ClearInputs(Node* node);
  // Every data use of `from` (this port) becomes one of `to`.
  void ReplaceUses(TensorRef from, TensorRef to);
  // Every control use of `from` becomes one of `to`; duplicates and self-references that arise are dropped.
  void ReplaceControlUses(Node* from, Node* to);
  // The uses of one port in a reproducible order (by consumer id, then input). O(uses log uses).
  std::vector<Use> UsesOf(TensorRef ref) const;
  bool HasDataUses(TensorRef ref) const;

  // --- Interface ---------------------------------------------------------------------------------------------------
  // The names may carry a port. InvalidArgument with the nearest names for an output that does not exist.
  absl::Status DeclareInterface(absl::Span<const std::string> inputs, absl::Span<const std::string> outputs);
  const std::vector<Endpoint>& inputs() const { return declared_inputs_; }
  const std::vector<Endpoint>& outputs() const { return declared_outputs_; }
  bool IsInput(const Node* node) const;
  bool IsOutput(const Node* node) const;
  // IsInput or IsOutput: the name is part of the interface.
  bool IsEndpoint(const Node* node) const { return IsInput(node) || IsOutput(node); }

  // --- Lineage: see graph/lineage.h --------------------------------------------------------------------------------
  // Begins to record which of the present nodes each later node comes from; the origins so far are forgotten.
  void RecordLineage();
  // Null when it is not recorded.
  const Lineage* lineage() const { return lineage_.get(); }
  Lineage* lineage() { return lineage_.get(); }
  // Every origin of `from`, which may be removed next, is one of `to` from now on. O(1).
  void AddOrigins(const Node* to, const Node* from);

  // --- What surrounds the nodes ------------------------------------------------------------------------------------
  // Wire bytes of GraphDef.library, versions and the remaining fields, each with its tags, kept as they are.
  absl::string_view library() const { return library_; }
  absl::string_view versions() const { return versions_; }
  absl::string_view extra_fields() const { return extra_fields_; }
  void set_library(absl::string_view bytes) { library_ = Intern(bytes); }
  void set_versions(absl::string_view bytes) { versions_ = Intern(bytes); }
  void set_extra_fields(absl::string_view bytes) { extra_fields_ = Intern(bytes); }

  // Keeps `owner` alive as long as the graph: names and attributes may view its memory.
  void Retain(Owner owner) { owners_.push_back(std::move(owner)); }

  // Keeps alive what views of this graph's names, attributes and library point into, as they are now, beyond the graph.
  Owner Memory() const;

  // For readers: as AddNode, but `name` and `device` are views that a retained owner keeps alive.
  absl::StatusOr<Node*> AddNodeView(absl::string_view name, Op op, absl::string_view device);
  // For readers: appends an attribute without looking for the key, which is a view that a retained owner keeps alive.
  void AppendAttrView(Node* node, absl::string_view key, AttrValue value);
  // For readers, before they append so many.
  void ReserveAttrs(Node* node, size_t count) { node->attrs_.reserve(count); }
  void SetExtraFieldsView(Node* node, absl::string_view bytes) { node->extra_fields_ = bytes; }
  void SetSurroundingsView(absl::string_view library, absl::string_view versions, absl::string_view extra_fields);
  void Reserve(size_t nodes);

  // A copy of `text` that lives as long as the graph; equal texts share one.
  absl::string_view Intern(absl::string_view text);

 private:
  void Link(Node* node, Node* position);
  void Unlink(Node* node);
  void AttachUse(Node* node, uint32_t index);
  void DetachUse(Node* node, uint32_t index);
  void Discard(Node* node);

  // Nodes by id, in blocks that never move.
  class NodeStorage {
   public:
    size_t size() const { return size_; }
    Node& Add() {
      if (size_ % kBlock == 0) blocks_.push_back(std::make_unique<Node[]>(kBlock));
      Node& node = blocks_.back()[size_ % kBlock];
      ++size_;
      return node;
    }
    void Reserve(size_t nodes) { blocks_.reserve(nodes / kBlock + 1); }

   private:
    static constexpr size_t kBlock = 32;

    std::vector<std::unique_ptr<Node[]>> blocks_;
    size_t size_ = 0;
  };

  NodeStorage storage_;
  Node* first_ = nullptr;
  Node* last_ = nullptr;
  size_t num_nodes_ = 0;
  absl::flat_hash_map<absl::string_view, Node*> by_name_;
  std::vector<Endpoint> declared_inputs_, declared_outputs_;
  absl::flat_hash_set<const Node*> input_nodes_, output_nodes_;
  absl::string_view library_, versions_, extra_fields_;
  std::vector<Owner> owners_;
  // Texts made by edits. A clone shares those of its origin, of which it only holds views.
  struct Texts {
    std::deque<std::string> texts;
    absl::flat_hash_set<absl::string_view> index;
  };
  std::shared_ptr<Texts> texts_ = std::make_shared<Texts>();
  mutable absl::flat_hash_map<std::string, int> next_suffix_;  // By base, where UniqueName goes on looking.
  std::unique_ptr<Lineage> lineage_;
};

// --- Attributes by kind, with the node named in errors ---------------------------------------------------------------
// When the node lacks the attribute, the default of its op's schema serves; NotFound when there is none.
absl::StatusOr<int64_t> IntAttr(const Node& node, absl::string_view key);
absl::StatusOr<float> FloatAttr(const Node& node, absl::string_view key);
absl::StatusOr<bool> BoolAttr(const Node& node, absl::string_view key);
absl::StatusOr<std::string> StringAttr(const Node& node, absl::string_view key);
absl::StatusOr<DType> TypeAttr(const Node& node, absl::string_view key);
absl::StatusOr<Shape> ShapeAttr(const Node& node, absl::string_view key);
absl::StatusOr<std::vector<int64_t>> IntListAttr(const Node& node, absl::string_view key);
absl::StatusOr<std::vector<float>> FloatListAttr(const Node& node, absl::string_view key);
absl::StatusOr<std::vector<DType>> TypeListAttr(const Node& node, absl::string_view key);
absl::StatusOr<std::vector<std::string>> StringListAttr(const Node& node, absl::string_view key);
// The value of a Const. FailedPrecondition when the node is not a Const.
absl::StatusOr<Tensor> ConstValue(const Node& node);

}  // namespace permafrost

#endif  // PERMAFROST_GRAPH_GRAPH_H_
