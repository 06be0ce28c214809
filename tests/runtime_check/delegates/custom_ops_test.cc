// Tests of kernels from shared libraries: the example of the guide, edge cases of the interface, and faulty libraries.
#include "runtime_check/custom_ops/custom_ops.h"

#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime_check/session.h"
#include "tests/runtime_check/arithmetic_delegate.h"
#include "tests/runtime_check/small_graph.h"

namespace permafrost {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

constexpr char kExample[] = "docs/examples/leaky_clip.so";

std::string Library(const std::string& name) {
  return absl::StrCat("tests/runtime_check/delegates/libraries/ops_", name, ".so");
}

SessionOptions With(const std::string& path) {
  SessionOptions options;
  const auto ops = LoadCustomOps({path});
  EXPECT_TRUE(ops.ok()) << ops.status();
  if (ops.ok()) options.kernel_lookup = ops->kernels;
  return options;
}

std::unique_ptr<Session> Make(const SmallGraph& small, const std::vector<std::string>& feeds,
                              const std::vector<std::string>& fetches, const SessionOptions& options) {
  auto session = Session::Create(small.graph(), feeds, fetches, options);
  EXPECT_TRUE(session.ok()) << session.status();
  return session.ok() ? *std::move(session) : nullptr;
}

SmallGraph* LeakyClip(AttrValue alpha) {
  auto* small = new SmallGraph;
  small->Placeholder("x", DType::kFloat, {kUnknownDim});
  small->Add("clip", "LeakyClip", {"x"}, {{"T", AttrValue::Type(DType::kFloat)}, {"alpha", std::move(alpha)}});
  small->Float("relu", "Relu", {"clip"});
  return small;
}

TEST(CustomOpsTest, TheExampleRunsAnOwnOp) {
  const std::unique_ptr<SmallGraph> small(LeakyClip(AttrValue::Float(0.5f)));
  for (const int num_threads : {1, 2}) {
    SessionOptions options = With(kExample);
    options.num_threads = num_threads;
    const auto session = Make(*small, {"x"}, {"clip", "relu"}, options);
    for (int round = 0; round < 2; ++round) {
      auto outputs = session->Run({Floats({3}, {-4, 2, 8})});
      ASSERT_TRUE(outputs.ok()) << outputs.status();
      EXPECT_THAT(ToVector((*outputs)[0]), ElementsAre(-2, 2, 6));
      EXPECT_THAT(ToVector((*outputs)[1]), ElementsAre(0, 2, 6));
      ASSERT_THAT(session->report().custom, SizeIs(1)) << "the built-in Relu serves small tensors";
      EXPECT_EQ(session->report().custom[0].node, "clip");
      EXPECT_EQ(session->report().custom[0].op, "LeakyClip");
      EXPECT_EQ(session->report().custom[0].kernel, "as 'docs/examples/leaky_clip.so' computes it");
      outputs = session->Run({Floats({100'000}, std::vector<float>(100'000, -2))});
      ASSERT_TRUE(outputs.ok()) << outputs.status();
      EXPECT_THAT(ToVector((*outputs)[0]), Each(-1));
      EXPECT_THAT(ToVector((*outputs)[1]), Each(0));
      EXPECT_THAT(session->report().custom, SizeIs(2));
    }
  }
}

// A custom operator of a TensorFlow Lite model, as its reader adds it.
std::unique_ptr<SmallGraph> CarriedClip(const std::string& options) {
  auto small = std::make_unique<SmallGraph>();
  small->Placeholder("x", DType::kFloat, {kUnknownDim});
  small->Add("clip", "TFLite:LeakyClip", {"x"},
             {{"Tin", AttrValue::TypeList({DType::kFloat})},
              {"Tout", AttrValue::TypeList({DType::kFloat})},
              {"model", AttrValue::String("not read by a run")},
              {"custom_options", AttrValue::String(options)},
              {"operands", AttrValue::IntList({0})}});
  return small;
}

TEST(CustomOpsTest, LibrariesRunCarriedOperators) {
  const float numbers[] = {0.25F, 3};
  const std::string options(reinterpret_cast<const char*>(numbers), sizeof numbers);
  const std::unique_ptr<SmallGraph> small = CarriedClip(options);
  const auto session = Make(*small, {"x"}, {"clip"}, With(kExample));
  ASSERT_NE(session, nullptr);
  const auto outputs = session->Run({Floats({3}, {-4, 2, 8})});
  ASSERT_TRUE(outputs.ok()) << outputs.status();
  EXPECT_THAT(ToVector((*outputs)[0]), ElementsAre(-1, 2, 3));
  EXPECT_EQ(Make(*CarriedClip("abc"), {"x"}, {"clip"}, With(kExample))->Run({Floats({1}, {1})}).status().message(),
            "node 'clip' (TFLite:LeakyClip): the kernel of 'docs/examples/leaky_clip.so': custom_options has 3 bytes, "
            "expected 8");
  EXPECT_FALSE(Session::Create(small->graph(), {"x"}, {"clip"}).ok());
}

TEST(CustomOpsTest, ErrorsNameNodeAndLibrary) {
  const std::unique_ptr<SmallGraph> small(LeakyClip(AttrValue::Float(2)));
  EXPECT_EQ(
      Make(*small, {"x"}, {"clip"}, With(kExample))->Run({Floats({1}, {1})}).status().message(),
      "node 'clip' (LeakyClip): the kernel of 'docs/examples/leaky_clip.so': attr 'alpha' must be a number from 0 to "
      "1");
  EXPECT_EQ(Session::Create(small->graph(), {"x"}, {"clip"}).status().message(),
            "no kernel for op 'LeakyClip': node 'clip'");
}

// Without a built-in kernel, a node that the library refuses cannot run.
TEST(CustomOpsTest, WhatTheLibraryRefusesNeedsAnotherKernel) {
  SmallGraph small;
  small.Placeholder("x", DType::kDouble, {2});
  small.Add("clip", "LeakyClip", {"x"}, {{"T", AttrValue::Type(DType::kDouble)}, {"alpha", AttrValue::Float(0)}});
  small.Add("relu", "Relu", {"x"}, {{"T", AttrValue::Type(DType::kDouble)}});
  const Tensor x = Tensor::FromVector<double>({2}, {-1, 1});
  EXPECT_EQ(Make(small, {"x"}, {"clip"}, With(kExample))->Run({x}).status().message(),
            "node 'clip' (LeakyClip): the kernel of 'docs/examples/leaky_clip.so': takes float only");
  const auto outputs = Make(small, {"x"}, {"relu"}, With(kExample))->Run({x});
  ASSERT_TRUE(outputs.ok()) << outputs.status();
  EXPECT_EQ((*outputs)[0].elements<double>()[0], 0);
  EXPECT_EQ((*outputs)[0].elements<double>()[1], 1);
}

TEST(CustomOpsTest, ReplacementsMayBeLeftOut) {
  const auto ops = LoadCustomOps({kExample});
  ASSERT_TRUE(ops.ok()) << ops.status();
  EXPECT_NE(ops->kernels(ops::kRelu), FindKernel(ops::kRelu));
  EXPECT_EQ(ops->kernels_of_new_ops(ops::kRelu), FindKernel(ops::kRelu));
  EXPECT_NE(ops->kernels_of_new_ops(Op::Named("LeakyClip")), nullptr);
  EXPECT_EQ(ops->kernels(ops::kAddV2), FindKernel(ops::kAddV2));
  EXPECT_EQ(ops->kernels(Op::Named("NobodyKnows")), nullptr);
}

// The library has priority over the delegate, but only for nodes that it accepts.
TEST(CustomOpsTest, GoBeforeADelegate) {
  SmallGraph small;
  small.Placeholder("x", DType::kFloat, {kUnknownDim});
  small.Float("relu", "Relu", {"x"});
  small.Float("neg", "Neg", {"relu"});
  SessionOptions options = With(kExample);
  options.delegate = std::make_shared<ArithmeticDelegate>();
  const auto session = Make(small, {"x"}, {"neg"}, options);
  ASSERT_TRUE(session->Run({Floats({1000}, std::vector<float>(1000, 2))}).ok());
  ASSERT_THAT(session->report().delegation.left, SizeIs(1));
  EXPECT_EQ(session->report().delegation.left[0].reason, "a kernel of the user's computes it");
  ASSERT_TRUE(session->Run({Floats({1}, {2})}).ok());
  EXPECT_THAT(session->report().delegation.left, IsEmpty());
  EXPECT_THAT(session->report().custom, IsEmpty());
}

Node* AddAll(SmallGraph* small, const std::vector<std::string>& inputs) {
  return small->Add(
      "all", "AddAll", inputs,
      {{"T", AttrValue::Type(DType::kFloat)}, {"N", AttrValue::Int(static_cast<int64_t>(inputs.size()))}});
}

TEST(CustomOpsTest, ManyInputsConstantsAndSeveralOutputs) {
  SmallGraph small;
  small.Placeholder("x", DType::kFloat, {2});
  small.Const("c", Floats({2}, {10, 20}));
  AddAll(&small, {"x", "c", "x"});
  small.Float("neg", "Neg", {"all"});
  const auto session = Make(small, {"x"}, {"neg", "all:1"}, With(Library("good")));
  for (int round = 0; round < 3; ++round) {
    const auto outputs = session->Run({Floats({2}, {1, 2})});
    ASSERT_TRUE(outputs.ok()) << outputs.status();
    EXPECT_THAT(ToVector((*outputs)[0]), ElementsAre(-12, -24));
    EXPECT_EQ((*outputs)[1].shape(), Shape({3}));
    EXPECT_EQ((*outputs)[1].elements<int32_t>()[2], 1) << "one node is prepared, and no more are alive";
  }
}

TEST(CustomOpsTest, NodesThatDoNotFitTheSignatureAreRefused) {
  SmallGraph small;
  small.Placeholder("x", DType::kFloat, {2});
  AddAll(&small, {"x", "x"})->SetAttr("N", AttrValue::Int(3));
  const SessionOptions options = With(Library("good"));
  EXPECT_EQ(Session::Create(small.graph(), {"x"}, {"all"}, options).status().message(),
            "node 'all' (AddAll): found 2 inputs, expected 3");
  small.mutable_graph().Find("all")->SetAttr("N", AttrValue::Int(2));
  small.mutable_graph().Find("all")->SetAttr("T", AttrValue::Type(DType::kInt32));
  EXPECT_THAT(std::string(Session::Create(small.graph(), {"x"}, {"all"}, options).status().message()),
              HasSubstr("input 0 ('x') is float, expected int32"));
}

TEST(CustomOpsTest, AnInputOfAnOwnOpMayBeFed) {
  SmallGraph small;
  small.Add("unknown", "NobodyKnows", {}, {});
  AddAll(&small, {"unknown"});
  const auto session = Make(small, {"unknown"}, {"all"}, With(Library("good")));
  EXPECT_EQ(session->Inputs()[0].dtype, DType::kFloat);
  EXPECT_THAT(ToVector((*session->Run({Floats({1}, {5})}))[0]), ElementsAre(5));
}

// The shape is known if the count is constant; otherwise it is inferred again during the run.
TEST(CustomOpsTest, ShapesThatFollowFromValues) {
  SmallGraph small;
  small.Placeholder("x", DType::kFloat, {});
  small.Placeholder("n", DType::kInt64, {});
  small.Const("three", Tensor::Scalar<int64_t>(3));
  small.Add("known", "FilledTimes", {"x", "three"}, {});
  small.Add("told", "FilledTimes", {"x", "n"}, {});
  const auto session = Make(small, {"x", "n"}, {"known", "told"}, With(Library("good")));
  for (const int64_t count : {2, 0, 5, 2}) {
    const auto outputs = session->Run({Floats({}, {7}), Tensor::Scalar<int64_t>(count)});
    ASSERT_TRUE(outputs.ok()) << outputs.status();
    EXPECT_THAT(ToVector((*outputs)[0]), ElementsAre(7, 7, 7));
    EXPECT_EQ((*outputs)[1].shape(), Shape({count}));
    EXPECT_THAT(ToVector((*outputs)[1]), Each(7));
  }
  EXPECT_THAT(std::string(session->Run({Floats({}, {7}), Tensor::Scalar<int64_t>(-1)}).status().message()),
              HasSubstr("ops_good.so': a negative count"));
  const auto outputs = session->Run({Floats({}, {7}), Tensor::Scalar<int64_t>(1)});
  EXPECT_TRUE(outputs.ok()) << outputs.status();
}

TEST(CustomOpsTest, StringsStayAway) {
  SmallGraph small;
  small.Placeholder("x", DType::kString, {2});
  AddAll(&small, {"x"})->SetAttr("T", AttrValue::Type(DType::kString));
  const auto session = Make(small, {"x"}, {"all:1"}, With(Library("good")));
  EXPECT_THAT(std::string(session->Run({Tensor::FromStrings({2}, {"a", "b"})}).status().message()),
              HasSubstr("a library sees no tensors of type string"));
}

TEST(CustomOpsTest, FaultsAtRunAreErrors) {
  SmallGraph small;
  small.Placeholder("x", DType::kFloat, {2});
  AddAll(&small, {"x"});
  const auto error = [&](const std::string& library) {
    return std::string(
        Make(small, {"x"}, {"all"}, With(Library(library)))->Run({Floats({2}, {1, 2})}).status().message());
  };
  EXPECT_THAT(error("fails_to_run"), HasSubstr("node 'all' (AddAll): the device is gone"));
  EXPECT_THAT(error("fails_to_prepare"), HasSubstr("ops_fails_to_prepare.so': does not feel like it"));
  EXPECT_THAT(error("no_shape"), HasSubstr("infer_shapes gives output 1 no shape"));
  EXPECT_THAT(error("huge"), HasSubstr("node 'all' (AddAll): the kernel of "));
}

TEST(CustomOpsTest, RefusesLibrariesThatMakeNoSense) {
  const auto check = [](const std::vector<std::string>& paths, absl::StatusCode code, const std::string& message) {
    const absl::Status status = LoadCustomOps(paths).status();
    EXPECT_EQ(status.code(), code) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(message));
  };
  using Code = absl::StatusCode;
  check({"no/such.so"}, Code::kNotFound, "'no/such.so': no such file");
  check({"docs/examples/add_relu_delegate.so"}, Code::kInvalidArgument,
        "'docs/examples/add_relu_delegate.so' does not export 'permafrost_custom_ops_entry'");
  check({Library("another_version")}, Code::kFailedPrecondition, "is built for version 2.0 of the interface");
  check({Library("fails")}, Code::kInternal, "permafrost_custom_ops_entry failed: not today");
  check({Library("no_kernels")}, Code::kInternal, "permafrost_custom_ops_entry gives no 'kernels'");
  check({Library("nameless")}, Code::kInternal, "kernel 0 has no 'op'");
  check({Library("no_shapes")}, Code::kInternal, "the kernel of op 'AddAll': it has no 'infer_shapes'");
  check({Library("no_prepare")}, Code::kInternal, "the kernel of op 'AddAll': it has no 'prepare'");
  check({Library("bad_argument")}, Code::kInternal,
        "found the argument 'x T', expected one like 'x: float', 'x: T', 'x: N * T' or 'x: list(T)'");
  check({Library("unknown_without_arguments")}, Code::kInternal, "it has no 'inputs', and Permafrost does not know");
  check({Library("known_with_arguments")}, Code::kInternal, "which are NULL for an op that Permafrost knows");
  check({Library("replaces_reshape")}, Code::kInvalidArgument,
        "the kernel of op 'Reshape': it cannot be replaced: the session itself does what it does");
  check({Library("replaces_const")}, Code::kInvalidArgument, "it cannot be replaced");
  check({Library("good"), Library("huge")}, Code::kInvalidArgument,
        "ops_huge.so': the kernel of op 'AddAll': 'tests/runtime_check/delegates/libraries/ops_good.so' offers it "
        "already");
}

}  // namespace
}  // namespace permafrost
