// Implements mutations of models. The reflection of the schema finds every field of a FlatBuffer; fields are changed
// where they lie, so the rest of the file stays valid.
#include "tests/fuzz/tflite_mutator.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <memory>
#include <random>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "flatbuffers/flatbuffers.h"
#include "flatbuffers/minireflect.h"
#include "io/formats/tflite/archive.h"
#include "io/formats/tflite/schema_generated.h"
#include "tests/fuzz/tflite_reflected_generated.h"

namespace permafrost {
namespace {

using flatbuffers::ElementaryType;
using flatbuffers::TypeTable;

// The content of a group of bytes.
enum class Kind : uint8_t {
  kInteger,
  kFloat,
  kOffset,       // To a table, vector or string, from its own position.
  kLength,       // Of a vector or string.
  kVtable,       // The distance of a table to its vtable.
  kVtableEntry,  // Sizes in a vtable, and the places of fields in the table.
};

struct Field {
  Kind kind;
  size_t at = 0, size = 0;
};

// Vectors are sampled, so that data does not outweigh the structure.
constexpr size_t kMostElements = 24;
constexpr size_t kMostFields = 1 << 16;
constexpr int kMostDepth = 32;

// Lists the fields of a valid FlatBuffer.
class FieldFinder {
 public:
  explicit FieldFinder(absl::string_view bytes) : bytes_(bytes) {}

  void Run() {
    fields_.push_back({Kind::kOffset, 0, sizeof(flatbuffers::uoffset_t)});
    VisitTable(Follow(0), tflite_reflected::ModelTypeTable(), 0);
  }
  const std::vector<Field>& fields() const { return fields_; }
  // Positions of tables, vectors and strings.
  const std::vector<size_t>& targets() const { return targets_; }

 private:
  template <typename T>
  T Read(size_t at) const {
    T value = 0;
    if (at + sizeof value <= bytes_.size()) std::memcpy(&value, bytes_.data() + at, sizeof value);
    return value;
  }
  size_t Follow(size_t at) const { return at + Read<flatbuffers::uoffset_t>(at); }

  static Kind KindOf(ElementaryType type) {
    return type == flatbuffers::ET_FLOAT || type == flatbuffers::ET_DOUBLE ? Kind::kFloat : Kind::kInteger;
  }

  void VisitTable(size_t table, const TypeTable* type, int depth) {
    if (depth > kMostDepth || fields_.size() > kMostFields || !visited_.insert(table).second) return;
    targets_.push_back(table);
    const size_t vtable = table - static_cast<size_t>(Read<flatbuffers::soffset_t>(table));
    fields_.push_back({Kind::kVtable, table, sizeof(flatbuffers::soffset_t)});
    const size_t vtable_size = Read<flatbuffers::voffset_t>(vtable);
    if (visited_.insert(vtable).second) {
      for (size_t at = 0; at < vtable_size; at += 2) fields_.push_back({Kind::kVtableEntry, vtable + at, 2});
    }
    int64_t union_type = 0;
    for (size_t i = 0; i < type->num_elems; ++i) {
      const size_t entry = 4 + 2 * i;
      const size_t offset = entry < vtable_size ? Read<flatbuffers::voffset_t>(vtable + entry) : 0;
      const flatbuffers::TypeCode code = type->type_codes[i];
      const auto element = static_cast<ElementaryType>(code.base_type);
      const TypeTable* ref = code.sequence_ref >= 0 ? type->type_refs[code.sequence_ref]() : nullptr;
      if (element == flatbuffers::ET_UTYPE) union_type = offset == 0 ? 0 : Read<uint8_t>(table + offset);
      if (offset == 0) continue;
      VisitValue(table + offset, element, code.is_repeating != 0, ref, union_type, depth);
    }
  }

  void VisitValue(size_t at, ElementaryType type, bool is_vector, const TypeTable* ref, int64_t union_type, int depth) {
    if (is_vector) {
      fields_.push_back({Kind::kOffset, at, 4});
      const size_t vector = Follow(at);
      targets_.push_back(vector);
      fields_.push_back({Kind::kLength, vector, 4});
      const size_t count = Read<flatbuffers::uoffset_t>(vector), width = flatbuffers::InlineSize(type, ref);
      const size_t step = std::max<size_t>(1, count / kMostElements);
      for (size_t i = 0; i < count && fields_.size() < kMostFields; i += step) {
        VisitValue(vector + 4 + i * width, type, false, ref, 0, depth);
      }
      return;
    }
    if (type == flatbuffers::ET_STRING) {
      fields_.push_back({Kind::kOffset, at, 4});
      const size_t text = Follow(at);
      targets_.push_back(text);
      fields_.push_back({Kind::kLength, text, 4});
      const size_t count = Read<flatbuffers::uoffset_t>(text);
      for (size_t i = 0; i < count && i < kMostElements; i += 7) fields_.push_back({Kind::kInteger, text + 4 + i, 1});
      return;
    }
    if (type != flatbuffers::ET_SEQUENCE) {
      fields_.push_back({KindOf(type), at, flatbuffers::InlineSize(type, ref)});
      return;
    }
    if (ref == nullptr) return;
    if (ref->st == flatbuffers::ST_UNION) {
      if (union_type <= 0 || static_cast<size_t>(union_type) >= ref->num_elems) return;
      const flatbuffers::TypeCode code = ref->type_codes[union_type];
      if (code.sequence_ref < 0) return;
      ref = ref->type_refs[code.sequence_ref]();
    }
    if (ref->st != flatbuffers::ST_TABLE) return;
    fields_.push_back({Kind::kOffset, at, 4});
    VisitTable(Follow(at), ref, depth + 1);
  }

  absl::string_view bytes_;
  std::vector<Field> fields_;
  std::vector<size_t> targets_;
  absl::flat_hash_set<size_t> visited_;
};

bool IsModel(const std::string& bytes) {
  constexpr size_t kHeader = 8;  // The offset of the root, and the identifier.
  flatbuffers::Verifier verifier(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size());
  return bytes.size() >= kHeader && tflite::VerifyModelBuffer(verifier);
}

class TfliteMutator {
 public:
  TfliteMutator(absl::string_view model, absl::string_view other, uint64_t seed)
      : bytes_(model), other_(other), random_(seed) {}

  std::string Run() {
    if (Below(3) == 0) Restructure();
    const auto count = static_cast<int>(Below(4));
    if (count > 0) ChangeFields(count);
    if (Below(8) == 0) ChangeArchive();
    if (Below(24) == 0) bytes_.resize(Below(bytes_.size() + 1));
    return std::move(bytes_);
  }

 private:
  size_t Below(size_t limit) { return limit == 0 ? 0 : static_cast<size_t>(random_() % limit); }

  // Objects: parts are removed, repeated, exchanged and taken from the other model.
  template <typename T>
  void RestructureList(std::vector<T>* list, std::vector<T>* donor) {
    switch (Below(4)) {
      case 0:
        if (!list->empty()) list->erase(list->begin() + static_cast<ptrdiff_t>(Below(list->size())));
        break;
      case 1:
        if (list->size() > 1) std::swap((*list)[Below(list->size())], (*list)[Below(list->size())]);
        break;
      case 2:
        if (donor != nullptr && !donor->empty()) {
          list->insert(list->begin() + static_cast<ptrdiff_t>(Below(list->size() + 1)),
                       std::move((*donor)[Below(donor->size())]));
        }
        break;
      default:
        if (!list->empty() && Below(4) == 0) list->clear();
        break;
    }
  }

  int32_t AnyIndex(size_t count) {
    switch (Below(8)) {
      case 0:
        return -1;
      case 1:
        return static_cast<int32_t>(count);
      case 2:
        return std::numeric_limits<int32_t>::max();
      case 3:
        return std::numeric_limits<int32_t>::min();
      default:
        return static_cast<int32_t>(Below(count));
    }
  }

  // A valid buffer may have a type of a union without a value. Objects cannot be copied then.
  template <typename Union>
  static void DropTypeWithoutValue(Union* options) {
    if (options->value == nullptr) options->Reset();
  }

  // Returns the objects of a model, or null if it is not valid.
  static std::unique_ptr<tflite::ModelT> Objects(absl::string_view model) {
    const std::string bytes(model);  // Aligned.
    if (!IsModel(bytes)) return nullptr;
    std::unique_ptr<tflite::ModelT> objects(tflite::GetModel(bytes.data())->UnPack());
    for (const auto& graph : objects->subgraphs) {
      for (const auto& op : graph->operators) {
        DropTypeWithoutValue(&op->builtin_options);
        DropTypeWithoutValue(&op->builtin_options_2);
      }
      for (const auto& tensor : graph->tensors) {
        if (tensor->quantization != nullptr) DropTypeWithoutValue(&tensor->quantization->details);
        if (tensor->sparsity == nullptr) continue;
        for (const auto& level : tensor->sparsity->dim_metadata) {
          DropTypeWithoutValue(&level->array_segments);
          DropTypeWithoutValue(&level->array_indices);
        }
      }
    }
    return objects;
  }

  void Restructure() {
    const std::unique_ptr<tflite::ModelT> model = Objects(bytes_), donor = Objects(other_);
    if (model == nullptr) return;
    const auto donor_graph = [&]() -> tflite::SubGraphT* {
      if (donor == nullptr || donor->subgraphs.empty()) return nullptr;
      return donor->subgraphs[Below(donor->subgraphs.size())].get();
    };
    const std::string archive = ArchiveBytes();
    if (model->subgraphs.empty()) return;
    tflite::SubGraphT* graph = model->subgraphs[Below(model->subgraphs.size())].get();
    tflite::SubGraphT* from = donor_graph();
    if (graph == nullptr) return;
    switch (Below(10)) {
      case 0:
        RestructureList(&graph->operators, from == nullptr ? nullptr : &from->operators);
        break;
      case 1:
        RestructureList(&graph->tensors, from == nullptr ? nullptr : &from->tensors);
        break;
      case 2:
        RestructureList(&model->subgraphs, donor == nullptr ? nullptr : &donor->subgraphs);
        break;
      case 3:
        RestructureList(&model->buffers, donor == nullptr ? nullptr : &donor->buffers);
        break;
      case 4:
        RestructureList(&model->operator_codes, donor == nullptr ? nullptr : &donor->operator_codes);
        break;
      case 5:
        RestructureList(&model->signature_defs, donor == nullptr ? nullptr : &donor->signature_defs);
        break;
      case 6:
        RestructureList(Below(2) == 0 ? &graph->inputs : &graph->outputs, from == nullptr ? nullptr : &from->inputs);
        break;
      case 7:  // Options of another operator.
        if (!graph->operators.empty()) {
          tflite::OperatorT* op = graph->operators[Below(graph->operators.size())].get();
          const tflite::OperatorT* source = from == nullptr || from->operators.empty()
                                                ? nullptr
                                                : from->operators[Below(from->operators.size())].get();
          if (op == nullptr) break;
          if (source == nullptr || Below(3) == 0) {
            op->builtin_options.Reset();
            op->builtin_options_2.Reset();
          } else {
            op->builtin_options = source->builtin_options;
            op->builtin_options_2 = source->builtin_options_2;
            op->custom_options = source->custom_options;
          }
        }
        break;
      case 8:  // Wiring.
        if (!graph->operators.empty()) {
          tflite::OperatorT* op = graph->operators[Below(graph->operators.size())].get();
          if (op == nullptr) break;
          auto* list = Below(3) == 0 ? &op->outputs : Below(8) == 0 ? &op->intermediates : &op->inputs;
          if (list->empty() || Below(4) == 0) {
            list->push_back(AnyIndex(graph->tensors.size()));
          } else {
            (*list)[Below(list->size())] = AnyIndex(graph->tensors.size());
          }
        }
        break;
      default:  // Quantisation, sparsity and shapes of another tensor.
        if (!graph->tensors.empty()) {
          tflite::TensorT* tensor = graph->tensors[Below(graph->tensors.size())].get();
          tflite::SubGraphT* source_graph = from == nullptr || Below(2) == 0 ? graph : from;
          if (tensor == nullptr || source_graph->tensors.empty()) break;
          tflite::TensorT* source = source_graph->tensors[Below(source_graph->tensors.size())].get();
          if (source == nullptr || source == tensor) break;
          if (Below(2) == 0) tensor->quantization = std::move(source->quantization);
          if (Below(2) == 0) tensor->sparsity = std::move(source->sparsity);
          if (Below(2) == 0) tensor->shape = source->shape;
          if (Below(3) == 0) tensor->type = source->type;
          if (Below(3) == 0) tensor->buffer = source->buffer;
        }
        break;
    }
    flatbuffers::FlatBufferBuilder builder;
    tflite::FinishModelBuffer(builder, tflite::Model::Pack(builder, model.get()));
    bytes_.assign(reinterpret_cast<const char*>(builder.GetBufferPointer()), builder.GetSize());
    bytes_ += archive;
  }

  // Fields, where they lie.
  template <typename T>
  void Put(size_t at, T value) {
    if (at + sizeof value <= bytes_.size()) std::memcpy(&bytes_[at], &value, sizeof value);
  }

  void PutInteger(size_t at, size_t size, uint64_t value) {
    if (at + size <= bytes_.size()) std::memcpy(&bytes_[at], &value, size);  // Little-endian.
  }

  uint64_t GetInteger(size_t at, size_t size) const {
    uint64_t value = 0;
    if (at + size <= bytes_.size()) std::memcpy(&value, bytes_.data() + at, size);
    return value;
  }

  uint64_t InterestingInteger(uint64_t old) {
    constexpr uint64_t kNumbers[] = {0,
                                     1,
                                     2,
                                     3,
                                     4,
                                     7,
                                     8,
                                     31,
                                     32,
                                     64,
                                     127,
                                     128,
                                     255,
                                     256,
                                     32767,
                                     32768,
                                     65535,
                                     65536,
                                     0x7fffffff,
                                     0x80000000,
                                     0xffffffff,
                                     0x100000000,
                                     0x7fffffffffffffff,
                                     0x8000000000000000,
                                     0xffffffffffffffff,
                                     0xfffffffffffffffe};
    switch (Below(5)) {
      case 0:
        return old + 1;
      case 1:
        return old - 1;
      case 2:
        return random_();
      default:
        return kNumbers[Below(sizeof kNumbers / sizeof kNumbers[0])];
    }
  }

  double InterestingFloat() {
    const double kNumbers[] = {0,
                               -0.0,
                               1,
                               -1,
                               1e-45,
                               1e38,
                               1e39,
                               -1e38,
                               1e-300,
                               std::numeric_limits<double>::infinity(),
                               -std::numeric_limits<double>::infinity(),
                               std::numeric_limits<double>::quiet_NaN()};
    return kNumbers[Below(sizeof kNumbers / sizeof kNumbers[0])];
  }

  void ChangeFields(int count) {
    if (!IsModel(bytes_)) return;
    FieldFinder finder(bytes_);
    finder.Run();
    // Offsets, lengths and vtables are most fields, but a reader rejects most of their changes at once.
    std::vector<Field> values, structure;
    for (const Field& field : finder.fields()) {
      (field.kind == Kind::kInteger || field.kind == Kind::kFloat ? values : structure).push_back(field);
    }
    for (int i = 0; i < count; ++i) {
      const std::vector<Field>& fields = Below(4) == 0 || values.empty() ? structure : values;
      if (fields.empty()) return;
      Change(fields[Below(fields.size())], fields, finder.targets());
    }
  }

  void Change(const Field& field, const std::vector<Field>& fields, const std::vector<size_t>& targets) {
    switch (field.kind) {
      case Kind::kInteger: {
        const Field& like = fields[Below(fields.size())];
        const bool copies = like.size == field.size && Below(4) == 0;
        PutInteger(field.at, field.size,
                   copies ? GetInteger(like.at, like.size) : InterestingInteger(GetInteger(field.at, field.size)));
        break;
      }
      case Kind::kFloat:
        field.size == sizeof(double) ? Put(field.at, InterestingFloat())
                                     : Put(field.at, static_cast<float>(InterestingFloat()));
        break;
      case Kind::kOffset: {
        const size_t target = targets[Below(targets.size())];
        const bool points = target > field.at && Below(3) != 0;
        Put(field.at, static_cast<uint32_t>(points ? target - field.at : InterestingInteger(GetInteger(field.at, 4))));
        break;
      }
      case Kind::kVtable:
      case Kind::kLength:
        Put(field.at, static_cast<uint32_t>(InterestingInteger(GetInteger(field.at, 4))));
        break;
      case Kind::kVtableEntry: {
        const Field& like = fields[Below(fields.size())];
        const bool copies = like.kind == Kind::kVtableEntry && Below(2) == 0;
        Put(field.at,
            static_cast<uint16_t>(copies ? GetInteger(like.at, 2) : InterestingInteger(GetInteger(field.at, 2))));
        break;
      }
    }
  }

  // The archive at the end.
  std::string ArchiveBytes() const {
    const absl::StatusOr<Archive> archive = FindArchive(bytes_);
    return archive.ok() && archive->start < bytes_.size() ? bytes_.substr(archive->start) : std::string();
  }

  void ChangeArchive() {
    absl::StatusOr<Archive> archive = FindArchive(bytes_);
    if (!archive.ok()) return;
    if (archive->start >= bytes_.size()) {
      bytes_ += *MakeArchive({{"labels.txt", "cat\ndog\n"}, {"vocabulary.txt", std::string(Below(100), 'a')}});
      archive = FindArchive(bytes_);
      if (!archive.ok()) return;
    }
    for (size_t i = Below(3) + 1; i-- > 0;) {
      // Headers have fields of two and four bytes; those at the end describe the directory.
      constexpr size_t kEndRecord = 22;
      const size_t length = bytes_.size() - archive->start;
      const size_t at =
          Below(2) == 0 && length > kEndRecord ? bytes_.size() - Below(kEndRecord) - 1 : archive->start + Below(length);
      const size_t size = Below(2) == 0 ? 2 : 4;
      if (at + size <= bytes_.size()) PutInteger(at, size, InterestingInteger(GetInteger(at, size)));
    }
  }

  std::string bytes_;
  absl::string_view other_;
  std::mt19937_64 random_;
};

}  // namespace

std::string MutateTflite(absl::string_view model, absl::string_view other, uint64_t seed) {
  const std::string copy(model);  // Aligned, unlike the argument.
  if (!IsModel(copy)) return "";
  return TfliteMutator(copy, other, seed).Run();
}

}  // namespace permafrost
