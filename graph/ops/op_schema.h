// What is known of an op: its inputs, outputs, attributes with defaults, traits and shape function.
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
  kPure = 0,                // The outputs depend on inputs and attributes alone.
  kStateful = 1 << 0,       // Has state, is fed, or must run even if nobody reads it: never folded, never merged.
  kControlFlow = 1 << 1,    // Switch, Merge, Enter, Exit, NextIteration, LoopCond and the like.
  kRandom = 1 << 2,         // Differs from run to run.
  kHasSideEffect = 1 << 3,  // Prints, asserts, writes.
};

struct ArgSpec {
  std::string name;
  std::string type_attr;  // The attribute that holds the type; empty when `type` is fixed.
  DType type = DType::kInvalid;
  std::string number_attr;    // The attribute that holds how many there are; empty for one.
  bool is_type_list = false;  // type_attr is a list of types, one for each.
};

struct AttrSpec {
  std::string name;
  AttrValue::Kind kind = AttrValue::Kind::kNone;
  bool is_list = false;
  bool has_default = false;
  AttrValue default_value;
  std::vector<DType> allowed_types;  // Empty: all.
};

struct OpSchema {
  Op op;
  std::vector<ArgSpec> inputs;
  std::vector<ArgSpec> outputs;
  std::vector<AttrSpec> attrs;
  int fixed_inputs = 0;   // How many data inputs a node has; -1 where its attributes say.
  int fixed_outputs = 0;  // The same of outputs.
  uint32_t traits = kPure;
  absl::Status (*shape_function)(ShapeContext*) = nullptr;

  const AttrSpec* FindAttr(absl::string_view name) const;
  bool Is(uint32_t trait) const { return (traits & trait) != 0; }
};

// Null for an op outside the table. The table is built once, on first use; thread-safe.
const OpSchema* FindSchema(Op op);

// The default of an attribute, or null when the op is unknown or the attribute has none.
const AttrValue* DefaultAttr(Op op, absl::string_view attr);

// The types of all data inputs or outputs, resolved from the node's attributes. NotFound for an op outside the table;
// InvalidArgument (node, attribute) when an attribute is missing or of the wrong kind, or asks for more than 2^16 of
// them.
absl::StatusOr<std::vector<DType>> InputTypes(const Node& node);
absl::StatusOr<std::vector<DType>> OutputTypes(const Node& node);

// The same for arguments that the caller has from elsewhere (a function's signature); the attributes are the node's.
absl::StatusOr<int64_t> ResolveCount(const Node& node, const ArgSpec& arg);
absl::StatusOr<std::vector<DType>> ResolveTypes(const Node& node, const std::vector<ArgSpec>& args);

// How many data inputs or outputs the schema and the attributes ask for, without resolving types. Same errors.
absl::StatusOr<int> NumInputs(const Node& node);
absl::StatusOr<int> NumOutputs(const Node& node);

}  // namespace permafrost

#endif  // PERMAFROST_GRAPH_OPS_OP_SCHEMA_H_
