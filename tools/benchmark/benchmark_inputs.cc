// Reads the flags that describe inputs, and fills tensors.
#include "tools/benchmark/benchmark_inputs.h"

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstring>
#include <limits>
#include <optional>
#include <random>
#include <type_traits>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "graph/base/nearest.h"
#include "graph/base/status.h"
#include "graph/ops/op_schema.h"
#include "runtime_check/checking/seeded_inputs.h"
#include "tools/command_line/flags.h"
#include "tools/model/input_sizes.h"
#include "tools/model/model_inputs.h"

namespace permafrost {
namespace {

// Checks the length of a list. InvalidArgument unless it has an item for each input.
absl::Status CheckCount(absl::string_view flag, size_t found, size_t expected) {
  if (found == expected) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("--", flag, " has ", found, found == 1 ? " item" : " items",
                                                 ", expected ", expected, ", one for each of --input_layer"));
}

absl::StatusOr<Shape> ParseDimensions(absl::string_view text) {
  std::vector<int64_t> dims;
  if (!text.empty()) {
    for (const absl::string_view piece : absl::StrSplit(text, ',')) {
      int64_t dim;
      if (!absl::SimpleAtoi(piece, &dim) || dim < -1) {
        return absl::InvalidArgumentError(
            absl::StrCat("found '", piece, "' in '", text, "', expected sizes separated by commas"));
      }
      if (dim == -1) {
        return absl::InvalidArgumentError(
            absl::StrCat("found -1 in '", text, "', expected a size: give the one to measure with, such as 1"));
      }
      dims.push_back(dim);
    }
  }
  Shape shape(dims);
  PF_RETURN_IF_ERROR(shape.CheckedNumElements().status());
  return shape;
}

absl::StatusOr<DType> TypeOf(const Endpoint& input) {
  PF_ASSIGN_OR_RETURN(const std::vector<DType> types, OutputTypes(*input.node));
  if (input.port < 0 || static_cast<size_t>(input.port) >= types.size()) {
    return absl::InvalidArgumentError(absl::StrCat(input.node->Describe(), " has ", types.size(), " outputs"));
  }
  return RemoveRef(types[static_cast<size_t>(input.port)]);
}

// Converts a number to an element of any numeric type.
template <typename T>
bool ParseElement(absl::string_view text, T* element) {
  if constexpr (std::is_same_v<T, bool>) {
    return absl::SimpleAtob(text, element);
  } else if constexpr (std::is_integral_v<T>) {
    int64_t wide;
    uint64_t unsigned_wide;
    if (std::is_signed_v<T>) {
      if (!absl::SimpleAtoi(text, &wide)) return false;
      *element = static_cast<T>(wide);
      return static_cast<int64_t>(*element) == wide;
    }
    if (!absl::SimpleAtoi(text, &unsigned_wide)) return false;
    *element = static_cast<T>(unsigned_wide);
    return static_cast<uint64_t>(*element) == unsigned_wide;
  } else if constexpr (std::is_same_v<T, float> || std::is_same_v<T, double>) {
    double number;
    if (!absl::SimpleAtod(text, &number)) return false;
    *element = static_cast<T>(number);
    return true;
  } else if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>) {
    float number;
    if (!absl::SimpleAtof(text, &number)) return false;
    if constexpr (std::is_same_v<T, Half>) *element = ToHalf(number);
    if constexpr (std::is_same_v<T, BFloat16>) *element = ToBFloat16(number);
    return true;
  } else {
    return ParseElement(text, &element->value);
  }
}

absl::StatusOr<Tensor> TensorOfValues(DType dtype, const Shape& shape, absl::string_view text) {
  const std::vector<absl::string_view> pieces = absl::StrSplit(text, ',');
  const auto room = static_cast<size_t>(shape.num_elements());
  if (pieces.size() > room) {
    return absl::InvalidArgumentError(absl::StrCat("found ", pieces.size(), " values, expected at most ", room,
                                                   ", which is what the shape ", shape.ToString(), " holds"));
  }
  if (dtype == DType::kString) {
    std::vector<std::string> strings(room);
    for (size_t i = 0; i < pieces.size(); ++i) strings[i] = std::string(pieces[i]);
    return Tensor::FromStrings(shape, std::move(strings));
  }
  char* data;
  PF_ASSIGN_OR_RETURN(const Tensor tensor, Tensor::Allocate(dtype, shape, &data));
  std::memset(data, 0, tensor.bytes().size());
  absl::Status status;
  const bool known = DispatchOn<float, double, Half, BFloat16, int8_t, uint8_t, int16_t, uint16_t, int32_t, uint32_t,
                                int64_t, uint64_t, bool, QInt8, QUint8, QInt16, QUint16, QInt32>(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    for (size_t i = 0; i < pieces.size(); ++i) {
      T element;
      if (!ParseElement(pieces[i], &element)) {
        status = absl::InvalidArgumentError(
            absl::StrCat("found '", pieces[i], "', expected a value of type ", DTypeName(dtype)));
        return;
      }
      std::memcpy(data + i * sizeof(T), &element, sizeof(T));
    }
  });
  if (!known) return absl::InvalidArgumentError(absl::StrCat("values of type ", DTypeName(dtype), " cannot be given"));
  PF_RETURN_IF_ERROR(status);
  return tensor;
}

// Reads an NPY file with that type and a compatible shape.
absl::StatusOr<Tensor> ReadArray(FileSystem& files, const std::string& path, DType dtype, const Shape& shape) {
  PF_ASSIGN_OR_RETURN(Tensor tensor, ReadNpyFile(files, path));
  if (tensor.dtype() != dtype) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", path, "' holds ", DTypeName(tensor.dtype()), ", expected ", DTypeName(dtype)));
  }
  if (!shape.IsCompatibleWith(tensor.shape())) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", path, "' has shape ", tensor.shape().ToString(), ", expected ", shape.ToString()));
  }
  return tensor;
}

// Reads a file of raw elements, as they lie in memory.
absl::StatusOr<Tensor> ReadElements(FileSystem& files, const std::string& path, DType dtype, const Shape& shape) {
  PF_ASSIGN_OR_RETURN(const FileView file, files.MapFile(path));
  absl::StatusOr<Tensor> raw = Tensor::FromBytes(dtype, shape, file.bytes, file.owner);
  PF_RETURN_IF_ERROR(Annotate(raw.status(), absl::StrCat("'", path, "'")));
  return raw;
}

// Returns, by input, the file given for it, or an empty text.
absl::StatusOr<std::vector<std::string>> FilesByInput(const std::vector<std::string>& lists,
                                                      const std::vector<Endpoint>& inputs) {
  std::vector<std::string> paths(inputs.size());
  for (const std::string& list : lists) {
    for (const std::string& piece : SplitList(list)) {
      // The name may contain a port, "x:1:photo.bin", and the path a colon, so the text is matched against the input
      // names.
      size_t chosen = inputs.size();
      for (size_t i = 0; i < inputs.size(); ++i) {
        const std::string& name = inputs[i].text;
        if (absl::StartsWith(piece, name) && piece.size() > name.size() &&
            (piece[name.size()] == '=' || piece[name.size()] == ':')) {
          if (chosen == inputs.size() || name.size() > inputs[chosen].text.size()) chosen = i;
        }
      }
      if (chosen < inputs.size()) {
        paths[chosen] = piece.substr(inputs[chosen].text.size() + 1);
        continue;
      }
      const size_t mark = piece.find_first_of("=:");
      if (mark == std::string::npos && inputs.size() == 1) {
        paths[0] = piece;
        continue;
      }
      std::vector<absl::string_view> names;
      for (const Endpoint& input : inputs) names.push_back(input.text);
      const std::string name = piece.substr(0, mark);
      const std::string suggestion = DidYouMean(name, names);
      return absl::InvalidArgumentError(absl::StrCat(
          "--input_layer_value_files: found '", piece, "', expected INPUT=FILE",
          suggestion.empty() ? absl::StrCat(" with an input of '", absl::StrJoin(names, "', '"), "'") : suggestion));
    }
  }
  return paths;
}

// Inclusive limits of random numbers.
struct ValueRange {
  double low, high;
};

// Returns, by input, the range given for it.
absl::StatusOr<std::vector<std::optional<ValueRange>>> RangesByInput(const std::optional<std::string>& text,
                                                                     const std::vector<Endpoint>& inputs) {
  std::vector<std::optional<ValueRange>> ranges(inputs.size());
  if (!text.has_value() || text->empty()) return ranges;
  std::vector<absl::string_view> names;
  for (const Endpoint& input : inputs) names.push_back(input.text);
  // The name of an input may have a port: "x:1,0,5".
  std::vector<std::string> items;
  for (const absl::string_view piece : absl::StrSplit(*text, ':')) {
    const bool continues = !items.empty() && !absl::StrContains(items.back(), ',');
    if (continues) {
      absl::StrAppend(&items.back(), ":", piece);
    } else {
      items.emplace_back(piece);
    }
  }
  for (const std::string& item : items) {
    const std::vector<std::string> parts = absl::StrSplit(item, ',');
    ValueRange range = {};
    if (parts.size() != 3 || !absl::SimpleAtod(parts[1], &range.low) || !absl::SimpleAtod(parts[2], &range.high) ||
        !std::isfinite(range.low) || !std::isfinite(range.high) || range.low > range.high) {
      return absl::InvalidArgumentError(
          absl::StrCat("--input_layer_value_range: found '", item, "', expected INPUT,LOW,HIGH with LOW <= HIGH"));
    }
    const auto found = std::find(names.begin(), names.end(), parts[0]);
    if (found == names.end()) {
      return absl::InvalidArgumentError(absl::StrCat("--input_layer_value_range: the model has no input '", parts[0],
                                                     "'", DidYouMean(parts[0], names)));
    }
    ranges[found - names.begin()] = range;
  }
  return ranges;
}

// Returns a tensor of seeded numbers that are uniform in the range: whole numbers for integers.
absl::StatusOr<Tensor> TensorOfRange(DType dtype, const Shape& shape, const ValueRange& range, uint64_t seed) {
  char* data;
  PF_ASSIGN_OR_RETURN(const Tensor tensor, Tensor::Allocate(dtype, shape, &data));
  absl::Status status;
  const bool known = DispatchOn<float, double, int8_t, uint8_t, int16_t, uint16_t, int32_t, uint32_t, int64_t, bool>(
      dtype, [&](auto tag) {
        using T = typename decltype(tag)::type;
        std::mt19937_64 random(seed);
        auto* elements = reinterpret_cast<T*>(data);
        const int64_t count = shape.num_elements();
        if constexpr (std::is_floating_point_v<T>) {
          std::uniform_real_distribution<double> numbers(range.low, range.high);
          for (int64_t i = 0; i < count; ++i) elements[i] = static_cast<T>(numbers(random));
        } else {
          constexpr double kLow = static_cast<double>(std::numeric_limits<T>::lowest());
          constexpr double kHigh = static_cast<double>(std::numeric_limits<T>::max());
          const double low = std::ceil(range.low), high = std::floor(range.high);
          if (low > high || low < kLow || high > kHigh || std::max(std::abs(low), std::abs(high)) > 9e15) {
            status = absl::InvalidArgumentError(
                absl::StrCat("found ", range.low, " to ", range.high, ", expected a range of ", DTypeName(dtype)));
            return;
          }
          std::uniform_int_distribution<int64_t> numbers(static_cast<int64_t>(low), static_cast<int64_t>(high));
          for (int64_t i = 0; i < count; ++i) elements[i] = static_cast<T>(numbers(random));
        }
      });
  if (!known) return absl::InvalidArgumentError(absl::StrCat("values of type ", DTypeName(dtype), " have no range"));
  PF_RETURN_IF_ERROR(status);
  return tensor;
}

// The lists of the flags, split; empty if the flag is absent.
struct InputLists {
  std::vector<absl::string_view> shapes, types, values;
  std::vector<std::string> paths;
  std::vector<std::optional<ValueRange>> ranges;
};

absl::StatusOr<InputLists> CutLists(const BenchmarkInputFlags& flags, const std::vector<Endpoint>& declared) {
  InputLists lists;
  if (flags.shapes.has_value()) {
    lists.shapes = absl::StrSplit(*flags.shapes, ':');
    if (declared.empty() && flags.shapes->empty()) lists.shapes.clear();
    PF_RETURN_IF_ERROR(CheckCount("input_layer_shape", lists.shapes.size(), declared.size()));
  }
  if (flags.types.has_value()) {
    lists.types = absl::StrSplit(*flags.types, ',', absl::SkipEmpty());
    PF_RETURN_IF_ERROR(CheckCount("input_layer_type", lists.types.size(), declared.size()));
  }
  if (flags.values.has_value() && !flags.values->empty()) {
    lists.values = absl::StrSplit(*flags.values, ':');
    PF_RETURN_IF_ERROR(CheckCount("input_layer_values", lists.values.size(), declared.size()));
  }
  PF_ASSIGN_OR_RETURN(lists.paths, FilesByInput(flags.files, declared));
  PF_ASSIGN_OR_RETURN(lists.ranges, RangesByInput(flags.ranges, declared));
  return lists;
}

// Checks a type given by a flag. InvalidArgument unless it is the model's.
absl::Status CheckType(const std::vector<absl::string_view>& texts, size_t i, DType dtype) {
  if (texts.empty()) return absl::OkStatus();
  PF_ASSIGN_OR_RETURN(const DType named, ParseDType(texts[i]));
  if (named == dtype) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("found ", DTypeName(named), ", expected ", DTypeName(dtype)));
}

// Returns the shape given by a flag, if it is compatible with the model's.
absl::StatusOr<Shape> GivenShape(absl::string_view text, const Shape& said) {
  PF_ASSIGN_OR_RETURN(const Shape given, ParseDimensions(text));
  if (said.IsCompatibleWith(given)) return given;
  return absl::InvalidArgumentError(absl::StrCat("found ", given.ToString(), ", expected ", said.ToString()));
}

// Chooses the sizes of unknown dimensions at the first call.
class SizeChooser {
 public:
  explicit SizeChooser(const Graph& graph) : graph_(graph) {}

  absl::StatusOr<Shape> ShapeOf(const Endpoint& input) {
    if (!chosen_.has_value()) {
      absl::StatusOr<std::vector<InputShapes>> choices = ChooseInputShapes(graph_, graph_.inputs(), 1);
      if (!choices.ok()) {
        // The flags that give shapes have other names here.
        return absl::Status(choices.status().code(), absl::StrReplaceAll(choices.status().message(),
                                                                         {{"--verify_inputs", "--input_layer_shape"}}));
      }
      chosen_ = std::move(choices->front());
    }
    const auto found = chosen_->find(input.text);
    if (found != chosen_->end() && found->second.IsFullyKnown()) return found->second;
    return absl::InvalidArgumentError(
        absl::StrCat("input '", input.text, "' has unknown sizes, expected them in --input_layer_shape"));
  }

 private:
  const Graph& graph_;
  std::optional<InputShapes> chosen_;
};

absl::StatusOr<BenchmarkInput> MakeInput(const Endpoint& endpoint, size_t i, const InputLists& lists, uint64_t seed,
                                         SizeChooser* sizes, FileSystem& files) {
  BenchmarkInput input;
  input.name = endpoint.text;
  const std::string place = absl::StrCat("input '", endpoint.text, "'");
  const auto at = [&](absl::string_view flag, const absl::Status& status) {
    return Annotate(status, absl::StrCat("--", flag, ": ", place));
  };
  if (endpoint.node == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat(place, ": the graph has no such node"));
  }
  const absl::StatusOr<DType> dtype = TypeOf(endpoint);
  PF_RETURN_IF_ERROR(Annotate(dtype.status(), place));
  PF_RETURN_IF_ERROR(at("input_layer_type", CheckType(lists.types, i, *dtype)));
  Shape shape = ShapeAttr(*endpoint.node, "shape").value_or(Shape::UnknownRank());
  if (!lists.shapes.empty()) {
    absl::StatusOr<Shape> given = GivenShape(lists.shapes[i], shape);
    PF_RETURN_IF_ERROR(at("input_layer_shape", given.status()));
    shape = *std::move(given);
  }
  const std::string& path = lists.paths[i];
  if (absl::EndsWith(path, ".npy")) {
    absl::StatusOr<Tensor> array = ReadArray(files, path, *dtype, shape);
    PF_RETURN_IF_ERROR(at("input_layer_value_files", array.status()));
    input.tensor = *std::move(array);
    return input;
  }
  if (shape.has_rank() && shape.rank() > 0 && shape.dim(0) == kUnknownDim) shape.set_dim(0, 1);
  if (!shape.IsFullyKnown()) {
    PF_ASSIGN_OR_RETURN(shape, sizes->ShapeOf(endpoint));
    input.has_chosen_sizes = true;
  }
  absl::StatusOr<Tensor> tensor = absl::UnknownError("");
  if (!path.empty()) {
    tensor = ReadElements(files, path, *dtype, shape);
    PF_RETURN_IF_ERROR(at("input_layer_value_files", tensor.status()));
  } else if (!lists.values.empty() && !lists.values[i].empty()) {
    tensor = TensorOfValues(*dtype, shape, lists.values[i]);
    PF_RETURN_IF_ERROR(at("input_layer_values", tensor.status()));
  } else if (lists.ranges[i].has_value()) {
    tensor = TensorOfRange(*dtype, shape, *lists.ranges[i], seed + i);
    PF_RETURN_IF_ERROR(at("input_layer_value_range", tensor.status()));
  } else {
    tensor = SeededTensor(*dtype, shape, seed + i);
    PF_RETURN_IF_ERROR(Annotate(tensor.status(), place));
  }
  input.tensor = *std::move(tensor);
  return input;
}

}  // namespace

absl::StatusOr<std::vector<BenchmarkInput>> MakeBenchmarkInputs(const Graph& graph, const BenchmarkInputFlags& flags,
                                                                FileSystem& files) {
  PF_ASSIGN_OR_RETURN(const InputLists lists, CutLists(flags, graph.inputs()));
  std::vector<BenchmarkInput> inputs;
  SizeChooser sizes(graph);
  for (size_t i = 0; i < graph.inputs().size(); ++i) {
    PF_ASSIGN_OR_RETURN(inputs.emplace_back(), MakeInput(graph.inputs()[i], i, lists, flags.seed, &sizes, files));
  }
  return inputs;
}

absl::flat_hash_map<std::string, Shape> FedShapes(const Graph& graph, const std::vector<BenchmarkInput>& inputs) {
  absl::flat_hash_map<std::string, Shape> shapes;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Endpoint& endpoint = graph.inputs()[i];
    if (endpoint.node != nullptr && endpoint.port == 0) {
      shapes.emplace(std::string(endpoint.node->name()), inputs[i].tensor.shape());
    }
  }
  return shapes;
}

}  // namespace permafrost
