// Implements parsing of the weights manifest and decoding of the shards.
#include "io/formats/tfjs_weights.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "graph/base/status.h"
#include "graph/wire_format/node_def.h"
#include "io/checked_files.h"

namespace permafrost {
namespace {

using Kind = JsonValue::Kind;

struct NamedType {
  absl::string_view name;
  DType dtype;
};
constexpr NamedType kTypes[] = {{"float32", DType::kFloat},       {"int32", DType::kInt32}, {"bool", DType::kBool},
                                {"string", DType::kString},       {"uint8", DType::kUint8}, {"uint16", DType::kUint16},
                                {"complex64", DType::kComplex64}, {"float16", DType::kHalf}};

absl::StatusOr<DType> ParseType(absl::string_view name) {
  std::string known;
  for (const NamedType& type : kTypes) {
    if (type.name == name) return type.dtype;
    absl::StrAppend(&known, known.empty() ? "" : ", ", type.name);
  }
  return absl::InvalidArgumentError(absl::StrCat("no type ", Quoted(name), ", expected one of ", known));
}

absl::StatusOr<Shape> ParseDims(const JsonValue& entry) {
  const JsonValue* dims = entry.Find("shape");
  if (dims == nullptr || dims->kind != Kind::kArray) {
    return absl::InvalidArgumentError("member 'shape': expected an array of dimensions");
  }
  Shape shape;
  for (const JsonValue& dim : dims->items) {
    constexpr double kMost = 9007199254740992;  // 2^53: up to this value a double represents every integer.
    if (dim.kind != Kind::kNumber || !(dim.number >= 0 && dim.number <= kMost) ||
        dim.number != std::floor(dim.number)) {
      return absl::InvalidArgumentError("member 'shape': expected integers of 0 or more");
    }
    shape.AddDim(static_cast<int64_t>(dim.number));
  }
  return shape;
}

absl::StatusOr<double> NumberMember(const JsonValue& object, absl::string_view key) {
  const JsonValue* value = object.Find(key);
  if (value == nullptr || value->kind != Kind::kNumber || !std::isfinite(value->number)) {
    return absl::InvalidArgumentError(absl::StrCat("member '", key, "': expected a number"));
  }
  return value->number;
}

// Converts elements between numeric types. Integers must keep their value.
template <typename To>
absl::Status Convert(const Tensor& from, To* to) {
  const auto count = static_cast<size_t>(from.num_elements());
  if (from.dtype() == DType::kInt32) {
    if constexpr (std::is_integral_v<To>) {
      const UnalignedSpan<int32_t> values = from.elements<int32_t>();
      for (size_t i = 0; i < count; ++i) {
        const int64_t value = values[i];
        if constexpr (sizeof(To) < sizeof(int64_t)) {
          if (value < int64_t{std::numeric_limits<To>::min()} || value > int64_t{std::numeric_limits<To>::max()}) {
            return absl::InvalidArgumentError(absl::StrCat("element ", i, " is ", value,
                                                           ", which the type of the node "
                                                           "cannot represent"));
          }
        }
        to[i] = static_cast<To>(value);
      }
      return absl::OkStatus();
    }
  }
  const auto value_at = [&](size_t i) {
    return from.dtype() == DType::kHalf ? ToFloat(from.elements<Half>()[i]) : from.elements<float>()[i];
  };
  for (size_t i = 0; i < count; ++i) {
    if constexpr (std::is_same_v<To, Half>) {
      to[i] = ToHalf(value_at(i));
    } else if constexpr (std::is_same_v<To, BFloat16>) {
      to[i] = ToBFloat16(value_at(i));
    } else {
      to[i] = static_cast<To>(value_at(i));
    }
  }
  return absl::OkStatus();
}

bool IsConvertible(DType from, DType to) {
  if (from == DType::kInt32) {
    return to == DType::kInt64 || to == DType::kInt16 || to == DType::kInt8 || to == DType::kUint8 ||
           to == DType::kUint16;
  }
  return (from == DType::kFloat || from == DType::kHalf) && IsFloating(to);
}

absl::StatusOr<Tensor> Converted(const Tensor& from, DType dtype) {
  if (!IsConvertible(from.dtype(), dtype)) {
    return absl::InvalidArgumentError(
        absl::StrCat("the weight is ", DTypeName(from.dtype()), ", but the node is ", DTypeName(dtype)));
  }
  char* data = nullptr;
  PF_ASSIGN_OR_RETURN(Tensor tensor, Tensor::Allocate(dtype, from.shape(), &data));
  absl::Status status;
  DispatchOn<float, double, Half, BFloat16, int64_t, int16_t, int8_t, uint8_t, uint16_t>(dtype, [&](auto tag) {
    using To = typename decltype(tag)::type;
    status = Convert<To>(from, reinterpret_cast<To*>(data));
  });
  PF_RETURN_IF_ERROR(status);
  return tensor;
}

std::string FolderOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? "" : path.substr(0, slash + 1);
}

}  // namespace

bool StaysInFolder(absl::string_view path) {
  if (path.empty() || path[0] == '/' || path[0] == '~' || absl::StrContains(path, absl::string_view("\0", 1)) ||
      absl::StrContains(path, '\\') || absl::StrContains(path, ':')) {
    return false;
  }
  for (const absl::string_view piece : absl::StrSplit(path, '/')) {
    if (piece == "..") return false;
  }
  return true;
}

absl::StatusOr<TfjsWeights> TfjsWeights::Open(const JsonValue& manifest, FileSystem& files, const std::string& path,
                                              uint64_t most_bytes) {
  if (manifest.kind != Kind::kArray) {
    return absl::InvalidArgumentError("member 'weightsManifest': expected an array of groups");
  }
  TfjsWeights weights;
  weights.bytes_left_ = most_bytes;
  const std::string folder = FolderOf(path);
  for (size_t i = 0; i < manifest.items.size(); ++i) {
    PF_RETURN_IF_ERROR(
        Annotate(weights.AddGroup(manifest.items[i], files, folder), absl::StrCat("weightsManifest[", i, "]")));
  }
  return weights;
}

absl::StatusOr<TfjsWeights::Group> TfjsWeights::MapShards(const JsonValue& group, FileSystem& files,
                                                          const std::string& folder) {
  PF_ASSIGN_OR_RETURN(const std::vector<std::string> paths, TextsMember(group, "paths"));
  Group shards;
  uint64_t begin = 0;
  for (const std::string& path : paths) {
    if (!StaysInFolder(path)) {
      return absl::InvalidArgumentError(
          absl::StrCat("member 'paths': found ", Quoted(path), ", expected a path within the folder of the model"));
    }
    PF_ASSIGN_OR_RETURN(FileView view, MapFileIn(files, folder, path));
    const uint64_t size = view.bytes.size();
    if (size > 0) shards.push_back({begin, std::move(view)});
    begin += size;
  }
  return shards;
}

absl::Status TfjsWeights::AddGroup(const JsonValue& group, FileSystem& files, const std::string& folder) {
  if (group.kind != Kind::kObject) return absl::InvalidArgumentError("expected an object with 'paths' and 'weights'");
  PF_ASSIGN_OR_RETURN(Group mapped, MapShards(group, files, folder));
  const uint64_t group_size = mapped.empty() ? 0 : mapped.back().begin + mapped.back().view.bytes.size();
  groups_.push_back(std::move(mapped));
  const Group& shards = groups_.back();
  const JsonValue* entries = group.Find("weights");
  if (entries == nullptr || entries->kind != Kind::kArray) {
    return absl::InvalidArgumentError("member 'weights': expected an array of weights");
  }
  uint64_t at = 0;
  for (size_t i = 0; i < entries->items.size(); ++i) {
    const JsonValue& entry = entries->items[i];
    const absl::StatusOr<std::string> name = TextMember(entry, "name");
    if (!name.ok()) return Annotate(name.status(), absl::StrCat("weights[", i, "]"));
    const auto in_weight = [&](const absl::Status& status) {
      return Annotate(status, absl::StrCat("weight ", Quoted(*name)));
    };
    absl::StatusOr<Weight> weight = ParseWeight(entry);
    if (!weight.ok()) return in_weight(weight.status());
    weight->group = &shards;
    weight->begin = at;
    PF_RETURN_IF_ERROR(in_weight(Place(shards, group_size, &*weight)));
    at += weight->size;
    if (!weights_.emplace(*name, *std::move(weight)).second) {
      return in_weight(absl::InvalidArgumentError("is in the manifest twice"));
    }
  }
  if (at != group_size) {
    return absl::DataLossError(
        absl::StrCat("the shards have ", group_size, " bytes, expected the ", at, " bytes of the weights"));
  }
  return absl::OkStatus();
}

absl::StatusOr<TfjsWeights::Weight> TfjsWeights::ParseWeight(const JsonValue& entry) {
  Weight weight;
  PF_ASSIGN_OR_RETURN(const std::string type, TextMember(entry, "dtype"));
  PF_ASSIGN_OR_RETURN(weight.dtype, ParseType(type));
  PF_ASSIGN_OR_RETURN(weight.shape, ParseDims(entry));
  PF_ASSIGN_OR_RETURN(weight.num_elements, weight.shape.CheckedNumElements());
  const JsonValue* quantization = entry.Find("quantization");
  if (quantization == nullptr || quantization->kind == Kind::kNull) return weight;
  if (quantization->kind != Kind::kObject) {
    return absl::InvalidArgumentError("member 'quantization': expected an object");
  }
  const auto parse = [&]() -> absl::Status {
    Quantization codes;
    PF_ASSIGN_OR_RETURN(const std::string name, TextMember(*quantization, "dtype"));
    PF_ASSIGN_OR_RETURN(codes.codes, ParseType(name));
    if (codes.codes == DType::kHalf) {
      if (weight.dtype != DType::kFloat)
        return absl::InvalidArgumentError("float16 codes are supported only for float32");
    } else if (codes.codes == DType::kUint8 || codes.codes == DType::kUint16) {
      if (weight.dtype != DType::kFloat && weight.dtype != DType::kInt32) {
        return absl::InvalidArgumentError(absl::StrCat(name, " codes are supported only for float32 and int32"));
      }
      PF_ASSIGN_OR_RETURN(codes.scale, NumberMember(*quantization, "scale"));
      PF_ASSIGN_OR_RETURN(codes.min, NumberMember(*quantization, "min"));
    } else {
      return absl::InvalidArgumentError(absl::StrCat("codes of type ", name, ", expected uint8, uint16 or float16"));
    }
    weight.quantization = codes;
    return absl::OkStatus();
  };
  PF_RETURN_IF_ERROR(Annotate(parse(), "quantization"));
  return weight;
}

absl::Status TfjsWeights::Place(const Group& group, uint64_t group_size, Weight* weight) {
  const uint64_t left = group_size - weight->begin;
  const auto count = static_cast<uint64_t>(weight->num_elements);
  const auto too_short = [&] {
    return absl::DataLossError(absl::StrCat("byte ", weight->begin, " of the shards: the ", left,
                                            " bytes that are left do not hold its ", count, " elements"));
  };
  if (weight->dtype != DType::kString) {
    const size_t element = SizeOf(weight->quantization.has_value() ? weight->quantization->codes : weight->dtype);
    if (count > left / element) return too_short();
    weight->size = count * element;
    return absl::OkStatus();
  }
  // Each string follows its length, so the positions of strings are found only by reading.
  constexpr uint64_t kLengthSize = 4;
  if (count > left / kLengthSize) return too_short();
  uint64_t at = weight->begin;
  size_t shard = static_cast<size_t>(
      std::upper_bound(group.begin(), group.end(), at, [](uint64_t a, const Shard& s) { return a < s.begin; }) -
      group.begin());
  shard = shard == 0 ? 0 : shard - 1;
  for (uint64_t i = 0; i < count; ++i) {
    if (group_size - at < kLengthSize) return too_short();
    uint32_t length = 0;
    for (uint64_t k = 0; k < kLengthSize; ++k, ++at) {
      while (at >= group[shard].begin + group[shard].view.bytes.size()) ++shard;
      const auto byte = static_cast<uint8_t>(group[shard].view.bytes[at - group[shard].begin]);
      length |= static_cast<uint32_t>(byte) << (8 * k);
    }
    if (length > group_size - at) return too_short();
    at += length;
  }
  weight->size = at - weight->begin;
  return absl::OkStatus();
}

absl::Status TfjsWeights::Count(uint64_t bytes) {
  if (bytes > bytes_left_) {
    return absl::ResourceExhaustedError("the decoded weights exceed the size limit (max_model_bytes)");
  }
  bytes_left_ -= bytes;
  return absl::OkStatus();
}

absl::StatusOr<FileView> TfjsWeights::Bytes(const Group& group, uint64_t begin, uint64_t size) {
  if (size == 0) return FileView();
  auto shard =
      std::upper_bound(group.begin(), group.end(), begin, [](uint64_t at, const Shard& s) { return at < s.begin; });
  --shard;  // The first shard starts at 0.
  const absl::string_view first = shard->view.bytes.substr(begin - shard->begin);
  if (first.size() >= size) return FileView{first.substr(0, size), shard->view.owner};
  PF_RETURN_IF_ERROR(Count(size));
  auto joined = std::make_shared<std::string>(first);
  joined->reserve(size);
  for (++shard; joined->size() < size; ++shard) {
    const absl::string_view piece = shard->view.bytes.substr(0, size - joined->size());
    joined->append(piece.data(), piece.size());
  }
  return FileView{*joined, joined};
}

absl::StatusOr<Tensor> TfjsWeights::ReadStrings(const Weight& weight) {
  PF_ASSIGN_OR_RETURN(const FileView view, Bytes(*weight.group, weight.begin, weight.size));
  // A std::string takes more memory than a short text.
  PF_RETURN_IF_ERROR(Count(weight.size + static_cast<uint64_t>(weight.num_elements) * sizeof(std::string)));
  std::vector<std::string> texts;
  texts.reserve(static_cast<size_t>(weight.num_elements));
  absl::string_view rest = view.bytes;
  for (int64_t i = 0; i < weight.num_elements; ++i) {
    uint32_t length = 0;
    std::memcpy(&length, rest.data(), sizeof(length));
    texts.emplace_back(rest.substr(sizeof(length), length));
    rest.remove_prefix(sizeof(length) + length);
  }
  return Tensor::FromStrings(weight.shape, std::move(texts));
}

absl::StatusOr<Tensor> TfjsWeights::Dequantized(const Weight& weight, const Tensor& codes) {
  const Quantization& quantization = *weight.quantization;
  if (quantization.codes == DType::kHalf) return Converted(codes, DType::kFloat);
  char* data = nullptr;
  PF_ASSIGN_OR_RETURN(Tensor tensor, Tensor::Allocate(weight.dtype, weight.shape, &data));
  absl::Status status;
  DispatchOn<uint8_t, uint16_t>(quantization.codes, [&](auto tag) {
    using Code = typename decltype(tag)::type;
    const UnalignedSpan<Code> values = codes.elements<Code>();
    for (size_t i = 0; i < values.size(); ++i) {
      // Computed in double, as in JavaScript.
      const double value = values[i] * quantization.scale + quantization.min;
      if (weight.dtype == DType::kFloat) {
        const auto element = static_cast<float>(value);
        std::memcpy(data + i * sizeof(element), &element, sizeof(element));
        continue;
      }
      const double rounded = std::floor(value + 0.5);
      if (!(rounded >= std::numeric_limits<int32_t>::min() && rounded <= std::numeric_limits<int32_t>::max())) {
        status =
            absl::InvalidArgumentError(absl::StrCat("element ", i, " is ", value, ", which int32 cannot represent"));
        return;
      }
      const auto element = static_cast<int32_t>(rounded);
      std::memcpy(data + i * sizeof(element), &element, sizeof(element));
    }
  });
  PF_RETURN_IF_ERROR(status);
  return tensor;
}

absl::StatusOr<Tensor> TfjsWeights::Read(absl::string_view name, DType dtype) {
  const Weight& weight = weights_.find(name)->second;
  const auto read = [&]() -> absl::StatusOr<Tensor> {
    const auto count = static_cast<uint64_t>(weight.num_elements);
    if (weight.dtype == DType::kString) {
      if (dtype != DType::kString) {
        return absl::InvalidArgumentError(absl::StrCat("the weight is string, but the node is ", DTypeName(dtype)));
      }
      return ReadStrings(weight);
    }
    PF_ASSIGN_OR_RETURN(const FileView view, Bytes(*weight.group, weight.begin, weight.size));
    const DType stored = weight.quantization.has_value() ? weight.quantization->codes : weight.dtype;
    PF_ASSIGN_OR_RETURN(Tensor tensor, Tensor::FromBytes(stored, weight.shape, view.bytes, view.owner));
    if (weight.quantization.has_value()) {
      PF_RETURN_IF_ERROR(Count(count * SizeOf(weight.dtype)));
      PF_ASSIGN_OR_RETURN(tensor, Dequantized(weight, tensor));
    }
    if (tensor.dtype() == dtype) return tensor;
    PF_RETURN_IF_ERROR(Count(count * std::max<size_t>(SizeOf(dtype), 1)));
    return Converted(tensor, dtype);
  };
  absl::StatusOr<Tensor> tensor = read();
  if (!tensor.ok()) return Annotate(tensor.status(), absl::StrCat("weight ", Quoted(name)));
  return tensor;
}

}  // namespace permafrost
