// Runs every pass and preset over large graphs in which nearly all find work. Quadratic cost would exceed the test's
// time limit, and the result must not outgrow the input. On smaller graphs of the same kind, checks the properties that
// each pass declares.
#include <map>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "runtime_check/checking/evaluate.h"
#include "tests/transforms/large_graphs.h"
#include "transforms/pipeline/presets.h"

namespace permafrost {
namespace {

constexpr int kSmall = 1000, kMedium = 10000, kLarge = 50000;

struct Size {
  int64_t rewrites = 0;
  size_t nodes = 0, edges = 0;
};

const Graph& LargeGraph(LargeShape shape, int num_nodes) {
  static auto* const graphs = new std::map<std::pair<LargeShape, int>, std::unique_ptr<Graph>>;
  std::unique_ptr<Graph>& graph = (*graphs)[{shape, num_nodes}];
  if (graph == nullptr) {
    absl::StatusOr<std::unique_ptr<Graph>> made = MakeLargeGraph(shape, num_nodes);
    EXPECT_TRUE(made.ok()) << made.status();
    graph = made.ok() ? *std::move(made) : std::make_unique<Graph>();
  }
  return *graph;
}

// Runs the passes alone, without the checks of the pipeline, which cost more than most passes.
Size RunPasses(const PassCall& call, const Graph& graph) {
  Size size;
  const std::unique_ptr<Graph> copy = graph.Clone();
  const KernelEvaluator evaluator;
  PassContext context = ContextOfEveryPass(*copy);
  context.evaluator = &evaluator;
  const auto calls = ExpandPresets({call});
  EXPECT_TRUE(calls.ok()) << calls.status();
  for (const PassCall& each : *calls) {
    const auto pass = FindPass(each.name);
    const auto rewrites = (*pass)->run(copy.get(), each.arguments, &context);
    EXPECT_TRUE(rewrites.ok()) << each.ToString() << ": " << rewrites.status();
    if (!rewrites.ok()) break;
    size.rewrites += *rewrites;
  }
  size.nodes = copy->num_nodes();
  for (const Node* node = copy->first(); node != nullptr; node = node->next()) size.edges += node->num_inputs();
  return size;
}

// The addend allows for nodes that a graph has once.
template <typename T>
bool GrowsInProportion(T medium, T large) {
  return large <= medium * (kLarge / kMedium) * 5 / 4 + 200;
}

using CallAndShape = std::tuple<PassCall, LargeShape>;

std::vector<PassCall> Calls() {
  const auto calls = CallsOfEveryPass();
  return calls.ok() ? *calls : std::vector<PassCall>();
}

class EveryPassScaleTest : public testing::TestWithParam<CallAndShape> {};

TEST_P(EveryPassScaleTest, EndsInTimeAndMakesNoMoreThanItReads) {
  const auto& [call, shape] = GetParam();
  const Size medium = RunPasses(call, LargeGraph(shape, kMedium)), large = RunPasses(call, LargeGraph(shape, kLarge));
  EXPECT_TRUE(GrowsInProportion(medium.rewrites, large.rewrites)) << medium.rewrites << ", " << large.rewrites;
  EXPECT_TRUE(GrowsInProportion(medium.nodes, large.nodes)) << medium.nodes << ", " << large.nodes;
  EXPECT_TRUE(GrowsInProportion(medium.edges, large.edges)) << medium.edges << ", " << large.edges;
}

TEST_P(EveryPassScaleTest, HoldsWhatItSaysOfItself) {
  const auto& [call, shape] = GetParam();
  std::unique_ptr<Graph> graph = LargeGraph(shape, kSmall).Clone();
  const KernelEvaluator evaluator;
  PassContext context = ContextOfEveryPass(*graph);
  context.evaluator = &evaluator;
  const auto calls = ExpandPresets({call});
  ASSERT_TRUE(calls.ok()) << calls.status();
  // Also checks the number of rewrites against the hash, and validates.
  const auto reports = RunPipeline(&graph, *calls, &context);
  ASSERT_TRUE(reports.ok()) << reports.status();
  if (calls->size() > 1 || !(*FindPass(call.name))->is_idempotent) return;
  const auto again = RunPipeline(&graph, *calls, &context);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->back().rewrites, 0) << "the pass says that it is idempotent";
}

INSTANTIATE_TEST_SUITE_P(Calls, EveryPassScaleTest,
                         testing::Combine(testing::ValuesIn(Calls()), testing::ValuesIn(kLargeShapes)),
                         [](const testing::TestParamInfo<CallAndShape>& info) {
                           return absl::StrCat(std::get<0>(info.param).name, "_", Name(std::get<1>(info.param)));
                         });

// The table of large_graphs.cc is complete, and each pass that rewrites a pattern finds it in some graph.
TEST(EveryPass, IsCalledAndNearlyAllFindWork) {
  const auto calls = CallsOfEveryPass();
  ASSERT_TRUE(calls.ok()) << calls.status();
  ASSERT_EQ(calls->size(), AllPasses().size() + AllPresets().size());
  // The graphs have no match for these: devices, moving averages, constants of 1024 elements, constants of more values
  // than round_weights keeps, another batch.
  const std::set<std::string> idle = {"drop_preprocessing", "fold_preprocessing",  "lower_einsum",
                                      "lower_tensor_lists", "quantize_for_tflite", "quantize_weights",
                                      "remove_device",      "remove_ema",          "rescale_for_half",
                                      "round_weights",      "set_batch",           "sink_constants"};
  for (const PassCall& call : *calls) {
    int64_t rewrites = 0;
    for (const LargeShape shape : kLargeShapes) rewrites += RunPasses(call, LargeGraph(shape, kSmall)).rewrites;
    EXPECT_EQ(rewrites == 0, idle.count(call.name) == 1) << call.name << ": " << rewrites;
  }
}

}  // namespace

void PrintTo(const PassCall& call, std::ostream* out) { *out << call.ToString(); }

}  // namespace permafrost
