// Tables that map keys to values and live as long as the session.
#include <cstring>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "runtime_check/kernels/element_store.h"
#include "runtime_check/kernels/prepare.h"

namespace permafrost {
namespace {

struct LookupTable : RuntimeObject {
  static constexpr absl::string_view kKind = "lookup table";
  absl::string_view kind() const override { return kKind; }

  DType key_type = DType::kInvalid;
  DType value_type = DType::kInvalid;
  bool is_mutable = false;
  bool is_initialized = false;
  const Node* filled_by = nullptr;  // Set if it is filled with constants, which are the same in each run.
  // Types other than string are stored as the bytes of one element.
  absl::flat_hash_map<std::string, std::string> entries;
  std::vector<Reservation> reservations;
};
using TableRef = std::shared_ptr<LookupTable>;

std::string ElementAt(const Value& value, int64_t i) {
  if (value.strings != nullptr) return (*value.strings)[static_cast<size_t>(i)];
  const size_t size = SizeOf(value.dtype);
  return std::string(value.data + static_cast<size_t>(i) * size, size);
}

void SetElement(Value* value, int64_t i, const std::string& element) {
  if (value->strings != nullptr) {
    (*value->strings)[static_cast<size_t>(i)] = element;
  } else {
    std::memcpy(value->data + static_cast<size_t>(i) * SizeOf(value->dtype), element.data(), element.size());
  }
}

// Tables with the same name are one table.
absl::StatusOr<std::string> NameOf(const Node& node) {
  PF_ASSIGN_OR_RETURN(const std::string container, StringAttr(node, "container"));
  PF_ASSIGN_OR_RETURN(const std::string shared_name, StringAttr(node, "shared_name"));
  return absl::StrCat("table/", container, "/", shared_name.empty() ? std::string(node.name()) : shared_name);
}

absl::Status PrepareTable(PrepareContext* context) {
  context->SetOutputShape(0, context->output_type(0) == DType::kString ? Shape({1}) : Shape());
  return absl::OkStatus();
}

absl::Status ComputeTable(ComputeContext* context) {
  const Node& node = context->node();
  PF_ASSIGN_OR_RETURN(const std::string name, NameOf(node));
  PF_ASSIGN_OR_RETURN(const DType key_type, TypeAttr(node, "key_dtype"));
  PF_ASSIGN_OR_RETURN(const DType value_type, TypeAttr(node, "value_dtype"));
  ObjectRef object = context->resources()->Find(name);
  if (object == nullptr) {
    auto table = std::make_shared<LookupTable>();
    table->key_type = key_type;
    table->value_type = value_type;
    table->is_mutable = node.op() == ops::kMutableHashTable || node.op() == ops::kMutableHashTableV2;
    table->is_initialized = table->is_mutable;
    object = table;
    context->resources()->Add(name, object);
  }
  PF_ASSIGN_OR_RETURN(const TableRef table, ObjectAs<LookupTable>(object));
  if (table->key_type != key_type || table->value_type != value_type) {
    return absl::InvalidArgumentError(absl::StrCat("the table of that name is from ", DTypeName(table->key_type),
                                                   " to ", DTypeName(table->value_type)));
  }
  Value& output = context->output_at(0);
  if (output.strings != nullptr) {
    output.strings->front() = name;
  } else {
    output.objects->front() = std::move(object);
  }
  return absl::OkStatus();
}

// Returns the table that input 0 refers to: by handle, or in old graphs by name.
absl::StatusOr<TableRef> InputTable(ComputeContext* context) {
  const Value& handle = context->input_at(0);
  if (handle.strings == nullptr) return ObjectInput<LookupTable>(context, 0);
  if (handle.strings->size() != 1) return absl::InvalidArgumentError("input 0 is no handle of a table");
  return ObjectAs<LookupTable>(context->resources()->Find(handle.strings->front()));
}

absl::Status CheckType(const Value& value, DType expected, absl::string_view role) {
  if (value.dtype == expected) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("the ", role, " are ", DTypeName(value.dtype), ", expected ", DTypeName(expected)));
}

absl::Status Insert(LookupTable* table, const Value& keys, const Value& values, MemoryBudget* budget,
                    bool may_overwrite) {
  PF_RETURN_IF_ERROR(CheckType(keys, table->key_type, "keys"));
  PF_RETURN_IF_ERROR(CheckType(values, table->value_type, "values"));
  if (keys.shape != values.shape) {
    return absl::InvalidArgumentError(
        absl::StrCat("found keys of shape ", keys.shape.ToString(), " and values of shape ", values.shape.ToString()));
  }
  const int64_t count = keys.shape.num_elements();
  int64_t bytes = 0;
  for (int64_t i = 0; i < count; ++i) {
    bytes += static_cast<int64_t>(2 * sizeof(std::string) + ElementAt(keys, i).size() + ElementAt(values, i).size());
  }
  PF_ASSIGN_OR_RETURN(Reservation reservation, Reservation::Take(budget, bytes, "the entries of a table"));
  table->reservations.push_back(std::move(reservation));
  for (int64_t i = 0; i < count; ++i) {
    const auto [found, is_new] = table->entries.emplace(ElementAt(keys, i), ElementAt(values, i));
    if (is_new || found->second == ElementAt(values, i)) continue;
    if (!may_overwrite) return absl::InvalidArgumentError("a key has two values");
    found->second = ElementAt(values, i);
  }
  return absl::OkStatus();
}

absl::Status ComputeInitialize(ComputeContext* context) {
  PF_ASSIGN_OR_RETURN(const TableRef table, InputTable(context));
  const Value& keys = context->input_at(1);
  const Value& values = context->input_at(2);
  const Node& node = context->node();
  if (table->filled_by == &node) return absl::OkStatus();
  if (!table->is_initialized) {
    PF_RETURN_IF_ERROR(Insert(table.get(), keys, values, &context->budget(), /*may_overwrite=*/false));
    table->is_initialized = true;
    const bool is_constant = node.input(1).node->op() == ops::kConst && node.input(2).node->op() == ops::kConst;
    if (is_constant) table->filled_by = &node;
    return absl::OkStatus();
  }
  // A second initialisation with the same entries is allowed.
  LookupTable other;
  other.key_type = table->key_type;
  other.value_type = table->value_type;
  PF_RETURN_IF_ERROR(Insert(&other, keys, values, &context->budget(), /*may_overwrite=*/false));
  if (other.entries == table->entries) return absl::OkStatus();
  return absl::FailedPreconditionError("the table is initialised with other entries");
}

// Import replaces the existing entries, Insert adds to them.
absl::Status ComputeInsert(ComputeContext* context) {
  PF_ASSIGN_OR_RETURN(const TableRef table, InputTable(context));
  const bool replaces = context->node().op() != ops::kLookupTableInsertV2;
  if (!table->is_mutable && !replaces) return absl::FailedPreconditionError("the table cannot be changed");
  if (replaces) {
    table->entries.clear();
    table->reservations.clear();
  }
  PF_RETURN_IF_ERROR(Insert(table.get(), context->input_at(1), context->input_at(2), &context->budget(), true));
  table->is_initialized = true;
  return absl::OkStatus();
}

absl::Status PrepareFind(PrepareContext* context) {
  context->SetOutputShape(0, context->input_shape(1));
  if (context->input_shape(2).CheckedNumElements().value_or(0) == 1) return absl::OkStatus();
  return absl::UnimplementedError(
      absl::StrCat("a default value of shape ", context->input_shape(2).ToString(), "; values are scalars here"));
}

absl::Status ComputeFind(ComputeContext* context) {
  PF_ASSIGN_OR_RETURN(const TableRef table, InputTable(context));
  if (!table->is_initialized) return absl::FailedPreconditionError("the table is not initialised");
  const Value& keys = context->input_at(1);
  PF_RETURN_IF_ERROR(CheckType(keys, table->key_type, "keys"));
  Value& output = context->output_at(0);
  PF_RETURN_IF_ERROR(CheckType(output, table->value_type, "results"));
  const std::string otherwise = ElementAt(context->input_at(2), 0);
  for (int64_t i = 0; i < keys.shape.num_elements(); ++i) {
    const auto found = table->entries.find(ElementAt(keys, i));
    SetElement(&output, i, found == table->entries.end() ? otherwise : found->second);
  }
  return absl::OkStatus();
}

absl::Status PrepareSize(PrepareContext* context) {
  context->SetOutputShape(0, Shape());
  return absl::OkStatus();
}

absl::Status ComputeSize(ComputeContext* context) {
  PF_ASSIGN_OR_RETURN(const TableRef table, InputTable(context));
  if (!table->is_initialized) return absl::FailedPreconditionError("the table is not initialised");
  *context->output<int64_t>(0) = static_cast<int64_t>(table->entries.size());
  return absl::OkStatus();
}

absl::Status PrepareEffect(PrepareContext*) { return absl::OkStatus(); }

Kernel TableKernel() {
  return Kernel("the table with the given name").UsesState().Prepare(PrepareTable).Compute(ComputeTable);
}
Kernel InitializeKernel() {
  return Kernel("nothing; initialises the table with the given entries")
      .UsesState()
      .Prepare(PrepareEffect)
      .Compute(ComputeInitialize);
}
Kernel ImportKernel() {
  return Kernel("nothing; replaces all entries of the table").UsesState().Prepare(PrepareEffect).Compute(ComputeInsert);
}
Kernel FindKernelOf() {
  return Kernel("the values of the keys; the default value for absent keys")
      .UsesState()
      .Prepare(PrepareFind)
      .Compute(ComputeFind);
}
Kernel SizeKernel() {
  return Kernel("the number of entries of the table").UsesState().Prepare(PrepareSize).Compute(ComputeSize);
}

}  // namespace

DEFINE_KERNEL(HashTable) { return TableKernel(); }
DEFINE_KERNEL(HashTableV2) { return TableKernel(); }
DEFINE_KERNEL(MutableHashTable) { return TableKernel(); }
DEFINE_KERNEL(MutableHashTableV2) { return TableKernel(); }
DEFINE_KERNEL(InitializeTable) { return InitializeKernel(); }
DEFINE_KERNEL(InitializeTableV2) { return InitializeKernel(); }
DEFINE_KERNEL(LookupTableImport) { return ImportKernel(); }
DEFINE_KERNEL(LookupTableImportV2) { return ImportKernel(); }
DEFINE_KERNEL(LookupTableInsertV2) {
  return Kernel("nothing; adds entries to the table").UsesState().Prepare(PrepareEffect).Compute(ComputeInsert);
}
DEFINE_KERNEL(LookupTableFind) { return FindKernelOf(); }
DEFINE_KERNEL(LookupTableFindV2) { return FindKernelOf(); }
DEFINE_KERNEL(LookupTableSize) { return SizeKernel(); }
DEFINE_KERNEL(LookupTableSizeV2) { return SizeKernel(); }

}  // namespace permafrost
