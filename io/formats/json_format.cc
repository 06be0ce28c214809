// Implements writing of a graph as JSON, with one line for each node.
#include "io/formats/json_format.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "graph/base/printable.h"
#include "graph/base/status.h"
#include "io/formats/json_value.h"

namespace permafrost {
namespace {

using absl::StrAppend;

// Tensors with at most this many elements are written completely.
constexpr int64_t kMostElements = 16;
// Base64 is written in pieces. A multiple of three bytes gives whole groups of four characters.
constexpr size_t kPiece = 3 << 16;

// Returns the shortest text that parses to the same double or float. JSON has no literals for NaN and infinities.
template <typename T>
std::string Number(T value) {
  if (std::isnan(value)) return "\"NaN\"";
  if (std::isinf(value)) return value > 0 ? "\"Infinity\"" : "\"-Infinity\"";
  constexpr int kFewest = 6, kMost = sizeof(T) == sizeof(float) ? 9 : 17;
  std::string text;
  for (int digits = kFewest; digits <= kMost; ++digits) {
    text = absl::StrFormat("%.*g", digits, static_cast<double>(value));
    if (static_cast<T>(std::strtod(text.c_str(), nullptr)) == value) break;
  }
  return text;
}

// Returns the bytes as text if they are UTF-8, otherwise in base64.
std::string Bytes(absl::string_view bytes) {
  for (absl::string_view rest = bytes; !rest.empty();) {
    const size_t length = Utf8Length(rest);
    if (length == 0) return absl::StrCat("{\"base64\": \"", absl::Base64Escape(bytes), "\"}");
    rest.remove_prefix(length);
  }
  return JsonQuoted(bytes);
}

std::string Dims(const Shape& shape) {
  if (!shape.has_rank()) return "null";
  return absl::StrCat("[", absl::StrJoin(shape.dims(), ", "), "]");
}

template <typename Values, typename F>
std::string List(const Values& values, F text) {
  std::string out = "[";
  for (const auto& value : values) StrAppend(&out, out.size() > 1 ? ", " : "", text(value));
  return out + "]";
}

// Returns an element as a number, or as text if it has no number form.
template <typename T>
std::string Element(const T& value) {
  if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>) {
    return Number(ToFloat(value));
  } else if constexpr (std::is_floating_point_v<T>) {
    return Number(value);
  } else if constexpr (std::is_same_v<T, bool>) {
    return value ? "true" : "false";
  } else if constexpr (std::is_same_v<T, int8_t> || std::is_same_v<T, uint8_t>) {
    return absl::StrCat(static_cast<int>(value));
  } else {
    return absl::StrCat(value);
  }
}

template <typename T>
double AsDouble(const T& value) {
  if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>) {
    return ToFloat(value);
  } else {
    return static_cast<double>(value);
  }
}

template <typename F>
bool OnNumbers(DType dtype, F f) {
  return DispatchOn<float, double, Half, BFloat16, int8_t, uint8_t, int16_t, uint16_t, int32_t, uint32_t, int64_t,
                    uint64_t, bool>(dtype, f);
}

class Writer {
 public:
  Writer(ByteSink* sink, bool with_weights) : sink_(sink), with_weights_(with_weights) {}

  absl::Status Run(const Graph& graph) {
    StrAppend(&text_, "{\n\"format\": \"permafrost graph 1\",\n");
    const auto endpoint = [](const Endpoint& e) { return JsonQuoted(e.text); };
    StrAppend(&text_, "\"inputs\": ", List(graph.inputs(), endpoint), ",\n");
    StrAppend(&text_, "\"outputs\": ", List(graph.outputs(), endpoint), ",\n");
    StrAppend(&text_, "\"versions\": \"", absl::Base64Escape(graph.versions()), "\",\n");
    StrAppend(&text_, "\"library\": \"", absl::Base64Escape(graph.library()), "\",\n\"nodes\": [");
    for (const Node* node = graph.first(); node != nullptr; node = node->next()) {
      StrAppend(&text_, node == graph.first() ? "\n" : ",\n");
      PF_RETURN_IF_ERROR(Annotate(WriteNode(*node), node->Describe()));
      if (text_.size() > kPiece) PF_RETURN_IF_ERROR(Flush());
    }
    StrAppend(&text_, "\n]\n}\n");
    return Flush();
  }

 private:
  absl::Status Flush() {
    PF_RETURN_IF_ERROR(sink_->Append(text_));
    text_.clear();
    return absl::OkStatus();
  }

  absl::Status WriteNode(const Node& node) {
    StrAppend(&text_, "{\"name\": ", JsonQuoted(node.name()), ", \"op\": ", JsonQuoted(node.op().name()));
    if (!node.device().empty()) StrAppend(&text_, ", \"device\": ", JsonQuoted(node.device()));
    StrAppend(&text_, ", \"inputs\": [");
    for (int i = 0; i < node.num_inputs(); ++i) {
      StrAppend(&text_, i == 0 ? "" : ", ", JsonQuoted(node.input(i).ToString()));
    }
    StrAppend(&text_, "], \"attrs\": {");
    std::vector<const Attr*> attrs;
    for (const Attr& attr : node.attrs()) attrs.push_back(&attr);
    std::sort(attrs.begin(), attrs.end(), [](const Attr* a, const Attr* b) { return a->key < b->key; });
    for (const Attr* attr : attrs) {
      StrAppend(&text_, attr == attrs.front() ? "" : ", ", JsonQuoted(attr->key), ": ");
      PF_RETURN_IF_ERROR(Annotate(WriteValue(attr->value), absl::StrCat("attr '", attr->key, "'")));
    }
    StrAppend(&text_, "}}");
    return absl::OkStatus();
  }

  void Tagged(absl::string_view tag, absl::string_view value) { StrAppend(&text_, "{\"", tag, "\": ", value, "}"); }

  absl::Status WriteValue(const AttrValue& value) {
    using Kind = AttrValue::Kind;
    switch (value.kind()) {
      case Kind::kNone:
        text_ += "{}";
        return absl::OkStatus();
      case Kind::kString: {
        PF_ASSIGN_OR_RETURN(const absl::string_view bytes, value.AsString());
        Tagged("string", Bytes(bytes));
        return absl::OkStatus();
      }
      case Kind::kInt: {
        PF_ASSIGN_OR_RETURN(const int64_t number, value.AsInt());
        Tagged("int", absl::StrCat(number));
        return absl::OkStatus();
      }
      case Kind::kFloat: {
        PF_ASSIGN_OR_RETURN(const float number, value.AsFloat());
        Tagged("float", Number(number));
        return absl::OkStatus();
      }
      case Kind::kBool: {
        PF_ASSIGN_OR_RETURN(const bool flag, value.AsBool());
        Tagged("bool", flag ? "true" : "false");
        return absl::OkStatus();
      }
      case Kind::kType: {
        PF_ASSIGN_OR_RETURN(const DType type, value.AsType());
        Tagged("type", JsonQuoted(DTypeName(type)));
        return absl::OkStatus();
      }
      case Kind::kShape: {
        PF_ASSIGN_OR_RETURN(const Shape shape, value.AsShape());
        Tagged("shape", Dims(shape));
        return absl::OkStatus();
      }
      case Kind::kPlaceholder: {
        PF_ASSIGN_OR_RETURN(const std::string name, value.AsPlaceholder());
        Tagged("placeholder", JsonQuoted(name));
        return absl::OkStatus();
      }
      case Kind::kTensor:
        return WriteTensor(value);
      case Kind::kList:
        if (WriteList(value)) return absl::OkStatus();
        break;
      case Kind::kFunction:
        // A reference with attribute values is written in wire format.
        if (const absl::StatusOr<FunctionRef> function = value.AsFunction(); function.ok() && function->attrs.empty()) {
          Tagged("function", JsonQuoted(function->name));
          return absl::OkStatus();
        }
        break;
    }
    Tagged("wire", absl::StrCat("\"", absl::Base64Escape(value.Encoded()), "\""));
    return absl::OkStatus();
  }

  // Writes a list of one kind. Returns false, without writing, if the list is of another kind.
  template <typename T, typename F>
  bool ListOf(absl::string_view kind, const absl::StatusOr<std::vector<T>>& values, F text) {
    if (!values.ok() || values->empty()) return false;
    Tagged(kind, List(*values, text));
    return true;
  }

  bool WriteList(const AttrValue& value) {
    const auto whole = [](int64_t number) { return absl::StrCat(number); };
    if (ListOf<int64_t>("ints", value.AsIntList(), whole)) return true;
    if (ListOf<std::string>("strings", value.AsStringList(), [](const std::string& s) { return Bytes(s); }))
      return true;
    if (ListOf<DType>("types", value.AsTypeList(), [](DType type) { return JsonQuoted(DTypeName(type)); })) return true;
    if (ListOf<Shape>("shapes", value.AsShapeList(), Dims)) return true;
    if (ListOf<float>("floats", value.AsFloatList(), Number<float>)) return true;
    if (const absl::StatusOr<std::vector<bool>> flags = value.AsBoolList(); flags.ok() && !flags->empty()) {
      Tagged("bools", List(*flags, [](bool flag) { return flag ? "true" : "false"; }));
      return true;
    }
    // An empty list has no kind.
    const bool is_empty = value.AsIntList().ok() && value.AsStringList().ok();
    if (is_empty) Tagged("list", "[]");
    return is_empty;
  }

  absl::Status WriteTensor(const AttrValue& value) {
    DType dtype;
    Shape shape;
    PF_RETURN_IF_ERROR(value.TensorTypeAndShape(&dtype, &shape));
    StrAppend(&text_, "{\"tensor\": {\"type\": ", JsonQuoted(DTypeName(dtype)), ", \"shape\": ", Dims(shape));
    const absl::StatusOr<Tensor> tensor = value.AsTensor();
    if (!tensor.ok()) {
      // Resources and other opaque types.
      StrAppend(&text_, ", \"wire\": \"", absl::Base64Escape(value.Encoded()), "\"}}");
      return absl::OkStatus();
    }
    if (with_weights_ && dtype != DType::kString) {
      PF_RETURN_IF_ERROR(WriteBase64(tensor->bytes()));
    } else if (with_weights_ || tensor->num_elements() <= kMostElements) {
      WriteElements(*tensor);
    } else {
      WriteRange(*tensor);
    }
    text_ += "}}";
    return absl::OkStatus();
  }

  absl::Status WriteBase64(absl::string_view bytes) {
    text_ += ", \"base64\": \"";
    for (; !bytes.empty(); bytes.remove_prefix(std::min(kPiece, bytes.size()))) {
      text_ += absl::Base64Escape(bytes.substr(0, kPiece));
      PF_RETURN_IF_ERROR(Flush());
    }
    text_ += "\"";
    return absl::OkStatus();
  }

  void WriteElements(const Tensor& tensor) {
    if (tensor.dtype() == DType::kString) {
      StrAppend(&text_, ", \"values\": ", List(tensor.strings(), [](const std::string& s) { return Bytes(s); }));
      return;
    }
    const bool is_number = OnNumbers(tensor.dtype(), [&](auto tag) {
      using T = typename decltype(tag)::type;
      const UnalignedSpan<T> values = tensor.elements<T>();
      text_ += ", \"values\": [";
      for (size_t i = 0; i < values.size(); ++i) StrAppend(&text_, i == 0 ? "" : ", ", Element<T>(values[i]));
      text_ += "]";
    });
    if (!is_number) StrAppend(&text_, ", \"base64\": \"", absl::Base64Escape(tensor.bytes()), "\"");
  }

  void WriteRange(const Tensor& tensor) {
    StrAppend(&text_, ", \"elements\": ", tensor.num_elements());
    OnNumbers(tensor.dtype(), [&](auto tag) {
      using T = typename decltype(tag)::type;
      const UnalignedSpan<T> values = tensor.elements<T>();
      double low = INFINITY, high = -INFINITY;
      size_t num_not_finite = 0;
      for (size_t i = 0; i < values.size(); ++i) {
        const double value = AsDouble<T>(values[i]);
        if (!std::isfinite(value)) {
          ++num_not_finite;
          continue;
        }
        low = std::min(low, value);
        high = std::max(high, value);
      }
      if (low <= high) StrAppend(&text_, ", \"min\": ", Number(low), ", \"max\": ", Number(high));
      if (num_not_finite > 0) StrAppend(&text_, ", \"not_finite\": ", num_not_finite);
    });
  }

  ByteSink* sink_;
  bool with_weights_;
  std::string text_;
};

}  // namespace

const ModelFormat kJsonFormat{
    "json",  "JSON",  ".json",
    nullptr, nullptr, [](const Graph& graph, ByteSink* sink) { return Writer(sink, false).Run(graph); },
    nullptr};

const ModelFormat kJsonWithWeightsFormat{
    "json_weights", "JSON with weights",
    ".json",        nullptr,
    nullptr,        [](const Graph& graph, ByteSink* sink) { return Writer(sink, true).Run(graph); },
    nullptr};

}  // namespace permafrost
