// Tests of input files: patterns, names, batches.
#include "tools/model/model_inputs.h"

#include <gtest/gtest.h>

#include "absl/strings/match.h"
#include "io/formats/npy.h"
#include "tests/io/test_in_folder.h"
#include "tests/tools/graph_from_text.h"

namespace permafrost {
namespace {

class ModelInputsTest : public TestInFolder {
 protected:
  void SetUp() override {
    TestInFolder::SetUp();
    graph_ = GraphFromText("a = Placeholder()\nb = Placeholder()\nsum = Add(a, b)");
  }

  void Write(const std::string& name, const Tensor& tensor) {
    std::unique_ptr<FileWriter> writer = RealFileSystem().NewWriter(Path(name)).value();
    ASSERT_TRUE(WriteNpy(tensor, writer.get()).ok());
    ASSERT_TRUE(writer->Commit().ok());
  }

  absl::StatusOr<std::vector<InputSet>> Read(std::vector<std::string> pieces, std::vector<std::string> inputs,
                                             bool any_batch = false) {
    EXPECT_TRUE(graph_->DeclareInterface(inputs, {}).ok());
    return ReadInputSets(RealFileSystem(), pieces, *graph_, any_batch);
  }

  std::unique_ptr<Graph> graph_;
};

Tensor Pair(float x, float y) { return Tensor::FromVector<float>({2}, {x, y}); }

TEST_F(ModelInputsTest, EveryFileOfTheOnlyInputIsASet) {
  Write("2.npy", Pair(2, 2));
  Write("1.npy", Pair(1, 1));
  Write("other.txt", Pair(0, 0));
  const auto sets = Read({Path("?.npy")}, {"a"});
  ASSERT_TRUE(sets.ok()) << sets.status();
  ASSERT_EQ(sets->size(), 2u);
  EXPECT_EQ((*sets)[0][0], Pair(1, 1));
}

TEST_F(ModelInputsTest, FilesOfSeveralInputsAreNamedAndPaired) {
  for (const char* name : {"a1.npy", "a2.npy", "b1.npy", "b2.npy"}) Write(name, Pair(name[0], name[1]));
  const auto sets = Read({"b=" + Path("b*.npy"), "a=" + Path("a*.npy")}, {"a", "b"});
  ASSERT_TRUE(sets.ok()) << sets.status();
  ASSERT_EQ(sets->size(), 2u);
  EXPECT_EQ((*sets)[1][0], Pair('a', '2'));
  EXPECT_EQ((*sets)[1][1], Pair('b', '2'));
}

TEST_F(ModelInputsTest, SaysWhatIsWrong) {
  Write("good.npy", Pair(1, 2));
  Write("long.npy", Tensor::FromVector<float>({3}, {1, 2, 3}));
  Write("ints.npy", Tensor::FromVector<int32_t>({2}, {1, 2}));
  const auto error = [&](std::vector<std::string> pieces, std::vector<std::string> inputs) {
    return std::string(Read(std::move(pieces), std::move(inputs)).status().message());
  };
  EXPECT_TRUE(absl::StrContains(error({Path("good.npy")}, {"a", "b"}), "expected INPUT=FILE"));
  EXPECT_TRUE(absl::StrContains(error({"a=" + Path("good.npy")}, {"a", "b"}), "no file is given for input 'b'"));
  EXPECT_TRUE(absl::StrContains(error({"c=x"}, {"a", "b"}), "'c' is not an input"));
  EXPECT_TRUE(absl::StrContains(error({Path("*.nothing")}, {"a"}), "no file matches"));
  EXPECT_TRUE(absl::StrContains(error({Path("long.npy")}, {"a"}), "has shape [3], input 'a' expects [2]"));
  EXPECT_TRUE(absl::StrContains(error({Path("ints.npy")}, {"a"}), "holds int32, input 'a' expects float"));
  EXPECT_TRUE(Read({Path("long.npy")}, {"a"}, /*any_batch=*/true).ok());
}

TEST(SplitBatches, CutsRows) {
  const Tensor rows = Tensor::FromVector<float>({5, 2}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9});
  const auto pieces = SplitBatches({{rows}}, 2);
  ASSERT_TRUE(pieces.ok()) << pieces.status();
  ASSERT_EQ(pieces->size(), 3u);
  EXPECT_EQ((*pieces)[2][0], Tensor::FromVector<float>({1, 2}, {8, 9}));
  EXPECT_FALSE(SplitBatches({{rows, Pair(1, 2)}}, 2).ok());
  EXPECT_FALSE(SplitBatches({{rows}}, 0).ok());
}

TEST(SplitBatches, CutsRowsOfStrings) {
  const auto pieces = SplitBatches({{Tensor::FromStrings({3, 2}, {"a", "b", "c", "d", "e", "f"})}}, 2);
  ASSERT_TRUE(pieces.ok()) << pieces.status();
  ASSERT_EQ(pieces->size(), 2u);
  EXPECT_EQ((*pieces)[0][0], Tensor::FromStrings({2, 2}, {"a", "b", "c", "d"}));
  EXPECT_EQ((*pieces)[1][0], Tensor::FromStrings({1, 2}, {"e", "f"}));
}

TEST(SplitBatches, ScalarsGoWithEveryPiece) {
  const Tensor rows = Tensor::FromVector<float>({3, 1}, {0, 1, 2}), scalar = Tensor::Scalar<float>(7);
  const auto pieces = SplitBatches({{scalar, rows}, {scalar, scalar}}, 2);
  ASSERT_TRUE(pieces.ok()) << pieces.status();
  ASSERT_EQ(pieces->size(), 3u);
  EXPECT_EQ((*pieces)[1][0], scalar);
  EXPECT_EQ((*pieces)[1][1], Tensor::FromVector<float>({1, 1}, {2}));
  EXPECT_EQ((*pieces)[2][1], scalar);
}

TEST(MatchesPattern, KnowsStarsAndQuestionMarks) {
  EXPECT_TRUE(MatchesPattern("input_12.npy", "*_*?.npy"));
  EXPECT_TRUE(MatchesPattern("aab", "*ab"));
  EXPECT_TRUE(MatchesPattern("", "**"));
  EXPECT_FALSE(MatchesPattern("a.npyx", "*.npy"));
  EXPECT_FALSE(MatchesPattern("", "?"));
}

}  // namespace
}  // namespace permafrost
