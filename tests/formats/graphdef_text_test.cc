// Tests of the text form: stable output, and errors with positions.
#include "io/formats/graphdef_text.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "io/file_system.h"
#include "io/formats/graphdef.h"
#include "tests/shared_models.h"

namespace permafrost {
namespace {

using ::testing::HasSubstr;

std::string Text(const Graph& graph) {
  StringSink sink;
  EXPECT_TRUE(WriteGraphDefText(graph, &sink).ok());
  return sink.Release();
}

std::string Error(const std::string& text) { return std::string(ReadGraphDefText(text).status().message()); }

TEST(GraphDefText, TextToBinaryToTextIsStable) {
  for (const char* name : {"encodings", "attributes"}) {
    const std::string given =
        *RealFileSystem().ReadFile(DataFile(absl::StrCat("tests/formats/cases/", name, ".pbtxt")));
    const std::unique_ptr<Graph> graph = *ReadGraphDefText(given);
    const std::string text = Text(*graph);
    StringSink binary;
    ASSERT_TRUE(WriteGraphDef(*graph, &binary).ok());
    const std::unique_ptr<Graph> from_binary = *ReadGraphDef(binary.text(), nullptr);
    EXPECT_EQ(Text(*from_binary), text);
    const std::unique_ptr<Graph> from_text = *ReadGraphDefText(text);
    StringSink again;
    ASSERT_TRUE(WriteGraphDef(*from_text, &again).ok());
    EXPECT_EQ(again.text(), binary.text());
  }
}

TEST(GraphDefText, AttributesAreSorted) {
  Graph graph;
  Node* const node = *graph.AddNode("n", Op::Named("NoOp"));
  for (const char* key : {"c", "a", "b"}) node->SetAttr(key, AttrValue::Int(1));
  const std::string text = Text(graph);
  EXPECT_LT(text.find("\"a\""), text.find("\"b\""));
  EXPECT_LT(text.find("\"b\""), text.find("\"c\""));
}

TEST(GraphDefText, ErrorsNameLineAndColumn) {
  EXPECT_EQ(Error("node {\n  name: \"a\"\n  opp: \"b\"\n}\n"),
            "line 3, column 6: message type \"NodeDef\" has no field named \"opp\", in 'opp: \"b\"'");
  EXPECT_THAT(Error("node {\n  name: \"a\"\n"), HasSubstr("line 3, column 1: "));
  EXPECT_THAT(Error("node { attr { key: 'T' value { type: DT_FLAOT } } }"), HasSubstr("DT_FLAOT"));
}

TEST(GraphDefText, HintsAtTypographicCharacters) {
  EXPECT_THAT(Error("node { name: \u201ca\u201d }"), HasSubstr("typographic quotes"));
  EXPECT_THAT(Error("node { name: \u201aa\u2019 }"), HasSubstr("typographic quotes"));
  EXPECT_THAT(Error("node { attr { key: 'i' value { i: \u20131 } } }"), HasSubstr("typographic dash"));
  EXPECT_THAT(Error("node { attr { key: 'i' value { i: \u20111 } } }"), HasSubstr("typographic dash"));
  EXPECT_THAT(Error("node { nam: 'a' }"), ::testing::Not(HasSubstr("typographic")));
}

TEST(GraphDefText, TextThatIsNotUtf8IsAnError) {
  EXPECT_THAT(Error("node { name: '\\377' op: 'NoOp' }"), HasSubstr("is not UTF-8"));
}

TEST(GraphDefText, DeepNestingIsAnError) {
  std::string text = "node { name: 'n' op: 'NoOp' experimental_type {";
  for (int i = 0; i < 100000; ++i) text += " args {";
  EXPECT_THAT(Error(text), HasSubstr("recursion"));
}

}  // namespace
}  // namespace permafrost
