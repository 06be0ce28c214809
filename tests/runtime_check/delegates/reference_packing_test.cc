// Tests of the reference kernels with packed weights, and of the names that separate the weights of different nodes.
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "io/formats/graphdef_text.h"
#include "runtime_check/delegates/delegate_registry.h"
#include "tests/runtime_check/delegates/conformance.h"
#include "tests/runtime_check/delegates/image_graph.h"
#include "tests/runtime_check/delegates/memory_weights.h"

namespace permafrost {
namespace {

using testing::Each;
using testing::HasSubstr;
using testing::Key;
using testing::Not;

const Shape kImage = {2, 9, 7, 16};

// All kernels that pack a right matrix: plain, grouped and transposed convolutions, and matrix products.
class ManyProducts : public ImageGraph {
 public:
  ManyProducts() : ImageGraph(kImage) {
    Convolution("plain", "x", {3, 3, 16, 24});
    Convolution("groups", "plain", {3, 3, 8, 18});
    Ints("size", {2, 18, 14, 10});
    Weights("transposed/filter", {2, 2, 10, 18});
    Node* transposed = Float("transposed", "Conv2DBackpropInput", {"size", "transposed/filter", "groups"});
    transposed->SetAttr("strides", AttrValue::IntList({1, 2, 2, 1}));
    transposed->SetAttr("padding", AttrValue::String("SAME"));
    Ints("rows", {2, 18 * 14 * 10});
    Float("flat", "Reshape", {"transposed", "rows"})->SetAttr("Tshape", AttrValue::Type(DType::kInt32));
    Weights("matrix", {10, 18 * 14 * 10});
    Float("product", "MatMul", {"flat", "matrix"})->SetAttr("transpose_b", AttrValue::Bool(true));
    Ints("pair", {2, 1, 10});
    Float("pairs", "Reshape", {"product", "pair"})->SetAttr("Tshape", AttrValue::Type(DType::kInt32));
    Weights("matrices", {2, 10, 5});
    Float("products", "BatchMatMulV2", {"pairs", "matrices"});
  }
};

class ReferencePackingTest : public testing::Test {
 protected:
  Tensor Run(std::shared_ptr<PackedWeights> packed, int threads = 1) {
    SessionOptions options;
    options.packed = std::move(packed);
    options.num_threads = threads;
    const auto session = Session::Create(graph_.graph(), {"x"}, {"products"}, std::move(options));
    EXPECT_TRUE(session.ok()) << session.status();
    const auto outputs = (*session)->Run({SomeFloats(kImage, 5)});
    EXPECT_TRUE(outputs.ok()) << outputs.status();
    return (*outputs)[0];
  }

  ManyProducts graph_;
};

TEST_F(ReferencePackingTest, PackedBeforeGivesTheSameBits) {
  const Tensor expected = Run(nullptr);
  auto packed = std::make_shared<MemoryWeights>();
  EXPECT_EQ(Run(packed), expected);
  EXPECT_EQ(packed->num_kept, 5);
  EXPECT_EQ(packed->num_found, 0);
  packed->num_missing = 0;
  EXPECT_EQ(Run(packed), expected);
  EXPECT_EQ(Run(packed, 2), Run(nullptr, 2));
  EXPECT_EQ(packed->num_found, 10);
  EXPECT_EQ(packed->num_kept, 5);
  EXPECT_EQ(packed->num_missing, 0);
}

// Verifies that the previous test uses the packed weights.
TEST_F(ReferencePackingTest, WhatIsKeptIsWhatIsUsed) {
  auto packed = std::make_shared<MemoryWeights>();
  const Tensor expected = Run(packed);
  for (auto& [key, bytes] : packed->entries()) {
    SCOPED_TRACE(key);
    const std::string whole = bytes;
    bytes.assign(bytes.size(), '\0');
    EXPECT_NE(Run(packed), expected);
    bytes = whole;
  }
}

TEST_F(ReferencePackingTest, WhatDoesNotFitIsPackedAgain) {
  const Tensor expected = Run(nullptr);
  auto packed = std::make_shared<MemoryWeights>();
  Run(packed);
  const std::map<std::string, std::string> whole = packed->entries();
  for (const auto& [key, bytes] : whole) {
    for (const size_t size : {size_t{0}, size_t{1}, bytes.size() - 4, bytes.size() - 1, bytes.size() + 1}) {
      SCOPED_TRACE(absl::StrCat(key, ": ", size, " bytes"));
      packed->entries() = whole;
      packed->entries()[key].resize(size);
      EXPECT_EQ(Run(packed), expected);
      EXPECT_EQ(packed->entries(), whole);
    }
  }
}

TEST_F(ReferencePackingTest, MemoryThatIsNotAlignedIsNotUsed) {
  const Tensor expected = Run(nullptr);
  auto packed = std::make_shared<MemoryWeights>();
  Run(packed);
  packed->misalignment = 4;
  EXPECT_EQ(Run(packed), expected);
  EXPECT_EQ(packed->num_kept, 10);
}

// Weights of nodes left by a delegate are packed, too; weights of the delegate have separate names.
TEST_F(ReferencePackingTest, TheRestOfADelegatesModelIsPacked) {
  auto packed = std::make_shared<MemoryWeights>();
  for (int i = 0; i < 2; ++i) {
    SessionOptions options;
    options.packed = packed;
    options.delegate = *MakeDelegate("onednn", {"f32", nullptr, packed});
    const auto session = Session::Create(graph_.graph(), {"x"}, {"products"}, std::move(options));
    const auto outputs = (*session)->Run({SomeFloats(kImage, 5)});
    ASSERT_TRUE(outputs.ok()) << outputs.status();
    if (i == 0) packed->num_missing = 0;
  }
  EXPECT_EQ(packed->num_missing, 0);
  EXPECT_GT(packed->num_found, 0);
}

// Creates a session whose delegate, if any, runs all nodes that it supports.
SessionOptions With(const std::string& name, const std::shared_ptr<PackedWeights>& packed) {
  SessionOptions options;
  options.packed = packed;
  options.delegate = *MakeDelegate(name, {"f32", nullptr, packed});
  if (options.delegate != nullptr) options.delegate = AlwaysWorthwhile(options.delegate);
  return options;
}

// y = f(x) + g(x), where the nodes of both functions have the same names and weights of the same shape.
std::string TwoFunctions(const std::string& attr_of_g) {
  const auto function = [](const std::string& name, const std::string& weight) {
    return absl::StrCat(R"(
  function {
    signature { name: ")",
                        name, R"(" input_arg { name: "x" type: DT_FLOAT } output_arg { name: "y" type: DT_FLOAT } }
    node_def { name: "weights" op: "Const" attr { key: "dtype" value { type: DT_FLOAT } }
      attr { key: "value" value { tensor { dtype: DT_FLOAT
        tensor_shape { dim { size: 32 } dim { size: 32 } } float_val: )",
                        weight, R"( } } } }
    node_def { name: "product" op: "MatMul" input: "x" input: "weights:output:0"
      attr { key: "T" value { type: DT_FLOAT } } }
    ret { key: "y" value: "product:product:0" }
  })");
  };
  const auto call = [](const std::string& name, const std::string& attr) {
    return absl::StrCat(R"(
node { name: "call_)",
                        name, R"(" op: "PartitionedCall" input: "x"
  attr { key: "Tin" value { list { type: [DT_FLOAT] } } } attr { key: "Tout" value { list { type: [DT_FLOAT] } } }
  attr { key: "f" value { func { name: ")",
                        name, R"(" )", attr, R"( } } } })");
  };
  return absl::StrCat(R"(
node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } }
  attr { key: "shape" value { shape { dim { size: 4 } dim { size: 32 } } } } })",
                      call("f", ""), call("g", attr_of_g), R"(
node { name: "y" op: "Add" input: "call_f" input: "call_g" attr { key: "T" value { type: DT_FLOAT } } }
library {)",
                      function("f", "1"), function("g", "100"), "\n}\n");
}

TEST(PackedNamesTest, FunctionsKeepTheirWeightsApart) {
  for (const std::string& attr : {std::string(), std::string(R"(attr { key: "k" value { i: 1 } })")}) {
    const absl::StatusOr<std::unique_ptr<Graph>> graph = ReadGraphDefText(TwoFunctions(attr));
    ASSERT_TRUE(graph.ok()) << graph.status();
    for (const std::string& delegate : {std::string("reference"), std::string("onednn")}) {
      SCOPED_TRACE(absl::StrCat(delegate, " ", attr));
      auto packed = std::make_shared<MemoryWeights>();
      for (int i = 0; i < 2; ++i) {
        const auto session = Session::Create(**graph, {"x"}, {"y"}, With(delegate, packed));
        ASSERT_TRUE(session.ok()) << session.status();
        const auto outputs = (*session)->Run({Floats({4, 32}, std::vector<float>(4 * 32, 1))});
        ASSERT_TRUE(outputs.ok()) << outputs.status();
        EXPECT_THAT(ToVector((*outputs)[0]), Each(32 * 101));
      }
      EXPECT_GT(packed->num_found, 0);
      // A function with attributes may have different weights under the same name.
      if (!attr.empty()) {
        EXPECT_THAT(packed->entries(), Each(Key(Not(HasSubstr("g/")))));
      }
    }
  }
}

// The weights are the number of rows of x.
TEST(PackedNamesTest, WeightsThatFollowFromTheShapesAreNotKept) {
  ImageGraph graph(Shape({-1, 32}));
  graph.Float("shape", "Shape", {"x"})->SetAttr("out_type", AttrValue::Type(DType::kInt32));
  graph.Ints("zero", {0});
  graph.Ints("one", {1});
  graph.Add("first", "Slice", {"shape", "zero", "one"},
            {{"T", AttrValue::Type(DType::kInt32)}, {"Index", AttrValue::Type(DType::kInt32)}});
  graph.Add("rows", "Cast", {"first"},
            {{"SrcT", AttrValue::Type(DType::kInt32)}, {"DstT", AttrValue::Type(DType::kFloat)}});
  graph.Const("ones", Floats({32, 32}, std::vector<float>(32 * 32, 1)));
  graph.Float("weights", "Mul", {"ones", "rows"});
  graph.Float("of_shape", "MatMul", {"x", "weights"});
  graph.Const("two", Floats({}, {2}));
  graph.Float("twos", "Mul", {"ones", "two"});
  graph.Float("of_model", "MatMul", {"x", "twos"});
  graph.Float("y", "Add", {"of_shape", "of_model"});
  for (const std::string& delegate : {std::string("reference"), std::string("onednn")}) {
    SCOPED_TRACE(delegate);
    auto packed = std::make_shared<MemoryWeights>();
    for (const int64_t rows : {3, 7}) {
      const auto session = Session::Create(graph.graph(), {"x"}, {"y"}, With(delegate, packed));
      const auto outputs = (*session)->Run({Floats({rows, 32}, std::vector<float>(rows * 32, 1))});
      ASSERT_TRUE(outputs.ok()) << outputs.status();
      EXPECT_THAT(ToVector((*outputs)[0]), Each(32 * (rows + 2)));
    }
    EXPECT_GT(packed->num_found, 0);
  }
}

}  // namespace
}  // namespace permafrost
