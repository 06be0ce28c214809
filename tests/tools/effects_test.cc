// Tests of the effects that nodes have, and of proofs that loops end.
#include "tools/summary/effects.h"

#include <gtest/gtest.h>

#include <map>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "graph/ops/op_schema.h"
#include "io/formats/graphdef_text.h"

namespace permafrost {
namespace {

std::unique_ptr<Graph> GraphOf(const std::string& text) {
  absl::StatusOr<std::unique_ptr<Graph>> graph = ReadGraphDefText(text);
  EXPECT_TRUE(graph.ok()) << graph.status();
  return *std::move(graph);
}

// Returns "name: source source, name: ...", with each source as "function/node".
std::string EffectsOf(const std::string& text, const absl::flat_hash_set<std::string>* allowed = nullptr) {
  const absl::StatusOr<std::vector<FoundEffect>> effects = FindEffects(*GraphOf(text), allowed);
  EXPECT_TRUE(effects.ok()) << effects.status();
  return absl::StrJoin(*effects, ", ", [](std::string* out, const FoundEffect& effect) {
    absl::StrAppend(out, effect.kind->name, ":");
    for (const EffectSource& source : effect.sources) {
      absl::StrAppend(out, " ", source.function, source.function.empty() ? "" : "/", source.node);
    }
  });
}

std::string Op(const std::string& name) { return absl::StrCat("node { name: 'n' op: '", name, "' } "); }

TEST(Effects, FollowFromTheOp) {
  EXPECT_EQ(EffectsOf(Op("Relu")), "");
  EXPECT_EQ(EffectsOf(Op("ReadFile")), "read_files: n");
  EXPECT_EQ(EffectsOf(Op("SaveV2")), "write_files: n");
  EXPECT_EQ(EffectsOf(Op("PrintV2")), "print: n");
  EXPECT_EQ(EffectsOf(Op("RandomStandardNormal")), "random: n");
  EXPECT_EQ(EffectsOf(Op("StatelessRandomUniform")), "");  // The same numbers in every run.
  EXPECT_EQ(EffectsOf(Op("AssignVariableOp")), "state: n");
  EXPECT_EQ(EffectsOf(Op("ReadVariableOp")), "");
  EXPECT_EQ(EffectsOf(Op("PyFunc")), "code: n");
  EXPECT_EQ(EffectsOf(Op("DataServiceDatasetV4")), "network: n");
  EXPECT_EQ(EffectsOf(Op("RpcClient")), "network: n");
  EXPECT_EQ(EffectsOf(Op("Assert")), "fail: n");
  EXPECT_EQ(EffectsOf(Op("Timestamp")), "environment: n");
  EXPECT_EQ(EffectsOf(Op("ConfigureTPUEmbedding")), "device: n");
  EXPECT_EQ(EffectsOf(Op("InitializeTableFromTextFileV2")), "read_files: n, state: n");
}

TEST(Effects, OpsOfNeitherTensorFlowNorThisProjectAreCode) {
  EXPECT_EQ(EffectsOf(Op("FrobnicateV7")), "code: n");
  EXPECT_EQ(EffectsOf(Op("TFLite_Detection_PostProcess")), "");
  EXPECT_EQ(EffectsOf(Op("TFLite:Mystery")), "code: n");
}

TEST(Effects, OpsOutsideOfTheListAreNamed) {
  const absl::flat_hash_set<std::string> allowed = ParseOpList("Relu # the only one\nConv2D,MatMul");
  EXPECT_EQ(allowed.size(), 3u);
  EXPECT_EQ(EffectsOf(Op("Relu"), &allowed), "");
  EXPECT_EQ(EffectsOf(Op("Tanh"), &allowed), "other_ops: n");
}

constexpr char kFunctions[] = R"(
library {
  function { signature { name: 'inner' }  node_def { name: 'save' op: 'SaveV2' } }
  function { signature { name: 'outer' }  node_def { name: 'call' op: 'inner' } }
  function { signature { name: 'apart' }  node_def { name: 'print' op: 'PrintV2' } }
  function {
    signature { name: 'typed' attr { name: 'T' type: 'type' } }
    node_def { name: 'print' op: 'PrintV2' attr { key: 'T' value { placeholder: 'T' } } }
  }
  function { signature { name: 'again' } node_def { name: 'call' op: 'again' } }
})";

TEST(Effects, OfFunctionsCountIfTheyAreReached) {
  const auto call = [](const std::string& attr) {
    return absl::StrCat("node { name: 'n' op: 'StatefulPartitionedCall' attr { key: 'f' value { ", attr, " } } }",
                        kFunctions);
  };
  EXPECT_EQ(EffectsOf(call("func { name: 'outer' }")), "write_files: inner/save");
  EXPECT_EQ(EffectsOf(call("list { func { name: 'apart' } func { name: 'outer' } }")),
            "write_files: inner/save, print: apart/print");
  // A body that is not a graph by itself.
  EXPECT_EQ(EffectsOf(call("func { name: 'typed' attr { key: 'T' value { type: DT_FLOAT } } }")), "print: typed/print");
  EXPECT_EQ(EffectsOf(call("func { name: 'nowhere' }")), "code: n");
  EXPECT_EQ(EffectsOf(call("func { name: 'again' }")), "loop: ");
}

// Ops that are stateful in the schemas, with a state that ends with the run.
bool EndsWithRun(absl::string_view op) { return absl::StartsWith(op, "TensorArray") || absl::StartsWith(op, "Stack"); }

TEST(Effects, EveryRandomOrActingOpOfTheSchemaTableHasARow) {
  for (uint32_t id = 0; id < ops::kNumKnownOps; ++id) {
    const class Op op(static_cast<ops::OpId>(id));
    const OpSchema* schema = FindSchema(op);
    ASSERT_NE(schema, nullptr);
    if ((schema->traits & (kRandom | kHasSideEffect)) == 0 || EndsWithRun(op.name())) continue;
    EXPECT_NE(EffectsOf(absl::StrCat("node { name: 'n' op: '", op.name(), "' }")), "") << op.name();
  }
}

TEST(Effects, WordsOfForbid) {
  EXPECT_EQ(ParseForbiddenEffects("files, random")->size(), 3u);
  EXPECT_EQ(ParseForbiddenEffects("all")->size(), EffectKinds().size());
  EXPECT_EQ(ParseForbiddenEffects("")->size(), 0u);
  const absl::Status status = ParseForbiddenEffects("pirnt").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(status.message().find("did you mean 'print'"), std::string::npos) << status;
}

// A loop over (i, n, x) as functions. COND and STEP are expressions of nodes; the outer limit is LIMIT.
constexpr char kWhile[] = R"(
node { name: 'x' op: 'Placeholder' attr { key: 'dtype' value { type: DT_INT32 } } }
node { name: 'start' op: 'Placeholder' attr { key: 'dtype' value { type: DT_INT32 } } }
node { name: 'size' op: 'Size' input: 'x' attr { key: 'T' value { type: DT_INT32 } } attr { key: 'out_type' value { type: DT_INT32 } } }
node { name: 'ten' op: 'Const' attr { key: 'dtype' value { type: DT_INT32 } } attr { key: 'value' value { tensor { dtype: DT_INT32 tensor_shape { } int_val: 10 } } } }
node { name: 'largest' op: 'Const' attr { key: 'dtype' value { type: DT_INT32 } } attr { key: 'value' value { tensor { dtype: DT_INT32 tensor_shape { } int_val: 2147483647 } } } }
node { name: 'loop' op: 'StatelessWhile' input: 'start' input: 'LIMIT' input: 'x'
  attr { key: 'T' value { list { type: [DT_INT32, DT_INT32, DT_INT32] } } }
  attr { key: 'cond' value { func { name: 'cond' } } } attr { key: 'body' value { func { name: 'body' } } } }
library {
  function {
    signature { name: 'cond' input_arg { name: 'i' type: DT_INT32 } input_arg { name: 'n' type: DT_INT32 }
      input_arg { name: 'x' type: DT_INT32 } output_arg { name: 'go' type: DT_BOOL } }
    node_def { name: 'xsize' op: 'Size' input: 'x' attr { key: 'T' value { type: DT_INT32 } } attr { key: 'out_type' value { type: DT_INT32 } } }
    node_def { name: 'compare' op: 'COMPARE' input: 'LEFT' input: 'RIGHT' attr { key: 'T' value { type: DT_INT32 } } }
    node_def { name: 'other' op: 'Equal' input: 'x' input: 'x' attr { key: 'T' value { type: DT_INT32 } } }
    node_def { name: 'both' op: 'LogicalAnd' input: 'other:z:0' input: 'compare:z:0' }
    ret { key: 'go' value: 'both:z:0' }
  }
  function {
    signature { name: 'body' input_arg { name: 'i' type: DT_INT32 } input_arg { name: 'n' type: DT_INT32 }
      input_arg { name: 'x' type: DT_INT32 } output_arg { name: 'j' type: DT_INT32 } output_arg { name: 'm' type: DT_INT32 }
      output_arg { name: 'y' type: DT_INT32 } }
    node_def { name: 'step' op: 'Const' attr { key: 'dtype' value { type: DT_INT32 } } attr { key: 'value' value { tensor { dtype: DT_INT32 tensor_shape { } int_val: STEP } } } }
    node_def { name: 'next' op: 'AddV2' input: 'i' input: 'step:output:0' attr { key: 'T' value { type: DT_INT32 } } }
    node_def { name: 'copy' op: 'Identity' input: 'next:z:0' attr { key: 'T' value { type: DT_INT32 } } }
    ret { key: 'j' value: 'copy:output:0' } ret { key: 'm' value: 'KEPT' } ret { key: 'y' value: 'next:z:0' }
  }
})";

std::string While(const std::map<std::string, std::string>& changes) {
  std::map<std::string, std::string> words = {{"LIMIT", "ten"}, {"COMPARE", "Less"}, {"LEFT", "i"},
                                              {"RIGHT", "n"},   {"STEP", "1"},       {"KEPT", "n"}};
  for (const auto& [word, value] : changes) words[word] = value;
  return EffectsOf(absl::StrReplaceAll(kWhile, words));
}

TEST(LoopBounds, ACounterAndALimitAreABound) {
  EXPECT_EQ(While({}), "");
  EXPECT_EQ(While({{"LIMIT", "size"}}), "");
  EXPECT_EQ(While({{"LEFT", "n"}, {"RIGHT", "i"}, {"COMPARE", "Greater"}}), "");
  EXPECT_EQ(While({{"COMPARE", "LessEqual"}, {"STEP", "3"}}), "");
  EXPECT_EQ(While({{"COMPARE", "Greater"}, {"STEP", "-1"}}), "");
}

TEST(LoopBounds, OtherLoopsAreNamed) {
  EXPECT_EQ(While({{"LIMIT", "x"}}), "loop: loop");  // As many times as an input says.
  EXPECT_EQ(While({{"STEP", "0"}}), "loop: loop");
  EXPECT_EQ(While({{"STEP", "-1"}}), "loop: loop");
  EXPECT_EQ(While({{"COMPARE", "Equal"}}), "loop: loop");
  EXPECT_EQ(While({{"KEPT", "next:z:0"}}), "loop: loop");                            // The limit grows, too.
  EXPECT_EQ(While({{"RIGHT", "xsize:output:0"}}), "loop: loop");                     // x may grow.
  EXPECT_EQ(While({{"LIMIT", "largest"}, {"COMPARE", "LessEqual"}}), "loop: loop");  // Overflows.
  EXPECT_EQ(While({{"LIMIT", "size"}, {"COMPARE", "LessEqual"}}), "loop: loop");     // May overflow.
}

// The loop of V1 control flow: i = 0; while (i < n) i += 1.
constexpr char kFrames[] = R"(
node { name: 'x' op: 'Placeholder' attr { key: 'dtype' value { type: DT_INT32 } } }
node { name: 'zero' op: 'Const' attr { key: 'dtype' value { type: DT_INT32 } } attr { key: 'value' value { tensor { dtype: DT_INT32 tensor_shape { } int_val: 0 } } } }
node { name: 'size' op: 'Size' input: 'x' attr { key: 'T' value { type: DT_INT32 } } attr { key: 'out_type' value { type: DT_INT32 } } }
node { name: 'i' op: 'Enter' input: 'zero' attr { key: 'T' value { type: DT_INT32 } } attr { key: 'frame_name' value { s: 'f' } } }
node { name: 'n' op: 'Enter' input: 'LIMIT' attr { key: 'T' value { type: DT_INT32 } } attr { key: 'frame_name' value { s: 'f' } }
  attr { key: 'is_constant' value { b: true } } }
node { name: 'merge' op: 'Merge' input: 'i' input: 'next' attr { key: 'T' value { type: DT_INT32 } } attr { key: 'N' value { i: 2 } } }
node { name: 'less' op: 'Less' input: 'merge' input: 'n' attr { key: 'T' value { type: DT_INT32 } } }
node { name: 'go' op: 'LoopCond' input: 'less' }
node { name: 'switch' op: 'Switch' input: 'merge' input: 'go' attr { key: 'T' value { type: DT_INT32 } } }
node { name: 'copy' op: 'Identity' input: 'switch:1' attr { key: 'T' value { type: DT_INT32 } } }
node { name: 'one' op: 'Const' input: '^copy' attr { key: 'dtype' value { type: DT_INT32 } } attr { key: 'value' value { tensor { dtype: DT_INT32 tensor_shape { } int_val: 1 } } } }
node { name: 'add' op: 'Add' input: 'one' input: 'copy' attr { key: 'T' value { type: DT_INT32 } } }
node { name: 'next' op: 'NextIteration' input: 'add' attr { key: 'T' value { type: DT_INT32 } } }
node { name: 'exit' op: 'Exit' input: 'switch' attr { key: 'T' value { type: DT_INT32 } } }
)";

TEST(LoopBounds, LoopsOfV1ControlFlow) {
  EXPECT_EQ(EffectsOf(absl::StrReplaceAll(kFrames, {{"LIMIT", "size"}})), "");
  EXPECT_EQ(EffectsOf(absl::StrReplaceAll(kFrames, {{"LIMIT", "x"}})), "loop: go");
  EXPECT_EQ(EffectsOf(absl::StrReplaceAll(kFrames, {{"LIMIT", "size"}, {"'one' input: 'copy'", "'x' input: 'copy'"}})),
            "loop: go");
}

// Functions that were lowered carry limits round the loop instead.
TEST(LoopBounds, ALimitThatAnIterationCopiesIsALimit) {
  const std::string type = "attr { key: 'T' value { type: DT_INT32 } } ";
  const std::string limit =
      absl::StrCat("node { name: 'kept' op: 'Merge' input: 'n' input: 'kept_next' ", type,
                   "attr { key: 'N' value { i: 2 } } } "
                   "node { name: 'kept_switch' op: 'Switch' input: 'kept' input: 'go' ",
                   type, "} node { name: 'kept_next' op: 'NextIteration' input: 'NEXT' ", type, "}");
  const std::string loop = absl::StrReplaceAll(kFrames, {{"LIMIT", "size"},
                                                         {"'merge' input: 'n'", "'merge' input: 'kept'"},
                                                         {"attr { key: 'is_constant' value { b: true } }", ""}});
  EXPECT_EQ(EffectsOf(absl::StrCat(loop, absl::StrReplaceAll(limit, {{"NEXT", "kept_switch:1"}}))), "");
  EXPECT_EQ(EffectsOf(absl::StrCat(loop, absl::StrReplaceAll(limit, {{"NEXT", "add"}}))), "loop: go");
}

}  // namespace
}  // namespace permafrost
