// Tests of functions that call functions: recursion, its termination, and invalid calls.
#include <cmath>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "graph/graph.h"
#include "gtest/gtest.h"
#include "io/formats/graphdef_text.h"
#include "runtime_check/session.h"
#include "tests/runtime_check/small_graph.h"

namespace permafrost {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// power(x, n) = n > 0 ? x * power(x, n - 1) : 1, for a number n of type float.
constexpr char kPower[] = R"(
node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } } attr { key: "shape" value { shape { } } } }
node { name: "n" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } } attr { key: "shape" value { shape { } } } }
node { name: "y" op: "StatefulPartitionedCall" input: "x" input: "n"
  attr { key: "Tin" value { list { type: [DT_FLOAT, DT_FLOAT] } } }
  attr { key: "Tout" value { list { type: [DT_FLOAT] } } }
  attr { key: "f" value { func { name: "power" } } } }
library {
  function {
    signature { name: "power" input_arg { name: "x" type: DT_FLOAT } input_arg { name: "n" type: DT_FLOAT }
                output_arg { name: "y" type: DT_FLOAT } }
    node_def { name: "choice" op: "If" input: "n" input: "x" input: "n"
      attr { key: "Tcond" value { type: DT_FLOAT } }
      attr { key: "Tin" value { list { type: [DT_FLOAT, DT_FLOAT] } } }
      attr { key: "Tout" value { list { type: [DT_FLOAT] } } }
      attr { key: "then_branch" value { func { name: "more" } } }
      attr { key: "else_branch" value { func { name: "one" } } } }
    ret { key: "y" value: "choice:output:0" }
  }
  function {
    signature { name: "more" input_arg { name: "x" type: DT_FLOAT } input_arg { name: "n" type: DT_FLOAT }
                output_arg { name: "y" type: DT_FLOAT } }
    node_def { name: "c" op: "Const" attr { key: "dtype" value { type: DT_FLOAT } }
      attr { key: "value" value { tensor { dtype: DT_FLOAT tensor_shape { } float_val: 1 } } } }
    node_def { name: "less" op: "Sub" input: "n" input: "c:output:0" attr { key: "T" value { type: DT_FLOAT } } }
    node_def { name: "rest" op: "PartitionedCall" input: "x" input: "less:z:0"
      attr { key: "Tin" value { list { type: [DT_FLOAT, DT_FLOAT] } } }
      attr { key: "Tout" value { list { type: [DT_FLOAT] } } }
      attr { key: "f" value { func { name: "power" } } } }
    node_def { name: "mul" op: "Mul" input: "x" input: "rest:output:0" attr { key: "T" value { type: DT_FLOAT } } }
    ret { key: "y" value: "mul:z:0" }
  }
  function {
    signature { name: "one" input_arg { name: "x" type: DT_FLOAT } input_arg { name: "n" type: DT_FLOAT }
                output_arg { name: "y" type: DT_FLOAT } }
    node_def { name: "c" op: "Const" attr { key: "dtype" value { type: DT_FLOAT } }
      attr { key: "value" value { tensor { dtype: DT_FLOAT tensor_shape { } float_val: 1 } } } }
    ret { key: "y" value: "c:output:0" }
  }
}
)";

std::unique_ptr<Graph> Read(const std::string& text) {
  absl::StatusOr<std::unique_ptr<Graph>> graph = ReadGraphDefText(text);
  EXPECT_TRUE(graph.ok()) << graph.status();
  return graph.ok() ? *std::move(graph) : nullptr;
}

TEST(CallsTest, AFunctionMayCallItself) {
  const auto graph = Read(kPower);
  auto session = Session::Create(*graph, {"x", "n"}, {"y"});
  ASSERT_TRUE(session.ok()) << session.status();
  for (const float n : {0.f, 1.f, 10.f, 3.f}) {
    const auto outputs = (*session)->Run({Floats({}, {2}), Floats({}, {n})});
    ASSERT_TRUE(outputs.ok()) << outputs.status();
    EXPECT_THAT(ToVector((*outputs)[0]), ElementsAre(std::exp2(n)));
  }
}

TEST(CallsTest, CallsWithoutEndAreAnError) {
  const auto graph = Read(kPower);
  auto session = Session::Create(*graph, {"x", "n"}, {"y"});
  ASSERT_TRUE(session.ok()) << session.status();
  const absl::Status status = (*session)->Run({Floats({}, {2}), Floats({}, {-1})}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(status.message()), HasSubstr("calls nest deeper than 200; does it call itself without end?"));
  EXPECT_LT(status.message().size(), 2000u) << status;
  EXPECT_TRUE((*session)->Run({Floats({}, {2}), Floats({}, {2})}).ok()) << "the session lives on";
}

TEST(CallsTest, AnEndlessWhileStopsAtTheLimit) {
  std::string text = kPower;
  text = absl::StrReplaceAll(
      text, {{"op: \"StatefulPartitionedCall\"", "op: \"While\""},
             {"attr { key: \"Tin\" value { list { type: [DT_FLOAT, DT_FLOAT] } } }\n"
              "  attr { key: \"Tout\" value { list { type: [DT_FLOAT] } } }\n"
              "  attr { key: \"f\" value { func { name: \"power\" } } } }",
              "attr { key: \"T\" value { list { type: [DT_FLOAT, DT_FLOAT] } } }\n"
              "  attr { key: \"cond\" value { func { name: \"one\" } } }\n"
              "  attr { key: \"body\" value { func { name: \"both\" } } } }"},
             {"library {",
              "library { function { signature { name: \"both\" input_arg { name: \"x\" type: DT_FLOAT }\n"
              "  input_arg { name: \"n\" type: DT_FLOAT } output_arg { name: \"a\" type: DT_FLOAT }\n"
              "  output_arg { name: \"b\" type: DT_FLOAT } }\n"
              "  ret { key: \"a\" value: \"n\" } ret { key: \"b\" value: \"x\" } }"}});
  const auto graph = Read(text);
  SessionOptions options;
  options.loop_limits.most_iterations = 1000;
  auto session = Session::Create(*graph, {"x", "n"}, {"y"}, options);
  ASSERT_TRUE(session.ok()) << session.status();
  EXPECT_EQ((*session)->Run({Floats({}, {2}), Floats({}, {1})}).status().message(),
            "node 'y' (While): the loop 'both' goes on after 1000 iterations, the most that are allowed");
}

TEST(CallsTest, RefusesCallsThatDoNotFit) {
  {
    const auto graph = Read(absl::StrReplaceAll(kPower, {{"func { name: \"one\" }", "func { name: \"onne\" }"}}));
    const absl::Status status = Session::Create(*graph, {"x", "n"}, {"y"}).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()), HasSubstr("node 'choice' (If): "));
    EXPECT_THAT(std::string(status.message()), HasSubstr("did you mean 'one'"));
  }
  {
    const auto graph = Read(absl::StrReplaceAll(kPower, {{"op: \"Mul\"", "op: \"Foo\""}}));
    EXPECT_FALSE(Session::Create(*graph, {"x", "n"}, {"y"}).ok());
  }
  {
    // Two arguments for a function with one parameter.
    const auto graph = Read(absl::StrReplaceAll(
        kPower, {{"name: \"one\" input_arg { name: \"x\" type: DT_FLOAT } input_arg { name: \"n\" type: DT_FLOAT }",
                  "name: \"one\" input_arg { name: \"x\" type: DT_FLOAT }"}}));
    auto session = Session::Create(*graph, {"x", "n"}, {"y"});
    ASSERT_TRUE(session.ok()) << session.status();
    EXPECT_THAT(std::string((*session)->Run({Floats({}, {2}), Floats({}, {0})}).status().message()),
                HasSubstr("function 'one': found 2 arguments, expected 1"));
  }
  {
    const std::string text = kPower;
    const auto graph = Read(text.substr(0, text.find("library")));
    EXPECT_EQ(Session::Create(*graph, {"x", "n"}, {"y"}).status().message(),
              "node 'y' (StatefulPartitionedCall): calls function 'power', and the graph has no functions");
  }
}

TEST(RegionsTest, ImmutableConstReadsItsRegion) {
  SmallGraph small;
  small.Add("c", "ImmutableConst", {},
            {{"dtype", AttrValue::Type(DType::kFloat)},
             {"shape", AttrValue::OfShape({2})},
             {"memory_region_name", AttrValue::String("weights")}});
  small.Float("neg", "Neg", {"c"});
  EXPECT_EQ(Session::Create(small.graph(), {}, {"neg"}).status().message(),
            "node 'c' (ImmutableConst): needs the memory region 'weights', and the session is given none");
  SessionOptions options;
  options.region_reader = [](const std::string& region, DType, const Shape&) -> absl::StatusOr<Tensor> {
    EXPECT_EQ(region, "weights");
    return Floats({2}, {1, 2});
  };
  auto session = Session::Create(small.graph(), {}, {"neg"}, options);
  ASSERT_TRUE(session.ok()) << session.status();
  EXPECT_THAT(ToVector((*(*session)->Run({}))[0]), ElementsAre(-1, -2));
  options.region_reader = [](const std::string&, DType, const Shape&) -> absl::StatusOr<Tensor> {
    return Floats({3}, {1, 2, 3});
  };
  EXPECT_THAT(std::string(Session::Create(small.graph(), {}, {"neg"}, options).status().message()),
              HasSubstr("holds float [3], expected float [2]"));
}

}  // namespace
}  // namespace permafrost
