// Implements checkpoints of version 1. Field numbers: tensorflow/core/util/saved_tensor_slice.proto.
#include "io/formats/checkpoint/slice_tables.h"

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "graph/base/wire.h"
#include "graph/wire_format/tensor_proto.h"
#include "io/formats/checkpoint/bundle_records.h"
#include "io/formats/checkpoint/sorted_table.h"
#include "io/formats/checkpoint/tensor_slice.h"
#include "io/formats/checkpoint/variable_list.h"

namespace permafrost {
namespace {

enum SlicesField : uint32_t { kMeta = 1, kData = 2 };                                       // SavedTensorSlices
enum MetaField : uint32_t { kTensor = 1, kVersions = 2 };                                   // SavedTensorSliceMeta
enum SliceMetaField : uint32_t { kName = 1, kShape = 2, kType = 3, kSlice = 4 };            // SavedSliceMeta
enum SavedSliceField : uint32_t { kSavedName = 1, kSavedSlice = 2, kSavedTensorData = 3 };  // SavedSlice

struct SliceMeta {
  std::string name;
  DType dtype = DType::kInvalid;
  Shape shape;
  std::vector<TensorSlice> slices;
};

absl::StatusOr<SliceMeta> ParseSliceMeta(absl::string_view encoded) {
  SliceMeta meta;
  PF_RETURN_IF_ERROR(ForEachField(encoded, [&](const WireField& field) {
    if (IsMessage(field, kName)) {
      meta.name = std::string(field.bytes);
    } else if (IsMessage(field, kShape)) {
      PF_ASSIGN_OR_RETURN(meta.shape, ParseShapeProto(field.bytes));
    } else if (IsMessage(field, kSlice)) {
      PF_ASSIGN_OR_RETURN(TensorSlice slice, ParseTensorSlice(field.bytes));
      meta.slices.push_back(std::move(slice));
    } else if (field.number == kType && field.type == WireType::kVarint) {
      meta.dtype = static_cast<DType>(static_cast<int32_t>(field.value));
    }
    return absl::OkStatus();
  }));
  if (!meta.shape.IsFullyKnown()) {
    return absl::DataLossError(
        absl::StrCat("variable '", meta.name, "' has the shape ", meta.shape.ToString(), ", expected a known one"));
  }
  PF_RETURN_IF_ERROR(Annotate(meta.shape.CheckedNumElements().status(), absl::StrCat("variable '", meta.name, "'")));
  return meta;
}

// Returns message `number` in `encoded`, or DataLoss if there is none.
absl::StatusOr<absl::string_view> FindMessage(absl::string_view encoded, uint32_t number, absl::string_view what) {
  absl::string_view found;
  bool is_there = false;
  PF_RETURN_IF_ERROR(ForEachField(encoded, [&](const WireField& field) {
    if (IsMessage(field, number)) {
      found = field.bytes;
      is_there = true;
    }
    return absl::OkStatus();
  }));
  if (!is_there) return absl::DataLossError(absl::StrCat("found no ", what));
  return found;
}

class SliceTables : public VariableSource {
 public:
  explicit SliceTables(std::string prefix) : prefix_(std::move(prefix)) {}

  absl::Status Open(FileSystem& files, const std::vector<std::string>& paths) {
    std::map<std::string, Variable> variables;
    for (const std::string& path : paths) {
      PF_ASSIGN_OR_RETURN(FileView file, files.MapFile(path));
      absl::StatusOr<SortedTable> table = SortedTable::Open(std::move(file));
      if (!table.ok()) return Annotate(table.status(), absl::StrCat("'", path, "'"));
      tables_.push_back({path, *std::move(table)});
      PF_RETURN_IF_ERROR(Annotate(ReadMeta(tables_.size() - 1, &variables), absl::StrCat("'", path, "'")));
    }
    for (auto& [name, variable] : variables) {
      if (variable.elements_left > 0) {
        return absl::DataLossError(absl::StrCat("checkpoint '", prefix_, "': variable '", name,
                                                "': its slices leave out ", variable.elements_left, " elements"));
      }
      list_.Add({name, variable.dtype, variable.shape});
      parts_.push_back(std::move(variable.parts));
    }
    return absl::OkStatus();
  }

  absl::Span<const VariableInfo> variables() const override { return list_.variables(); }

  absl::StatusOr<Tensor> Read(absl::string_view name) const override {
    const absl::StatusOr<size_t> i = list_.Find(name);
    if (!i.ok()) return Annotate(i.status(), absl::StrCat("checkpoint '", prefix_, "'"));
    absl::StatusOr<Tensor> value = ReadValue(list_.variables()[*i], parts_[*i]);
    if (!value.ok()) {
      return Annotate(value.status(), absl::StrCat("checkpoint '", prefix_, "': variable '", name, "'"));
    }
    return value;
  }

 private:
  struct Table {
    std::string path;
    SortedTable table;
  };
  struct Part {
    TensorSlice slice;
    Shape shape;
    size_t table;
  };
  struct Variable {
    DType dtype = DType::kInvalid;
    Shape shape;
    int64_t elements_left = 0;  // Elements that no slice has covered so far.
    std::vector<Part> parts;
  };

  absl::Status ReadMeta(size_t table, std::map<std::string, Variable>* variables) {
    const absl::StatusOr<FileView> value = tables_[table].table.Find("");
    if (absl::IsNotFound(value.status()))
      return absl::DataLossError("found no list of variables, expected a checkpoint");
    PF_RETURN_IF_ERROR(value.status());
    PF_ASSIGN_OR_RETURN(const absl::string_view meta, FindMessage(value->bytes, kMeta, "list of variables"));
    return ForEachField(meta, [&](const WireField& field) {
      if (IsMessage(field, kVersions)) return CheckCheckpointVersion(field.bytes);
      if (!IsMessage(field, kTensor)) return absl::OkStatus();
      PF_ASSIGN_OR_RETURN(SliceMeta tensor, ParseSliceMeta(field.bytes));
      return Annotate(AddSlices(table, &tensor, variables), absl::StrCat("variable '", tensor.name, "'"));
    });
  }

  static absl::Status AddSlices(size_t table, SliceMeta* meta, std::map<std::string, Variable>* variables) {
    const auto [entry, is_new] = variables->try_emplace(meta->name);
    Variable& variable = entry->second;
    if (is_new) {
      variable.dtype = meta->dtype;
      variable.shape = meta->shape;
      variable.elements_left = meta->shape.num_elements();
    } else if (variable.dtype != meta->dtype || variable.shape != meta->shape) {
      return absl::DataLossError(absl::StrCat("has type ", DTypeName(meta->dtype), " and shape ",
                                              meta->shape.ToString(), ", and before that ", DTypeName(variable.dtype),
                                              " and ", variable.shape.ToString()));
    }
    for (TensorSlice& slice : meta->slices) {
      PF_ASSIGN_OR_RETURN(Shape shape, SliceShape(slice, variable.shape));
      if (shape.num_elements() > variable.elements_left) return absl::DataLossError("its slices overlap");
      variable.elements_left -= shape.num_elements();
      variable.parts.push_back({std::move(slice), std::move(shape), table});
    }
    return absl::OkStatus();
  }

  absl::StatusOr<Tensor> ReadValue(const VariableInfo& variable, const std::vector<Part>& parts) const {
    if (SizeOf(variable.dtype) == 0 && variable.dtype != DType::kString) {
      return absl::UnimplementedError(
          absl::StrCat("has type ", DTypeName(variable.dtype), ", whose values cannot be read"));
    }
    if (parts.size() == 1 && parts[0].shape == variable.shape) return ReadPart(variable, parts[0]);
    // Reads all parts before allocating memory for the whole variable.
    std::vector<Tensor> tensors;
    for (const Part& part : parts) {
      PF_ASSIGN_OR_RETURN(Tensor tensor, ReadPart(variable, part));
      tensors.push_back(std::move(tensor));
    }
    PF_ASSIGN_OR_RETURN(SliceAssembler assembler, SliceAssembler::Create(variable.dtype, variable.shape));
    for (size_t i = 0; i < parts.size(); ++i) PF_RETURN_IF_ERROR(assembler.Add(parts[i].slice, tensors[i]));
    return assembler.Finish();
  }

  absl::StatusOr<Tensor> ReadPart(const VariableInfo& variable, const Part& part) const {
    const Table& table = tables_[part.table];
    absl::StatusOr<Tensor> tensor = DecodePart(table.table, variable, part);
    if (!tensor.ok()) return Annotate(tensor.status(), absl::StrCat("'", table.path, "'"));
    return tensor;
  }

  static absl::StatusOr<Tensor> DecodePart(const SortedTable& table, const VariableInfo& variable, const Part& part) {
    const absl::StatusOr<FileView> value = table.Find(SliceKey(variable.name, part.slice));
    if (absl::IsNotFound(value.status())) {
      return absl::DataLossError(absl::StrCat("found no entry for the slice ", ToString(part.slice)));
    }
    PF_RETURN_IF_ERROR(value.status());
    PF_ASSIGN_OR_RETURN(const absl::string_view saved, FindMessage(value->bytes, kData, "values"));
    PF_ASSIGN_OR_RETURN(const absl::string_view name, FindMessage(saved, kSavedName, "name"));
    if (name != variable.name) {
      return absl::DataLossError(absl::StrCat("found the values of '", name, "' instead"));
    }
    PF_ASSIGN_OR_RETURN(const absl::string_view values, FindMessage(saved, kSavedTensorData, "values"));
    return ParseTensorValues(values, variable.dtype, part.shape);
  }

  const std::string prefix_;
  VariableList list_;
  std::vector<std::vector<Part>> parts_;  // By variable.
  std::vector<Table> tables_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<VariableSource>> OpenSliceTables(FileSystem& files, const CheckpointFiles& found) {
  auto tables = std::make_unique<SliceTables>(found.prefix);
  PF_RETURN_IF_ERROR(tables->Open(files, found.tables));
  return tables;
}

}  // namespace permafrost
