// Op schemas: inputs, outputs, attributes with defaults, traits and shape function of an op.
#ifndef PERMAFROST_GRAPH_OPS_OP_SCHEMA_H_
#define PERMAFROST_GRAPH_OPS_OP_SCHEMA_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "graph/graph.h"

namespace permafrost {

class ShapeContext;  // graph/shapes/shape_inference.h

// Traits, combined with |.
enum OpTraits : uint32_t {
  kPure = 0,                // The outputs depend only on inputs and attributes.
  kStateful = 1 << 0,       // Has state, is fed, or must run even without consumers; never folded, never merged.
  kControlFlow = 1 << 1,    // Switch, Merge, Enter, Exit, NextIteration, LoopCond and the like.
  kRandom = 1 << 2,         // Results differ from run to run.
  kHasSideEffect = 1 << 3,  // Prints, asserts, writes.
};

struct ArgSpec {
  std::string name;
  std::string type_attr;  // The attribute that holds the type; empty when `type` is fixed.
  DType type = DType::kInvalid;
  std::string number_attr;    // The attribute that holds the number of tensors; empty for a single tensor.
  bool is_type_list = false;  // type_attr is a list of types, one for each tensor.
};

struct AttrSpec {
  std::string name;
  AttrValue::Kind kind = AttrValue::Kind::kNone;
  bool is_list = false;
  bool has_default = false;
  AttrValue default_value;
  std::vector<DType> allowed_types;  // Empty: all types.
};

// A type attribute that another one determines.
struct TypeRelation {
  std::string attr;
  std::string other;
  bool is_complex_of = false;  // `attr` is the complex type with parts of the type `other`; else both are the same.
};

struct OpSchema {
  Op op;
  std::vector<ArgSpec> inputs;
  std::vector<ArgSpec> outputs;
  std::vector<AttrSpec> attrs;
  std::vector<TypeRelation> type_relations;
  int fixed_inputs = 0;   // Number of data inputs; -1 if it depends on attributes.
  int fixed_outputs = 0;  // Number of outputs; -1 if it depends on attributes.
  uint32_t traits = kPure;
  absl::Status (*shape_function)(ShapeContext*) = nullptr;

  const AttrSpec* FindAttr(absl::string_view name) const;
  bool Is(uint32_t trait) const { return (traits & trait) != 0; }
};

// Returns null for an op outside the table. Each schema is built on first use. Thread-safe.
const OpSchema* FindSchema(Op op);

// Returns the default of an attribute, or null if the op is unknown or the attribute has none.
const AttrValue* DefaultAttr(Op op, absl::string_view attr);

// Return the types of all data inputs or outputs, resolved from the node's attributes. They return NotFound for an op
// outside the table, and InvalidArgument, with node and attribute, if an attribute is missing, has the wrong kind, or
// specifies more than 2^16 tensors.
absl::StatusOr<std::vector<DType>> InputTypes(const Node& node);
absl::StatusOr<std::vector<DType>> OutputTypes(const Node& node);

// Returns InvalidArgument (node, both attributes) if type attributes of the node contradict a relation in the schema of
// its op; every type of a list counts. Returns OK for an unknown op and for attributes that are missing or hold no
// types: InputTypes and OutputTypes report those.
absl::Status CheckTypeRelations(const Node& node);

// Same, for arguments from elsewhere, such as a function's signature. Attributes are those of the node.
absl::StatusOr<int64_t> ResolveCount(const Node& node, const ArgSpec& arg);
absl::StatusOr<std::vector<DType>> ResolveTypes(const Node& node, const std::vector<ArgSpec>& args);

// Return the number of data inputs or outputs according to schema and attributes, without resolving types. Same errors.
absl::StatusOr<int> NumInputs(const Node& node);
absl::StatusOr<int> NumOutputs(const Node& node);

}  // namespace permafrost

#endif  // PERMAFROST_GRAPH_OPS_OP_SCHEMA_H_
