// Runs every golden case, and checks the properties that hold for any pass on any graph. See golden_case.h for the
// files; tests/golden/update rewrites the expected ones.
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "graph/base/status.h"
#include "graph/validation/validate.h"
#include "gtest/gtest.h"
#include "io/formats/graphdef.h"
#include "io/formats/graphdef_text.h"
#include "tests/transforms/golden_case.h"
#include "tests/transforms/golden_runs.h"
#include "tests/transforms/graph_text.h"
#include "transforms/pipeline/pipeline.h"

namespace permafrost {
namespace {

// Maximum number of cases that the runtime cannot run. If it is exceeded, extend the runtime.
constexpr size_t kMostNotRun = 40;

const std::vector<GoldenCase>& Cases() {
  static const auto* const cases = [] {
    absl::StatusOr<std::vector<GoldenCase>> found = FindGoldenCases(kGoldenFolder);
    if (!found.ok()) std::fprintf(stderr, "%s\n", std::string(found.status().message()).c_str());
    return new std::vector<GoldenCase>(found.ok() ? *std::move(found) : std::vector<GoldenCase>());
  }();
  return *cases;
}

std::string Text(const Graph& graph) {
  StringSink sink;
  const absl::Status status = WriteGraphDefText(graph, &sink);
  return status.ok() ? sink.Release() : status.ToString();
}

std::string Binary(const Graph& graph) {
  StringSink sink;
  const absl::Status status = WriteGraphDef(graph, &sink);
  return status.ok() ? sink.Release() : status.ToString();
}

bool HasLineWith(const std::vector<std::string>& lines, const std::string& part) {
  return std::any_of(lines.begin(), lines.end(), [&](const std::string& l) { return absl::StrContains(l, part); });
}

class GoldenTest : public testing::TestWithParam<GoldenCase> {};

TEST_P(GoldenTest, HoldsWhatItExpectsAndWhatAlwaysHolds) {
  const GoldenCase& golden = GetParam();
  SCOPED_TRACE(golden.path);
  ASSERT_TRUE(absl::StrContains(golden.run, golden.pass)) << "the folder's pass does not occur in: " << golden.run;

  absl::StatusOr<Outcome> outcome = RunCase(golden);
  if (!golden.expected_error.empty()) {
    ASSERT_FALSE(outcome.ok()) << "expected an error";
    EXPECT_NE(outcome.status().code(), absl::StatusCode::kInternal) << outcome.status();
    EXPECT_TRUE(absl::StrContains(outcome.status().message(), golden.expected_error))
        << "found the error '" << outcome.status().message() << "', expected it to hold '" << golden.expected_error
        << "'";
    return;
  }
  ASSERT_TRUE(outcome.ok()) << outcome.status();
  const Graph& found = *outcome->graph;
  for (const std::string& note : golden.expected_notes) {
    EXPECT_TRUE(HasLineWith(outcome->reports.back().notes, note)) << absl::StrJoin(outcome->reports.back().notes, "\n");
  }
  std::vector<std::string> misses;
  for (const MissedRewrite& miss : outcome->reports.back().misses) misses.push_back(miss.ToString());
  for (const std::string& miss : golden.expected_misses) {
    EXPECT_TRUE(HasLineWith(misses, miss)) << absl::StrJoin(misses, "\n");
  }

  const absl::StatusOr<std::unique_ptr<Graph>> before = ReadGraphOf(golden);
  ASSERT_TRUE(before.ok()) << before.status();
  // RunPipeline checks passes only if the graph was valid at the start.
  EXPECT_TRUE(Validate(**before).ok()) << Validate(**before);
  EXPECT_TRUE(Validate(found).ok()) << Validate(found);

  if (golden.expects_unchanged) {
    EXPECT_EQ(outcome->rewrites, 0);
    EXPECT_FALSE(std::filesystem::exists(golden.expected_path)) << "an unchanged case has no expected file";
    EXPECT_EQ(absl::StrJoin(GraphDifferences(found, **before), "\n"), "");
  } else {
    EXPECT_GT(outcome->rewrites, 0) << absl::StrJoin(misses, "\n");
    if (const char* root = std::getenv("BUILD_WORKSPACE_DIRECTORY");
        root != nullptr && std::getenv("PERMAFROST_UPDATE_GOLDEN") != nullptr) {
      const absl::StatusOr<std::string> text = CompactText(found);
      ASSERT_TRUE(text.ok()) << text.status();
      std::ofstream(absl::StrCat(root, "/", golden.expected_path)) << *text;
    } else {
      const absl::StatusOr<std::string> text = ReadWhole(golden.expected_path);
      ASSERT_TRUE(text.ok()) << text.status() << "; tests/golden/update writes it";
      const absl::StatusOr<std::unique_ptr<Graph>> expected = ReadGraphDefText(*text);
      ASSERT_TRUE(expected.ok()) << expected.status();
      EXPECT_EQ(absl::StrJoin(GraphDifferences(found, **expected), "\n"), "");
    }
  }

  const absl::StatusOr<Outcome> again = RunCase(golden);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(Binary(found), Binary(*again->graph)) << "two runs give different bytes";

  const std::string binary = Binary(found);
  const absl::StatusOr<std::unique_ptr<Graph>> reread = ReadGraphDef(binary, nullptr);
  ASSERT_TRUE(reread.ok()) << reread.status();
  EXPECT_EQ(Text(found), Text(**reread)) << "text -> binary -> text differs";

  const absl::StatusOr<std::vector<PassCall>> calls = ParsePipeline(golden.run);
  if (calls->size() == 1 && (*FindPass(calls->front().name))->is_idempotent) {
    const absl::StatusOr<Outcome> second = RunOver(golden.run, found.Clone());
    ASSERT_TRUE(second.ok()) << second.status();
    EXPECT_EQ(second->rewrites, 0) << "the pass says that it is idempotent, and changes its own result:\n"
                                   << absl::StrJoin(GraphDifferences(*second->graph, found), "\n");
  }

  bool within = false;
  std::string worst;
  const absl::Status ran = CompareRuns(golden, **before, found, &within, &worst);
  if (!golden.not_run.empty()) {
    EXPECT_FALSE(ran.ok()) << "NOT_RUN is out of date: the runtime runs both graphs";
    return;
  }
  ASSERT_TRUE(ran.ok()) << ran << "; a case that the runtime cannot run says '# NOT_RUN: reason'";
  EXPECT_EQ(within, golden.changes_numbers.empty()) << (within ? "CHANGES_NUMBERS is out of date" : worst);
}

INSTANTIATE_TEST_SUITE_P(Cases, GoldenTest, testing::ValuesIn(Cases()),
                         [](const testing::TestParamInfo<GoldenCase>& info) {
                           std::string name = absl::StrCat(info.param.pass, "_", info.param.name);
                           std::replace_if(
                               name.begin(), name.end(), [](char c) { return !std::isalnum(c); }, '_');
                           return name;
                         });

TEST(GoldenCases, AreFoundAndNearlyAllAreRun) {
  const absl::StatusOr<std::vector<GoldenCase>> cases = FindGoldenCases(kGoldenFolder);
  ASSERT_TRUE(cases.ok()) << cases.status();
  EXPECT_FALSE(cases->empty());
  std::vector<std::string> not_run;
  for (const GoldenCase& golden : *cases) {
    if (!golden.not_run.empty()) not_run.push_back(golden.path);
  }
  EXPECT_LE(not_run.size(), kMostNotRun) << absl::StrJoin(not_run, "\n");
}

}  // namespace

// Prints a case in messages of gtest.
void PrintTo(const GoldenCase& golden, std::ostream* out) { *out << golden.path; }

}  // namespace permafrost
