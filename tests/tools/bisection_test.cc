// Tests of transform_graph --bisect on passes that make outputs wrong at their k-th rewrite, in more than twenty ways.
#include "tools/transform/bisection.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <sstream>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "graph/attr.h"
#include "tools/transform/bisection_report.h"

namespace permafrost {
namespace {

constexpr int kUnits = 8;
constexpr double kTolerance = 1e-5;

// A model whose output y is the sum of eight units in sequence. Each unit has a node of every kind that a bad rewrite
// breaks.
class Net {
 public:
  std::unique_ptr<Graph> Build() {
    graph_ = std::make_unique<Graph>();
    Node* x = Add("x", ops::kPlaceholder, {});
    x->RemoveAttr("T");
    x->SetAttr("dtype", AttrValue::Type(DType::kFloat));
    x->SetAttr("shape", AttrValue::OfShape({2, 2, 2, 2}));
    TensorRef at = {x, 0};
    std::vector<TensorRef> outs;
    for (int i = 0; i < kUnits; ++i) {
      at = Unit(absl::StrCat("_", i), at);
      outs.push_back(at);
    }
    Add("y", ops::kAddN, outs)->SetAttr("N", AttrValue::Int(kUnits));
    EXPECT_TRUE(graph_->DeclareInterface({"x"}, {"y"}).ok());
    return std::move(graph_);
  }

 private:
  TensorRef Unit(const std::string& suffix, TensorRef x) {
    const auto name = [&](const char* base) { return absl::StrCat(base, suffix); };
    Node* conv = Add(name("conv"), ops::kConv2D, {x, Floats(name("w"), {3, 3, 2, 2})});
    conv->SetAttr("strides", AttrValue::IntList({1, 1, 1, 1}));
    conv->SetAttr("padding", AttrValue::String("SAME"));
    conv->SetAttr("dilations", AttrValue::IntList({1, 1, 1, 1}));
    Node* bias = Add(name("bias"), ops::kBiasAdd, {{conv, 0}, Floats(name("b"), {2})});
    Node* norm = Add(name("norm"), ops::kFusedBatchNormV3,
                     {{bias, 0},
                      Floats(name("gamma"), {2}),
                      Floats(name("beta"), {2}),
                      Floats(name("mean"), {2}),
                      Floats(name("variance"), {2}, /*offset=*/1.5f)});
    norm->SetAttr("U", AttrValue::Type(DType::kFloat));
    norm->SetAttr("epsilon", AttrValue::Float(1e-3f));
    norm->SetAttr("is_training", AttrValue::Bool(false));
    Node* relu = Add(name("relu"), ops::kRelu, {{norm, 0}});
    Node* split = Add(name("split"), ops::kSplit, {Ints(name("split_axis"), Shape(), {3}), {relu, 0}});
    split->SetAttr("num_split", AttrValue::Int(2));
    Node* sub = Add(name("sub"), ops::kSub, {{split, 0}, {split, 1}});
    Node* join = Add(name("join"), ops::kConcatV2, {{sub, 0}, {split, 1}, Ints(name("axis"), Shape(), {3})});
    join->SetAttr("N", AttrValue::Int(2));
    join->SetAttr("Tidx", AttrValue::Type(DType::kInt32));
    Node* pool = Add(name("pool"), ops::kMean, {{join, 0}, Ints(name("axes"), {2}, {1, 2})});
    pool->SetAttr("keep_dims", AttrValue::Bool(true));
    pool->SetAttr("Tidx", AttrValue::Type(DType::kInt32));
    Node* flat = Reshape(name("flat"), {join, 0}, {8, 2});
    Node* product = Add(name("product"), ops::kMatMul, {{flat, 0}, Floats(name("m"), {2, 2})});
    Node* back = Reshape(name("back"), {product, 0}, {2, 2, 2, 2});
    return {Add(name("sum"), ops::kAddV2, {{back, 0}, {pool, 0}}), 0};
  }

  Node* Add(const std::string& name, Op op, const std::vector<TensorRef>& inputs) {
    Node* node = graph_->AddNode(name, op).value();
    for (const TensorRef& input : inputs) graph_->AddInput(node, input);
    node->SetAttr("T", AttrValue::Type(DType::kFloat));
    return node;
  }
  Node* Reshape(const std::string& name, TensorRef x, std::vector<int32_t> shape) {
    const Shape rank({static_cast<int64_t>(shape.size())});
    Node* node = Add(name, ops::kReshape, {x, Ints(name + "_shape", rank, std::move(shape))});
    node->SetAttr("Tshape", AttrValue::Type(DType::kInt32));
    return node;
  }
  TensorRef Ints(const std::string& name, Shape shape, std::vector<int32_t> values) {
    return {graph_->AddConst(name, Tensor::FromVector(std::move(shape), std::move(values))).value(), 0};
  }
  // Adds numbers between -0.5 and 0.5, plus `offset`, all different.
  TensorRef Floats(const std::string& name, Shape shape, float offset = 0.1f) {
    std::vector<float> values;
    for (int64_t i = 0; i < shape.num_elements(); ++i) {
      seed_ = seed_ * 1664525u + 1013904223u;
      values.push_back(static_cast<float>(seed_ >> 8) / (1 << 24) - 0.5f + offset);
    }
    return {graph_->AddConst(name, Tensor::FromVector(std::move(shape), std::move(values))).value(), 0};
  }

  std::unique_ptr<Graph> graph_;
  uint32_t seed_ = 1;
};

// One way to break a node. The name of the node begins with `site` and "_".
struct BadRewrite {
  const char* name;
  const char* site;
  std::function<void(Graph* graph, Node* node)> corrupt;
};

void SetElement(Node* constant, size_t index, float value) {
  const Tensor tensor = ConstValue(*constant).value();
  std::vector<float> values;
  for (size_t i = 0; i < static_cast<size_t>(tensor.num_elements()); ++i) {
    values.push_back(i == index ? value : tensor.elements<float>()[i]);
  }
  constant->SetAttr("value", AttrValue::OfTensor(Tensor::FromVector(tensor.shape(), std::move(values))));
}

void SetInts(Node* constant, std::vector<int32_t> values) {
  const Shape shape = ConstValue(*constant).value().shape();
  const Shape changed = shape.rank() == 0 ? shape : Shape({static_cast<int64_t>(values.size())});
  constant->SetAttr("value", AttrValue::OfTensor(Tensor::FromVector(changed, std::move(values))));
}

Node* InsertCast(Graph* graph, Node* node, DType from, DType to) {
  Node* cast = graph->AddNode(graph->UniqueName("cast"), ops::kCast, node).value();
  cast->SetAttr("SrcT", AttrValue::Type(from));
  cast->SetAttr("DstT", AttrValue::Type(to));
  return cast;
}

// Each of these errors has occurred in practice.
std::vector<BadRewrite> BadRewrites() {
  const auto swap_inputs = [](Graph* graph, Node* node, int a, int b) {
    const TensorRef first = node->input(a), second = node->input(b);
    graph->SetInput(node, a, second);
    graph->SetInput(node, b, first);
  };
  return {
      {"weight_changed", "w", [](Graph*, Node* node) { SetElement(node, 8, 3.0f); }},
      {"weight_infinite", "w", [](Graph*, Node* node) { SetElement(node, 8, std::numeric_limits<float>::infinity()); }},
      {"bias_changed", "b", [](Graph*, Node* node) { SetElement(node, 1, -2.0f); }},
      {"bias_nan", "b", [](Graph*, Node* node) { SetElement(node, 0, std::nanf("")); }},
      {"channel_scale_wrong", "gamma", [](Graph*, Node* node) { SetElement(node, 0, 5.0f); }},
      {"offset_dropped", "beta", [](Graph*, Node* node) { SetElement(node, 0, 9.0f); }},
      {"wrong_port", "sub",
       [](Graph* graph, Node* node) {
         graph->SetInput(node, 1, {node->input(0).node, 0});
       }},
      {"swapped_inputs", "sub", [=](Graph* graph, Node* node) { swap_inputs(graph, node, 0, 1); }},
      {"swapped_parts", "join", [=](Graph* graph, Node* node) { swap_inputs(graph, node, 0, 1); }},
      {"swapped_parameters", "norm", [=](Graph* graph, Node* node) { swap_inputs(graph, node, 1, 4); }},
      {"reads_another_node", "product",
       [](Graph* graph, Node* node) {
         graph->SetInput(node, 0, {graph->Find("flat_7"), 0});
       }},
      {"reads_another_constant", "bias",
       [](Graph* graph, Node* node) {
         graph->SetInput(node, 1, {graph->Find(node->name() == "bias_0" ? "b_1" : "b_0"), 0});
       }},
      {"wrong_strides", "conv",
       [](Graph*, Node* node) {
         node->SetAttr("strides", AttrValue::IntList({1, 2, 2, 1}));
       }},
      {"wrong_padding", "conv", [](Graph*, Node* node) { node->SetAttr("padding", AttrValue::String("VALID")); }},
      {"wrong_dilations", "conv",
       [](Graph*, Node* node) {
         node->SetAttr("dilations", AttrValue::IntList({1, 2, 2, 1}));
       }},
      {"wrong_epsilon", "norm", [](Graph*, Node* node) { node->SetAttr("epsilon", AttrValue::Float(0.7f)); }},
      {"training_again", "norm", [](Graph*, Node* node) { node->SetAttr("is_training", AttrValue::Bool(true)); }},
      {"wrong_axes", "axes", [](Graph*, Node* node) { SetInts(node, {1}); }},
      {"wrong_axis_of_join", "axis", [](Graph*, Node* node) { SetInts(node, {2}); }},
      {"keep_dims_lost", "pool", [](Graph*, Node* node) { node->SetAttr("keep_dims", AttrValue::Bool(false)); }},
      {"wrong_op", "sum", [](Graph*, Node* node) { node->set_op(ops::kMul); }},
      {"wrong_type", "relu", [](Graph*, Node* node) { node->SetAttr("T", AttrValue::Type(DType::kInt32)); }},
      {"dropped_relu", "relu",
       [](Graph* graph, Node* node) {
         graph->ReplaceUses({node, 0}, node->input(0));
       }},
      {"cast_to_integers", "relu",
       [](Graph* graph, Node* node) {
         Node* there = InsertCast(graph, node, DType::kFloat, DType::kInt32);
         Node* back = InsertCast(graph, node, DType::kInt32, DType::kFloat);
         graph->AddInput(there, node->input(0));
         graph->AddInput(back, {there, 0});
         graph->SetInput(node, 0, {back, 0});
       }},
      {"transposed_weights", "product",
       [](Graph*, Node* node) { node->SetAttr("transpose_b", AttrValue::Bool(true)); }},
      {"unit_skipped", "sum",
       [](Graph* graph, Node* node) {
         graph->ReplaceUses({node, 0}, node->input(1));
       }},
  };
}

// Returns a pass that sets the device of every node of the site, which changes no number, and breaks the k-th.
PassDefinition MakeBadPass(const BadRewrite& bad, int64_t k) {
  PassDefinition pass;
  pass.name = "bad";
  pass.check_arguments = [](const std::vector<PassArgument>&) { return absl::OkStatus(); };
  pass.run = [bad, k](Graph* graph, const std::vector<PassArgument>&, PassContext* context) -> absl::StatusOr<int64_t> {
    int64_t rewrites = 0;
    for (Node* node : graph->Nodes()) {
      const absl::string_view name = node->name();
      if (!absl::StartsWith(name, absl::StrCat(bad.site, "_")) || name.size() != std::string(bad.site).size() + 2)
        continue;
      const RewriteScope rewrite(context, graph, {node});
      if (!rewrite) continue;
      node->set_device("/CPU:0");
      if (++rewrites == k) bad.corrupt(graph, node);
    }
    return rewrites;
  };
  return pass;
}

absl::StatusOr<Bisection> BisectPasses(const std::string& text, std::vector<PassDefinition> own) {
  const std::unique_ptr<Graph> graph = Net().Build();
  const Verifier verifier(*graph, SeededInputSets(*graph, graph->inputs(), 1, 2).value(), SessionOptions());
  EXPECT_TRUE(verifier.Check(*graph).value().was_run) << verifier.Check(*graph).value().why_not;
  BisectionOptions options;
  options.tolerance = kTolerance;
  options.find_pass = [&own](absl::string_view name) -> absl::StatusOr<const PassDefinition*> {
    for (const PassDefinition& pass : own) {
      if (pass.name == name) return &pass;
    }
    return FindPass(name);
  };
  return Bisect(*graph, ParsePipeline(text).value(), verifier, options);
}

TEST(Bisection, FindsEachBadRewrite) {
  const std::vector<BadRewrite> all = BadRewrites();
  EXPECT_GE(all.size(), 20u);
  for (size_t i = 0; i < all.size(); ++i) {
    SCOPED_TRACE(all[i].name);
    const int64_t k = static_cast<int64_t>(i * 3 % (kUnits - 1)) + 1;
    const auto found = BisectPasses("sort_by_execution_order bad merge_duplicate_nodes", {MakeBadPass(all[i], k)});
    ASSERT_TRUE(found.ok()) << found.status();
    EXPECT_EQ(found->result, Bisection::Result::kRewriteBreaks);
    EXPECT_EQ(found->pass, "bad");
    EXPECT_EQ(found->pass_index, 1u);
    EXPECT_EQ(found->rewrite, k);
    EXPECT_EQ(found->num_rewrites, kUnits);
    EXPECT_EQ(found->nodes, std::vector<std::string>{absl::StrCat(all[i].site, "_", k - 1)});
    EXPECT_LE(found->error_before, kTolerance);
    EXPECT_GT(found->error_after, kTolerance);
    EXPECT_FALSE(found->differences.empty());
    ASSERT_FALSE(found->nearby.empty());
    EXPECT_EQ(found->nearby[0].name, found->nodes[0]);
    if (found->failure.empty()) {
      ASSERT_FALSE(found->values.empty());
      EXPECT_TRUE(found->values[0].is_output);
      EXPECT_NE(found->values[0].before, found->values[0].after);
    }
    // Two passes, the bad one with none of its rewrites, three halvings of eight, and one run for the names.
    EXPECT_LE(found->probes.size(), 7u);
  }
}

TEST(Bisection, SaysWhenNothingBreaks) {
  const auto found = BisectPasses("sort_by_execution_order merge_duplicate_nodes", {});
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(found->result, Bisection::Result::kNothingBreaks);
  EXPECT_EQ(SummaryOf(*found), "no pass breaks the numbers");
}

TEST(Bisection, APassWithOneStepIsOneRewrite) {
  PassDefinition pass;
  pass.name = "bad";
  pass.check_arguments = [](const std::vector<PassArgument>&) { return absl::OkStatus(); };
  pass.run = [](Graph* graph, const std::vector<PassArgument>&, PassContext*) -> absl::StatusOr<int64_t> {
    graph->Find("sum_3")->set_op(ops::kMul);
    return 1;
  };
  const auto found = BisectPasses("bad", {pass});
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(found->result, Bisection::Result::kPassBreaks);
  EXPECT_EQ(found->error_before, 0);
  EXPECT_GT(found->error_after, kTolerance);
  EXPECT_EQ(SummaryOf(*found), "pass 1, bad, breaks the numbers");
}

TEST(Bisection, ARewriteAfterWhichThePassFailsIsFoundToo) {
  BadRewrite bad = {"fails", "relu", nullptr};
  PassDefinition pass = MakeBadPass(bad, 0);
  pass.run = [](Graph* graph, const std::vector<PassArgument>&, PassContext* context) -> absl::StatusOr<int64_t> {
    int64_t rewrites = 0;
    for (Node* node : graph->Nodes()) {
      if (node->op() != ops::kRelu || !context->AllowRewrite(*node)) continue;
      node->set_device("/CPU:0");
      if (++rewrites == 5) return absl::FailedPreconditionError("cannot");
    }
    return rewrites;
  };
  const auto found = BisectPasses("bad", {pass});
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(found->result, Bisection::Result::kRewriteBreaks);
  EXPECT_EQ(found->rewrite, 5);
  EXPECT_EQ(found->failure, "bad: cannot");
}

TEST(Bisection, ReportsAsTextAndAsJson) {
  const std::vector<BadRewrite> all = BadRewrites();
  const auto found = BisectPasses("bad", {MakeBadPass(all[0], 2)});
  ASSERT_TRUE(found.ok()) << found.status();
  std::ostringstream text, json, err;
  PrintBisection(*found, Console{text, err});
  WriteBisectionJson(*found, json);
  for (const char* part : {"pass 1, bad, rewrite 2 of 8, of 'w_1', breaks the numbers", "matched: w_1", "y (output)",
                           "conv_1 = Conv2D(sum_0, w_1)", "attr 'value'"}) {
    EXPECT_TRUE(absl::StrContains(text.str(), part)) << part << "\n" << text.str();
  }
  for (const char* part : {"\"rewrite\": 2", "\"result\": \"rewrite_breaks\"", "\"w_1\""}) {
    EXPECT_TRUE(absl::StrContains(json.str(), part)) << part << "\n" << json.str();
  }
}

}  // namespace
}  // namespace permafrost
