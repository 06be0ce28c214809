// Implements op schemas: parses the rows of ops.def and named_ops.def, and resolves the types of a node.
#include "graph/ops/op_schema.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <memory>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "absl/synchronization/mutex.h"
#include "graph/base/selection.h"
#include "graph/base/status.h"
#include "graph/shapes/shape_functions.h"

namespace permafrost {
namespace {

struct RawRow {
  Op op;
  absl::string_view signature;
  absl::string_view attributes;
  uint32_t traits;
  absl::Status (*shape_function)(ShapeContext*);
};

// The rows of the ops in the build, by id. A selective build only runs models, and its kernels compute shapes and check
// types. It therefore has neither shape functions nor the lists of allowed types ("{float,half}").
#ifdef SELECTIVE_REGISTRATION
// Copies the attributes without those lists and returns the size. `to` may be null.
constexpr size_t WithoutLists(std::string_view attributes, char* to) {
  size_t size = 0;
  for (size_t i = 0; i < attributes.size(); ++i) {
    if (attributes[i] == '{') i = attributes.find('}', i) + 1;
    if (i >= attributes.size()) break;
    if (to != nullptr) to[size] = attributes[i];
    ++size;
  }
  return size;
}
#define OP(name, signature, attributes, traits, shape)                                             \
  constexpr auto kAttributesOf##name = [] {                                                        \
    std::array<char, selection::HoldsOp(#name) ? WithoutLists(attributes, nullptr) : 0> text = {}; \
    if constexpr (!text.empty()) WithoutLists(attributes, text.data());                            \
    return text;                                                                                   \
  }();
#include "graph/ops/named_ops.def"
#include "graph/ops/ops.def"
#undef OP
#define ATTRIBUTES(name, attributes) absl::string_view(kAttributesOf##name.data(), kAttributesOf##name.size())
#define SHAPE_FUNCTION(shape) nullptr
#else
#define ATTRIBUTES(name, attributes) attributes
#define SHAPE_FUNCTION(shape) shapes::shape
#endif
constexpr auto kRawRows = [] {
  constexpr size_t kCount =
#define OP(name, signature, attributes, traits, shape) +(selection::HoldsOp(#name) ? 1 : 0)
#include "graph/ops/ops.def"
#undef OP
      ;
  std::array<RawRow, kCount> rows = {};
  size_t i = 0;
#define OP(name, signature, attributes, traits, shape) \
  if (selection::HoldsOp(#name))                       \
    rows[i++] = {ops::k##name, signature, ATTRIBUTES(name, attributes), traits, SHAPE_FUNCTION(shape)};
#include "graph/ops/ops.def"
#undef OP
  return rows;
}();

// The ops of named_ops.def in the build.
struct NamedRow {
  absl::string_view name;
  RawRow row;
};
constexpr auto kNamedRows = [] {
  constexpr size_t kCount =
#define OP(name, signature, attributes, traits, shape) +(selection::HoldsOp(#name) ? 1 : 0)
#include "graph/ops/named_ops.def"
#undef OP
      ;
  std::array<NamedRow, kCount> rows = {};
  [[maybe_unused]] size_t i = 0;
#define OP(name, signature, attributes, traits, shape) \
  if constexpr (selection::HoldsOp(#name))             \
    rows[i++] = {#name, {Op(), signature, ATTRIBUTES(name, attributes), traits, SHAPE_FUNCTION(shape)}};
#include "graph/ops/named_ops.def"
#undef OP
  return rows;
}();
#undef ATTRIBUTES
#undef SHAPE_FUNCTION

// True if a schema in the build has a default of this kind. Code that parses other kinds is omitted.
constexpr bool HasDefaults(const char* kind) {
  const auto has = [kind](const RawRow& row) {
    return std::string_view(row.attributes.data(), row.attributes.size()).find(kind) != std::string_view::npos;
  };
  for (const RawRow& row : kRawRows) {
    if (has(row)) return true;
  }
  for (const NamedRow& named : kNamedRows) {
    if (has(named.row)) return true;
  }
  return false;
}

// Parses one input or output. The word after the colon is an attribute if the op has one of that name, otherwise a
// type.
ArgSpec ParseArg(const OpSchema& schema, absl::string_view text) {
  const std::pair<absl::string_view, absl::string_view> parts = absl::StrSplit(text, absl::MaxSplits(':', 1));
  ArgSpec arg;
  arg.name = std::string(parts.first);
  absl::string_view type = parts.second;
  if (absl::ConsumePrefix(&type, "@")) {
    arg.is_type_list = true;
    arg.type_attr = std::string(type);
    return arg;
  }
  if (const size_t star = type.find('*'); star != absl::string_view::npos) {
    arg.number_attr = std::string(type.substr(0, star));
    type.remove_prefix(star + 1);
  }
  if (schema.FindAttr(type) != nullptr) {
    arg.type_attr = std::string(type);
  } else {
    arg.type = ParseDType(type).value_or(DType::kInvalid);  // An error in the table, which op_schema_test detects.
  }
  return arg;
}

AttrValue::Kind ParseKind(absl::string_view text) {
  using Kind = AttrValue::Kind;
  for (const auto& [name, kind] : {std::pair<absl::string_view, Kind>{"int", Kind::kInt},
                                   {"float", Kind::kFloat},
                                   {"bool", Kind::kBool},
                                   {"string", Kind::kString},
                                   {"type", Kind::kType},
                                   {"shape", Kind::kShape},
                                   {"tensor", Kind::kTensor},
                                   {"func", Kind::kFunction}}) {
    if (text == name) return kind;
  }
  return Kind::kNone;  // An error in the table, which op_schema_test detects.
}

// Parses a default as written in the table. Returns a value of kind none for malformed text, which op_schema_test
// detects.
AttrValue ParseDefault(const AttrSpec& spec, absl::string_view text) {
  using Kind = AttrValue::Kind;
  if (text == "\"\"") text = "";
  if (spec.is_list) {
    absl::ConsumePrefix(&text, "[");
    absl::ConsumeSuffix(&text, "]");
    const std::vector<absl::string_view> pieces = absl::StrSplit(text, ',', absl::SkipEmpty());
    if (spec.kind == Kind::kInt) {
      std::vector<int64_t> values(pieces.size());
      for (size_t i = 0; i < pieces.size(); ++i) {
        if (!absl::SimpleAtoi(pieces[i], &values[i])) return AttrValue();
      }
      return AttrValue::IntList(values);
    }
    if (HasDefaults(":list(float)=") && spec.kind == Kind::kFloat) {
      std::vector<float> values(pieces.size());
      for (size_t i = 0; i < pieces.size(); ++i) {
        if (!absl::SimpleAtof(pieces[i], &values[i])) return AttrValue();
      }
      return AttrValue::FloatList(values);
    }
    if (HasDefaults(":list(type)") && spec.kind == Kind::kType) {
      std::vector<DType> values;
      for (const absl::string_view piece : pieces) {
        const absl::StatusOr<DType> dtype = ParseDType(piece);
        if (!dtype.ok()) return AttrValue();
        values.push_back(*dtype);
      }
      return AttrValue::TypeList(values);
    }
    if (HasDefaults(":list(string)=") && spec.kind == Kind::kString) {
      return AttrValue::StringList(std::vector<std::string>(pieces.begin(), pieces.end()));
    }
    return pieces.empty() ? AttrValue::IntList({}) : AttrValue();  // All kinds have the same encoding of an empty list.
  }
  switch (spec.kind) {
    case Kind::kInt: {
      int64_t value;
      return absl::SimpleAtoi(text, &value) ? AttrValue::Int(value) : AttrValue();
    }
    case Kind::kFloat: {
      if constexpr (!HasDefaults(":float=")) break;
      float value;
      return absl::SimpleAtof(text, &value) ? AttrValue::Float(value) : AttrValue();
    }
    case Kind::kBool:
      return text == "true" || text == "false" ? AttrValue::Bool(text == "true") : AttrValue();
    case Kind::kString:
      return AttrValue::String(text);
    case Kind::kType: {
      const absl::StatusOr<DType> dtype = ParseDType(text);
      return dtype.ok() ? AttrValue::Type(*dtype) : AttrValue();
    }
    case Kind::kShape: {
      if constexpr (!HasDefaults(":shape=")) break;
      const absl::StatusOr<Shape> shape = ParseShape(text);
      return shape.ok() ? AttrValue::OfShape(*shape) : AttrValue();
    }
    default:
      break;
  }
  return AttrValue();
}

AttrSpec ParseAttr(absl::string_view text) {
  AttrSpec attr;
  const size_t colon = text.find(':');
  attr.name = std::string(text.substr(0, colon));
  absl::string_view kind = text.substr(colon + 1);
  absl::string_view default_text;
  if (const size_t equals = kind.find('='); equals != absl::string_view::npos) {
    attr.has_default = true;
    default_text = kind.substr(equals + 1);
    kind = kind.substr(0, equals);
  }
  if (const size_t brace = kind.find('{'); !selection::kIsSelective && brace != absl::string_view::npos) {
    absl::string_view allowed = kind.substr(brace + 1);
    absl::ConsumeSuffix(&allowed, "}");
    for (const absl::string_view name : absl::StrSplit(allowed, ',')) {
      attr.allowed_types.push_back(ParseDType(name).value_or(DType::kInvalid));
    }
    kind = kind.substr(0, brace);
  }
  if (absl::ConsumePrefix(&kind, "list(")) {
    absl::ConsumeSuffix(&kind, ")");
    attr.is_list = true;
  }
  attr.kind = ParseKind(kind);
  if (attr.has_default) attr.default_value = ParseDefault(attr, default_text);
  return attr;
}

// "Tout==complex(T)" or "U==T".
TypeRelation ParseRelation(absl::string_view text) {
  const size_t sign = text.find("==");
  TypeRelation relation;
  relation.attr = std::string(text.substr(0, sign));
  absl::string_view other = text.substr(sign + 2);
  if (absl::ConsumePrefix(&other, "complex(")) {
    absl::ConsumeSuffix(&other, ")");
    relation.is_complex_of = true;
  }
  relation.other = std::string(other);
  return relation;
}

// Returns the number of arguments if it does not depend on attributes, otherwise -1.
int FixedCount(const std::vector<ArgSpec>& args) {
  for (const ArgSpec& arg : args) {
    if (arg.is_type_list || !arg.number_attr.empty()) return -1;
  }
  return static_cast<int>(args.size());
}

OpSchema ParseRow(const RawRow& row) {
  OpSchema schema;
  schema.op = row.op;
  schema.traits = row.traits;
  schema.shape_function = row.shape_function;
  for (const absl::string_view attr : absl::StrSplit(row.attributes, ' ', absl::SkipEmpty())) {
    if (absl::StrContains(attr, "==")) {
      schema.type_relations.push_back(ParseRelation(attr));
    } else {
      schema.attrs.push_back(ParseAttr(attr));
    }
  }
  std::vector<ArgSpec>* args = &schema.inputs;
  for (const absl::string_view arg : absl::StrSplit(row.signature, ' ', absl::SkipEmpty())) {
    if (arg == "->") {
      args = &schema.outputs;
    } else {
      args->push_back(ParseArg(schema, arg));
    }
  }
  schema.fixed_inputs = FixedCount(schema.inputs);
  schema.fixed_outputs = FixedCount(schema.outputs);
  return schema;
}

constexpr int64_t kMostArgs = 1 << 16;

absl::StatusOr<int> ResolveCounts(const Node& node, const std::vector<ArgSpec>& args) {
  int64_t total = 0;
  for (const ArgSpec& arg : args) {
    PF_ASSIGN_OR_RETURN(const int64_t count, ResolveCount(node, arg));
    total += count;
  }
  return static_cast<int>(total);
}

// The types that an attribute names, or its default; empty where it is missing or holds something else.
std::vector<DType> TypesNamed(const Node& node, const std::string& attr) {
  const AttrValue* value = node.FindAttr(attr);
  if (value == nullptr) value = DefaultAttr(node.op(), attr);
  if (value == nullptr) return {};
  if (value->kind() == AttrValue::Kind::kList) return value->AsTypeList().value_or(std::vector<DType>());
  const absl::StatusOr<DType> type = value->AsType();
  return type.ok() ? std::vector<DType>{*type} : std::vector<DType>();
}

DType ComplexOf(DType part) {
  switch (part) {
    case DType::kFloat:
      return DType::kComplex64;
    case DType::kDouble:
      return DType::kComplex128;
    default:
      return DType::kInvalid;
  }
}

absl::StatusOr<const OpSchema*> RequireSchema(const Node& node) {
  const OpSchema* schema = FindSchema(node.op());
  if (schema == nullptr) {
    return absl::NotFoundError(absl::StrCat(node.Describe(), ": the op is not in the schema table"));
  }
  return schema;
}

}  // namespace

absl::StatusOr<int64_t> ResolveCount(const Node& node, const ArgSpec& arg) {
  int64_t count = 1;
  if (arg.is_type_list) {
    PF_ASSIGN_OR_RETURN(const std::vector<DType> list, TypeListAttr(node, arg.type_attr));
    count = static_cast<int64_t>(list.size());
  } else if (!arg.number_attr.empty()) {
    PF_ASSIGN_OR_RETURN(count, IntAttr(node, arg.number_attr));
  }
  if (count >= 0 && count <= kMostArgs) return count;
  return absl::InvalidArgumentError(absl::StrCat(node.Describe(), ": attr '",
                                                 arg.is_type_list ? arg.type_attr : arg.number_attr, "' specifies ",
                                                 count, " tensors, expected 0 to ", kMostArgs));
}

absl::StatusOr<std::vector<DType>> ResolveTypes(const Node& node, const std::vector<ArgSpec>& args) {
  std::vector<DType> types;
  for (const ArgSpec& arg : args) {
    PF_ASSIGN_OR_RETURN(const int64_t count, ResolveCount(node, arg));
    if (arg.is_type_list) {
      PF_ASSIGN_OR_RETURN(const std::vector<DType> list, TypeListAttr(node, arg.type_attr));
      types.insert(types.end(), list.begin(), list.end());
      continue;
    }
    DType type = arg.type;
    if (!arg.type_attr.empty()) {
      PF_ASSIGN_OR_RETURN(type, TypeAttr(node, arg.type_attr));
    }
    types.insert(types.end(), static_cast<size_t>(count), type);
  }
  return types;
}

const AttrSpec* OpSchema::FindAttr(absl::string_view name) const {
  for (const AttrSpec& attr : attrs) {
    if (attr.name == name) return &attr;
  }
  return nullptr;
}

namespace {

const OpSchema* FindNamedSchema(Op op);

// Returns the schema of an operator of TensorFlow Lite that is only carried, "TFLite:<name>".
const OpSchema* FindCarriedSchema(Op op) {
  if constexpr (!selection::HoldsOp("TFLiteOperator")) return nullptr;
  if (!absl::StartsWith(op.name(), "TFLite:")) return nullptr;
  static auto* const mutex = new absl::Mutex;
  static auto* const schemas = new absl::flat_hash_map<Op, std::unique_ptr<const OpSchema>>;
  const absl::MutexLock lock(mutex);
  std::unique_ptr<const OpSchema>& schema = (*schemas)[op];
  if (schema == nullptr) {
    auto made = std::make_unique<OpSchema>(*FindNamedSchema(Op::Named("TFLiteOperator")));
    made->op = op;
    schema = std::move(made);
  }
  return schema.get();
}

const OpSchema* FindNamedSchema(Op op) {
  if constexpr (kNamedRows.empty()) return nullptr;
  // By op; the schemas live as long as the process.
  static const auto* const kSchemas = [] {
    auto* schemas = new absl::flat_hash_map<Op, std::unique_ptr<const OpSchema>>;
    for (const NamedRow& named : kNamedRows) {
      RawRow row = named.row;
      row.op = Op::Named(named.name);
      schemas->emplace(row.op, std::make_unique<const OpSchema>(ParseRow(row)));
    }
    return schemas;
  }();
  const auto found = kSchemas->find(op);
  if (found != kSchemas->end()) return found->second.get();
  return FindCarriedSchema(op);
}

}  // namespace

const OpSchema* FindSchema(Op op) {
  if (!op.is_known()) return FindNamedSchema(op);
  size_t row = op.id();
  if constexpr (selection::kIsSelective) {
    const auto held = std::lower_bound(kRawRows.begin(), kRawRows.end(), op,
                                       [](const RawRow& raw, Op other) { return raw.op < other; });
    if (held == kRawRows.end() || held->op != op) return nullptr;
    row = static_cast<size_t>(held - kRawRows.begin());
  }
  // Parses schemas on demand: a model uses a few of the hundreds of ops, and loading waits only for those.
  static std::array<std::atomic<const OpSchema*>, kRawRows.size()> parsed;
  const OpSchema* known = parsed[row].load(std::memory_order_acquire);
  if (known != nullptr) return known;
  auto made = std::make_unique<const OpSchema>(ParseRow(kRawRows[row]));
  // If another thread was faster, its schema is used, so that every caller gets the same pointer.
  if (!parsed[row].compare_exchange_strong(known, made.get(), std::memory_order_acq_rel)) return known;
  return made.release();
}

const AttrValue* DefaultAttr(Op op, absl::string_view attr) {
  const OpSchema* schema = FindSchema(op);
  if (schema == nullptr) return nullptr;
  const AttrSpec* spec = schema->FindAttr(attr);
  return spec != nullptr && spec->has_default ? &spec->default_value : nullptr;
}

absl::StatusOr<std::vector<DType>> InputTypes(const Node& node) {
  PF_ASSIGN_OR_RETURN(const OpSchema* schema, RequireSchema(node));
  return ResolveTypes(node, schema->inputs);
}

absl::StatusOr<std::vector<DType>> OutputTypes(const Node& node) {
  PF_ASSIGN_OR_RETURN(const OpSchema* schema, RequireSchema(node));
  return ResolveTypes(node, schema->outputs);
}

absl::Status CheckTypeRelations(const Node& node) {
  const OpSchema* schema = FindSchema(node.op());
  if (schema == nullptr || schema->type_relations.empty()) return absl::OkStatus();
  for (const TypeRelation& relation : schema->type_relations) {
    for (const DType other : TypesNamed(node, relation.other)) {
      const DType expected = relation.is_complex_of ? ComplexOf(RemoveRef(other)) : RemoveRef(other);
      for (const DType type : TypesNamed(node, relation.attr)) {
        if (RemoveRef(type) == expected) continue;
        return absl::InvalidArgumentError(
            absl::StrCat(node.Describe(), ": attr '", relation.attr, "' is ", DTypeName(type), " and '", relation.other,
                         "' is ", DTypeName(other), ", expected '", relation.attr, "' to be ",
                         relation.is_complex_of ? "the complex type with parts of that type" : "the same type"));
      }
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<int> NumInputs(const Node& node) {
  PF_ASSIGN_OR_RETURN(const OpSchema* schema, RequireSchema(node));
  if (schema->fixed_inputs >= 0) return schema->fixed_inputs;
  return ResolveCounts(node, schema->inputs);
}

absl::StatusOr<int> NumOutputs(const Node& node) {
  PF_ASSIGN_OR_RETURN(const OpSchema* schema, RequireSchema(node));
  if (schema->fixed_outputs >= 0) return schema->fixed_outputs;
  return ResolveCounts(node, schema->outputs);
}

}  // namespace permafrost
