// The function library of a graph: what its functions look like, their bodies as graphs, and how they call each other.
//
//   PF_ASSIGN_OR_RETURN(FunctionLibrary library, FunctionLibrary::Of(graph));
//   PF_ASSIGN_OR_RETURN(FunctionRef call, node.FindAttr("f")->AsFunction());
//   PF_ASSIGN_OR_RETURN(std::unique_ptr<Graph> body, library.Instantiate(call));
//   // ... edit *body ...
//   PF_RETURN_IF_ERROR(library.SetBody(call.name, *body));
//   library.Store(&graph);
//
// A body is an ordinary Graph with this convention:
//   - inputs():  one node _Arg (attributes T, index) for each tensor that the function takes, in order;
//   - outputs(): one node _Retval (T, index; data input 0 is the value) for each tensor that it gives, in order, then
//                the control outputs: nodes of any other op that must have run when the call is over.
// Attributes of a node have the values that the caller gives; inputs are ports. What the signature says of an argument
// beyond its type (arg_attr, resource_arg_unique_id) is on its _Arg.
#ifndef PERMAFROST_GRAPH_FUNCTIONS_FUNCTION_H_
#define PERMAFROST_GRAPH_FUNCTIONS_FUNCTION_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "graph/graph.h"
#include "graph/ops/op_schema.h"

namespace permafrost {

// The signature of a function, as an op has one.
struct FunctionSignature {
  std::string name;
  std::vector<ArgSpec> inputs;
  std::vector<ArgSpec> outputs;
  std::vector<AttrSpec> attrs;
  std::vector<std::string> control_outputs;
  bool is_stateful = false;

  const AttrSpec* FindAttr(absl::string_view name) const;
};

// A FunctionDef without its nodes, which are read when somebody instantiates the function. Views the library's bytes.
class Function {
 public:
  absl::string_view name() const { return signature_.name; }
  const FunctionSignature& signature() const { return signature_; }
  // Attributes of the definition (`_noinline`, `api_implements`, `_input_shapes`), not of a caller.
  absl::Span<const Attr> attrs() const { return attrs_; }
  const AttrValue* FindAttr(absl::string_view key) const;
  // By output name, what it reads ("n:out:0", "arg"); by control output name, the node.
  using Entries = std::vector<std::pair<absl::string_view, absl::string_view>>;
  const Entries& returns() const { return returns_; }
  const Entries& control_returns() const { return control_returns_; }
  size_t num_nodes() const { return num_nodes_; }
  // The FunctionDef in wire form.
  absl::string_view encoded() const { return encoded_; }

 private:
  friend class FunctionLibrary;
  friend class BodyReader;

  static absl::StatusOr<std::unique_ptr<Function>> Parse(absl::string_view encoded, Owner owner);
  absl::Status ParseSignature(absl::string_view encoded);

  Owner owner_;
  absl::string_view encoded_;
  FunctionSignature signature_;
  std::vector<Attr> attrs_;
  Entries returns_, control_returns_;
  std::vector<std::pair<uint64_t, absl::string_view>> arg_attrs_;       // By argument; ArgAttrs in wire form.
  std::vector<std::pair<uint64_t, uint64_t>> resource_arg_unique_ids_;  // By argument.
  size_t num_nodes_ = 0;
};

// Lossless: what is not edited is stored as it was read. Outlives the graph that it is made from. Const methods are
// thread-safe.
class FunctionLibrary {
 public:
  FunctionLibrary() = default;

  // DataLoss for malformed bytes; InvalidArgument (function) for a function without a name, and for two that differ
  // under one name. O(bytes of the library), nodes are not decoded.
  static absl::StatusOr<FunctionLibrary> Of(const Graph& graph);

  // Null when there is no such function. Valid until the function is changed or removed.
  const Function* Find(absl::string_view name) const;
  // InvalidArgument with the nearest names when there is none.
  absl::StatusOr<const Function*> Require(absl::string_view name) const;
  // In the order of the file.
  std::vector<const Function*> functions() const;
  size_t size() const { return by_name_.size(); }
  bool empty() const { return by_name_.empty(); }
  // The gradient function that the library declares for a function; empty when there is none.
  absl::string_view GradientOf(absl::string_view name) const;

  // The body of the called function (see the top of this file), a graph that shares nothing with others but bytes that
  // never change. One level: calls inside it stay calls. InvalidArgument names the function and the node: no such
  // function, an attribute that the signature asks for is missing, a reference names no output, two nodes or arguments
  // have one name. FailedPrecondition when a node reads outputs of an op that neither table nor library knows.
  // ResourceExhausted when values of attributes or references to whole lists would make more than a bounded amount of a
  // small file. O(bytes of the function + nodes + edges).
  absl::StatusOr<std::unique_ptr<Graph>> Instantiate(const FunctionRef& call) const;

  // The types that a call takes or gives. Same errors.
  absl::StatusOr<std::vector<DType>> InputTypes(const FunctionRef& call) const;
  absl::StatusOr<std::vector<DType>> OutputTypes(const FunctionRef& call) const;

  // Writes an edited body back: as many _Arg, _Retval and control outputs as the signature has, in order. The signature
  // and all else stay as they are. FailedPrecondition for a signature with attributes, or with an output that is a
  // list: a body is one of their cases; and for nodes whose ports have no names, since their op is not known.
  absl::Status SetBody(absl::string_view name, const Graph& body);
  // Keeps the functions that are in `keep`, and the gradients among them. Returns how many went.
  size_t Retain(const absl::flat_hash_set<absl::string_view>& keep);

  // GraphDef.library with its tag, as Graph keeps it.
  std::string Encode() const;
  // Puts the library into `graph`, unless nothing was changed since Of.
  void Store(Graph* graph) const;

  // The functions that nodes of `graph` name, in attributes or as their op, whether the library has them or not;
  // sorted.
  std::vector<std::string> CalledBy(const Graph& graph) const;
  // The functions that the body of `function` names and this library has; sorted. Same errors as Instantiate.
  absl::StatusOr<std::vector<const Function*>> Callees(const Function& function) const;
  // `roots` and everything that they may call, callees before callers. InvalidArgument for functions that call each
  // other in a circle: "function 'f' calls itself (f -> g -> f)". Names that the library does not have are left out.
  absl::StatusOr<std::vector<const Function*>> CallOrder(const std::vector<std::string>& roots) const;
  // The same set, where circles do no harm.
  absl::StatusOr<absl::flat_hash_set<absl::string_view>> Reachable(const std::vector<std::string>& roots) const;

 private:
  // A field of the library, in order: a function, or anything else.
  struct Part {
    absl::string_view whole;             // Empty for a function that was changed.
    std::unique_ptr<Function> function;  // Null for anything else.
    uint32_t number = 0;                 // The field's number.
  };

  absl::Status Add(const WireField& field);
  absl::Status Index(size_t part);
  void IndexAll();
  void DropDuplicates();

  std::vector<Part> parts_;
  absl::flat_hash_map<absl::string_view, size_t> by_name_;  // Index into parts_.
  absl::flat_hash_map<absl::string_view, absl::string_view> gradients_;
  size_t num_functions_ = 0;  // Duplicates included.
  absl::string_view original_;
  Owner owner_;
  bool is_changed_ = false;
};

// The nodes of a body by role (see the top of this file).
std::vector<Node*> ArgsOf(const Graph& body);
std::vector<Node*> RetvalsOf(const Graph& body);
std::vector<Node*> ControlOutputsOf(const Graph& body);

}  // namespace permafrost

#endif  // PERMAFROST_GRAPH_FUNCTIONS_FUNCTION_H_
