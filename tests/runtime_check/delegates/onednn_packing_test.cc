// Tests the onednn delegate with packed weights: results are equal bit by bit, whichever weights are found.
#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime_check/delegates/delegate_registry.h"
#include "runtime_check/precision/calibration.h"
#include "tests/runtime_check/delegates/conformance.h"
#include "tests/runtime_check/delegates/image_graph.h"
#include "tests/runtime_check/delegates/memory_weights.h"

namespace permafrost {
namespace {

using testing::Each;
using testing::HasSubstr;

const Shape kImage = {2, 9, 7, 16};

// Convolutions of every kind with fused ops, and matrix products.
class ManyLayers : public ImageGraph {
 public:
  ManyLayers() : ImageGraph(kImage) {
    Convolution("plain", "x", {3, 3, 16, 24});
    Weights("scale", {24});
    Weights("shift", {24});
    Float("scaled", "Mul", {"plain", "scale"});
    Float("shifted", "Add", {"scaled", "shift"});
    Float("relu", "Relu", {"shifted"});
    Window("depthwise", "DepthwiseConv2dNative", "relu", {3, 3, 24, 1}, 1, 1, "SAME");
    Float("relu6", "Relu6", {"depthwise"});
    Convolution("pointwise", "relu6", {1, 1, 24, 16});
    Float("sum", "Add", {"pointwise", "x"});
    Ints("rows", {2, 9 * 7 * 16});
    Float("flat", "Reshape", {"sum", "rows"})->SetAttr("Tshape", AttrValue::Type(DType::kInt32));
    Weights("matrix", {9 * 7 * 16, 10});
    Float("product", "MatMul", {"flat", "matrix"});
  }
};

class OneDnnPackingTest : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    PrecisionPlan plan;
    if (GetParam() == "int8") {
      plan = Calibrated();
      plan.precision = Precision::kInt8;
    }
    if (GetParam() == "bf16 calibrated") {
      plan = Calibrated();
      plan.precision = Precision::kBf16;
    }
    if (GetParam() == "bf16") plan.precision = Precision::kBf16;
    plan_ = std::make_shared<PrecisionPlan>(std::move(plan));
    const absl::Status status = MakeDelegate("onednn", {"mixed", plan_, nullptr}).status();
    if (absl::IsUnimplemented(status)) GTEST_SKIP() << status;
  }

  PrecisionPlan Calibrated() {
    PrecisionPlan plan;
    const auto session = MakeSession(*MakeDelegate("onednn", {}), graph_.graph(), {"x"}, {"product"}, 1);
    EXPECT_TRUE((*session)->Plan({kImage}).ok());
    plan.tensors = *Calibrate(graph_.graph(), {"x"}, {{input_}}, (*session)->report().delegation, RangeMethod::kMinMax,
                              SessionOptions());
    return plan;
  }

  Tensor Run(std::shared_ptr<PackedWeights> packed, int threads = 1) {
    const auto delegate = MakeDelegate("onednn", {"mixed", plan_, std::move(packed)});
    const auto session = MakeSession(AlwaysWorthwhile(*delegate), graph_.graph(), {"x"}, {"product"}, threads);
    const auto outputs = (*session)->Run({input_});
    EXPECT_TRUE(outputs.ok()) << outputs.status();
    pieces_.clear();
    constant_bytes_ = 0;
    for (const DelegationReport::Taken& taken : (*session)->report().delegation.partitions) {
      constant_bytes_ += taken.constant_bytes;
      for (const std::string& piece : taken.pieces) {
        // Pieces for lines in float and bfloat16 read the weights of the model directly.
        if (absl::StrContains(piece, "(lines of float") || absl::StrContains(piece, "(lines of bfloat")) continue;
        if (absl::StrContains(piece, "convolution") || absl::StrContains(piece, "matmul")) pieces_.push_back(piece);
      }
    }
    EXPECT_EQ((*session)->report().delegation.failure, "");
    return (*outputs)[0];
  }

  ManyLayers graph_;
  const Tensor input_ = SomeFloats(kImage, 5);
  std::shared_ptr<const PrecisionPlan> plan_;
  std::vector<std::string> pieces_;
  int64_t constant_bytes_ = 0;
};

TEST_P(OneDnnPackingTest, PackedBeforeGivesTheSameBits) {
  const Tensor expected = Run(nullptr);
  const int64_t unpacked_bytes = constant_bytes_;
  auto packed = std::make_shared<MemoryWeights>();
  EXPECT_EQ(Run(packed), expected);
  // Properties and weights of four layers, or of all but the depthwise one.
  EXPECT_GE(pieces_.size(), 3);
  EXPECT_EQ(packed->num_kept, 2 * pieces_.size());
  EXPECT_EQ(packed->num_found, 0);
  packed->num_kept = packed->num_missing = 0;
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(Run(packed), expected);
    EXPECT_THAT(pieces_, Each(HasSubstr("packed before")));
    EXPECT_LT(constant_bytes_, unpacked_bytes / 4);
  }
  EXPECT_EQ(packed->num_kept, 0);
  EXPECT_EQ(packed->num_missing, 0);
  EXPECT_EQ(Run(packed, 2), Run(nullptr, 2));
}

TEST_P(OneDnnPackingTest, WhatDoesNotFitIsPackedAgain) {
  const Tensor expected = Run(nullptr);
  auto packed = std::make_shared<MemoryWeights>();
  Run(packed);
  const std::map<std::string, std::string> whole = packed->entries();
  for (const auto& [key, bytes] : whole) {
    for (const size_t size : {size_t{0}, size_t{1}, size_t{2}, bytes.size() - 1, bytes.size() + 1}) {
      SCOPED_TRACE(absl::StrCat(key, ": ", size, " bytes"));
      packed->entries() = whole;
      packed->entries()[key] = bytes;
      packed->entries()[key].resize(size);
      EXPECT_EQ(Run(packed), expected);
      EXPECT_EQ(packed->entries()[key], bytes);
    }
    SCOPED_TRACE(key);
    packed->entries() = whole;
    packed->entries().erase(key);
    EXPECT_EQ(Run(packed), expected);
    EXPECT_EQ(packed->entries()[key], bytes);
  }
}

TEST_P(OneDnnPackingTest, MemoryThatIsNotAlignedIsNotUsed) {
  const Tensor expected = Run(nullptr);
  auto packed = std::make_shared<MemoryWeights>();
  Run(packed);
  packed->misalignment = 1;
  EXPECT_EQ(Run(packed), expected);
}

TEST_P(OneDnnPackingTest, OtherScalesAreOtherWeights) {
  auto packed = std::make_shared<MemoryWeights>();
  Run(packed);
  packed->num_kept = 0;
  ManyLayers other;
  other.graph().Find("scale")->SetAttr("value", AttrValue::OfTensor(SomeFloats({24}, 77)));
  const auto delegate = MakeDelegate("onednn", {"mixed", plan_, packed});
  const auto plain = MakeDelegate("onednn", {"mixed", plan_, nullptr});
  const auto with = MakeSession(AlwaysWorthwhile(*delegate), other.graph(), {"x"}, {"product"}, 1);
  const auto without = MakeSession(AlwaysWorthwhile(*plain), other.graph(), {"x"}, {"product"}, 1);
  EXPECT_EQ((*(*with)->Run({input_}))[0], (*(*without)->Run({input_}))[0]);
  EXPECT_EQ(packed->num_kept, 2);
}

INSTANTIATE_TEST_SUITE_P(Precisions, OneDnnPackingTest, testing::Values("f32", "bf16", "bf16 calibrated", "int8"),
                         [](const auto& info) {
                           std::string name = info.param;
                           for (char& c : name) c = c == ' ' ? '_' : c;
                           return name;
                         });

// NaN in the weights is a stored property, because activations of oneDNN would lose it.
TEST(OneDnnPackingNanTest, WeightsThatAreNotFiniteStaySo) {
  ImageGraph graph(kImage);
  std::vector<float> weights(3 * 3 * 16 * 8, 0.5f);
  weights[3] = std::numeric_limits<float>::quiet_NaN();
  graph.Const("filter", Tensor::FromVector<float>({3, 3, 16, 8}, std::move(weights)));
  Node* node = graph.Float("conv", "Conv2D", {"x", "filter"});
  node->SetAttr("strides", AttrValue::IntList({1, 1, 1, 1}));
  node->SetAttr("padding", AttrValue::String("SAME"));
  graph.Float("relu", "Relu6", {"conv"});
  auto packed = std::make_shared<MemoryWeights>();
  for (int i = 0; i < 2; ++i) {
    const auto delegate = MakeDelegate("onednn", {"f32", nullptr, packed});
    const auto session = MakeSession(AlwaysWorthwhile(*delegate), graph.graph(), {"x"}, {"relu"}, 1);
    const auto outputs = (*session)->Run({SomeFloats(kImage, 5)});
    ASSERT_TRUE(outputs.ok()) << outputs.status();
    // The first tap of an output pixel whose taps are all inside the image.
    const size_t pixel = (7 + 1) * 8;
    EXPECT_TRUE(std::isnan((*outputs)[0].elements<float>()[pixel + 3]));
    EXPECT_FALSE(std::isnan((*outputs)[0].elements<float>()[pixel + 4]));
  }
  EXPECT_EQ(packed->num_kept, 2);
  EXPECT_EQ(packed->num_found, 2);
}

TEST(PackingIdentityTest, OnlyThoseThatPackHaveOne) {
  EXPECT_THAT(PackingIdentity("onednn"), HasSubstr("oneDNN"));
  EXPECT_THAT(PackingIdentity("reference"), HasSubstr("reference kernels, panels of "));
  EXPECT_EQ(PackingIdentity("xnnpack"), "");
  EXPECT_EQ(PackingIdentity("nobody"), "");
}

}  // namespace
}  // namespace permafrost
