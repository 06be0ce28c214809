// Tests of converting float feeds to codes, for graphs with quantised inputs.
#include "runtime_check/checking/coded_feeds.h"

#include <cmath>

#include "gmock/gmock.h"
#include "graph/base/status.h"
#include "gtest/gtest.h"
#include "tests/runtime_check/small_graph.h"

namespace permafrost {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class CodedFeedsTest : public testing::Test {
 protected:
  CodedFeedsTest() {
    small_.Placeholder("x", DType::kQUint8, {kUnknownDim});
    small_.Const("min", Tensor::Scalar(-1.0f));
    small_.Const("max", Tensor::Scalar(1.0f));
    small_.Const("other_min", Tensor::Scalar(-4.0f));
    small_.Const("other_max", Tensor::Scalar(4.0f));
    small_.Const("other", Tensor::Scalar(int32_t{0}));
  }
  absl::StatusOr<std::vector<int>> Codes(const std::vector<float>& values) {
    const Endpoint input = {"x", small_.graph().Find("x"), 0};
    PF_ASSIGN_OR_RETURN(const Tensor coded, CodedFeed(input, Floats({static_cast<int64_t>(values.size())}, values)));
    EXPECT_EQ(coded.dtype(), DType::kQUint8);
    return std::vector<int>(coded.bytes().begin(), coded.bytes().end());
  }
  void ExpectCoded() {
    const auto codes = Codes({-1, 0, 1, -9, 9, NAN});
    ASSERT_TRUE(codes.ok()) << codes.status();
    std::vector<int> unsigned_codes;
    for (const int code : *codes) unsigned_codes.push_back(code & 0xff);
    EXPECT_THAT(unsigned_codes, ElementsAre(0, 128, 255, 0, 255, 0));
  }

  SmallGraph small_;
};

TEST_F(CodedFeedsTest, TheRangeIsThatOfADequantize) {
  small_.Add("y", "Dequantize", {"x", "min", "max"}, {});
  ExpectCoded();
}

TEST_F(CodedFeedsTest, TheRangeIsThatOfTheOperand) {
  small_.Add("y", "QuantizedAdd", {"other", "x", "other_min", "other_max", "min", "max"}, {});
  ExpectCoded();
}

TEST_F(CodedFeedsTest, TheRangeIsThatOfThePartOfAJoin) {
  small_.Add("y", "QuantizedConcat", {"other", "other", "x", "other_min", "min", "other_max", "max"}, {});
  ExpectCoded();
}

TEST_F(CodedFeedsTest, TheRangeIsThatBesideAShape) {
  small_.Add("y", "QuantizedReshape", {"x", "other", "min", "max"}, {});
  ExpectCoded();
}

TEST_F(CodedFeedsTest, WithoutARangeThereAreNoCodes) {
  small_.Add("y", "Identity", {"x"}, {});
  EXPECT_THAT(std::string(Codes({1}).status().message()), HasSubstr("input 'x' takes quint8, and no reader"));
}

TEST_F(CodedFeedsTest, OtherFeedsStay) {
  small_.Placeholder("f", DType::kFloat, {2});
  const Tensor floats = Floats({2}, {1, 2});
  EXPECT_EQ(*CodedFeed({"f", small_.graph().Find("f"), 0}, floats), floats);
  const Tensor ints = Tensor::Scalar(int32_t{7});
  EXPECT_EQ(*CodedFeed({"x", small_.graph().Find("x"), 0}, ints), ints);
}

}  // namespace
}  // namespace permafrost
