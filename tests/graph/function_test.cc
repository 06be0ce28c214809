// Tests of the function library: parsing, bodies as graphs, writing back, calls, and hostile libraries.
#include "graph/functions/function.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "graph/base/wire.h"
#include "graph/validation/validate.h"
#include "gtest/gtest.h"
#include "io/formats/graphdef_text.h"
#include "tests/graph/test_graph.h"

namespace permafrost {
namespace {

constexpr char kFloatT[] = R"(attr { key: "T" value { type: DT_FLOAT } })";

std::unique_ptr<Graph> Parse(const std::string& text) {
  auto graph = ReadGraphDefText(text);
  EXPECT_TRUE(graph.ok()) << graph.status();
  return *std::move(graph);
}

std::string Node(const std::string& name, const std::string& op, const std::vector<std::string>& inputs,
                 const std::string& attrs = kFloatT) {
  std::string text = absl::StrCat("node_def { name: \"", name, "\" op: \"", op, "\" ");
  for (const std::string& input : inputs) absl::StrAppend(&text, "input: \"", input, "\" ");
  return absl::StrCat(text, attrs, " }\n");
}

std::string Arg(const std::string& kind, const std::string& name, const std::string& type = "type: DT_FLOAT") {
  return absl::StrCat(kind, "_arg { name: \"", name, "\" ", type, " } ");
}

std::string In(const std::string& name) { return Arg("input", name); }
std::string Out(const std::string& name) { return Arg("output", name); }
std::string Ret(const std::string& name, const std::string& value) {
  return absl::StrCat("ret { key: \"", name, "\" value: \"", value, "\" }\n");
}

std::string Function(const std::string& name, const std::string& signature, const std::string& body) {
  return absl::StrCat("function { signature { name: \"", name, "\" ", signature, " }\n", body, "}\n");
}

std::string Library(const std::vector<std::string>& functions) {
  return absl::StrCat("library { ", absl::StrJoin(functions, ""), " }");
}

// A function with one argument that is processed by `nodes`, the last of which is r.
std::string Simple(const std::string& name, const std::string& nodes, const std::string& value = "r:y:0") {
  return Function(name, In("x") + Out("y"), nodes + Ret("y", value));
}

std::string CallAttr(const std::string& callee) {
  return absl::StrCat(R"(attr { key: "f" value { func { name: ")", callee, R"(" } } }
      attr { key: "Tin" value { list { type: DT_FLOAT } } } attr { key: "Tout" value { list { type: DT_FLOAT } } })");
}

FunctionLibrary LibraryOf(const Graph& graph) {
  auto library = FunctionLibrary::Of(graph);
  EXPECT_TRUE(library.ok()) << library.status();
  return *std::move(library);
}

std::string ErrorOf(const std::vector<std::string>& functions, const FunctionRef& call) {
  const auto graph = Parse(Library(functions));
  const auto library = FunctionLibrary::Of(*graph);
  if (!library.ok()) return std::string(library.status().message());
  const auto body = library->Instantiate(call);
  return body.ok() ? "no error" : std::string(body.status().message());
}

TEST(FunctionTest, BodyBecomesGraph) {
  const auto graph = Parse(Library(
      {Function("f", In("x") + In("scale") + Out("mean") + Out("y") + "control_output: \"done\"",
                Node("n", "FusedBatchNormV3", {"x", "scale", "scale", "scale", "scale", "^p"},
                     R"(attr { key: "T" value { type: DT_FLOAT } } attr { key: "U" value { type: DT_FLOAT } })") +
                    Node("p", "NoOp", {}, "") + Node("r", "Relu", {"n:y:0"}) + Ret("mean", "n:batch_mean:0") +
                    Ret("y", "r:activations:0") + R"(control_ret { key: "done" value: "p" })" +
                    R"(arg_attr { key: 0 value { attr { key: "_user_specified_name" value { s: "image" } } } })" +
                    R"(resource_arg_unique_id { key: 1 value: 7 })")}));
  const FunctionLibrary library = LibraryOf(*graph);
  ASSERT_NE(library.Find("f"), nullptr);
  EXPECT_EQ(library.Find("f")->num_nodes(), 3u);
  const auto body = library.Instantiate({"f", {}});
  ASSERT_TRUE(body.ok()) << body.status();
  std::vector<std::string> lines;
  for (const class Node* node : (*body)->Nodes()) {
    lines.push_back(absl::StrCat(node->name(), "=", node->op().name(), "(", absl::StrJoin(InputsOf(node), ","), ")"));
  }
  EXPECT_EQ(absl::StrJoin(lines, " "),
            "x=_Arg() scale=_Arg() n=FusedBatchNormV3(x,scale,scale,scale,scale,^p) p=NoOp() r=Relu(n) "
            "mean_RetVal=_Retval(n:1) y_RetVal=_Retval(r)");
  ASSERT_EQ(ArgsOf(**body).size(), 2u);
  EXPECT_EQ(ArgsOf(**body)[1]->name(), "scale");
  EXPECT_EQ(*IntAttr(*ArgsOf(**body)[1], "index"), 1);
  EXPECT_EQ(*IntAttr(*ArgsOf(**body)[1], "_resource_arg_unique_id"), 7);
  EXPECT_EQ(*StringAttr(*ArgsOf(**body)[0], "_user_specified_name"), "image");
  ASSERT_EQ(RetvalsOf(**body).size(), 2u);
  EXPECT_EQ(RetvalsOf(**body)[0]->name(), "mean_RetVal");
  ASSERT_EQ(ControlOutputsOf(**body).size(), 1u);
  EXPECT_EQ(ControlOutputsOf(**body)[0]->name(), "p");
  EXPECT_TRUE(Validate(**body).ok()) << Validate(**body);
}

TEST(FunctionTest, AttributesOfTheCallerReachTheBody) {
  const auto graph = Parse(Library(
      {Function("f",
                R"(input_arg { name: "xs" type_attr: "T" number_attr: "N" } output_arg { name: "y" type_attr: "T" }
         attr { name: "T" type: "type" } attr { name: "N" type: "int" default_value { i: 2 } })",
                Node("r", "AddN", {"xs"},
                     R"(attr { key: "T" value { placeholder: "T" } } attr { key: "N" value { placeholder: "N" } })") +
                    Node("s", "AddN", {"xs:1", "r:sum:0"}, R"(attr { key: "T" value { placeholder: "T" } }
               attr { key: "N" value { i: 2 } })") +
                    Node("c", "PartitionedCall", {"s:sum"}, R"(attr { key: "f" value { func { name: "g"
               attr { key: "T" value { placeholder: "T" } } } } }
               attr { key: "Tin" value { list { type: DT_INT64 } } }
               attr { key: "Tout" value { list { type: DT_INT64 } } })") +
                    Ret("y", "c:output:0"))}));
  const FunctionLibrary library = LibraryOf(*graph);
  const FunctionRef call = {"f", {{"T", AttrValue::Type(DType::kInt64)}}};
  const auto body = library.Instantiate(call);
  ASSERT_TRUE(body.ok()) << body.status();
  EXPECT_EQ(InputsOf((*body)->Find("r")), (std::vector<std::string>{"xs_0", "xs_1"}));
  EXPECT_EQ(InputsOf((*body)->Find("s")), (std::vector<std::string>{"xs_1", "r"}));
  EXPECT_EQ(*TypeAttr(*(*body)->Find("r"), "T"), DType::kInt64);
  const auto inner = (*body)->Find("c")->FindAttr("f")->AsFunction();
  ASSERT_TRUE(inner.ok()) << inner.status();
  EXPECT_EQ(inner->name, "g");
  ASSERT_EQ(inner->attrs.size(), 1u);
  EXPECT_EQ(*inner->attrs[0].second.AsType(), DType::kInt64);
  EXPECT_EQ(library.InputTypes(call)->size(), 2u);
  EXPECT_EQ(*library.OutputTypes(call), std::vector<DType>{DType::kInt64});
  EXPECT_TRUE(Validate(**body).ok()) << Validate(**body);
  EXPECT_EQ(AttrValue::Function(*inner).Encoded(), (*body)->Find("c")->FindAttr("f")->Encoded());

  const auto missing = library.Instantiate({"f", {}});
  EXPECT_EQ(missing.status().message(),
            "function 'f': node 'r' (AddN) at index 0: attr 'T': refers to the caller's attr 'T', which is not set");
}

TEST(FunctionTest, EditedBodyIsWrittenBack) {
  const std::string other = Simple("other", Node("r", "Neg", {"x"}));
  const auto graph =
      Parse(Library({other, Function("f", In("x") + Out("y") + "control_output: \"c\"",
                                     Node("a", "Unpack", {"x"}, R"(attr { key: "num" value { i: 3 } } attr { key: "T"
                                value { type: DT_FLOAT } })") +
                                         Node("r", "Neg", {"a:output:2", "^a"}) + Ret("y", "r:y:0") +
                                         R"(attr { key: "_noinline" value { b: true } }
                                      control_ret { key: "c" value: "a" })")}));
  const std::string before(graph->library());
  FunctionLibrary library = LibraryOf(*graph);
  auto body = *library.Instantiate({"f", {}});
  ASSERT_TRUE(library.SetBody("f", *body).ok());
  library.Store(graph.get());
  EXPECT_EQ(graph->library(), before) << "nothing was changed";

  class Node* made = *body->AddNode("made", ops::kRelu, body->Find("r"));
  made->SetAttr("T", AttrValue::Type(DType::kFloat));
  body->AddInput(made, {body->Find("a"), 1});
  body->SetInput(body->Find("r"), 0, {made, 0});
  ASSERT_TRUE(body->Rename(body->Find("a"), "unpack").ok());
  ASSERT_TRUE(library.SetBody("f", *body).ok());
  library.Store(graph.get());
  EXPECT_NE(graph->library(), before);

  const FunctionLibrary again = LibraryOf(*graph);
  EXPECT_EQ(again.Find("other")->encoded(), library.Find("other")->encoded());
  ASSERT_NE(again.Find("f")->FindAttr("_noinline"), nullptr);
  const auto changed = again.Instantiate({"f", {}});
  ASSERT_TRUE(changed.ok()) << changed.status();
  EXPECT_EQ(InputsOf((*changed)->Find("r")), (std::vector<std::string>{"made", "^unpack"}));
  EXPECT_EQ(InputsOf((*changed)->Find("made")), std::vector<std::string>{"unpack:1"});
  EXPECT_EQ(ControlOutputsOf(**changed)[0]->name(), "unpack");
}

TEST(FunctionTest, BodiesThatCannotBeWrittenBackAreRejected) {
  const auto graph = Parse(
      Library({Simple("f", Node("r", "Neg", {"x"})),
               Function("list", In("x") + Arg("output", "y", "type: DT_FLOAT number_attr: \"N\"") + R"(attr { name: "N"
        type: "int" default_value { i: 1 } })",
                        Ret("y", "x"))}));
  FunctionLibrary library = LibraryOf(*graph);
  auto body = *library.Instantiate({"f", {}});
  class Node* odd = *body->AddNode("odd", Op::Named("OddOp"));
  body->SetInput(body->Find("r"), 0, {odd, 0});
  EXPECT_EQ(library.SetBody("f", *body).message(),
            "function 'f': node 'odd' (OddOp): the op is unknown, so its output 0 has no name");
  body->SetInput(body->Find("r"), 0, {body->Find("x"), 0});
  ASSERT_TRUE(body->Rename(body->Find("x"), "z").ok());
  ASSERT_TRUE(body->Rename(odd, "x").ok());
  EXPECT_EQ(library.SetBody("f", *body).message(),
            "function 'f': argument 'x' is node 'z' (_Arg), expected an _Arg and no other node of its name");
  EXPECT_EQ(library.SetBody("list", **library.Instantiate({"list", {}})).message(),
            "function 'list': the signature has attributes, so a body is only one of its instances");
  EXPECT_EQ(library.SetBody("g", *body).message(), "there is no function 'g' in the library; did you mean 'f'?");
}

TEST(FunctionTest, CallsAreFollowed) {
  const auto call = [](const std::string& callee) { return Node("r", "PartitionedCall", {"x"}, CallAttr(callee)); };
  auto graph = Parse(absl::StrCat(
      Library({Simple("leaf", Node("r", "Neg", {"x"})), Simple("mid", call("leaf"), "r:output:0"),
               Simple("top", Node("m", "mid", {"x"}) + call("mid"), "r:output:0"), Simple("unused", call("leaf")),
               Simple("leaf_gradient", Node("r", "Neg", {"x"})), Simple("lost_gradient", Node("r", "Neg", {"x"})),
               R"(gradient { function_name: "leaf" gradient_func: "leaf_gradient" })",
               R"(gradient { function_name: "unused" gradient_func: "lost_gradient" })"}),
      R"(node { name: "c" op: "If" attr { key: "then_branch" value { func { name: "top" } } }
               attr { key: "else_branch" value { func { name: "gone" } } } })"));
  FunctionLibrary library = LibraryOf(*graph);
  const std::vector<std::string> roots = library.CalledBy(*graph);
  EXPECT_EQ(roots, (std::vector<std::string>{"gone", "top"}));
  const auto order = library.CallOrder(roots);
  ASSERT_TRUE(order.ok()) << order.status();
  std::vector<std::string> names;
  for (const class Function* function : *order) names.emplace_back(function->name());
  EXPECT_EQ(names, (std::vector<std::string>{"leaf", "mid", "top"}));
  EXPECT_EQ(library.GradientOf("leaf"), "leaf_gradient");
  const auto reached = library.Reachable(roots);
  ASSERT_TRUE(reached.ok());
  EXPECT_EQ(reached->size(), 4u);
  EXPECT_EQ(library.Retain(*reached), 2u);
  library.Store(graph.get());
  const FunctionLibrary rest = LibraryOf(*graph);
  EXPECT_EQ(rest.size(), 4u);
  EXPECT_EQ(rest.GradientOf("unused"), "");
  EXPECT_EQ(rest.GradientOf("leaf"), "leaf_gradient");
}

TEST(FunctionTest, RecursionIsDetected) {
  const auto call = [](const std::string& callee) { return Node("r", "PartitionedCall", {"x"}, CallAttr(callee)); };
  const auto graph = Parse(Library({Simple("f", call("g"), "r:output:0"), Simple("g", call("f"), "r:output:0"),
                                    Simple("self", call("self"), "r:output:0")}));
  const FunctionLibrary library = LibraryOf(*graph);
  EXPECT_EQ(library.CallOrder({"f"}).status().message(), "function 'f' calls itself: 'f' -> 'g' -> 'f'");
  EXPECT_EQ(library.CallOrder({"self"}).status().message(), "function 'self' calls itself: 'self' -> 'self'");
  EXPECT_EQ(library.Reachable({"f"})->size(), 2u);
}

TEST(FunctionTest, LongChainOfCallsNeedsNoStack) {
  std::vector<std::string> functions;
  constexpr int kFunctions = 5000;
  for (int i = 0; i < kFunctions; ++i) {
    functions.push_back(
        Simple(absl::StrCat("f", i), Node("r", "PartitionedCall", {"x"}, CallAttr(absl::StrCat("f", i + 1)))));
  }
  const auto graph = Parse(Library(functions));
  const FunctionLibrary library = LibraryOf(*graph);
  const auto order = library.CallOrder({"f0"});
  ASSERT_TRUE(order.ok());
  EXPECT_EQ(order->size(), static_cast<size_t>(kFunctions));
  EXPECT_EQ(order->front()->name(), absl::StrCat("f", kFunctions - 1));
}

TEST(FunctionTest, ErrorsNameFunctionAndNode) {
  const FunctionRef f = {"f", {}};
  const std::string neg = Node("r", "Neg", {"x"});
  EXPECT_EQ(ErrorOf({Simple("g", neg)}, f), "there is no function 'f' in the library; did you mean 'g'?");
  EXPECT_EQ(ErrorOf({Simple("f", neg), Simple("f", neg + neg)}, f),
            "function library: two functions of the library have the name 'f' and differ");
  EXPECT_EQ(ErrorOf({Simple("f", neg), Simple("f", neg)}, f), "no error") << "equal definitions do no harm";
  EXPECT_EQ(ErrorOf({Simple("", neg)}, f), "function library: the library has a function without a name");
  EXPECT_EQ(ErrorOf({Simple("f", neg + neg)}, f),
            "function 'f': node 'r' (Neg) at index 1: another node has the same name, expected unique names");
  EXPECT_EQ(ErrorOf({Simple("f", Node("x", "Neg", {"x"}))}, f),
            "function 'f': argument 'x' has the same name as another node");
  EXPECT_EQ(ErrorOf({Function("f", In("x") + In("x") + Out("y"), neg + Ret("y", "r:y:0"))}, f),
            "function 'f': argument 'x' has the same name as another argument");
  EXPECT_EQ(ErrorOf({Function("f", In("x:1") + Out("y"), Ret("y", "x"))}, f),
            "function 'f': an argument has the name 'x:1', expected one without '^' and ':'");
  EXPECT_EQ(ErrorOf({Simple("f", Node("r", "Neg", {"z:y:0"}))}, f),
            "function 'f': node 'r' (Neg): input 0 is 'z:y:0': found neither a node of the body nor an argument of "
            "the signature with this name");
  EXPECT_EQ(
      ErrorOf({Simple("f", neg, "r:z:0")}, f),
      "function 'f': output 'y' is 'r:z:0': names output 'z' of node 'r' (Neg), which has no output of that name");
  EXPECT_EQ(ErrorOf({Simple("f", neg, "r:y:1")}, f),
            "function 'f': output 'y' is 'r:y:1': the output of node 'r' (Neg) has 1 tensor");
  EXPECT_EQ(ErrorOf({Simple("f", neg, "x:1")}, f), "function 'f': output 'y' is 'x:1': argument 'x' has 1 tensors");
  EXPECT_EQ(ErrorOf({Simple("f", Node("o", "OddOp", {}) + Node("r", "Neg", {"o:out:0"}))}, f),
            "function 'f': node 'r' (Neg): input 0 is 'o:out:0': names output 'out' of node 'o' (OddOp), which has "
            "an unknown op");
  EXPECT_EQ(ErrorOf({Simple("f", Node("r", "Neg", {"^p", "x"}) + Node("p", "NoOp", {}))}, f),
            "function 'f': node 'r' (Neg): input 1 is 'x', which follows a control input, expected data inputs before "
            "control inputs");
  EXPECT_EQ(ErrorOf({Simple("f", Node("r", "Neg", {"x", "^p"}))}, f),
            "function 'f': node 'r' (Neg): input 1 is '^p', but the body has no such node");
  EXPECT_EQ(ErrorOf({Function("f", In("x") + Out("y"), neg)}, f), "function 'f': no value is defined for output 'y'");
  EXPECT_EQ(ErrorOf({Simple("f", neg + Node("a", "_Arg", {}))}, f),
            "function 'f': node 'a' (_Arg) at index 1: the op is reserved for the nodes that represent the signature");
  EXPECT_EQ(ErrorOf({Simple("f", neg + R"(control_ret { key: "c" value: "q" })")}, f),
            "function 'f': control output 'c' is 'q', but the body has no such node");
}

TEST(FunctionTest, ExpansionIsBounded) {
  const std::string many = R"(attr { key: "T" value { type: DT_FLOAT } } attr { key: "num" value { i: 65536 } })";
  std::string body = Node("u", "Unpack", {"x"}, many);
  for (int i = 0; i < 20; ++i) absl::StrAppend(&body, Node(absl::StrCat("n", i), "IdentityN", {"u:output"}));
  EXPECT_EQ(ErrorOf({Function("f", In("x"), body)}, {"f", {}}),
            "function 'f': node 'n16' (IdentityN): input 0 is 'u:output': references to whole lists make more than "
            "1048576 inputs");
  const std::string list = R"(type: DT_FLOAT number_attr: "N")";
  EXPECT_EQ(ErrorOf({Function("f",
                              Arg("input", "a", list) + Arg("input", "b", list) +
                                  R"(attr { name: "N" type: "int" default_value { i: 60000 } })",
                              "")},
                    {"f", {}}),
            "function 'f': the signature has more than 65536 tensors");
  EXPECT_EQ(
      ErrorOf(
          {Function("f", Arg("input", "a", list) + R"(attr { name: "N" type: "int" default_value { i: -1 } })", "")},
          {"f", {}}),
      "function 'f': node 'f' (function): attr 'N' specifies -1 tensors, expected 0 to 65536");
}

TEST(FunctionTest, AttributeValuesOfCallersAreBounded) {
  std::string attrs;
  for (int i = 0; i < 100; ++i) absl::StrAppend(&attrs, "attr { key: \"a", i, "\" value { placeholder: \"big\" } } ");
  const std::string node =
      Node("r", "Neg", {"x"}, absl::StrCat(R"(attr { key: "f" value { func { name: "g" )", attrs, " } } }"));
  const FunctionRef call = {"f", {{"big", AttrValue::String(std::string(1 << 20, 'x'))}}};
  EXPECT_EQ(ErrorOf({Simple("f", node)}, call),
            "function 'f': node 'r' (Neg) at index 0: attr 'f': the attribute values passed by callers have "
            "too many bytes in total");
}

TEST(FunctionTest, DeeplyNestedValuesAreRejected) {
  std::string value = AttrValue::Int(1).Encoded();
  for (int depth = 0; depth < 10000; ++depth) {
    std::string entry, function, outer;
    AppendBytesField(2, value, &entry);
    AppendBytesField(2, entry, &function);
    AppendBytesField(10, function, &outer);
    value = std::move(outer);
  }
  const AttrValue deep = AttrValue::FromWire(value, nullptr);
  EXPECT_EQ(deep.VisitFunctions([](absl::string_view) {}).message(),
            "names functions inside each other more than 33 deep");
  int64_t budget = 1 << 20;
  EXPECT_FALSE(deep.Substitute([](absl::string_view) { return nullptr; }, &budget).ok());
}

TEST(FunctionTest, MalformedBytesAreDataLoss) {
  const auto whole = Parse(Library({Simple("f", Node("r", "Neg", {"x"}))}));
  const std::string bytes(whole->library());
  for (size_t size = 1; size < bytes.size(); ++size) {
    Graph graph;
    graph.set_library(absl::string_view(bytes).substr(0, size));
    const auto library = FunctionLibrary::Of(graph);
    EXPECT_EQ(library.status().code(), absl::StatusCode::kDataLoss) << size;
  }
  for (size_t at = 0; at < bytes.size(); ++at) {
    for (const int bit : {0, 3, 7}) {
      std::string flipped = bytes;
      flipped[at] = static_cast<char>(flipped[at] ^ (1 << bit));
      Graph graph;
      graph.set_library(flipped);
      const auto library = FunctionLibrary::Of(graph);
      if (!library.ok()) continue;
      for (const class Function* function : library->functions()) {
        (void)library->Instantiate({std::string(function->name()), {}});
        (void)library->Callees(*function);
      }
    }
  }
}

std::string ProblemsOf(const std::string& text) { return std::string(ValidateFunctions(*Parse(text)).message()); }

TEST(FunctionTest, LibrariesAreValidated) {
  const auto graph_with = [](const std::string& attrs, const std::vector<std::string>& functions) {
    return absl::StrCat("node { name: \"x\" op: \"Placeholder\" attr { key: \"dtype\" value { type: DT_FLOAT } } }\n",
                        "node { name: \"c\" op: \"PartitionedCall\" input: \"x\" ", attrs, " }\n", Library(functions));
  };
  const std::string neg = Simple("f", Node("r", "Neg", {"x"}));
  EXPECT_EQ(ProblemsOf(graph_with(CallAttr("f"), {neg})), "");
  EXPECT_EQ(ProblemsOf(graph_with(CallAttr("g"), {neg})),
            "node 'c' (PartitionedCall): attr 'f': there is no function 'g' in the library; did you mean 'f'?");
  EXPECT_EQ(ProblemsOf(graph_with(CallAttr("f"), {Function("f", In("x") + Arg("output", "y", "type: DT_INT32"),
                                                           Node("r", "Neg", {"x"}) + Ret("y", "r:y:0"))})),
            "node 'c' (PartitionedCall): attr 'Tout' is (float), but function 'f' returns (int32); function 'f': node "
            "'y_RetVal' (_Retval): input 0 is 'r' of type float, expected int32");
  EXPECT_EQ(ProblemsOf(graph_with(CallAttr("f"), {Simple("f", Node("r", "AddV2", {"x"}), "r:z:0")})),
            "function 'f': node 'r' (AddV2): found 1 input, expected 2");
  EXPECT_EQ(ProblemsOf(graph_with(CallAttr("f"),
                                  {Simple("f", Node("r", "PartitionedCall", {"x"}, CallAttr("gone")), "r:output:0")})),
            "function 'f': node 'r' (PartitionedCall): attr 'f': there is no function 'gone' in the library");
  EXPECT_EQ(ProblemsOf(graph_with(CallAttr("f"), {Simple("f", Node("r", "Neg", {"z"}))})),
            "function 'f': node 'r' (Neg): input 0 is 'z': found neither a node of the body nor an argument of "
            "the signature with this name");
}

}  // namespace
}  // namespace permafrost
