// Tests the requirements of --lineage and --bisect for every pass, on every golden case. A new node must have an
// origin, and a pass that is stopped after any number of rewrites must leave a valid graph with equivalent outputs.
#include <algorithm>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "graph/lineage.h"
#include "graph/validation/validate.h"
#include "gtest/gtest.h"
#include "tests/transforms/golden_runs.h"

namespace permafrost {
namespace {

// Cases with more rewrites are stopped after a sample of them only.
constexpr int64_t kMostLimits = 8;

std::vector<GoldenCase> Cases() {
  std::vector<GoldenCase> cases;
  absl::StatusOr<std::vector<GoldenCase>> found = FindGoldenCases(kGoldenFolder);
  if (!found.ok()) return cases;
  for (GoldenCase& golden : *found) {
    if (golden.expected_error.empty()) cases.push_back(std::move(golden));
  }
  return cases;
}

class RewriteScopeTest : public testing::TestWithParam<GoldenCase> {};

TEST_P(RewriteScopeTest, NewNodesSayWhereTheyComeFrom) {
  const GoldenCase& golden = GetParam();
  absl::StatusOr<std::unique_ptr<Graph>> graph = ReadGraphOf(golden);
  ASSERT_TRUE(graph.ok()) << graph.status();
  absl::flat_hash_set<std::string> originals;
  for (const Node* node = (*graph)->first(); node != nullptr; node = node->next()) originals.emplace(node->name());
  (*graph)->RecordLineage();
  const absl::StatusOr<Outcome> outcome = RunOver(golden.run, *std::move(graph));
  ASSERT_TRUE(outcome.ok()) << outcome.status();
  const Lineage* lineage = outcome->graph->lineage();
  ASSERT_NE(lineage, nullptr) << "the pass has put another graph in the place of its own";
  for (const Node* node = outcome->graph->first(); node != nullptr; node = node->next()) {
    const Lineage::Origins origins = lineage->OriginsOf(*node, 1000);
    EXPECT_FALSE(origins.names.empty()) << golden.path << ": " << node->Describe()
                                        << " comes from nowhere: make it inside a RewriteScope (transforms/pass.h)";
    for (const absl::string_view name : origins.names) EXPECT_TRUE(originals.contains(name)) << name;
  }
}

TEST_P(RewriteScopeTest, APassMayBeStoppedAfterAnyRewrite) {
  const GoldenCase& golden = GetParam();
  const absl::StatusOr<Outcome> whole = RunCase(golden);
  ASSERT_TRUE(whole.ok()) << whole.status();
  int64_t asked = 0;
  for (const PassReport& report : whole->reports) asked = std::max(asked, report.rewrites_asked);
  const int64_t step = std::max<int64_t>(1, asked / kMostLimits);
  for (int64_t limit = 0; limit < asked; limit += step) {
    SCOPED_TRACE(absl::StrCat(golden.path, ", stopped after ", limit, " of ", asked, " rewrites"));
    absl::StatusOr<std::unique_ptr<Graph>> graph = ReadGraphOf(golden);
    ASSERT_TRUE(graph.ok()) << graph.status();
    const absl::StatusOr<Outcome> part = RunOver(golden.run, *std::move(graph), limit);
    ASSERT_TRUE(part.ok()) << part.status();
    EXPECT_TRUE(Validate(*part->graph).ok()) << Validate(*part->graph);
    if (!golden.not_run.empty() || !golden.changes_numbers.empty()) continue;
    const absl::StatusOr<std::unique_ptr<Graph>> before = ReadGraphOf(golden);
    bool within = false;
    std::string worst;
    const absl::Status ran = CompareRuns(golden, **before, *part->graph, &within, &worst, whole->graph.get());
    ASSERT_TRUE(ran.ok()) << ran;
    EXPECT_TRUE(within) << worst;
  }
}

// The first step of --bisect runs a pass without rewrites.
TEST_P(RewriteScopeTest, APassThatMayNotRewriteChangesNothing) {
  const GoldenCase& golden = GetParam();
  const absl::StatusOr<Outcome> whole = RunCase(golden);
  ASSERT_TRUE(whole.ok()) << whole.status();
  absl::StatusOr<std::unique_ptr<Graph>> graph = ReadGraphOf(golden);
  ASSERT_TRUE(graph.ok()) << graph.status();
  const absl::StatusOr<Outcome> none = RunOver(golden.run, *std::move(graph), 0);
  ASSERT_TRUE(none.ok()) << none.status();
  for (size_t i = 0; i < none->reports.size(); ++i) {
    if (whole->reports[i].rewrites_asked == 0) continue;  // A single step over the graph.
    EXPECT_EQ(none->reports[i].rewrites, 0) << none->reports[i].name;
  }
}

// Returns the number of nodes of the case that satisfy `is_done` if the pass is stopped after that many rewrites.
template <typename Predicate>
int64_t CountAfter(const std::string& pass, const std::string& name, int64_t limit, Predicate is_done) {
  for (const GoldenCase& golden : Cases()) {
    if (golden.pass != pass || golden.name != name) continue;
    absl::StatusOr<std::unique_ptr<Graph>> graph = ReadGraphOf(golden);
    EXPECT_TRUE(graph.ok()) << graph.status();
    const absl::StatusOr<Outcome> part = RunOver(golden.run, *std::move(graph), limit);
    EXPECT_TRUE(part.ok()) << part.status();
    int64_t count = 0;
    for (const Node* node = part->graph->first(); node != nullptr; node = node->next()) count += is_done(*node);
    return count;
  }
  ADD_FAILURE() << "no case " << pass << "/" << name;
  return -1;
}

TEST(RewriteScope, ArraysAreBackportedOneByOne) {
  const auto is_old = [](const Node& node) { return node.op() == Op::Named("TensorArrayWriteV2"); };
  for (int64_t limit = 0; limit <= 2; ++limit) {
    EXPECT_EQ(CountAfter("backport_tensor_array_v3", "two_arrays", limit, is_old), limit);
  }
}

TEST(RewriteScope, DefaultsAreWrittenOutNodeByNode) {
  const auto has_default = [](const Node& node) { return node.HasAttr("depth_radius"); };
  EXPECT_EQ(CountAfter("add_default_attributes", "lrn", 1, has_default), 0);  // That of the placeholder.
  EXPECT_EQ(CountAfter("add_default_attributes", "lrn", 2, has_default), 1);
}

TEST(RewriteScope, NamesAreReplacedNodeByNode) {
  const auto has_letter = [](const Node& node) { return absl::ascii_isalpha(node.name()[0]); };
  EXPECT_EQ(CountAfter("obfuscate_names", "taken_ids", 0, has_letter), 2);  // b, which becomes 1, and c.
  // b cannot be renamed to '1', since a node of that name keeps it.
  EXPECT_EQ(CountAfter("obfuscate_names", "taken_ids", 1, has_letter), 2);
  EXPECT_EQ(CountAfter("obfuscate_names", "taken_ids", 2, has_letter), 1);
  EXPECT_EQ(CountAfter("obfuscate_names", "taken_ids", 3, has_letter), 0);
}

TEST(RewriteScope, TheLastUnusedNodeGoesFirst) {
  const auto is_unused = [](const Node& node) { return node.name() == "loss" || node.name() == "unread"; };
  const auto is_loss = [](const Node& node) { return node.name() == "loss"; };
  EXPECT_EQ(CountAfter("strip_unused_nodes", "training_branch", 0, is_unused), 2);
  EXPECT_EQ(CountAfter("strip_unused_nodes", "training_branch", 1, is_unused), 1);
  EXPECT_EQ(CountAfter("strip_unused_nodes", "training_branch", 1, is_loss), 1);
  EXPECT_EQ(CountAfter("strip_unused_nodes", "training_branch", 2, is_unused), 0);
}

INSTANTIATE_TEST_SUITE_P(Cases, RewriteScopeTest, testing::ValuesIn(Cases()),
                         [](const testing::TestParamInfo<GoldenCase>& info) {
                           std::string name = absl::StrCat(info.param.pass, "_", info.param.name);
                           std::replace_if(
                               name.begin(), name.end(), [](char c) { return !std::isalnum(c); }, '_');
                           return name;
                         });

}  // namespace

// Prints a case in messages of gtest.
void PrintTo(const GoldenCase& golden, std::ostream* out) { *out << golden.path; }

}  // namespace permafrost
