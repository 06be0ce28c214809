// Tests of precision plans as text: round trips, and errors for text that is not a plan.
#include "tools/model/precision_plan_file.h"

#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"

namespace permafrost {
namespace {

PrecisionPlanRecord SomePlan() {
  auto plan = std::make_shared<PrecisionPlan>();
  plan->precision = Precision::kBf16;
  plan->nodes = {{"a", Precision::kInt8}, {"b \"quoted\"", Precision::kF32}, {"c", Precision::kInt8}};
  plan->tensors["a"] = {-1.5f, 3.25f, 3.0f, {0.1f, -2e-30f}};
  plan->tensors["zero"] = {0, 0, 0, {}};
  return {"0123456789abcdef", "onednn", "mixed", std::move(plan)};
}

TEST(PrecisionPlanFileTest, ReadsWhatItWrites) {
  const PrecisionPlanRecord record = SomePlan();
  const auto read = ParsePrecisionPlan(PrecisionPlanText(record));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->model, record.model);
  EXPECT_EQ(read->delegate, record.delegate);
  EXPECT_EQ(read->precision, record.precision);
  ASSERT_NE(read->plan, nullptr);
  EXPECT_EQ(read->plan->precision, record.plan->precision);
  EXPECT_EQ(read->plan->nodes, record.plan->nodes);
  EXPECT_EQ(read->plan->tensors, record.plan->tensors);
  const auto plain = ParsePrecisionPlan(PrecisionPlanText({"0", "onednn", "f32", nullptr}));
  ASSERT_TRUE(plain.ok()) << plain.status();
  EXPECT_EQ(plain->plan, nullptr);
}

TEST(PrecisionPlanFileTest, SaysWhatIsWrong) {
  const std::string good = PrecisionPlanText(SomePlan());
  const struct {
    std::string from, to, error;
  } kCases[] = {
      {"permafrost precision plan", "other", "format: found 'other', expected 'permafrost precision plan'"},
      {"\"version\": 1", "\"version\": 2", "version: found 2, expected 1"},
      {"\"delegate\"", "\"delegates\"", "delegate: found none, expected a text"},
      {"\"others\": \"bf16\"", "\"others\": \"f64\"", "others: found 'f64', expected f32, bf16x3, bf16 or int8"},
      {"\"int8\":", "\"int4\":", "nodes: found 'int4', expected f32, bf16x3, bf16 or int8"},
      {"\"least\": -1.5", "\"least\": 1e60", "tensors.a.least: found 1e+60, expected a number that a float holds"},
      {"\"least\": -1.5", "\"least\": 4", "tensors.a.most: found 3.25, expected at least 4"},
      {"\"bound\": 3", "\"bound\": -3", "tensors.a.bound: found -3, expected at least 0"},
      {"\"least\": -1.5", "\"least\": null", "tensors.a.least: found another kind of value, expected a number"},
  };
  for (const auto& [from, to, error] : kCases) {
    const std::string text = absl::StrReplaceAll(good, {{from, to}});
    ASSERT_NE(text, good) << from;
    const auto read = ParsePrecisionPlan(text);
    EXPECT_EQ(read.status().code(), absl::StatusCode::kInvalidArgument) << to;
    EXPECT_EQ(std::string(read.status().message()), absl::StrCat("precision plan: ", error));
  }
  EXPECT_EQ(std::string(ParsePrecisionPlan("[]").status().message()),
            "precision plan: the file: found another kind of value, expected an object");
}

TEST(PrecisionPlanFileTest, EveryPartOfAFileIsRefusedOrRead) {
  const std::string good = PrecisionPlanText(SomePlan());
  for (size_t size = 0; size + 2 < good.size(); ++size) {
    EXPECT_FALSE(ParsePrecisionPlan(absl::string_view(good).substr(0, size)).ok()) << size;
  }
  for (size_t i = 0; i < good.size(); ++i) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string flipped = good;
      flipped[i] = static_cast<char>(flipped[i] ^ (1 << bit));
      const auto read = ParsePrecisionPlan(flipped);
      EXPECT_TRUE(read.ok() || absl::IsInvalidArgument(read.status())) << read.status();
    }
  }
}

TEST(PrecisionPlanFileTest, ModelsWithOtherWeightsHaveOtherFingerprints) {
  const auto with = [](float value) {
    Graph graph;
    (void)*graph.AddConst("w", Tensor::Scalar<float>(value));
    return ModelFingerprint(graph);
  };
  EXPECT_EQ(with(1), with(1));
  EXPECT_NE(with(1), with(2));
  EXPECT_EQ(with(1).size(), 16u);
}

}  // namespace
}  // namespace permafrost
