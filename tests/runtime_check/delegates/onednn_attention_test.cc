// Tests the ops of attention networks in the onednn delegate, by the pieces of each graph and against the reference
// kernels over odd shapes.
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime_check/delegates/onednn/onednn_delegate.h"
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

class OneDnnAttentionTest : public testing::Test, public SmallGraph {
 protected:
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

INSTANTIATE_TEST_SUITE_P(
    Equations, OneDnnEinsumTest,
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
                    EinsumCase{"a,a->", {13}, {13}, ": product"}, EinsumCase{"a,b->ab", {13}, {9}, ": product"},
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

}  // namespace
}  // namespace permafrost
