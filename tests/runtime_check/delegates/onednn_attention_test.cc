// Tests the ops of attention networks in the onednn delegate, by the pieces of each graph and against the reference
// kernels over odd shapes.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <fstream>
#include <limits>
#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "io/formats/graphdef.h"
#include "runtime_check/delegates/onednn/onednn_delegate.h"
#include "tests/kernels/recorded_cases.h"
#include "tests/runtime_check/delegates/delegate_run.h"
#include "tests/runtime_check/small_graph.h"

namespace permafrost {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;

// A graph with the values that are fed to it.
class AttentionNetwork : public SmallGraph {
 public:
  void Feed(const std::string& name, const Shape& shape) { FeedValue(name, SomeFloats(shape, ++seed_)); }
  void FeedValue(const std::string& name, Tensor value) {
    Placeholder(name, value.dtype(), value.shape());
    feeds_.push_back({name, std::move(value)});
  }
  void Weights(const std::string& name, const Shape& shape) { Const(name, SomeFloats(shape, ++seed_)); }
  void Number(const std::string& name, float value) { Const(name, Tensor::Scalar<float>(value)); }
  void Ints(const std::string& name, std::vector<int32_t> values) {
    const Shape shape = {static_cast<int64_t>(values.size())};
    Const(name, Tensor::FromVector<int32_t>(shape, std::move(values)));
  }
  void Einsum(const std::string& name, const std::string& equation, const std::string& a, const std::string& b) {
    Node* node = Float(name, "Einsum", {a, b});
    node->SetAttr("N", AttrValue::Int(2));
    node->SetAttr("equation", AttrValue::String(equation));
  }
  void Product(const std::string& name, const std::string& a, const std::string& b, bool adj_x, bool adj_y) {
    Node* node = Float(name, "BatchMatMulV2", {a, b});
    node->SetAttr("adj_x", AttrValue::Bool(adj_x));
    node->SetAttr("adj_y", AttrValue::Bool(adj_y));
  }
  void Mean(const std::string& name, const std::string& input, const std::string& axes) {
    Float(name, "Mean", {input, axes})->SetAttr("keep_dims", AttrValue::Bool(true));
  }

  // Compares with the reference kernels at 1 and 2 threads, and returns the pieces. Expects one partition.
  std::vector<std::string> Pieces(const std::vector<std::string>& fetches) {
    DelegationReport report;
    for (const int threads : {1, 2}) report = ExpectSame(delegate_, graph(), feeds_, fetches, threads);
    EXPECT_THAT(report.partitions, SizeIs(1));
    EXPECT_THAT(report.left, IsEmpty());
    EXPECT_EQ(report.failure, "");
    return report.partitions.empty() ? std::vector<std::string>() : report.partitions[0].pieces;
  }

  const std::shared_ptr<const Delegate> delegate_ = *MakeOneDnnDelegate({});
  std::vector<permafrost::Feed> feeds_;
  uint32_t seed_ = 0;
};

class OneDnnAttentionTest : public testing::Test, public AttentionNetwork {};

struct EinsumCase {
  std::string equation;
  Shape left, right;
  std::string piece;
};

class OneDnnEinsumTest : public OneDnnAttentionTest, public testing::WithParamInterface<EinsumCase> {};

TEST_P(OneDnnEinsumTest, EqualsTheReferenceKernel) {
  Feed("x", GetParam().left);
  Feed("y", GetParam().right);
  Einsum("out", GetParam().equation, "x", "y");
  EXPECT_THAT(Pieces({"out"}), ElementsAre(HasSubstr(GetParam().piece)));
}

INSTANTIATE_TEST_SUITE_P(Equations, OneDnnEinsumTest,
                         testing::Values(EinsumCase{"aecd,abcd->acbe", {2, 7, 3, 5}, {2, 9, 3, 5}, ": batched product"},
                                         EinsumCase{"acbe,aecd->abcd", {2, 3, 9, 7}, {2, 7, 3, 5}, ": batched product"},
                                         EinsumCase{"bqd,bkd->bqk", {3, 1, 40}, {3, 37, 40}, ": batched product"},
                                         EinsumCase{"bqk,bkd->bqd", {3, 2, 37}, {3, 37, 33}, ": batched product"},
                                         EinsumCase{"ab,bc->ac", {70, 300}, {300, 35}, ": product"},
                                         EinsumCase{"ab,bc->ca", {5, 300}, {300, 35}, ": product"},
                                         EinsumCase{"ba,cb->ca", {60, 5}, {35, 60}, ": product"},
                                         EinsumCase{"abc,cde->abde", {2, 3, 8}, {8, 4, 5}, ": product"},
                                         EinsumCase{"abde,dec->abc", {2, 3, 4, 5}, {4, 5, 6}, ": product"},
                                         EinsumCase{"aecd,bcd->abe", {2, 7, 1, 5}, {9, 1, 5}, ": batched product"},
                                         EinsumCase{"...ij,...jk->...ik", {4, 1, 3, 8}, {5, 8, 2}, ": batched product"},
                                         EinsumCase{"a,a->", {13}, {13}, ": product"},
                                         EinsumCase{"a,b->ab", {13}, {9}, ": product"},
                                         EinsumCase{"ab,ab->ab", {4, 9}, {4, 9}, ": batched product"},
                                         EinsumCase{"abc,abd->acbd", {3, 4, 5}, {3, 4, 6}, ": batched product"}));

TEST_F(OneDnnAttentionTest, MultipliesByConstantsOfAnyPlace) {
  Feed("x", {2, 5, 12});
  Weights("w", {12, 3, 4});
  Weights("bias", {3, 4});
  Weights("back", {3, 4, 12});
  Weights("half", {12, 7});
  Einsum("heads", "abc,cde->abde", "x", "w");
  Float("biased", "AddV2", {"heads", "bias"});
  Einsum("joined", "abcd,cde->abe", "biased", "back");
  Einsum("left", "cd,abc->abd", "half", "joined");
  // The bias of all heads is folded into the product, although it has two dimensions.
  EXPECT_THAT(Pieces({"left"}), AllOf(SizeIs(3), Each(HasSubstr("matmul ("))));
}

TEST_F(OneDnnAttentionTest, MultipliesBatchesOfMatrices) {
  for (const bool adj_x : {false, true}) {
    for (const bool adj_y : {false, true}) {
      const std::string name = absl::StrCat("p", adj_x, adj_y);
      Feed(name + "x", adj_x ? Shape{2, 1, 8, 11} : Shape{2, 1, 11, 8});
      Feed(name + "y", adj_y ? Shape{3, 19, 8} : Shape{3, 8, 19});
      Product(name, name + "x", name + "y", adj_x, adj_y);
    }
  }
  Weights("w", {8, 6});
  Product("weighted", "p00x", "w", false, false);
  EXPECT_THAT(Pieces({"p00", "p01", "p10", "p11", "weighted"}),
              testing::UnorderedElementsAre(HasSubstr("batched product"), HasSubstr("batched product"),
                                            HasSubstr("batched product"), HasSubstr("batched product"),
                                            HasSubstr(": matmul (")));
}

TEST_F(OneDnnAttentionTest, BroadcastsBothOperands) {
  Feed("x", {2, 3, 1, 5});
  Feed("y", {4, 5});
  Feed("z", {2, 1, 4, 1});
  Weights("c", {5});
  Float("sum", "AddV2", {"x", "y"});
  Float("difference", "Sub", {"c", "z"});
  Float("quotient", "RealDiv", {"sum", "difference"});
  Float("least", "Minimum", {"quotient", "y"});
  Float("out", "SquaredDifference", {"z", "least"});
  Pieces({"out"});
}

TEST_F(OneDnnAttentionTest, ReducesNeighbouringDimensions) {
  Feed("x", {2, 3, 7, 37});
  Ints("last", {-1});
  Ints("middle", {1, 2});
  Ints("all", {0, 1, 2, 3});
  Mean("of_last", "x", "last");
  Mean("of_middle", "x", "middle");
  Float("of_all", "Sum", {"x", "all"})->SetAttr("keep_dims", AttrValue::Bool(false));
  EXPECT_THAT(Pieces({"of_last", "of_middle", "of_all"}),
              testing::UnorderedElementsAre(HasSubstr(": mean"), HasSubstr(": mean"), HasSubstr(": sum")));
}

TEST_F(OneDnnAttentionTest, ReducesTwoGroupsOfDimensions) {
  Feed("x", {2, 5, 7, 3, 21});
  Ints("axes", {1, 2, -1});
  Mean("mean", "x", "axes");
  EXPECT_THAT(Pieces({"mean"}), ElementsAre(HasSubstr(": mean")));
}

TEST_F(OneDnnAttentionTest, RepeatsDimensionsOfOneElement) {
  Feed("x", {3, 1, 5, 1});
  Ints("multiples", {1, 2, 1, 3});
  Ints("shape", {2, 3, 4, 5, 1});
  Float("tile", "Tile", {"x", "multiples"});
  Float("broadcast", "BroadcastTo", {"x", "shape"});
  EXPECT_THAT(Pieces({"tile", "broadcast"}), SizeIs(2));
}

TEST_F(OneDnnAttentionTest, CopiesViews) {
  Feed("x", {2, 6, 5, 3});
  Ints("order", {2, 0, 3, 1});
  Ints("begin", {0, 1, 4, -1});
  Ints("end", {2, 6, 0, 0});
  Ints("strides", {1, 2, -2, 1});
  Ints("start", {1, 0, 2, 0});
  Ints("size", {1, 6, 2, 3});
  Const("axis", Tensor::Scalar<int32_t>(1));
  Float("transposed", "Transpose", {"x", "order"});
  Node* strided = Float("strided", "StridedSlice", {"x", "begin", "end", "strides"});
  strided->SetAttr("shrink_axis_mask", AttrValue::Int(8));
  strided->SetAttr("Index", AttrValue::Type(DType::kInt32));
  Float("slice", "Slice", {"x", "start", "size"})->SetAttr("Index", AttrValue::Type(DType::kInt32));
  Float("split", "Split", {"axis", "x"})->SetAttr("num_split", AttrValue::Int(3));
  Node* unpacked = Float("unpacked", "Unpack", {"x"});
  unpacked->SetAttr("num", AttrValue::Int(3));
  unpacked->SetAttr("axis", AttrValue::Int(3));
  Node* packed = Float("packed", "Pack", {"unpacked:2", "unpacked:0"});
  packed->SetAttr("N", AttrValue::Int(2));
  packed->SetAttr("axis", AttrValue::Int(-2));
  Pieces({"transposed", "strided", "slice", "split", "split:2", "packed"});
}

TEST_F(OneDnnAttentionTest, GathersRowsAndRejectsOthers) {
  Weights("table", {11, 6});
  FeedValue("indices", Tensor::FromVector<int32_t>({2, 3}, {10, 0, 3, 3, 7, 1}));
  Const("axis", Tensor::Scalar<int32_t>(0));
  Add("rows", "GatherV2", {"table", "indices", "axis"},
      {{"Tparams", AttrValue::Type(DType::kFloat)},
       {"Tindices", AttrValue::Type(DType::kInt32)},
       {"Taxis", AttrValue::Type(DType::kInt32)}});
  Float("out", "Exp", {"rows"});
  EXPECT_THAT(Pieces({"out"}), Contains(HasSubstr(": gather")));
  auto session = MakeSession(delegate_, graph(), {"indices"}, {"out"}, 1);
  ASSERT_TRUE(session.ok()) << session.status();
  for (const int32_t index : {-1, 11, std::numeric_limits<int32_t>::max()}) {
    EXPECT_EQ((*session)->Run({Tensor::FromVector<int32_t>({2, 3}, {10, 0, 3, index, 7, 1})}).status().code(),
              absl::StatusCode::kInvalidArgument);
  }
}

TEST_F(OneDnnAttentionTest, SelectsByABroadcastCondition) {
  bool* bits = nullptr;
  const auto condition = Tensor::Allocate<bool>({2, 1, 5}, &bits);
  ASSERT_TRUE(condition.ok());
  for (int i = 0; i < 10; ++i) bits[i] = i % 3 == 0;
  FeedValue("condition", *condition);
  Feed("x", {2, 4, 5});
  Number("other", -1e9f);
  Float("masked", "SelectV2", {"condition", "x", "other"});
  Float("out", "Softmax", {"masked"});
  EXPECT_THAT(Pieces({"out"}), ElementsAre(HasSubstr(": select"), HasSubstr(": softmax")));
}

TEST_F(OneDnnAttentionTest, ComputesErrorFunctionsToTheirTails) {
  std::vector<float> values;
  for (int i = -600; i <= 600; ++i) values.push_back(static_cast<float>(i) * 0.02f);
  for (const float value : {std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity(),
                            std::numeric_limits<float>::quiet_NaN(), 0.0f, -0.0f, 1e-20f}) {
    values.push_back(value);
  }
  const auto count = static_cast<int64_t>(values.size());
  FeedValue("x", Tensor::FromVector<float>({count}, values));
  Float("erf", "Erf", {"x"});
  Float("erfc", "Erfc", {"x"});
  Pieces({"erf", "erfc"});
}

// --- Patterns --------------------------------------------------------------------------------------------------------

TEST_F(OneDnnAttentionTest, KnowsGeluInEveryForm) {
  Feed("x", {7, 12});
  Weights("w", {12, 24});
  Number("half", 0.5f);
  Number("one", 1);
  Number("root", 0.70710678f);
  Number("three", 3);
  Number("cubic", 0.044715f);
  Number("outer", 0.7978845608f);
  const auto matmul = [&](const std::string& name) { Float(name, "MatMul", {"x", "w"}); };
  matmul("a");  // x / 2 * erfc(-x / sqrt(2))
  Float("a_half", "Mul", {"half", "a"});
  Float("a_negative", "Neg", {"a"});
  Float("a_scaled", "Mul", {"a_negative", "root"});
  Float("a_gate", "Erfc", {"a_scaled"});
  Float("a_out", "Mul", {"a_half", "a_gate"});
  matmul("b");  // x * (1 + erf(x / sqrt(2))) / 2
  Float("b_scaled", "Mul", {"b", "root"});
  Float("b_erf", "Erf", {"b_scaled"});
  Float("b_gate", "AddV2", {"b_erf", "one"});
  Float("b_product", "Mul", {"b", "b_gate"});
  Float("b_out", "Mul", {"b_product", "half"});
  matmul("c");  // The form with tanh.
  Float("c_cube", "Pow", {"c", "three"});
  Float("c_scaled", "Mul", {"cubic", "c_cube"});
  Float("c_sum", "AddV2", {"c", "c_scaled"});
  Float("c_inner", "Mul", {"c_sum", "outer"});
  Float("c_tanh", "Tanh", {"c_inner"});
  Float("c_one", "AddV2", {"c_tanh", "one"});
  Float("c_gate", "Mul", {"c_one", "half"});
  Float("c_out", "Mul", {"c", "c_gate"});
  EXPECT_THAT(Pieces({"a_out", "b_out", "c_out"}),
              testing::UnorderedElementsAre(HasSubstr("matmul + gelu ("), HasSubstr("matmul + gelu ("),
                                            HasSubstr("matmul + gelu_tanh (")));
}

TEST_F(OneDnnAttentionTest, LeavesAGeluOfAnotherScaleAlone) {
  Feed("x", {7, 12});
  Number("half", 0.5f);
  Number("one", 1);
  Number("scale", 0.7f);
  Float("scaled", "Mul", {"x", "scale"});
  Float("erf", "Erf", {"scaled"});
  Float("gate", "AddV2", {"erf", "one"});
  Float("product", "Mul", {"x", "gate"});
  Float("out", "Mul", {"product", "half"});
  EXPECT_THAT(Pieces({"out"}), Each(Not(HasSubstr("gelu"))));
}

// The layer normalisation of Keras: x * (scale * factor) + (offset - mean * (scale * factor)).
class NormalizationNetwork : public AttentionNetwork {
 public:
  void KerasNormalization(const std::string& input, int64_t channels) {
    Ints("axis", {-1});
    Number("epsilon", 1e-3f);
    Weights("factor", {channels});
    Weights("offset", {channels});
    Mean("mean", input, "axis");
    Float("squares", "SquaredDifference", {input, "mean"});
    Mean("variance", "squares", "axis");
    Float("shifted", "AddV2", {"variance", "epsilon"});
    Float("scale", "Rsqrt", {"shifted"});
    Float("scaled_factor", "Mul", {"scale", "factor"});
    Float("scaled", "Mul", {input, "scaled_factor"});
    Float("negative", "Neg", {"mean"});
    Float("scaled_mean", "Mul", {"negative", "scaled_factor"});
    Float("moved", "AddV2", {"scaled_mean", "offset"});
    Float("out", "AddV2", {"scaled", "moved"});
  }
};

class OneDnnNormalizationTest : public testing::Test, public NormalizationNetwork {};

TEST(OneDnnNormalizationFormTest, KnowsTheFormOfKeras) {
  for (const int64_t channels : {2, 17, 130}) {
    NormalizationNetwork of_channels;
    of_channels.Feed("x", {3, 5, channels});
    of_channels.KerasNormalization("x", channels);
    EXPECT_THAT(of_channels.Pieces({"out"}), ElementsAre(HasSubstr("out: layer normalisation")));
  }
}

TEST_F(OneDnnNormalizationTest, KeepsNaNAndInfinity) {
  Tensor given = SomeFloats({4, 6}, 3);
  std::vector<float> values = ToVector(given);
  values[1] = std::numeric_limits<float>::quiet_NaN();
  values[7] = std::numeric_limits<float>::infinity();
  std::fill(values.begin() + 12, values.begin() + 18, 2.5f);
  FeedValue("x", Floats({4, 6}, values));
  KerasNormalization("x", 6);
  EXPECT_THAT(Pieces({"out"}), SizeIs(1));
}

TEST_F(OneDnnNormalizationTest, KnowsQuotientsAndTheFormWithoutMean) {
  Feed("x", {3, 5, 19});
  Ints("axis", {2});
  Number("epsilon", 1e-2f);
  Weights("factor", {1, 1, 19});
  Weights("offset", {19});
  Mean("mean", "x", "axis");
  Float("centred", "Sub", {"x", "mean"});
  Float("squares", "Square", {"centred"});
  Mean("variance", "squares", "axis");
  Float("shifted", "AddV2", {"variance", "epsilon"});
  Float("root", "Sqrt", {"shifted"});
  Float("quotient", "RealDiv", {"centred", "root"});
  Float("scaled", "Mul", {"factor", "quotient"});
  Float("first", "AddV2", {"scaled", "offset"});
  Float("own_squares", "Mul", {"first", "first"});
  Mean("own_mean", "own_squares", "axis");
  Float("own_shifted", "AddV2", {"own_mean", "epsilon"});
  Float("own_scale", "Rsqrt", {"own_shifted"});
  Float("rms", "Mul", {"first", "own_scale"});
  Float("out", "Mul", {"rms", "factor"});
  EXPECT_THAT(Pieces({"out"}),
              ElementsAre(HasSubstr("first: layer normalisation"), HasSubstr("out: RMS normalisation")));
}

TEST_F(OneDnnNormalizationTest, LeavesOneWhoseInsideIsReadAlone) {
  Feed("x", {3, 5, 19});
  KerasNormalization("x", 19);
  EXPECT_THAT(
      Pieces({"out", "scale"}),
      AllOf(Each(Not(HasSubstr("layer normalisation ("))),
            Contains(HasSubstr("; no layer normalisation: 'scale' is read by a node outside of the partition"))));
}

// Attention as Keras exports it, with steps between the scores and the softmax.
class PatternNetwork : public AttentionNetwork {
 public:
  void QueriesKeysAndValues(int64_t queries, int64_t keys, int64_t heads, int64_t depth) {
    Feed("q", {2, queries, heads, depth});
    Feed("k", {2, keys, heads, depth});
    Feed("v", {2, keys, heads, depth + 1});
    Einsum("scores", "aecd,abcd->acbe", "k", "q");
  }
  void Finish(const std::string& scores) {
    Float("probabilities", "Softmax", {scores});
    Einsum("out", "acbe,aecd->abcd", "probabilities", "v");
  }
  void Condition(const std::string& name, const Shape& shape, int period) {
    bool* bits = nullptr;
    const absl::StatusOr<Tensor> condition = Tensor::Allocate<bool>(shape, &bits);
    ASSERT_TRUE(condition.ok());
    for (int64_t i = 0; i < shape.num_elements(); ++i) bits[i] = i % period != 0;
    FeedValue(name, *condition);
  }
};

class OneDnnAttentionPatternTest : public testing::Test, public PatternNetwork {};

TEST(OneDnnAttentionShapesTest, IsOnePieceOverAnyShape) {
  const std::vector<std::vector<int64_t>> shapes = {{7, 9, 3, 5},     {1, 40, 2, 16}, {70, 33, 1, 8},
                                                    {130, 257, 2, 4}, {1, 1, 1, 2},   {5, 600, 1, 33}};
  for (const std::vector<int64_t>& shape : shapes) {
    PatternNetwork of_shape;
    of_shape.QueriesKeysAndValues(shape[0], shape[1], shape[2], shape[3]);
    of_shape.Finish("scores");
    const std::vector<std::string> pieces = of_shape.Pieces({"out"});
    if (shape[1] > 1) {
      EXPECT_THAT(pieces, ElementsAre("out: attention (loops)"));
    }
  }
}

TEST_F(OneDnnAttentionPatternTest, ScalesAndMasksByAdditionAndSelection) {
  QueriesKeysAndValues(6, 11, 3, 8);
  Feed("mask", {2, 1, 1, 11});
  Condition("condition", {6, 11}, 3);
  Number("scale", 0.35f);
  Number("other", -1e9f);
  Float("scaled", "Mul", {"scores", "scale"});
  Float("masked", "AddV2", {"scaled", "mask"});
  Float("selected", "SelectV2", {"condition", "masked", "other"});
  Finish("selected");
  EXPECT_THAT(Pieces({"out"}), ElementsAre("out: attention + mask + select (loops)"));
}

TEST_F(OneDnnAttentionPatternTest, KeepsNaNOfRowsThatAreMaskedCompletely) {
  QueriesKeysAndValues(6, 4, 2, 8);
  Condition("condition", {2, 1, 6, 4}, 1);
  Number("other", -std::numeric_limits<float>::infinity());
  Float("selected", "SelectV2", {"condition", "scores", "other"});
  Finish("selected");
  Weights("w", {18, 7});
  Const("shape", Tensor::FromVector<int32_t>({2}, {12, 18}));
  Float("rows", "Reshape", {"out", "shape"});
  Float("product", "MatMul", {"rows", "w"});
  Float("active", "Relu", {"product"});
  // oneDNN's ReLU makes 0 of NaN: the piece behind attention has to be told, although all inputs are finite.
  EXPECT_THAT(Pieces({"active"}), ElementsAre("out: attention + select (loops)", HasSubstr("matmul + relu")));
}

TEST_F(OneDnnAttentionPatternTest, ReadsThroughTransposesAndSplits) {
  // One product for queries, keys and values, which are split, as in exported BERT and GPT models.
  Feed("x", {10, 12});
  Weights("w", {12, 36});
  Float("joined", "MatMul", {"x", "w"});
  Const("heads", Tensor::FromVector<int32_t>({5}, {2, 5, 3, 3, 4}));
  Float("by_head", "Reshape", {"joined", "heads"});
  Ints("order", {2, 0, 3, 1, 4});
  Float("moved", "Transpose", {"by_head", "order"});
  Node* parts = Float("parts", "Unpack", {"moved"});
  parts->SetAttr("num", AttrValue::Int(3));
  parts->SetAttr("axis", AttrValue::Int(0));
  Product("scores", "parts", "parts:1", false, true);
  Number("root", 2);
  Float("scaled", "RealDiv", {"scores", "root"});
  Float("probabilities", "Softmax", {"scaled"});
  Product("context", "probabilities", "parts:2", false, false);
  Ints("back", {0, 2, 1, 3});
  Float("out", "Transpose", {"context", "back"});
  EXPECT_THAT(Pieces({"out"}), ElementsAre(HasSubstr("joined: matmul"), "out: attention (loops)"));
}

TEST(OneDnnAttentionNearMissTest, NamesTheDifference) {
  struct Case {
    std::string op, note;
  };
  for (const Case& miss : {Case{"Mul", "no attention: 'between' (Mul) is between the scores and the softmax"},
                           Case{"Maximum", "no attention: 'between' (Maximum) is between the scores and the softmax"},
                           Case{"Scale", "no attention: 'scaled' (Mul) scales the scores after the mask"},
                           Case{"Dropout", "no attention: the probabilities are read by 'dropped' (Mul)"},
                           Case{"Read", "no attention: the result of 'scores' (Einsum) has several readers"}}) {
    PatternNetwork test;
    test.QueriesKeysAndValues(6, 11, 3, 8);
    test.Feed("other", {2, 3, 6, 11});
    std::vector<std::string> fetches = {"out"};
    std::string last = "scores";
    if (miss.op == "Scale") {
      test.Float("masked", "AddV2", {"scores", "other"});
      test.Number("half", 0.5f);
      test.Float("scaled", "Mul", {"masked", "half"});
      last = "scaled";
    } else if (miss.op == "Read") {
      fetches.push_back("scores");
    } else if (miss.op != "Dropout") {
      test.Float("between", miss.op, {"scores", "other"});
      last = "between";
    }
    test.Float("probabilities", "Softmax", {last});
    last = "probabilities";
    if (miss.op == "Dropout") {
      test.Float("dropped", "Mul", {"probabilities", "other"});
      last = "dropped";
    }
    test.Einsum("out", "acbe,aecd->abcd", last, "v");
    EXPECT_THAT(test.Pieces(fetches), Contains(HasSubstr(miss.note))) << miss.op;
  }
}

// --- A model ---------------------------------------------------------------------------------------------------------

// The encoder of make_graphs.py.
TEST(OneDnnEncoderTest, IsInThreePartitionsAtMost) {
  std::ifstream file("tests/runtime_check/graphs/keras_encoder.pb", std::ios::binary);
  std::stringstream bytes;
  bytes << file.rdbuf();
  const std::string text = bytes.str();
  const absl::StatusOr<std::unique_ptr<Graph>> graph = ReadGraphDef(text, nullptr);
  ASSERT_TRUE(graph.ok()) << graph.status();
  const auto recorded = [&](int run, const std::string& side) {
    const Node* node = (*graph)->Find(absl::StrCat("recorded/", run, "/", side, "/0"));
    return Feed{*StringAttr(*node, "_tensor"), *ConstValue(*node)};
  };
  const Feed first = recorded(0, "in"), result = recorded(0, "out");
  // One session, whose plans are made for each shape.
  SessionOptions options;
  options.delegate = *MakeOneDnnDelegate({});
  const auto session = Session::Create(**graph, {first.name}, {result.name}, options);
  ASSERT_TRUE(session.ok()) << session.status();
  for (const int run : {0, 1, 2, 0}) {
    const auto outputs = (*session)->Run({recorded(run, "in").value});
    ASSERT_TRUE(outputs.ok()) << outputs.status();
    const absl::Status same = CompareWithRecorded((*outputs)[0], recorded(run, "out").value);
    EXPECT_TRUE(same.ok()) << "run " << run << ": " << same;
    const DelegationReport& report = (*session)->report().delegation;
    EXPECT_THAT(report.partitions.size(), testing::AllOf(testing::Ge(1u), testing::Le(3u)));
    EXPECT_EQ(report.failure, "");
    int num_attention = 0, num_normalization = 0, num_gelu = 0;
    for (const DelegationReport::Taken& taken : report.partitions) {
      for (const std::string& piece : taken.pieces) {
        num_attention += absl::StrContains(piece, ": attention") ? 1 : 0;
        num_normalization += absl::StrContains(piece, ": layer normalisation") ? 1 : 0;
        num_gelu += absl::StrContains(piece, " gelu") ? 1 : 0;
      }
    }
    EXPECT_EQ(num_attention, 2) << "run " << run;
    EXPECT_EQ(num_normalization, 4) << "run " << run;
    EXPECT_EQ(num_gelu, 2) << "run " << run;
  }
  // No sequence, and none of any length: the reference kernels compute empty tensors.
  for (const Shape& shape : {Shape{0, 4}, Shape{2, 0}}) {
    const auto outputs = (*session)->Run({Tensor::FromVector<int32_t>(shape, {})});
    const auto expected =
        (*Session::Create(**graph, {first.name}, {result.name}))->Run({Tensor::FromVector<int32_t>(shape, {})});
    ASSERT_EQ(outputs.ok(), expected.ok()) << outputs.status() << expected.status();
    if (!outputs.ok()) continue;
    EXPECT_TRUE(CompareWithRecorded((*outputs)[0], (*expected)[0]).ok());
  }
}

}  // namespace
}  // namespace permafrost
