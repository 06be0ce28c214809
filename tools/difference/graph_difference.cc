// Compares two graphs node by node.
#include "tools/difference/graph_difference.h"

#include <set>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime_check/checking/compare.h"
#include "tools/command_line/console.h"
#include "tools/difference/canonical_library.h"
#include "tools/difference/node_pairing.h"

namespace permafrost {
namespace {

// Longer texts are truncated in messages.
constexpr size_t kLongestText = 80;

std::string Cut(std::string text) {
  if (text.size() > kLongestText) text = absl::StrCat(text.substr(0, kLongestText), "...");
  return text;
}

template <typename T>
bool SameValue(const absl::StatusOr<T>& a, const absl::StatusOr<T>& b) {
  return a.ok() && b.ok() && *a == *b;
}

// Returns whether both lists hold the same elements. A list has elements of one kind; its accessors for other kinds
// return no elements.
bool SameList(const AttrValue& a, const AttrValue& b) {
  const auto same = [](const auto& x, const auto& y) { return x.ok() == y.ok() && (!x.ok() || *x == *y); };
  const auto any = [](const auto& x) { return x.ok() && !x->empty(); };
  const auto ints = a.AsIntList();
  const auto floats = a.AsFloatList();
  const auto bools = a.AsBoolList();
  const auto strings = a.AsStringList();
  const auto types = a.AsTypeList();
  const auto shapes = a.AsShapeList();
  // Neither is empty, so some list holds the elements; lists of tensors or functions are compared as bytes.
  if (!any(ints) && !any(floats) && !any(bools) && !any(strings) && !any(types) && !any(shapes)) return false;
  return same(ints, b.AsIntList()) && same(floats, b.AsFloatList()) && same(bools, b.AsBoolList()) &&
         same(strings, b.AsStringList()) && same(types, b.AsTypeList()) && same(shapes, b.AsShapeList());
}

bool SameTensor(const Tensor& actual, const Tensor& expected, const GraphDifferenceOptions& options) {
  if (actual == expected) return true;
  return options.tolerance.has_value() && CompareTensors(expected, actual).IsWithin(*options.tolerance);
}

bool SameAttr(const AttrValue& a, const AttrValue& b, const GraphDifferenceOptions& options) {
  if (a.kind() != b.kind()) return false;
  switch (a.kind()) {
    case AttrValue::Kind::kInt:
      return SameValue(a.AsInt(), b.AsInt());
    case AttrValue::Kind::kFloat:
      return SameValue(a.AsFloat(), b.AsFloat()) || a.Encoded() == b.Encoded();
    case AttrValue::Kind::kBool:
      return SameValue(a.AsBool(), b.AsBool());
    case AttrValue::Kind::kString:
      return SameValue(a.AsString(), b.AsString());
    case AttrValue::Kind::kType:
      return SameValue(a.AsType(), b.AsType());
    case AttrValue::Kind::kShape:
      return SameValue(a.AsShape(), b.AsShape());
    case AttrValue::Kind::kTensor: {
      const absl::StatusOr<Tensor> actual = a.AsTensor();
      const absl::StatusOr<Tensor> expected = b.AsTensor();
      if (actual.ok() && expected.ok()) return SameTensor(*actual, *expected, options);
      return a.Encoded() == b.Encoded();
    }
    case AttrValue::Kind::kList:
      return a.Encoded() == b.Encoded() || SameList(a, b);
    default:
      return a.Encoded() == b.Encoded();
  }
}

template <typename T>
std::string ListText(const absl::StatusOr<std::vector<T>>& list) {
  return list.ok() && !list->empty() ? absl::StrCat("[", absl::StrJoin(*list, ","), "]") : "";
}

std::string AttrText(const AttrValue& value) {
  switch (value.kind()) {
    case AttrValue::Kind::kInt:
      return absl::StrCat(value.AsInt().value_or(0));
    case AttrValue::Kind::kFloat:
      return absl::StrCat(value.AsFloat().value_or(0));
    case AttrValue::Kind::kBool:
      return value.AsBool().value_or(false) ? "true" : "false";
    case AttrValue::Kind::kString:
      return Cut(absl::StrCat("'", absl::CEscape(value.AsString().value_or("")), "'"));
    case AttrValue::Kind::kType:
      return DTypeName(value.AsType().value_or(DType::kInvalid));
    case AttrValue::Kind::kShape: {
      const absl::StatusOr<Shape> shape = value.AsShape();
      return shape.ok() ? shape->ToString() : "a malformed shape";
    }
    case AttrValue::Kind::kList: {
      std::string text = ListText(value.AsIntList());
      if (text.empty()) text = ListText(value.AsFloatList());
      if (text.empty()) text = absl::CEscape(ListText(value.AsStringList()));
      return Cut(text.empty() ? "a list" : text);
    }
    default:
      return absl::StrCat("a ", KindName(value.kind()));
  }
}

std::string TensorDifference(const Tensor& actual, const Tensor& expected) {
  const OutputDifference difference = CompareTensors(expected, actual);
  if (!difference.mismatch.empty()) return difference.mismatch;
  // Only the bits of NaN, or the sign of zero, differ.
  if (difference.num_different == 0) return "the bytes differ";
  std::string text = absl::StrCat(difference.num_different, " of ", difference.num_elements, " elements differ");
  if (difference.has_numbers) absl::StrAppend(&text, ", the most by ", FormatNumber(difference.max_abs));
  return text;
}

std::string AttrDifference(const AttrValue& actual, const AttrValue& expected) {
  if (actual.kind() != expected.kind()) {
    return absl::StrCat("found ", KindName(actual.kind()), ", expected ", KindName(expected.kind()));
  }
  if (actual.kind() == AttrValue::Kind::kTensor) {
    const absl::StatusOr<Tensor> a = actual.AsTensor();
    const absl::StatusOr<Tensor> e = expected.AsTensor();
    return a.ok() && e.ok() ? TensorDifference(*a, *e) : "the bytes differ";
  }
  const std::string a = AttrText(actual);
  const std::string e = AttrText(expected);
  return a == e ? "the bytes differ" : absl::StrCat("found ", a, ", expected ", e);
}

// Returns, for example, "'a', 'b' and 3 more".
std::string NamesOf(const std::vector<const Node*>& nodes) {
  constexpr size_t kMostNames = 6;
  std::string text;
  for (size_t i = 0; i < nodes.size() && i < kMostNames; ++i) {
    absl::StrAppend(&text, i == 0 ? "" : ", ", "'", nodes[i]->name(), "'");
  }
  if (nodes.size() > kMostNames) absl::StrAppend(&text, " and ", nodes.size() - kMostNames, " more");
  return text;
}

class Comparison {
 public:
  Comparison(const Graph& actual, const Graph& expected, const GraphDifferenceOptions& options)
      : options_(options), pairing_(actual, expected, options.origins) {}

  std::vector<GraphDifference> Run(const Graph& actual, const Graph& expected) {
    for (const Node* node = expected.first(); node != nullptr; node = node->next()) {
      if (const Node* other = pairing_.ActualOf(*node); other != nullptr) {
        CompareNodes(*other, *node);
      } else if (const Node* heir = pairing_.HeirOf(*node); heir != nullptr) {
        Add("merged_node", *node, absl::StrCat("went into ", heir->Describe()));
      } else {
        Add("missing_node", *node, options_.origins == nullptr ? "is missing" : "was removed");
      }
    }
    for (const Node* node = actual.first(); node != nullptr; node = node->next()) {
      if (pairing_.ExpectedOf(*node) != nullptr) continue;
      const std::vector<const Node*> origins = pairing_.OriginsOf(*node);
      if (origins.empty()) {
        Add("extra_node", *node, options_.origins == nullptr ? "is not expected" : "is new");
      } else {
        Add("derived_node", *node, absl::StrCat("was made from ", NamesOf(origins)));
      }
    }
    if (options_.is_strict) {
      CompareLibraries(actual.library(), expected.library());
      CompareBytes("versions", actual.versions(), expected.versions());
      CompareBytes("further fields of the graph", actual.extra_fields(), expected.extra_fields());
    }
    return std::move(differences_);
  }

 private:
  void Add(absl::string_view kind, const Node& node, absl::string_view text) {
    differences_.push_back({std::string(kind), std::string(node.name()), absl::StrCat(node.Describe(), ": ", text)});
  }

  void CompareBytes(absl::string_view what, absl::string_view actual, absl::string_view expected) {
    if (actual == expected) return;
    differences_.push_back({"surroundings", "", absl::StrCat(what, ": the bytes differ")});
  }

  void CompareLibraries(absl::string_view actual, absl::string_view expected) {
    if (actual == expected) return;
    const absl::StatusOr<std::string> a = CanonicalLibrary(actual), e = CanonicalLibrary(expected);
    if (!a.ok() || !e.ok() || *a != *e) CompareBytes("the function library", actual, expected);
  }

  void CompareNodes(const Node& actual, const Node& expected) {
    if (actual.name() != expected.name()) {
      Add("renamed_node", expected, absl::StrCat("is now '", actual.name(), "'"));
    }
    if (actual.op() != expected.op()) {
      Add("op", expected, absl::StrCat("found op ", actual.op().name(), ", expected ", expected.op().name()));
    }
    if (actual.device() != expected.device()) {
      Add("device", expected, absl::StrCat("found device '", actual.device(), "', expected '", expected.device(), "'"));
    }
    if (actual.num_data_inputs() != expected.num_data_inputs()) {
      Add("inputs", expected,
          absl::StrCat("found ", actual.num_data_inputs(), " inputs, expected ", expected.num_data_inputs()));
    } else {
      for (int i = 0; i < expected.num_data_inputs(); ++i) {
        if (IsSameInput(actual.input(i), expected.input(i))) continue;
        Add("inputs", expected,
            absl::StrCat("input ", i, ": found '", actual.input(i).ToString(), "', expected '",
                         expected.input(i).ToString(), "'"));
      }
    }
    CompareControlInputs(actual, expected);
    CompareAttrs(actual, expected);
  }

  // A node into which other nodes were merged has its own outputs.
  bool IsSameInput(TensorRef actual, TensorRef expected) const {
    if (pairing_.HeirOf(*expected.node) != actual.node) return false;
    return actual.port == expected.port || pairing_.ActualOf(*expected.node) == nullptr;
  }

  void CompareControlInputs(const Node& actual, const Node& expected) {
    std::set<absl::string_view> found;
    for (int i = actual.num_data_inputs(); i < actual.num_inputs(); ++i) found.insert(actual.input(i).node->name());
    std::set<absl::string_view> wanted, missing;
    for (int i = expected.num_data_inputs(); i < expected.num_inputs(); ++i) {
      const Node* node = expected.input(i).node;
      const Node* heir = pairing_.HeirOf(*node);
      if (heir != nullptr) wanted.insert(heir->name());
      if (heir == nullptr || found.count(heir->name()) == 0) missing.insert(node->name());
    }
    for (const absl::string_view name : missing) {
      Add("control_inputs", expected, absl::StrCat("control input '", name, "' is missing"));
    }
    for (const absl::string_view name : found) {
      if (wanted.count(name) > 0) continue;
      Add("control_inputs", expected, absl::StrCat("control input '", name, "' is not expected"));
    }
  }

  void CompareAttrs(const Node& actual, const Node& expected) {
    for (const Attr& attr : expected.attrs()) {
      if (IsIgnored(attr.key)) continue;
      const AttrValue* other = actual.FindAttr(attr.key);
      if (other == nullptr) {
        Add("attr", expected, absl::StrCat("attr '", attr.key, "' is missing, expected ", AttrText(attr.value)));
      } else if (!SameAttr(*other, attr.value, options_)) {
        Add("attr", expected, absl::StrCat("attr '", attr.key, "': ", AttrDifference(*other, attr.value)));
      }
    }
    for (const Attr& attr : actual.attrs()) {
      if (IsIgnored(attr.key) || expected.HasAttr(attr.key)) continue;
      Add("attr", expected, absl::StrCat("attr '", attr.key, "' is not expected, found ", AttrText(attr.value)));
    }
  }

  bool IsIgnored(absl::string_view key) const { return !options_.is_strict && absl::StartsWith(key, "_"); }

  const GraphDifferenceOptions& options_;
  const NodePairing pairing_;
  std::vector<GraphDifference> differences_;
};

}  // namespace

std::vector<GraphDifference> CompareGraphs(const Graph& actual, const Graph& expected,
                                           const GraphDifferenceOptions& options) {
  return Comparison(actual, expected, options).Run(actual, expected);
}

void WriteDifferences(const std::vector<GraphDifference>& differences, JsonWriter* json) {
  json->Key("differences").BeginArray();
  for (const GraphDifference& difference : differences) {
    json->BeginObject();
    json->Key("kind").Text(difference.kind);
    json->Key("node").Text(difference.node);
    json->Key("text").Text(difference.text);
    json->End();
  }
  json->End();
}

}  // namespace permafrost
