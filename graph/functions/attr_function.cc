// Implements attribute values that name functions, and the substitution of placeholders by the caller's values.
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "graph/attr.h"
#include "graph/base/status.h"
#include "graph/wire_format/graphdef_fields.h"

namespace permafrost {
namespace {

using Kind = AttrValue::Kind;
namespace fields = graphdef_fields;

constexpr uint32_t kListField = static_cast<uint32_t>(Kind::kList);
constexpr uint32_t kFunctionField = static_cast<uint32_t>(Kind::kFunction);
constexpr uint32_t kPlaceholderField = static_cast<uint32_t>(Kind::kPlaceholder);

// A value inside a function inside a value takes three of the kMaxWireDepth nested messages.
constexpr int kMaxNesting = kMaxWireDepth / 3;

absl::Status TooDeep() {
  return absl::InvalidArgumentError(absl::StrCat("names functions inside each other more than ", kMaxNesting, " deep"));
}

absl::StatusOr<FunctionRef> ParseFunction(absl::string_view bytes, const Owner& owner) {
  FunctionRef function;
  absl::flat_hash_map<std::string, size_t> index;
  WireReader reader(bytes);
  WireField field;
  while (reader.Next(&field)) {
    if (IsMessage(field, fields::kFunctionName)) function.name = std::string(field.bytes);
    if (!IsMessage(field, fields::kFunctionAttr)) continue;
    std::string key;
    absl::string_view value;
    WireReader entry(field.bytes);
    WireField part;
    while (entry.Next(&part)) {
      if (IsMessage(part, fields::kKey)) key = std::string(part.bytes);
      if (IsMessage(part, fields::kValue)) value = part.bytes;
    }
    PF_RETURN_IF_ERROR(entry.status());
    const auto [at, is_new] = index.emplace(key, function.attrs.size());
    if (is_new) {
      function.attrs.emplace_back(std::move(key), AttrValue::FromWire(value, owner));
    } else {
      function.attrs[at->second].second = AttrValue::FromWire(value, owner);
    }
  }
  PF_RETURN_IF_ERROR(reader.status());
  return function;
}

std::string EncodeFunction(const FunctionRef& function) {
  std::string encoded;
  AppendBytesField(fields::kFunctionName, function.name, &encoded);
  for (const auto& [key, value] : function.attrs) {
    std::string entry;
    AppendBytesField(fields::kKey, key, &entry);
    AppendBytesField(fields::kValue, value.Encoded(), &entry);
    AppendBytesField(fields::kFunctionAttr, entry, &encoded);
  }
  return encoded;
}

// Visits the three kinds of messages that contain attribute values. The recursion depth is bounded by kMaxNesting.
class FunctionVisitor {
 public:
  explicit FunctionVisitor(const std::function<void(absl::string_view)>& visit) : visit_(visit) {}

  absl::Status Value(absl::string_view bytes, int depth) {
    return ForEachField(bytes, [&](const WireField& field) -> absl::Status {
      if (IsMessage(field, kFunctionField)) return Function(field.bytes, depth);
      if (!IsMessage(field, kListField)) return absl::OkStatus();
      return ForEachField(field.bytes, [&](const WireField& entry) {
        return IsMessage(entry, fields::kListFunction) ? Function(entry.bytes, depth) : absl::OkStatus();
      });
    });
  }

 private:
  absl::Status Function(absl::string_view bytes, int depth) {
    if (depth >= kMaxNesting) return TooDeep();
    absl::string_view name;
    PF_RETURN_IF_ERROR(ForEachField(bytes, [&](const WireField& field) -> absl::Status {
      if (IsMessage(field, fields::kFunctionName)) name = field.bytes;
      if (!IsMessage(field, fields::kFunctionAttr)) return absl::OkStatus();
      return ForEachField(field.bytes, [&](const WireField& part) {
        return IsMessage(part, fields::kValue) ? Value(part.bytes, depth + 1) : absl::OkStatus();
      });
    }));
    visit_(name);
    return absl::OkStatus();
  }

  const std::function<void(absl::string_view)>& visit_;
};

// Copies messages and replaces placeholders. The recursion depth is bounded by kMaxNesting.
class Substitution {
 public:
  Substitution(const std::function<const AttrValue*(absl::string_view)>& find, int64_t* budget)
      : find_(find), budget_(budget) {}

  // Copies a message of type AttrValue.
  absl::Status Value(absl::string_view bytes, int depth, std::string* out) {
    WireReader reader(bytes);
    WireField field;
    while (reader.Next(&field)) {
      if (IsMessage(field, kPlaceholderField)) {
        const AttrValue* value = find_(field.bytes);
        if (value == nullptr) return Missing(field.bytes);
        PF_RETURN_IF_ERROR(Spend(value->EncodedSize()));
        absl::StrAppend(out, value->Encoded());
      } else if (IsMessage(field, kFunctionField)) {
        std::string function;
        PF_RETURN_IF_ERROR(Function(field.bytes, depth, &function));
        AppendBytesField(kFunctionField, function, out);
      } else if (IsMessage(field, kListField)) {
        std::string list;
        PF_RETURN_IF_ERROR(List(field.bytes, depth, &list));
        AppendBytesField(kListField, list, out);
      } else {
        PF_RETURN_IF_ERROR(Copy(field.whole, out));
      }
    }
    return reader.status();
  }

  static absl::Status Missing(absl::string_view name) {
    constexpr size_t kShown = 100;
    return absl::InvalidArgumentError(
        absl::StrCat("refers to the caller's attr '", name.substr(0, kShown), "', which is not set"));
  }

 private:
  absl::Status Spend(size_t bytes) {
    *budget_ -= static_cast<int64_t>(bytes);
    if (*budget_ >= 0) return absl::OkStatus();
    return absl::ResourceExhaustedError("the attribute values passed by callers have too many bytes in total");
  }

  absl::Status Copy(absl::string_view bytes, std::string* out) {
    PF_RETURN_IF_ERROR(Spend(bytes.size()));
    absl::StrAppend(out, bytes);
    return absl::OkStatus();
  }

  absl::Status List(absl::string_view bytes, int depth, std::string* out) {
    WireReader reader(bytes);
    WireField field;
    while (reader.Next(&field)) {
      if (!IsMessage(field, fields::kListFunction)) {
        PF_RETURN_IF_ERROR(Copy(field.whole, out));
        continue;
      }
      std::string function;
      PF_RETURN_IF_ERROR(Function(field.bytes, depth, &function));
      AppendBytesField(fields::kListFunction, function, out);
    }
    return reader.status();
  }

  absl::Status Function(absl::string_view bytes, int depth, std::string* out) {
    if (depth >= kMaxNesting) return TooDeep();
    WireReader reader(bytes);
    WireField field;
    while (reader.Next(&field)) {
      if (!IsMessage(field, fields::kFunctionAttr)) {
        PF_RETURN_IF_ERROR(Copy(field.whole, out));
        continue;
      }
      std::string entry;
      WireReader parts(field.bytes);
      WireField part;
      while (parts.Next(&part)) {
        if (!IsMessage(part, fields::kValue)) {
          PF_RETURN_IF_ERROR(Copy(part.whole, &entry));
          continue;
        }
        std::string value;
        PF_RETURN_IF_ERROR(Value(part.bytes, depth + 1, &value));
        AppendBytesField(fields::kValue, value, &entry);
      }
      PF_RETURN_IF_ERROR(parts.status());
      AppendBytesField(fields::kFunctionAttr, entry, out);
    }
    return reader.status();
  }

  const std::function<const AttrValue*(absl::string_view)>& find_;
  int64_t* budget_;
};

// Returns whether the encoded value may hold a placeholder inside a function. The result false is exact.
absl::StatusOr<bool> NamesFunctionsWithAttrs(absl::string_view bytes) {
  WireReader reader(bytes);
  WireField field;
  while (reader.Next(&field)) {
    if (!IsMessage(field, kFunctionField) && !IsMessage(field, kListField)) continue;
    const uint32_t wanted = field.number == kFunctionField ? uint32_t{fields::kFunctionAttr} : fields::kListFunction;
    WireReader inner(field.bytes);
    WireField part;
    while (inner.Next(&part)) {
      if (IsMessage(part, wanted)) return true;
    }
    PF_RETURN_IF_ERROR(inner.status());
  }
  PF_RETURN_IF_ERROR(reader.status());
  return false;
}

}  // namespace

AttrValue AttrValue::Function(const FunctionRef& function) {
  std::string encoded;
  AppendBytesField(kFunctionField, EncodeFunction(function), &encoded);
  return Own(std::move(encoded));
}

AttrValue AttrValue::FunctionList(absl::Span<const FunctionRef> functions) {
  std::string content, encoded;
  for (const FunctionRef& function : functions) {
    AppendBytesField(fields::kListFunction, EncodeFunction(function), &content);
  }
  AppendBytesField(kListField, content, &encoded);
  return Own(std::move(encoded));
}

absl::StatusOr<FunctionRef> AttrValue::AsFunction() const {
  WireField field;
  auto merged = std::make_shared<std::string>();
  PF_RETURN_IF_ERROR(Find(Kind::kFunction, &field, merged.get()));
  return ParseFunction(field.bytes, merged->empty() ? owner_ : Owner(merged));
}

absl::StatusOr<std::vector<FunctionRef>> AttrValue::AsFunctionList() const {
  WireField list;
  auto merged = std::make_shared<std::string>();
  PF_RETURN_IF_ERROR(Find(Kind::kList, &list, merged.get()));
  const Owner owner = merged->empty() ? owner_ : Owner(merged);
  std::vector<FunctionRef> functions;
  WireReader reader(list.bytes);
  WireField field;
  while (reader.Next(&field)) {
    if (!IsMessage(field, fields::kListFunction)) continue;
    PF_ASSIGN_OR_RETURN(functions.emplace_back(), ParseFunction(field.bytes, owner));
  }
  PF_RETURN_IF_ERROR(reader.status());
  return functions;
}

absl::StatusOr<std::string> AttrValue::AsPlaceholder() const {
  WireField field;
  PF_RETURN_IF_ERROR(Find(Kind::kPlaceholder, &field, nullptr));
  return std::string(field.bytes);
}

absl::Status AttrValue::VisitFunctions(const std::function<void(absl::string_view)>& visit) const {
  if (tensor_ != nullptr) return absl::OkStatus();
  return FunctionVisitor(visit).Value(encoded_, 0);
}

absl::StatusOr<AttrValue> AttrValue::Substitute(const std::function<const AttrValue*(absl::string_view)>& find,
                                                int64_t* budget) const {
  if (tensor_ != nullptr) return *this;
  if (kind() == Kind::kPlaceholder) {
    PF_ASSIGN_OR_RETURN(const std::string name, AsPlaceholder());
    const AttrValue* value = find(name);
    if (value == nullptr) return Substitution::Missing(name);
    return *value;
  }
  PF_ASSIGN_OR_RETURN(const bool may_nest, NamesFunctionsWithAttrs(encoded_));
  if (!may_nest) return *this;
  std::string encoded;
  PF_RETURN_IF_ERROR(Substitution(find, budget).Value(encoded_, 0, &encoded));
  if (encoded == encoded_) return *this;
  return Own(std::move(encoded));
}

}  // namespace permafrost
