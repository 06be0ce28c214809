// Tests of the choice of sizes for unknown dimensions.
#include "tools/model/input_sizes.h"

#include <gtest/gtest.h>

#include "absl/strings/match.h"
#include "tests/tools/graph_from_text.h"

namespace permafrost {
namespace {

class InputSizesTest : public testing::Test {
 protected:
  void Make(const std::string& text) { graph_ = GraphFromText(text); }
  void SetShape(const std::string& node, Shape shape) {
    graph_->Find(node)->SetAttr("shape", AttrValue::OfShape(std::move(shape)));
  }
  void SetConst(const std::string& node, Shape shape) {
    std::vector<float> values(static_cast<size_t>(shape.num_elements()), 0.5f);
    graph_->Find(node)->SetAttr("value", AttrValue::OfTensor(Tensor::FromVector(std::move(shape), std::move(values))));
  }
  absl::StatusOr<std::vector<InputShapes>> Choose(const std::vector<std::string>& inputs, const std::string& output,
                                                  int count = 2) {
    EXPECT_TRUE(graph_->DeclareInterface(inputs, {output}).ok());
    return ChooseInputShapes(*graph_, graph_->inputs(), count);
  }

  std::unique_ptr<Graph> graph_;
};

TEST_F(InputSizesTest, KnownShapesAreLeft) {
  Make("x = Placeholder()\ny = Relu(x)");
  const auto shapes = Choose({"x"}, "y");
  ASSERT_TRUE(shapes.ok()) << shapes.status();
  ASSERT_EQ(shapes->size(), 1u);
  EXPECT_TRUE(shapes->front().empty());
}

TEST_F(InputSizesTest, RowsOfAWeight) {
  Make("x = Placeholder()\nw = Const()\ny = MatMul(x, w)");
  SetShape("x", {kUnknownDim, kUnknownDim});
  SetConst("w", {37, 3});
  const auto shapes = Choose({"x"}, "y");
  ASSERT_TRUE(shapes.ok()) << shapes.status();
  EXPECT_EQ(shapes->front().at("x"), Shape({1, 37}));
}

TEST_F(InputSizesTest, SeveralSizesWhereTheGraphTakesThem) {
  Make("x = Placeholder()\nz = Placeholder()\ny = Add(x, z)");
  SetShape("x", {kUnknownDim, kUnknownDim, 3});
  SetShape("z", {kUnknownDim, kUnknownDim, 3});
  const auto shapes = Choose({"x", "z"}, "y");
  ASSERT_TRUE(shapes.ok()) << shapes.status();
  ASSERT_EQ(shapes->size(), 2u);
  EXPECT_EQ((*shapes)[0].at("x"), (*shapes)[0].at("z"));
  EXPECT_NE((*shapes)[0].at("x"), (*shapes)[1].at("x"));
}

TEST_F(InputSizesTest, PicturesOfAConvolution) {
  Make("x = Placeholder()\nw = Const()\ny = Conv2D(x, w)");
  graph_->Find("y")->SetAttr("strides", AttrValue::IntList({1, 2, 2, 1}));
  graph_->Find("y")->SetAttr("padding", AttrValue::String("VALID"));
  SetShape("x", Shape::UnknownRank());
  SetConst("w", {5, 5, 7, 2});
  const auto shapes = Choose({"x"}, "y");
  ASSERT_TRUE(shapes.ok()) << shapes.status();
  const Shape& shape = shapes->front().at("x");
  ASSERT_EQ(shape.rank(), 4);
  EXPECT_EQ(shape.dim(0), 1);
  EXPECT_EQ(shape.dim(3), 7);
  EXPECT_GE(shape.dim(1), 32);
}

TEST_F(InputSizesTest, ThereMayBeNoSizes) {
  Make("x = Placeholder()\nv = Const()\nw = Const()\na = MatMul(x, v)\nb = MatMul(x, w)\ny = Add(a, b)");
  SetShape("x", {kUnknownDim, kUnknownDim});
  SetConst("v", {6, 2});
  SetConst("w", {7, 2});
  const auto shapes = Choose({"x"}, "y");
  EXPECT_EQ(shapes.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(absl::StrContains(shapes.status().message(), "--verify_inputs")) << shapes.status();
}

}  // namespace
}  // namespace permafrost
