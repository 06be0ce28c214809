// Tests the fusions of the onednn delegate: the pieces of each graph, and results compared with the reference kernels.
#include <sched.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime_check/delegates/onednn/onednn_delegate.h"
#include "tests/runtime_check/delegates/delegate_run.h"
#include "tests/runtime_check/delegates/guarded_memory.h"
#include "tests/runtime_check/delegates/image_graph.h"

namespace permafrost {
namespace {

using testing::AllOf;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::SizeIs;

const Shape kImage = {2, 7, 9, 12};

class OneDnnTest : public testing::Test {
 protected:
  // Runs the graph with 1 and 2 threads, and returns the pieces of its only partition.
  std::vector<std::string> Pieces(ImageGraph& graph, const std::vector<std::string>& fetches,
                                  const Shape& input = kImage) {
    DelegationReport report;
    for (const int threads : {1, 2}) {
      report = ExpectSame(delegate_, graph.graph(), {{"x", SomeFloats(input, 5)}}, fetches, threads);
    }
    EXPECT_THAT(report.partitions, SizeIs(1));
    return report.partitions.empty() ? std::vector<std::string>() : report.partitions[0].pieces;
  }
  Node* Number(ImageGraph* graph, const std::string& name, float value) {
    return graph->Const(name, Tensor::Scalar<float>(value));
  }

  const std::shared_ptr<const Delegate> delegate_ = *MakeOneDnnDelegate({});
};

TEST_F(OneDnnTest, FoldsWhatIsLinearIntoWeightsAndBias) {
  ImageGraph graph(kImage);
  graph.Convolution("conv", "x", {3, 3, 12, 8});
  graph.Weights("scale", {8});
  graph.Weights("bias", {1, 1, 1, 8});
  Number(&graph, "half", 0.5f);
  graph.Float("scaled", "Mul", {"conv", "scale"});
  graph.Float("shifted", "Sub", {"scaled", "bias"});
  graph.Float("halved", "Mul", {"half", "shifted"});
  EXPECT_THAT(Pieces(graph, {"halved"}), ElementsAre(AllOf(HasSubstr("convolution ("), Not(HasSubstr("+")))));
}

TEST_F(OneDnnTest, FusesActivationsResidualsAndGates) {
  ImageGraph graph(kImage);
  graph.Convolution("conv", "x", {1, 1, 12, 12});
  graph.Float("active", "Relu6", {"conv"});
  graph.Float("sum", "AddV2", {"x", "active"});
  graph.Float("out", "Relu", {"sum"});
  EXPECT_THAT(Pieces(graph, {"out"}), ElementsAre(HasSubstr("convolution + clip + add + relu")));
}

TEST_F(OneDnnTest, FusesAnOperandOnceAlone) {
  // Two convolutions are added: one of them is fused with the sum.
  ImageGraph graph(kImage);
  graph.Convolution("a", "x", {1, 1, 12, 8});
  graph.Convolution("b", "x", {3, 3, 12, 8});
  graph.Float("sum", "AddV2", {"a", "b"});
  graph.Float("out", "Sigmoid", {"sum"});
  EXPECT_THAT(Pieces(graph, {"out"}), SizeIs(2));
}

TEST_F(OneDnnTest, DoesNotConfusePostOpsOfOneAlgorithm) {
  // oneDNN applies the parameters of the first of two post-ops with the same algorithm to both.
  ImageGraph graph(kImage);
  graph.Convolution("conv", "x", {1, 1, 12, 8});
  graph.Float("tanh", "Tanh", {"conv"});
  Number(&graph, "a", 3.0f);
  Number(&graph, "b", -1.0f);
  Number(&graph, "c", 0.25f);
  graph.Float("times", "Mul", {"tanh", "a"});
  graph.Float("plus", "Add", {"times", "b"});
  graph.Float("abs", "Abs", {"plus"});
  graph.Float("again", "Mul", {"abs", "c"});
  graph.Float("at_most", "Minimum", {"again", "a"});
  graph.Float("at_least", "Maximum", {"at_most", "c"});
  graph.Float("out", "Relu6", {"at_least"});
  Pieces(graph, {"out"});
}

TEST_F(OneDnnTest, GivesAPrimitiveNoMorePostOpsThanItTakes) {
  ImageGraph graph(kImage);
  graph.Convolution("conv", "x", {1, 1, 12, 12});
  std::string last = "conv";
  for (int i = 0; i < 50; ++i) {
    const std::string name = "step" + std::to_string(i);
    graph.Float(name, i % 2 == 0 ? "Mul" : "Maximum", {last, "x"});
    last = name;
  }
  EXPECT_THAT(Pieces(graph, {last}).size(), testing::Gt(1u));
}

TEST_F(OneDnnTest, SeesThroughDisguisesOfParametricRelu) {
  ImageGraph graph(kImage);
  graph.Convolution("conv", "x", {1, 1, 12, 8});
  graph.Weights("alpha", {1, 1, 8});
  Number(&graph, "half", 0.5f);
  // relu(x) + a * (x - |x|) / 2
  graph.Float("positive", "Relu", {"conv"});
  graph.Float("absolute", "Abs", {"conv"});
  graph.Float("difference", "Sub", {"conv", "absolute"});
  graph.Float("scaled", "Mul", {"difference", "alpha"});
  graph.Float("halved", "Mul", {"scaled", "half"});
  graph.Float("out", "Add", {"positive", "halved"});
  EXPECT_THAT(Pieces(graph, {"out"}), ElementsAre(HasSubstr("convolution ("), HasSubstr(": prelu (")));
}

TEST_F(OneDnnTest, KeepsAParametricReluWhoseInsideIsRead) {
  ImageGraph graph(kImage);
  graph.Convolution("conv", "x", {1, 1, 12, 8});
  graph.Weights("alpha", {8});
  graph.Float("positive", "Relu", {"conv"});
  graph.Float("negative", "Neg", {"conv"});
  graph.Float("below", "Relu", {"negative"});
  graph.Float("scaled", "Mul", {"below", "alpha"});
  graph.Float("out", "Sub", {"positive", "scaled"});
  EXPECT_THAT(Pieces(graph, {"out", "below"}), Each(Not(HasSubstr("prelu"))));
}

TEST_F(OneDnnTest, KnowsHardSwishAndSwish) {
  ImageGraph graph(kImage);
  graph.Convolution("conv", "x", {1, 1, 12, 8});
  Number(&graph, "three", 3.0f);
  Number(&graph, "sixth", 1.0f / 6);
  graph.Float("moved", "Add", {"conv", "three"});
  graph.Float("gate", "Relu6", {"moved"});
  graph.Float("scaled", "Mul", {"gate", "sixth"});
  graph.Float("hard", "Mul", {"conv", "scaled"});
  graph.Convolution("next", "hard", {1, 1, 8, 8});
  graph.Float("soft", "Sigmoid", {"next"});
  graph.Float("out", "Mul", {"soft", "next"});
  EXPECT_THAT(Pieces(graph, {"out"}), ElementsAre(HasSubstr("hard_swish"), HasSubstr("+ swish")));
}

TEST_F(OneDnnTest, GatesImagesByTheirOwnChannels) {
  ImageGraph graph(kImage);
  graph.Ints("axes", {1, 2});
  graph.Float("mean", "Mean", {"x", "axes"})->SetAttr("keep_dims", AttrValue::Bool(true));
  graph.Convolution("squeezed", "mean", {1, 1, 12, 12});
  graph.Float("gate", "Sigmoid", {"squeezed"});
  graph.Float("out", "Mul", {"x", "gate"});
  Pieces(graph, {"out"});
}

TEST_F(OneDnnTest, PadsInTheConvolution) {
  ImageGraph graph(kImage);
  graph.Const("paddings", Tensor::FromVector<int32_t>({4, 2}, {0, 0, 2, 1, 0, 3, 0, 0}));
  graph.Float("padded", "Pad", {"x", "paddings"});
  graph.Window("conv", "Conv2D", "padded", {3, 3, 12, 8}, 2, 1, "VALID");
  EXPECT_THAT(Pieces(graph, {"conv"}), SizeIs(1));
}

TEST_F(OneDnnTest, ComputesFewChannelsInRows) {
  ImageGraph graph({1, 20, 40, 8});
  graph.Window("narrow", "Conv2D", "x", {3, 3, 8, 1}, 1, 1, "SAME");
  graph.Weights("bias", {1});
  graph.Float("biased", "BiasAdd", {"narrow", "bias"});
  graph.Float("out", "Sigmoid", {"biased"});
  graph.Window("strided", "Conv2D", "x", {5, 3, 8, 3}, 2, 1, "VALID");
  EXPECT_THAT(Pieces(graph, {"out", "strided"}, {1, 20, 40, 8}),
              ElementsAre(HasSubstr("narrow convolution"), HasSubstr("sigmoid"), HasSubstr("narrow convolution")));
}

TEST_F(OneDnnTest, ComputesAllThatElementwiseWorkMeets) {
  ImageGraph graph(kImage);
  graph.Weights("pixel", {2, 7, 9, 12});
  graph.Weights("row", {2, 7, 9, 1});
  graph.Weights("image", {2, 1, 1, 12});
  graph.Float("a", "Mul", {"x", "pixel"});
  graph.Float("b", "Add", {"a", "row"});
  graph.Float("c", "Maximum", {"b", "image"});
  graph.Float("d", "SquaredDifference", {"c", "x"});
  graph.Float("e", "Elu", {"d"});
  graph.Float("f", "Exp", {"b"});
  graph.Float("out", "RealDiv", {"e", "f"});
  EXPECT_THAT(Pieces(graph, {"out", "c"}), SizeIs(1));
}

TEST_F(OneDnnTest, KeepsNaNAndInfinity) {
  ImageGraph graph({1, 4, 4, 3});
  graph.Convolution("conv", "x", {1, 1, 3, 8});
  graph.Float("a", "Relu", {"conv"});
  graph.Convolution("next", "a", {1, 1, 8, 8});
  graph.Float("out", "Relu6", {"next"});
  for (const float value : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    std::vector<float> image(48, 0.5f);
    image[20] = value;
    const Tensor fed = Tensor::FromVector<float>({1, 4, 4, 3}, image);
    std::vector<std::vector<Tensor>> results;
    for (const auto& delegate : {delegate_, std::shared_ptr<const Delegate>()}) {
      auto session = MakeSession(delegate, graph.graph(), {"x"}, {"out"}, 1);
      ASSERT_TRUE(session.ok()) << session.status();
      auto outputs = (*session)->Run({fed});
      ASSERT_TRUE(outputs.ok()) << outputs.status();
      results.push_back(*std::move(outputs));
    }
    const auto expected = results[1][0].elements<float>(), actual = results[0][0].elements<float>();
    int num_nan = 0;
    for (size_t i = 0; i < expected.size(); ++i) {
      EXPECT_EQ(std::isnan(actual[i]), std::isnan(expected[i])) << i;
      num_nan += std::isnan(expected[i]) ? 1 : 0;
    }
    EXPECT_GT(num_nan, 0);
  }
}

// For images of a few tiles of rows, some implementations of oneDNN write one tile beyond the output.
TEST_F(OneDnnTest, WritesNothingBehindItsTarget) {
  for (const Precision precision : {Precision::kF32, Precision::kBf16}) {
    const auto delegate = MakeOneDnnDelegate({precision, {}, {}});
    if (absl::IsUnimplemented(delegate.status())) continue;
    for (const auto& [height, width] : std::vector<std::pair<int64_t, int64_t>>{
             {1, 1}, {2, 8}, {3, 9}, {5, 5}, {6, 6}, {6, 7}, {5, 9}, {4, 12}, {7, 7}, {8, 9}}) {
      for (const int threads : {1, 2}) {
        SCOPED_TRACE(
            absl::StrCat(height, "x", width, ", ", threads, " threads, precision ", static_cast<int>(precision)));
        const Shape image = {2, height, width, 64};
        ImageGraph graph(image);
        Partition partition;
        partition.nodes.push_back({graph.Convolution("conv", "x", {1, 1, 64, 64}), {0, 1}, {2}});
        partition.nodes.push_back({graph.Float("sum", "Add", {"conv", "x"}), {2, 0}, {3}});
        const DelegateTensor tensor = {DType::kFloat, image, std::nullopt};
        partition.tensors = {tensor, {DType::kFloat, {1, 1, 64, 64}, SomeFloats({1, 1, 64, 64}, 101)}, tensor, tensor};
        partition.inputs = {0};
        partition.outputs = {3};
        const auto compiled = (*delegate)->Compile(partition, threads);
        ASSERT_TRUE(compiled.ok()) << compiled.status();
        const Tensor input = SomeFloats(image, 1);
        GuardedMemory x(input.bytes().size(), 64), y(input.bytes().size(), 64);
        GuardedMemory scratch((*compiled)->scratch_bytes(), 64);
        x.Fill(input.bytes());
        x.MakeReadOnly();
        const char* inputs[] = {x.data()};
        char* outputs[] = {y.data()};
        std::string first;
        for (int run = 0; run < 3; ++run) {
          y.Scribble();
          scratch.Scribble();
          ASSERT_TRUE((*compiled)->Run(inputs, outputs, scratch.data(), nullptr).ok());
          EXPECT_TRUE(y.CheckSurroundings().ok());
          EXPECT_TRUE(scratch.CheckSurroundings().ok());
          if (run == 0) first = std::string(y.bytes());
          EXPECT_TRUE(first == y.bytes()) << "run " << run << " differs";
        }
      }
    }
  }
}

int NumProcessors() {
  cpu_set_t processors;
  return sched_getaffinity(0, sizeof(processors), &processors) == 0 ? CPU_COUNT(&processors) : 1;
}

// Parallel layers that are too small for two threads.
TEST_F(OneDnnTest, SmallPiecesRunBesideEachOtherWithTheSameBits) {
  const Shape image = {1, 5, 5, 24};
  ImageGraph graph(image);
  graph.Convolution("trunk", "x", {3, 3, 24, 24});
  std::vector<std::string> fetches;
  for (int head = 0; head < 16; ++head) {
    const std::string name = absl::StrCat("head", head);
    graph.Convolution(name + "_a", "trunk", {3, 3, 24, 24});
    graph.Float(name + "_relu", "Relu6", {name + "_a"});
    graph.Window(name + "_b", "DepthwiseConv2dNative", name + "_relu", {3, 3, 24, 1}, 1, 1, "SAME");
    graph.Float(name + "_sum", "AddV2", {name + "_b", "trunk"});
    graph.Convolution(name + "_c", name + "_sum", {1, 1, 24, 24});
    graph.Float(name, "Sigmoid", {name + "_c"});
    fetches.push_back(name);
  }
  Tensor finite = SomeFloats(image, 5);
  std::string bytes(finite.bytes());
  const float nan = std::numeric_limits<float>::quiet_NaN();
  std::memcpy(bytes.data() + 400, &nan, sizeof(nan));
  const Tensor strange = Tensor::FromBytes(DType::kFloat, image, bytes, nullptr)->Aligned().value();
  for (const int num_threads : {1, 2}) {
    std::vector<std::string> expected;
    for (const int inter_op_threads : {1, 2, 4}) {
      SessionOptions options;
      options.num_threads = num_threads;
      options.inter_op_threads = inter_op_threads;
      options.delegate = delegate_;
      const auto session = Session::Create(graph.graph(), {"x"}, fetches, options);
      ASSERT_TRUE(session.ok()) << session.status();
      for (int run = 0; run < 25; ++run) {
        std::vector<std::string> found;
        for (const Tensor& input : {finite, strange}) {
          const auto outputs = (*session)->Run({input});
          ASSERT_TRUE(outputs.ok()) << outputs.status();
          for (const Tensor& output : *outputs) found.emplace_back(output.bytes());
        }
        if (expected.empty()) expected = found;
        ASSERT_TRUE(found == expected) << num_threads << " threads, " << inter_op_threads << " nodes, run " << run;
      }
      const DelegationReport& report = (*session)->report().delegation;
      ASSERT_THAT(report.partitions, SizeIs(1));
      const auto num_beside =
          std::count_if(report.partitions[0].pieces.begin(), report.partitions[0].pieces.end(),
                        [](const std::string& piece) { return absl::StrContains(piece, ", beside others"); });
      EXPECT_EQ(num_beside > 16, inter_op_threads > 1 && NumProcessors() > 1) << num_beside;
    }
  }
}

TEST_F(OneDnnTest, StaysCloseWithBfloat16) {
  const auto bf16 = MakeOneDnnDelegate({Precision::kBf16, {}, {}});
  if (absl::IsUnimplemented(bf16.status())) GTEST_SKIP() << bf16.status();
  ImageGraph graph(kImage);
  graph.Convolution("conv", "x", {3, 3, 12, 16});
  graph.Float("active", "Relu6", {"conv"});
  graph.Window("depthwise", "DepthwiseConv2dNative", "active", {3, 3, 16, 1}, 1, 1, "SAME");
  graph.Float("soft", "Tanh", {"depthwise"});
  graph.Float("sum", "Add", {"soft", "active"});
  graph.Window("pooled", "Conv2D", "sum", {1, 1, 16, 16}, 2, 1, "SAME");
  graph.Ints("axis", {3});
  graph.Weights("alpha", {16});
  graph.Float("scaled", "Mul", {"pooled", "alpha"});
  graph.Float("out", "Sigmoid", {"scaled"});
  const Tensor fed = SomeFloats(kImage, 5);
  std::vector<Tensor> results;
  for (const auto& delegate : {*bf16, std::shared_ptr<const Delegate>()}) {
    auto session = MakeSession(delegate, graph.graph(), {"x"}, {"out"}, 2);
    ASSERT_TRUE(session.ok()) << session.status();
    auto outputs = (*session)->Run({fed});
    ASSERT_TRUE(outputs.ok()) << outputs.status();
    results.push_back((*outputs)[0]);
  }
  const auto expected = results[1].elements<float>(), actual = results[0].elements<float>();
  double difference = 0, sum = 0;
  for (size_t i = 0; i < expected.size(); ++i) {
    difference += std::pow(actual[i] - expected[i], 2);
    sum += std::pow(expected[i], 2);
  }
  EXPECT_GT(difference, 0);
  EXPECT_LT(std::sqrt(difference / sum), 0.02);
}

}  // namespace
}  // namespace permafrost
