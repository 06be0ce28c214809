// Tests of the session on small graphs: results, errors, and ownership of memory.
#include "runtime_check/session.h"

#include <algorithm>
#include <cstring>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime_check/threads/thread_pool.h"
#include "tests/runtime_check/small_graph.h"

namespace permafrost {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::unique_ptr<Session> Make(const SmallGraph& small, const std::vector<std::string>& feeds,
                              const std::vector<std::string>& fetches, SessionOptions options = {}) {
  auto session = Session::Create(small.graph(), feeds, fetches, std::move(options));
  EXPECT_TRUE(session.ok()) << session.status();
  return session.ok() ? *std::move(session) : nullptr;
}

absl::Status CreateError(const SmallGraph& small, const std::vector<std::string>& feeds,
                         const std::vector<std::string>& fetches, SessionOptions options = {}) {
  return Session::Create(small.graph(), feeds, fetches, std::move(options)).status();
}

std::vector<float> RunOne(Session* session, const std::vector<Tensor>& feeds) {
  const auto outputs = session->Run(feeds);
  EXPECT_TRUE(outputs.ok()) << outputs.status();
  return outputs.ok() ? ToVector((*outputs)[0]) : std::vector<float>();
}

// (x + 1) * 2
SmallGraph* Affine() {
  auto* small = new SmallGraph;
  small->Placeholder("x", DType::kFloat, {kUnknownDim});
  small->Const("one", Floats({}, {1}));
  small->Const("two", Floats({}, {2}));
  small->Float("add", "AddV2", {"x", "one"});
  small->Float("mul", "Mul", {"add", "two"});
  return small;
}

TEST(SessionTest, RunsAndReplansForNewShapes) {
  const std::unique_ptr<SmallGraph> small(Affine());
  const auto session = Make(*small, {"x"}, {"mul"});
  EXPECT_THAT(RunOne(session.get(), {Floats({2}, {1, 2})}), ElementsAre(4, 6));
  EXPECT_THAT(RunOne(session.get(), {Floats({3}, {0, 1, 2})}), ElementsAre(2, 4, 6));
  EXPECT_THAT(RunOne(session.get(), {Floats({0}, {})}), ElementsAre());
}

TEST(SessionTest, FeedsAndFetchesInnerNodes) {
  const std::unique_ptr<SmallGraph> small(Affine());
  EXPECT_THAT(RunOne(Make(*small, {"add"}, {"mul"}).get(), {Floats({1}, {5})}), ElementsAre(10));
  EXPECT_THAT(RunOne(Make(*small, {"x:0", "two"}, {"mul:0"}).get(), {Floats({1}, {5}), Floats({1}, {3})}),
              ElementsAre(18));
}

TEST(SessionTest, FetchesFeedsConstantsAndDuplicates) {
  SmallGraph small;
  small.Placeholder("x", DType::kFloat, {2});
  small.Float("same", "Identity", {"x"});
  small.Const("c", Floats({1}, {7}));
  small.Float("neg", "Neg", {"x"});
  small.Float("neg_same", "Identity", {"neg"});
  const auto session = Make(small, {"x"}, {"x", "same", "c", "neg", "neg_same", "neg"});
  const auto outputs = session->Run({Floats({2}, {1, 2})});
  ASSERT_TRUE(outputs.ok()) << outputs.status();
  EXPECT_THAT(ToVector((*outputs)[0]), ElementsAre(1, 2));
  EXPECT_THAT(ToVector((*outputs)[1]), ElementsAre(1, 2));
  EXPECT_THAT(ToVector((*outputs)[2]), ElementsAre(7));
  for (int i = 3; i < 6; ++i) EXPECT_THAT(ToVector((*outputs)[i]), ElementsAre(-1, -2)) << i;
}

TEST(SessionTest, FeedsOneOutputOfSeveral) {
  SmallGraph small;
  small.Placeholder("x", DType::kFloat, {4});
  small.Const("axis", Tensor::Scalar<int32_t>(0));
  small.Add("split", "Split", {"axis", "x"}, {{"T", AttrValue::Type(DType::kFloat)}, {"num_split", AttrValue::Int(2)}});
  small.Float("add", "AddV2", {"split", "split:1"});
  const auto session = Make(small, {"x", "split:1"}, {"add"});
  EXPECT_THAT(RunOne(session.get(), {Floats({4}, {1, 2, 3, 4}), Floats({2}, {10, 20})}), ElementsAre(11, 22));
}

// Without seeds, the node's name is the seed: numbers differ between runs, but are equal in each session.
TEST(SessionTest, RandomNumbersGoOnFromRunToRun) {
  SmallGraph small;
  small.Const("shape", Tensor::FromVector<int32_t>({1}, {5}));
  for (const char* name : {"a", "b"}) {
    small.Add(name, "RandomUniform", {"shape"},
              {{"T", AttrValue::Type(DType::kInt32)}, {"dtype", AttrValue::Type(DType::kFloat)}});
  }
  const auto session = Make(small, {}, {"a"});
  const std::vector<float> first = RunOne(session.get(), {}), second = RunOne(session.get(), {});
  EXPECT_THAT(first, testing::Each(testing::AllOf(testing::Ge(0), testing::Lt(1))));
  EXPECT_NE(first, second);
  const auto again = Make(small, {}, {"a"});
  EXPECT_EQ(RunOne(again.get(), {}), first);
  EXPECT_EQ(RunOne(again.get(), {}), second);
  EXPECT_NE(RunOne(Make(small, {}, {"b"}).get(), {}), first);
}

TEST(SessionTest, LeavesOutWhatNobodyNeeds) {
  SmallGraph small;
  small.Placeholder("x", DType::kFloat, {});
  small.Placeholder("label", DType::kFloat, {});
  small.Add("loss", "NobodyKnows", {"label"}, {});
  small.Float("neg", "Neg", {"x"});
  EXPECT_THAT(RunOne(Make(small, {"x"}, {"neg"}).get(), {Floats({}, {1})}), ElementsAre(-1));
}

TEST(SessionTest, PlaceholderWithDefault) {
  SmallGraph small;
  small.Const("c", Floats({1}, {3}));
  small.Add("p", "PlaceholderWithDefault", {"c"},
            {{"dtype", AttrValue::Type(DType::kFloat)}, {"shape", AttrValue::OfShape({kUnknownDim})}});
  small.Float("neg", "Neg", {"p"});
  EXPECT_THAT(RunOne(Make(small, {}, {"neg"}).get(), {}), ElementsAre(-3));
  EXPECT_THAT(RunOne(Make(small, {"p"}, {"neg"}).get(), {Floats({2}, {1, 2})}), ElementsAre(-1, -2));
}

TEST(SessionTest, NamesEveryNodeWithoutAKernel) {
  SmallGraph small;
  small.Placeholder("x", DType::kFloat, {});
  std::vector<std::string> inputs;
  for (int i = 0; i < 7; ++i) {
    inputs.push_back(absl::StrCat("f", i));
    small.Add(inputs.back(), "Foo", {"x"}, {});
  }
  small.Add("bar", "Bar", inputs, {});
  const absl::Status status = CreateError(small, {"x"}, {"bar"});
  EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented);
  EXPECT_EQ(status.message(),
            "no kernel for op 'Bar': node 'bar'; "
            "no kernel for op 'Foo': nodes 'f0', 'f1', 'f2', 'f3', 'f4' and 2 more");
}

TEST(SessionTest, RefusesWhatTheGraphDoesNotHave) {
  const std::unique_ptr<SmallGraph> small(Affine());
  EXPECT_THAT(std::string(CreateError(*small, {"x"}, {"mull"}).message()),
              HasSubstr("output 'mull': the graph has no node of that name; did you mean 'mul'"));
  EXPECT_THAT(std::string(CreateError(*small, {"y"}, {"mul"}).message()), HasSubstr("input 'y': the graph"));
  EXPECT_EQ(CreateError(*small, {"x"}, {"mul:1"}).message(), "output 'mul:1': node 'mul' (Mul) has 1 outputs");
  EXPECT_EQ(CreateError(*small, {"x"}, {"mul:a"}).message(),
            "output 'mul:a': found 'a', expected the number of an output");
  EXPECT_EQ(CreateError(*small, {"x", "x:0"}, {"mul"}).message(), "input 'x:0' is fed twice");
  EXPECT_EQ(CreateError(*small, {}, {"mul"}).message(), "node 'x' (Placeholder): needed and not fed");
}

TEST(SessionTest, RefusesMalformedGraphs) {
  SmallGraph small;
  small.Placeholder("x", DType::kFloat, {});
  small.Placeholder("i", DType::kInt32, {});
  small.Float("one_input", "AddV2", {"x"});
  small.Float("types", "AddV2", {"x", "i"});
  small.Float("neg", "Neg", {"x"});
  small.Float("port", "Neg", {"neg:3"});
  Node* loop = small.Float("loop", "Neg", {"x"});
  small.Float("back", "Neg", {"loop"});
  small.mutable_graph().SetInput(loop, 0, {small.graph().Find("back"), 0});
  EXPECT_EQ(CreateError(small, {"x"}, {"one_input"}).message(), "node 'one_input' (AddV2): found 1 inputs, expected 2");
  EXPECT_EQ(CreateError(small, {"x", "i"}, {"types"}).message(),
            "node 'types' (AddV2): input 1 ('i') is int32, expected float");
  EXPECT_EQ(CreateError(small, {"x"}, {"port"}).message(),
            "node 'port' (Neg): input 0: node 'neg' (Neg) has no output 3");
  EXPECT_THAT(std::string(CreateError(small, {}, {"back"}).message()), HasSubstr("2 nodes are in a cycle"));
}

TEST(SessionTest, RefusesWrongFeeds) {
  SmallGraph small;
  small.Placeholder("x", DType::kFloat, {kUnknownDim, 3});
  small.Float("neg", "Neg", {"x"});
  const auto session = Make(small, {"x"}, {"neg"});
  EXPECT_EQ(session->Run({Floats({2, 2}, {1, 2, 3, 4})}).status().message(),
            "input 'x': found shape [2,2], expected [?,3]");
  EXPECT_EQ(session->Run({Tensor::FromVector<int32_t>({1, 3}, {1, 2, 3})}).status().message(),
            "input 'x': found type int32, expected float");
  EXPECT_EQ(session->Run({}).status().message(), "found 0 inputs, expected 1");
  EXPECT_EQ(session->Plan({Shape({kUnknownDim, 3})}).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(session->Run({Floats({1, 3}, {1, 2, 3})}).ok());
}

TEST(SessionTest, ErrorsOfKernelsNameTheNode) {
  SmallGraph small;
  small.Placeholder("x", DType::kFloat, {kUnknownDim});
  small.Placeholder("y", DType::kFloat, {kUnknownDim});
  small.Float("add", "AddV2", {"x", "y"});
  const auto status = Make(small, {"x", "y"}, {"add"})->Run({Floats({2}, {1, 2}), Floats({3}, {1, 2, 3})}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("node 'add' (AddV2): "));
}

TEST(SessionTest, WritesIntoTheCallersMemory) {
  const std::unique_ptr<SmallGraph> small(Affine());
  const auto session = Make(*small, {"x"}, {"mul", "add", "x"});
  alignas(64) char memory[4][64];
  const Tensor x = Floats({2}, {1, 2});
  const auto span = [](char* data, size_t size = 8) { return absl::MakeSpan(data, size); };
  for (const size_t shift : {0, 4}) {
    const absl::Status status =
        session->RunInto({x}, {span(memory[0] + shift), span(memory[1] + shift), span(memory[2] + shift)});
    ASSERT_TRUE(status.ok()) << status;
    const auto value = [&](int i, size_t j) {
      float f;
      std::memcpy(&f, memory[i] + shift + 4 * j, 4);
      return f;
    };
    EXPECT_EQ(value(0, 0), 4);
    EXPECT_EQ(value(0, 1), 6);
    EXPECT_EQ(value(1, 1), 3);
    EXPECT_EQ(value(2, 1), 2);
  }
  EXPECT_EQ(session->RunInto({x}, {span(memory[0]), span(memory[1], 4), span(memory[2])}).message(),
            "output 'add': found memory of 4 bytes, expected 8");
}

TEST(SessionTest, ComputesConstantsBeforeTheRun) {
  SmallGraph small;
  small.Placeholder("x", DType::kFloat, {kUnknownDim, 2});
  small.Const("a", Floats({2}, {1, 2}));
  small.Float("a2", "Mul", {"a", "a"});
  small.Float("a2_same", "Identity", {"a2"});
  small.Float("add", "AddV2", {"x", "a2_same"});
  const auto session = Make(small, {"x"}, {"add"});
  EXPECT_THAT(RunOne(session.get(), {Floats({1, 2}, {1, 1})}), ElementsAre(2, 5));
  EXPECT_EQ(session->report().num_steps, 1);
  EXPECT_EQ(session->report().num_folded, 1);
}

TEST(SessionTest, ShapesOfKnownTensorsAreConstants) {
  SmallGraph small;
  small.Placeholder("x", DType::kFloat, {kUnknownDim, 2});
  small.Placeholder("y", DType::kFloat, {kUnknownDim});
  small.Float("neg", "Neg", {"x"});
  small.Add("shape", "Shape", {"neg"},
            {{"T", AttrValue::Type(DType::kFloat)}, {"out_type", AttrValue::Type(DType::kInt32)}});
  small.Add("reshape", "Reshape", {"y", "shape"},
            {{"T", AttrValue::Type(DType::kFloat)}, {"Tshape", AttrValue::Type(DType::kInt32)}});
  small.Float("twice", "AddV2", {"reshape", "reshape"});
  const auto session = Make(small, {"x", "y"}, {"twice"});
  EXPECT_THAT(RunOne(session.get(), {Floats({1, 2}, {0, 0}), Floats({2}, {3, 4})}), ElementsAre(6, 8));
  EXPECT_EQ(session->report().num_dynamic, 0);
  EXPECT_EQ(session->report().num_steps, 1) << "the node that was needed for its shape alone still runs";
}

SmallGraph* DynamicReshape() {
  auto* small = new SmallGraph;
  small->Placeholder("x", DType::kFloat, {kUnknownDim});
  small->Placeholder("dims", DType::kInt32, {kUnknownDim});
  small->Float("neg", "Neg", {"x"});
  small->Add("reshape", "Reshape", {"neg", "dims"},
             {{"T", AttrValue::Type(DType::kFloat)}, {"Tshape", AttrValue::Type(DType::kInt32)}});
  small->Float("same", "Identity", {"reshape"});
  small->Const("row", Floats({2}, {10, 20}));
  small->Float("add", "AddV2", {"same", "row"});
  small->Float("relu", "Relu", {"add"});
  return small;
}

TEST(SessionTest, ShapesThatOnlyTheRunTells) {
  const std::unique_ptr<SmallGraph> small(DynamicReshape());
  const auto session = Make(*small, {"x", "dims"}, {"relu", "same", "neg"});
  const Tensor x = Floats({4}, {1, 2, 3, 30});
  const auto dims = [](std::vector<int32_t> values) {
    const auto count = static_cast<int64_t>(values.size());
    return Tensor::FromVector<int32_t>({count}, std::move(values));
  };
  for (int round = 0; round < 2; ++round) {
    auto outputs = session->Run({x, dims({2, 2})});
    ASSERT_TRUE(outputs.ok()) << outputs.status();
    EXPECT_EQ((*outputs)[0].shape(), Shape({2, 2}));
    EXPECT_THAT(ToVector((*outputs)[0]), ElementsAre(9, 18, 7, 0));
    EXPECT_THAT(ToVector((*outputs)[1]), ElementsAre(-1, -2, -3, -30));
    EXPECT_THAT(ToVector((*outputs)[2]), ElementsAre(-1, -2, -3, -30));
    outputs = session->Run({x, dims({2, -1})});
    ASSERT_TRUE(outputs.ok()) << outputs.status();
    EXPECT_EQ((*outputs)[0].shape(), Shape({2, 2}));
    outputs = session->Run({x, dims({1, 2, 2})});
    ASSERT_TRUE(outputs.ok()) << outputs.status();
    EXPECT_EQ((*outputs)[0].shape(), Shape({1, 2, 2}));
  }
  EXPECT_GT(session->report().num_dynamic, 0);
  const auto wrong = session->Run({x, dims({3, 2})}).status();
  EXPECT_THAT(std::string(wrong.message()), HasSubstr("node 'reshape' (Reshape): "));
  const auto specs = session->Plan({Shape({4}), Shape({2})});
  ASSERT_TRUE(specs.ok()) << specs.status();
  EXPECT_EQ((*specs)[0].shape, Shape::UnknownRank());
  EXPECT_EQ((*specs)[2].shape, Shape({4}));
}

TEST(SessionTest, ShapesThatComputeTells) {
  SmallGraph small;
  small.Placeholder("x", DType::kBool, {kUnknownDim});
  small.Add("where", "Where", {"x"}, {{"T", AttrValue::Type(DType::kBool)}});
  small.Add("cast", "Cast", {"where"},
            {{"SrcT", AttrValue::Type(DType::kInt64)}, {"DstT", AttrValue::Type(DType::kFloat)}});
  const auto session = Make(small, {"x"}, {"cast"});
  const auto flags = [](const std::string& bytes) {
    return *Tensor::FromBytes(DType::kBool, {static_cast<int64_t>(bytes.size())}, bytes, nullptr);
  };
  const std::string some("\0\1\0\1", 4), none("\0\0\0\0", 4);
  EXPECT_THAT(RunOne(session.get(), {flags(some)}), ElementsAre(1, 3));
  EXPECT_THAT(RunOne(session.get(), {flags(none)}), ElementsAre());
  EXPECT_THAT(RunOne(session.get(), {flags(some)}), ElementsAre(1, 3));
}

TEST(SessionTest, AnyNumberOfThreadsGivesTheSame) {
  SmallGraph small;
  small.Placeholder("x", DType::kFloat, {1 << 16});
  small.Float("y", "Exp", {"x"});
  std::vector<float> values(1 << 16);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 97) / 50 - 1;
  const Tensor x = Floats({1 << 16}, values);
  const Tensor expected = Make(small, {"x"}, {"y"})->Run({x}).value()[0];
  for (const int num_threads : {-7, 0, 2, 64, 1 << 20}) {
    SessionOptions options;
    options.num_threads = num_threads;
    const auto session = Make(small, {"x"}, {"y"}, options);
    EXPECT_GE(session->num_threads(), 1);
    EXPECT_LE(session->num_threads(), std::clamp(num_threads, 1, ThreadPool::kMostThreads));
    EXPECT_EQ(session->Run({x}).value()[0], expected) << num_threads;
  }
}

TEST(SessionTest, LimitsMemory) {
  SmallGraph small;
  small.Placeholder("x", DType::kFloat, {1});
  small.Const("dims", Tensor::FromVector<int64_t>({2}, {1 << 20, 1 << 20}));
  small.Const("zero", Floats({}, {0}));
  small.Add("fill", "Fill", {"dims", "zero"},
            {{"T", AttrValue::Type(DType::kFloat)}, {"index_type", AttrValue::Type(DType::kInt64)}});
  small.Float("add", "AddV2", {"x", "fill"});
  small.Float("first", "Neg", {"x"});
  EXPECT_EQ(Make(small, {"x"}, {"add"})->Run({Floats({1}, {1})}).status().code(), absl::StatusCode::kResourceExhausted);
  SessionOptions options;
  options.memory_limit = 1000;
  const auto session = Make(small, {"zero", "x"}, {"first"}, options);
  EXPECT_TRUE(session->Run({Floats({}, {0}), Floats({1}, {1})}).ok());
}

TEST(SessionTest, LimitsExpandedConstants) {
  SmallGraph small;
  // A float tensor of shape [2^24] that repeats the element 0.5: a few bytes in the file, 64 MiB in memory.
  const std::string proto("\x42\x14\x08\x01\x12\x07\x12\x05\x08\x80\x80\x80\x08\x2a\x04\x00\x00\x00\x3f", 19);
  Node* node = small.Add("c", "Const", {}, {{"dtype", AttrValue::Type(DType::kFloat)}});
  std::string value = proto;
  value[1] = static_cast<char>(value.size() - 2);
  node->SetAttr("value", AttrValue::FromWire(value, nullptr));
  SessionOptions options;
  options.memory_limit = 1 << 20;
  const absl::Status status = CreateError(small, {}, {"c"}, options);
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("node 'c' (Const): "));
  EXPECT_TRUE(CreateError(small, {}, {"c"}).ok());
}

TEST(SessionTest, CountsOutputsAgainstTheMemoryLimit) {
  SmallGraph small;
  small.Placeholder("x", DType::kFloat, Shape({1000}));
  small.Float("y", "Neg", {"x"});
  SessionOptions options;
  options.memory_limit = 3999;
  const absl::Status status =
      Make(small, {"x"}, {"y"}, options)->Run({Floats({1000}, std::vector<float>(1000))}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("output 'y': its memory takes 4000 bytes"));
  options.memory_limit = 1 << 12;
  const auto session = Make(small, {"x"}, {"y"}, options);
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(session->Run({Floats({1000}, std::vector<float>(1000))}).ok());
}

TEST(SessionTest, CountsStringsAgainstTheMemoryLimit) {
  SmallGraph small;
  small.Placeholder("x", DType::kString, Shape({1000}));
  small.Add("lower", "StringLower", {"x"}, {});
  small.Add("y", "StringLength", {"lower"}, {});
  SessionOptions options;
  options.memory_limit = 10000;
  const Tensor texts = Tensor::FromStrings(Shape({1000}), std::vector<std::string>(1000));
  const absl::Status status = Make(small, {"x"}, {"y"}, options)->Run({texts}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("memory for strings takes"));
  EXPECT_TRUE(Make(small, {"x"}, {"y"})->Run({texts}).ok());
}

TEST(SessionTest, KeepsControlEdgesAndReportsNodes) {
  SmallGraph small;
  small.Placeholder("x", DType::kFloat, {});
  small.Float("late", "Neg", {"x", "^x"});
  small.Add("gate", "NoOp", {"^late"}, {});
  small.Float("early", "Neg", {"x", "^gate"});
  std::vector<std::string> names;
  SessionOptions options;
  options.on_node = [&](const Node& node, absl::Duration duration) {
    names.emplace_back(node.name());
    EXPECT_GE(duration, absl::ZeroDuration());
  };
  const auto session = Make(small, {"x"}, {"early", "late"}, options);
  EXPECT_THAT(RunOne(session.get(), {Floats({}, {1})}), ElementsAre(-1));
  EXPECT_THAT(names, ElementsAre("late", "gate", "early"));
}

TEST(SessionTest, Strings) {
  SmallGraph small;
  small.Placeholder("s", DType::kString, {kUnknownDim});
  small.Add("same", "Identity", {"s"}, {{"T", AttrValue::Type(DType::kString)}});
  const auto session = Make(small, {"s"}, {"same"});
  const auto outputs = session->Run({Tensor::FromStrings({2}, {"a", "b"})});
  ASSERT_TRUE(outputs.ok()) << outputs.status();
  EXPECT_THAT((*outputs)[0].strings(), ElementsAre("a", "b"));
}

// A hundred thousand nodes: the code does not recurse, and elementwise nodes share one buffer.
TEST(SessionTest, LongChain) {
  SmallGraph small;
  small.Placeholder("x", DType::kFloat, {16});
  std::string last = "x";
  for (int i = 0; i < 100000; ++i) {
    const std::string name = absl::StrCat("n", i);
    small.Float(name, "Neg", {last});
    last = name;
  }
  const auto session = Make(small, {"x"}, {last, "x"});
  const Tensor x = Floats({16}, std::vector<float>(16, 1.5f));
  EXPECT_EQ(RunOne(session.get(), {x}), ToVector(x));
  EXPECT_EQ(session->report().arena_bytes, 0) << "all nodes write to the output's memory";
}

}  // namespace
}  // namespace permafrost
