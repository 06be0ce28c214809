// Tests freezing of small graphs whose variables are in memory.
#include "transforms/freeze/freeze.h"

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "graph/base/nearest.h"
#include "graph/functions/function.h"
#include "graph/validation/validate.h"
#include "gtest/gtest.h"
#include "io/formats/graphdef_text.h"
#include "transforms/freeze/saved_names.h"
#include "transforms/freeze/value_flow.h"

namespace permafrost {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class FakeVariables : public VariableSource {
 public:
  explicit FakeVariables(std::map<std::string, Tensor> values) : values_(std::move(values)) {
    for (const auto& [name, value] : values_) infos_.push_back({name, value.dtype(), value.shape()});
  }
  absl::Span<const VariableInfo> variables() const override { return infos_; }
  absl::StatusOr<Tensor> Read(absl::string_view name) const override {
    const auto found = values_.find(std::string(name));
    if (found == values_.end()) return absl::NotFoundError(absl::StrCat("no '", name, "'"));
    return found->second;
  }

 private:
  std::map<std::string, Tensor> values_;
  std::vector<VariableInfo> infos_;
};

Tensor Floats(std::vector<float> values) {
  const Shape shape({static_cast<int64_t>(values.size())});
  return Tensor::FromVector<float>(shape, std::move(values));
}

std::string FloatAttrs(absl::string_view type_key = "T") {
  return absl::StrCat("attr { key: '", type_key, "' value { type: DT_FLOAT } }");
}

// Returns "node { ... }" in text form, with attributes unchanged.
std::string Line(absl::string_view name, absl::string_view op, const std::vector<std::string>& inputs,
                 absl::string_view attrs = "") {
  std::string text = absl::StrCat("name: '", name, "' op: '", op, "' ");
  for (const std::string& input : inputs) absl::StrAppend(&text, "input: '", input, "' ");
  return absl::StrCat(text, attrs);
}
std::string NodeText(absl::string_view name, absl::string_view op, const std::vector<std::string>& inputs,
                     absl::string_view attrs = "") {
  return absl::StrCat("node { ", Line(name, op, inputs, attrs), " }\n");
}
std::string BodyNode(absl::string_view name, absl::string_view op, const std::vector<std::string>& inputs,
                     absl::string_view attrs = "") {
  return absl::StrCat("node_def { ", Line(name, op, inputs, attrs), " }\n");
}

constexpr char kVariableAttrs[] =
    "attr { key: 'dtype' value { type: DT_FLOAT } } attr { key: 'shape' value { shape { dim { size: 2 } } } }";

std::string Handle(absl::string_view name, absl::string_view shared_name = "") {
  return NodeText(name, "VarHandleOp", {},
                  absl::StrCat(kVariableAttrs, " attr { key: 'shared_name' value { s: '", shared_name, "' } }"));
}
std::string Read(absl::string_view name, absl::string_view handle) {
  return NodeText(name, "ReadVariableOp", {std::string(handle)}, FloatAttrs("dtype"));
}
std::string Input(absl::string_view name) { return NodeText(name, "Placeholder", {}, kVariableAttrs); }
std::string Add(absl::string_view name, const std::string& a, const std::string& b) {
  return NodeText(name, "AddV2", {a, b}, FloatAttrs());
}

std::unique_ptr<Graph> Parse(const std::string& text, const std::string& output) {
  absl::StatusOr<std::unique_ptr<Graph>> graph = ReadGraphDefText(text);
  EXPECT_TRUE(graph.ok()) << graph.status();
  EXPECT_TRUE((*graph)->DeclareInterface({}, {output}).ok());
  return *std::move(graph);
}

// Returns "w = Const" or "y = AddV2(x, w)" for each node.
std::vector<std::string> Lines(const Graph& graph) {
  std::vector<std::string> lines;
  for (const Node* node = graph.first(); node != nullptr; node = node->next()) {
    std::vector<std::string> inputs;
    for (int i = 0; i < node->num_inputs(); ++i) inputs.push_back(node->input(i).ToString());
    lines.push_back(absl::StrCat(node->name(), " = ", node->op().name(),
                                 inputs.empty() ? "" : absl::StrCat("(", absl::StrJoin(inputs, ", "), ")")));
  }
  return lines;
}

// Freezes with w = [1, 2] and b = [3, 4], and checks that the result is a valid graph.
absl::StatusOr<FreezeReport> FreezeIt(Graph* graph, const FreezeOptions& options = {}) {
  const FakeVariables variables({{"w", Floats({1, 2})}, {"b", Floats({3, 4})}, {"long", Floats({1, 2, 3, 4, 5})}});
  absl::StatusOr<FreezeReport> report = Freeze(variables, options, graph);
  if (report.ok()) {
    EXPECT_TRUE(Validate(*graph).ok()) << Validate(*graph);
    EXPECT_TRUE(ValidateFunctions(*graph).ok()) << ValidateFunctions(*graph);
  }
  return report;
}

std::vector<float> ValueOf(const Graph& graph, absl::string_view name) {
  const absl::StatusOr<Tensor> value = ConstValue(*graph.Find(name));
  EXPECT_TRUE(value.ok()) << value.status();
  std::vector<float> values;
  for (size_t i = 0; i < value->elements<float>().size(); ++i) values.push_back(value->elements<float>()[i]);
  return values;
}

std::string Error(const std::string& text, const std::string& output, const FreezeOptions& options = {}) {
  const std::unique_ptr<Graph> graph = Parse(text, output);
  return std::string(FreezeIt(graph.get(), options).status().message());
}

TEST(FreezeTest, ReadsOfHandlesBecomeIdentities) {
  const auto graph =
      Parse(Input("x") + Handle("w") + Read("w/read", "w") + Add("y", "x", "w/read") + Handle("unused"), "y");
  const auto report = FreezeIt(graph.get());
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_THAT(Lines(*graph),
              ElementsAre("x = Placeholder", "w = Const", "w/read = Identity(w)", "y = AddV2(x, w/read)"));
  EXPECT_THAT(ValueOf(*graph, "w"), ElementsAre(1, 2));
  ASSERT_EQ(report->variables.size(), 1u);
  EXPECT_EQ(report->variables[0].key, "w");
  EXPECT_EQ(report->variables[0].bytes, 8u);
  EXPECT_EQ(report->nodes_before, 5u);
}

TEST(FreezeTest, ReferencesBecomeConstants) {
  for (const char* op : {"Variable", "VariableV2"}) {
    const auto graph = Parse(Input("x") + NodeText("w", op, {}, kVariableAttrs) +
                                 NodeText("w/read", "Identity", {"w"}, FloatAttrs()) + Add("y", "x", "w/read"),
                             "y");
    ASSERT_TRUE(FreezeIt(graph.get()).ok());
    EXPECT_THAT(Lines(*graph),
                ElementsAre("x = Placeholder", "w = Const", "w/read = Identity(w)", "y = AddV2(x, w/read)"));
  }
}

TEST(FreezeTest, ValuesAreNotCopied) {
  const auto graph = Parse(Input("x") + Handle("w") + Read("w/read", "w") + Add("y", "x", "w/read"), "y");
  const Tensor value = Floats({1, 2});
  const FakeVariables variables({{"w", value}});
  ASSERT_TRUE(Freeze(variables, {}, graph.get()).ok());
  EXPECT_EQ(ConstValue(*graph->Find("w"))->bytes().data(), value.bytes().data());
}

TEST(FreezeTest, NamesOfVariables) {
  const std::string text = Handle("node", "shared") + Read("y", "node");
  const auto key_of = [&](std::map<std::string, Tensor> values, FreezeOptions options) {
    const auto graph = Parse(text, "y");
    const FakeVariables variables(std::move(values));
    const auto report = Freeze(variables, options, graph.get());
    return report.ok() ? report->variables[0].key : std::string(report.status().message());
  };
  const Tensor value = Floats({1, 2});
  EXPECT_EQ(key_of({{"shared", value}, {"node", value}}, {}), "shared");
  EXPECT_EQ(key_of({{"node", value}}, {}), "node");
  EXPECT_EQ(key_of({{"shared/.ATTRIBUTES/VARIABLE_VALUE", value}}, {}), "shared/.ATTRIBUTES/VARIABLE_VALUE");
  FreezeOptions objects;
  objects.naming.keys_by_full_name["shared"] = "layer/0";
  EXPECT_EQ(key_of({{"layer/0", value}}, objects), "layer/0");
  FreezeOptions restored;
  restored.naming.saved_names["node"] = {"saved", ""};
  EXPECT_EQ(key_of({{"saved", value}, {"shared", value}}, restored), "saved");
  EXPECT_EQ(key_of({{"share", value}}, {}),
            "node 'node' (VarHandleOp): the checkpoint has no value for variable 'shared'; did you mean 'share'?");
}

TEST(FreezeTest, MovingAverages) {
  const auto graph = Parse(Handle("w") + Read("y", "w"), "y");
  const FakeVariables variables({{"w", Floats({1, 2})}, {"w/ExponentialMovingAverage", Floats({5, 6})}});
  FreezeOptions options;
  options.naming.average_suffix = "/ExponentialMovingAverage";
  const auto report = Freeze(variables, options, graph.get());
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_TRUE(report->variables[0].is_average);
  EXPECT_THAT(ValueOf(*graph, "w"), ElementsAre(5, 6));
}

TEST(FreezeTest, PartsOfAVariable) {
  const std::string text = Handle("long/part_0") +
                           NodeText("long/part_1", "VarHandleOp", {},
                                    "attr { key: 'dtype' value { type: DT_FLOAT } } "
                                    "attr { key: 'shape' value { shape { dim { size: 3 } } } }") +
                           Read("y", "long/part_1");
  const auto graph = Parse(text, "y");
  ASSERT_TRUE(FreezeIt(graph.get()).ok());
  EXPECT_THAT(ValueOf(*graph, "long/part_1"), ElementsAre(3, 4, 5));
  FreezeOptions options;
  options.naming.saved_names["long/part_1"] = {"long", "5 1,3"};
  const auto again = Parse(text, "y");
  ASSERT_TRUE(FreezeIt(again.get(), options).ok());
  EXPECT_THAT(ValueOf(*again, "long/part_1"), ElementsAre(2, 3, 4));
  options.naming.saved_names["long/part_1"] = {"long", "5 3,3"};
  EXPECT_THAT(Error(text, "y", options), HasSubstr("'5 3,3' is no slice of a tensor of shape [5]"));
}

TEST(SliceTest, CutsAnyDimension) {
  std::vector<float> values(24);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
  const Tensor whole = Tensor::FromVector<float>({2, 3, 4}, values);
  const auto cut = [&](absl::string_view slice) {
    const absl::StatusOr<Tensor> part = Slice(whole, slice);
    if (!part.ok()) return std::string(part.status().message());
    std::string text = absl::StrCat(part->shape().ToString(), ":");
    for (size_t i = 0; i < part->elements<float>().size(); ++i) absl::StrAppend(&text, " ", part->elements<float>()[i]);
    return text;
  };
  EXPECT_EQ(cut("2 3 4 1,1:-:-"), "[1,3,4]: 12 13 14 15 16 17 18 19 20 21 22 23");
  EXPECT_EQ(cut("2 3 4 -:1,1:-"), "[2,1,4]: 4 5 6 7 16 17 18 19");
  EXPECT_EQ(cut("2 3 4 -:0,2:1,2"), "[2,2,2]: 1 2 5 6 13 14 17 18");
  EXPECT_EQ(cut("2 3 4 -:1,0:-"), "[2,0,4]:");
  for (const char* bad : {"", "2 3 4", "2 3 4 -:-", "2 3 5 -:-:-", "2 3 4 -:-:3,2", "2 3 4 -:-:-1,2", "2 3 4 -:x:-",
                          "2 3 4 -:-:0,9223372036854775807", "2 3 4 -:-:1"}) {
    EXPECT_EQ(cut(bad), absl::StrCat("'", bad, "' is no slice of a tensor of shape [2,3,4]"));
  }
  const Tensor rows = *Slice(whole, "2 3 4 1,1:-:-");
  EXPECT_EQ(rows.bytes().data(), whole.bytes().data() + 48);  // A view.
}

TEST(FreezeTest, GathersAndShapes) {
  const std::string indices =
      NodeText("i", "Placeholder", {},
               "attr { key: 'dtype' value { type: DT_INT32 } } attr { key: 'shape' value { shape { } } }");
  const std::string gather_attrs =
      FloatAttrs("dtype") +
      " attr { key: 'Tindices' value { type: DT_INT32 } } attr { key: 'validate_indices' value { b: true } }";
  const auto graph = Parse(indices + Handle("w") + NodeText("g", "ResourceGather", {"w", "i"}, gather_attrs), "g");
  ASSERT_TRUE(FreezeIt(graph.get()).ok());
  EXPECT_THAT(Lines(*graph),
              ElementsAre("i = Placeholder", "w = Const", "g/axis = Const", "g = GatherV2(w, i, g/axis)"));
  const auto shape = Parse(
      Handle("w") + NodeText("s", "VariableShape", {"w"}, "attr { key: 'out_type' value { type: DT_INT64 } }"), "s");
  ASSERT_TRUE(FreezeIt(shape.get()).ok());
  EXPECT_THAT(Lines(*shape), ElementsAre("w = Const", "s = Shape(w)"));
  EXPECT_EQ(*TypeAttr(*shape->Find("s"), "out_type"), DType::kInt64);
  const auto known = Parse(Handle("w") + NodeText("k", "VarIsInitializedOp", {"w"}), "k");
  ASSERT_TRUE(FreezeIt(known.get()).ok());
  EXPECT_THAT(Lines(*known), ElementsAre("k = Const"));
}

TEST(FreezeTest, V1ControlFlowHandsValuesOn) {
  const std::string resource = "attr { key: 'T' value { type: DT_RESOURCE } }";
  const std::string flag =
      NodeText("c", "Placeholder", {},
               "attr { key: 'dtype' value { type: DT_BOOL } } attr { key: 'shape' value { shape { } } }");
  const auto graph =
      Parse(Input("x") + flag + Handle("w") + NodeText("s", "Switch", {"w", "c"}, resource) +
                NodeText("xs", "Switch", {"x", "c"}, FloatAttrs()) + Read("r", "s:1") + Add("a", "xs:1", "r") +
                NodeText("m", "Merge", {"xs", "a"}, FloatAttrs() + " attr { key: 'N' value { i: 2 } }"),
            "m");
  const auto report = FreezeIt(graph.get());
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_THAT(Lines(*graph),
              ElementsAre("x = Placeholder", "c = Placeholder", "w = Const", "s = Switch(w, c)", "xs = Switch(x, c)",
                          "r = Identity(s:1)", "a = AddV2(xs:1, r)", "m = Merge(xs, a)"));
  EXPECT_EQ(*TypeAttr(*graph->Find("s"), "T"), DType::kFloat);
}

// f(v, x) = x + ReadVariableOp(v)
std::string AddsVariable() {
  return absl::StrCat(
      "function { signature { name: 'f' is_stateful: true input_arg { name: 'v' type: DT_RESOURCE } "
      "input_arg { name: 'x' type: DT_FLOAT } output_arg { name: 'y' type: DT_FLOAT } }\n",
      BodyNode("r", "ReadVariableOp", {"v"}, FloatAttrs("dtype")),
      BodyNode("a", "AddV2", {"x", "r:value:0"}, FloatAttrs()), "ret { key: 'y' value: 'a:z:0' } }\n");
}
std::string TypesAttr(absl::string_view key, const std::vector<std::string>& types) {
  std::string text = absl::StrCat(" attr { key: '", key, "' value { list { ");
  for (const std::string& type : types) absl::StrAppend(&text, "type: ", type, " ");
  return text + "} } }";
}
std::string FunctionAttr(absl::string_view key, absl::string_view name) {
  return absl::StrCat(" attr { key: '", key, "' value { func { name: '", name, "' } } }");
}

TEST(FreezeTest, CallsAreInlinedOrGivenValues) {
  const std::string text = Input("x") + Handle("w") +
                           NodeText("call", "StatefulPartitionedCall", {"w", "x"},
                                    TypesAttr("Tin", {"DT_RESOURCE", "DT_FLOAT"}) + TypesAttr("Tout", {"DT_FLOAT"}) +
                                        FunctionAttr("f", "f")) +
                           "library { " + AddsVariable() + "}";
  const auto inlined = Parse(text, "call");
  ASSERT_TRUE(FreezeIt(inlined.get()).ok());
  EXPECT_THAT(Lines(*inlined), ElementsAre("x = Placeholder", "w = Const", "call/r = Identity(w)",
                                           "call/a = AddV2(x, call/r)", "call = Identity(call/a)"));
  EXPECT_TRUE(inlined->library().empty());

  FreezeOptions options;
  options.inline_calls = false;
  const auto called = Parse(text, "call");
  ASSERT_TRUE(FreezeIt(called.get(), options).ok());
  EXPECT_THAT(Lines(*called), ElementsAre("x = Placeholder", "w = Const", "call = StatefulPartitionedCall(w, x)"));
  EXPECT_EQ(called->Find("call")->FindAttr("f")->AsFunction()->name, "f_frozen");
  EXPECT_THAT(*TypeListAttr(*called->Find("call"), "Tin"), ElementsAre(DType::kFloat, DType::kFloat));
  const FunctionLibrary library = *FunctionLibrary::Of(*called);
  ASSERT_EQ(library.size(), 1u);
  EXPECT_THAT(Lines(**library.Instantiate({"f_frozen", {}})),
              ElementsAre("v = _Arg", "x = _Arg", "r = Identity(v)", "a = AddV2(x, r)", "y_RetVal = _Retval(a)"));
}

// A loop over (i, x, handle) whose body calls f, so that the handle passes through two signatures.
TEST(FreezeTest, LoopsCarryValues) {
  const std::string args =
      "input_arg { name: 'i' type: DT_INT32 } input_arg { name: 'x' type: DT_FLOAT } input_arg { name: 'v' type: "
      "DT_RESOURCE } ";
  const std::string condition =
      absl::StrCat("function { signature { name: 'c' ", args, "output_arg { name: 'more' type: DT_BOOL } }\n",
                   BodyNode("n", "Const", {},
                            "attr { key: 'dtype' value { type: DT_INT32 } } attr { key: 'value' value { tensor { "
                            "dtype: DT_INT32 tensor_shape { } int_val: 3 } } }"),
                   BodyNode("l", "Less", {"i", "n:output:0"}, "attr { key: 'T' value { type: DT_INT32 } }"),
                   "ret { key: 'more' value: 'l:z:0' } }\n");
  const std::string body =
      absl::StrCat("function { signature { name: 'b' ", args,
                   "output_arg { name: 'i2' type: DT_INT32 } output_arg { name: 'x2' type: DT_FLOAT } output_arg { "
                   "name: 'v2' type: DT_RESOURCE } }\n",
                   BodyNode("one", "Const", {},
                            "attr { key: 'dtype' value { type: DT_INT32 } } attr { key: 'value' value { tensor { "
                            "dtype: DT_INT32 tensor_shape { } int_val: 1 } } }"),
                   BodyNode("next", "AddV2", {"i", "one:output:0"}, "attr { key: 'T' value { type: DT_INT32 } }"),
                   BodyNode("call", "StatefulPartitionedCall", {"v", "x"},
                            TypesAttr("Tin", {"DT_RESOURCE", "DT_FLOAT"}) + TypesAttr("Tout", {"DT_FLOAT"}) +
                                FunctionAttr("f", "f")),
                   BodyNode("same", "Identity", {"v"}, "attr { key: 'T' value { type: DT_RESOURCE } }"),
                   "ret { key: 'i2' value: 'next:z:0' } ret { key: 'x2' value: 'call:output:0' } ret { key: 'v2' "
                   "value: 'same:output:0' } }\n");
  const std::string zero = NodeText("i", "Const", {},
                                    "attr { key: 'dtype' value { type: DT_INT32 } } attr { key: 'value' value { tensor "
                                    "{ dtype: DT_INT32 tensor_shape { } int_val: 0 } } }");
  const std::string text =
      Input("x") + Handle("w") + zero +
      NodeText("loop", "While", {"i", "x", "w"},
               TypesAttr("T", {"DT_INT32", "DT_FLOAT", "DT_RESOURCE"}) + FunctionAttr("cond", "c") +
                   FunctionAttr("body", "b") +
                   " attr { key: 'output_shapes' value { list { shape { } shape { dim { size: 2 } } shape { } } } }") +
      NodeText("y", "Identity", {"loop:1"}, FloatAttrs()) + "library { " + AddsVariable() + condition + body + "}";
  const auto graph = Parse(text, "y");
  const auto report = FreezeIt(graph.get());
  ASSERT_TRUE(report.ok()) << report.status();
  const Node* loop = graph->Find("loop");
  EXPECT_THAT(*TypeListAttr(*loop, "T"), ElementsAre(DType::kInt32, DType::kFloat, DType::kFloat));
  EXPECT_EQ(loop->FindAttr("body")->AsFunction()->name, "b_frozen");
  EXPECT_EQ(loop->FindAttr("cond")->AsFunction()->name, "c_frozen");
  EXPECT_EQ((*loop->FindAttr("output_shapes")->AsShapeList())[2], Shape({2}));
  const FunctionLibrary library = *FunctionLibrary::Of(*graph);
  EXPECT_EQ(library.size(), 3u);  // The frozen copies; the originals are removed.
  EXPECT_NE(library.Find("f_frozen"), nullptr);

  // A body that returns a different value than its argument.
  const std::string other = absl::StrReplaceAll(
      text, {{"input: 'v' attr { key: 'T'", "input: 'other:output:0' attr { key: 'T'"},
             {"node_def { name: 'same'",
              absl::StrCat(BodyNode("other", "Placeholder", {}, "attr { key: 'dtype' value { type: DT_RESOURCE } }"),
                           "node_def { name: 'same'")}});
  EXPECT_THAT(Error(other, "y"), HasSubstr("variable 'w' is loop variable 2, and the body does not return it"));
}

TEST(FreezeTest, VariablesInsideFunctions) {
  const std::string body = absl::StrCat(
      "function { signature { name: 'g' is_stateful: true input_arg { name: 'x' type: DT_FLOAT } output_arg { name: "
      "'y' type: DT_FLOAT } }\n",
      BodyNode("h", "VarHandleOp", {}, absl::StrCat(kVariableAttrs, " attr { key: 'shared_name' value { s: 'w' } }")),
      BodyNode("r", "ReadVariableOp", {"h:resource:0"}, FloatAttrs("dtype")),
      BodyNode("a", "AddV2", {"x", "r:value:0"}, FloatAttrs()), "ret { key: 'y' value: 'a:z:0' } }\n");
  const std::string flag =
      NodeText("c", "Placeholder", {},
               "attr { key: 'dtype' value { type: DT_BOOL } } attr { key: 'shape' value { shape { } } }");
  const auto graph = Parse(
      Input("x") + flag +
          NodeText("y", "If", {"c", "x"},
                   TypesAttr("Tin", {"DT_FLOAT"}) + TypesAttr("Tout", {"DT_FLOAT"}) + FunctionAttr("then_branch", "g") +
                       FunctionAttr("else_branch", "g") + " attr { key: 'Tcond' value { type: DT_BOOL } }") +
          "library { " + body + "}",
      "y");
  const auto report = FreezeIt(graph.get());
  ASSERT_TRUE(report.ok()) << report.status();
  ASSERT_EQ(report->variables.size(), 1u);
  const FunctionLibrary library = *FunctionLibrary::Of(*graph);
  ASSERT_EQ(library.size(), 1u);
  EXPECT_EQ((*library.Instantiate({"g_frozen", {}}))->Find("h")->op(), Op(ops::kConst));
}

TEST(FreezeTest, SomeVariablesStay) {
  const std::string text = Handle("w") + Handle("b") + Read("wr", "w") + Read("br", "b") + Add("y", "wr", "br");
  FreezeOptions only, except, wrong;
  only.only_variables = {"b"};
  except.except_variables = {"w"};
  for (const FreezeOptions& options : {only, except}) {
    const auto graph = Parse(text, "y");
    const auto report = FreezeIt(graph.get(), options);
    ASSERT_TRUE(report.ok()) << report.status();
    EXPECT_THAT(Lines(*graph), ElementsAre("w = VarHandleOp", "b = Const", "wr = ReadVariableOp(w)", "br = Identity(b)",
                                           "y = AddV2(wr, br)"));
    EXPECT_THAT(report->notes, ElementsAre("left as variables: 'w'"));
  }
  wrong.only_variables = {"bb"};
  EXPECT_EQ(Error(text, "y", wrong), "the graph has no variable 'bb'; did you mean 'b', 'w'?");
}

TEST(FreezeTest, Initializers) {
  const std::string text =
      NodeText("w", "VariableV2", {}, kVariableAttrs) +
      NodeText("first", "Const", {},
               "attr { key: 'dtype' value { type: DT_FLOAT } } attr { key: 'value' value { tensor { dtype: DT_FLOAT "
               "tensor_shape { dim { size: 2 } } float_val: 7 float_val: 8 } } }") +
      NodeText("assign", "Assign", {"w", "first"}, FloatAttrs()) + NodeText("init", "NoOp", {"^assign"}) +
      NodeText("random", "Placeholder", {}, kVariableAttrs) +
      NodeText("assign_2", "Assign", {"w", "random"}, FloatAttrs()) + NodeText("y", "Identity", {"w"}, FloatAttrs());
  const auto graph = Parse(text, "y");
  FreezeOptions options;
  options.initializers = {"init"};
  ASSERT_TRUE(FreezeIt(graph.get(), options).ok());
  EXPECT_THAT(ValueOf(*graph, "w"), ElementsAre(7, 8));
  options.initializers = {"inti"};
  EXPECT_EQ(Error(text, "y", options), "there is no initialiser 'inti' in the graph; did you mean 'init'?");
  options.initializers = {"assign_2"};
  EXPECT_THAT(Error(text, "y", options),
              HasSubstr("cannot be computed, since node 'random' (Placeholder) is not known"));
  options.initializers = {"init", "assign"};
  EXPECT_TRUE(Error(text, "y", options).empty());
}

TEST(FreezeTest, VariablesThatOutputsChangeAreKept) {
  const std::string text = Handle("w") + Handle("b") + Read("r", "w") + Read("c", "b") +
                           NodeText("a", "AssignAddVariableOp", {"w", "c"}, FloatAttrs("dtype")) +
                           NodeText("y", "Identity", {"r", "^a"}, FloatAttrs());
  auto graph = Parse(text, "y");
  const auto report = FreezeIt(graph.get());
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_THAT(Lines(*graph),
              ElementsAre("w = VarHandleOp", "w/Initializer = Const", "w/Assign = AssignVariableOp(w, w/Initializer)",
                          "b = Const", "r = ReadVariableOp(w)", "c = Identity(b)", "a = AssignAddVariableOp(w, c)",
                          "y = Identity(r, ^a)"));
  EXPECT_THAT(ValueOf(*graph, "w/Initializer"), ElementsAre(1, 2));
  EXPECT_THAT(report->stateful, ElementsAre("w"));

  FreezeOptions options;
  options.drop_assignments = true;
  graph = Parse(text, "y");
  ASSERT_TRUE(FreezeIt(graph.get(), options).ok());
  EXPECT_THAT(Lines(*graph), ElementsAre("w = Const", "r = Identity(w)", "a = NoOp", "y = Identity(r, ^a)"));

  graph = Parse(Handle("w") + NodeText("y", "SomeCustomOp", {"w"}), "y");
  ASSERT_TRUE(FreezeIt(graph.get()).ok());
  EXPECT_THAT(Lines(*graph), ElementsAre("w = VarHandleOp", "w/Initializer = Const",
                                         "w/Assign = AssignVariableOp(w, w/Initializer)", "y = SomeCustomOp(w)"));
}

// The average is read only to compute its next value.
TEST(FreezeTest, UnreadAssignmentsAreDropped) {
  const auto graph =
      Parse(Input("x") + Handle("w") + Read("r", "w") + Add("next", "r", "x") +
                NodeText("a", "AssignVariableOp", {"w", "next"}, FloatAttrs("dtype")) +
                NodeText("all", "NoOp", {"^a", "^r"}) + NodeText("y", "Identity", {"x", "^all"}, FloatAttrs()),
            "y");
  const auto report = FreezeIt(graph.get());
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_THAT(Lines(*graph), ElementsAre("x = Placeholder", "a = NoOp", "all = NoOp(^a)", "y = Identity(x, ^all)"));
  EXPECT_THAT(report->stateful, ElementsAre());
}

TEST(FreezeTest, WhatCannotBeFrozen) {
  EXPECT_THAT(Error(NodeText("w", "VariableV2", {}, kVariableAttrs) + NodeText("r", "Identity", {"w"}, FloatAttrs()) +
                        NodeText("y", "Assign", {"w", "r"}, FloatAttrs()),
                    "y"),
              HasSubstr("node 'y' (Assign): changes variable 'w'"));
  EXPECT_THAT(
      Error(Handle("w") + NodeText("y", "ReadVariableOp", {"w"}, "attr { key: 'dtype' value { type: DT_INT32 } }"),
            "y"),
      HasSubstr("reads variable 'w' as int32, but its value is float"));
  EXPECT_THAT(Error(Handle("long") + Read("y", "long"), "y"),
              HasSubstr("variable 'long' of the checkpoint has shape [5], expected [2]"));
  EXPECT_THAT(Error(NodeText("w", "VarHandleOp", {},
                             "attr { key: 'dtype' value { type: DT_HALF } } attr { key: 'shape' value { shape { "
                             "unknown_rank: true } } }") +
                        NodeText("y", "ReadVariableOp", {"w"}, "attr { key: 'dtype' value { type: DT_HALF } }"),
                    "y"),
              HasSubstr("variable 'w' of the checkpoint is float, expected half"));
}

TEST(FreezeTest, FunctionsThatCallThemselves) {
  // The handle is passed on in a cycle.
  const std::string body = absl::StrCat(
      "function { signature { name: 'f' is_stateful: true input_arg { name: 'c' type: DT_BOOL } input_arg { name: 'v' "
      "type: DT_RESOURCE } output_arg { name: 'y' type: DT_FLOAT } }\n",
      BodyNode("again", "If", {"c", "c", "v"},
               TypesAttr("Tin", {"DT_BOOL", "DT_RESOURCE"}) + TypesAttr("Tout", {"DT_FLOAT"}) +
                   FunctionAttr("then_branch", "f") + FunctionAttr("else_branch", "f") +
                   " attr { key: 'Tcond' value { type: DT_BOOL } }"),
      "ret { key: 'y' value: 'again:output:0' } }\n");
  const std::string text =
      NodeText("c", "Placeholder", {},
               "attr { key: 'dtype' value { type: DT_BOOL } } attr { key: 'shape' value { shape { } } }") +
      Handle("w") +
      NodeText("y", "If", {"c", "c", "w"},
               TypesAttr("Tin", {"DT_BOOL", "DT_RESOURCE"}) + TypesAttr("Tout", {"DT_FLOAT"}) +
                   FunctionAttr("then_branch", "f") + FunctionAttr("else_branch", "f") +
                   " attr { key: 'Tcond' value { type: DT_BOOL } }") +
      "library { " + body + "}";
  EXPECT_THAT(Error(text, "y"), HasSubstr("more than 64 deep, or in a circle"));
  EXPECT_THAT(Error(absl::StrReplaceAll(text, {{"name: 'f' is_stateful", "name: 'h' is_stateful"}}), "y"),
              HasSubstr("there is no function 'f' in the library"));
}

TEST(FreezeTest, TablesAreTold) {
  const auto graph = Parse(
      NodeText(
          "t", "HashTableV2", {},
          "attr { key: 'key_dtype' value { type: DT_INT64 } } attr { key: 'value_dtype' value { type: DT_INT64 } }") +
          NodeText("y", "LookupTableSizeV2", {"t"}),
      "y");
  const auto report = FreezeIt(graph.get());
  ASSERT_TRUE(report.ok()) << report.status();
  ASSERT_EQ(report->notes.size(), 1u);
  EXPECT_THAT(report->notes[0], HasSubstr("the entries of tables are not known: 't' is empty until"));
}

TEST(FreezeTest, DevicesGoUnlessAskedFor) {
  const std::string text =
      Handle("w") + NodeText("y", "ReadVariableOp", {"w"}, "device: '/cpu:0' " + FloatAttrs("dtype"));
  for (const bool clear : {true, false}) {
    FreezeOptions options;
    options.clear_devices = clear;
    const auto graph = Parse(text, "y");
    ASSERT_TRUE(FreezeIt(graph.get(), options).ok());
    EXPECT_EQ(graph->Find("y")->device(), clear ? "" : "/cpu:0");
  }
}

// 10^5 variables in one chain: the cost of each does not depend on the others.
TEST(FreezeTest, ManyVariables) {
  constexpr int kVariables = 100'000;
  Graph graph;
  std::map<std::string, Tensor> values;
  const Tensor value = Floats({1, 2});
  Node* last = nullptr;
  for (int i = 0; i < kVariables; ++i) {
    const std::string name = absl::StrCat("v", i);
    Node* handle = *graph.AddNode(name, ops::kVarHandleOp);
    handle->SetAttr("dtype", AttrValue::Type(DType::kFloat));
    handle->SetAttr("shape", AttrValue::OfShape({2}));
    Node* read = *graph.AddNode(absl::StrCat(name, "/read"), ops::kReadVariableOp);
    read->SetAttr("dtype", AttrValue::Type(DType::kFloat));
    graph.AddInput(read, {handle, 0});
    values.emplace(name, value);
    if (last != nullptr) {
      Node* sum = *graph.AddNode(absl::StrCat("s", i), ops::kAddV2);
      sum->SetAttr("T", AttrValue::Type(DType::kFloat));
      graph.AddInput(sum, {last, 0});
      graph.AddInput(sum, {read, 0});
      read = sum;
    }
    last = read;
  }
  ASSERT_TRUE(graph.DeclareInterface({}, {std::string(last->name())}).ok());
  const FakeVariables variables(std::move(values));
  const auto report = Freeze(variables, {}, &graph);
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(report->variables.size(), static_cast<size_t>(kVariables));
}

TEST(SavedNamesTest, FollowsRestoringNodes) {
  const auto strings = [](absl::string_view name, const std::vector<std::string>& values) {
    std::string attrs = absl::StrCat(
        "attr { key: 'dtype' value { type: DT_STRING } } attr { key: 'value' value { tensor { dtype: DT_STRING "
        "tensor_shape { dim { size: ",
        values.size(), " } } ");
    for (const std::string& value : values) absl::StrAppend(&attrs, "string_val: '", value, "' ");
    return NodeText(name, "Const", {}, attrs + "} } }");
  };
  const std::string text =
      Handle("a") + NodeText("b", "VariableV2", {}, kVariableAttrs) + strings("prefix", {"p"}) +
      strings("names", {"first", "second"}) + strings("slices", {"", "9 2,2"}) +
      NodeText("restore", "RestoreV2", {"prefix", "names", "slices"}, TypesAttr("dtypes", {"DT_FLOAT", "DT_FLOAT"})) +
      NodeText("i", "Identity", {"restore"}, FloatAttrs()) +
      NodeText("x", "AssignVariableOp", {"a", "i"}, FloatAttrs("dtype")) +
      NodeText("y", "Assign", {"b", "restore:1"}, FloatAttrs());
  const auto graph = Parse(text, "y");
  const auto names = FindSavedNames(*graph, "");
  ASSERT_TRUE(names.ok()) << names.status();
  ASSERT_EQ(names->size(), 2u);
  EXPECT_EQ(names->at("a").key, "first");
  EXPECT_EQ(names->at("a").slice, "");
  EXPECT_EQ(names->at("b").key, "second");
  EXPECT_EQ(names->at("b").slice, "9 2,2");
}

}  // namespace
}  // namespace permafrost
