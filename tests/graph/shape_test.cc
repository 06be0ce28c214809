// Tests of the text form, element count, merging and broadcasting of shapes.
#include "graph/shape.h"

#include "gtest/gtest.h"

namespace permafrost {
namespace {

TEST(ShapeTest, TextForm) {
  for (const char* text : {"[1,224,224,3]", "[?,3]", "[]", "<unknown>", "[0]"}) {
    const absl::StatusOr<Shape> shape = ParseShape(text);
    ASSERT_TRUE(shape.ok()) << shape.status();
    EXPECT_EQ(shape->ToString(), text);
  }
  EXPECT_EQ(*ParseShape(" 1, -1 ,3"), Shape({1, -1, 3}));
  for (const char* text : {"", "1,,2", "[1", "1,x", "-2", "99999999999999999999"}) {
    EXPECT_FALSE(ParseShape(text).ok()) << text;
  }
}

TEST(ShapeTest, CountsDoNotOverflow) {
  EXPECT_EQ(*Shape().CheckedNumElements(), 1);
  EXPECT_EQ(*Shape({3, 0, 5}).CheckedNumElements(), 0);
  EXPECT_FALSE(Shape({int64_t{1} << 32, int64_t{1} << 31}).CheckedNumElements().ok());
}

TEST(ShapeTest, MergingAndBroadcasting) {
  EXPECT_EQ(*MergeShapes({-1, 3}, {2, -1}), Shape({2, 3}));
  EXPECT_EQ(*MergeShapes(Shape::UnknownRank(), {2}), Shape({2}));
  EXPECT_FALSE(MergeShapes({2}, {3}).ok());
  EXPECT_FALSE(MergeShapes({2}, {2, 1}).ok());
  EXPECT_EQ(*BroadcastShapes({-1, 1}, {5}), Shape({-1, 5}));
  EXPECT_EQ(*BroadcastShapes({-1}, {1}), Shape({-1}));
  EXPECT_EQ(*BroadcastShapes({-1}, {4}), Shape({4}));
  EXPECT_EQ(*BroadcastShapes({0}, {1}), Shape({0}));
  EXPECT_FALSE(BroadcastShapes({0}, {2}).ok());
  EXPECT_TRUE(Shape({-1, 2}).IsCompatibleWith({7, 2}));
}

}  // namespace
}  // namespace permafrost
