// Runs passes over large and irregular graphs. Quadratic cost would exceed the test's time limit.
#include "graph/evaluator.h"
#include "gtest/gtest.h"
#include "transforms/pipeline/pipeline.h"

namespace permafrost {
namespace {

constexpr int kNodes = 200000;

// Computes nothing, so that folding is limited to the removal of copies.
class NoEvaluator : public Evaluator {
 public:
  absl::Status Supports(const Node&) const override { return absl::UnimplementedError("nothing is"); }
  absl::StatusOr<std::vector<Tensor>> Evaluate(const Node&, absl::Span<const Tensor>) const override {
    return absl::UnimplementedError("nothing is");
  }
};

class ScaleTest : public testing::Test {
 protected:
  Node* Add(absl::string_view name, Op op, Node* input = nullptr) {
    Node* node = *graph_->AddNode(name, op);
    node->SetAttr(op == ops::kPlaceholder ? "dtype" : "T", type_);
    if (input != nullptr) graph_->AddInput(node, {input, 0});
    return node;
  }
  std::string Name(absl::string_view base, int i) { return absl::StrCat(base, i); }

  int64_t Run(absl::string_view text) {
    const NoEvaluator evaluator;
    PassContext context;
    context.evaluator = &evaluator;
    const auto calls = ParsePipeline(text);
    const auto reports = RunPipeline(&graph_, *calls, &context);
    EXPECT_TRUE(reports.ok()) << reports.status();
    return reports.ok() ? reports->back().rewrites : -1;
  }
  Node* AddFloats(absl::string_view name, Shape shape, std::vector<float> values) {
    return *graph_->AddConst(name, Tensor::FromVector<float>(std::move(shape), std::move(values)));
  }
  Node* AddPlaceholder(Shape shape) {
    Node* x = Add("x", ops::kPlaceholder);
    x->SetAttr("shape", AttrValue::OfShape(shape));
    return x;
  }
  Node* AddConvolution(absl::string_view name, Node* input, Node* weights) {
    Node* node = Add(name, ops::kConv2D, input);
    graph_->AddInput(node, {weights, 0});
    node->SetAttr("strides", AttrValue::IntList({1, 1, 1, 1}));
    node->SetAttr("padding", AttrValue::String("VALID"));
    return node;
  }
  void Declare(const std::string& input, const std::string& output) {
    ASSERT_TRUE(graph_->DeclareInterface({input}, {output}).ok());
  }
  // x -> n0 -> n1 -> ... -> y, with y first in the file.
  void Chain(Op op) {
    Node* y = Add("y", ops::kRelu);
    Node* last = Add("x", ops::kPlaceholder);
    for (int i = 0; i < kNodes; ++i) last = Add(Name("n", i), op, last);
    graph_->AddInput(y, {last, 0});
    Declare("x", "y");
  }

  std::unique_ptr<Graph> graph_ = std::make_unique<Graph>();
  AttrValue type_ = AttrValue::Type(DType::kFloat);
};

TEST_F(ScaleTest, AChainOfIdentitiesCollapses) {
  Chain(ops::kIdentity);
  EXPECT_EQ(Run("remove_nodes(op=Identity)"), kNodes);
  EXPECT_EQ(graph_->Find("y")->input(0).node, graph_->Find("x"));
}

TEST_F(ScaleTest, AChainIsSortedMergedRenamedAndStripped) {
  Chain(ops::kRelu);
  EXPECT_GT(Run("sort_by_execution_order"), 0);
  EXPECT_EQ(graph_->last(), graph_->Find("y"));
  EXPECT_EQ(Run("merge_duplicate_nodes"), 0);
  EXPECT_EQ(Run("obfuscate_names"), kNodes);
  ASSERT_TRUE(graph_->DeclareInterface({"x"}, {"x"}).ok());
  EXPECT_EQ(Run("strip_unused_nodes"), kNodes + 1);
}

// Each of the two chains has the same length, and every node has a duplicate in the other.
TEST_F(ScaleTest, EqualChainsMerge) {
  Node* x = Add("x", ops::kPlaceholder);
  Node* ends[2];
  for (int chain = 0; chain < 2; ++chain) {
    ends[chain] = x;
    for (int i = 0; i < kNodes / 2; ++i) ends[chain] = Add(Name(chain == 0 ? "a" : "b", i), ops::kRelu, ends[chain]);
  }
  Node* y = Add("y", ops::kAddV2, ends[0]);
  graph_->AddInput(y, {ends[1], 0});
  Declare("x", "y");
  EXPECT_EQ(Run("merge_duplicate_nodes"), kNodes / 2);
}

// One node waits for all others, and all of these are removed.
TEST_F(ScaleTest, ManyControlInputsOfOneNode) {
  Node* x = Add("x", ops::kPlaceholder);
  Node* y = Add("y", ops::kRelu, x);
  for (int i = 0; i < kNodes / 4; ++i) {
    Node* source = Add(Name("r", i), ops::kRelu, x);
    graph_->AddControlInput(source, x);
    graph_->AddInput(y, {Add(Name("i", i), ops::kIdentity, source), kControlPort});
  }
  Declare("x", "y");
  EXPECT_EQ(Run("remove_nodes(op=Identity)"), kNodes / 4);
  EXPECT_EQ(y->num_inputs(), 1 + kNodes / 4);
  EXPECT_EQ(Run("merge_duplicate_nodes"), kNodes / 4 - 1);
}

// Every Identity of a chain has a control input and a reader of its own. Passing all control inputs on would make the
// number of edges quadratic in the length of the chain.
TEST_F(ScaleTest, ControlInputsAlongAChain) {
  Node* x = Add("x", ops::kPlaceholder);
  Node* last = x;
  for (int i = 0; i < kNodes / 16; ++i) {
    Node* wait = Add(Name("w", i), ops::kRelu, x);
    last = Add(Name("i", i), ops::kIdentity, last);
    graph_->AddControlInput(last, wait);
    Add(Name("r", i), ops::kRelu, last);
  }
  Declare("x", Name("r", kNodes / 16 - 1));
  EXPECT_GT(Run("remove_nodes(op=Identity)"), kNodes / 32);
}

// Every convolution gets weights of its own, without a walk over all users of the old ones.
TEST_F(ScaleTest, ManyScaledConvolutionsShareTheirWeights) {
  Node* last = AddPlaceholder({1, 1, 1, 2});
  Node* weights = Add("w/read", ops::kIdentity, AddFloats("w", {1, 1, 2, 2}, {1, 0, 0, 1}));
  Node* factor = AddFloats("s", {2}, {1, 2});
  for (int i = 0; i < kNodes; ++i) {
    Node* convolution = AddConvolution(Name("c", i), last, weights);
    last = Add(Name("m", i), ops::kMul, convolution);
    graph_->AddInput(last, {factor, 0});
  }
  Declare("x", Name("m", kNodes - 1));
  EXPECT_EQ(Run("fold_batch_norms"), kNodes);
  EXPECT_EQ(graph_->Find("s"), nullptr);
}

// Each batch norm is folded into the result of folding the previous one.
TEST_F(ScaleTest, AChainOfBatchNorms) {
  Node* last = AddConvolution("c", AddPlaceholder({1, 1, 1, 2}), AddFloats("w", {1, 1, 2, 2}, {1, 0, 0, 1}));
  Node* parameters[] = {AddFloats("gamma", {2}, {1, 1}), AddFloats("beta", {2}, {1, 2}), AddFloats("mean", {2}, {1, 2}),
                        AddFloats("variance", {2}, {1, 1})};
  for (int i = 0; i < kNodes / 4; ++i) {
    last = Add(Name("n", i), ops::kFusedBatchNormV3, last);
    for (Node* parameter : parameters) graph_->AddInput(last, {parameter, 0});
    last->SetAttr("U", type_);
    last->SetAttr("is_training", AttrValue::Bool(false));
  }
  Declare("x", Name("n", kNodes / 4 - 1));
  EXPECT_EQ(Run("fold_old_batch_norms"), kNodes / 4);
  EXPECT_EQ(graph_->num_nodes(), 5u);
}

// All Identity nodes of one constant become one constant.
TEST_F(ScaleTest, ManyReadsOfOneConstant) {
  Node* last = AddPlaceholder({2});
  Node* constant = AddFloats("c", {2}, {1, 2});
  for (int i = 0; i < kNodes; ++i) {
    Node* read = Add(Name("r", i), ops::kIdentity, constant);
    last = Add(Name("a", i), ops::kAddV2, last);
    graph_->AddInput(last, {read, 0});
  }
  Declare("x", Name("a", kNodes - 1));
  EXPECT_GT(Run("fold_constants"), kNodes);
  EXPECT_EQ(graph_->num_nodes(), kNodes + 2u);
}

// Large constants that differ only between samples.
TEST_F(ScaleTest, ConstantsThatDifferInOnePlace) {
  Node* sum = Add("y", ops::kAddN);
  constexpr int kConstants = 4000;
  for (int i = 0; i < kConstants; ++i) {
    std::vector<float> values(1100, 1);
    values[20] = static_cast<float>(i / 2);
    graph_->AddInput(sum, {*graph_->AddConst(Name("c", i), Tensor::FromVector<float>({1100}, values)), 0});
  }
  sum->SetAttr("N", AttrValue::Int(kConstants));
  ASSERT_TRUE(graph_->DeclareInterface({}, {"y"}).ok());
  EXPECT_EQ(Run("merge_duplicate_nodes"), kConstants / 2);
}

// One Pad before all convolutions and one bias after them; each result is added to the next sum.
TEST_F(ScaleTest, ManyConvolutionsShareAPadAndABias) {
  constexpr int kConvolutions = kNodes / 10;
  Node* pad = Add("pad", ops::kPad, AddPlaceholder({1, 1, 1, 1}));
  Node* margins = *graph_->AddConst("margins", Tensor::FromVector<int32_t>({4, 2}, {0, 0, 1, 0, 0, 0, 0, 0}));
  graph_->AddInput(pad, {margins, 0});
  Node* weights = AddFloats("weights", Shape{1, 1, 1, 1}, {1});
  Node* bias = AddFloats("bias", Shape{1}, {1});
  Node* last = nullptr;
  for (int i = 0; i < kConvolutions; ++i) {
    Node* added = Add(Name("added", i), ops::kBiasAdd, AddConvolution(Name("c", i), pad, weights));
    graph_->AddInput(added, {bias, 0});
    Node* relu = Add(Name("relu", i), ops::kRelu, added);
    Node* sum = Add(Name("sum", i), ops::kAddV2, relu);
    graph_->AddInput(sum, {last == nullptr ? relu : last, 0});
    last = sum;
  }
  Declare("x", std::string(last->name()));
  EXPECT_EQ(Run("fold_pad_into_conv"), kConvolutions);
  EXPECT_EQ(graph_->Find("pad"), nullptr);
  EXPECT_EQ(Run("fuse_activations"), kConvolutions);
  EXPECT_EQ(graph_->num_nodes(), 2 * kConvolutions + 3u);
}

// A chain of dilated convolutions that share filter, block shape, paddings and crops.
TEST_F(ScaleTest, AChainOfDilatedConvolutions) {
  constexpr int kConvolutions = kNodes / 10;
  Node* last = AddPlaceholder({1, 4, 4, 1});
  Node* weights = AddFloats("weights", Shape{3, 3, 1, 1}, std::vector<float>(9, 1));
  Node* block = *graph_->AddConst("block", Tensor::FromVector<int32_t>({2}, {2, 2}));
  Node* paddings = *graph_->AddConst("paddings", Tensor::FromVector<int32_t>({2, 2}, {2, 2, 2, 2}));
  Node* crops = *graph_->AddConst("crops", Tensor::FromVector<int32_t>({2, 2}, {0, 0, 0, 0}));
  for (int i = 0; i < kConvolutions; ++i) {
    Node* to_batch = Add(Name("b", i), ops::kSpaceToBatchND, last);
    graph_->AddInput(to_batch, {block, 0});
    graph_->AddInput(to_batch, {paddings, 0});
    last = Add(Name("s", i), ops::kBatchToSpaceND, AddConvolution(Name("c", i), to_batch, weights));
    graph_->AddInput(last, {block, 0});
    graph_->AddInput(last, {crops, 0});
  }
  Declare("x", std::string(last->name()));
  EXPECT_EQ(Run("flatten_atrous_conv(dilations=true)"), kConvolutions);
  EXPECT_EQ(graph_->num_nodes(), kConvolutions + 2u);
}

TEST_F(ScaleTest, AChainStaysInCodes) {
  Chain(ops::kRelu);
  EXPECT_GT(Run("quantize_nodes"), kNodes);
  // The input and its quantisation, the chain, the output and its Dequantize.
  EXPECT_EQ(graph_->num_nodes(), kNodes + 9u);
}

TEST_F(ScaleTest, ATensorOfManyReadersIsCodedOnce) {
  Node* x = Add("x", ops::kPlaceholder);
  for (int i = 0; i < kNodes / 2; ++i) Add(Name("r", i), i % 2 == 0 ? ops::kRelu : ops::kRelu6, x);
  Declare("x", "r0");
  EXPECT_GT(Run("quantize_nodes"), kNodes / 2);
  // The input and its quantisation; the op, its Dequantize and the equal ones of the others; the same for the other op.
  EXPECT_EQ(graph_->num_nodes(), 1 + 6 + 3 + 2u);
}

TEST_F(ScaleTest, ManyFakeQuantsInARow) {
  Node* last = AddPlaceholder({2});
  Node* range[] = {AddFloats("min", {}, {-1}), AddFloats("max", {}, {1})};
  for (int i = 0; i < kNodes / 8; ++i) {
    last = Add(Name("r", i), ops::kRelu, last);
    last = Add(Name("f", i), ops::kFakeQuantWithMinMaxVars, last);
    last->ClearAttrs();
    for (Node* bound : range) graph_->AddInput(last, {bound, 0});
  }
  Declare("x", Name("f", kNodes / 8 - 1));
  EXPECT_GT(Run("quantize_nodes"), kNodes / 4);
}

TEST_F(ScaleTest, EveryNodeOfAChainIsLogged) {
  Chain(ops::kRelu);
  EXPECT_EQ(Run("insert_logging(show_name=true)"), kNodes + 1);
}

}  // namespace
}  // namespace permafrost
