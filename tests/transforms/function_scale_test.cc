// Runs passes over many functions, many calls, and malicious libraries.
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "io/formats/graphdef_text.h"
#include "transforms/pipeline/pipeline.h"

namespace permafrost {
namespace {

constexpr char kPlaceholder[] =
    R"(node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } }
              attr { key: "shape" value { shape { } } } }
)";

std::string Call(const std::string& kind, const std::string& name, const std::string& input,
                 const std::string& function) {
  return absl::StrCat(kind, " { name: \"", name, "\" op: \"PartitionedCall\" input: \"", input, R"("
      attr { key: "Tin" value { list { type: DT_FLOAT } } } attr { key: "Tout" value { list { type: DT_FLOAT } } }
      attr { key: "f" value { func { name: ")",
                      function, "\" } } } }\n");
}

std::string Function(const std::string& name, const std::string& nodes, const std::string& value) {
  return absl::StrCat("function { signature { name: \"", name, R"(" input_arg { name: "x" type: DT_FLOAT }
      output_arg { name: "y" type: DT_FLOAT } } )",
                      nodes, "ret { key: \"y\" value: \"", value, "\" } }\n");
}

std::string Neg(const std::string& input) {
  return absl::StrCat(R"(node_def { name: "n" op: "Neg" input: ")", input,
                      R"(" attr { key: "T" value { type: DT_FLOAT } } } )");
}

struct Outcome {
  absl::Status status;
  std::unique_ptr<Graph> graph;
};

Outcome Transform(absl::string_view passes, const std::string& text, const std::string& output) {
  Outcome outcome;
  auto graph = ReadGraphDefText(text);
  EXPECT_TRUE(graph.ok()) << graph.status();
  outcome.graph = *std::move(graph);
  EXPECT_TRUE(outcome.graph->DeclareInterface({"x"}, {output}).ok());
  PassContext context;
  const auto calls = ParsePipeline(passes);
  outcome.status = RunPipeline(&outcome.graph, *calls, &context).status();
  return outcome;
}

TEST(FunctionScale, ManyCallsOfOneFunctionAndOneNodeThatWaitsForThem) {
  constexpr int kCalls = 20000;
  std::string text = kPlaceholder, waits = "node { name: \"done\" op: \"NoOp\"";
  for (int i = 0; i < kCalls; ++i) {
    absl::StrAppend(&text, Call("node", absl::StrCat("c", i), i == 0 ? "x" : absl::StrCat("c", i - 1), "f"));
    absl::StrAppend(&waits, " input: \"^c", i, "\"");
  }
  const Outcome outcome =
      Transform("inline_partitionedcall",
                absl::StrCat(text, waits, " }\nlibrary { ", Function("f", Neg("x"), "n:y:0"), "}"), "done");
  ASSERT_TRUE(outcome.status.ok()) << outcome.status;
  EXPECT_EQ(outcome.graph->num_nodes(), static_cast<size_t>(kCalls + 2));
  EXPECT_EQ(outcome.graph->Find("done")->num_inputs(), kCalls);
}

TEST(FunctionScale, DoublingIsRefused) {
  std::string text = kPlaceholder;
  absl::StrAppend(&text, Call("node", "c", "x", "f0"), "library { ");
  for (int i = 0; i < 60; ++i) {
    const std::string next = absl::StrCat("f", i + 1);
    absl::StrAppend(
        &text, Function(absl::StrCat("f", i),
                        Call("node_def", "a", "x", next) + Call("node_def", "b", "a:output:0", next), "b:output:0"));
  }
  absl::StrAppend(&text, Function("f60", Neg("x"), "n:y:0"), "}");
  const Outcome outcome = Transform("inline_partitionedcall(max_nodes=100000)", text, "c");
  EXPECT_EQ(outcome.status.code(), absl::StatusCode::kResourceExhausted) << outcome.status;
}

TEST(FunctionScale, DeepCallsAreRefused) {
  std::string text = kPlaceholder;
  absl::StrAppend(&text, Call("node", "c", "x", "f0"), "library { ");
  for (int i = 0; i < 2000; ++i) {
    absl::StrAppend(&text,
                    Function(absl::StrCat("f", i), Call("node_def", "a", "x", absl::StrCat("f", i + 1)), "a:output:0"));
  }
  absl::StrAppend(&text, Function("f2000", Neg("x"), "n:y:0"), "}");
  const Outcome outcome = Transform("inline_partitionedcall", text, "c");
  EXPECT_EQ(outcome.status.code(), absl::StatusCode::kResourceExhausted) << outcome.status;
  EXPECT_TRUE(absl::StrContains(outcome.status.message(), "more than 1000 deep")) << outcome.status;
}

TEST(FunctionScale, FunctionsThatMakeNewCasesOfThemselvesAreRefused) {
  const std::string body = R"(node_def { name: "a" op: "PartitionedCall" input: "x"
      attr { key: "Tin" value { list { type: DT_FLOAT } } } attr { key: "Tout" value { list { type: DT_FLOAT } } }
      attr { key: "f" value { func { name: "f" attr { key: "g" value { func { name: "f"
        attr { key: "g" value { placeholder: "g" } } } } } } } } } )";
  const std::string call = R"(node { name: "c" op: "PartitionedCall" input: "x"
      attr { key: "Tin" value { list { type: DT_FLOAT } } } attr { key: "Tout" value { list { type: DT_FLOAT } } }
      attr { key: "f" value { func { name: "f" attr { key: "g" value { i: 1 } } } } } })";
  const std::string function = absl::StrCat(R"(function { signature { name: "f"
      input_arg { name: "x" type: DT_FLOAT } output_arg { name: "y" type: DT_FLOAT } attr { name: "g" type: "func" } } )",
                                            body, R"(ret { key: "y" value: "a:output:0" } })");
  const Outcome outcome =
      Transform("inline_partitionedcall", absl::StrCat(kPlaceholder, call, " library { ", function, " }"), "c");
  EXPECT_FALSE(outcome.status.ok());
  EXPECT_NE(outcome.status.code(), absl::StatusCode::kInternal) << outcome.status;
}

TEST(FunctionScale, LoopsInLoopsAreLowered) {
  constexpr int kDepth = 300;
  std::string text = kPlaceholder;
  const auto loop = [](const std::string& kind, const std::string& input, int i) {
    return absl::StrCat(kind, R"( { name: "w" op: "StatelessWhile" input: ")", input, R"("
        attr { key: "T" value { list { type: DT_FLOAT } } } attr { key: "cond" value { func { name: "keep" } } }
        attr { key: "body" value { func { name: "f)",
                        i, "\" } } } }\n");
  };
  absl::StrAppend(&text, loop("node", "x", 0), "library { ", Function("keep", "", "x"));
  for (int i = 0; i < kDepth; ++i) {
    absl::StrAppend(&text, Function(absl::StrCat("f", i), loop("node_def", "x", i + 1), "w:output:0"));
  }
  absl::StrAppend(&text, Function(absl::StrCat("f", kDepth), Neg("x"), "n:y:0"), "}");
  const Outcome outcome = Transform("lower_control_flow", text, "w");
  ASSERT_TRUE(outcome.status.ok()) << outcome.status;
  for (const Node* node = outcome.graph->first(); node != nullptr; node = node->next()) {
    ASSERT_NE(node->op(), ops::kStatelessWhile);
  }
}

}  // namespace
}  // namespace permafrost
