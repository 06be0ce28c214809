// Tests of the binary codec: lossless for valid files, consistent with protobuf for damaged ones, bounded for hostile
// ones.
#include "io/formats/graphdef.h"

#include <cstring>
#include <limits>
#include <string>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "graph/base/wire.h"
#include "graph/graph.h"
#include "gtest/gtest.h"
#include "io/file_system.h"
#include "io/formats/graphdef_text.h"
#include "io/formats/message_rules.h"
#include "tests/formats/differential.h"
#include "tests/shared_models.h"

namespace permafrost {
namespace {

using ::testing::HasSubstr;

std::string Load(const std::string& path) {
  absl::StatusOr<std::string> text = RealFileSystem().ReadFile(DataFile(path));
  EXPECT_TRUE(text.ok()) << text.status();
  return text.ok() ? *std::move(text) : "";
}

std::string Rewritten(absl::string_view bytes) {
  const absl::StatusOr<std::unique_ptr<Graph>> graph = ReadGraphDef(bytes, nullptr);
  EXPECT_TRUE(graph.ok()) << graph.status();
  StringSink sink;
  if (!graph.ok()) return "";
  EXPECT_TRUE(WriteGraphDef(**graph, &sink).ok());
  return sink.Release();
}

// Returns a text case in binary form.
std::string Binary(const std::string& path) {
  const absl::StatusOr<std::unique_ptr<Graph>> graph = ReadGraphDefText(Load(path));
  EXPECT_TRUE(graph.ok()) << graph.status();
  StringSink sink;
  if (!graph.ok()) return "";
  EXPECT_TRUE(WriteGraphDef(**graph, &sink).ok());
  return sink.Release();
}

TEST(GraphDef, TheBundledModelRoundTripsByteForByte) {
  const std::string bytes = Load("tests/models/digits/digits.pb");
  ASSERT_GT(bytes.size(), 100000u);
  EXPECT_TRUE(Rewritten(bytes) == bytes);
  EXPECT_EQ(CompareWithProtobuf(bytes), "");
}

TEST(GraphDef, EveryCaseRoundTripsByteForByte) {
  for (const char* name : {"encodings", "attributes"}) {
    const std::string bytes = Binary(absl::StrCat("tests/formats/cases/", name, ".pbtxt"));
    ASSERT_GT(bytes.size(), 500u);
    EXPECT_EQ(Rewritten(bytes), bytes);
    EXPECT_EQ(CompareWithProtobuf(bytes), "");
  }
}

TEST(GraphDef, TruncationAtEveryByte) {
  for (const char* name : {"encodings", "attributes"}) {
    const std::string bytes = Binary(absl::StrCat("tests/formats/cases/", name, ".pbtxt"));
    int refused = 0;
    for (size_t size = 0; size < bytes.size(); ++size) {
      const absl::string_view part = absl::string_view(bytes).substr(0, size);
      ASSERT_EQ(CompareWithProtobuf(part), "") << "first " << size << " bytes";
      refused += !ReadGraphDef(part, nullptr).ok();
    }
    EXPECT_GT(refused, static_cast<int>(bytes.size() * 9 / 10));
  }
}

TEST(GraphDef, EverySingleBitFlip) {
  for (const char* name : {"encodings", "attributes"}) {
    std::string bytes = Binary(absl::StrCat("tests/formats/cases/", name, ".pbtxt"));
    for (size_t i = 0; i < bytes.size() * 8; ++i) {
      bytes[i / 8] ^= static_cast<char>(1 << (i % 8));
      ASSERT_EQ(CompareWithProtobuf(bytes), "") << "bit " << i;
      bytes[i / 8] ^= static_cast<char>(1 << (i % 8));
    }
  }
}

// Returns a GraphDef with a node that contains `depth` nested messages (FullTypeDef.args).
std::string Nested(int depth) {
  constexpr uint32_t kArgs = 2, kExperimentalType = 7;
  std::vector<std::string> reversed;
  size_t size = 0;
  for (int i = 0; i < depth; ++i) {
    std::string prefix;
    AppendLengthPrefix(i + 1 < depth ? kArgs : kExperimentalType, size, &prefix);
    size += prefix.size();
    reversed.push_back(std::move(prefix));
  }
  std::string node;
  AppendBytesField(1, "n", &node);
  AppendBytesField(2, "NoOp", &node);
  for (auto prefix = reversed.rbegin(); prefix != reversed.rend(); ++prefix) node += *prefix;
  std::string bytes;
  AppendBytesField(1, node, &bytes);
  return bytes;
}

std::string NestedGroups(int depth) {
  std::string bytes;
  for (int i = 0; i < depth; ++i) AppendTag(9, WireType::kStartGroup, &bytes);
  for (int i = 0; i < depth; ++i) AppendTag(9, WireType::kEndGroup, &bytes);
  return bytes;
}

TEST(GraphDef, NestingIsBoundedAsInProtobuf) {
  EXPECT_TRUE(ReadGraphDef(Nested(99), nullptr).ok());
  for (const int depth : {98, 99, 100, 101}) {
    EXPECT_EQ(CompareWithProtobuf(Nested(depth)), "") << depth;
    EXPECT_EQ(CompareWithProtobuf(NestedGroups(depth)), "") << depth;
  }
  for (const std::string& bytes : {Nested(100000), NestedGroups(100000)}) {
    const absl::Status status = ReadGraphDef(bytes, nullptr).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
    EXPECT_THAT(std::string(status.message()), HasSubstr("nested more than 100 deep"));
  }
}

TEST(GraphDef, ALengthBeyondTheFileCostsNothing) {
  std::string bytes;
  AppendLengthPrefix(1, uint64_t{4} << 30, &bytes);
  bytes.resize(1024, 'x');
  const absl::Status status = ReadGraphDef(bytes, nullptr).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(status.message(), "offset 6: field 1 has a length of 4294967296 bytes, but only 1018 are left");
}

TEST(GraphDef, NamesAndWeightsAreViewsThatKeepTheirOwner) {
  auto bytes = std::make_shared<const std::string>(Load("tests/models/digits/digits.pb"));
  const std::weak_ptr<const std::string> watch = bytes;
  std::unique_ptr<Graph> graph = *ReadGraphDef(*bytes, bytes);
  const auto is_inside = [&](const char* data) {
    return data >= bytes->data() && data < bytes->data() + bytes->size();
  };
  Tensor tensor;
  for (const Node* node = graph->first(); node != nullptr; node = node->next()) {
    EXPECT_TRUE(is_inside(node->name().data()));
    if (node->op() != ops::kConst) continue;
    tensor = *ConstValue(*node);
    if (tensor.bytes().size() > 1000) break;
  }
  ASSERT_GT(tensor.bytes().size(), 1000u);
  EXPECT_TRUE(is_inside(tensor.bytes().data()));
  bytes.reset();
  graph.reset();
  EXPECT_FALSE(watch.expired());
  tensor = Tensor();
  EXPECT_TRUE(watch.expired());
}

// A sink that records the addresses of the views passed to it.
class RecordingSink : public ByteSink {
 public:
  absl::Status Append(absl::string_view bytes) override {
    if (bytes.size() > largest_.size()) largest_ = bytes;
    return absl::OkStatus();
  }
  absl::string_view largest() const { return largest_; }

 private:
  absl::string_view largest_;
};

TEST(GraphDef, LargeWeightsReachTheSinkUncopied) {
  const std::string bytes = Load("tests/models/digits/digits.pb");
  const std::unique_ptr<Graph> graph = *ReadGraphDef(bytes, nullptr);
  RecordingSink sink;
  ASSERT_TRUE(WriteGraphDef(*graph, &sink).ok());
  EXPECT_GT(sink.largest().size(), 10000u);
  EXPECT_GE(sink.largest().data(), bytes.data());
  EXPECT_LT(sink.largest().data(), bytes.data() + bytes.size());
}

TEST(GraphDef, AGraphBeyondTwoGigabytesIsRefusedBeforeAnythingIsWritten) {
  Graph graph;
  // The same megabyte many times: the encoded size is large, memory use is small.
  const Tensor megabyte = Tensor::FromVector(Shape({1 << 18}), std::vector<float>(1 << 18));
  for (int i = 0; i < 2048; ++i) ASSERT_TRUE(graph.AddConst(absl::StrCat("c", i), megabyte).ok());
  RecordingSink sink;
  const absl::Status status = WriteGraphDef(graph, &sink);
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("memory-mapped package"));
  EXPECT_TRUE(sink.largest().empty());
}

TEST(GraphDef, AMillionNodesReadAndWrite) {
  constexpr int kNodes = 1000000;
  std::string bytes;
  for (int i = kNodes; i > 0; --i) {  // Each node refers to the next one in the file.
    std::string node;
    AppendBytesField(1, absl::StrCat("n", i), &node);
    AppendBytesField(2, "Identity", &node);
    if (i > 1) AppendBytesField(3, absl::StrCat("n", i - 1), &node);
    AppendBytesField(1, node, &bytes);
  }
  const absl::StatusOr<std::unique_ptr<Graph>> graph = ReadGraphDef(bytes, nullptr);
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_EQ((*graph)->num_nodes(), static_cast<size_t>(kNodes));
  EXPECT_EQ((*graph)->first()->input(0).node, (*graph)->first()->next());
  StringSink sink;
  ASSERT_TRUE(WriteGraphDef(**graph, &sink).ok());
  EXPECT_TRUE(sink.text() == bytes);
}

TEST(Utf8, AcceptsWhatProtobufAccepts) {
  for (const char* good : {"", "plain text of more than eight bytes", "\xc3\xa4", "\xe2\x82\xac", "\xf0\x9f\x98\x80",
                           "\xed\x9f\xbf", "\xee\x80\x80", "\xf4\x8f\xbf\xbf", "12345678\xc2\x80"}) {
    EXPECT_TRUE(IsUtf8(good)) << absl::CHexEscape(good);
  }
  for (const char* bad : {"\x80", "\xc3", "\xc0\x80", "\xc1\xbf", "\xe0\x9f\xbf", "\xed\xa0\x80", "\xf0\x8f\xbf\xbf",
                          "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xff", "12345678\xc2", "\xe2\x82", "\xc3\xc3"}) {
    EXPECT_FALSE(IsUtf8(bad)) << absl::CHexEscape(bad);
  }
}

}  // namespace
}  // namespace permafrost
