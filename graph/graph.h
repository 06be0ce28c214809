// The graph IR: a graph of nodes that passes edit and the runtime executes. Start reading here.
//
// A Graph owns its nodes. A Node pointer stays valid until the node is removed or the graph is destroyed. Nodes keep
// the order of the file, and files are written in that order. Every edit updates the lists of uses, so the cost of a
// rewrite depends on the edges that it changes, not on the size of the graph. A Graph is well-formed by construction:
// node names are unique and every input refers to an existing node. Ports, types and cycles are checked separately, by
// graph/validation/validate.h.
//
// Not thread-safe. Several threads may read one graph as long as no thread edits it.
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

// An output of a node. With port kControlPort, the control dependency on the node.
struct TensorRef {
  Node* node = nullptr;
  int port = 0;

  bool is_control() const { return port == kControlPort; }
  // Returns "n" for port 0, "n:1" for port 1, "^n" for a control dependency.
  std::string ToString() const;
  friend bool operator==(const TensorRef& a, const TensorRef& b) { return a.node == b.node && a.port == b.port; }
  friend bool operator!=(const TensorRef& a, const TensorRef& b) { return !(a == b); }
  template <typename H>
  friend H AbslHashValue(H h, const TensorRef& ref) {
    return H::combine(std::move(h), ref.node, ref.port);
  }
};

// One use of an output: input `index` of `consumer` reads it.
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
  // Small and dense, and stable during the life of the graph; removed nodes leave gaps. Suitable as the index into a
  // vector of size Graph::id_limit().
  uint32_t id() const { return id_; }
  const Graph& graph() const { return *graph_; }

  // All inputs: first the data inputs, then the control inputs.
  int num_inputs() const { return static_cast<int>(inputs_.size()); }
  int num_data_inputs() const { return static_cast<int>(num_data_inputs_); }
  TensorRef input(int i) const { return {inputs_[i].producer, inputs_[i].port}; }
  // True if the file spells output 0 as "name:0" instead of "name".
  bool input_spells_zero(int i) const { return inputs_[i].spells_zero; }

  // Uses of all outputs, control uses included, in no particular order. To select the consumers of one port, compare
  // use.consumer->input(use.index).port.
  absl::Span<const Use> uses() const { return uses_; }

  absl::Span<const Attr> attrs() const { return attrs_; }
  // Returns null if the node has no such attribute. The pointer is valid until the attribute is set or removed.
  const AttrValue* FindAttr(absl::string_view key) const;
  bool HasAttr(absl::string_view key) const { return FindAttr(key) != nullptr; }
  void SetAttr(absl::string_view key, AttrValue value);  // Overwrites in place, or appends.
  bool RemoveAttr(absl::string_view key);                // Returns false if there was none.
  void ClearAttrs() { attrs_.clear(); }
  void CopyAttrs(const Node& from);

  void set_op(Op op) { op_ = op; }
  void set_device(absl::string_view device);

  // NodeDef fields that the IR has no member for (debug info, fields of newer versions), in wire format.
  absl::string_view extra_fields() const { return extra_fields_; }
  void set_extra_fields(absl::string_view bytes);

  Node* next() const { return next_; }
  Node* previous() const { return previous_; }

  // Returns "node 'conv1' (Conv2D)", the form used in messages.
  std::string Describe() const;

 private:
  friend class Graph;

  struct Input {
    Node* producer;
    int32_t port;
    bool spells_zero;
    uint32_t use_index;  // Position of this input in producer->uses_.
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

// A declared input or output of the graph. `node` may be null for a declared input that the graph does not contain; the
// original tools accept such inputs.
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

  // Returns a deep copy that shares the buffers of all tensors. Copies the lineage if it is recorded.
  std::unique_ptr<Graph> Clone() const;

  // --- Reading -----------------------------------------------------------------------------------------------------
  size_t num_nodes() const { return num_nodes_; }
  // Every node id is smaller.
  size_t id_limit() const { return storage_.size(); }
  Node* first() const { return first_; }
  Node* last() const { return last_; }
  // Returns a snapshot in file order. Edits do not invalidate the vector, but the caller must skip nodes that it
  // removes.
  std::vector<Node*> Nodes() const;
  Node* Find(absl::string_view name) const;  // Returns null if there is none.
  // Returns `base` if no node has that name, otherwise `base` with the first free suffix "_1", "_2", ... Constant time
  // on average.
  std::string UniqueName(absl::string_view base) const;

  // --- Nodes -------------------------------------------------------------------------------------------------------
  // Adds a node without inputs or attributes before `position`, or at the end if `position` is null. Returns
  // AlreadyExists if the name is taken, InvalidArgument if it is empty.
  absl::StatusOr<Node*> AddNode(absl::string_view name, Op op, Node* position = nullptr);
  // Adds a Const with the attributes `dtype` and `value`. Same errors as AddNode.
  absl::StatusOr<Node*> AddConst(absl::string_view name, Tensor value, Node* position = nullptr);
  // Returns FailedPrecondition if the node has uses or is declared as an input or output.
  absl::Status RemoveNode(Node* node);
  // Removes all nodes for which `remove[node->id()]` is true; they may use each other. Returns FailedPrecondition,
  // without changes, if a remaining node uses one of them or one of them is a declared input or output.
  absl::Status RemoveNodes(const std::vector<bool>& remove);
  // Returns AlreadyExists if another node has the name. Updates the declared inputs and outputs.
  absl::Status Rename(Node* node, absl::string_view name);
  // Renames several nodes at once, so that two nodes can exchange their names. Nodes that are not listed keep their
  // names.
  absl::Status RenameAll(const std::vector<std::pair<Node*, std::string>>& names);
  void MoveBefore(Node* node, Node* position);
  // REQUIRES: `order` is a permutation of Nodes().
  void SetOrder(const std::vector<Node*>& order);

  // --- Edges -------------------------------------------------------------------------------------------------------
  // Inserts a data input before the control inputs.
  void AddInput(Node* node, TensorRef input, bool spells_zero = false);
  void AddControlInput(Node* node, Node* producer);  // Ignores duplicates and self-references.
  // REQUIRES: does not turn a data input into a control input or vice versa.
  void SetInput(Node* node, int index, TensorRef input);
  // The remaining inputs keep their order, with one exception: if the node has more than 64 control inputs, the last
  // one replaces the removed one, so that the cost does not depend on their number.
  void RemoveInput(Node* node, int index);
  void ClearInputs(Node* node);
  // Redirects every data use of `from` (this port only) to `to`.
  void ReplaceUses(TensorRef from, TensorRef to);
  // Redirects every control use of `from` to `to`. Drops duplicates and self-references that result.
  void ReplaceControlUses(Node* from, Node* to);
  // Returns the uses of one port in a reproducible order (by consumer id, then by input index). O(uses log uses).
  std::vector<Use> UsesOf(TensorRef ref) const;
  bool HasDataUses(TensorRef ref) const;

  // --- Interface ---------------------------------------------------------------------------------------------------
  // Declares the inputs and outputs of the graph. Names may carry a port. Returns InvalidArgument, with the nearest
  // names, for an output that does not exist.
  absl::Status DeclareInterface(absl::Span<const std::string> inputs, absl::Span<const std::string> outputs);
  const std::vector<Endpoint>& inputs() const { return declared_inputs_; }
  const std::vector<Endpoint>& outputs() const { return declared_outputs_; }
  bool IsInput(const Node* node) const;
  bool IsOutput(const Node* node) const;
  // True if IsInput or IsOutput: the node's name is part of the interface.
  bool IsEndpoint(const Node* node) const { return IsInput(node) || IsOutput(node); }

  // --- Lineage: see graph/lineage.h --------------------------------------------------------------------------------
  // Starts to record the origins of nodes. Every present node becomes its own origin; earlier records are dropped.
  void RecordLineage();
  // Null if lineage is not recorded.
  const Lineage* lineage() const { return lineage_.get(); }
  Lineage* lineage() { return lineage_.get(); }
  // Adds all origins of `from` to those of `to`. `from` may be removed afterwards. O(1).
  void AddOrigins(const Node* to, const Node* from);

  // --- Fields other than nodes ------------------------------------------------------------------------------------
  // GraphDef.library, GraphDef.versions and all remaining fields in wire format, tags included, unchanged since
  // loading.
  absl::string_view library() const { return library_; }
  absl::string_view versions() const { return versions_; }
  absl::string_view extra_fields() const { return extra_fields_; }
  void set_library(absl::string_view bytes) { library_ = Intern(bytes); }
  void set_versions(absl::string_view bytes) { versions_ = Intern(bytes); }
  void set_extra_fields(absl::string_view bytes) { extra_fields_ = Intern(bytes); }

  // Keeps `owner` alive as long as the graph, because names and attributes may point into its memory.
  void Retain(Owner owner) { owners_.push_back(std::move(owner)); }

  // Returns an owner of all memory that the graph's present names, attributes and library point into. Views of them
  // stay valid as long as it exists, even after the graph is destroyed.
  Owner Memory() const;

  // Same as AddNode, for readers: `name` and `device` are views into memory of a retained owner and are not copied.
  absl::StatusOr<Node*> AddNodeView(absl::string_view name, Op op, absl::string_view device);
  // Appends an attribute, for readers, without checking for duplicates. `key` is a view into memory of a retained
  // owner.
  void AppendAttrView(Node* node, absl::string_view key, AttrValue value);
  // Reserves space for `count` attributes, for readers.
  void ReserveAttrs(Node* node, size_t count) { node->attrs_.reserve(count); }
  void SetExtraFieldsView(Node* node, absl::string_view bytes) { node->extra_fields_ = bytes; }
  void SetSurroundingsView(absl::string_view library, absl::string_view versions, absl::string_view extra_fields);
  void Reserve(size_t nodes);

  // Returns a copy of `text` that lives as long as the graph. Equal texts share one copy.
  absl::string_view Intern(absl::string_view text);

 private:
  void Link(Node* node, Node* position);
  void Unlink(Node* node);
  void AttachUse(Node* node, uint32_t index);
  void DetachUse(Node* node, uint32_t index);
  void Discard(Node* node);

  // Nodes by id, in blocks whose addresses never change.
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
  // Texts that edits created. A clone shares the texts of its origin, because it holds only views of them.
  struct Texts {
    std::deque<std::string> texts;
    absl::flat_hash_set<absl::string_view> index;
  };
  std::shared_ptr<Texts> texts_ = std::make_shared<Texts>();
  mutable absl::flat_hash_map<std::string, int> next_suffix_;  // By base name: the next suffix that UniqueName tries.
  std::unique_ptr<Lineage> lineage_;
};

// --- Typed access to attributes
// --------------------------------------------------------------------------------------- The functions return the
// decoded attribute, or the default of the op's schema if the node lacks it. They return NotFound if there is no
// default either, and InvalidArgument if the value is of another kind. Errors name the node and the attribute.
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
// Returns the value of a Const. Returns FailedPrecondition if the node is not a Const.
absl::StatusOr<Tensor> ConstValue(const Node& node);

}  // namespace permafrost

#endif  // PERMAFROST_GRAPH_GRAPH_H_
