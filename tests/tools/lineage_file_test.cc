// Tests of lineage files, of the JSON reader, and of the pairing of nodes by lineage.
#include "tools/difference/lineage_file.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "graph/lineage.h"
#include "io/formats/json_value.h"
#include "tests/tools/graph_from_text.h"
#include "tools/command_line/json.h"
#include "tools/difference/graph_difference.h"

namespace permafrost {
namespace {

void Write(const std::string& path, const std::string& text) {
  std::unique_ptr<FileWriter> writer = RealFileSystem().NewWriter(path).value();
  ASSERT_TRUE(writer->Append(text).ok());
  ASSERT_TRUE(writer->Commit().ok());
}

std::string Error(const std::string& text) {
  const std::string path = testing::TempDir() + "/bad.json";
  Write(path, text);
  const absl::StatusOr<OriginsByName> origins = ReadLineageFile(RealFileSystem(), path);
  EXPECT_EQ(origins.status().code(), absl::StatusCode::kInvalidArgument);
  std::string message(origins.status().message());
  EXPECT_TRUE(absl::StartsWith(message, absl::StrCat("'", path, "': "))) << message;
  return message.substr(std::min(message.size(), path.size() + 4));
}

std::string Differences(const Graph& actual, const Graph& expected, const OriginsByName* origins) {
  GraphDifferenceOptions options;
  options.origins = origins;
  std::vector<std::string> lines;
  for (const GraphDifference& difference : CompareGraphs(actual, expected, options)) {
    lines.push_back(absl::StrCat(difference.kind, ": ", difference.text));
  }
  return absl::StrJoin(lines, "\n");
}

class LineageFileTest : public testing::Test {
 protected:
  void SetUp() override {
    before_ = GraphFromText(
        "x = Placeholder()\nw = Const()\na = Neg(x)\nb = Neg(x)\ni = Identity(b)\nm = Mul(a, i)\nz = Add(m, w)\ngone = "
        "Neg(w)");
    after_ = before_->Clone();
    after_->RecordLineage();
  }
  Node* Get(absl::string_view name) { return after_->Find(name); }

  OriginsByName Reread() {
    const std::string path = testing::TempDir() + "/lineage.json";
    EXPECT_TRUE(WriteLineageFile(*after_, {"in.pb", "out.pb", {"pass"}}, RealFileSystem(), path).ok());
    absl::StatusOr<OriginsByName> origins = ReadLineageFile(RealFileSystem(), path);
    EXPECT_TRUE(origins.ok()) << origins.status();
    return origins.ok() ? *std::move(origins) : OriginsByName();
  }

  std::unique_ptr<Graph> before_, after_;
};

TEST_F(LineageFileTest, AnUntouchedGraphHasNothingToList) {
  const OriginsByName origins = Reread();
  EXPECT_TRUE(origins.empty());
  EXPECT_EQ(Differences(*after_, *before_, &origins), "");
}

TEST_F(LineageFileTest, PairsRenamedMergedSplitAndNewNodes) {
  // Merges b into a, and removes the Identity after it.
  after_->AddOrigins(Get("a"), Get("b"));
  after_->AddOrigins(Get("a"), Get("i"));
  after_->SetInput(Get("m"), 1, {Get("a"), 0});
  ASSERT_TRUE(after_->RemoveNode(Get("i")).ok());
  ASSERT_TRUE(after_->RemoveNode(Get("b")).ok());
  {  // m becomes another node.
    const OriginScope scope(after_.get(), {Get("m")});
    Node* made = after_->AddNode("made", ops::kMul, Get("m")).value();
    made->CopyAttrs(*Get("m"));
    for (int i = 0; i < Get("m")->num_inputs(); ++i) after_->AddInput(made, Get("m")->input(i));
    after_->AddNode("beside", ops::kNoOp).value();
    after_->ReplaceUses({Get("m"), 0}, {made, 0});
    ASSERT_TRUE(after_->RemoveNode(Get("m")).ok());
  }
  ASSERT_TRUE(after_->RemoveNode(Get("gone")).ok());
  ASSERT_TRUE(after_->Rename(Get("w"), "weights").ok());
  const OriginsByName origins = Reread();
  EXPECT_EQ(origins.at("made").stands_for, "m");
  EXPECT_EQ(origins.at("a").names, (std::vector<std::string>{"a", "b", "i"}));
  EXPECT_EQ(Differences(*after_, *before_, &origins),
            "renamed_node: node 'w' (Const): is now 'weights'\n"
            "merged_node: node 'b' (Neg): went into node 'a' (Neg)\n"
            "merged_node: node 'i' (Identity): went into node 'a' (Neg)\n"
            "renamed_node: node 'm' (Mul): is now 'made'\n"
            "missing_node: node 'gone' (Neg): was removed\n"
            "derived_node: node 'beside' (NoOp): was made from 'm'");
  EXPECT_TRUE(absl::StrContains(Differences(*after_, *before_, nullptr), "extra_node: node 'weights'"));
}

TEST_F(LineageFileTest, RefusesWhatIsNoLineage) {
  EXPECT_EQ(Error(""), "line 1, column 1: expected a value");
  EXPECT_EQ(Error("{}"), "member 'format': expected a text");
  EXPECT_EQ(Error(R"({"format": "x"})"), "found the format 'x', expected 'permafrost lineage 1'");
  const std::string head = R"({"format": "permafrost lineage 1", "nodes": )";
  EXPECT_EQ(Error(head + "3}"), "member 'nodes': expected an array");
  EXPECT_EQ(Error(head + "[{}]}"), "nodes[0]: member 'name': expected a text");
  EXPECT_EQ(Error(head + R"([{"name": "a", "origins": [1]}]})"),
            "nodes[0]: member 'origins': expected an array of texts");
  EXPECT_EQ(Error(head + R"([{"name": "a", "origins": []}, {"name": "a", "origins": []}]})"),
            "nodes[1]: 'a' is listed twice");
}

TEST(ParseJson, ReadsWhatTheWriterWrites) {
  std::ostringstream out;
  JsonWriter json(out);
  json.BeginObject()
      .Key("a\"\\\n\x01")
      .BeginArray()
      .Text("\xc3\xa9 \xf0\x9f\x98\x80")
      .Number(-1.5e-7)
      .Bool(true)
      .Null();
  json.End().End();
  const absl::StatusOr<JsonValue> value = ParseJson(out.str());
  ASSERT_TRUE(value.ok()) << value.status();
  const JsonValue* array = value->Find("a\"\\\n\x01");
  ASSERT_NE(array, nullptr);
  ASSERT_EQ(array->items.size(), 4u);
  EXPECT_EQ(array->items[0].text, "\xc3\xa9 \xf0\x9f\x98\x80");
  EXPECT_EQ(array->items[1].number, -1.5e-7);
  EXPECT_TRUE(array->items[2].boolean);
  EXPECT_EQ(array->items[3].kind, JsonValue::Kind::kNull);
}

TEST(ParseJson, ReadsEscapes) {
  const absl::StatusOr<JsonValue> value = ParseJson(R"("\u00e9\ud83d\ude00\/\t")");
  ASSERT_TRUE(value.ok()) << value.status();
  EXPECT_EQ(value->text, "\xc3\xa9\xf0\x9f\x98\x80/\t");
}

TEST(ParseJson, RefusesWhatIsNoJson) {
  for (const std::string text :
       {"{", "[1,]", "{\"a\" 1}", "01", "1.", "-", "nul", "\"\\x\"", "\"\\ud800\"", "\"\\udc00\"", "\"a\nb\"",
        "\"\xff\"", "\"\xc0\xaf\"", "1 2", "\"open", "{'a': 1}", "[1 2]"}) {
    EXPECT_FALSE(ParseJson(text).ok()) << text;
  }
  EXPECT_FALSE(ParseJson(std::string(1000000, '[')).ok());
  EXPECT_EQ(ParseJson(R"({"a": 1, "b": {}, "a": 2})").status().message(),
            "line 1, column 26: the object has the key 'a' twice");
  EXPECT_EQ(ParseJson("[\n  1,\n  x]").status().message(), "line 3, column 3: expected a value");
}

TEST(ParseJson, BuildsNoMoreThanIsAskedFor) {
  const std::string text = R"( {"a": [1, {"b": 2}] , "c": "\u0041"})";
  const absl::StatusOr<JsonValue> value = ParseJson(text, {1});
  ASSERT_TRUE(value.ok()) << value.status();
  EXPECT_EQ(value->Find("a")->kind, JsonValue::Kind::kArray);
  EXPECT_TRUE(value->Find("a")->items.empty());
  EXPECT_EQ(value->Find("a")->raw, R"([1, {"b": 2}])");
  EXPECT_EQ(value->Find("c")->text, "A");
  EXPECT_FALSE(ParseJson(R"({"a": [1, {"b": 2}})", {1}).ok());
  EXPECT_EQ(ParseJson("[1, 2, 3]", {64, 3}).status().message(), "line 1, column 8: found more than 3 values");
}

}  // namespace
}  // namespace permafrost
