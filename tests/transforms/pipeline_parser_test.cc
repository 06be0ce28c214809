// Tests the transform string: TensorFlow's grammar, its extensions, and the positions of errors.
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gtest/gtest.h"
#include "transforms/pipeline/pipeline.h"

namespace permafrost {
namespace {

// Returns the calls in their usual form, separated by blanks; "error: ..." otherwise.
std::string Parsed(absl::string_view text) {
  const absl::StatusOr<std::vector<PassCall>> calls = ParsePipeline(text);
  if (!calls.ok()) return absl::StrCat("error: ", calls.status().message());
  std::string result;
  for (const PassCall& call : *calls) absl::StrAppend(&result, result.empty() ? "" : " ", call.ToString());
  return result;
}

struct Accepted {
  const char* text;
  const char* calls;
};

class AcceptedTest : public testing::TestWithParam<Accepted> {};

TEST_P(AcceptedTest, Parses) { EXPECT_EQ(Parsed(GetParam().text), GetParam().calls) << GetParam().text; }

INSTANTIATE_TEST_SUITE_P(
    OriginalGrammar, AcceptedTest,
    testing::Values(Accepted{"", ""}, Accepted{" \t\r\n\v\f ", ""}, Accepted{"foo", "foo"},
                    Accepted{"foo bar", "foo bar"}, Accepted{"foo() bar()", "foo bar"}, Accepted{"foo()bar", "foo bar"},
                    Accepted{"foo\n\tbar\n", "foo bar"}, Accepted{"bar(a=1,\n  b=2)", R"(bar(a="1", b="2"))"},
                    Accepted{"bar(a=1, b=2, a=3)", R"(bar(a="1", b="2", a="3"))"},
                    Accepted{R"(bar(a="1", b="1,2,3"))", R"(bar(a="1", b="1,2,3"))"},
                    Accepted{"bar(a=1 b=2)", R"(bar(a="1", b="2"))"},
                    Accepted{R"(bar(a="x"b=2))", R"(bar(a="x", b="2"))"}, Accepted{"bar(,a=1)", R"(bar(a="1"))"},
                    Accepted{R"(bar(a=""))", R"(bar(a=""))"}, Accepted{R"(bar(a="x\"y"))", R"(bar(a="x\"y"))"},
                    Accepted{R"(bar(a="x\\"))", R"(bar(a="x\\"))"},
                    Accepted{"bar(a=-1.5e-3/x_)", R"(bar(a="-1.5e-3/x_"))"},
                    Accepted{R"(bar(a="/device:CPU:0"))", R"(bar(a="/device:CPU:0"))"},
                    Accepted{"bar(a=\"x\ny\")", "bar(a=\"x\ny\")"}, Accepted{R"(bar(a="x"'))", R"(bar(a="x"))"},
                    Accepted{"bar(a=x')", R"(bar(a="x"))"}, Accepted{R"(bar(a=x"))", R"(bar(a="x"))"},
                    Accepted{R"(bar(a=x"'))", R"(bar(a="x"))"}));

INSTANTIATE_TEST_SUITE_P(BeyondTheOriginal, AcceptedTest,
                         testing::Values(Accepted{"bar(a=1 , b=2)", R"(bar(a="1", b="2"))"},
                                         Accepted{"bar( a=1 )", R"(bar(a="1"))"},
                                         Accepted{"bar (a=1)", R"(bar(a="1"))"},
                                         Accepted{"bar(a = 1)", R"(bar(a="1"))"},
                                         Accepted{"bar(a= 1)", R"(bar(a="1"))"},
                                         Accepted{"bar(a =\"1\")", R"(bar(a="1"))"}, Accepted{"bar( )", "bar"},
                                         Accepted{"foo \\\n bar", "foo bar"}, Accepted{"foo \\\r\n bar", "foo bar"},
                                         Accepted{"foo(a=1, \\\n  b=2) \\\nbar", R"(foo(a="1", b="2") bar)"},
                                         Accepted{"foo bar \\", "foo bar"}, Accepted{"foo\\\nbar", "foo bar"},
                                         Accepted{"foo(a=1\\\n)", R"(foo(a="1"))"}));

INSTANTIATE_TEST_SUITE_P(
    IgnoreErrors, AcceptedTest,
    testing::Values(Accepted{"foo(ignore_errors=true)", R"(foo(ignore_errors="true"))"},
                    Accepted{"foo(a=1, ignore_errors=TRUE)", R"(foo(a="1", ignore_errors="true"))"},
                    Accepted{"foo(ignore_errors=false)", "foo"},
                    Accepted{"foo(ignore_errors=False, ignore_errors=true)", "foo"},
                    Accepted{"foo(ignore_errors=true, ignore_errors=maybe)", R"(foo(ignore_errors="true"))"}));

struct Refused {
  const char* text;
  const char* message;  // Its first line, or a part of it.
  int line;
  int column;  // Both count from 1.
};

class RefusedTest : public testing::TestWithParam<Refused> {};

TEST_P(RefusedTest, PointsAtTheCharacter) {
  const Refused& refused = GetParam();
  const absl::Status status = ParsePipeline(refused.text).status();
  ASSERT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << refused.text;
  const std::vector<std::string> lines = absl::StrSplit(status.message(), '\n');
  ASSERT_EQ(lines.size(), 3) << status.message();
  EXPECT_TRUE(absl::StrContains(lines[0], refused.message)) << lines[0];
  EXPECT_TRUE(absl::StrContains(lines[0], absl::StrCat("line ", refused.line, ", column ", refused.column, ": ")))
      << lines[0];
  const std::vector<std::string> source = absl::StrSplit(refused.text, '\n');
  EXPECT_EQ(lines[1], absl::StrCat("  ", source[refused.line - 1]));
  std::string caret = lines[2];
  EXPECT_EQ(caret.size(), 2 + refused.column) << status.message();
  EXPECT_EQ(caret.back(), '^');
}

INSTANTIATE_TEST_SUITE_P(
    Grammar, RefusedTest,
    testing::Values(
        Refused{"bar(a='x')", "found a single quote (use \"), expected a value", 1, 7},
        Refused{"bar(a=1,)", "found ')', expected a parameter name after the comma", 1, 9},
        Refused{"bar(,)", "expected a parameter name after the comma", 1, 6},
        Refused{"bar(a=1,,b=2)", "found ',', expected a parameter name", 1, 9},
        Refused{"bar(a=x:0)", "found ':', expected ',' or ')'; a value with other characters needs double", 1, 8},
        Refused{"bar(a=*)", "found '*', expected a value", 1, 7}, Refused{"bar(a=a+b)", "found '+'", 1, 8},
        Refused{"bar(a=a=b)", "found '='", 1, 8}, Refused{"bar(a=)", "found ')', expected a value", 1, 7},
        Refused{"bar(a=,b=1)", "found ',', expected a value", 1, 7}, Refused{"bar(a)", "found ')', expected =", 1, 6},
        Refused{"bar(=1)", "found '=', expected a parameter name", 1, 5},
        Refused{"foo,bar", "found ',', expected a blank: transforms are separated by", 1, 4},
        Refused{"foo)", "found ')'", 1, 4}, Refused{"(a=1)", "found '('", 1, 1}, Refused{"foo-bar", "found '-'", 1, 4},
        Refused{"foo \\ bar", "found '\\'", 1, 5}, Refused{"one\ntwo(a=1,\n  b=:)", "found ':'", 3, 5},
        Refused{"bar(a=\"x\"c)", "found ')', expected =", 1, 11},
        Refused{"foo(ignore_errors=maybe)", "ignore_errors should be true or false, found maybe", 1, 19},
        Refused{"foo(ignore_errors=1)", "ignore_errors should be true or false, found 1", 1, 19}));

INSTANTIATE_TEST_SUITE_P(NotClosed, RefusedTest,
                         testing::Values(Refused{"foo(", "unterminated parameter list", 1, 4},
                                         Refused{"foo(a=1", "unterminated parameter list", 1, 4},
                                         Refused{"one foo(a=1, ", "unterminated parameter list", 1, 8},
                                         Refused{"foo(a=", "found the end, expected a value", 1, 7},
                                         Refused{"foo(a", "found the end, expected =", 1, 6},
                                         Refused{"bar(a=\"never closed",
                                                 "found '\"', expected a quote that closes this value", 1, 7},
                                         Refused{"bar(a=\"x\\\")", "expected a quote that closes this value", 1, 7}));

INSTANTIATE_TEST_SUITE_P(Typographic, RefusedTest,
                         testing::Values(Refused{"foo(a=“x”)", "found a typographic quote (use \"), expected a value",
                                                 1, 7},
                                         Refused{"foo(a=‘x’)", "found a typographic quote (use \")", 1, 7},
                                         Refused{"foo(a=\"x”)", "expected a quote that closes this value", 1, 7},
                                         Refused{"foo(a=–1)", "found an en dash (use -)", 1, 7},
                                         Refused{"foo(a=—1)", "found an em dash (use -)", 1, 7},
                                         Refused{"foo(a=−1)", "found a minus sign (use -)", 1, 7},
                                         Refused{"foo(a=1e‑3)", "found a non-breaking hyphen (use -)", 1, 9},
                                         Refused{"foo\u00a0bar", "found a non-breaking space (use a space)", 1, 4},
                                         Refused{"„foo“", "found a typographic quote (use \")", 1, 1},
                                         Refused{"foo(a=«x»)", "found a typographic quote (use \")", 1, 7},
                                         Refused{"foo(a=‒1)", "found a figure dash (use -)", 1, 7},
                                         Refused{"é(a=1)", "found a character outside ASCII", 1, 1}));

// Columns count characters, not bytes: the caret is under the right character after non-ASCII text.
TEST(Caret, StandsUnderTheCharacterBehindOthers) {
  const absl::Status status = ParsePipeline("foo(a=\"äöü\", b=:)").status();
  EXPECT_TRUE(absl::StrContains(status.message(), "column 16: found ':'")) << status.message();
  EXPECT_TRUE(absl::EndsWith(status.message(), absl::StrCat("\n  ", std::string(15, ' '), "^"))) << status.message();
}

TEST(Caret, FollowsTabs) {
  const absl::Status status = ParsePipeline("\tfoo(a=:)").status();
  EXPECT_TRUE(absl::EndsWith(status.message(), "\n  \tfoo(a=:)\n  \t      ^")) << status.message();
}

TEST(Parser, GivesBackWhatItWroteItself) {
  const std::string text = R"(foo(a="1", b="x y", a="\"", ignore_errors="true") bar baz(c=""))";
  EXPECT_EQ(Parsed(text), text);
}

}  // namespace
}  // namespace permafrost
