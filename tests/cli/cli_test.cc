// Runs the command lines in cases/*.txt and compares exit code, standard output and standard error.
//
// A case is a text file:
//     # Purpose of the case.
//     % head -c 500 digits/digits.pb > cut.pb        preparatory commands (any number of lines)
//     $ transform_graph --in_graph=cut.pb ...           the command under test
//     --- exit 255
//     --- stdout
//     --- stderr
//     transform_graph: ...
// Each case runs in its own folder, which holds only links: digits, to the bundled model; graphs, to those beside this
// file; and, hidden from ls, .examples, to those of the guides; .libraries, to faulty libraries; .models, to models
// with variables; and .images, to pictures of digits. The tools are on the PATH. A line "..." of the expectation
// matches any lines. Times and runs of blanks are normalised before the comparison. `UPDATE_CASES=1 bazel run
// //tests/cli:cli_test` writes the output of the tools into the cases in the source tree, unless the expectation
// already matches; check the diff before you commit it.
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace permafrost {
namespace {

namespace fs = std::filesystem;

struct Result {
  std::string exit;
  std::vector<std::string> out;
  std::vector<std::string> err;
};

struct Case {
  std::string head;  // Comment, preparation and command, verbatim.
  std::vector<std::string> preparation;
  std::string command;
  Result expected;
};

std::string ReadFile(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

std::vector<std::string> Lines(const std::string& text) {
  std::vector<std::string> lines = absl::StrSplit(text, '\n');
  if (!lines.empty() && lines.back().empty()) lines.pop_back();
  return lines;
}

Case ParseCase(const std::string& text) {
  Case parsed;
  std::vector<std::string>* section = nullptr;
  for (const std::string& line : Lines(text)) {
    absl::string_view rest = line;
    if (absl::ConsumePrefix(&rest, "--- exit ")) {
      parsed.expected.exit = std::string(rest);
      section = nullptr;
    } else if (line == "--- stdout") {
      section = &parsed.expected.out;
    } else if (line == "--- stderr") {
      section = &parsed.expected.err;
    } else if (section != nullptr) {
      section->push_back(line);
    } else {
      absl::StrAppend(&parsed.head, line, "\n");
      if (absl::ConsumePrefix(&rest, "% ")) parsed.preparation.emplace_back(rest);
      if (absl::ConsumePrefix(&rest, "$ ")) parsed.command = std::string(rest);
    }
  }
  return parsed;
}

// Replaces text that differs between runs: times, and the blanks around columns of varying width.
std::string Normalized(const std::string& line) {
  static const std::regex* const kTime = new std::regex("[0-9]+(\\.[0-9]+)? (us|ms|s)\\b");
  static const std::regex* const kSeconds = new std::regex("\"([a-z0-9_]*seconds)\": [0-9.e+-]+");
  static const std::regex* const kBlanks = new std::regex(" {2,}");
  std::string text = std::regex_replace(line, *kTime, "<time>");
  text = std::regex_replace(text, *kSeconds, "\"$1\": <time>");
  return std::regex_replace(text, *kBlanks, "  ");
}

std::vector<std::string> Normalized(const std::vector<std::string>& lines) {
  std::vector<std::string> normalized;
  for (const std::string& line : lines) normalized.push_back(Normalized(line));
  return normalized;
}

// Returns whether `actual` matches `expected`, in which a line "..." matches any number of lines.
bool Matches(const std::vector<std::string>& expected, const std::vector<std::string>& actual) {
  std::vector<bool> reached(actual.size() + 1,
                            false);  // reached[i]: the expected lines so far match the first i lines.
  reached[0] = true;
  for (const std::string& line : expected) {
    std::vector<bool> next(actual.size() + 1, false);
    for (size_t i = 0; i <= actual.size(); ++i) {
      if (line == "...") {
        next[i] = reached[i] || (i > 0 && next[i - 1]);
      } else if (i > 0) {
        next[i] = reached[i - 1] && line == actual[i - 1];
      }
    }
    reached = std::move(next);
  }
  return reached.back();
}

fs::path Runfiles() {
  const char* folder = getenv("TEST_SRCDIR");
  const char* workspace = getenv("TEST_WORKSPACE");
  if (folder != nullptr && workspace != nullptr) return fs::path(folder) / workspace;
  return fs::current_path();
}

int Shell(const std::string& command) {
  const int status = std::system(command.c_str());
  if (status == -1) return -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

Result RunCase(const Case& test, const fs::path& folder) {
  fs::remove_all(folder);
  fs::create_directories(folder / "work");
  fs::create_directory_symlink(Runfiles() / "tests/models/digits", folder / "work/digits");
  fs::create_directory_symlink(Runfiles() / "tests/cli/graphs", folder / "work/graphs");
  fs::create_directory_symlink(Runfiles() / "docs/examples", folder / "work/.examples");
  fs::create_directory_symlink(Runfiles() / "tests/freeze/models", folder / "work/.models");
  fs::create_directory_symlink(Runfiles() / "tests/runtime_check/delegates/libraries", folder / "work/.libraries");
  fs::create_directory_symlink(Runfiles() / "tests/models/digit_images", folder / "work/.images");
  std::string script = absl::StrCat("cd '", (folder / "work").string(), "'\nexport PATH='",
                                    (Runfiles() / "tools").string(), "':\"$PATH\" LC_ALL=C\n");
  if (!test.preparation.empty()) {
    absl::StrAppend(&script, "(\nset -e\n", absl::StrJoin(test.preparation, "\n"), "\n) >'",
                    (folder / "preparation").string(), "' 2>&1 || exit 99\n");
  }
  absl::StrAppend(&script, "{ ", test.command, "\n} >'", (folder / "out").string(), "' 2>'", (folder / "err").string(),
                  "' </dev/null\n");
  std::ofstream(folder / "script") << script;
  Result result;
  result.exit = absl::StrCat(Shell(absl::StrCat("sh '", (folder / "script").string(), "'")));
  if (result.exit == "99") ADD_FAILURE() << "preparation failed: " << ReadFile(folder / "preparation");
  result.out = Lines(ReadFile(folder / "out"));
  result.err = Lines(ReadFile(folder / "err"));
  return result;
}

std::vector<std::string> CaseNames() {
  std::vector<std::string> names;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(Runfiles() / "tests/cli/cases", error)) {
    if (entry.path().extension() == ".txt") names.push_back(entry.path().stem().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::string Written(const Case& test, const Result& result) {
  std::string text = absl::StrCat(test.head, "--- exit ", result.exit, "\n--- stdout\n");
  for (const std::string& line : result.out) absl::StrAppend(&text, line, "\n");
  absl::StrAppend(&text, "--- stderr\n");
  for (const std::string& line : result.err) absl::StrAppend(&text, line, "\n");
  return text;
}

class CliTest : public testing::TestWithParam<std::string> {};

TEST_P(CliTest, PrintsWhatIsExpected) {
  const Case test = ParseCase(ReadFile(Runfiles() / "tests/cli/cases" / (GetParam() + ".txt")));
  ASSERT_FALSE(test.command.empty()) << "the case has no line that starts with '$ '";
  const Result actual = RunCase(test, fs::path(testing::TempDir()) / "cli" / GetParam());
  const bool out_matches = Matches(Normalized(test.expected.out), Normalized(actual.out));
  const bool err_matches = Matches(Normalized(test.expected.err), Normalized(actual.err));
  const char* source = getenv("BUILD_WORKSPACE_DIRECTORY");
  if (getenv("UPDATE_CASES") != nullptr && source != nullptr) {
    const fs::path path = fs::path(source) / "tests/cli/cases" / (GetParam() + ".txt");
    const Result kept{actual.exit, out_matches ? test.expected.out : actual.out,
                      err_matches ? test.expected.err : actual.err};
    std::ofstream(path, std::ios::binary) << Written(test, kept);
    return;
  }
  EXPECT_EQ(actual.exit, test.expected.exit);
  EXPECT_TRUE(out_matches) << "standard output:\n" << absl::StrJoin(actual.out, "\n");
  EXPECT_TRUE(err_matches) << "standard error:\n" << absl::StrJoin(actual.err, "\n");
}

INSTANTIATE_TEST_SUITE_P(Cases, CliTest, testing::ValuesIn(CaseNames()),
                         [](const testing::TestParamInfo<std::string>& info) { return info.param; });

TEST(CliCases, AreFound) { EXPECT_GT(CaseNames().size(), 20u); }

TEST(CliRunner, KnowsWhatMatches) {
  EXPECT_TRUE(Matches({"a", "...", "d"}, {"a", "b", "c", "d"}));
  EXPECT_TRUE(Matches({"..."}, {}));
  EXPECT_FALSE(Matches({"a", "...", "d"}, {"a", "b"}));
  EXPECT_FALSE(Matches({"a"}, {"a", "b"}));
  EXPECT_EQ(Normalized("strip    3  12.5 ms"), Normalized("strip  3  7 us"));
  EXPECT_NE(Normalized("3 nodes"), Normalized("4 nodes"));
}

}  // namespace
}  // namespace permafrost
