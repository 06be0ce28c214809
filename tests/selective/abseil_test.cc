// Tests of the replacement for Abseil in selective builds.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/cleanup/cleanup.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "absl/types/span.h"

namespace permafrost {
namespace {

// Ensures that the replacement is found and not Abseil itself.
static_assert(std::is_same_v<absl::Status, absl::selective::Status>);

TEST(StrCatTest, WritesTextsAndNumbers) {
  EXPECT_EQ(absl::StrCat("a", std::string("b"), absl::string_view("c"), 1, -2, uint64_t{18446744073709551615u}, 0.5,
                         absl::Hex(255), true),
            "abc1-2184467440737095516150.5ff1");
  EXPECT_EQ(absl::StrCat(std::numeric_limits<int64_t>::min()), "-9223372036854775808");
  EXPECT_EQ(absl::StrCat(1e30f, " ", 1.0 / 3), "1e+30 0.333333");
  EXPECT_EQ(absl::StrCat(), "");
  std::string text = "a";
  absl::StrAppend(&text, 1, "b");
  EXPECT_EQ(text, "a1b");
  EXPECT_EQ(absl::StrJoin(std::vector<int>{1, 2, 3}, ", "), "1, 2, 3");
}

TEST(StrCatTest, TakesEveryKindOfPiece) {
  const char* const none = nullptr;
  const char text[] = "array";
  enum class Choice : int8_t { kLast = -3 };
  EXPECT_EQ(absl::StrCat(none, text, Choice::kLast, uint8_t{200}, int16_t{-7}, 'x' + 0), "array-3200-7120");
  EXPECT_EQ(absl::StrCat(absl::Hex(0xabc, absl::kZeroPad16), absl::Hex(uint8_t{255})), "0000000000000abcff");
}

// Six digits, as printed by printf.
TEST(StrCatTest, WritesDoublesAsPrintf) {
  std::vector<double> values = {0.0,
                                -0.0,
                                1.0,
                                -2.5,
                                100000,
                                999999,
                                999999.6,
                                1e6,
                                123456.7,
                                1e-4,
                                0.00012345678,
                                1e-5,
                                5e-324,
                                -1.7976931348623157e308,
                                2.2250738585072014e-308,
                                std::numeric_limits<double>::infinity(),
                                -std::numeric_limits<double>::infinity(),
                                std::numeric_limits<double>::quiet_NaN()};
  uint64_t random = 1;
  for (int exponent = -300; exponent <= 300; ++exponent) {
    random = random * 6364136223846793005u + 1442695040888963407u;
    // Numbers of eight digits that do not end in 5, so that none is a tie between two numbers of six digits.
    const double digits = static_cast<double>(10000000 + random % 8999999 / 100 * 100 + 12);
    values.push_back(digits * std::pow(10.0, exponent));
  }
  for (const double value : values) {
    char expected[32];
    std::snprintf(expected, sizeof expected, "%g", value);
    EXPECT_EQ(absl::StrCat(value), expected);
  }
}

TEST(StrSplitTest, GivesViewsOfThePieces) {
  using Views = std::vector<absl::string_view>;
  EXPECT_EQ(Views(absl::StrSplit("a,,b", ',')), (Views{"a", "", "b"}));
  EXPECT_EQ(Views(absl::StrSplit(" a  b ", ' ', absl::SkipEmpty())), (Views{"a", "b"}));
  EXPECT_EQ(Views(absl::StrSplit("", ',')), (Views{""}));
  const std::pair<absl::string_view, absl::string_view> pair = absl::StrSplit("a:b:c", absl::MaxSplits(':', 1));
  EXPECT_EQ(pair.first, "a");
  EXPECT_EQ(pair.second, "b:c");
  const std::pair<absl::string_view, absl::string_view> alone = absl::StrSplit("a", absl::MaxSplits(':', 1));
  EXPECT_EQ(alone.second, "");
}

TEST(NumbersTest, ReadsIntegersThatFit) {
  int32_t value = 0;
  EXPECT_TRUE(absl::SimpleAtoi("-2147483648", &value));
  EXPECT_EQ(value, std::numeric_limits<int32_t>::min());
  EXPECT_FALSE(absl::SimpleAtoi("2147483648", &value));
  int64_t wide = 0;
  EXPECT_TRUE(absl::SimpleAtoi("-9223372036854775808", &wide));
  EXPECT_EQ(wide, std::numeric_limits<int64_t>::min());
  for (const char* text : {"", "-", "1x", "9223372036854775808", "0x1", "1 2"}) {
    EXPECT_FALSE(absl::SimpleAtoi(text, &wide)) << text;
  }
}

// Every default of type float in graph/ops/ops.def, and other forms of numbers.
TEST(NumbersTest, ReadsTheFloatsOfTheSchemas) {
  std::vector<std::string> texts = {"0",           "-0.5", "1e-05", "1e22", "123456789012345", "0.800000011920929",
                                    "3.4028234e38"};
#define OP(name, signature, attributes, traits, shape)                   \
  for (const absl::string_view attr : absl::StrSplit(attributes, ' ')) { \
    const size_t at = attr.find(":float=");                              \
    if (at != attr.npos) texts.emplace_back(attr.substr(at + 7));        \
  }
#include "graph/ops/ops.def"
#undef OP
  EXPECT_GT(texts.size(), 30);
  for (const std::string& text : texts) {
    float value = 0;
    if (!absl::SimpleAtof(text, &value)) {
      EXPECT_EQ(text, "3.4028234e38") << "outside the supported range";
      continue;
    }
    EXPECT_EQ(value, std::strtof(text.c_str(), nullptr)) << text;
  }
  float value;
  for (const char* text : {"", "-", ".", "e5", "1e", "1e999", "nan", "1234567890123456", "1.2.3", "1 2"}) {
    EXPECT_FALSE(absl::SimpleAtof(text, &value)) << text;
  }
}

TEST(EscapingTest, WritesAsLiterals) {
  EXPECT_EQ(absl::CHexEscape("a\n\x01\xff'"), "a\\n\\x01\\xff\\'");
  EXPECT_EQ(absl::Utf8SafeCEscape("a\t\x01\xc3\xa4"), "a\\t\\001\xc3\xa4");
}

TEST(StatusTest, KeepsMessageAndPayloads) {
  absl::Status status = absl::InvalidArgumentError("why");
  status.SetPayload("a", absl::Cord(std::string("1")));
  status.SetPayload("a", absl::Cord(std::string("2")));
  absl::Status copy = status;
  copy.SetPayload("b", absl::Cord(std::string("3")));
  EXPECT_EQ(std::string(*copy.GetPayload("a")), "2");
  EXPECT_FALSE(status.GetPayload("b").has_value());
  int count = 0;
  copy.ForEachPayload([&](absl::string_view, const absl::Cord&) { ++count; });
  EXPECT_EQ(count, 2);
  const absl::Status moved = std::move(copy);
  EXPECT_EQ(moved.message(), "why");
  // Copies share their content until one of them is modified.
  absl::Status shared = moved;
  shared.SetPayload("a", absl::Cord(std::string("4")));
  EXPECT_EQ(std::string(*moved.GetPayload("a")), "2");
  EXPECT_EQ(std::string(*shared.GetPayload("a")), "4");
  EXPECT_EQ(absl::DataLossError(std::string("text")).message(), "text");
  EXPECT_EQ(absl::DataLossError(absl::string_view("view")).message(), "view");
  EXPECT_EQ(moved.ToString(), "INVALID_ARGUMENT: why");
  EXPECT_TRUE(absl::IsInvalidArgument(moved));
  EXPECT_TRUE(absl::OkStatus().ok());
}

TEST(StatusOrTest, HoldsAValueOrAnError) {
  absl::StatusOr<std::unique_ptr<int>> value = std::make_unique<int>(3);
  ASSERT_TRUE(value.ok());
  EXPECT_EQ(**value, 3);
  const absl::StatusOr<std::unique_ptr<const int>> converted = *std::move(value);
  EXPECT_EQ(**converted, 3);
  const absl::StatusOr<int> error = absl::NotFoundError("gone");
  EXPECT_EQ(error.status().message(), "gone");
  EXPECT_EQ(error.value_or(5), 5);
  EXPECT_DEATH((void)*error, "");
}

// Checks that values are constructed and destroyed equally often under all assignments.
TEST(StatusOrTest, BalancesConstructionAndDestruction) {
  const auto counted = std::make_shared<int>(1);
  {
    absl::StatusOr<std::shared_ptr<int>> value = counted, copy = value, error = absl::NotFoundError("gone");
    EXPECT_EQ(counted.use_count(), 3);
    value = error;
    EXPECT_EQ(counted.use_count(), 2);
    EXPECT_EQ(value.status().message(), "gone");
    error = std::move(copy);
    EXPECT_EQ(**error, 1);
    std::vector<absl::StatusOr<std::shared_ptr<int>>> many;
    for (int i = 0; i < 20; ++i) many.push_back(i % 2 == 0 ? error : value);
    EXPECT_TRUE(many[18].ok() && !many[19].ok());
    error = error;
    EXPECT_EQ(**error, 1);
  }
  EXPECT_EQ(counted.use_count(), 1);
}

TEST(StatusOrTest, DestroysNoValueAfterItsErrorWasTaken) {
  static int num_destroyed;
  struct Counted {
    ~Counted() { ++num_destroyed; }
  };
  num_destroyed = 0;
  EXPECT_EQ(absl::StatusOr<Counted>(absl::NotFoundError("gone")).status().message(), "gone");
  {
    absl::StatusOr<Counted> error = absl::NotFoundError("gone");
    const absl::Status taken = std::move(error).status();
    EXPECT_EQ(taken.message(), "gone");
  }
  EXPECT_EQ(num_destroyed, 0);
}

TEST(CleanupTest, RunsAtTheEnd) {
  int count = 0;
  {
    const absl::Cleanup add = [&] { ++count; };
    EXPECT_EQ(count, 0);
  }
  EXPECT_EQ(count, 1);
}

TEST(SpanTest, ViewsContiguousElements) {
  std::vector<int> values = {1, 2, 3, 4};
  const absl::Span<const int> all = values;
  EXPECT_EQ(all.subspan(1, 2), (absl::Span<const int>(values.data() + 1, 2)));
  EXPECT_EQ(all.subspan(3, 9).size(), 1u);
  absl::MakeSpan(values)[0] = 7;
  EXPECT_EQ(all.front(), 7);
}

int Twice(int x) { return 2 * x; }
int Call(absl::FunctionRef<int(int)> function) { return function(4); }

TEST(SortTest, SortsAscending) {
  std::vector<int> values;
  for (int i = 0; i < 1000; ++i) values.push_back(i * 7919 % 101);
  absl::c_sort(values);
  EXPECT_TRUE(std::is_sorted(values.begin(), values.end()));
  std::vector<std::string> texts = {"b", "", "abc", "ab", "b"};
  absl::c_sort(texts, [](const std::string& a, const std::string& b) { return a > b; });
  EXPECT_EQ(texts, (std::vector<std::string>{"b", "b", "abc", "ab", ""}));
  std::vector<int> none;
  absl::c_sort(none);
  EXPECT_TRUE(none.empty());
}

TEST(FunctionRefTest, CallsFunctionsAndObjects) {
  const int add = 3;
  EXPECT_EQ(Call([&](int x) { return x + add; }), 7);
  EXPECT_EQ(Call(Twice), 8);
}

// Compares with the standard map, through growth, removal and reinsertion.
TEST(FlatHashMapTest, AgreesWithTheStandardMap) {
  absl::flat_hash_map<std::string, int> found;
  std::unordered_map<std::string, int> expected;
  uint32_t random = 1;
  for (int i = 0; i < 20000; ++i) {
    random = random * 1664525 + 1013904223;
    const std::string key = absl::StrCat("key", random >> 16 & 511);
    switch (random >> 8 & 3) {
      case 0:
        EXPECT_EQ(found.erase(absl::string_view(key)), expected.erase(key));
        break;
      case 1:
        EXPECT_EQ(found.try_emplace(key, i).second, expected.try_emplace(key, i).second);
        break;
      case 2:
        found[key] = expected[key] = i;
        break;
      default:
        EXPECT_EQ(found.contains(key), expected.count(key) == 1);
    }
    ASSERT_EQ(found.size(), expected.size());
  }
  for (const auto& [key, value] : found) EXPECT_EQ(expected.at(key), value);
  absl::flat_hash_set<const int*> set;
  int objects[100];
  for (int& object : objects) EXPECT_TRUE(set.insert(&object).second);
  for (int& object : objects) EXPECT_FALSE(set.insert(&object).second);
  EXPECT_EQ(set.size(), 100u);
}

}  // namespace
}  // namespace permafrost
