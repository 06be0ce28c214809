// Implements TensorProto and TensorShapeProto. Field numbers: tensorflow/core/framework/tensor.proto and
// tensor_shape.proto.
#include "graph/wire_format/tensor_proto.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/base/selection.h"
#include "graph/base/status.h"

namespace permafrost {
namespace {

constexpr bool kHoldsStrings = (selection::kTypesHere & selection::SetOf(static_cast<int>(DType::kString))) != 0;

enum TensorField : uint32_t {
  kDType = 1,
  kTensorShape = 2,
  kTensorContent = 4,
  kFloatVal = 5,
  kDoubleVal = 6,
  kIntVal = 7,
  kStringVal = 8,
  kScomplexVal = 9,
  kInt64Val = 10,
  kBoolVal = 11,
  kDcomplexVal = 12,
  kHalfVal = 13,
  kResourceVal = 14,
  kVariantVal = 15,
  kUint32Val = 16,
  kUint64Val = 17,
};

enum ShapeField : uint32_t { kDim = 2, kUnknownRank = 3 };
enum DimField : uint32_t { kDimSize = 1 };

constexpr int kMostDims = 254;  // TensorFlow's limit.

// Returns the typed list that holds the elements of a dtype in place of tensor_content.
uint32_t ValueField(DType dtype) {
  switch (dtype) {
#define DTYPE(enumerator, number, text, type, field) \
  case DType::enumerator:                            \
    return field;
#include "graph/dtypes.def"
#undef DTYPE
    case DType::kInvalid:
      break;
  }
  return 0;
}

// Converts a list entry to an element component. Complex lists hold two components per element.
template <typename T>
T FromBits(uint64_t bits) {
  if constexpr (std::is_same_v<T, float>) {
    const uint32_t narrow = static_cast<uint32_t>(bits);
    float value;
    std::memcpy(&value, &narrow, sizeof(value));
    return value;
  } else if constexpr (std::is_same_v<T, double>) {
    double value;
    std::memcpy(&value, &bits, sizeof(value));
    return value;
  } else if constexpr (std::is_same_v<T, bool>) {
    return bits != 0;
  } else if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>) {
    return T{static_cast<uint16_t>(bits)};
  } else if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(bits);
  } else {
    return T{static_cast<decltype(T::value)>(bits)};  // A quantised code.
  }
}

template <typename T>
struct ComponentOf {
  using type = T;
  static constexpr size_t kPerElement = 1;
};
template <typename T>
struct ComponentOf<std::complex<T>> {
  using type = T;
  static constexpr size_t kPerElement = 2;
};

// Collects up to `wanted` entries of field `number`, packed or not. Further entries are checked but dropped, as in
// TensorFlow.
template <typename T>
absl::Status CollectValues(absl::string_view encoded, uint32_t number, size_t wanted, std::vector<T>* values) {
  constexpr bool kFixed = std::is_floating_point_v<T>;
  constexpr WireType kUnpacked = !kFixed ? WireType::kVarint : sizeof(T) == 4 ? WireType::kFixed32 : WireType::kFixed64;
  WireReader reader(encoded);
  WireField field;
  while (reader.Next(&field)) {
    if (field.number != number) continue;
    if (field.type != WireType::kLengthDelimited) {
      // protobuf treats a field of another wire type as an unknown field.
      if (field.type == kUnpacked && values->size() < wanted) values->push_back(FromBits<T>(field.value));
      continue;
    }
    absl::string_view list = field.bytes;
    if constexpr (kFixed) {
      if (list.size() % sizeof(T) != 0)
        return absl::DataLossError("a packed list of a tensor is truncated within a number");
      const size_t count = std::min(list.size() / sizeof(T), wanted - values->size());
      const size_t start = values->size();
      values->resize(start + count);
      if (count > 0) std::memcpy(values->data() + start, list.data(), count * sizeof(T));
    } else {
      uint64_t bits;
      bool error = false;
      while (NextPackedVarint(&list, &bits, &error)) {
        if (values->size() < wanted) values->push_back(FromBits<T>(bits));
      }
      if (error) return absl::DataLossError("a packed list of a tensor is truncated within a number");
    }
  }
  return reader.status();
}

// Policy for a list that is shorter than the shape.
enum class ShortList { kRepeatLast, kRefuse };

absl::Status ListIsShort(size_t given, size_t wanted) {
  return absl::DataLossError(absl::StrCat("a tensor's list has ", given, " values, expected ", wanted));
}

template <typename T>
absl::StatusOr<Tensor> ExpandValues(absl::string_view encoded, DType dtype, Shape shape, size_t count,
                                    ShortList short_list) {
  using Component = typename ComponentOf<T>::type;
  using Stored = std::conditional_t<std::is_same_v<Component, bool>, uint8_t, Component>;
  constexpr size_t kPerElement = ComponentOf<T>::kPerElement;
  std::vector<Stored> values;
  PF_RETURN_IF_ERROR(CollectValues<Stored>(encoded, ValueField(dtype), count * kPerElement, &values));
  if (short_list == ShortList::kRefuse && values.size() < count * kPerElement) {
    return ListIsShort(values.size(), count * kPerElement);
  }
  if constexpr (std::is_same_v<Component, bool>) {
    for (Stored& value : values) value = value != 0;
  }
  char* data;
  PF_ASSIGN_OR_RETURN(Tensor tensor, Tensor::Allocate(dtype, std::move(shape), &data));
  const size_t element_size = sizeof(Stored) * kPerElement;
  const size_t given = values.size() / kPerElement;
  if (given == 0) {
    std::memset(data, 0, count * element_size);
    return tensor;
  }
  std::memcpy(data, values.data(), given * element_size);
  const char* last = data + (given - 1) * element_size;
  for (size_t i = given; i < count; ++i) std::memcpy(data + i * element_size, last, element_size);
  return tensor;
}

// Strings are in string_val, or in tensor_content as all lengths (varints) followed by all characters.
absl::StatusOr<Tensor> ParseStrings(absl::string_view encoded, absl::string_view content, Shape shape, size_t count,
                                    ShortList short_list) {
  std::vector<std::string> strings;
  if (!content.empty()) {
    std::vector<uint64_t> lengths;
    absl::string_view rest = content;
    uint64_t length;
    bool error = false;
    while (lengths.size() < count && NextPackedVarint(&rest, &length, &error)) lengths.push_back(length);
    if (error || lengths.size() != count)
      return absl::DataLossError("the content of a string tensor is truncated within its lengths");
    for (const uint64_t each : lengths) {
      if (each > rest.size())
        return absl::DataLossError("the content of a string tensor is shorter than the sum of its lengths");
      strings.emplace_back(rest.substr(0, each));
      rest.remove_prefix(each);
    }
    return Tensor::FromStrings(std::move(shape), std::move(strings));
  }
  WireReader reader(encoded);
  WireField field;
  while (reader.Next(&field)) {
    if (field.number == kStringVal && field.type == WireType::kLengthDelimited && strings.size() < count) {
      strings.emplace_back(field.bytes);
    }
  }
  PF_RETURN_IF_ERROR(reader.status());
  if (short_list == ShortList::kRefuse && strings.size() < count) return ListIsShort(strings.size(), count);
  const std::string last = strings.empty() ? std::string() : strings.back();
  if (count > strings.size()) {
    int64_t expanded;
    if (__builtin_mul_overflow(static_cast<int64_t>(count), static_cast<int64_t>(sizeof(std::string) + last.size()),
                               &expanded) ||
        expanded > kMaxExpandedBytes) {
      return absl::ResourceExhaustedError(absl::StrCat("a string tensor repeats its last value ",
                                                       count - strings.size(), " times, which exceeds the limit of ",
                                                       kMaxExpandedBytes, " bytes"));
    }
    strings.resize(count, last);
  }
  return Tensor::FromStrings(std::move(shape), std::move(strings));
}

// Decodes the typed list of `encoded`. REQUIRES: elements of the type have a fixed size.
absl::StatusOr<Tensor> ParseList(absl::string_view encoded, DType dtype, Shape shape, size_t count,
                                 ShortList short_list) {
  absl::StatusOr<Tensor> tensor = absl::InternalError("unknown type");
  DispatchOn<float, double, int32_t, uint8_t, int16_t, int8_t, std::complex<float>, int64_t, bool, QInt8, QUint8,
             QInt32, BFloat16, QInt16, QUint16, uint16_t, std::complex<double>, Half, uint32_t, uint64_t>(
      dtype, [&](auto tag) {
        using T = typename decltype(tag)::type;
        tensor = ExpandValues<T>(encoded, dtype, std::move(shape), count, short_list);
      });
  return tensor;
}

absl::Status HasNoElements(DType dtype) {
  return absl::InvalidArgumentError(
      absl::StrCat("a tensor has the type ", DTypeName(dtype), ", whose elements cannot be read"));
}

}  // namespace

absl::StatusOr<Shape> ParseShapeProto(absl::string_view encoded) {
  Shape shape;
  bool unknown_rank = false;
  WireReader reader(encoded);
  WireField field;
  while (reader.Next(&field)) {
    if (field.number == kUnknownRank && field.type == WireType::kVarint) {
      unknown_rank = field.value != 0;
    } else if (field.number == kDim && field.type == WireType::kLengthDelimited) {
      int64_t size = 0;
      WireReader dim_reader(field.bytes);
      WireField dim_field;
      while (dim_reader.Next(&dim_field)) {
        if (dim_field.number == kDimSize && dim_field.type == WireType::kVarint) {
          size = static_cast<int64_t>(dim_field.value);
        }
      }
      PF_RETURN_IF_ERROR(dim_reader.status());
      if (size < kUnknownDim) {
        return absl::InvalidArgumentError(absl::StrCat("a shape has the dimension ", size, ", expected -1 or more"));
      }
      if (shape.rank() == kMostDims) {
        return absl::InvalidArgumentError(absl::StrCat("a shape has more than ", kMostDims, " dimensions"));
      }
      shape.AddDim(size);
    }
  }
  PF_RETURN_IF_ERROR(reader.status());
  return unknown_rank ? Shape::UnknownRank() : shape;
}

std::string EncodeShapeProto(const Shape& shape) {
  std::string encoded;
  if (!shape.has_rank()) {
    AppendVarintField(kUnknownRank, 1, &encoded);
    return encoded;
  }
  for (const int64_t dim : shape.dims()) {
    std::string encoded_dim;
    if (dim != 0) AppendVarintField(kDimSize, static_cast<uint64_t>(dim), &encoded_dim);
    AppendBytesField(kDim, encoded_dim, &encoded);
  }
  return encoded;
}

namespace {

// Parses the header, and returns tensor_content in *content.
absl::StatusOr<TensorHeader> ParseHeaderAndContent(absl::string_view encoded, absl::string_view* content) {
  TensorHeader header;
  std::string merged_shape;  // Occurrences of a message field are merged by concatenation.
  absl::string_view shape;
  WireReader reader(encoded);
  WireField field;
  while (reader.Next(&field)) {
    if (field.number == kDType && field.type == WireType::kVarint) {
      header.dtype = static_cast<DType>(static_cast<int32_t>(field.value));
    } else if (field.number == kTensorShape && field.type == WireType::kLengthDelimited) {
      if (shape.empty()) {
        shape = field.bytes;
      } else {
        if (merged_shape.empty()) merged_shape = std::string(shape);
        merged_shape.append(field.bytes.data(), field.bytes.size());
        shape = merged_shape;
      }
    } else if (field.number == kTensorContent && field.type == WireType::kLengthDelimited) {
      *content = field.bytes;
    }
  }
  PF_RETURN_IF_ERROR(reader.status());
  PF_ASSIGN_OR_RETURN(header.shape, ParseShapeProto(shape));
  return header;
}

}  // namespace

absl::StatusOr<TensorHeader> ParseTensorHeader(absl::string_view encoded) {
  absl::string_view content;
  return ParseHeaderAndContent(encoded, &content);
}

absl::Status CheckTensorProto(absl::string_view encoded, TensorHeader* header) {
  absl::string_view content;
  PF_ASSIGN_OR_RETURN(*header, ParseHeaderAndContent(encoded, &content));
  if (!header->shape.IsFullyKnown()) {
    return absl::InvalidArgumentError(
        absl::StrCat("a tensor has the shape ", header->shape.ToString(), ", expected one without unknown dimensions"));
  }
  PF_ASSIGN_OR_RETURN(const int64_t count, header->shape.CheckedNumElements());
  const bool is_opaque =
      header->dtype == DType::kString || header->dtype == DType::kResource || header->dtype == DType::kVariant;
  if (is_opaque) return absl::OkStatus();
  const size_t element_size = SizeOf(header->dtype);
  if (element_size == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("a tensor has the type ", DTypeName(header->dtype), ", which does not exist"));
  }
  int64_t size;
  const bool too_large = __builtin_mul_overflow(count, static_cast<int64_t>(element_size), &size);
  if (too_large || (!content.empty() && static_cast<uint64_t>(size) != content.size())) {
    return absl::InvalidArgumentError(absl::StrCat("a ", DTypeName(header->dtype), " tensor of shape ",
                                                   header->shape.ToString(), " has ", content.size(),
                                                   " bytes, expected ", count, " elements of ", element_size));
  }
  return absl::OkStatus();
}

absl::StatusOr<Tensor> ParseTensorProto(absl::string_view encoded, const Owner& owner) {
  absl::string_view content;
  PF_ASSIGN_OR_RETURN(TensorHeader header, ParseHeaderAndContent(encoded, &content));
  if (!header.shape.IsFullyKnown()) {
    return absl::InvalidArgumentError(
        absl::StrCat("a tensor has the shape ", header.shape.ToString(), ", expected one without unknown dimensions"));
  }
  PF_ASSIGN_OR_RETURN(const int64_t count, header.shape.CheckedNumElements());
  if (header.dtype == DType::kString) {
    if constexpr (!kHoldsStrings) {
      return absl::UnimplementedError(absl::StrCat("a tensor of strings", selection::kHint));
    }
    return ParseStrings(encoded, content, std::move(header.shape), static_cast<size_t>(count), ShortList::kRepeatLast);
  }
  const size_t element_size = SizeOf(header.dtype);
  if (element_size == 0) return HasNoElements(header.dtype);
  if (!content.empty()) return Tensor::FromBytes(header.dtype, std::move(header.shape), content, owner);
  int64_t size;
  if (__builtin_mul_overflow(count, static_cast<int64_t>(element_size), &size) || size > kMaxExpandedBytes) {
    return absl::ResourceExhaustedError(absl::StrCat("a tensor of shape ", header.shape.ToString(),
                                                     " repeats one value beyond the limit of ", kMaxExpandedBytes,
                                                     " bytes"));
  }
  return ParseList(encoded, header.dtype, std::move(header.shape), static_cast<size_t>(count), ShortList::kRepeatLast);
}

absl::StatusOr<Tensor> ParseTensorValues(absl::string_view encoded, DType dtype, const Shape& shape) {
  PF_ASSIGN_OR_RETURN(const int64_t signed_count, shape.CheckedNumElements());
  const auto count = static_cast<size_t>(signed_count);
  size_t bytes;
  if (__builtin_mul_overflow(count, 2 * sizeof(double), &bytes)) return ListIsShort(0, count);
  if (kHoldsStrings && dtype == DType::kString) return ParseStrings(encoded, "", shape, count, ShortList::kRefuse);
  if (SizeOf(dtype) == 0) return HasNoElements(dtype);
  return ParseList(encoded, dtype, shape, count, ShortList::kRefuse);
}

namespace {

// Encodes the TensorProto up to its payload.
std::string EncodeTensorPrefix(const Tensor& tensor) {
  std::string prefix;
  AppendVarintField(kDType, static_cast<uint64_t>(tensor.dtype()), &prefix);
  AppendBytesField(kTensorShape, EncodeShapeProto(tensor.shape()), &prefix);
  if (!tensor.bytes().empty()) AppendLengthPrefix(kTensorContent, tensor.bytes().size(), &prefix);
  return prefix;
}

}  // namespace

size_t TensorProtoSize(const Tensor& tensor) {
  size_t size = EncodeTensorPrefix(tensor).size() + tensor.bytes().size();
  if (tensor.dtype() == DType::kString) {
    for (const std::string& text : tensor.strings()) size += BytesFieldSize(kStringVal, text.size());
  }
  return size;
}

absl::Status WriteTensorProto(const Tensor& tensor, ByteSink* sink) {
  PF_RETURN_IF_ERROR(sink->Append(EncodeTensorPrefix(tensor)));
  if (tensor.dtype() == DType::kString) {
    for (const std::string& text : tensor.strings()) {
      std::string encoded;
      AppendBytesField(kStringVal, text, &encoded);
      PF_RETURN_IF_ERROR(sink->Append(encoded));
    }
    return absl::OkStatus();
  }
  return tensor.bytes().empty() ? absl::OkStatus() : sink->Append(tensor.bytes());
}

}  // namespace permafrost
