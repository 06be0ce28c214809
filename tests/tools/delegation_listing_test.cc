// Tests of the listing of --explain: long lists, functions, hostile names.
#include "tools/model/delegation_listing.h"

#include <sstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace permafrost {
namespace {

using testing::HasSubstr;
using testing::Not;

std::string Listing(const PlanReport& report) {
  std::ostringstream out, err;
  PrintDelegation(report, Console{out, err});
  return out.str();
}

TEST(DelegationListingTest, CutsLongLists) {
  PlanReport report;
  report.num_steps = 1;
  DelegationReport::Taken& taken = report.delegation.partitions.emplace_back();
  taken.delegate = "fast";
  taken.constant_bytes = 2'500'000;
  for (int i = 0; i < 40; ++i) {
    taken.nodes.push_back(absl::StrCat("node", i));
    taken.pieces.push_back(absl::StrCat("piece", i));
  }
  const std::string text = Listing(report);
  EXPECT_THAT(text, HasSubstr("the candidate runs in 1 step, with 0 B for activations; 1 partition of 40 nodes\n"));
  EXPECT_THAT(text, HasSubstr("  fast runs 40 nodes: 'node0', 'node1', "));
  EXPECT_THAT(text, HasSubstr("'node11' and 28 more\n    keeps 2.50 MB, works in 0 B\n    piece0\n"));
  EXPECT_THAT(text, HasSubstr("    piece11\n    and 28 more pieces\n"));
}

TEST(DelegationListingTest, GroupsReasonsAndNamesFunctions) {
  PlanReport report;
  for (const char* name : {"a", "b", "c"}) report.delegation.left.push_back({name, "Exp", "is slow", "body"});
  report.delegation.left.insert(report.delegation.left.begin(), {"first", "Exp", "is slow", ""});
  report.custom.push_back({"own", "Mine", "as 'x.so' computes it", "body"});
  const std::string text = Listing(report);
  const size_t most = text.find("  left to the kernels: 3 nodes, Exp in function 'body': is slow: 'a', 'b', 'c'\n");
  const size_t least = text.find("  left to the kernels: 1 node, Exp: is slow: 'first'\n");
  ASSERT_NE(most, std::string::npos) << text;
  ASSERT_NE(least, std::string::npos) << text;
  EXPECT_LT(most, least) << "the reason of most nodes comes first";
  EXPECT_THAT(text, HasSubstr("  custom kernel: 1 node, Mine in function 'body': as 'x.so' computes it: 'own'\n"));
}

TEST(DelegationListingTest, SaysWhatBecameOfLoops) {
  PlanReport report;
  report.loops.push_back({"while_body", "", {"3 steps", "product of 1x4 and 4x8"}, ""});
  report.loops.push_back({"while_1", "caller", {}, "node 'p' (Print): has effects"});
  const std::string text = Listing(report);
  EXPECT_THAT(text, HasSubstr("  loop 'while_body' runs as one plan\n    3 steps\n    product of 1x4 and 4x8\n"));
  EXPECT_THAT(text,
              HasSubstr("  loop 'while_1' in function 'caller' runs node by node: node 'p' (Print): has effects\n"));
}

TEST(DelegationListingTest, NamesDoNotSteerTheTerminal) {
  PlanReport report;
  DelegationReport::Taken& taken = report.delegation.partitions.emplace_back();
  taken.delegate = "f\x1b[2J";
  taken.nodes = {"n\x1b[2J"};
  taken.pieces = {"p\x1b[2J"};
  report.delegation.left.push_back({"l\x1b[2J", "op\x1b[2J", "reason\x1b[2J", ""});
  EXPECT_THAT(Listing(report), Not(HasSubstr("\x1b")));
}

}  // namespace
}  // namespace permafrost
