// Tests of computing single nodes from tensors.
#include "runtime_check/checking/evaluate.h"

#include <thread>

#include "gtest/gtest.h"
#include "tests/runtime_check/small_graph.h"

namespace permafrost {
namespace {

TEST(EvaluateTest, ComputesANode) {
  SmallGraph small;
  small.Placeholder("x", DType::kFloat, {2});
  const Node* add = small.Float("add", "AddV2", {"x", "x"});
  const auto sum = KernelEvaluator().Evaluate(*add, {Floats({2}, {1, 2}), Floats({1}, {10})});
  ASSERT_TRUE(sum.ok()) << sum.status();
  EXPECT_EQ(ToVector((*sum)[0]), (std::vector<float>{11, 12}));
}

TEST(EvaluateTest, SharesTheBufferOfAnAlias) {
  SmallGraph small;
  small.Placeholder("x", DType::kFloat, {2});
  const Node* identity = small.Float("identity", "Identity", {"x"});
  const Tensor x = Floats({2}, {1, 2});
  const auto same = KernelEvaluator().Evaluate(*identity, {x});
  ASSERT_TRUE(same.ok()) << same.status();
  EXPECT_EQ((*same)[0].bytes().data(), x.bytes().data());
}

TEST(EvaluateTest, ReadsUnalignedInputs) {
  SmallGraph small;
  small.Placeholder("x", DType::kFloat, {2});
  const Node* neg = small.Float("neg", "Neg", {"x"});
  std::string bytes(9, '\0');
  const float values[2] = {1, 2};
  std::memcpy(bytes.data() + 1, values, 8);
  const auto x = Tensor::FromBytes(DType::kFloat, {2}, absl::string_view(bytes).substr(1), nullptr);
  const auto result = KernelEvaluator().Evaluate(*neg, {*x});
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(ToVector((*result)[0]), (std::vector<float>{-1, -2}));
}

TEST(EvaluateTest, Refuses) {
  SmallGraph small;
  const Node* x = small.Placeholder("x", DType::kFloat, {2});
  const Node* add = small.Float("add", "AddV2", {"x", "x"});
  const Node* unknown = small.Add("unknown", "NobodyKnows", {"x"}, {});
  small.Const("shape", Tensor::FromVector<int32_t>({1}, {2}));
  const Node* random = small.Add("random", "RandomUniform", {"shape"},
                                 {{"dtype", AttrValue::Type(DType::kFloat)}, {"T", AttrValue::Type(DType::kInt32)}});
  const KernelEvaluator evaluator;
  EXPECT_EQ(evaluator.Supports(*x).code(), absl::StatusCode::kUnimplemented);
  EXPECT_EQ(evaluator.Supports(*random).code(), absl::StatusCode::kUnimplemented);
  EXPECT_EQ(evaluator.Supports(*unknown).message(), "no kernel for op 'NobodyKnows'");
  EXPECT_EQ(evaluator.Evaluate(*add, {Floats({1}, {1})}).status().message(),
            "node 'add' (AddV2): found 1 inputs, expected 2");
  EXPECT_EQ(evaluator.Evaluate(*add, {Floats({1}, {1}), Tensor::Scalar<int32_t>(1)}).status().message(),
            "node 'add' (AddV2): input 1 is int32, expected float");
}

TEST(EvaluateTest, LimitsMemory) {
  SmallGraph small;
  small.Const("dims", Tensor::FromVector<int64_t>({1}, {int64_t{1} << 40}));
  small.Const("value", Tensor::Scalar<float>(1));
  const Node* fill = small.Add("fill", "Fill", {"dims", "value"},
                               {{"T", AttrValue::Type(DType::kFloat)}, {"index_type", AttrValue::Type(DType::kInt64)}});
  const auto result = KernelEvaluator().Evaluate(
      *fill, {Tensor::FromVector<int64_t>({1}, {int64_t{1} << 40}), Tensor::Scalar<float>(1)});
  EXPECT_EQ(result.status().code(), absl::StatusCode::kResourceExhausted) << result.status();
}

TEST(EvaluateTest, SeveralThreadsAtOnce) {
  SmallGraph small;
  small.Placeholder("x", DType::kFloat, {2});
  const Node* add = small.Float("add", "AddV2", {"x", "x"});
  const KernelEvaluator evaluator;
  std::vector<std::thread> threads;
  std::vector<float> results(4);
  for (size_t i = 0; i < results.size(); ++i) {
    threads.emplace_back([&, i] {
      for (int round = 0; round < 200; ++round) {
        const Tensor x = Floats({1}, {static_cast<float>(i)});
        results[i] = (*evaluator.Evaluate(*add, {x, x}))[0].elements<float>()[0];
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(results, (std::vector<float>{0, 2, 4, 6}));
}

}  // namespace
}  // namespace permafrost
