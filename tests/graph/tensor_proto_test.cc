// Tests of TensorProto in all encodings, hostile ones included.
#include "graph/wire_format/tensor_proto.h"

#include "gtest/gtest.h"

namespace permafrost {
namespace {

using namespace std::string_literals;

// Encodes a TensorProto from dtype, shape and further fields.
std::string Proto(DType dtype, const Shape& shape, absl::string_view rest) {
  std::string encoded;
  AppendVarintField(1, static_cast<uint64_t>(dtype), &encoded);
  AppendBytesField(2, EncodeShapeProto(shape), &encoded);
  encoded.append(rest.data(), rest.size());
  return encoded;
}

template <typename T>
std::vector<T> Elements(const absl::StatusOr<Tensor>& tensor) {
  EXPECT_TRUE(tensor.ok()) << tensor.status();
  std::vector<T> elements;
  for (size_t i = 0; tensor.ok() && i < tensor->elements<T>().size(); ++i) elements.push_back(tensor->elements<T>()[i]);
  return elements;
}

absl::StatusOr<Tensor> Parse(const std::string& encoded) { return ParseTensorProto(encoded, nullptr); }

TEST(TensorProtoTest, TypedListsRepeatTheirLastValue) {
  EXPECT_EQ(Elements<int32_t>(Parse(Proto(DType::kInt32, {4}, "\x3a\x02\x07\x08"))),
            (std::vector<int32_t>{7, 8, 8, 8}));
  EXPECT_EQ(Elements<int32_t>(Parse(Proto(DType::kInt32, {2}, ""))), (std::vector<int32_t>{0, 0}));
  EXPECT_EQ(Elements<int32_t>(Parse(Proto(DType::kInt32, {1}, "\x38\x07\x38\x08"))), (std::vector<int32_t>{7}));
  EXPECT_EQ(Elements<float>(Parse(Proto(DType::kFloat, {2}, "\x2a\x04\x00\x00\x80\x3f"s))), (std::vector<float>{1, 1}));
  EXPECT_EQ(Elements<int8_t>(Parse(Proto(DType::kInt8, {1}, "\x38\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"))),
            (std::vector<int8_t>{-1}));
  EXPECT_EQ(Elements<bool>(Parse(Proto(DType::kBool, {2}, "\x5a\x02\x01\x00"s))), (std::vector<bool>{true, false}));
  EXPECT_EQ(Elements<BFloat16>(Parse(Proto(DType::kBFloat16, {1}, "\x6a\x02\x80\x7f")))[0].bits, 0x3f80);
  EXPECT_EQ(Elements<std::complex<float>>(Parse(Proto(DType::kComplex64, {1}, "\x4a\x08\0\0\x80\x3f\0\0\0\x40"s)))[0],
            std::complex<float>(1, 2));
}

TEST(TensorProtoTest, ContentIsAView) {
  const std::string encoded = Proto(DType::kInt16, {2}, "\x22\x04\x01\x00\x02\x00"s);
  const absl::StatusOr<Tensor> tensor = Parse(encoded);
  EXPECT_EQ(Elements<int16_t>(tensor), (std::vector<int16_t>{1, 2}));
  EXPECT_EQ(tensor->bytes().data(), encoded.data() + encoded.size() - 4);
}

TEST(TensorProtoTest, Strings) {
  const absl::StatusOr<Tensor> repeated = Parse(Proto(DType::kString, {3},
                                                      "\x42\x01"
                                                      "a\x42\x01"
                                                      "b"));
  ASSERT_TRUE(repeated.ok()) << repeated.status();
  EXPECT_EQ(repeated->strings(), (std::vector<std::string>{"a", "b", "b"}));
  const absl::StatusOr<Tensor> content = Parse(Proto(DType::kString, {2},
                                                     "\x22\x05\x01\x02"
                                                     "abc"));
  ASSERT_TRUE(content.ok()) << content.status();
  EXPECT_EQ(content->strings(), (std::vector<std::string>{"a", "bc"}));
  EXPECT_FALSE(Parse(Proto(DType::kString, {2},
                           "\x22\x04\x01\x7f"
                           "ab"))
                   .ok());
}

TEST(TensorProtoTest, WhatIsWrittenIsRead) {
  for (const Tensor& tensor : {Tensor::FromVector<double>({2}, {1, -0.0}), Tensor::Scalar<int64_t>(-1),
                               Tensor::FromStrings({2}, {"x", ""}), Tensor::FromVector<float>({0, 3}, {})}) {
    StringSink sink;
    ASSERT_TRUE(WriteTensorProto(tensor, &sink).ok());
    EXPECT_EQ(sink.text().size(), TensorProtoSize(tensor));
    EXPECT_EQ(*Parse(sink.text()), tensor);
  }
}

TEST(TensorProtoTest, AnyByteButZeroIsTrue) {
  const absl::StatusOr<Tensor> tensor = Parse(Proto(DType::kBool, {4}, "\x22\x04\x00\x01\x02\xff"s));
  ASSERT_TRUE(tensor.ok()) << tensor.status();
  EXPECT_EQ(tensor->bytes(), "\x00\x01\x01\x01"s);
}

TEST(TensorProtoTest, HostileOnes) {
  const auto code = [](const std::string& encoded) { return Parse(encoded).status().code(); };
  EXPECT_EQ(code(Proto(DType::kFloat, {int64_t{1} << 40}, "")), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(code(Proto(DType::kString, {int64_t{1} << 40}, "")), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(code(Proto(DType::kFloat, {int64_t{1} << 40, int64_t{1} << 40}, "")), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code(Proto(DType::kFloat, {-1}, "")), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code(Proto(DType::kFloat, {2}, "\x22\x04\x01\x00\x02\x00"s)), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code(Proto(static_cast<DType>(77), {1}, "")), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code(Proto(DType::kFloat, {2}, "\x2a\x05\x01\x00\x02\x00\x00"s)), absl::StatusCode::kDataLoss);
  EXPECT_EQ(code(Proto(DType::kInt32, {2}, "\x3a\x01\x80")), absl::StatusCode::kDataLoss);
  std::string dims;
  for (int i = 0; i < 255; ++i) dims += "\x12\x02\x08\x01";
  EXPECT_EQ(ParseShapeProto(dims).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(ParseShapeProto(absl::string_view(dims).substr(4)).ok());
}

TEST(TensorProtoTest, TheCheckAgreesWithParsing) {
  TensorHeader header;
  EXPECT_TRUE(CheckTensorProto(Proto(DType::kFloat, {2},
                                     "\x22\x08"
                                     "12345678"),
                               &header)
                  .ok());
  EXPECT_FALSE(CheckTensorProto(Proto(DType::kFloat, {2},
                                      "\x22\x07"
                                      "1234567"),
                                &header)
                   .ok());
  EXPECT_FALSE(CheckTensorProto(Proto(DType::kFloat, {-1}, ""), &header).ok());
  EXPECT_TRUE(CheckTensorProto(Proto(DType::kResource, {}, ""), &header).ok());
}

}  // namespace
}  // namespace permafrost
