// The xnnpack delegate on small graphs, against the reference kernels.
#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "graph/op_schema.h"
#include "gtest/gtest.h"
#include "runtime_check/delegates/xnnpack/xnnpack_delegate.h"
#include "tests/runtime_check/delegates/conformance.h"
#include "tests/runtime_check/delegates/delegate_run.h"
#include "tests/runtime_check/delegates/guarded_memory.h"
#include "tests/runtime_check/small_graph.h"

namespace permafrost {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

std::shared_ptr<const Delegate> Xnnpack() {
  static const auto delegate = MakeXnnpackDelegate();
  EXPECT_TRUE(delegate.ok()) << delegate.status();
  return *delegate;
}

const auto kFloatType = AttrValue::Type(DType::kFloat);

class ImageGraph : public SmallGraph {
 public:
  explicit ImageGraph(const Shape& input) { Placeholder("x", DType::kFloat, input); }

  Node* Weights(const std::string& name, const Shape& shape) { return Const(name, SomeFloats(shape, ++seed_)); }

  // With a filter [height, width, ...] of its own.
  Node* Window(const std::string& name, const std::string& op, const std::string& input, const Shape& filter,
               int64_t stride, int64_t dilation, const std::string& padding) {
    Weights(name + "/filter", filter);
    Node* node = Float(name, op, {input, name + "/filter"});
    node->SetAttr("strides", AttrValue::IntList({1, stride, stride, 1}));
    node->SetAttr("dilations", AttrValue::IntList({1, dilation, dilation, 1}));
    node->SetAttr("padding", AttrValue::String(padding));
    if (padding == "EXPLICIT") node->SetAttr("explicit_paddings", AttrValue::IntList({0, 0, 2, 1, 0, 3, 0, 0}));
    return node;
  }
  Node* Convolution(const std::string& name, const std::string& input, const Shape& filter) {
    return Window(name, "Conv2D", input, filter, 1, 1, "SAME");
  }
  Node* Ints(const std::string& name, std::vector<int32_t> values) {
    const Shape shape = {static_cast<int64_t>(values.size())};
    return Const(name, Tensor::FromVector<int32_t>(shape, std::move(values)));
  }

 private:
  uint32_t seed_ = 100;
};

TEST(XnnpackTest, FusesConvolutionBiasAndClamp) {
  ImageGraph graph({1, 9, 7, 3});
  graph.Const("paddings", Tensor::FromVector<int32_t>({4, 2}, {0, 0, 1, 2, 3, 0, 0, 0}));
  graph.Float("pad", "Pad", {"x", "paddings"});
  graph.Window("conv", "Conv2D", "pad", {3, 3, 3, 5}, 2, 1, "VALID");
  graph.Weights("b", {5});
  graph.Float("bias", "BiasAdd", {"conv", "b"});
  graph.Float("relu", "Relu6", {"bias"});
  graph.Const("two", Tensor::Scalar<float>(2));
  graph.Float("bounded", "Minimum", {"two", "relu"});
  const DelegationReport report =
      ExpectSame(Xnnpack(), graph.graph(), {{"x", SomeFloats({1, 9, 7, 3}, 1)}}, {"bounded"});
  ASSERT_THAT(report.partitions, SizeIs(1));
  EXPECT_EQ(report.partitions[0].delegate, "xnnpack");
  EXPECT_THAT(report.partitions[0].nodes, ElementsAre("pad", "conv", "bias", "relu", "bounded"));
  EXPECT_THAT(report.partitions[0].pieces, ElementsAre("bounded: convolution 3x3 + bias + clamp"));
  EXPECT_GE(report.partitions[0].constant_bytes, 3 * 3 * 3 * 5 * 4);
}

TEST(XnnpackTest, KeepsWhatOthersRead) {
  ImageGraph graph({1, 5, 5, 3});
  graph.Convolution("conv", "x", {3, 3, 3, 4});
  graph.Weights("b", {4});
  graph.Float("bias", "AddV2", {"b", "conv"});
  graph.Float("relu", "Relu", {"bias"});
  graph.Float("again", "Add", {"relu", "conv"});
  const DelegationReport report =
      ExpectSame(Xnnpack(), graph.graph(), {{"x", SomeFloats({1, 5, 5, 3}, 1)}}, {"conv", "bias", "relu", "again"}, 2);
  ASSERT_THAT(report.partitions, SizeIs(1));
  EXPECT_THAT(report.partitions[0].pieces,
              ElementsAre("conv: convolution 3x3", "bias: add", "relu: clamp", "again: add"));
}

TEST(XnnpackTest, ClampsMeet) {
  ImageGraph graph({2, 3});
  graph.Const("one", Tensor::Scalar<float>(1));
  graph.Const("minus", Tensor::FromVector<float>({1}, {-1}));
  graph.Float("low", "Maximum", {"x", "minus"});
  graph.Float("high", "Minimum", {"low", "one"});
  graph.Float("relu", "Relu", {"high"});
  DelegationReport report = ExpectSame(Xnnpack(), graph.graph(), {{"x", SomeFloats({2, 3}, 1)}}, {"relu"});
  ASSERT_THAT(report.partitions, SizeIs(1));
  EXPECT_THAT(report.partitions[0].pieces, ElementsAre("relu: clamp"));
  // Bounds that leave one value cannot be one clamp.
  graph.Float("nothing", "Minimum", {"relu", "minus"});
  graph.Float("end", "Maximum", {"nothing", "one"});
  report = ExpectSame(Xnnpack(), graph.graph(), {{"x", SomeFloats({2, 3}, 1)}}, {"end"});
  ASSERT_THAT(report.partitions, SizeIs(1));
  EXPECT_THAT(report.partitions[0].pieces, SizeIs(3));
}

TEST(XnnpackTest, ConvolutionsOfAllKinds) {
  int runs = 0;
  for (const std::string padding : {"SAME", "VALID", "EXPLICIT"}) {
    for (const int64_t stride : {1, 2, 3}) {
      for (const int64_t dilation : {1, 2}) {
        for (const int64_t taps : {1, 2, 3, 5}) {
          const Shape input = {2, 11, 13, 6};
          ImageGraph graph(input);
          graph.Window("plain", "Conv2D", "x", {taps, taps, 6, 17}, stride, dilation, padding);
          graph.Window("grouped", "Conv2D", "x", {taps, 3, 2, 9}, stride, dilation, padding);
          if (padding != "EXPLICIT") {
            graph.Window("depthwise", "DepthwiseConv2dNative", "x", {taps, taps, 6, 1}, stride, dilation, padding);
            graph.Window("multiplied", "DepthwiseConv2dNative", "x", {3, taps, 6, 3}, stride, dilation, padding);
          }
          std::vector<std::string> fetches = {"plain", "grouped"};
          if (padding != "EXPLICIT") fetches.insert(fetches.end(), {"depthwise", "multiplied"});
          const DelegationReport report =
              ExpectSame(Xnnpack(), graph.graph(), {{"x", SomeFloats(input, 3)}}, fetches, 1 + runs++ % 2);
          EXPECT_THAT(report.left, IsEmpty())
              << padding << " " << stride << " " << dilation << ": " << report.left[0].reason;
        }
      }
    }
  }
}

TEST(XnnpackTest, TransposedConvolutionsOfAllKinds) {
  for (const std::string padding : {"SAME", "VALID"}) {
    for (const int64_t stride : {1, 2, 3}) {
      for (const int64_t taps : {1, 2, 3, 4}) {
        for (const int64_t size : {7, 8}) {
          const int64_t small = padding == "SAME" ? (size + stride - 1) / stride : (size - taps + stride) / stride;
          ImageGraph graph({2, small, small, 5});
          graph.Ints("sizes", {2, static_cast<int32_t>(size), static_cast<int32_t>(size), 3});
          graph.Weights("filter", {taps, taps, 3, 5});
          Node* node = graph.Float("up", "Conv2DBackpropInput", {"sizes", "filter", "x"});
          node->SetAttr("strides", AttrValue::IntList({1, stride, stride, 1}));
          node->SetAttr("padding", AttrValue::String(padding));
          graph.Weights("b", {1, 1, 1, 3});
          graph.Float("bias", "Add", {"up", "b"});
          const DelegationReport report =
              ExpectSame(Xnnpack(), graph.graph(), {{"x", SomeFloats({2, small, small, 5}, 3)}}, {"bias"}, 2);
          EXPECT_THAT(report.left, IsEmpty()) << padding << " " << stride << " " << taps;
        }
      }
    }
  }
}

TEST(XnnpackTest, Broadcasts) {
  const std::vector<std::pair<Shape, Shape>> shapes = {{{2, 3, 4, 5}, {2, 3, 4, 5}},
                                                       {{2, 3, 4, 5}, {5}},
                                                       {{2, 3, 4, 5}, {1}},
                                                       {{}, {2, 3}},
                                                       {{2, 3, 4, 5}, {3, 1, 5}},
                                                       {{2, 1, 1, 5}, {2, 3, 4, 5}},
                                                       {{2, 3, 4, 1}, {2, 3, 4, 5}},
                                                       {{1, 3, 1, 5}, {2, 1, 4, 1}},
                                                       {{}, {}},
                                                       {{2, 1, 3, 1, 2, 2}, {3, 4, 1, 2}},
                                                       {{7}, {1, 1, 1, 1, 1, 7}}};
  int runs = 0;
  for (const std::string op : {"Add", "AddV2", "Sub", "Mul", "Maximum", "Minimum", "SquaredDifference", "RealDiv"}) {
    for (const auto& [a, b] : shapes) {
      for (const bool is_constant : {false, true}) {
        if (op == "RealDiv" && !is_constant) continue;
        ImageGraph graph(a);
        if (is_constant) {
          graph.Weights("y", b);
        } else {
          graph.Placeholder("y", DType::kFloat, b);
        }
        graph.Float("z", op, {"x", "y"});
        std::vector<Feed> feeds = {{"x", SomeFloats(a, 3)}};
        if (!is_constant) feeds.push_back({"y", SomeFloats(b, 4)});
        const DelegationReport report = ExpectSame(Xnnpack(), graph.graph(), feeds, {"z"}, 1 + runs++ % 2);
        EXPECT_THAT(report.left, IsEmpty()) << op << " " << a.ToString() << " " << b.ToString();
      }
    }
  }
}

TEST(XnnpackTest, TensorsOnTheBorderOfAPartition) {
  ImageGraph graph({2, 6});
  graph.Ints("shape", {3, 4});
  graph.Float("same", "Identity", {"x"});
  graph.Add("reshaped", "Reshape", {"same", "shape"}, {{"T", kFloatType}});
  graph.Float("neg", "Neg", {"reshaped"});
  graph.Float("neg_same", "Identity", {"neg"});
  graph.Float("sum", "Add", {"neg", "neg_same"});
  graph.Float("sum_same", "Identity", {"sum"});
  const Feed feed = {"x", SomeFloats({2, 6}, 3)};
  for (const std::vector<std::string>& fetches :
       std::vector<std::vector<std::string>>{{"same"},
                                             {"reshaped", "same"},
                                             {"neg", "neg_same", "neg"},
                                             {"neg", "sum"},
                                             {"sum_same", "sum"},
                                             {"same", "reshaped", "neg", "neg_same", "sum", "sum_same"}}) {
    const DelegationReport report = ExpectSame(Xnnpack(), graph.graph(), {feed}, fetches, 2);
    EXPECT_THAT(report.left, IsEmpty());
    EXPECT_THAT(report.partitions, SizeIs(1));
  }
}

TEST(XnnpackTest, PlansAgainForOtherShapes) {
  ImageGraph graph(Shape({kUnknownDim, kUnknownDim, kUnknownDim, 3}));
  graph.Convolution("conv", "x", {3, 3, 3, 8});
  graph.Float("relu", "Relu", {"conv"});
  graph.Ints("axes", {1, 2});
  graph.Float("mean", "Mean", {"relu", "axes"});
  const auto session = MakeSession(AlwaysWorthwhile(Xnnpack()), graph.graph(), {"x"}, {"mean"}, 2);
  const auto reference = MakeSession(nullptr, graph.graph(), {"x"}, {"mean"}, 1);
  ASSERT_TRUE(session.ok() && reference.ok());
  for (const Shape& shape : {Shape{1, 8, 8, 3}, Shape{2, 5, 9, 3}, Shape{1, 1, 1, 3}, Shape{1, 8, 8, 3}}) {
    const Tensor input = SomeFloats(shape, 5);
    const auto actual = (*session)->Run({input});
    const auto expected = (*reference)->Run({input});
    ASSERT_TRUE(actual.ok() && expected.ok()) << actual.status();
    EXPECT_THAT((*session)->report().delegation.partitions, SizeIs(1));
    EXPECT_THAT(ToVector((*actual)[0]), testing::Pointwise(testing::FloatNear(1e-5f), ToVector((*expected)[0])));
  }
  // Tensors without elements are left to the reference kernels.
  const auto empty = (*session)->Run({SomeFloats({0, 8, 8, 3}, 5)});
  ASSERT_TRUE(empty.ok()) << empty.status();
  EXPECT_EQ((*empty)[0].shape(), Shape({0, 8}));
  const DelegationReport& report = (*session)->report().delegation;
  EXPECT_THAT(report.partitions, IsEmpty());
  ASSERT_FALSE(report.left.empty());
  EXPECT_EQ(report.left[0].reason, "it has a tensor without elements");
}

TEST(XnnpackTest, SessionsRunAtTheSameTime) {
  ImageGraph graph({1, 24, 24, 8});
  graph.Convolution("a", "x", {3, 3, 8, 16});
  graph.Convolution("b", "a", {1, 1, 16, 16});
  graph.Float("relu", "Relu", {"b"});
  const Tensor input = SomeFloats({1, 24, 24, 8}, 5);
  for (const int num_threads : {1, 2}) {
    constexpr int kSessions = 3;
    std::vector<std::vector<Tensor>> results(kSessions);
    std::vector<std::thread> threads;
    for (int i = 0; i < kSessions; ++i) {
      threads.emplace_back([&, i] {
        const auto session = MakeSession(Xnnpack(), graph.graph(), {"x"}, {"relu"}, num_threads);
        for (int run = 0; run < 20 && session.ok(); ++run) {
          const auto outputs = (*session)->Run({input});
          if (outputs.ok()) results[i].push_back((*outputs)[0]);
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    for (const std::vector<Tensor>& result : results) {
      ASSERT_THAT(result, SizeIs(20));
      for (const Tensor& tensor : result) EXPECT_TRUE(tensor == results[0][0]);
    }
  }
}

TEST(XnnpackTest, AnyNumberOfThreads) {
  ImageGraph graph({1, 24, 24, 8});
  graph.Convolution("a", "x", {3, 3, 8, 16});
  for (const int num_threads : {-1, 0, 1, 3, 5}) {
    ExpectSame(Xnnpack(), graph.graph(), {{"x", SomeFloats({1, 24, 24, 8}, 5)}}, {"a"}, num_threads);
  }
}

TEST(XnnpackTest, SaysThatItCannotTakeNaN) {
  ImageGraph graph({1, 2, 2, 3});
  graph.Convolution("conv", "x", {1, 1, 3, 4});
  graph.Float("abs", "Abs", {"x"});
  for (const float bad : {std::nanf(""), std::numeric_limits<float>::infinity()}) {
    Tensor input = Floats({1, 2, 2, 3}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, bad});
    const auto session = MakeSession(AlwaysWorthwhile(Xnnpack()), graph.graph(), {"x"}, {"conv"}, 1);
    ASSERT_TRUE(session.ok()) << session.status();
    const auto outputs = (*session)->Run({input});
    EXPECT_EQ(outputs.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(outputs.status().ToString(), AllOf(HasSubstr("'conv'"), HasSubstr("NaN or infinity")));
    EXPECT_TRUE((*session)->Run({SomeFloats({1, 2, 2, 3}, 1)}).ok());
    // Where nothing is lost, nothing is said.
    const DelegationReport report = ExpectSame(Xnnpack(), graph.graph(), {{"x", input}}, {"abs"});
    EXPECT_THAT(report.partitions, SizeIs(1));
  }
}

TEST(XnnpackTest, PRelusAsExportersWriteThem) {
  for (const bool subtracts : {false, true}) {
    for (const bool is_read : {false, true}) {
      ImageGraph graph({2, 3, 3, 5});
      graph.Weights("alpha", {5});
      graph.Const("half", Tensor::Scalar<float>(0.5f));
      graph.Convolution("conv", "x", {1, 1, 5, 5});
      graph.Float("relu", "Relu", {"conv"});
      if (subtracts) {
        graph.Float("abs", "Abs", {"conv"});
        graph.Float("difference", "Sub", {"conv", "abs"});
        graph.Float("product", "Mul", {"alpha", "difference"});
        graph.Float("scaled", "Mul", {"product", "half"});
      } else {
        graph.Float("neg", "Neg", {"conv"});
        graph.Float("other", "Relu", {"neg"});
        graph.Float("scaled", "Mul", {"alpha", "other"});
      }
      graph.Float("sum", "AddV2", {"relu", "scaled"});
      std::vector<std::string> fetches = {"sum"};
      if (is_read) fetches.push_back("scaled");
      const DelegationReport report =
          ExpectSame(Xnnpack(), graph.graph(), {{"x", SomeFloats({2, 3, 3, 5}, 8)}}, fetches, 2);
      ASSERT_THAT(report.partitions, SizeIs(1));
      if (is_read) {
        EXPECT_GT(report.partitions[0].pieces.size(), 2);
      } else {
        EXPECT_THAT(report.partitions[0].pieces, ElementsAre("conv: convolution 1x1", "sum: prelu"));
      }
    }
  }
}

TEST(XnnpackTest, LeavesSmallThingsAlone) {
  ImageGraph graph({1, 4, 4, 3});
  graph.Convolution("conv", "x", {3, 3, 3, 4});
  const auto session = MakeSession(Xnnpack(), graph.graph(), {"x"}, {"conv"}, 1);
  ASSERT_TRUE(session.ok()) << session.status();
  ASSERT_TRUE((*session)->Run({SomeFloats({1, 4, 4, 3}, 1)}).ok());
  const DelegationReport& report = (*session)->report().delegation;
  EXPECT_THAT(report.partitions, IsEmpty());
  ASSERT_THAT(report.left, SizeIs(1));
  EXPECT_THAT(report.left[0].reason, HasSubstr("too small"));
}

TEST(XnnpackTest, ConstantsMayLieAnywhere) {
  static const std::vector<float> values(3 * 3 * 3 * 4 + 1, 0.25f);
  const absl::string_view bytes(reinterpret_cast<const char*>(values.data()) + 1, 3 * 3 * 3 * 4 * sizeof(float));
  ImageGraph graph({1, 5, 5, 3});
  graph.Const("filter", *Tensor::FromBytes(DType::kFloat, {3, 3, 3, 4}, bytes, nullptr));
  Node* conv = graph.Float("conv", "Conv2D", {"x", "filter"});
  conv->SetAttr("strides", AttrValue::IntList({1, 1, 1, 1}));
  conv->SetAttr("padding", AttrValue::String("SAME"));
  graph.Const("image", *Tensor::FromBytes(DType::kFloat, {5, 5, 4}, bytes.substr(0, 400), nullptr));
  graph.Float("sum", "Add", {"conv", "image"});
  const DelegationReport report = ExpectSame(Xnnpack(), graph.graph(), {{"x", SomeFloats({1, 5, 5, 3}, 1)}}, {"sum"});
  EXPECT_THAT(report.left, IsEmpty());
}

TEST(XnnpackTest, ReportsPieces) {
  ImageGraph graph({1, 32, 32, 3});
  graph.Convolution("conv", "x", {3, 3, 3, 16});
  graph.Float("sigmoid", "Sigmoid", {"conv"});
  std::map<std::string, int> pieces;
  SessionOptions options;
  options.delegate = Xnnpack();
  options.on_piece = [&](absl::string_view name, absl::Duration) { ++pieces[std::string(name)]; };
  const auto session = Session::Create(graph.graph(), {"x"}, {"sigmoid"}, options);
  ASSERT_TRUE(session.ok()) << session.status();
  ASSERT_TRUE((*session)->Run({SomeFloats({1, 32, 32, 3}, 1)}).ok());
  EXPECT_EQ(pieces, (std::map<std::string, int>{{"conv", 1}, {"sigmoid", 1}}));
  const DelegationReport& report = (*session)->report().delegation;
  ASSERT_THAT(report.partitions, SizeIs(1));
  EXPECT_GE(report.partitions[0].scratch_bytes, 32 * 32 * 16 * 4);
}

// Input and output end where their pages do, and the output is read again.
TEST(XnnpackTest, ReadsNothingBeyondTheBuffers) {
  SmallGraph graph;
  const Shape shape = {4, 256};
  graph.Placeholder("x", DType::kFloat, shape);
  Partition partition;
  for (int i = 0; i < 3; ++i) {
    DelegateTensor& tensor = partition.tensors.emplace_back();
    tensor.dtype = DType::kFloat;
    tensor.shape = shape;
  }
  partition.nodes.push_back({graph.Float("neg", "Neg", {"x"}), {0}, {1}});
  partition.nodes.push_back({graph.Float("relu", "Relu", {"neg"}), {1}, {2}});
  partition.inputs = {0};
  partition.outputs = {1, 2};
  for (const int num_threads : {1, 2}) {
    const auto compiled = Xnnpack()->Compile(partition, num_threads);
    ASSERT_TRUE(compiled.ok()) << compiled.status();
    GuardedMemory x(4096, 64), neg(4096, 64), relu(4096, 64), scratch((*compiled)->scratch_bytes(), 64);
    const Tensor input = SomeFloats(shape, 1);
    x.Fill(input.bytes());
    x.MakeReadOnly();
    const char* inputs[] = {x.data()};
    char* outputs[] = {neg.data(), relu.data()};
    ASSERT_TRUE((*compiled)->Run(inputs, outputs, scratch.data(), nullptr).ok());
    for (int i = 0; i < 4 * 256; ++i) {
      const float value = input.elements<float>()[i];
      EXPECT_EQ(reinterpret_cast<const float*>(neg.data())[i], -value);
      EXPECT_EQ(reinterpret_cast<const float*>(relu.data())[i], std::max(0.0f, -value));
    }
    EXPECT_TRUE(scratch.CheckSurroundings().ok());
  }
}

TEST(XnnpackTest, LongChainsTakeLinearTime) {
  constexpr int kLength = 20'000;
  ImageGraph graph({2, 3});
  std::string last = "x";
  for (int i = 0; i < kLength; ++i) {
    const std::string name = absl::StrCat("n", i);
    graph.Float(name, i % 2 == 0 ? "Neg" : "Identity", {last});
    last = name;
  }
  const DelegationReport report = ExpectSame(Xnnpack(), graph.graph(), {{"x", SomeFloats({2, 3}, 1)}}, {last});
  ASSERT_THAT(report.partitions, SizeIs(1));
  EXPECT_THAT(report.partitions[0].pieces, SizeIs(kLength / 2));
  EXPECT_LT(report.partitions[0].scratch_bytes, 4096);
}

}  // namespace
}  // namespace permafrost
