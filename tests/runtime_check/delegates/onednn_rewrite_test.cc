// Tests the rewrites of partitions in the onednn delegate: graphs in NCHW, or in NHWC between transposes, give the
// results of the reference kernels with as few transposes as their inputs and outputs need, and convolutions of parts
// of an image become grouped ones.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime_check/delegates/onednn/node_kinds.h"
#include "runtime_check/delegates/onednn/onednn_delegate.h"
#include "tests/runtime_check/delegates/delegate_run.h"
#include "tests/runtime_check/delegates/image_graph.h"

namespace permafrost {
namespace {

using onednn::FloatsOf;
using testing::SizeIs;

const Shape kImage = {2, 6, 9, 11};  // [N, C, H, W]

class LayoutGraph : public ImageGraph {
 public:
  explicit LayoutGraph(const Shape& input = kImage) : ImageGraph(input) {}

  Node* First(Node* node) {
    node->SetAttr("data_format", AttrValue::String("NCHW"));
    return node;
  }
  Node* Conv(const std::string& name, const std::string& input, const Shape& filter, int64_t stride = 1,
             const std::string& op = "Conv2D") {
    Node* node = First(Window(name, op, input, filter, stride, 1, "SAME"));
    node->SetAttr("strides", AttrValue::IntList({1, 1, stride, stride}));
    node->SetAttr("dilations", AttrValue::IntList({1, 1, 1, 1}));
    return node;
  }
  Node* Pool(const std::string& name, const std::string& op, const std::string& input) {
    Node* node = First(Float(name, op, {input}));
    node->SetAttr("ksize", AttrValue::IntList({1, 1, 2, 3}));
    node->SetAttr("strides", AttrValue::IntList({1, 1, 1, 2}));
    node->SetAttr("padding", AttrValue::String("SAME"));
    return node;
  }
  Node* Transpose(const std::string& name, const std::string& input, std::vector<int32_t> order) {
    Ints(name + "/order", std::move(order));
    Node* node = Float(name, "Transpose", {input, name + "/order"});
    node->SetAttr("Tperm", AttrValue::Type(DType::kInt32));
    return node;
  }
  Node* Indexed(const std::string& name, const std::string& op, std::vector<std::string> inputs,
                std::vector<int32_t> values, const std::string& attr) {
    Ints(name + "/values", std::move(values));
    inputs.push_back(name + "/values");
    Node* node = Float(name, op, inputs);
    node->SetAttr(attr, AttrValue::Type(DType::kInt32));
    return node;
  }
};

class OneDnnRewriteTest : public testing::Test {
 protected:
  // Runs the graph with 1 and 2 threads, and returns the number of pieces that transpose.
  int Transposes(const LayoutGraph& graph, const std::vector<std::string>& fetches, const Shape& input = kImage) {
    DelegationReport report;
    for (const int threads : {1, 2}) {
      report = ExpectSame(delegate_, graph.graph(), {{"x", SomeFloats(input, 5)}}, fetches, threads);
    }
    EXPECT_THAT(report.partitions, SizeIs(1));
    pieces_.clear();
    int count = 0;
    for (const DelegationReport::Taken& taken : report.partitions) {
      for (const std::string& piece : taken.pieces) {
        pieces_.push_back(piece);
        count += absl::StrContains(piece, "copy of a view") ? 1 : 0;
      }
    }
    return count;
  }

  const std::shared_ptr<const Delegate> delegate_ = *MakeOneDnnDelegate({}, nullptr, /*uses_winograd=*/false);
  std::vector<std::string> pieces_;
};

TEST_F(OneDnnRewriteTest, AChainInNchwTransposesItsInputAndItsOutput) {
  LayoutGraph graph;
  graph.Conv("a", "x", {3, 3, 6, 8}, 2);
  graph.Weights("bias", {8});
  graph.First(graph.Float("biased", "BiasAdd", {"a", "bias"}));
  graph.Float("relu", "Relu", {"biased"});
  graph.Conv("depthwise", "relu", {3, 3, 8, 1}, 1, "DepthwiseConv2dNative");
  graph.Weights("factor", {1, 8, 1, 1});
  graph.Weights("offset", {8, 1, 1});
  graph.Float("scaled", "Mul", {"depthwise", "factor"});
  graph.Float("shifted", "AddV2", {"offset", "scaled"});
  graph.Pool("pooled", "MaxPool", "shifted");
  graph.Pool("average", "AvgPool", "pooled");
  graph.Conv("b", "average", {1, 1, 8, 5});
  EXPECT_EQ(Transposes(graph, {"b"}), 2) << testing::PrintToString(pieces_);
}

TEST_F(OneDnnRewriteTest, ResidualsConcatsPadsAndSplitsFollow) {
  LayoutGraph graph;
  graph.Conv("a", "x", {1, 1, 6, 8});
  graph.Conv("b", "x", {3, 3, 6, 8});
  graph.Float("sum", "AddV2", {"a", "b"});
  graph.Float("identity", "Identity", {"sum"});
  graph.Const("paddings", Tensor::FromVector<int32_t>({4, 2}, {0, 0, 0, 0, 1, 2, 3, 0}));
  graph.Float("padded", "Pad", {"identity", "paddings"})->SetAttr("Tpaddings", AttrValue::Type(DType::kInt32));
  graph.Const("axis", Tensor::Scalar<int32_t>(1));
  Node* split = graph.Float("split", "Split", {"axis", "padded"});
  split->SetAttr("num_split", AttrValue::Int(2));
  graph.Float("left", "Relu", {"split"});
  graph.Float("right", "Sigmoid", {"split:1"});
  graph.Const("minus", Tensor::Scalar<int32_t>(-3));
  Node* joined = graph.Float("joined", "ConcatV2", {"right", "left", "right", "minus"});
  joined->SetAttr("N", AttrValue::Int(3));
  joined->SetAttr("Tidx", AttrValue::Type(DType::kInt32));
  graph.Conv("out", "joined", {3, 3, 12, 4});
  EXPECT_EQ(Transposes(graph, {"out"}), 2) << testing::PrintToString(pieces_);
}

TEST_F(OneDnnRewriteTest, PaddedChannelsAreNotTakenForAWidth) {
  const Shape shape = {2, 9, 11, 6};
  ImageGraph graph(shape);
  graph.Convolution("a", "x", {3, 3, 6, 8});
  graph.Const("paddings", Tensor::FromVector<int32_t>({4, 2}, {0, 0, 0, 0, 0, 0, 0, 4}));
  graph.Float("padded", "Pad", {"a", "paddings"})->SetAttr("Tpaddings", AttrValue::Type(DType::kInt32));
  graph.Convolution("b", "x", {1, 1, 6, 12});
  graph.Float("sum", "AddV2", {"padded", "b"});
  graph.Convolution("out", "sum", {3, 3, 12, 4});
  const DelegationReport report = ExpectSame(delegate_, graph.graph(), {{"x", SomeFloats(shape, 5)}}, {"out"}, 1);
  for (const DelegationReport::Taken& taken : report.partitions) {
    for (const std::string& piece : taken.pieces) EXPECT_FALSE(absl::StrContains(piece, "copy of a view")) << piece;
  }
}

TEST_F(OneDnnRewriteTest, APaddedWidthOfALineIsInNchw) {
  const Shape shape = {2, 6, 1, 11};
  LayoutGraph graph(shape);
  graph.Conv("a", "x", {1, 3, 6, 8});
  graph.Const("paddings", Tensor::FromVector<int32_t>({4, 2}, {0, 0, 0, 0, 0, 0, 2, 1}));
  graph.Float("padded", "Pad", {"a", "paddings"})->SetAttr("Tpaddings", AttrValue::Type(DType::kInt32));
  graph.Conv("out", "padded", {1, 3, 8, 4});
  EXPECT_EQ(Transposes(graph, {"out"}, shape), 2) << testing::PrintToString(pieces_);
}

TEST_F(OneDnnRewriteTest, ReductionsReshapesAndGatesFollow) {
  LayoutGraph graph;
  graph.Conv("a", "x", {3, 3, 6, 8});
  Node* mean = graph.Indexed("mean", "Mean", {"a"}, {2, -1}, "Tidx");
  mean->SetAttr("keep_dims", AttrValue::Bool(true));
  graph.Conv("gate", "mean", {1, 1, 8, 8});
  graph.Float("open", "Sigmoid", {"gate"});
  graph.Float("gated", "Mul", {"a", "open"});
  Node* pooled = graph.Indexed("pooled", "Mean", {"gated"}, {2, 3}, "Tidx");
  pooled->SetAttr("keep_dims", AttrValue::Bool(false));
  Node* kept = graph.Indexed("kept", "Sum", {"gated"}, {3, 2}, "Tidx");
  kept->SetAttr("keep_dims", AttrValue::Bool(true));
  graph.Indexed("flat", "Reshape", {"kept"}, {2, 8}, "Tshape");
  graph.Float("out", "AddV2", {"pooled", "flat"});
  EXPECT_EQ(Transposes(graph, {"out"}), 1) << testing::PrintToString(pieces_);
  // Dimensions that remain in another order than in the graph.
  Node* rows = graph.Indexed("rows", "Mean", {"gated"}, {2}, "Tidx");
  rows->SetAttr("keep_dims", AttrValue::Bool(false));
  Node* channels = graph.Indexed("channels", "Mean", {"gated"}, {1}, "Tidx");
  channels->SetAttr("keep_dims", AttrValue::Bool(false));
  Transposes(graph, {"out", "rows", "channels"});
}

TEST_F(OneDnnRewriteTest, FlatteningReadsTheOrderOfTheGraph) {
  LayoutGraph graph;
  graph.Conv("a", "x", {3, 3, 6, 8});
  graph.Float("relu", "Relu", {"a"});
  graph.Indexed("flat", "Reshape", {"relu"}, {2, 8 * 9 * 11}, "Tshape");
  graph.Weights("matrix", {8 * 9 * 11, 5});
  graph.Float("out", "MatMul", {"flat", "matrix"});
  EXPECT_EQ(Transposes(graph, {"out", "relu"}), 2) << testing::PrintToString(pieces_);
}

TEST_F(OneDnnRewriteTest, TransposesBetweenLayoutsCancel) {
  // As in models that were exported through ONNX: each convolution is in NHWC between two transposes.
  LayoutGraph graph;
  std::string last = "x";
  for (int i = 0; i < 3; ++i) {
    const std::string name = std::to_string(i);
    graph.Transpose("in" + name, last, {0, 2, 3, 1});
    graph.Convolution("conv" + name, "in" + name, {3, 3, i == 0 ? 6 : 8, 8});
    graph.Transpose("out" + name, "conv" + name, {0, 3, 1, 2});
    graph.Weights("bias" + name, {1, 8, 1, 1});
    graph.Float("biased" + name, "AddV2", {"out" + name, "bias" + name});
    graph.Float("relu" + name, "Relu", {"biased" + name});
    last = "relu" + name;
  }
  EXPECT_EQ(Transposes(graph, {last}), 2) << testing::PrintToString(pieces_);
  EXPECT_THAT(pieces_, SizeIs(5));
  EXPECT_EQ(Transposes(graph, {last, "relu0", "out1", "conv1"}), 4) << testing::PrintToString(pieces_);
}

TEST_F(OneDnnRewriteTest, OddOperandsGiveTheSameResults) {
  LayoutGraph graph;
  graph.Conv("a", "x", {3, 3, 6, 8});
  graph.Weights("full", {2, 8, 9, 11});
  graph.Weights("plane", {9, 11});
  graph.Weights("line", {11});
  graph.Weights("column", {8, 9, 1});
  graph.Const("number", Tensor::Scalar<float>(3));
  graph.Float("b", "Mul", {"a", "full"});
  graph.Float("c", "AddV2", {"plane", "b"});
  graph.Float("d", "Maximum", {"c", "line"});
  graph.Float("e", "Sub", {"column", "d"});
  graph.Float("f", "RealDiv", {"e", "number"});
  graph.Float("g", "Sub", {"number", "f"});
  graph.Conv("h", "g", {1, 1, 8, 8});
  graph.Float("i", "SquaredDifference", {"h", "d"});
  Transposes(graph, {"i", "d"});
  graph.Float("softmax", "Softmax", {"i"});
  Transposes(graph, {"softmax", "i"});
}

TEST_F(OneDnnRewriteTest, BatchNormsAndTransposedConvolutionsInNchw) {
  LayoutGraph graph;
  for (const char* name : {"scale", "offset", "mean"}) graph.Weights(name, {6});
  graph.Const("variance", Tensor::FromVector<float>({6}, {1, 2, 0.5f, 3, 1, 4}));
  Node* norm = graph.First(graph.Float("norm", "FusedBatchNormV3", {"x", "scale", "offset", "mean", "variance"}));
  norm->SetAttr("U", AttrValue::Type(DType::kFloat));
  norm->SetAttr("is_training", AttrValue::Bool(false));
  norm->SetAttr("epsilon", AttrValue::Float(1e-3f));
  graph.Conv("a", "norm", {1, 1, 6, 16});
  graph.Ints("size", {2, 8, 18, 22});
  graph.Weights("filter", {2, 2, 8, 16});
  Node* up = graph.First(graph.Float("up", "Conv2DBackpropInput", {"size", "filter", "a"}));
  up->SetAttr("strides", AttrValue::IntList({1, 1, 2, 2}));
  up->SetAttr("padding", AttrValue::String("SAME"));
  graph.Float("out", "Relu", {"up"});
  EXPECT_EQ(Transposes(graph, {"out"}), 2) << testing::PrintToString(pieces_);
}

TEST_F(OneDnnRewriteTest, NearestNeighborResizesStayInThePartition) {
  for (const bool align_corners : {false, true}) {
    for (const bool half_pixels : {false, true}) {
      if (align_corners && half_pixels) continue;
      LayoutGraph graph({2, 5, 7, 6});
      graph.Convolution("a", "x", {1, 1, 6, 8});
      std::vector<std::string> fetches;
      for (const auto& [height, width] : {std::pair(10, 14), {5, 7}, {3, 20}, {1, 1}}) {
        const std::string name = "up" + std::to_string(height);
        graph.Ints(name + "/size", {height, width});
        Node* up = graph.Float(name, "ResizeNearestNeighbor", {"a", name + "/size"});
        up->SetAttr("align_corners", AttrValue::Bool(align_corners));
        up->SetAttr("half_pixel_centers", AttrValue::Bool(half_pixels));
        graph.Float(name + "/relu", "Relu", {name});
        fetches.push_back(name + "/relu");
      }
      Transposes(graph, fetches, {2, 5, 7, 6});
      EXPECT_THAT(pieces_, testing::Contains(testing::HasSubstr("nearest-neighbour resize")).Times(4));
    }
  }
}

TEST_F(OneDnnRewriteTest, NodesWithTheSameWeightsShareThePackedOnes) {
  // As in an unrolled recurrent network. The scale is part of what is packed.
  const auto constant_bytes = [&](int64_t steps, bool is_scaled) {
    ImageGraph graph({4, 64});
    std::vector<float> values = FloatsOf(SomeFloats({64, 64}, 3));
    for (float& value : values) value /= 16;
    graph.Const("matrix", Tensor::FromVector<float>({64, 64}, std::move(values)));
    std::string last = "x";
    for (int64_t i = 0; i < steps; ++i) {
      const std::string name = "step" + std::to_string(i);
      graph.Float(name + "/read", "Identity", {"matrix"});
      graph.Float(name, "MatMul", {last, i % 2 == 0 ? "matrix" : name + "/read"});
      last = name + "/tanh";
      if (is_scaled) {
        graph.Weights(name + "/factor", {64});
        graph.Float(name + "/scaled", "Mul", {name, name + "/factor"});
      }
      graph.Float(last, "Tanh", {is_scaled ? name + "/scaled" : name});
    }
    const DelegationReport report = ExpectSame(delegate_, graph.graph(), {{"x", SomeFloats({4, 64}, 5)}}, {last});
    EXPECT_THAT(report.partitions, SizeIs(1));
    return report.partitions.empty() ? 0 : report.partitions[0].constant_bytes;
  };
  const int64_t one = constant_bytes(1, false);
  EXPECT_GE(one, 64 * 64 * 4);
  EXPECT_EQ(constant_bytes(5, false), one);
  EXPECT_GE(constant_bytes(3, true), 3 * one);
}

// A convolution of `groups` parts of "x", whose outputs are concatenated.
class GroupedGraph : public LayoutGraph {
 public:
  GroupedGraph(int64_t groups, const Shape& filter) : LayoutGraph({2, 9, 11, 12}) {
    Const("axis", Tensor::Scalar<int32_t>(3));
    Add("split", "Split", {"axis", "x"},
        {{"T", AttrValue::Type(DType::kFloat)}, {"num_split", AttrValue::Int(groups)}});
    std::vector<std::string> parts;
    for (int64_t g = 0; g < groups; ++g) {
      parts.push_back("part" + std::to_string(g));
      Convolution(parts.back(), "split:" + std::to_string(g), filter);
    }
    parts.push_back("axis");
    Node* joined = Float("joined", "ConcatV2", parts);
    joined->SetAttr("N", AttrValue::Int(groups));
    joined->SetAttr("Tidx", AttrValue::Type(DType::kInt32));
    Weights("bias", {groups * filter.dim(3)});
    Float("biased", "BiasAdd", {"joined", "bias"});
    Float("out", "Relu", {"biased"});
  }
};

TEST_F(OneDnnRewriteTest, ConvolutionsOfPartsBecomeGrouped) {
  for (const int64_t groups : {2, 3, 6}) {
    for (const int64_t taps : {1, 3}) {
      const GroupedGraph graph(groups, {taps, taps, 12 / groups, 8});
      Transposes(graph, {"out"}, {2, 9, 11, 12});
      EXPECT_THAT(pieces_, testing::ElementsAre(testing::HasSubstr("convolution + relu")))
          << groups << " " << testing::PrintToString(pieces_);
    }
  }
}

TEST_F(OneDnnRewriteTest, AlmostGroupedConvolutionsKeepTheirParts) {
  GroupedGraph read(3, {3, 3, 4, 8});
  read.Float("other", "Sigmoid", {"part1"});
  Transposes(read, {"out", "other"}, {2, 9, 11, 12});
  EXPECT_THAT(pieces_,
              testing::Contains(testing::HasSubstr("no grouped convolution: the result of a part has another")));
  // The parts in another order.
  GroupedGraph swapped(3, {3, 3, 4, 8});
  Node* joined = swapped.mutable_graph().Find("joined");
  swapped.mutable_graph().SetInput(joined, 0, {swapped.mutable_graph().Find("part2"), 0});
  swapped.mutable_graph().SetInput(joined, 2, {swapped.mutable_graph().Find("part0"), 0});
  Transposes(swapped, {"out"}, {2, 9, 11, 12});
  EXPECT_THAT(pieces_, testing::Contains(testing::HasSubstr("no grouped convolution: the parts are not in order")));
}

}  // namespace
}  // namespace permafrost
