// Tests of patterns: matches, captures and the reasons of near misses.
#include "graph/matching/matcher.h"

#include "gtest/gtest.h"

namespace permafrost {
namespace {

enum { kData, kWeights, kFactor, kConvolution };

Pattern ScaledConvolution() {
  return Pattern::OneOf({ops::kMul})
      .InAnyOrder(Pattern::OneOf({ops::kConv2D, ops::kMatMul})
                      .As(kConvolution)
                      .UsedOnce()
                      .Input(0, Pattern::Anything().AtAnyPort().As(kData))
                      .Input(1, Pattern::Constant().As(kWeights)),
                  Pattern::Constant().As(kFactor));
}

class MatcherTest : public testing::Test {
 protected:
  Node* Add(const char* name, Op op, std::initializer_list<TensorRef> inputs = {}) {
    Node* node = *graph_.AddNode(name, op);
    for (const TensorRef& input : inputs) graph_.AddInput(node, input);
    return node;
  }
  Node* Constant(const char* name) { return *graph_.AddConst(name, Tensor::Scalar(1.0f)); }

  Graph graph_;
  Match match_;
  std::string why_;
};

TEST_F(MatcherTest, CapturesTensorsWithTheirPorts) {
  Node* split = Add("split", ops::kSplit);
  Node* w = Constant("w");
  Node* read = Add("read", ops::kIdentity, {{w, 0}});
  Node* conv = Add("conv", ops::kConv2D, {{split, 1}, {read, 0}});
  Node* factor = Constant("factor");
  Node* mul = Add("mul", ops::kMul, {{conv, 0}, {factor, 0}});
  ASSERT_TRUE(Matches(ScaledConvolution(), *mul, &match_, &why_)) << why_;
  EXPECT_EQ(match_[kData], (TensorRef{split, 1}));
  EXPECT_EQ(match_[kWeights].node, read);
  EXPECT_EQ(ConstantBehind(match_[kWeights]), w);
  EXPECT_EQ(match_[kFactor].node, factor);
  EXPECT_EQ(why_, "");
}

TEST_F(MatcherTest, TakesInputsInEitherOrder) {
  Node* x = Add("x", ops::kPlaceholder);
  Node* conv = Add("conv", ops::kConv2D, {{x, 0}, {Constant("w"), 0}});
  Node* factor = Constant("factor");
  Node* mul = Add("mul", ops::kMul, {{factor, 0}, {conv, 0}});
  ASSERT_TRUE(Matches(ScaledConvolution(), *mul, &match_));
  EXPECT_EQ(match_[kConvolution].node, conv);
  EXPECT_EQ(match_[kFactor].node, factor);
}

TEST_F(MatcherTest, SaysWhyTheNearestMatchFailed) {
  Node* x = Add("x", ops::kPlaceholder);
  Node* conv = Add("conv", ops::kConv2D, {{x, 0}, {x, 0}});
  Node* mul = Add("mul", ops::kMul, {{Constant("factor"), 0}, {conv, 0}});
  EXPECT_FALSE(Matches(ScaledConvolution(), *mul, &match_, &why_));
  EXPECT_EQ(why_, "input 1 of input 1, node 'x' (Placeholder), is not constant");
  EXPECT_FALSE(Matches(ScaledConvolution(), *conv, &match_, &why_));
  EXPECT_EQ(why_, "") << "another op at the head is not a near miss";
}

TEST_F(MatcherTest, UsedOnceCountsControlUsesAndEndpoints) {
  Node* x = Add("x", ops::kPlaceholder);
  Node* conv = Add("conv", ops::kConv2D, {{x, 0}, {Constant("w"), 0}});
  Node* mul = Add("mul", ops::kMul, {{conv, 0}, {Constant("factor"), 0}});
  EXPECT_TRUE(Matches(ScaledConvolution(), *mul, &match_));
  graph_.AddControlInput(Add("late", ops::kNoOp), conv);
  EXPECT_FALSE(Matches(ScaledConvolution(), *mul, &match_, &why_));
  EXPECT_EQ(why_, "input 0, node 'conv' (Conv2D), has 2 users, expected one");
  ASSERT_TRUE(graph_.DeclareInterface({}, {"conv"}).ok());
  EXPECT_FALSE(Matches(ScaledConvolution(), *mul, &match_, &why_));
  EXPECT_EQ(why_, "input 0, node 'conv' (Conv2D), is a declared input or output");
}

TEST_F(MatcherTest, MatchesOutputZeroByDefault) {
  Node* split = Add("split", ops::kSplit);
  Node* relu = Add("relu", ops::kRelu, {{split, 1}});
  EXPECT_FALSE(Matches(Pattern::OneOf({ops::kRelu}).Input(0, Pattern::OneOf({ops::kSplit})), *relu, &match_, &why_));
  EXPECT_EQ(why_, "input 0, node 'split' (Split), is read at output 1, expected output 0");
  EXPECT_FALSE(Matches(Pattern::OneOf({ops::kRelu}).Input(1, Pattern::Anything()), *relu, &match_, &why_));
}

TEST_F(MatcherTest, LooksThroughAFewIdentityNodesOnly) {
  Node* at = Constant("c");
  for (int i = 0; i < kMaxReads; ++i) at = Add(("i" + std::to_string(i)).c_str(), ops::kIdentity, {{at, 0}});
  EXPECT_NE(ConstantBehind({at, 0}), nullptr);
  EXPECT_EQ(ConstantBehind({Add("one_more", ops::kIdentity, {{at, 0}}), 0}), nullptr);
  EXPECT_EQ(ConstantBehind({Constant("d"), kControlPort}), nullptr);
}

}  // namespace
}  // namespace permafrost
