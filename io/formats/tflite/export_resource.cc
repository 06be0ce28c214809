// Writes operators on variables and tables.
#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "io/formats/tflite/operator_export.h"

namespace permafrost {
namespace {

// The number of a table, by which all subgraphs refer to it: the 31 low bits of FNV-1a of its name.
int32_t TableNumber(absl::string_view name) {
  constexpr uint64_t kBasis = 14695981039346656037u, kPrime = 1099511628211u;
  uint64_t hash = kBasis;
  for (const char c : name) hash = (hash ^ static_cast<uint8_t>(c)) * kPrime;
  return static_cast<int32_t>(hash & 0x7fffffff);
}

// LiteRT's tables map strings to int64 and back.
absl::Status RequireTableTypes(DType key, DType value) {
  if (key == DType::kString && value == DType::kInt64) return absl::OkStatus();
  if (key == DType::kInt64 && value == DType::kString) return absl::OkStatus();
  return absl::UnimplementedError(
      absl::StrCat("maps ", DTypeName(key), " to ", DTypeName(value), ", expected string to int64 or int64 to string"));
}

}  // namespace

absl::Status ExportVarHandle(OperatorExport* op) {
  op->UseResource();
  std::string name = StringAttr(op->node(), "shared_name").value_or("");
  if (name.empty()) name = std::string(op->node().name());
  const std::string container = StringAttr(op->node(), "container").value_or("");
  op->SetOptions(tflite::CreateVarHandleOptions(op->builder(), op->builder().CreateString(container),
                                                op->builder().CreateString(name)));
  return absl::OkStatus();
}

absl::Status ExportReadVariable(OperatorExport* op) {
  op->AddOperand(op->input(0));
  op->SetOptions(tflite::CreateReadVariableOptions(op->builder()));
  return absl::OkStatus();
}

absl::Status ExportAssignVariable(OperatorExport* op) {
  op->AddOperand(op->input(0));
  op->AddOperand(op->input(1));
  op->SetOptions(tflite::CreateAssignVariableOptions(op->builder()));
  return absl::OkStatus();
}

absl::Status ExportHashTable(OperatorExport* op) {
  PF_ASSIGN_OR_RETURN(const DType key, TypeAttr(op->node(), "key_dtype"));
  PF_ASSIGN_OR_RETURN(const DType value, TypeAttr(op->node(), "value_dtype"));
  PF_RETURN_IF_ERROR(RequireTableTypes(key, value));
  PF_ASSIGN_OR_RETURN(const tflite::TensorType key_type, TfliteTypeOf(key));
  PF_ASSIGN_OR_RETURN(const tflite::TensorType value_type, TfliteTypeOf(value));
  op->SetOptions(tflite::CreateHashtableOptions(op->builder(), TableNumber(op->UseResource()), key_type, value_type));
  return absl::OkStatus();
}

absl::Status ExportHashTableImport(OperatorExport* op) {
  for (int i = 0; i < 3; ++i) op->AddOperand(op->input(i));
  op->SetOptions(tflite::CreateHashtableImportOptions(op->builder()));
  return absl::OkStatus();
}

absl::Status ExportHashTableFind(OperatorExport* op) {
  for (int i = 0; i < 3; ++i) op->AddOperand(op->input(i));
  op->SetOptions(tflite::CreateHashtableFindOptions(op->builder()));
  return absl::OkStatus();
}

absl::Status ExportHashTableSize(OperatorExport* op) {
  op->AddOperand(op->input(0));
  op->SetInnerShape(Shape({1}));
  op->SetOptions(tflite::CreateHashtableSizeOptions(op->builder()));
  return absl::OkStatus();
}

}  // namespace permafrost
