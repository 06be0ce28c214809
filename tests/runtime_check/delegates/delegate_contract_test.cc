// Tests that every registered delegate must pass beyond single nodes: graphs with the delegate compared with graphs
// without.
#include <algorithm>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime_check/delegates/delegate_registry.h"
#include "tests/runtime_check/delegates/conformance.h"
#include "tests/runtime_check/delegates/delegate_run.h"
#include "tests/runtime_check/delegates/guarded_memory.h"
#include "tests/runtime_check/delegates/image_graph.h"
#include "tests/runtime_check/delegates/registered_delegates.h"

namespace permafrost {
namespace {

using testing::SizeIs;

class DelegateContractTest : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    const auto made = MakeDelegate(GetParam(), {});
    if (absl::IsUnavailable(made.status())) GTEST_SKIP() << made.status();
    ASSERT_TRUE(made.ok()) << made.status();
    delegate_ = *made;
  }
  const std::shared_ptr<const Delegate>& delegate() const { return delegate_; }

 private:
  std::shared_ptr<const Delegate> delegate_;
};

TEST_P(DelegateContractTest, ConvolutionsOfAllKinds) {
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
              ExpectSame(delegate(), graph.graph(), {{"x", SomeFloats(input, 3)}}, fetches, 1 + runs++ % 2);
          EXPECT_FALSE(report.partitions.empty()) << padding << " " << stride << " " << dilation;
        }
      }
    }
  }
}

TEST_P(DelegateContractTest, TransposedConvolutionsOfAllKinds) {
  size_t num_taken = 0;
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
              ExpectSame(delegate(), graph.graph(), {{"x", SomeFloats({2, small, small, 5}, 3)}}, {"bias"}, 2);
          num_taken += report.partitions.size();
        }
      }
    }
  }
  EXPECT_GT(num_taken, 0);
}

TEST_P(DelegateContractTest, Broadcasts) {
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
  size_t num_taken = 0;
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
        const DelegationReport report = ExpectSame(delegate(), graph.graph(), feeds, {"z"}, 1 + runs++ % 2);
        num_taken += report.partitions.size();
      }
    }
  }
  EXPECT_GT(num_taken, 0);
}

TEST_P(DelegateContractTest, TensorsOnTheBorderOfAPartition) {
  ImageGraph graph({2, 6});
  graph.Ints("shape", {3, 4});
  graph.Float("same", "Identity", {"x"});
  graph.Add("reshaped", "Reshape", {"same", "shape"}, {{"T", AttrValue::Type(DType::kFloat)}});
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
    const DelegationReport report = ExpectSame(delegate(), graph.graph(), {feed}, fetches, 2);
    EXPECT_FALSE(report.partitions.empty());
  }
}

TEST_P(DelegateContractTest, PlansAgainForOtherShapes) {
  ImageGraph graph(Shape({kUnknownDim, kUnknownDim, kUnknownDim, 3}));
  graph.Convolution("conv", "x", {3, 3, 3, 8});
  graph.Float("relu", "Relu", {"conv"});
  graph.Ints("axes", {1, 2});
  graph.Float("mean", "Mean", {"relu", "axes"});
  const auto session = MakeSession(AlwaysWorthwhile(delegate()), graph.graph(), {"x"}, {"mean"}, 2);
  const auto reference = MakeSession(nullptr, graph.graph(), {"x"}, {"mean"}, 1);
  ASSERT_TRUE(session.ok() && reference.ok());
  for (const Shape& shape : {Shape{1, 8, 8, 3}, Shape{2, 5, 9, 3}, Shape{1, 1, 1, 3}, Shape{1, 8, 8, 3}}) {
    const Tensor input = SomeFloats(shape, 5);
    const auto actual = (*session)->Run({input});
    const auto expected = (*reference)->Run({input});
    ASSERT_TRUE(actual.ok() && expected.ok()) << actual.status();
    EXPECT_FALSE((*session)->report().delegation.partitions.empty());
    EXPECT_THAT(ToVector((*actual)[0]), testing::Pointwise(testing::FloatNear(1e-5f), ToVector((*expected)[0])));
  }
  const auto empty = (*session)->Run({SomeFloats({0, 8, 8, 3}, 5)});
  ASSERT_TRUE(empty.ok()) << empty.status();
  EXPECT_EQ((*empty)[0].shape(), Shape({0, 8}));
}

TEST_P(DelegateContractTest, SessionsRunAtTheSameTime) {
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
        const auto session = MakeSession(delegate(), graph.graph(), {"x"}, {"relu"}, num_threads);
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

TEST_P(DelegateContractTest, AnyNumberOfThreads) {
  ImageGraph graph({1, 24, 24, 8});
  graph.Convolution("a", "x", {3, 3, 8, 16});
  for (const int num_threads : {-1, 0, 1, 3, 5}) {
    ExpectSame(delegate(), graph.graph(), {{"x", SomeFloats({1, 24, 24, 8}, 5)}}, {"a"}, num_threads);
  }
}

TEST_P(DelegateContractTest, ConstantsMayLieAnywhere) {
  static const std::vector<float> values(3 * 3 * 3 * 4 + 1, 0.25f);
  const absl::string_view bytes(reinterpret_cast<const char*>(values.data()) + 1, 3 * 3 * 3 * 4 * sizeof(float));
  ImageGraph graph({1, 5, 5, 3});
  graph.Const("filter", *Tensor::FromBytes(DType::kFloat, {3, 3, 3, 4}, bytes, nullptr));
  Node* conv = graph.Float("conv", "Conv2D", {"x", "filter"});
  conv->SetAttr("strides", AttrValue::IntList({1, 1, 1, 1}));
  conv->SetAttr("padding", AttrValue::String("SAME"));
  graph.Const("image", *Tensor::FromBytes(DType::kFloat, {5, 5, 4}, bytes.substr(0, 400), nullptr));
  graph.Float("sum", "Add", {"conv", "image"});
  const DelegationReport report = ExpectSame(delegate(), graph.graph(), {{"x", SomeFloats({1, 5, 5, 3}, 1)}}, {"sum"});
  EXPECT_FALSE(report.partitions.empty());
}

// Input and output end at page boundaries, and the output is read as an input.
TEST_P(DelegateContractTest, ReadsNothingBeyondTheBuffers) {
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
    const auto compiled = delegate()->Compile(partition, num_threads);
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

TEST_P(DelegateContractTest, LongChainsTakeLinearTime) {
  constexpr int kLength = 20'000;
  ImageGraph graph({2, 3});
  std::string last = "x";
  for (int i = 0; i < kLength; ++i) {
    const std::string name = absl::StrCat("n", i);
    graph.Float(name, i % 2 == 0 ? "Neg" : "Identity", {last});
    last = name;
  }
  const DelegationReport report = ExpectSame(delegate(), graph.graph(), {{"x", SomeFloats({2, 3}, 1)}}, {last});
  ASSERT_FALSE(report.partitions.empty());
  EXPECT_LT(report.partitions[0].scratch_bytes, kLength);  // A twentieth of the size of the tensors.
}

INSTANTIATE_TEST_SUITE_P(, DelegateContractTest, testing::ValuesIn(RegisteredDelegates()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace permafrost
