// Tests of fused loops: the results are those of the loop node by node, bit for bit, and loops that do not fit are left
// alone with a reason.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <memory>
#include <random>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "graph/graph.h"
#include "gtest/gtest.h"
#include "io/formats/graphdef.h"
#include "runtime_check/kernels/row_product.h"
#include "runtime_check/session.h"
#include "tests/runtime_check/small_graph.h"

namespace permafrost {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

struct Outcome {
  absl::Status status;
  std::vector<Tensor> outputs;
  PlanReport report;
};

// Runs each input twice in one session.
std::vector<Outcome> RunLoop(const Graph& graph, const std::vector<std::string>& feeds,
                             const std::vector<std::string>& fetches, const std::vector<std::vector<Tensor>>& inputs,
                             SessionOptions options) {
  std::vector<Outcome> outcomes;
  const auto session = Session::Create(graph, feeds, fetches, std::move(options));
  EXPECT_TRUE(session.ok()) << session.status();
  if (!session.ok()) return outcomes;
  for (int round = 0; round < 2; ++round) {
    for (const std::vector<Tensor>& input : inputs) {
      Outcome outcome;
      auto outputs = (*session)->Run(input);
      outcome.status = outputs.status();
      if (outputs.ok()) outcome.outputs = *std::move(outputs);
      outcome.report = (*session)->FullReport();
      outcomes.push_back(std::move(outcome));
    }
  }
  return outcomes;
}

// Runs with and without fused loops, with one thread and with two. Returns the report of the last fused run.
PlanReport ExpectSame(const Graph& graph, const std::vector<std::string>& feeds,
                      const std::vector<std::string>& fetches, const std::vector<std::vector<Tensor>>& inputs,
                      SessionOptions options = {}) {
  PlanReport report;
  options.fuse_loops = false;
  const std::vector<Outcome> expected = RunLoop(graph, feeds, fetches, inputs, options);
  options.fuse_loops = true;
  for (const int num_threads : {1, 2}) {
    options.num_threads = num_threads;
    const std::vector<Outcome> found = RunLoop(graph, feeds, fetches, inputs, options);
    EXPECT_EQ(found.size(), expected.size());
    for (size_t i = 0; i < std::min(found.size(), expected.size()); ++i) {
      EXPECT_EQ(found[i].status, expected[i].status) << "run " << i;
      EXPECT_EQ(found[i].outputs.size(), expected[i].outputs.size());
      for (size_t j = 0; j < std::min(found[i].outputs.size(), expected[i].outputs.size()); ++j) {
        EXPECT_TRUE(found[i].outputs[j] == expected[i].outputs[j]) << "run " << i << ", " << fetches[j];
      }
      report = found[i].report;
    }
  }
  return report;
}

void ExpectFused(const PlanReport& report, size_t count) {
  EXPECT_EQ(report.loops.size(), count);
  for (const LoopReport& loop : report.loops) {
    EXPECT_EQ(loop.reason, "") << loop.loop;
    EXPECT_THAT(loop.steps, Not(IsEmpty())) << loop.loop;
  }
}

// --- Recorded graphs -------------------------------------------------------------------------------------------------

struct Recorded {
  const char* name;
  size_t loops;
};

class RecordedLoops : public testing::TestWithParam<Recorded> {};

TEST_P(RecordedLoops, AreFusedAndExact) {
  std::ifstream file(absl::StrCat("tests/runtime_check/graphs/", GetParam().name, ".pb"), std::ios::binary);
  std::stringstream stream;
  stream << file.rdbuf();
  const std::string bytes = stream.str();
  const auto graph = ReadGraphDef(bytes, nullptr);
  ASSERT_TRUE(graph.ok()) << graph.status();
  std::vector<std::string> feeds, fetches;
  std::vector<std::vector<Tensor>> inputs;
  for (const Node* node : (*graph)->Nodes()) {
    const std::vector<std::string> parts = absl::StrSplit(node->name(), '/');
    if (parts.front() != "recorded") continue;
    size_t run = 0, index = 0;
    ASSERT_TRUE(absl::SimpleAtoi(parts[1], &run) && absl::SimpleAtoi(parts[3], &index));
    std::vector<std::string>& names = parts[2] == "in" ? feeds : fetches;
    names.resize(std::max(names.size(), index + 1));
    names[index] = *StringAttr(*node, "_tensor");
    if (parts[2] != "in") continue;
    inputs.resize(std::max(inputs.size(), run + 1));
    inputs[run].resize(std::max(inputs[run].size(), index + 1));
    inputs[run][index] = *ConstValue(*node);
  }
  ExpectFused(ExpectSame(**graph, feeds, fetches, inputs), GetParam().loops);
}

INSTANTIATE_TEST_SUITE_P(Graphs, RecordedLoops,
                         testing::Values(Recorded{"dynamic_rnn", 1}, Recorded{"keras_gru_functions", 1},
                                         Recorded{"keras_lstm_functions", 2}, Recorded{"keras_lstm_lowered", 1},
                                         Recorded{"keras_masked_lstm", 1}, Recorded{"keras_masked_lstm_lowered", 1},
                                         Recorded{"keras_masked_gru", 1}, Recorded{"keras_masked_simple_rnns", 2},
                                         Recorded{"keras_hard_lstm", 1}, Recorded{"normalised_cell", 1}),
                         [](const auto& info) { return info.param.name; });

// --- Random loops ----------------------------------------------------------------------------------------------------

Tensor Random(std::mt19937* random, const Shape& shape) {
  std::vector<float> values(static_cast<size_t>(shape.num_elements()));
  std::uniform_real_distribution<float> any(-1, 1);
  for (float& value : values) value = any(*random);
  return Floats(shape, std::move(values));
}

// A frame that reads the rows of x by a counter, as Keras writes it in V1 control flow.
class LoopGraph : public SmallGraph {
 public:
  struct Variable {
    std::string name;
    DType dtype;
    std::string initial;
  };

  void Typed(const std::string& name, const std::string& op, const std::vector<std::string>& inputs, DType dtype) {
    Add(name, op, inputs, {{"T", AttrValue::Type(dtype)}});
  }
  void Int(const std::string& name, int32_t value) { Const(name, Tensor::Scalar<int32_t>(value)); }
  void Ints(const std::string& name, std::vector<int32_t> values) {
    const auto count = static_cast<int64_t>(values.size());
    Const(name, Tensor::FromVector<int32_t>(Shape({count}), std::move(values)));
  }
  // Returns the tensor in the loop.
  std::string Enter(const std::string& input, DType dtype) {
    const std::string name = absl::StrCat("loop/", input, "/constant");
    if (graph().Find(name) == nullptr) {
      Add(name, "Enter", {input},
          {{"T", AttrValue::Type(dtype)},
           {"frame_name", AttrValue::String("loop")},
           {"is_constant", AttrValue::Bool(true)}});
    }
    return name;
  }
  // Adds a variable. Its value in the body is "<name>/switch:1", after the loop "<name>/exit".
  void Open(const Variable& variable) {
    Add(variable.name + "/enter", "Enter", {variable.initial},
        {{"T", AttrValue::Type(variable.dtype)},
         {"frame_name", AttrValue::String("loop")},
         {"is_constant", AttrValue::Bool(false)}});
    Add(variable.name + "/merge", "Merge", {variable.name + "/enter", variable.name + "/enter"},
        {{"T", AttrValue::Type(variable.dtype)}, {"N", AttrValue::Int(2)}});
    variables_.push_back(variable);
  }
  // Ends the condition: the loop runs while `condition` holds.
  void Condition(const std::string& condition) {
    Add("loop/cond", "LoopCond", {condition}, {});
    for (const Variable& variable : variables_) {
      Typed(variable.name + "/switch", "Switch", {variable.name + "/merge", "loop/cond"}, variable.dtype);
      Typed(variable.name + "/exit", "Exit", {variable.name + "/switch"}, variable.dtype);
    }
  }
  void Next(const std::string& name, const std::string& value) {
    const auto variable =
        std::find_if(variables_.begin(), variables_.end(), [&](const Variable& each) { return each.name == name; });
    Typed(name + "/next", "NextIteration", {value}, variable->dtype);
    mutable_graph().SetInput(graph().Find(name + "/merge"), 1, {graph().Find(name + "/next"), 0});
  }

 private:
  std::vector<Variable> variables_;
};

struct CellOptions {
  int64_t batch = 1, features = 5, units = 6;
  int steps = 4;       // Iterations.
  int list_size = 4;   // Elements of the list that is read.
  std::string broken;  // A change after which the loop must not be fused.
};

// A random cell with two states: products of the element and of the states, random functions of the results, a mask,
// and a list of results.
std::unique_ptr<LoopGraph> RandomCell(std::mt19937* random, const CellOptions& options) {
  auto made = std::make_unique<LoopGraph>();
  LoopGraph& g = *made;
  const int64_t batch = options.batch, units = options.units;
  const auto flip = [&] { return (*random)() % 2 == 0; };
  g.Placeholder("x", DType::kFloat, Shape({options.list_size, batch, options.features}));
  g.Placeholder("mask", DType::kBool, Shape({options.list_size, batch, 1}));
  g.Ints("x_shape", {static_cast<int32_t>(batch), static_cast<int32_t>(options.features)});
  g.Ints("mask_shape", {static_cast<int32_t>(batch), 1});
  g.Ints("h_shape", {static_cast<int32_t>(batch), static_cast<int32_t>(units)});
  const auto list = [&](const std::string& name, const std::string& value, const std::string& shape, DType dtype) {
    g.Add(name, "TensorListFromTensor", {value, shape},
          {{"element_dtype", AttrValue::Type(dtype)}, {"shape_type", AttrValue::Type(DType::kInt32)}});
  };
  list("xs", "x", "x_shape", DType::kFloat);
  list("masks", "mask", "mask_shape", DType::kBool);
  g.Int("zero", 0);
  g.Int("one", 1);
  g.Int("limit", options.steps);
  g.Int("size", options.steps);
  g.Add("made", "TensorListReserve", {"h_shape", "size"},
        {{"element_dtype", AttrValue::Type(DType::kFloat)}, {"shape_type", AttrValue::Type(DType::kInt32)}});
  g.Const("h0", Random(random, Shape({batch, units})));
  g.Const("c0", Random(random, Shape({batch, units})));
  g.Open({"t", DType::kInt32, "zero"});
  g.Open({"h", DType::kFloat, "h0"});
  g.Open({"c", DType::kFloat, "c0"});
  g.Open({"out", DType::kVariant, "made"});
  if (options.broken == "condition") {
    g.Const("far", Tensor::Scalar<float>(1000));
    g.Const("both", Tensor::FromVector<int32_t>(Shape({2}), {0, 1}));
    g.Add("sum", "Sum", {"h/merge", g.Enter("both", DType::kInt32)},
          {{"T", AttrValue::Type(DType::kFloat)}, {"Tidx", AttrValue::Type(DType::kInt32)}});
    g.Float("near", "Less", {"sum", g.Enter("far", DType::kFloat)});
    g.Typed("more", "Less", {"t/merge", g.Enter("limit", DType::kInt32)}, DType::kInt32);
    g.Add("less", "LogicalAnd", {"near", "more"}, {});
  } else {
    g.Typed("less", "Less", {"t/merge", g.Enter("limit", DType::kInt32)}, DType::kInt32);
  }
  g.Condition("less");
  const std::string t = "t/switch:1", h = "h/switch:1", c = "c/switch:1";
  const auto get = [&](const std::string& name, const std::string& from, const std::string& shape, DType dtype) {
    g.Add(name, "TensorListGetItem", {g.Enter(from, DType::kVariant), t, g.Enter(shape, DType::kInt32)},
          {{"element_dtype", AttrValue::Type(dtype)}});
  };
  get("now", "xs", "x_shape", DType::kFloat);
  get("alive", "masks", "mask_shape", DType::kBool);
  const auto product = [&](const std::string& name, const std::string& left, int64_t depth, int64_t columns) {
    const bool transposed = flip();
    g.Const(name + "/w", Random(random, transposed ? Shape({columns, depth}) : Shape({depth, columns})));
    g.Add(name, "MatMul", {left, g.Enter(name + "/w", DType::kFloat)},
          {{"T", AttrValue::Type(DType::kFloat)},
           {"transpose_a", AttrValue::Bool(false)},
           {"transpose_b", AttrValue::Bool(transposed)}});
  };
  g.Int("axis", 1);
  if (flip()) {
    g.Add("joined", "ConcatV2", {"now", h, g.Enter("axis", DType::kInt32)},
          {{"T", AttrValue::Type(DType::kFloat)}, {"N", AttrValue::Int(2)}, {"Tidx", AttrValue::Type(DType::kInt32)}});
    product("gates", "joined", options.features + units, 3 * units);
  } else {
    product("from_x", "now", options.features, 3 * units);
    product("from_h", h, units, 3 * units);
    g.Float("gates", flip() ? "AddV2" : "Sub", {"from_x", "from_h"});
  }
  g.Const("bias", Random(random, flip() ? Shape({3 * units}) : Shape({1, 3 * units})));
  g.Float("biased", "AddV2", {"gates", g.Enter("bias", DType::kFloat)});
  g.Add("split", "Split", {g.Enter("axis", DType::kInt32), "biased"},
        {{"T", AttrValue::Type(DType::kFloat)}, {"num_split", AttrValue::Int(3)}});
  product("of_c", c, units, units);
  std::vector<std::string> values = {"split", "split:1", "split:2", "of_c", h, c};
  const std::vector<std::string> unary = {"Sigmoid", "Tanh", "Relu", "Relu6", "Neg", "Square", "Softsign", "Elu"};
  const std::vector<std::string> binary = {"AddV2", "Sub", "Mul", "Maximum", "Minimum", "SquaredDifference"};
  const size_t leaves = values.size();
  for (int i = 0; i < 8; ++i) {
    const std::string name = absl::StrCat("f", i);
    const auto any = [&] { return values[(*random)() % values.size()]; };
    if (flip()) {
      g.Float(name, unary[(*random)() % unary.size()], {any()});
    } else {
      g.Float(name, binary[(*random)() % binary.size()], {any(), any()});
    }
    values.push_back(name);
  }
  g.Float("bounded_h", "Tanh", {values.back()});
  g.Float("bounded_c", "Tanh", {values[leaves + (*random)() % 8]});
  g.Float("new_h", "SelectV2", {"alive", "bounded_h", h});
  g.Float("new_c", "SelectV2", {"alive", "bounded_c", flip() ? c : h});
  std::string written = flip() ? "new_h" : c;
  if (options.broken == "effect") {
    g.Add("random", "RandomUniform", {g.Enter("h_shape", DType::kInt32)},
          {{"dtype", AttrValue::Type(DType::kFloat)},
           {"T", AttrValue::Type(DType::kInt32)},
           {"seed", AttrValue::Int(3)},
           {"seed2", AttrValue::Int(4)}});
    g.Float("zeros", "Sub", {"random", "random"});
    g.Float("noisy", "AddV2", {"new_h", "zeros"});
    written = "noisy";
  }
  g.Add("set", "TensorListSetItem", {"out/switch:1", t, written},
        {{"element_dtype", AttrValue::Type(DType::kFloat)}, {"resize_if_index_out_of_bounds", AttrValue::Bool(false)}});
  g.Typed("t_next", "AddV2", {t, g.Enter("one", DType::kInt32)}, DType::kInt32);
  g.Next("t", "t_next");
  // Sometimes a state gets the value that another had.
  g.Next("h", "new_h");
  g.Next("c", flip() ? "new_c" : h);
  g.Next("out", "set");
  g.Add("stack", "TensorListStack", {"out/exit", "h_shape"},
        {{"element_dtype", AttrValue::Type(DType::kFloat)}, {"num_elements", AttrValue::Int(-1)}});
  return made;
}

std::vector<Tensor> CellInputs(std::mt19937* random, const CellOptions& options) {
  const Tensor x = Random(random, Shape({options.list_size, options.batch, options.features}));
  char* data = nullptr;
  Tensor mask = *Tensor::Allocate(DType::kBool, Shape({options.list_size, options.batch, 1}), &data);
  for (int64_t i = 0; i < mask.num_elements(); ++i) data[i] = (*random)() % 3 != 0 ? 1 : 0;
  return {x, mask};
}

const std::vector<std::string>& CellOutputs() {
  static const auto* outputs = new std::vector<std::string>{"stack", "h/exit", "c/exit", "t/exit"};
  return *outputs;
}

TEST(FusedLoopTest, RandomCellsAreExact) {
  int num_fused = 0;
  for (int seed = 0; seed < 120; ++seed) {
    std::mt19937 random(static_cast<uint32_t>(seed));
    CellOptions options;
    options.batch = 1 + static_cast<int64_t>(random() % 3);
    options.features = 1 + static_cast<int64_t>(random() % 40);
    options.units = 1 + static_cast<int64_t>(random() % 70);
    options.steps = static_cast<int>(random() % 6);
    options.list_size = std::max(1, options.steps);
    if (seed % 10 == 0) options.steps = options.list_size = 150;  // More than is batched at once.
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    const auto g = RandomCell(&random, options);
    const std::vector<std::vector<Tensor>> inputs = {CellInputs(&random, options), CellInputs(&random, options)};
    const PlanReport report = ExpectSame(g->graph(), {"x", "mask"}, CellOutputs(), inputs);
    ASSERT_EQ(report.loops.size(), 1u);
    // In some cells no result depends on a product.
    if (report.loops[0].reason.find("no product") == std::string::npos) {
      ExpectFused(report, 1);
      ++num_fused;
    }
    if (HasFailure()) return;
  }
  EXPECT_GE(num_fused, 100);
}

// Weights that are fed are packed in each run.
TEST(FusedLoopTest, ReadsWeightsThatChangeBetweenRuns) {
  std::mt19937 random(3);
  CellOptions options;
  const auto g = RandomCell(&random, options);
  std::vector<std::vector<Tensor>> inputs;
  for (int i = 0; i < 2; ++i) {
    inputs.push_back(CellInputs(&random, options));
    const Node* weights = g->graph().Find("of_c/w");
    inputs.back().push_back(Random(&random, ConstValue(*weights)->shape()));
  }
  ExpectFused(ExpectSame(g->graph(), {"x", "mask", "of_c/w"}, CellOutputs(), inputs), 1);
}

TEST(FusedLoopTest, AnIndexOutOfRangeIsTheSameError) {
  std::mt19937 random(4);
  CellOptions options;
  options.steps = 5;
  options.list_size = 3;
  const auto g = RandomCell(&random, options);
  const PlanReport report = ExpectSame(g->graph(), {"x", "mask"}, CellOutputs(), {CellInputs(&random, options)});
  ASSERT_EQ(report.loops.size(), 1u);
  EXPECT_THAT(report.loops[0].reason, HasSubstr("does not fit"));
}

TEST(FusedLoopTest, LimitsAndMemoryAreKept) {
  std::mt19937 random(5);
  CellOptions options;
  options.steps = options.list_size = 20;
  const auto g = RandomCell(&random, options);
  SessionOptions limited;
  limited.loop_limits.most_iterations = 7;
  ExpectSame(g->graph(), {"x", "mask"}, CellOutputs(), {CellInputs(&random, options)}, limited);
  SessionOptions cancelled;
  int questions = 0;
  cancelled.loop_limits.is_cancelled = [&] { return ++questions > 2; };
  cancelled.fuse_loops = true;
  const auto session = Session::Create(g->graph(), {"x", "mask"}, CellOutputs(), cancelled);
  ASSERT_TRUE(session.ok()) << session.status();
  EXPECT_TRUE(absl::IsCancelled((*session)->Run(CellInputs(&random, options)).status()));
}

TEST(FusedLoopTest, NearMissesAreLeftAlone) {
  for (const auto& [broken, reason] : std::vector<std::pair<std::string, std::string>>{
           {"condition", "condition"}, {"effect", "effects beyond its outputs"}}) {
    SCOPED_TRACE(broken);
    std::mt19937 random(6);
    CellOptions options;
    options.broken = broken;
    const auto g = RandomCell(&random, options);
    const PlanReport report = ExpectSame(g->graph(), {"x", "mask"}, CellOutputs(), {CellInputs(&random, options)});
    ASSERT_EQ(report.loops.size(), 1u);
    EXPECT_THAT(report.loops[0].reason, HasSubstr(reason));
  }
}

// NaN and infinity take the same way as in the nodes.
TEST(FusedLoopTest, KeepsNanAndInfinity) {
  for (int seed = 0; seed < 10; ++seed) {
    std::mt19937 random(static_cast<uint32_t>(seed));
    CellOptions options;
    options.batch = 2;
    const auto g = RandomCell(&random, options);
    std::vector<Tensor> inputs = CellInputs(&random, options);
    std::vector<float> values = ToVector(inputs[0]);
    values[1] = NAN;
    values[7] = INFINITY;
    inputs[0] = Floats(inputs[0].shape(), values);
    std::vector<Outcome> outcomes;
    for (const bool fuses : {false, true}) {
      SessionOptions session_options;
      session_options.fuse_loops = fuses;
      outcomes.push_back(RunLoop(g->graph(), {"x", "mask"}, {"stack"}, {inputs}, session_options)[0]);
    }
    // The sign of a NaN depends on the order of operands.
    EXPECT_THAT(ToVector(outcomes[1].outputs[0]),
                testing::Pointwise(testing::NanSensitiveFloatEq(), ToVector(outcomes[0].outputs[0])));
  }
}

// --- Row products ----------------------------------------------------------------------------------------------------

TEST(RowProductTest, EqualsTheProductOfAllRowsBitForBit) {
  std::mt19937 random(1);
  const InnerLoops& loops = BestInnerLoops();
  ThreadPool threads(2);
  for (int i = 0; i < 60; ++i) {
    const PackedShape shape{1 + static_cast<int64_t>(random() % 500), 1 + static_cast<int64_t>(random() % 700)};
    const std::vector<float> b = ToVector(Random(&random, Shape({shape.depth, shape.columns})));
    const std::vector<float> a = ToVector(Random(&random, Shape({shape.depth})));
    FloatBuffer packed = *FloatBuffer::Allocate(*shape.Size(loops));
    Pack(loops, shape, b.data(), shape.columns, 1, packed.data());
    std::vector<float> expected(static_cast<size_t>(shape.columns)), found(expected.size(), 7);
    Multiply(loops, 1, shape, a.data(), shape.depth, packed.data(), expected.data(), shape.columns, 0,
             shape.NumPanels(loops));
    const int64_t middle = static_cast<int64_t>(random()) % shape.depth;
    const std::vector<DepthRange> ranges = middle == 0 ? std::vector<DepthRange>{{0, shape.depth}}
                                                       : std::vector<DepthRange>{{0, middle}, {middle, shape.depth}};
    for (const DepthRange& range : ranges) {
      ParallelMultiplyPart(loops, threads, 1, shape, range, a.data() + range.begin, shape.depth, packed.data(),
                           found.data(), shape.columns);
    }
    EXPECT_EQ(found, expected) << shape.depth << "x" << shape.columns;
  }
}

}  // namespace
}  // namespace permafrost
