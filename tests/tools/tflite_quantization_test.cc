// Tests of quantised TensorFlow Lite models: what is written, what stays float, and how near it is to the model.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "io/file_system.h"
#include "io/formats/tflite/container.h"
#include "io/model_file.h"
#include "tests/shared_models.h"
#include "tools/transform/tensor_ranges.h"
#include "tools/transform/tflite_output.h"

namespace permafrost {
namespace {

using testing::HasSubstr;

std::unique_ptr<Graph> Digits() {
  absl::StatusOr<std::unique_ptr<Graph>> graph = OpenModel(RealFileSystem(), DataFile("tests/models/digits/digits.pb"));
  EXPECT_TRUE(graph.ok()) << graph.status();
  EXPECT_TRUE((*graph)->DeclareInterface({"image"}, {"probabilities"}).ok());
  return *std::move(graph);
}

TfliteFlags FlagsFor(const std::string& mode) {
  TfliteFlags flags;
  flags.quantize = mode;
  flags.calibration_inputs = {DataFile("tests/models/digits/eval_images.npy")};
  return flags;
}

absl::StatusOr<TfliteOutput> Encoded(const TfliteFlags& flags) {
  const std::unique_ptr<Graph> graph = Digits();
  return EncodeTflite(*graph, flags, 1, RealFileSystem());
}

// The operators of a model as "CONV_2D/3", with versions.
std::vector<std::string> OperatorsOf(const TfliteContainer& container) {
  std::vector<std::string> names;
  for (const tflite::Operator* op : *container.subgraph(0).operators()) {
    const int version = container.model().operator_codes()->Get(op->opcode_index())->version();
    names.push_back(absl::StrCat(container.OperatorName(*op), "/", version));
  }
  return names;
}

absl::StatusOr<TfliteContainer> Opened(const std::string& bytes) {
  auto owner = std::make_shared<const std::string>(bytes);
  return TfliteContainer::Open(FileView{*owner, owner}, uint64_t{1} << 30);
}

TEST(TfliteQuantizationTest, WritesIntegerOperators) {
  const absl::StatusOr<TfliteOutput> output = Encoded(FlagsFor("int8"));
  ASSERT_TRUE(output.ok()) << output.status();
  EXPECT_TRUE(output->verdict.was_run);
  EXPECT_LT(output->verdict.worst(), 0.05);
  EXPECT_TRUE(output->kept_float.empty());
  absl::StatusOr<TfliteContainer> container = Opened(output->bytes);
  ASSERT_TRUE(container.ok()) << container.status();
  const std::vector<std::string> operators = OperatorsOf(*container);
  EXPECT_EQ(operators.front(), "QUANTIZE/1");
  EXPECT_EQ(operators.back(), "DEQUANTIZE/2");
  int num_convolutions = 0;
  const auto* all = container->subgraph(0).operators();
  for (uint32_t i = 1; i + 1 < all->size(); ++i) {
    const tflite::Operator& op = *all->Get(i);
    SCOPED_TRACE(operators[i]);
    const tflite::Tensor& result = container->tensor(0, op.outputs()->Get(0));
    EXPECT_EQ(result.type(), tflite::TensorType::INT8);
    ASSERT_NE(result.quantization(), nullptr);
    if (operators[i] != "CONV_2D/3") continue;
    ++num_convolutions;
    const tflite::Tensor& input = container->tensor(0, op.inputs()->Get(0));
    const tflite::Tensor& filter = container->tensor(0, op.inputs()->Get(1));
    const tflite::Tensor& bias = container->tensor(0, op.inputs()->Get(2));
    EXPECT_EQ(filter.type(), tflite::TensorType::INT8);
    EXPECT_EQ(bias.type(), tflite::TensorType::INT32);
    const auto* scales = filter.quantization()->scale();
    ASSERT_EQ(static_cast<int32_t>(scales->size()), filter.shape()->Get(0));
    EXPECT_EQ(filter.quantization()->quantized_dimension(), 0);
    ASSERT_EQ(bias.quantization()->scale()->size(), scales->size());
    for (uint32_t c = 0; c < scales->size(); ++c) {
      EXPECT_FLOAT_EQ(bias.quantization()->scale()->Get(c), scales->Get(c) * input.quantization()->scale()->Get(0));
    }
  }
  EXPECT_GT(num_convolutions, 0);
}

TEST(TfliteQuantizationTest, WritesTheOtherModes) {
  for (const char* mode : {"dynamic", "int16x8", "int4"}) {
    SCOPED_TRACE(mode);
    const absl::StatusOr<TfliteOutput> output = Encoded(FlagsFor(mode));
    ASSERT_TRUE(output.ok()) << output.status();
    EXPECT_TRUE(output->verdict.was_run);
    EXPECT_LT(output->verdict.worst(), 0.3);
    absl::StatusOr<TfliteContainer> container = Opened(output->bytes);
    ASSERT_TRUE(container.ok()) << container.status();
    std::set<tflite::TensorType> weights, results;
    for (const tflite::Operator* op : *container->subgraph(0).operators()) {
      if (op->inputs()->size() < 2) continue;
      weights.insert(container->tensor(0, op->inputs()->Get(1)).type());
      results.insert(container->tensor(0, op->outputs()->Get(0)).type());
    }
    const bool is_integer = std::string(mode) == "int16x8";
    EXPECT_EQ(results.count(tflite::TensorType::INT16), is_integer ? 1u : 0u);
    EXPECT_EQ(weights.count(std::string(mode) == "int4" ? tflite::TensorType::INT4 : tflite::TensorType::INT8), 1u);
  }
}

TEST(TfliteQuantizationTest, FollowsNamedMethods) {
  for (const char* rounding : {"none", "nearest", "gptq", "adaround", "descent", "sequential"}) {
    SCOPED_TRACE(rounding);
    TfliteFlags flags = FlagsFor("int8");
    flags.rounding = rounding;
    flags.ranges = "minmax";
    flags.equalization = "activations";
    const absl::StatusOr<TfliteOutput> output = Encoded(flags);
    ASSERT_TRUE(output.ok()) << output.status();
    EXPECT_LT(output->verdict.worst(), 0.15);
    ASSERT_FALSE(output->notes.empty());
    EXPECT_THAT(output->notes.back(), HasSubstr("ranges: minmax; rounding of weights: "));
    EXPECT_THAT(output->notes.back(), HasSubstr(rounding));
    EXPECT_THAT(output->notes.back(), HasSubstr("equalize_channels(by=activations"));
  }
}

TEST(TfliteQuantizationTest, ChangesTheInterface) {
  for (const char* io : {"int8", "uint8"}) {
    SCOPED_TRACE(io);
    TfliteFlags flags = FlagsFor("int8");
    flags.io_type = io;
    const absl::StatusOr<TfliteOutput> output = Encoded(flags);
    ASSERT_TRUE(output.ok()) << output.status();
    EXPECT_TRUE(output->verdict.was_run);
    EXPECT_LT(output->verdict.worst(), 0.05);
    absl::StatusOr<TfliteContainer> container = Opened(output->bytes);
    ASSERT_TRUE(container.ok()) << container.status();
    const tflite::TensorType type = std::string(io) == "int8" ? tflite::TensorType::INT8 : tflite::TensorType::UINT8;
    const tflite::SubGraph& subgraph = container->subgraph(0);
    for (const int32_t tensor : {subgraph.inputs()->Get(0), subgraph.outputs()->Get(0)}) {
      EXPECT_EQ(container->tensor(0, tensor).type(), type);
      ASSERT_NE(container->tensor(0, tensor).quantization(), nullptr);
      EXPECT_GT(container->tensor(0, tensor).quantization()->scale()->Get(0), 0);
    }
    EXPECT_EQ(container->tensor(0, subgraph.inputs()->Get(0)).name()->str(), "image");
    EXPECT_EQ(container->tensor(0, subgraph.outputs()->Get(0)).name()->str(), "probabilities");
  }
  TfliteFlags flags = FlagsFor("dynamic");
  flags.io_type = "int8";
  EXPECT_TRUE(absl::IsInvalidArgument(Encoded(flags).status()));
}

TEST(TfliteQuantizationTest, KeepsNamedOperatorsInFloat) {
  TfliteFlags flags = FlagsFor("int8");
  flags.keep_float = {"*"};
  const absl::StatusOr<TfliteOutput> output = Encoded(flags);
  ASSERT_TRUE(output.ok()) << output.status();
  absl::StatusOr<TfliteContainer> container = Opened(output->bytes);
  ASSERT_TRUE(container.ok()) << container.status();
  for (const std::string& op : OperatorsOf(*container)) EXPECT_THAT(op, testing::Not(HasSubstr("QUANTIZE")));
}

TEST(TfliteQuantizationTest, RejectsRangesOfUnknownTensors) {
  for (const char* range : {"no_such_tensor=-1:1", "image=1", "image=1:-1", "image"}) {
    TfliteFlags flags = FlagsFor("int8");
    flags.tensor_ranges = {range};
    const absl::StatusOr<TfliteOutput> output = Encoded(flags);
    EXPECT_TRUE(absl::IsInvalidArgument(output.status())) << range;
    EXPECT_THAT(std::string(output.status().message()), HasSubstr("--tensor_ranges")) << range;
  }
}

TEST(TfliteQuantizationTest, WritesNothingBeyondTheTolerance) {
  TfliteFlags flags = FlagsFor("int8");
  flags.tolerance = 1e-9;
  EXPECT_TRUE(absl::IsAborted(Encoded(flags).status()));
}

TEST(ValueDistributionTest, ClipsOutliersOnly) {
  std::mt19937 random(1);
  std::normal_distribution<float> normal(0, 1);
  std::vector<float> values(20000);
  for (float& value : values) value = normal(random);
  const auto tensor = [&] { return Tensor::FromVector(Shape({20000}), values); };
  ValueDistribution plain;
  plain.Add(tensor());
  const auto [low, high] = plain.Range(RangeMethod::kMse, 255);
  EXPECT_LE(plain.MinMax().first, low);
  EXPECT_LT(low, -2.5);
  EXPECT_GT(high, 2.5);
  values[0] = 40;
  ValueDistribution outlier;
  outlier.Add(tensor());
  EXPECT_EQ(outlier.MinMax().second, 40);
  EXPECT_LT(outlier.Range(RangeMethod::kMse, 255).second, 40);
  for (const std::string& name : RangeMethodNames()) {
    SCOPED_TRACE(name);
    const auto [least, most] = outlier.Range(*RangeMethodOf(name), 255);
    EXPECT_EQ(most == 40, name == "minmax");
    EXPECT_LT(least, -2.5);
    EXPECT_GT(most, 2.5);
  }
  // Values that follow may be larger than those before.
  std::vector<float> large = {-1000, 1000};
  plain.Add(Tensor::FromVector(Shape({2}), large));
  EXPECT_EQ(plain.MinMax(), (std::pair<double, double>(-1000, 1000)));
}

TEST(ValueDistributionTest, SurvivesEmptyAndNonFiniteTensors) {
  ValueDistribution distribution;
  distribution.Add(Tensor::FromVector(Shape({0}), std::vector<float>()));
  distribution.Add(Tensor::FromVector(Shape({3}), std::vector<float>{INFINITY, -INFINITY, NAN}));
  EXPECT_EQ(distribution.MinMax(), (std::pair<double, double>(0, 0)));
  EXPECT_EQ(distribution.Range(RangeMethod::kMse, 255), (std::pair<double, double>(0, 0)));
  distribution.Add(Tensor::FromVector(Shape({1}), std::vector<float>{1e-38f}));
  distribution.Add(Tensor::FromVector(Shape({1}), std::vector<float>{3e38f}));
  EXPECT_GT(distribution.MinMax().second, 2e38);
}

}  // namespace
}  // namespace permafrost
