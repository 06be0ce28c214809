// Tests of transform_graph on failing disks, and of its verification.
#include "tools/transform_graph.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <sstream>

#include "absl/strings/match.h"
#include "io/model_file.h"
#include "tests/io/faulty_file_system.h"
#include "tests/shared_models.h"
#include "tests/tools/graph_from_text.h"
#include "tools/transform/verification.h"

namespace permafrost {
namespace {

TransformGraphOptions DigitsOptions() {
  TransformGraphOptions options;
  options.in_graph = DataFile("tests/models/digits/digits.pb");
  options.out_graph = testing::TempDir() + "/out.pb";
  options.transforms = "strip_unused_nodes";
  options.verify = "off";
  return options;
}

absl::Status Transform(const TransformGraphOptions& options, FileSystem& files) {
  std::ostringstream out, err;
  Console console{out, err};
  return TransformGraph(options, files, console);
}

void WriteOld(const std::string& path) {
  std::unique_ptr<FileWriter> writer = RealFileSystem().NewWriter(path).value();
  ASSERT_TRUE(writer->Append("old").ok());
  ASSERT_TRUE(writer->Commit().ok());
}

TEST(TransformGraph, AFullDiskLeavesTheOldOutput) {
  const TransformGraphOptions options = DigitsOptions();
  WriteOld(options.out_graph);
  FaultyFileSystem files;
  files.calls().LimitDisk(100000);
  const absl::Status status = Transform(options, files);
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << status;
  EXPECT_TRUE(absl::StrContains(status.message(), "out.pb")) << status;
  EXPECT_EQ(RealFileSystem().ReadFile(options.out_graph).value(), "old");
}

TEST(TransformGraph, EveryFailingCallIsAnErrorAndLeavesTheOldOutput) {
  const TransformGraphOptions options = DigitsOptions();
  ASSERT_TRUE(Transform(options, RealFileSystem()).ok());
  const std::string complete = RealFileSystem().ReadFile(options.out_graph).value();
  for (const Fault fault : {Fault::kOpen, Fault::kMap, Fault::kWrite, Fault::kSync, Fault::kRename}) {
    for (int nth = 0; nth < 100; ++nth) {
      WriteOld(options.out_graph);
      FaultyFileSystem files;
      files.calls().Fail(fault, nth, EIO);
      const absl::Status status = Transform(options, files);
      if (!files.calls().has_failed()) {
        EXPECT_TRUE(status.ok()) << status;
        EXPECT_GT(nth, 0) << "the call is never made";
        break;
      }
      // If mapping fails, the file may be read instead.
      if (status.ok()) continue;
      // The last call syncs the folder with the new name; at this point the new output exists, and is complete.
      const std::string content = RealFileSystem().ReadFile(options.out_graph).value();
      EXPECT_TRUE(content == "old" || (fault == Fault::kSync && content == complete))
          << static_cast<int>(fault) << " " << nth;
    }
  }
}

TEST(TransformGraph, AnOutputThatCannotBeWrittenIsSaidBeforeAnythingIsRead) {
  TransformGraphOptions options = DigitsOptions();
  options.in_graph = testing::TempDir() + "/no_such_model.pb";
  FaultyFileSystem files;
  files.calls().Fail(Fault::kOpen, 0, EACCES);
  const absl::Status status = Transform(options, files);
  EXPECT_EQ(status.code(), absl::StatusCode::kPermissionDenied) << status;
  EXPECT_TRUE(absl::StrContains(status.message(), "out.pb")) << status;
}

TEST(TransformGraph, SameInputSameFlagsSameBytes) {
  TransformGraphOptions options = DigitsOptions();
  options.transforms = "strip_unused_nodes round_weights quantize_weights obfuscate_names";
  ASSERT_TRUE(Transform(options, RealFileSystem()).ok());
  const std::string first = RealFileSystem().ReadFile(options.out_graph).value();
  ASSERT_TRUE(Transform(options, RealFileSystem()).ok());
  EXPECT_TRUE(RealFileSystem().ReadFile(options.out_graph).value() == first);
}

// A graph, the same graph after an edit, and the verdict of the verification.
class VerificationTest : public testing::Test {
 protected:
  void SetUp() override {
    before_ = GraphFromText("x = Placeholder()\nw = Const()\nm = Mul(x, w)\ny = Relu(m)\nz = Neg(m)");
    ASSERT_TRUE(before_->DeclareInterface({"x"}, {"y", "z"}).ok());
    after_ = before_->Clone();
  }

  absl::StatusOr<Verdict> Check() {
    return Verifier(*before_, SeededInputSets(*before_, before_->inputs(), 1, 2).value(), SessionOptions())
        .Check(*after_);
  }

  std::unique_ptr<Graph> before_, after_;
};

TEST_F(VerificationTest, EqualGraphsPassExactly) {
  const auto verdict = Check();
  ASSERT_TRUE(verdict.ok()) << verdict.status();
  EXPECT_TRUE(verdict->was_run);
  EXPECT_EQ(verdict->num_inputs, 2u);
  EXPECT_EQ(verdict->worst(), 0);
  EXPECT_TRUE(verdict->Passes(Allowance{}));
}

TEST_F(VerificationTest, ASmallErrorIsNoticed) {
  after_->Find("w")->SetAttr("value", AttrValue::OfTensor(Tensor::FromVector<float>({2}, {1, 2.0001f})));
  const auto verdict = Check();
  ASSERT_TRUE(verdict.ok()) << verdict.status();
  EXPECT_FALSE(verdict->Passes(Allowance{}));
  EXPECT_FALSE(verdict->Passes(Allowance{1e-6, false, ""}));
  EXPECT_TRUE(verdict->Passes(Allowance{1e-3, false, ""}));
  EXPECT_TRUE(verdict->Passes(Allowance{0, true, ""}));
}

TEST_F(VerificationTest, NumbersThatBecomeInfiniteAreWrongByAnyDeclaration) {
  after_->Find("w")->SetAttr(
      "value", AttrValue::OfTensor(Tensor::FromVector<float>({2}, {1, std::numeric_limits<float>::infinity()})));
  const auto verdict = Check();
  ASSERT_TRUE(verdict.ok()) << verdict.status();
  EXPECT_FALSE(verdict->Passes(Allowance{0, true, ""}));
}

TEST_F(VerificationTest, ARenamedOutputIsFollowed) {
  ASSERT_TRUE(after_->Rename(after_->Find("y"), "renamed").ok());
  const auto verdict = Check();
  ASSERT_TRUE(verdict.ok()) << verdict.status();
  EXPECT_EQ(verdict->outputs[0].name, "renamed");
  EXPECT_TRUE(verdict->Passes(Allowance{}));
}

// Graphs before and after a change of the batch.
class BatchVerificationTest : public VerificationTest {
 protected:
  // Shapes of the input before and after; the nodes are the same.
  void Rebatch(const Shape& before, const Shape& after) {
    before_ = GraphFromText("x = Placeholder()\nw = Const()\ny = Relu(x)\nz = Neg(x)\nc = Neg(w)");
    before_->Find("x")->SetAttr("shape", AttrValue::OfShape(before));
    ASSERT_TRUE(before_->DeclareInterface({"x"}, {"y", "z", "c"}).ok());
    after_ = before_->Clone();
    after_->Find("x")->SetAttr("shape", AttrValue::OfShape(after));
  }

  // Makes y read x with its rows in the opposite order.
  void ReverseRows() {
    Node* axis = after_->AddConst("axis", Tensor::FromVector<int32_t>({1}, {0}), after_->Find("x")).value();
    Node* reversed = after_->AddNode("reversed", Op::Named("ReverseV2")).value();
    reversed->SetAttr("T", AttrValue::Type(DType::kFloat));
    reversed->SetAttr("Tidx", AttrValue::Type(DType::kInt32));
    after_->AddInput(reversed, {after_->Find("x"), 0});
    after_->AddInput(reversed, {axis, 0});
    after_->SetInput(after_->Find("y"), 0, {reversed, 0});
  }

  bool Passes(const Allowance& allowance) {
    const auto verdict = Check();
    EXPECT_TRUE(verdict.ok()) << verdict.status();
    EXPECT_TRUE(verdict->was_run) << verdict->why_not;
    return verdict.ok() && verdict->Passes(allowance);
  }
};

TEST_F(BatchVerificationTest, ALargerBatchHasRowsOfSeveralSets) {
  Rebatch({1, 3}, {4, 3});
  EXPECT_TRUE(Passes(Allowance{}));
  ReverseRows();
  EXPECT_FALSE(Passes(Allowance{1e-3, false, ""}));
}

TEST_F(BatchVerificationTest, ASmallerBatchHasTheFirstRows) {
  Rebatch({4, 3}, {3, 3});
  EXPECT_TRUE(Passes(Allowance{}));
  after_->Find("z")->set_op(ops::kAbs);
  EXPECT_FALSE(Passes(Allowance{1e-3, false, ""}));
}

TEST_F(BatchVerificationTest, AnOpenBatchIsTriedWithTwiceTheRows) {
  Rebatch({1, 3}, {kUnknownDim, 3});
  EXPECT_TRUE(Passes(Allowance{}));
  ReverseRows();  // Makes no difference for one row.
  EXPECT_FALSE(Passes(Allowance{1e-3, false, ""}));
}

TEST_F(BatchVerificationTest, ABatchBeyondTheMemoryIsNotRun) {
  Rebatch({1, 3}, {int64_t{1} << 40, 3});
  const auto verdict = Check();
  ASSERT_TRUE(verdict.ok()) << verdict.status();
  EXPECT_FALSE(verdict->was_run);
  EXPECT_TRUE(absl::StrContains(verdict->why_not, "--max_memory")) << verdict->why_not;
}

TEST_F(VerificationTest, AnUnknownOpIsReportedNotPassedOver) {
  after_->Find("m")->set_op(Op::Named("Frobnicate"));
  const auto verdict = Check();
  ASSERT_TRUE(verdict.ok()) << verdict.status();
  EXPECT_FALSE(verdict->was_run);
  EXPECT_TRUE(absl::StrContains(verdict->why_not, "Frobnicate")) << verdict->why_not;
}

TEST_F(VerificationTest, AGraphThatNoLongerRunsIsAFailure) {
  after_->Find("w")->SetAttr("value", AttrValue::OfTensor(Tensor::FromVector<float>({3}, {1, 2, 3})));
  EXPECT_EQ(Check().status().code(), absl::StatusCode::kAborted);
}

TEST(DeclaredAllowance, AddsUp) {
  EXPECT_EQ(DeclaredAllowance({{"strip_unused_nodes", {}, false}}).why, "exact");
  const Allowance lossy = DeclaredAllowance(
      {{"strip_unused_nodes", {}, false}, {"round_weights", {}, false}, {"round_weights", {}, false}});
  EXPECT_TRUE(lossy.is_unlimited);
  EXPECT_EQ(lossy.why, "changes outputs: weights are rounded");
}

}  // namespace
}  // namespace permafrost
