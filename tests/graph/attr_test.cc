// Tests of attribute values in wire format: every kind, protobuf's rules for repeated members, and errors.
#include "graph/attr.h"

#include <memory>
#include <string>

#include "graph/wire_format/tensor_proto.h"
#include "gtest/gtest.h"

namespace permafrost {
namespace {

using namespace std::string_literals;

AttrValue Wire(absl::string_view bytes) { return AttrValue::FromWire(bytes, nullptr); }

TEST(AttrTest, EveryKindRoundTrips) {
  EXPECT_EQ(*AttrValue::Int(-5).AsInt(), -5);
  EXPECT_EQ(*AttrValue::Float(-0.5f).AsFloat(), -0.5f);
  EXPECT_TRUE(*AttrValue::Bool(true).AsBool());
  EXPECT_FALSE(*AttrValue::Bool(false).AsBool());
  EXPECT_EQ(*AttrValue::String("").AsString(), "");
  EXPECT_EQ(*AttrValue::Type(DType::kHalf).AsType(), DType::kHalf);
  EXPECT_EQ(*AttrValue::OfShape({-1, 0, 3}).AsShape(), Shape({-1, 0, 3}));
  EXPECT_EQ(*AttrValue::OfShape(Shape::UnknownRank()).AsShape(), Shape::UnknownRank());
  const std::vector<int64_t> ints = {1, -1, INT64_MIN};
  EXPECT_EQ(*AttrValue::IntList(ints).AsIntList(), ints);
  const std::vector<std::string> strings = {"a", "", "c"};
  EXPECT_EQ(*AttrValue::StringList(strings).AsStringList(), strings);
  const std::vector<float> floats = {1.5f, -2.0f};
  EXPECT_EQ(*AttrValue::FloatList(floats).AsFloatList(), floats);
  const std::vector<DType> types = {DType::kFloat, DType::kString};
  EXPECT_EQ(*AttrValue::TypeList(types).AsTypeList(), types);
  const std::vector<Shape> shapes = {Shape({2}), Shape()};
  EXPECT_EQ(*AttrValue::ShapeList(shapes).AsShapeList(), shapes);
  EXPECT_EQ(AttrValue::IntList({}).kind(), AttrValue::Kind::kList);
  EXPECT_TRUE(AttrValue::IntList({}).AsTypeList()->empty());
}

TEST(AttrTest, ATensorReadsBackFromItsWireForm) {
  const Tensor tensor = Tensor::FromVector<float>({2, 1}, {1, 2});
  const AttrValue value = AttrValue::OfTensor(tensor);
  const std::string bytes = value.Encoded();
  EXPECT_EQ(bytes.size(), value.EncodedSize());
  EXPECT_EQ(*Wire(bytes).AsTensor(), tensor);
  DType dtype;
  Shape shape;
  ASSERT_TRUE(Wire(bytes).TensorTypeAndShape(&dtype, &shape).ok());
  EXPECT_EQ(shape, Shape({2, 1}));
}

TEST(AttrTest, PackedAndUnpackedListsAreTheSame) {
  const std::vector<int64_t> expected = {3, 4, 5};
  EXPECT_EQ(*Wire("\x0a\x05\x1a\x03\x03\x04\x05").AsIntList(), expected);
  EXPECT_EQ(*Wire("\x0a\x06\x18\x03\x18\x04\x18\x05").AsIntList(), expected);
  EXPECT_EQ(*Wire("\x0a\x06\x18\x03\x1a\x02\x04\x05").AsIntList(), expected);
  EXPECT_EQ(Wire("\x0a\x03\x1a\x01\x80").AsIntList().status().code(), absl::StatusCode::kDataLoss);
}

TEST(AttrTest, TheLastMemberCounts) {
  const AttrValue value = Wire("\x18\x07\x28\x01\x18\x09");  // i: 7, b: true, i: 9
  EXPECT_EQ(value.kind(), AttrValue::Kind::kInt);
  EXPECT_EQ(*value.AsInt(), 9);
  EXPECT_EQ(Wire("\x18\x07\x28\x01").AsInt().status().message(), "has a value of kind bool, expected int");
}

TEST(AttrTest, MessagesGivenTwiceAreMerged) {
  // shape { dim { size: 2 } } shape { dim { size: 3 } } merge; another member in between starts a new value.
  EXPECT_EQ(*Wire("\x3a\x04\x12\x02\x08\x02\x3a\x04\x12\x02\x08\x03").AsShape(), Shape({2, 3}));
  EXPECT_EQ(*Wire("\x3a\x04\x12\x02\x08\x02\x18\x01\x3a\x04\x12\x02\x08\x03").AsShape(), Shape({3}));
  EXPECT_EQ(Wire("\x3a\x04\x12\x02\x08\x02\x3a\x04\x12\x02\x08\x03\x3a\x04\x12\x02\x08\x04").AsShape()->rank(), 3);
}

TEST(AttrTest, TensorsThatWereReplacedDoNotOwnTheOneThatCounts) {
  // Two tensors that merge, a bool, and the tensor that counts, which must view the owner's memory.
  const std::string tensor = AttrValue::OfTensor(Tensor::FromVector<float>({2}, {1, 2})).Encoded();
  auto bytes = std::make_shared<const std::string>(tensor + tensor + AttrValue::Bool(true).Encoded() + tensor);
  const std::weak_ptr<const std::string> memory = bytes;
  const Tensor read = *AttrValue::FromWire(*bytes, bytes).AsTensor();
  bytes.reset();
  EXPECT_FALSE(memory.expired());
  EXPECT_EQ(read, Tensor::FromVector<float>({2}, {1, 2}));
}

TEST(AttrTest, MergingTakesLinearTime) {
  // 400,000 pieces of 8 bytes each. Copying the merged bytes for each piece would move 640 GB.
  std::string bytes;
  for (int i = 0; i < 400000; ++i)
    bytes += std::string(
        "\x42\x06\xa2\x06\x03"
        "abc",
        8);  // An unknown field.
  bytes += AttrValue::OfTensor(Tensor::FromVector<float>({2}, {1, 2})).Encoded();
  EXPECT_EQ(*Wire(bytes).AsTensor(), Tensor::FromVector<float>({2}, {1, 2}));
  std::string tensor;
  for (int i = 0; i < 400000; ++i)
    tensor += std::string(
        "\x12\x06\xa2\x06\x03"
        "abc",
        8);  // An unknown field in a shape.
  EXPECT_EQ(ParseTensorHeader(tensor)->shape, Shape());
}

TEST(AttrTest, NothingAndGarbage) {
  EXPECT_EQ(AttrValue().kind(), AttrValue::Kind::kNone);
  EXPECT_EQ(AttrValue().AsInt().status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Wire("\x18").AsInt().status().code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(*Wire("\x52\x05\x0a\x03"
                  "abc")
                 .AsFunctionName(),
            "abc");
  EXPECT_EQ(Wire("\xa2\x06\x01x").Encoded(), "\xa2\x06\x01x");  // A field of the future is kept.
}

}  // namespace
}  // namespace permafrost
