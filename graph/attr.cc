// Implements AttrValue: encoding and decoding of attribute values. Field numbers:
// tensorflow/core/framework/attr_value.proto.
#include "graph/attr.h"

#include <cstring>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "graph/wire_format/tensor_proto.h"

namespace permafrost {
namespace {

using Kind = AttrValue::Kind;

uint32_t Number(Kind kind) { return static_cast<uint32_t>(kind); }

WireType ExpectedWireType(Kind kind) {
  switch (kind) {
    case Kind::kInt:
    case Kind::kBool:
    case Kind::kType:
      return WireType::kVarint;
    case Kind::kFloat:
      return WireType::kFixed32;
    default:
      return WireType::kLengthDelimited;
  }
}

// True for members that are messages. Two occurrences of such a member merge.
bool IsMessage(Kind kind) {
  return kind == Kind::kList || kind == Kind::kShape || kind == Kind::kTensor || kind == Kind::kFunction;
}

uint32_t FloatBits(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  return bits;
}

float FloatFromBits(uint64_t bits) {
  const uint32_t narrow = static_cast<uint32_t>(bits);
  float value;
  std::memcpy(&value, &narrow, sizeof(value));
  return value;
}

// Calls f(field) for each entry of `kind` in a list value. Entries of packed lists are passed as varint or fixed32
// fields.
absl::Status ForEachInList(absl::string_view list, Kind kind, absl::FunctionRef<absl::Status(const WireField&)> f) {
  WireReader reader(list);
  WireField field;
  while (reader.Next(&field)) {
    if (field.number != Number(kind)) continue;
    const WireType expected = ExpectedWireType(kind);
    if (field.type == expected) {
      PF_RETURN_IF_ERROR(f(field));
    } else if (field.type == WireType::kLengthDelimited && expected == WireType::kVarint) {
      absl::string_view packed = field.bytes;
      bool error = false;
      WireField entry;
      while (NextPackedVarint(&packed, &entry.value, &error)) PF_RETURN_IF_ERROR(f(entry));
      if (error) return absl::DataLossError("the packed list is truncated within a number");
    } else if (field.type == WireType::kLengthDelimited && expected == WireType::kFixed32) {
      absl::string_view packed = field.bytes;
      if (packed.size() % 4 != 0) return absl::DataLossError("the packed list of floats is truncated within a float");
      for (; !packed.empty(); packed.remove_prefix(4)) {
        uint32_t bits;
        std::memcpy(&bits, packed.data(), 4);
        WireField entry;
        entry.value = bits;
        PF_RETURN_IF_ERROR(f(entry));
      }
    }
  }
  return reader.status();
}

// Encodes an AttrValue that holds a number.
std::string EncodeVarint(Kind kind, uint64_t value) {
  std::string encoded;
  AppendVarintField(Number(kind), value, &encoded);
  return encoded;
}

// Encodes an AttrValue that holds a list with this content.
std::string EncodeList(absl::string_view content) {
  std::string encoded;
  AppendBytesField(Number(Kind::kList), content, &encoded);
  return encoded;
}

// Encodes a list of numbers in packed form, as proto3 does.
template <typename Values, typename ToBits>
std::string EncodeVarintList(Kind kind, const Values& values, ToBits to_bits) {
  if (values.empty()) return EncodeList("");
  std::string packed, content;
  for (const auto& value : values) AppendVarint(to_bits(value), &packed);
  AppendBytesField(Number(kind), packed, &content);
  return EncodeList(content);
}

}  // namespace

absl::string_view KindName(Kind kind) {
  switch (kind) {
    case Kind::kNone:
      return "none";
    case Kind::kList:
      return "list";
    case Kind::kString:
      return "string";
    case Kind::kInt:
      return "int";
    case Kind::kFloat:
      return "float";
    case Kind::kBool:
      return "bool";
    case Kind::kType:
      return "type";
    case Kind::kShape:
      return "shape";
    case Kind::kTensor:
      return "tensor";
    case Kind::kPlaceholder:
      return "placeholder";
    case Kind::kFunction:
      return "function";
  }
  return "unknown";
}

AttrValue AttrValue::FromWire(absl::string_view encoded, Owner owner) {
  AttrValue value;
  value.encoded_ = encoded;
  value.owner_ = std::move(owner);
  return value;
}

AttrValue AttrValue::Own(std::string encoded) {
  auto kept = std::make_shared<const std::string>(std::move(encoded));
  const absl::string_view view = *kept;
  return FromWire(view, std::move(kept));
}

AttrValue AttrValue::Int(int64_t value) { return Own(EncodeVarint(Kind::kInt, static_cast<uint64_t>(value))); }
AttrValue AttrValue::Bool(bool value) { return Own(EncodeVarint(Kind::kBool, value ? 1 : 0)); }
AttrValue AttrValue::Type(DType value) { return Own(EncodeVarint(Kind::kType, static_cast<uint64_t>(value))); }

AttrValue AttrValue::Float(float value) {
  std::string encoded;
  AppendFixed32Field(Number(Kind::kFloat), FloatBits(value), &encoded);
  return Own(std::move(encoded));
}

AttrValue AttrValue::String(absl::string_view value) {
  std::string encoded;
  AppendBytesField(Number(Kind::kString), value, &encoded);
  return Own(std::move(encoded));
}

AttrValue AttrValue::OfShape(const Shape& value) {
  std::string encoded;
  AppendBytesField(Number(Kind::kShape), EncodeShapeProto(value), &encoded);
  return Own(std::move(encoded));
}

AttrValue AttrValue::OfTensor(Tensor tensor) {
  AttrValue value;
  value.tensor_ = std::make_shared<const Tensor>(std::move(tensor));
  return value;
}

AttrValue AttrValue::IntList(absl::Span<const int64_t> values) {
  return Own(EncodeVarintList(Kind::kInt, values, [](int64_t v) { return static_cast<uint64_t>(v); }));
}

AttrValue AttrValue::TypeList(absl::Span<const DType> values) {
  return Own(EncodeVarintList(Kind::kType, values, [](DType v) { return static_cast<uint64_t>(v); }));
}

AttrValue AttrValue::StringList(absl::Span<const std::string> values) {
  std::string content;
  for (const std::string& value : values) AppendBytesField(Number(Kind::kString), value, &content);
  return Own(EncodeList(content));
}

AttrValue AttrValue::ShapeList(absl::Span<const Shape> values) {
  std::string content;
  for (const Shape& value : values) AppendBytesField(Number(Kind::kShape), EncodeShapeProto(value), &content);
  return Own(EncodeList(content));
}

AttrValue AttrValue::FloatList(absl::Span<const float> values) {
  std::string content;
  if (!values.empty()) {
    AppendBytesField(Number(Kind::kFloat),
                     absl::string_view(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)),
                     &content);
  }
  return Own(EncodeList(content));
}

Kind AttrValue::kind() const {
  if (tensor_ != nullptr) return Kind::kTensor;
  Kind found = Kind::kNone;
  WireReader reader(encoded_);
  WireField field;
  while (reader.Next(&field)) {
    const Kind candidate = static_cast<Kind>(field.number);
    if (field.number >= 1 && field.number <= 10 && field.type == ExpectedWireType(candidate)) found = candidate;
  }
  return found;
}

absl::Status AttrValue::WrongKind(Kind expected) const {
  return absl::InvalidArgumentError(
      absl::StrCat("has a value of kind ", KindName(kind()), ", expected ", KindName(expected)));
}

absl::Status AttrValue::Find(Kind wanted, WireField* found, std::string* merged) const {
  // Fast path: nearly every message consists of just that member.
  WireReader only(encoded_);
  if (only.Next(found) && found->number == Number(wanted) && found->type == ExpectedWireType(wanted) &&
      only.offset() == encoded_.size()) {
    return absl::OkStatus();
  }
  Kind last = Kind::kNone;
  bool is_merged = false;
  WireReader reader(encoded_);
  WireField field;
  while (reader.Next(&field)) {
    const Kind candidate = static_cast<Kind>(field.number);
    if (field.number < 1 || field.number > 10 || field.type != ExpectedWireType(candidate)) continue;
    if (candidate == wanted) {
      if (last == wanted && IsMessage(wanted)) {
        if (!is_merged) merged->assign(found->bytes.data(), found->bytes.size());
        is_merged = true;
        merged->append(field.bytes.data(), field.bytes.size());
      } else {
        // A later member of another kind replaces this one. `*merged` is cleared because `*found` may refer to it.
        if (is_merged) merged->clear();
        is_merged = false;
        *found = field;
      }
    }
    last = candidate;
  }
  PF_RETURN_IF_ERROR(reader.status());
  if (is_merged) found->bytes = *merged;
  return last == wanted ? absl::OkStatus() : WrongKind(wanted);
}

absl::StatusOr<int64_t> AttrValue::AsInt() const {
  WireField field;
  PF_RETURN_IF_ERROR(Find(Kind::kInt, &field, nullptr));
  return static_cast<int64_t>(field.value);
}

absl::StatusOr<float> AttrValue::AsFloat() const {
  WireField field;
  PF_RETURN_IF_ERROR(Find(Kind::kFloat, &field, nullptr));
  return FloatFromBits(field.value);
}

absl::StatusOr<bool> AttrValue::AsBool() const {
  WireField field;
  PF_RETURN_IF_ERROR(Find(Kind::kBool, &field, nullptr));
  return field.value != 0;
}

absl::StatusOr<absl::string_view> AttrValue::AsString() const {
  WireField field;
  PF_RETURN_IF_ERROR(Find(Kind::kString, &field, nullptr));
  return field.bytes;
}

absl::StatusOr<DType> AttrValue::AsType() const {
  WireField field;
  PF_RETURN_IF_ERROR(Find(Kind::kType, &field, nullptr));
  return static_cast<DType>(static_cast<int32_t>(field.value));
}

absl::StatusOr<Shape> AttrValue::AsShape() const {
  WireField field;
  std::string merged;
  PF_RETURN_IF_ERROR(Find(Kind::kShape, &field, &merged));
  return ParseShapeProto(field.bytes);
}

absl::StatusOr<Tensor> AttrValue::AsTensor() const {
  if (tensor_ != nullptr) return *tensor_;
  WireField field;
  std::string merged;
  PF_RETURN_IF_ERROR(Find(Kind::kTensor, &field, &merged));
  if (merged.empty()) return ParseTensorProto(field.bytes, owner_);
  const auto kept = std::make_shared<const std::string>(std::move(merged));
  return ParseTensorProto(*kept, kept);
}

absl::Status AttrValue::TensorTypeAndShape(DType* dtype, Shape* shape) const {
  return ReadTensorHeader(dtype, shape, /*check=*/false);
}

absl::Status AttrValue::CheckTensor(DType* dtype, Shape* shape) const {
  return ReadTensorHeader(dtype, shape, /*check=*/true);
}

absl::Status AttrValue::ReadTensorHeader(DType* dtype, Shape* shape, bool check) const {
  if (tensor_ != nullptr) {
    *dtype = tensor_->dtype();
    *shape = tensor_->shape();
    return absl::OkStatus();
  }
  WireField field;
  std::string merged;
  PF_RETURN_IF_ERROR(Find(Kind::kTensor, &field, &merged));
  TensorHeader header;
  if (check) {
    PF_RETURN_IF_ERROR(CheckTensorProto(field.bytes, &header));
  } else {
    PF_ASSIGN_OR_RETURN(header, ParseTensorHeader(field.bytes));
  }
  *dtype = header.dtype;
  *shape = std::move(header.shape);
  return absl::OkStatus();
}

template <typename T, typename Decode>
absl::StatusOr<std::vector<T>> AttrValue::AsList(Kind kind, Decode decode) const {
  WireField list;
  std::string merged;
  PF_RETURN_IF_ERROR(Find(Kind::kList, &list, &merged));
  std::vector<T> values;
  PF_RETURN_IF_ERROR(ForEachInList(list.bytes, kind, [&](const WireField& field) -> absl::Status {
    PF_ASSIGN_OR_RETURN(T value, absl::StatusOr<T>(decode(field)));
    values.push_back(std::move(value));
    return absl::OkStatus();
  }));
  return values;
}

absl::StatusOr<std::vector<int64_t>> AttrValue::AsIntList() const {
  return AsList<int64_t>(Kind::kInt, [](const WireField& field) { return static_cast<int64_t>(field.value); });
}

absl::StatusOr<std::vector<float>> AttrValue::AsFloatList() const {
  return AsList<float>(Kind::kFloat, [](const WireField& field) { return FloatFromBits(field.value); });
}

absl::StatusOr<std::vector<bool>> AttrValue::AsBoolList() const {
  return AsList<bool>(Kind::kBool, [](const WireField& field) { return field.value != 0; });
}

absl::StatusOr<std::vector<std::string>> AttrValue::AsStringList() const {
  return AsList<std::string>(Kind::kString, [](const WireField& field) { return std::string(field.bytes); });
}

absl::StatusOr<std::vector<DType>> AttrValue::AsTypeList() const {
  return AsList<DType>(Kind::kType,
                       [](const WireField& field) { return static_cast<DType>(static_cast<int32_t>(field.value)); });
}

absl::StatusOr<std::vector<Shape>> AttrValue::AsShapeList() const {
  return AsList<Shape>(Kind::kShape, [](const WireField& field) { return ParseShapeProto(field.bytes); });
}

absl::StatusOr<std::string> AttrValue::AsFunctionName() const {
  constexpr uint32_t kNameField = 1;  // NameAttrList.name
  WireField function;
  std::string merged;
  PF_RETURN_IF_ERROR(Find(Kind::kFunction, &function, &merged));
  std::string name;
  WireReader reader(function.bytes);
  WireField field;
  while (reader.Next(&field)) {
    if (field.number == kNameField && field.type == WireType::kLengthDelimited) name = std::string(field.bytes);
  }
  PF_RETURN_IF_ERROR(reader.status());
  return name;
}

size_t AttrValue::EncodedSize() const {
  return tensor_ == nullptr ? encoded_.size() : BytesFieldSize(Number(Kind::kTensor), TensorProtoSize(*tensor_));
}

absl::Status AttrValue::WriteTo(ByteSink* sink) const {
  if (tensor_ == nullptr) return sink->Append(encoded_);
  std::string prefix;
  AppendLengthPrefix(Number(Kind::kTensor), TensorProtoSize(*tensor_), &prefix);
  PF_RETURN_IF_ERROR(sink->Append(prefix));
  return WriteTensorProto(*tensor_, sink);
}

std::string AttrValue::Encoded() const {
  StringSink sink;
  (void)WriteTo(&sink);  // A StringSink does not fail.
  return sink.Release();
}

}  // namespace permafrost
