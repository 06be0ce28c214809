// Tests of nodes that share memory: results equal those with a separate buffer for every tensor, and copies are made
// only if necessary.
#include <cstring>

#include "absl/container/flat_hash_map.h"
#include "gtest/gtest.h"
#include "runtime_check/checking/evaluate.h"
#include "runtime_check/session.h"
#include "tests/runtime_check/random_graph.h"
#include "tests/runtime_check/small_graph.h"

namespace permafrost {
namespace {

// A graph of nodes that alias, work in place, broadcast, split and join, over tensors of 6 elements. The shapes of some
// values are known only during the run.
class AliasingGraph : public RandomGraph {
 public:
  explicit AliasingGraph(uint32_t seed) : RandomGraph(seed, {kUnknownDim, 3}) {
    Placeholder("dims", DType::kInt32, {2});
    Const("c", Floats({3}, {1, -2, 3}));
    Const("shape", Tensor::FromVector<int32_t>({2}, {2, 3}));
    Const("axis", Tensor::Scalar<int32_t>(0));
    AddNodes(5, 34,
             {RandomNode::kNeg, RandomNode::kRelu, RandomNode::kAdd, RandomNode::kSubtract, RandomNode::kMultiply,
              RandomNode::kIdentity, RandomNode::kReshape, RandomNode::kReshapeByFeed, RandomNode::kSplitAndJoin,
              RandomNode::kSoftmax},
             6);
  }
};

// Returns every output, evaluating node by node with a separate buffer for each tensor.
std::vector<Tensor> Expected(const Graph& graph, const std::vector<Tensor>& feeds,
                             const std::vector<std::string>& fetches) {
  absl::flat_hash_map<std::string, std::vector<Tensor>> values = {{"x", {feeds[0]}}, {"dims", {feeds[1]}}};
  const KernelEvaluator evaluator;
  for (const Node* node = graph.first(); node != nullptr; node = node->next()) {
    if (values.contains(std::string(node->name()))) continue;
    std::vector<Tensor> inputs;
    for (int i = 0; i < node->num_data_inputs(); ++i) {
      inputs.push_back(values.at(std::string(node->input(i).node->name()))[node->input(i).port]);
    }
    const auto outputs = evaluator.Evaluate(*node, inputs);
    EXPECT_TRUE(outputs.ok()) << outputs.status();
    values[std::string(node->name())] = *outputs;
  }
  std::vector<Tensor> fetched;
  for (const std::string& name : fetches) fetched.push_back(values.at(name)[0]);
  return fetched;
}

TEST(SessionMemoryTest, RandomGraphsGiveTheSameAsNodeByNode) {
  const std::vector<Tensor> feeds = {Floats({2, 3}, {0.5, -1, 2, 3, -4, 5}), Tensor::FromVector<int32_t>({2}, {2, 3})};
  for (uint32_t seed = 0; seed < 300; ++seed) {
    AliasingGraph random(seed);
    const std::vector<std::string> fetches = random.SomeTensors(3);
    const auto session = Session::Create(random.graph(), {"x", "dims"}, fetches);
    ASSERT_TRUE(session.ok()) << session.status();
    const std::vector<Tensor> expected = Expected(random.graph(), feeds, fetches);
    const std::vector<float> x = ToVector(feeds[0]);
    for (int run = 0; run < 2; ++run) {
      const auto outputs = (*session)->Run(feeds);
      ASSERT_TRUE(outputs.ok()) << outputs.status();
      for (size_t i = 0; i < fetches.size(); ++i) {
        EXPECT_EQ((*outputs)[i].shape(), expected[i].shape());
        EXPECT_EQ(ToVector((*outputs)[i]), ToVector(expected[i])) << "seed " << seed << ", " << fetches[i];
      }
    }
    EXPECT_EQ(ToVector(feeds[0]), x) << "the caller's input was written to, seed " << seed;
  }
}

TEST(SessionMemoryTest, ElementwiseChainNeedsOnePieceOfMemory) {
  SmallGraph small;
  small.Placeholder("x", DType::kFloat, {1024});
  small.Float("a", "Neg", {"x"});
  small.Float("b", "Relu", {"a"});
  small.Float("c", "Softmax", {"b"});
  small.Const("axis", Tensor::FromVector<int32_t>({1}, {0}));
  small.Add("sum", "Sum", {"c", "axis"},
            {{"T", AttrValue::Type(DType::kFloat)}, {"Tidx", AttrValue::Type(DType::kInt32)}});
  const auto session = Session::Create(small.graph(), {"x"}, {"sum"});
  ASSERT_TRUE(session.ok()) << session.status();
  ASSERT_TRUE((*session)->Plan({Shape({1024})}).ok());
  EXPECT_LE((*session)->report().arena_bytes, 2 * 4096);
}

// --- Kernels of this test, which record their memory -----------------------------------------------------------------

struct Seen {
  const char* input = nullptr;
  const char* weights = nullptr;
  const char* output = nullptr;
};
Seen seen;
bool release_weights = false;

struct Packed : KernelState {
  std::vector<float> weights;
};

absl::Status PrepareSpy(PrepareContext* context) {
  context->SetOutputShape(0, context->input_shape(0));
  auto packed = std::make_unique<Packed>();
  const Tensor* weights = context->input_value(1);
  if (weights == nullptr) return absl::InvalidArgumentError("the weights are not constant");
  if (!weights->IsAligned()) return absl::InternalError("the weights are not aligned");
  packed->weights = ToVector(*weights);
  context->SetState(std::move(packed));
  if (release_weights) context->ReleaseInput(1);
  return absl::OkStatus();
}

absl::Status ComputeSpy(ComputeContext* context) {
  seen = {context->input_at(0).data, context->input_at(1).data, context->output_at(0).data};
  for (int64_t i = 0; i < context->input_shape(0).num_elements(); ++i) {
    context->output<float>(0)[i] = context->input<float>(0)[i] + context->state<Packed>().weights[0];
  }
  return absl::OkStatus();
}

const Kernel* SpyLookup(Op op) {
  static const auto* const kSpy = new Kernel(Kernel("x + w[0]").Prepare(PrepareSpy).Compute(ComputeSpy));
  return op == ops::kAddV2 ? kSpy : FindKernel(op);
}

class SpyTest : public testing::Test {
 protected:
  SpyTest() {
    std::memcpy(unaligned_ + 4, &kWeight, 4);
    small_.Placeholder("x", DType::kFloat, {2});
    small_.Const("w", *Tensor::FromBytes(DType::kFloat, {1}, absl::string_view(unaligned_ + 4, 4), nullptr));
    small_.Float("spy", "AddV2", {"x", "w"});
    SessionOptions options;
    options.kernel_lookup = SpyLookup;
    session_ = *Session::Create(small_.graph(), {"x"}, {"spy"}, options);
    seen = Seen();
    std::memcpy(input_, &kInput, 8);
  }
  Tensor Input(size_t shift) {
    std::memcpy(input_ + shift, &kInput, 8);
    return *Tensor::FromBytes(DType::kFloat, {2}, absl::string_view(input_ + shift, 8), nullptr);
  }

  static constexpr float kWeight = 10;
  static constexpr float kInput[2] = {1, 2};
  alignas(64) char unaligned_[64];
  alignas(64) char input_[128];
  alignas(64) char output_[128];
  SmallGraph small_;
  std::unique_ptr<Session> session_;
};

TEST_F(SpyTest, AlignedMemoryIsUsedAsItIs) {
  release_weights = false;
  ASSERT_TRUE(session_->RunInto({Input(0)}, {absl::MakeSpan(output_, 8)}).ok());
  EXPECT_EQ(seen.input, input_);
  EXPECT_EQ(seen.output, output_);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(seen.weights) % 64, 0u);
  EXPECT_EQ(session_->report().constant_bytes, 4) << "one aligned copy of the weights";
}

TEST_F(SpyTest, UnalignedMemoryIsCopied) {
  ASSERT_TRUE(session_->RunInto({Input(4)}, {absl::MakeSpan(output_ + 4, 8)}).ok());
  EXPECT_EQ(reinterpret_cast<uintptr_t>(seen.input) % 64, 0u);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(seen.output) % 64, 0u);
  float result[2];
  std::memcpy(result, output_ + 4, 8);
  EXPECT_EQ(result[0], 11);
  EXPECT_EQ(result[1], 12);
}

TEST_F(SpyTest, ReleasedWeightsAreNotKept) {
  release_weights = true;
  const auto outputs = session_->Run({Input(0)});
  release_weights = false;
  ASSERT_TRUE(outputs.ok()) << outputs.status();
  EXPECT_EQ(ToVector((*outputs)[0]), (std::vector<float>{11, 12}));
  EXPECT_EQ(seen.weights, nullptr);
  EXPECT_EQ(session_->report().constant_bytes, 0);
}

}  // namespace
}  // namespace permafrost
