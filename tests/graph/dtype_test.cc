// Tests of names and sizes of types, and of the 16-bit floats against NumPy's values.
#include "graph/dtype.h"

#include <cmath>
#include <limits>

#include "gtest/gtest.h"

namespace permafrost {
namespace {

TEST(DTypeTest, NamesAndSizes) {
  EXPECT_EQ(DTypeName(DType::kQUint8), "quint8");
  EXPECT_EQ(DTypeName(static_cast<DType>(101)), "float_ref");
  EXPECT_EQ(DTypeName(static_cast<DType>(77)), "dtype(77)");
  EXPECT_EQ(DTypeName(static_cast<DType>(-5)), "dtype(-5)");
  EXPECT_EQ(SizeOf(DType::kComplex128), 16u);
  EXPECT_EQ(SizeOf(DType::kString), 0u);
  EXPECT_EQ(SizeOf(static_cast<DType>(77)), 0u);
  EXPECT_EQ(RemoveRef(static_cast<DType>(103)), DType::kInt32);
}

TEST(DTypeTest, ParsingIsTheInverseOfNaming) {
  for (int number = 1; number <= 23; ++number) {
    for (const int offset : {0, kRefOffset}) {
      const DType dtype = static_cast<DType>(number + offset);
      const absl::StatusOr<DType> parsed = ParseDType(DTypeName(dtype));
      ASSERT_TRUE(parsed.ok()) << parsed.status();
      EXPECT_EQ(*parsed, dtype);
    }
  }
  EXPECT_EQ(*ParseDType("float16"), DType::kHalf);
  EXPECT_EQ(ParseDType("flaot").status().message(), "unknown type 'flaot'; did you mean 'float'?");
}

TEST(DTypeTest, HalfRoundsToNearestEven) {
  const auto bits = [](float value) { return ToHalf(value).bits; };
  EXPECT_EQ(bits(1.0f), 0x3c00);
  EXPECT_EQ(bits(0.1f), 0x2e66);
  EXPECT_EQ(bits(-0.0f), 0x8000);
  EXPECT_EQ(bits(65504.0f), 0x7bff);
  EXPECT_EQ(bits(65519.0f), 0x7bff);
  EXPECT_EQ(bits(65520.0f), 0x7c00);
  EXPECT_EQ(bits(-std::numeric_limits<float>::infinity()), 0xfc00);
  EXPECT_EQ(bits(1.0f + std::ldexp(1.0f, -11)), 0x3c00);      // A tie, down to even.
  EXPECT_EQ(bits(1.0f + 3 * std::ldexp(1.0f, -11)), 0x3c02);  // A tie, up to even.
  EXPECT_EQ(bits(std::ldexp(1.0f, -24)), 0x0001);
  EXPECT_EQ(bits(std::ldexp(1.0f, -25)), 0x0000);
  EXPECT_EQ(bits(3 * std::ldexp(1.0f, -25)), 0x0002);
  EXPECT_EQ(bits(std::nextafter(std::ldexp(1.0f, -14), 0.0f)), 0x0400);  // Rounds up to the smallest normal number.
}

TEST(DTypeTest, EveryHalfRoundTripsThroughFloat) {
  for (uint32_t bits = 0; bits <= 0xffff; ++bits) {
    const float value = ToFloat(Half{static_cast<uint16_t>(bits)});
    const bool is_nan = (bits & 0x7c00) == 0x7c00 && (bits & 0x3ff) != 0;
    ASSERT_EQ(std::isnan(value), is_nan) << bits;
    const uint16_t back = ToHalf(value).bits;
    if (is_nan) {
      ASSERT_TRUE((back & 0x7c00) == 0x7c00 && (back & 0x3ff) != 0) << bits;
    } else {
      ASSERT_EQ(back, bits);
    }
  }
}

TEST(DTypeTest, BFloat16RoundsToNearestEven) {
  const auto bits = [](float value) { return ToBFloat16(value).bits; };
  EXPECT_EQ(bits(1.0f), 0x3f80);
  EXPECT_EQ(bits(0.1f), 0x3dcd);
  EXPECT_EQ(bits(1.00390625f), 0x3f80);  // 1 + 2^-8: a tie, down to even.
  EXPECT_EQ(bits(1.01171875f), 0x3f82);  // 1 + 3 * 2^-8: a tie, up to even.
  EXPECT_EQ(bits(std::numeric_limits<float>::max()), 0x7f80);
  EXPECT_TRUE(std::isnan(ToFloat(ToBFloat16(std::nanf("")))));
  EXPECT_EQ(ToFloat(BFloat16{0xc049}), -3.140625f);
}

TEST(DTypeTest, DispatchCallsTheMatchingType) {
  size_t size = 0;
  const auto f = [&](auto tag) { size = sizeof(typename decltype(tag)::type); };
  EXPECT_TRUE((DispatchOn<float, int64_t>(DType::kInt64, f)));
  EXPECT_EQ(size, 8u);
  EXPECT_FALSE((DispatchOn<float, int64_t>(DType::kInt32, f)));
}

}  // namespace
}  // namespace permafrost
