// Tests that every pass is documented and has golden cases, and that the generated page matches the definitions.
#include <filesystem>
#include <map>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/transforms/golden_case.h"
#include "transforms/pass.h"
#include "transforms/pass_docs.h"

namespace permafrost {
namespace {

TEST(Registry, EveryPassHasAChangingAndAnUnchangedCase) {
  const absl::StatusOr<std::vector<GoldenCase>> cases = FindGoldenCases("tests/golden");
  ASSERT_TRUE(cases.ok()) << cases.status();
  std::map<std::string, int> changing, unchanged;
  for (const GoldenCase& golden : *cases) {
    EXPECT_TRUE(FindPass(golden.pass).ok()) << golden.path << ": the folder is not named after a pass";
    if (golden.expects_unchanged) ++unchanged[golden.pass];
    if (!golden.expects_unchanged && golden.expected_error.empty()) ++changing[golden.pass];
  }
  for (const PassDefinition& pass : AllPasses()) {
    EXPECT_GT(changing[pass.name], 0) << "no case in tests/golden/" << pass.name << "/ that changes the graph";
    EXPECT_GT(unchanged[pass.name], 0) << "no case in tests/golden/" << pass.name << "/ with '# EXPECT: unchanged'";
  }
}

TEST(Registry, EveryPassAndParameterIsDocumented) {
  ASSERT_FALSE(AllPasses().empty());
  for (const PassDefinition& pass : AllPasses()) {
    EXPECT_TRUE(absl::EndsWith(pass.summary, ".")) << pass.name << ": " << pass.summary;
    EXPECT_TRUE(absl::EndsWith(pass.why, ".")) << pass.name << ": .Why() is '" << pass.why << "'";
    EXPECT_TRUE(absl::StrContains(PassDoc(pass), "\nExample:\n"))
        << pass.name << ": no line in docs/pass_figures.tsv; see tests/bench/pass_figures.py";
    EXPECT_FALSE(pass.description.empty()) << pass.name << ": no comment above DEFINE_PASS";
    for (const ParamSpec& param : pass.params) {
      EXPECT_TRUE(absl::EndsWith(param.help, ".")) << pass.name << ", " << param.name << ": '" << param.help << "'";
      EXPECT_NE(param.name, "ignore_errors") << pass.name << ": the pipeline's own argument";
    }
    if (pass.numerics.kind == Numerics::Kind::kChanges) {
      EXPECT_FALSE(pass.numerics.why.empty()) << pass.name;
    }
  }
}

TEST(Registry, ThePageIsUpToDate) {
  const absl::StatusOr<std::string> page = ReadWhole("docs/passes.md");
  ASSERT_TRUE(page.ok()) << page.status();
  EXPECT_TRUE(*page == PassDocs())
      << "docs/passes.md is stale: bazel run //tests/transforms:print_pass_docs > docs/passes.md";
}

TEST(Registry, AnUnknownPassHasItsNeighboursNamed) {
  const absl::Status status = FindPass("remove_node").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(absl::StrContains(status.message(), "'remove_nodes'")) << status;
}

TEST(Registry, AnAliasFindsItsPassAndNoOther) {
  std::map<std::string, int> taken;
  for (const PassDefinition& pass : AllPasses()) {
    ++taken[pass.name];
    for (const std::string& alias : pass.aliases) {
      ++taken[alias];
      const absl::StatusOr<const PassDefinition*> found = FindPass(alias);
      ASSERT_TRUE(found.ok()) << found.status();
      EXPECT_EQ((*found)->name, pass.name);
      EXPECT_TRUE(absl::StrContains(PassDoc(pass), absl::StrCat("`", alias, "`"))) << PassDoc(pass);
    }
  }
  for (const auto& [name, times] : taken) EXPECT_EQ(times, 1) << name;
  EXPECT_EQ(taken.count("obsfucate_names"), 1);
}

}  // namespace
}  // namespace permafrost
