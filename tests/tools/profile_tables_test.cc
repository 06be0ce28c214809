// Tests of the table format that scripts parse, column by column.
#include "tools/measuring/profile_tables.h"

#include <sstream>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/tools/graph_from_text.h"

namespace permafrost {
namespace {

// A profile with artificial nodes. The profiler records real times, so the rows are checked by pattern.
class ProfileTablesTest : public testing::Test {
 protected:
  ProfileTablesTest() : graph_(GraphFromText("x = Placeholder()\nconv = Relu(x)\nsum = Add(conv, x)\n")) {
    profiler_.set_recording(true);
    for (int run = 0; run < 2; ++run) {
      profiler_.BeginRun();
      for (const char* name : {"conv", "sum"}) {
        const Node& node = *graph_->Find(name);
        ProfileTicket ticket;
        profiler_.Name(node, false, &ticket);
        profiler_.Enter();
        // Starts three milliseconds ago, or one: the first node takes longer, and the second allocates more.
        const int64_t start = Profiler::NowNanoseconds() - (name[0] == 'c' ? 3000000 : 1000000);
        profiler_.Leave(ticket, start, name[0] == 'c' ? 1000 : 4829616);
      }
      profiler_.EndRun();
      summary_.Add(profiler_);
      profiler_.Clear();
    }
  }

  std::vector<std::string> Lines(const ProfileTableOptions& options) {
    std::ostringstream out;
    PrintProfile(summary_, options, out);
    return absl::StrSplit(out.str(), '\n');
  }

  std::unique_ptr<Graph> graph_;
  Profiler profiler_{1000, Profiler::Clock::kSteady};
  ProfileSummary summary_;
};

ProfileTableOptions Only(bool ProfileTableOptions::*table) {
  ProfileTableOptions options;
  options.show_run_order = options.show_time = options.show_memory = options.show_type = options.show_summary = false;
  options.*table = true;
  return options;
}

TEST_F(ProfileTablesTest, RunOrder) {
  const std::vector<std::string> lines = Lines(Only(&ProfileTableOptions::show_run_order));
  ASSERT_EQ(lines.size(), 6u);
  EXPECT_EQ(lines[0], "============================== Run Order ==============================");
  EXPECT_EQ(lines[1],
            "\t             [node type]\t          [start]\t  [first]\t [avg ms]\t     [%]\t  [cdf%]\t  [mem KB]\t"
            "[times called]\t[Name]");
  EXPECT_THAT(lines[2], testing::MatchesRegex("\t                    Relu\t +-?[0-9]+[.][0-9]{3}\t    3[.][0-9]{3}\t"
                                              "    3[.][0-9]{3}\t +7[0-9][.][0-9]{3}%\t +7[0-9][.][0-9]{3}%\t"
                                              "     1[.]000\t        1\tconv"));
  EXPECT_THAT(lines[3], testing::MatchesRegex("\t                     Add\t.*\t    1[.][0-9]{3}\t +2[0-9][.][0-9]{3}%\t"
                                              "100[.]000%\t  4829[.]616\t        1\tsum"));
  EXPECT_EQ(lines[4], "");
}

TEST_F(ProfileTablesTest, TopsAreSortedAndCut) {
  ProfileTableOptions options = Only(&ProfileTableOptions::show_time);
  options.time_limit = 1;
  std::vector<std::string> lines = Lines(options);
  ASSERT_EQ(lines.size(), 5u);
  EXPECT_EQ(lines[0], "============================== Top by Computation Time ==============================");
  EXPECT_THAT(lines[2], testing::EndsWith("\tconv"));
  lines = Lines(Only(&ProfileTableOptions::show_memory));
  EXPECT_EQ(lines[0], "============================== Top by Memory Use ==============================");
  EXPECT_THAT(lines[2], testing::EndsWith("\tsum"));
}

TEST_F(ProfileTablesTest, TypesAndSums) {
  std::vector<std::string> lines = Lines(Only(&ProfileTableOptions::show_type));
  ASSERT_EQ(lines.size(), 7u);
  EXPECT_EQ(lines[0], "Number of nodes executed: 2");
  EXPECT_EQ(lines[1], "============================== Summary by node type ==============================");
  EXPECT_EQ(lines[2],
            "\t             [Node type]\t  [count]\t  [avg ms]\t    [avg %]\t    [cdf %]\t  [mem KB]\t[times called]");
  EXPECT_THAT(lines[3], testing::MatchesRegex("\t                    Relu\t        1\t     3[.][0-9]{3}\t"
                                              " +7[0-9][.][0-9]{3}%\t +7[0-9][.][0-9]{3}%\t     1[.]000\t        1"));
  lines = Lines(Only(&ProfileTableOptions::show_summary));
  ASSERT_EQ(lines.size(), 5u);
  EXPECT_THAT(lines[0], testing::StartsWith("Timings (microseconds): count=2 "));
  EXPECT_EQ(lines[1], "Memory (bytes): count=2 curr=4830616(all same)");
  EXPECT_EQ(lines[2], "2 nodes observed");
}

TEST_F(ProfileTablesTest, Csv) {
  const std::vector<std::string> lines = absl::StrSplit(ProfileCsv(summary_), '\n');
  ASSERT_EQ(lines.size(), 4u);
  EXPECT_EQ(lines[0], "node type, start, first, avg_ms, %, cdf%, mem KB, times called, name");
  EXPECT_THAT(lines[1], testing::MatchesRegex("Relu,-?[0-9.]+,3[.][0-9]{3},3[.][0-9]{3},7[0-9.]+,7[0-9.]+,1[.]000,1,"
                                              "conv"));
}

}  // namespace
}  // namespace permafrost
