// Compares the opencl delegate with the reference kernels on small graphs, with and without copies to the device. Tests
// that need a device are skipped where there is none; PoCL makes one of the processor.
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime_check/delegates/delegate_registry.h"
#include "runtime_check/delegates/onednn/loops.h"
#include "runtime_check/delegates/opencl/opencl_delegate.h"
#include "runtime_check/delegates/opencl/step_code.h"
#include "tests/runtime_check/delegates/conformance.h"
#include "tests/runtime_check/delegates/delegate_run.h"
#include "tests/runtime_check/delegates/image_graph.h"

namespace permafrost {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

// The parameter is OpenClOptions::copies_buffers.
class OpenClTest : public testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    OpenClOptions options;
    options.copies_buffers = GetParam();
    const auto made = MakeOpenClDelegate(options);
    if (absl::IsUnavailable(made.status())) GTEST_SKIP() << made.status();
    ASSERT_TRUE(made.ok()) << made.status();
    delegate_ = *made;
  }

  // Compares with the reference kernels, and returns the pieces. Expects one partition with all nodes.
  std::vector<std::string> Pieces(const Graph& graph, const std::vector<Feed>& feeds,
                                  const std::vector<std::string>& fetches) {
    const DelegationReport report = ExpectSame(delegate_, graph, feeds, fetches);
    EXPECT_THAT(report.partitions, SizeIs(1));
    for (const DelegationReport::Left& left : report.left) ADD_FAILURE() << left.node << ": " << left.reason;
    EXPECT_EQ(report.failure, "");
    return report.partitions.empty() ? std::vector<std::string>() : report.partitions[0].pieces;
  }

  std::shared_ptr<const Delegate> delegate_;
};

TEST_P(OpenClTest, FusesPadStepsAndResidualIntoConvolution) {
  ImageGraph graph({2, 9, 7, 6});
  graph.Const("paddings", Tensor::FromVector<int32_t>({4, 2}, {0, 0, 1, 1, 1, 1, 0, 0}));
  graph.Float("pad", "Pad", {"x", "paddings"});
  graph.Window("conv", "Conv2D", "pad", {3, 3, 6, 6}, 1, 1, "VALID");
  graph.Weights("b", {6});
  graph.Float("bias", "BiasAdd", {"conv", "b"});
  graph.Float("relu", "Relu6", {"bias"});
  graph.Float("residual", "AddV2", {"relu", "x"});
  graph.Float("swish", "Sigmoid", {"residual"});
  graph.Float("gated", "Mul", {"residual", "swish"});
  EXPECT_THAT(Pieces(graph.graph(), {{"x", SomeFloats({2, 9, 7, 6}, 1)}}, {"gated"}),
              ElementsAre("conv: convolution 3x3 + add + clip + add + swish (convolution)"));
}

TEST_P(OpenClTest, OperandsOfStepsMayMeetInAnyWay) {
  const Shape shape = {3, 4, 5, 6};
  ImageGraph graph(shape);
  graph.Weights("filter", {1, 1, 6, 6});
  Node* conv = graph.Float("conv", "Conv2D", {"x", "filter"});
  conv->SetAttr("strides", AttrValue::IntList({1, 1, 1, 1}));
  conv->SetAttr("padding", AttrValue::String("SAME"));
  std::vector<Feed> feeds = {{"x", SomeFloats(shape, 1)}};
  std::string last = "conv";
  uint32_t seed = 1;
  for (const Shape& other : {Shape{3, 4, 5, 6}, Shape{6}, Shape{1}, Shape{3, 1, 1, 6}, Shape{3, 4, 5, 1}}) {
    const std::string name = absl::StrCat("y", ++seed);
    graph.Placeholder(name, DType::kFloat, other);
    feeds.push_back({name, SomeFloats(other, seed)});
    graph.Float(name + "/sum", "AddV2", {last, name});
    last = name + "/sum";
  }
  EXPECT_THAT(Pieces(graph.graph(), feeds, {last}),
              ElementsAre("conv: convolution 1x1 + add + add + add + add + add (matrix)"));
}

TEST_P(OpenClTest, ComputesAttentionWithMask) {
  SmallGraph graph;
  std::vector<Feed> feeds;
  const auto feed = [&](const std::string& name, const Shape& shape, uint32_t seed) {
    graph.Placeholder(name, DType::kFloat, shape);
    feeds.push_back({name, SomeFloats(shape, seed)});
  };
  feed("q", {2, 3, 7, 5}, 1);
  feed("k", {2, 3, 9, 5}, 2);
  feed("v", {2, 3, 9, 6}, 3);
  feed("mask", {2, 1, 7, 9}, 4);
  const auto product = [&](const std::string& name, const std::string& a, const std::string& b, bool adj_y) {
    Node* node = graph.Float(name, "BatchMatMulV2", {a, b});
    node->SetAttr("adj_x", AttrValue::Bool(false));
    node->SetAttr("adj_y", AttrValue::Bool(adj_y));
  };
  product("scores", "q", "k", true);
  graph.Const("scale", Tensor::Scalar<float>(0.4f));
  graph.Float("scaled", "Mul", {"scores", "scale"});
  graph.Float("masked", "AddV2", {"scaled", "mask"});
  graph.Float("softmax", "Softmax", {"masked"});
  product("result", "softmax", "v", false);
  EXPECT_THAT(Pieces(graph.graph(), feeds, {"result"}),
              ElementsAre("result: attention, scores (product)", "result: attention, probabilities (masked_softmax)",
                          "result: attention (product)"));
}

TEST_P(OpenClTest, FindsLayerNormalisation) {
  ImageGraph graph({4, 77});
  graph.Ints("axis", {-1});
  graph.Float("mean", "Mean", {"x", "axis"})->SetAttr("keep_dims", AttrValue::Bool(true));
  graph.Float("centred", "Sub", {"x", "mean"});
  graph.Float("square", "Square", {"centred"});
  graph.Float("variance", "Mean", {"square", "axis"})->SetAttr("keep_dims", AttrValue::Bool(true));
  graph.Const("epsilon", Tensor::Scalar<float>(1e-3f));
  graph.Float("sum", "AddV2", {"variance", "epsilon"});
  graph.Float("scale", "Rsqrt", {"sum"});
  graph.Float("normal", "Mul", {"centred", "scale"});
  graph.Weights("gamma", {77});
  graph.Float("result", "Mul", {"normal", "gamma"});
  EXPECT_THAT(Pieces(graph.graph(), {{"x", SomeFloats({4, 77}, 1)}}, {"result"}),
              ElementsAre("result: layer normalisation (normalize_rows)"));
}

// The time of a run is divided into kernels, copies, waiting of the device, and the host.
TEST_P(OpenClTest, ProfilesByEvents) {
  ImageGraph graph({1, 40, 40, 16});
  graph.Convolution("conv", "x", {3, 3, 16, 32});
  graph.Float("softmax", "Softmax", {"conv"});
  std::map<std::string, absl::Duration> pieces;
  SessionOptions options;
  options.delegate = AlwaysWorthwhile(delegate_);
  options.on_piece = [&](absl::string_view name, absl::Duration duration) {
    EXPECT_GE(duration, absl::ZeroDuration()) << name;
    pieces[std::string(name)] += duration;
  };
  const auto session = Session::Create(graph.graph(), {"x"}, {"softmax"}, options);
  ASSERT_TRUE(session.ok()) << session.status();
  const Tensor input = SomeFloats({1, 40, 40, 16}, 1);
  ASSERT_TRUE((*session)->Run({input}).ok());
  pieces.clear();
  const absl::Time start = absl::Now();
  ASSERT_TRUE((*session)->Run({input}).ok());
  const absl::Duration duration = absl::Now() - start;
  std::vector<std::string> names;
  absl::Duration sum;
  for (const auto& [name, each] : pieces) {
    names.push_back(name);
    sum += each;
  }
  EXPECT_LE(sum, duration);
  std::vector<std::string> expected = {"conv: convolution 3x3 (convolution)", "softmax: softmax (softmax)",
                                       "host: buffers and calls", "queue: the device waits"};
  if (GetParam()) expected.insert(expected.end(), {"copies to the device", "copies from the device"});
  EXPECT_THAT(names, testing::UnorderedElementsAreArray(expected));
  EXPECT_GT(pieces["conv: convolution 3x3 (convolution)"], absl::ZeroDuration());
}

TEST_P(OpenClTest, RefusesIndicesOutOfBounds) {
  SmallGraph graph;
  graph.Placeholder("table", DType::kFloat, {5, 40});
  graph.Placeholder("indices", DType::kInt32, {3});
  graph.Add("gather", "Gather", {"table", "indices"},
            {{"Tparams", AttrValue::Type(DType::kFloat)}, {"Tindices", AttrValue::Type(DType::kInt32)}});
  graph.Float("neg", "Neg", {"gather"});
  const Tensor table = SomeFloats({5, 40}, 1);
  Pieces(graph.graph(), {{"table", table}, {"indices", Tensor::FromVector<int32_t>({3}, {4, 0, 2})}}, {"neg"});
  const auto session = MakeSession(AlwaysWorthwhile(delegate_), graph.graph(), {"table", "indices"}, {"neg"}, 1);
  ASSERT_TRUE(session.ok()) << session.status();
  for (const int32_t index : {5, -1, std::numeric_limits<int32_t>::max()}) {
    EXPECT_FALSE((*session)->Run({table, Tensor::FromVector<int32_t>({3}, {4, index, 2})}).ok());
  }
  EXPECT_THAT((*session)->report().delegation.failure, HasSubstr("index 5 at position 1, expected 0 to 4"));
}

// Weights that several nodes read are kept once.
TEST_P(OpenClTest, SharesWeights) {
  ImageGraph graph({1, 8, 8, 16});
  graph.Weights("filter", {3, 3, 16, 16});
  const auto convolution = [&](const std::string& name, const std::string& input) {
    Node* node = graph.Float(name, "Conv2D", {input, "filter"});
    node->SetAttr("strides", AttrValue::IntList({1, 1, 1, 1}));
    node->SetAttr("padding", AttrValue::String("SAME"));
  };
  convolution("a", "x");
  convolution("b", "x");
  const DelegationReport report =
      ExpectSame(delegate_, graph.graph(), {{"x", SomeFloats({1, 8, 8, 16}, 1)}}, {"a", "b"});
  ASSERT_THAT(report.partitions, SizeIs(1));
  EXPECT_LT(report.partitions[0].constant_bytes, 3 * 3 * 16 * 16 * 4 * 3 / 2);
}

// The recorded cases, which RegisteredDelegateTest runs with the default options.
TEST_P(OpenClTest, AgreesWithTensorFlow) {
  if (!GetParam()) return;
  ConformanceOptions options;
  options.thread_counts = {1};
  for (const std::string family : {"convolution", "matrix_products", "movement", "pooling", "reductions", "resize"}) {
    ConformanceReport report;
    const absl::Status status = RunConformance(delegate_, family, options, &report);
    ASSERT_TRUE(status.ok()) << status;
    EXPECT_TRUE(report.failures.empty()) << family << "\n" << absl::StrJoin(report.failures, "\n");
  }
}

INSTANTIATE_TEST_SUITE_P(, OpenClTest, testing::Bool(),
                         [](const auto& info) { return info.param ? "Copies" : "SharesMemory"; });

TEST(OpenClLibraryTest, IsUnavailableWithoutDriver) {
  OpenClOptions options;
  options.loader = "libno-such-driver.so.1";
  const auto made = MakeOpenClDelegate(options);
  EXPECT_TRUE(absl::IsUnavailable(made.status())) << made.status();
  EXPECT_THAT(made.status().ToString(), HasSubstr("libno-such-driver.so.1"));
  options.loader = "libm.so.6";
  EXPECT_THAT(MakeOpenClDelegate(options).status().ToString(),
              AllOf(HasSubstr("libm.so.6: found no function clGetPlatformIDs"), HasSubstr("OpenCL 1.2")));
}

TEST(OpenClRegistryTest, GpuIsAnAlias) {
  ASSERT_NE(FindDelegateInfo("gpu"), nullptr);
  EXPECT_EQ(FindDelegateInfo("gpu")->name, "opencl");
  EXPECT_EQ(MakeDelegate("gpu", {}).ok(), MakeDelegate("opencl", {}).ok());
}

TEST(OpenClStepsTest, EveryOperationHasAFunction) {
  const std::string text = opencl::ProgramOf("");
  for (int op = 0; op <= static_cast<int>(onednn::LoopOp::kPrelu); ++op) {
    EXPECT_THAT(text, HasSubstr(absl::StrCat("STEP(", onednn::NameOf(static_cast<onednn::LoopOp>(op)), ",")));
  }
}

// Numbers are in tables, so chains of equal operations are one program.
TEST(OpenClStepsTest, EqualChainsAreOneProgram) {
  const auto program = [](float bound) {
    onednn::Step clip(Shape{4, 4});
    clip.op = onednn::LoopOp::kClip;
    clip.beta = bound;
    clip.value = clip.result = 7;
    opencl::Constants constants;
    opencl::Launch launch;
    return opencl::ProgramWithSteps("matrix.cl", {clip}, onednn::Rows(Shape{4, 4}), 1, &constants, &launch);
  };
  EXPECT_EQ(program(6), program(3));
  EXPECT_THAT(program(6), HasSubstr("op_clip("));
}

}  // namespace
}  // namespace permafrost
