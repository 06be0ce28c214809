// Finds golden cases and reads their directives.
#include "tests/transforms/golden_case.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "graph/base/status.h"
#include "io/formats/graphdef_text.h"

namespace permafrost {
namespace {

std::vector<std::string> Names(absl::string_view text) {
  std::vector<std::string> names;
  for (const absl::string_view name : absl::StrSplit(text, ',', absl::SkipWhitespace())) {
    names.emplace_back(absl::StripAsciiWhitespace(name));
  }
  return names;
}

absl::StatusOr<std::string> Quoted(absl::string_view text) {
  if (text.size() < 3 || !absl::ConsumePrefix(&text, "\"") || !absl::ConsumeSuffix(&text, "\"")) {
    return absl::InvalidArgumentError("expected a text in double quotes");
  }
  return std::string(text);
}

absl::Status ParseShapes(absl::string_view text, GoldenCase* golden) {
  for (const absl::string_view entry : absl::StrSplit(text, ';', absl::SkipWhitespace())) {
    const std::pair<absl::string_view, absl::string_view> parts = absl::StrSplit(entry, absl::MaxSplits('=', 1));
    PF_ASSIGN_OR_RETURN(golden->shapes[absl::StripAsciiWhitespace(parts.first)], ParseShape(parts.second));
  }
  return absl::OkStatus();
}

absl::Status ParseDirective(absl::string_view key, absl::string_view value, GoldenCase* golden) {
  if (key == "RUN") {
    golden->run = std::string(value);
  } else if (key == "INPUTS") {
    golden->inputs = Names(value);
  } else if (key == "OUTPUTS") {
    golden->outputs = Names(value);
  } else if (key == "EXPECT") {
    if (value != "unchanged") return absl::InvalidArgumentError("expected unchanged");
    golden->expects_unchanged = true;
  } else if (key == "EXPECT_ERROR") {
    PF_ASSIGN_OR_RETURN(golden->expected_error, Quoted(value));
  } else if (key == "EXPECT_NOTE") {
    PF_ASSIGN_OR_RETURN(golden->expected_notes.emplace_back(), Quoted(value));
  } else if (key == "EXPECT_MISS") {
    PF_ASSIGN_OR_RETURN(golden->expected_misses.emplace_back(), Quoted(value));
  } else if (key == "SHAPES") {
    return ParseShapes(value, golden);
  } else if (key == "CHANGES_NUMBERS") {
    golden->changes_numbers = std::string(value);
  } else if (key == "WITHIN") {
    if (!absl::SimpleAtod(value, &golden->within) || golden->within < 0) {
      return absl::InvalidArgumentError("expected a number that is not negative");
    }
  } else if (key == "NOT_RUN") {
    golden->not_run = std::string(value);
  } else {
    return absl::InvalidArgumentError("no such directive");
  }
  return absl::OkStatus();
}

// A directive is a word in capitals followed by a colon.
bool IsDirective(absl::string_view key) {
  return !key.empty() && std::all_of(key.begin(), key.end(), [](char c) { return absl::ascii_isupper(c) || c == '_'; });
}

absl::Status ParseDirectives(GoldenCase* golden) {
  for (absl::string_view line : absl::StrSplit(golden->text, '\n')) {
    if (!absl::ConsumePrefix(&line, "#")) break;
    const std::pair<absl::string_view, absl::string_view> parts = absl::StrSplit(line, absl::MaxSplits(':', 1));
    const absl::string_view key = absl::StripAsciiWhitespace(parts.first);
    if (!absl::StrContains(line, ':') || !IsDirective(key)) continue;
    PF_RETURN_IF_ERROR(Annotate(ParseDirective(key, absl::StripAsciiWhitespace(parts.second), golden),
                                absl::StrCat(golden->path, ": directive '", key, "'")));
  }
  if (golden->run.empty()) return absl::InvalidArgumentError(absl::StrCat(golden->path, ": no directive 'RUN'"));
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::string> ReadWhole(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return absl::NotFoundError(absl::StrCat("cannot open '", path, "'"));
  std::ostringstream content;
  content << file.rdbuf();
  return content.str();
}

absl::StatusOr<std::vector<GoldenCase>> FindGoldenCases(const std::string& folder) {
  std::vector<GoldenCase> cases;
  std::error_code error;
  for (std::filesystem::recursive_directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    const std::string path = entry->path().string();
    if (!absl::EndsWith(path, ".pbtxt") || absl::EndsWith(path, ".expected.pbtxt")) continue;
    GoldenCase golden;
    golden.path = path;
    golden.pass = entry->path().parent_path().filename().string();
    golden.name = entry->path().stem().string();
    golden.expected_path = absl::StrCat(path.substr(0, path.size() - 6), ".expected.pbtxt");
    PF_ASSIGN_OR_RETURN(golden.text, ReadWhole(path));
    PF_RETURN_IF_ERROR(ParseDirectives(&golden));
    cases.push_back(std::move(golden));
  }
  if (error) return absl::NotFoundError(absl::StrCat("cannot list '", folder, "': ", error.message()));
  std::sort(cases.begin(), cases.end(), [](const GoldenCase& a, const GoldenCase& b) { return a.path < b.path; });
  return cases;
}

absl::StatusOr<std::unique_ptr<Graph>> ReadGraphOf(const GoldenCase& golden) {
  PF_ASSIGN_OR_RETURN(std::unique_ptr<Graph> graph, ReadGraphDefText(golden.text));
  std::vector<std::string> inputs, outputs;
  for (const Node* node = graph->first(); node != nullptr; node = node->next()) {
    if (node->op() == ops::kPlaceholder) inputs.emplace_back(node->name());
    if (node->uses().empty()) outputs.emplace_back(node->name());
  }
  PF_RETURN_IF_ERROR(graph->DeclareInterface(golden.inputs.value_or(inputs), golden.outputs.value_or(outputs)));
  return graph;
}

}  // namespace permafrost
