// Tests of Print, PrintV2 and Assert: output text, frequency and destination. The texts equal those of TensorFlow 2.21.
#include <cmath>
#include <limits>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime_check/session.h"

namespace permafrost {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

using Written = std::vector<std::pair<std::string, std::string>>;

// A graph whose output is captured.
class LoggingGraph {
 public:
  Node* Add(const std::string& name, Op op, const std::vector<Node*>& inputs) {
    Node* node = *graph_.AddNode(name, op);
    for (Node* input : inputs) graph_.AddInput(node, {input, 0});
    return node;
  }
  Node* Const(const std::string& name, Tensor value) { return *graph_.AddConst(name, std::move(value)); }

  // Adds a Print of `data` with the message "M".
  Node* AddPrint(const std::vector<Tensor>& data, int64_t summarize) {
    std::vector<Node*> inputs = {Const("through", Tensor::Scalar(7.0f))};
    std::vector<DType> types;
    for (const Tensor& tensor : data) {
      inputs.push_back(Const(graph_.UniqueName("data"), tensor));
      types.push_back(tensor.dtype());
    }
    Node* print = Add("print", ops::kPrint, inputs);
    print->SetAttr("T", AttrValue::Type(DType::kFloat));
    print->SetAttr("U", AttrValue::TypeList(types));
    print->SetAttr("message", AttrValue::String("M"));
    print->SetAttr("summarize", AttrValue::Int(summarize));
    return print;
  }

  std::unique_ptr<Session> MakeSession(const std::string& fetch) {
    SessionOptions options;
    options.print = [this](absl::string_view stream, absl::string_view text) { written_.emplace_back(stream, text); };
    auto session = Session::Create(graph_, {}, {fetch}, std::move(options));
    EXPECT_TRUE(session.ok()) << session.status();
    return session.ok() ? *std::move(session) : nullptr;
  }

  Graph graph_;
  Written written_;
};

class LoggingTest : public testing::Test, public LoggingGraph {};

// Returns the output of a Print of one tensor, without "M[" and "]\n".
std::string Printed(const Tensor& tensor, int64_t summarize) {
  LoggingGraph logging;
  logging.AddPrint({tensor}, summarize);
  const auto outputs = logging.MakeSession("print")->Run({});
  EXPECT_TRUE(outputs.ok()) << outputs.status();
  if (!outputs.ok() || logging.written_.size() != 1) return "?";
  EXPECT_EQ((*outputs)[0].elements<float>()[0], 7.0f);
  const std::string& text = logging.written_[0].second;
  EXPECT_EQ(text.substr(0, 2), "M[");
  EXPECT_EQ(text.substr(text.size() - 2), "]\n");
  return text.substr(2, text.size() - 4);
}

Tensor Count(const Shape& shape) {
  std::vector<float> values(shape.num_elements());
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
  return Tensor::FromVector(shape, std::move(values));
}

template <typename T>
Tensor List(std::vector<T> values) {
  const int64_t size = static_cast<int64_t>(values.size());
  return Tensor::FromVector(Shape({size}), std::move(values));
}

TEST_F(LoggingTest, FormatsFloats) {
  const float inf = std::numeric_limits<float>::infinity();
  EXPECT_EQ(Printed(List<float>({1, 0.1f, 1 / 3.0f, 1e10f, 1e-10f, 123456789.0f, 16777216, 0, -0.0f, NAN, inf, -inf,
                                 3.4e38f, 100000, 1000000, 1234567, 0.30000001192f}),
                    100),
            "1 0.1 0.333333343 1e+10 1e-10 123456792 16777216 0 -0 nan inf -inf 3.4e+38 100000 1e+06 1234567 0.3");
  EXPECT_EQ(
      Printed(List<double>({1, 0.1, 1 / 3.0, 1e10, 1e300, 123456789.123, -0.0, NAN, 1e15, 1e16, 123456789012345678.0}),
              -1),
      "1 0.1 0.33333333333333331 10000000000 1e+300 123456789.123 -0 nan 1e+15 1e+16 1.2345678901234568e+17");
}

TEST_F(LoggingTest, FormatsOtherTypes) {
  EXPECT_EQ(Printed(List<int8_t>({1, -2, 127}), 3), "1 -2 127");
  EXPECT_EQ(Printed(List<uint8_t>({1, 255}), 3), "1 255");
  EXPECT_EQ(Printed(List<int16_t>({-3}), 3), "-3");
  EXPECT_EQ(Printed(List<uint16_t>({65535}), 3), "65535");
  EXPECT_EQ(Printed(List<int64_t>({1, -2}), 3), "1 -2");
  EXPECT_EQ(Printed(List<uint32_t>({4000000000u}), 3), "4000000000");
  EXPECT_EQ(Printed(List<uint64_t>({uint64_t{1} << 63}), 3), "9223372036854775808");
  const char bools[] = {1, 0};
  EXPECT_EQ(Printed(*Tensor::FromBytes(DType::kBool, Shape({2}), absl::string_view(bools, 2), nullptr), 3), "1 0");
  const uint16_t halves[] = {0x3e00, 0x2e66, 0x7bff, 0x7e00};
  const absl::string_view half_bytes(reinterpret_cast<const char*>(halves), sizeof(halves));
  EXPECT_EQ(Printed(*Tensor::FromBytes(DType::kHalf, Shape({4}), half_bytes, nullptr), 9),
            "1.5 0.0999755859 65504 nan");
  const char codes[] = {0, '\x80', '\xff'};
  EXPECT_EQ(Printed(*Tensor::FromBytes(DType::kQUint8, Shape({3}), absl::string_view(codes, 3), nullptr), 3),
            "0 128 255");
  const char wide[8] = {};
  EXPECT_EQ(Printed(*Tensor::FromBytes(DType::kQInt32, Shape({2}), absl::string_view(wide, 8), nullptr), 3), "? ?");
  EXPECT_EQ(Printed(*Tensor::FromBytes(DType::kComplex64, Shape({1}), absl::string_view(wide, 8), nullptr), 3), "?");
  EXPECT_EQ(Printed(Tensor::FromStrings(Shape({3}), {"abc", "a\nb", std::string("\xff\0q \"\\'", 7)}), 10),
            "abc a\\nb \xff\\000q \\\"\\\\\\'");
}

TEST_F(LoggingTest, FormatsShapesAndLimits) {
  EXPECT_EQ(Printed(Tensor::Scalar(1.5f), 3), "1.5");
  EXPECT_EQ(Printed(Tensor::Scalar(1.5f), 0), "...");
  EXPECT_EQ(Printed(Count({12}), 3), "0 1 2...");
  EXPECT_EQ(Printed(Count({12}), 12), "0 1 2 3 4 5 6 7 8 9 10 11");
  EXPECT_EQ(Printed(Count({12}), 0), "...");
  EXPECT_EQ(Printed(Count({3}), -5), "0 1 2");
  EXPECT_EQ(Printed(Count({2, 3, 2}), 100), "[[0 1][2 3][4 5]][[6 7][8 9][10 11]]");
  EXPECT_EQ(Printed(Count({2, 3, 2}), 3), "[[0 1][2...]]...");
  EXPECT_EQ(Printed(Count({2, 3, 2}), 4), "[[0 1][2 3]]...");
  EXPECT_EQ(Printed(Count({2, 3, 2}), 6), "[[0 1][2 3][4 5]]...");
  EXPECT_EQ(Printed(Tensor::FromStrings(Shape({2, 2}), {"a", "b", "c", "d"}), 3), "[a b][c...]...");
  for (const Shape& empty : {Shape({0}), Shape({0, 3}), Shape({3, 0}), Shape({2, 1, 0, 2})}) {
    EXPECT_EQ(Printed(Count(empty), 3), "") << empty.ToString();
  }
}

TEST_F(LoggingTest, WritesALineThatFreezeRequantizationRangesReads) {
  Node* print = AddPrint({Tensor::Scalar(-1.25f), Tensor::Scalar(6.0f)}, 1024);
  print->SetAttr("message", AttrValue::String(";r__print__;__requant_min_max:"));
  ASSERT_TRUE(MakeSession("print")->Run({}).ok());
  EXPECT_THAT(written_, ElementsAre(Pair("stderr", ";r__print__;__requant_min_max:[-1.25][6]\n")));
}

TEST_F(LoggingTest, PrintsTheFirstRunsOfASession) {
  AddPrint({}, 3)->SetAttr("first_n", AttrValue::Int(2));
  const auto session = MakeSession("print");
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(session->Run({}).ok());
  EXPECT_THAT(written_, ElementsAre(Pair("stderr", "M\n"), Pair("stderr", "M\n")));
}

TEST_F(LoggingTest, CountsOverChangesOfShape) {
  Node* x = Add("x", ops::kPlaceholder, {});
  x->SetAttr("dtype", AttrValue::Type(DType::kString));
  Node* print = Add("print", ops::kPrint, {x, x});
  print->SetAttr("T", AttrValue::Type(DType::kString));
  const DType types[] = {DType::kString};
  print->SetAttr("U", AttrValue::TypeList(types));
  print->SetAttr("first_n", AttrValue::Int(2));
  SessionOptions options;
  options.print = [this](absl::string_view stream, absl::string_view text) { written_.emplace_back(stream, text); };
  const auto session = Session::Create(graph_, {"x"}, {"print"}, std::move(options));
  ASSERT_TRUE(session.ok()) << session.status();
  for (int64_t size = 1; size <= 3; ++size) {
    const Tensor fed = Tensor::FromStrings(Shape({size}), std::vector<std::string>(size, "s"));
    const auto outputs = (*session)->Run({fed});
    ASSERT_TRUE(outputs.ok()) << outputs.status();
    EXPECT_EQ((*outputs)[0], fed);
  }
  EXPECT_THAT(written_, ElementsAre(Pair("stderr", "[s]\n"), Pair("stderr", "[s s]\n")));
}

TEST_F(LoggingTest, PrintV2NamesItsStream) {
  Node* text = Const("text", Tensor::FromStrings(Shape(), {"hello"}));
  std::vector<Node*> prints;
  for (const char* stream : {"stderr", "stdout", "log(info)"}) {
    prints.push_back(Add(stream[0] == 'l' ? "info" : stream, ops::kPrintV2, {text}));
    prints.back()->SetAttr("output_stream", AttrValue::String(stream));
  }
  prints[1]->SetAttr("end", AttrValue::String("<>"));
  Node* done = Const("done", Tensor::Scalar(1.0f));
  Node* after = Add("after", ops::kIdentity, {done});
  after->SetAttr("T", AttrValue::Type(DType::kFloat));
  for (Node* print : prints) graph_.AddControlInput(after, print);
  ASSERT_TRUE(MakeSession("after")->Run({}).ok());
  EXPECT_THAT(written_, testing::UnorderedElementsAre(Pair("stderr", "hello\n"), Pair("stdout", "hello<>"),
                                                      Pair("log(info)", "hello\n")));
}

TEST_F(LoggingTest, PrintV2RefusesOtherStreams) {
  const std::pair<const char*, const char*> cases[] = {
      {"file://x", "graphs do not write files here"},
      {"printer", "output_stream is 'printer', expected one of stdout"}};
  for (const auto& [stream, message] : cases) {
    Graph graph;
    Node* text = *graph.AddConst("text", Tensor::FromStrings(Shape(), {"hello"}));
    Node* print = *graph.AddNode("print", ops::kPrintV2);
    graph.AddInput(print, {text, 0});
    print->SetAttr("output_stream", AttrValue::String(stream));
    Node* after = *graph.AddConst("done", Tensor::Scalar(1.0f));
    Node* identity = *graph.AddNode("after", ops::kIdentity);
    identity->SetAttr("T", AttrValue::Type(DType::kFloat));
    graph.AddInput(identity, {after, 0});
    graph.AddControlInput(identity, print);
    const auto session = Session::Create(graph, {}, {"after"});
    ASSERT_TRUE(session.ok()) << session.status();
    EXPECT_THAT(std::string((*session)->Run({}).status().message()), HasSubstr(message));
  }
}

TEST_F(LoggingTest, AssertShowsItsData) {
  const char no[] = {0};
  Node* condition = Const("no", *Tensor::FromBytes(DType::kBool, Shape(), absl::string_view(no, 1), nullptr));
  Node* text = Const("text", Tensor::FromStrings(Shape(), {"bad x"}));
  Node* assertion = Add("assert", ops::kAssert, {condition, text, Const("four", Count({2, 2}))});
  const DType types[] = {DType::kString, DType::kFloat};
  assertion->SetAttr("T", AttrValue::TypeList(types));
  Node* after = Add("after", ops::kIdentity, {Const("done", Tensor::Scalar(1.0f))});
  after->SetAttr("T", AttrValue::Type(DType::kFloat));
  graph_.AddControlInput(after, assertion);
  const absl::Status status = MakeSession("after")->Run({}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("assertion failed: [bad x] [[0 1][2...]...]"));
  EXPECT_TRUE(written_.empty());
}

}  // namespace
}  // namespace permafrost
