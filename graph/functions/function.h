// The function library of a graph: signatures, bodies as graphs, and the call relation.
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
//   - outputs(): one node _Retval (T, index; data input 0 is the value) for each tensor that it returns, in order,
//                followed by the control outputs: nodes of any other op that must run before the call completes.
// Attributes of nodes have the values passed by the caller, and inputs refer to ports. Attributes of an argument other
// than its type (arg_attr, resource_arg_unique_id) are on its _Arg.
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

// The signature of a function, in the form of an op's signature.
struct FunctionSignature {
  std::string name;
  std::vector<ArgSpec> inputs;
  std::vector<ArgSpec> outputs;
  std::vector<AttrSpec> attrs;
  std::vector<std::string> control_outputs;
  bool is_stateful = false;

  const AttrSpec* FindAttr(absl::string_view name) const;
};

// A FunctionDef whose nodes are not decoded before the function is instantiated. Views the library's bytes.
class Function {
 public:
  absl::string_view name() const { return signature_.name; }
  const FunctionSignature& signature() const { return signature_; }
  // Attributes of the definition (`_noinline`, `api_implements`, `_input_shapes`), not of a call.
  absl::Span<const Attr> attrs() const { return attrs_; }
  const AttrValue* FindAttr(absl::string_view key) const;
  // For each output name, the reference that it returns ("n:out:0", "arg"). For each control output name, the node.
  using Entries = std::vector<std::pair<absl::string_view, absl::string_view>>;
  const Entries& returns() const { return returns_; }
  const Entries& control_returns() const { return control_returns_; }
  size_t num_nodes() const { return num_nodes_; }
  // The FunctionDef in wire format.
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

// The functions of a graph. Lossless: parts that are not edited are stored as they were read. May outlive the graph
// that it is made from. Const methods are thread-safe.
class FunctionLibrary {
 public:
  FunctionLibrary() = default;

  // Reads the library of `graph`. Returns DataLoss for malformed bytes. Returns InvalidArgument, with the function, for
  // a function without a name and for two different functions with the same name. O(bytes of the library); nodes are
  // not decoded.
  static absl::StatusOr<FunctionLibrary> Of(const Graph& graph);

  // Returns null if there is no such function. The pointer is valid until the function is edited or removed.
  const Function* Find(absl::string_view name) const;
  // Returns InvalidArgument, with the nearest names, if there is no such function.
  absl::StatusOr<const Function*> Require(absl::string_view name) const;
  // All functions, in file order.
  std::vector<const Function*> functions() const;
  size_t size() const { return by_name_.size(); }
  bool empty() const { return by_name_.empty(); }
  // Returns the gradient function that the library declares for `name`; empty if there is none.
  absl::string_view GradientOf(absl::string_view name) const;

  // Returns the body of the called function (see the top of this file). The graph shares only immutable bytes with
  // other graphs. Expands one level: calls in the body remain calls. O(bytes of the function + nodes + edges). Errors:
  //   - InvalidArgument, with function and node: there is no such function, an attribute of the signature is missing, a
  //   reference names no output, two nodes or arguments have the same name.
  //   - FailedPrecondition: a node reads outputs of an op that neither the op table nor the library has.
  //   - ResourceExhausted: attribute values or references to whole lists expand to more than a fixed limit.
  absl::StatusOr<std::unique_ptr<Graph>> Instantiate(const FunctionRef& call) const;
  // As Instantiate, but accepts outputs of unknown ops, whose port numbers are not known. They are numbered in the
  // order in which the body reads them, and the attribute `_output_names` of the node holds their names for SetBody.
  // Such a body may be edited and stored again. It must not be run or copied into another graph.
  absl::StatusOr<std::unique_ptr<Graph>> InstantiateToEdit(const FunctionRef& call) const;

  // Returns the types of the inputs or outputs of a call. Same errors as Instantiate.
  absl::StatusOr<std::vector<DType>> InputTypes(const FunctionRef& call) const;
  absl::StatusOr<std::vector<DType>> OutputTypes(const FunctionRef& call) const;

  // Writes an edited body back. The body must have the same number of _Arg, _Retval and control outputs as the
  // signature, in order; everything else in the definition is unchanged. Returns FailedPrecondition if the signature
  // has attributes or a list output, since a body is then only one of its instances, and for nodes with an unknown op,
  // whose ports have no names.
  absl::Status SetBody(absl::string_view name, const Graph& body);
  // Removes all functions and gradients that are not in `keep`. Returns the number removed.
  size_t Retain(const absl::flat_hash_set<absl::string_view>& keep);

  // Encodes GraphDef.library with its tag, in the form that Graph stores.
  std::string Encode() const;
  // Stores the library in `graph`, unless it is unchanged since Of.
  void Store(Graph* graph) const;

  // Returns the sorted names of all functions that nodes of `graph` refer to, in attributes or as their op, whether or
  // not the library has them.
  std::vector<std::string> CalledBy(const Graph& graph) const;
  // Returns the functions of this library that the body of `function` names, sorted. Same errors as Instantiate.
  absl::StatusOr<std::vector<const Function*>> Callees(const Function& function) const;
  // Returns `roots` and all functions that they may call, callees before callers. Names that the library does not have
  // are omitted. Returns InvalidArgument for recursive functions: "function 'f' calls itself (f -> g -> f)".
  absl::StatusOr<std::vector<const Function*>> CallOrder(const std::vector<std::string>& roots) const;
  // Returns the same set; recursive functions are not an error.
  absl::StatusOr<absl::flat_hash_set<absl::string_view>> Reachable(const std::vector<std::string>& roots) const;

 private:
  // A field of the library: a function or any other field.
  struct Part {
    absl::string_view whole;             // Empty for an edited function.
    std::unique_ptr<Function> function;  // Null for any other field.
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

// Return the nodes of a body by role (see the top of this file).
std::vector<Node*> ArgsOf(const Graph& body);
std::vector<Node*> RetvalsOf(const Graph& body);
std::vector<Node*> ControlOutputsOf(const Graph& body);

}  // namespace permafrost

#endif  // PERMAFROST_GRAPH_FUNCTIONS_FUNCTION_H_
