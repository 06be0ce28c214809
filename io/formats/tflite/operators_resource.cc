// Operators on resource variables and hash tables, and the call of initialisers.
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "io/formats/tflite/operator_import.h"
#include "io/formats/tflite/subgraph_import.h"

namespace permafrost {
namespace {

using tflite::BuiltinOperator;

std::string TextOf(const flatbuffers::String* text) {
  return text == nullptr ? std::string() : std::string(text->c_str(), text->size());
}

Results VarHandle(OperatorImport* op) {
  const auto* options = op->op().builtin_options_as<tflite::VarHandleOptions>();
  if (options == nullptr) return absl::InvalidArgumentError("has no options");
  PF_ASSIGN_OR_RETURN(Node * handle,
                      op->subgraph().HandleOf(TextOf(options->container()), TextOf(options->shared_name()),
                                              op->subgraph().model().VariableOf(*options)));
  return std::vector<TensorRef>{{handle, 0}};
}

absl::StatusOr<TensorRef> Resource(OperatorImport* op) {
  PF_ASSIGN_OR_RETURN(const TensorRef handle, op->Input(0));
  PF_ASSIGN_OR_RETURN(const DType dtype, op->TypeOf(handle));
  if (dtype == DType::kResource) return handle;
  return absl::InvalidArgumentError(absl::StrCat("operand 0 is ", DTypeName(dtype), ", expected a resource"));
}

Results ReadVariable(OperatorImport* op) {
  PF_ASSIGN_OR_RETURN(const TensorRef handle, Resource(op));
  PF_ASSIGN_OR_RETURN(Node * node,
                      op->Add(ops::kReadVariableOp, {handle}, {{"dtype", AttrValue::Type(op->OutputType(0))}}));
  op->subgraph().Order(node, handle.node, false);
  return std::vector<TensorRef>{{node, 0}};
}

// In an initialiser the assignment gives the variable its initial value.
Results AssignVariable(OperatorImport* op) {
  PF_ASSIGN_OR_RETURN(const TensorRef handle, Resource(op));
  PF_ASSIGN_OR_RETURN(const TensorRef value, op->Input(1));
  SubgraphImport& subgraph = op->subgraph();
  if (subgraph.role() == SubgraphRole::kInitializer && handle.node->op() == ops::kVarHandleOp) {
    PF_ASSIGN_OR_RETURN(Node * node, subgraph.model().AddInitializer(handle.node, value));
    subgraph.Order(node, handle.node, true);
    return std::vector<TensorRef>();
  }
  PF_ASSIGN_OR_RETURN(Node * node, op->Add(ops::kAssignVariableOp, {handle, value}));
  subgraph.Order(node, handle.node, true);
  return std::vector<TensorRef>();
}

Results CallOnce(OperatorImport* op) {
  const auto* options = op->op().builtin_options_as<tflite::CallOnceOptions>();
  if (options == nullptr) return absl::InvalidArgumentError("has no options");
  PF_RETURN_IF_ERROR(op->subgraph().model().CallOnce(options->init_subgraph_index()));
  return std::vector<TensorRef>();
}

Results HashTable(OperatorImport* op) {
  const auto* options = op->op().builtin_options_as<tflite::HashtableOptions>();
  if (options == nullptr) return absl::InvalidArgumentError("has no options");
  PF_ASSIGN_OR_RETURN(Node * table, op->subgraph().TableOf(*options));
  return std::vector<TensorRef>{{table, 0}};
}

Results HashTableImport(OperatorImport* op) {
  PF_ASSIGN_OR_RETURN(const TensorRef table, Resource(op));
  PF_ASSIGN_OR_RETURN(const TensorRef keys, op->Input(1));
  PF_ASSIGN_OR_RETURN(const TensorRef values, op->Input(2));
  PF_ASSIGN_OR_RETURN(Node * node, op->Add(ops::kLookupTableImportV2, {table, keys, values}));
  op->subgraph().Order(node, table.node, true);
  return std::vector<TensorRef>();
}

Results HashTableFind(OperatorImport* op) {
  PF_ASSIGN_OR_RETURN(const TensorRef table, Resource(op));
  PF_ASSIGN_OR_RETURN(const TensorRef keys, op->Input(1));
  PF_ASSIGN_OR_RETURN(const TensorRef missing, op->Input(2));
  PF_ASSIGN_OR_RETURN(Node * node, op->Add(ops::kLookupTableFindV2, {table, keys, missing}));
  op->subgraph().Order(node, table.node, false);
  return std::vector<TensorRef>{{node, 0}};
}

Results HashTableSize(OperatorImport* op) {
  PF_ASSIGN_OR_RETURN(const TensorRef table, Resource(op));
  PF_ASSIGN_OR_RETURN(Node * node, op->Add(ops::kLookupTableSizeV2, {table}));
  op->subgraph().Order(node, table.node, false);
  // A vector of one element.
  PF_ASSIGN_OR_RETURN(const TensorRef axis, op->Const(Tensor::Scalar<int32_t>(0)));
  PF_ASSIGN_OR_RETURN(const TensorRef size, op->Emit(ops::kExpandDims, {TensorRef{node, 0}, axis}));
  return std::vector<TensorRef>{size};
}

constexpr absl::string_view kVariableTypes = "@1 float double bool uint8 int8 int32 int64 complex64 complex128";
constexpr absl::string_view kVariableCodes = "uint8 int8 int16";

constexpr OperatorRow kRows[] = {
    {BuiltinOperator::VAR_HANDLE, 0, 1, VarHandle, Codes::kMoved,
     Form({ops::kVarHandleOp}, kPlain, ExportVarHandle, "", "2.6")},
    {BuiltinOperator::READ_VARIABLE, 1, 1, ReadVariable, Codes::kMoved,
     Form({ops::kReadVariableOp}, kPlain, ExportReadVariable, "", "2.6", kVariableCodes)},
    {BuiltinOperator::ASSIGN_VARIABLE, 2, 0, AssignVariable, Codes::kMoved,
     Form({ops::kAssignVariableOp}, kPlain, ExportAssignVariable, kVariableTypes, "2.6", kVariableCodes)},
    {BuiltinOperator::CALL_ONCE, 0, 0, CallOnce, Codes::kMoved},
    {BuiltinOperator::HASHTABLE, 0, 1, HashTable, Codes::kRefused,
     Form({ops::kHashTableV2}, kPlain, ExportHashTable, "", "2.5")},
    {BuiltinOperator::HASHTABLE_IMPORT, 3, 0, HashTableImport, Codes::kRefused,
     Form({ops::kLookupTableImportV2, ops::kInitializeTableV2}, kPlain, ExportHashTableImport, "", "2.5")},
    {BuiltinOperator::HASHTABLE_FIND, 3, 1, HashTableFind, Codes::kRefused,
     Form({ops::kLookupTableFindV2}, kPlain, ExportHashTableFind, "", "2.5")},
    {BuiltinOperator::HASHTABLE_SIZE, 1, 1, HashTableSize, Codes::kRefused,
     Form({ops::kLookupTableSizeV2}, kPlain, ExportHashTableSize, "", "2.5")},
};

}  // namespace

absl::Span<const OperatorRow> ResourceOperators() { return kRows; }

}  // namespace permafrost
