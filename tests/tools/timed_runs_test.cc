// Tests of the end of a phase: by number, by time, by an error, by Ctrl-C.
#include "tools/measuring/timed_runs.h"

#include <signal.h>

#include <chrono>
#include <thread>

#include "gtest/gtest.h"
#include "tools/command_line/interruption.h"
#include "tools/measuring/process_facts.h"

namespace permafrost {
namespace {

TimedRuns Measure(const RunLimits& limits, absl::FunctionRef<absl::Status()> run) {
  TimedRuns runs;
  EXPECT_TRUE(RunTimed(
                  limits, run, [](const TimedRuns&) {}, &runs)
                  .ok());
  return runs;
}

absl::Status Sleep() {
  std::this_thread::sleep_for(std::chrono::milliseconds(2));
  return absl::OkStatus();
}

TEST(TimedRunsTest, EndsByNumber) {
  const TimedRuns runs = Measure({3, 0, 0, -1}, &Sleep);
  ASSERT_EQ(runs.seconds.size(), 3u);
  for (const double seconds : runs.seconds) EXPECT_GE(seconds, 0.002);
  EXPECT_FALSE(runs.was_interrupted);
}

TEST(TimedRunsTest, EndsByTime) {
  const TimedRuns runs = Measure({0, 0, 0.02, -1}, &Sleep);
  EXPECT_GE(runs.total(), 0.02);
  EXPECT_GE(runs.seconds.size(), 1u);
  EXPECT_LE(runs.seconds.size(), 10u);
}

TEST(TimedRunsTest, GoesOnUntilTheLeastTime) { EXPECT_GE(Measure({1, 0.01, 0, -1}, &Sleep).total(), 0.01); }

TEST(TimedRunsTest, TheMostTimeWinsOverTheLeast) { EXPECT_EQ(Measure({5, 9, 0.001, -1}, &Sleep).seconds.size(), 1u); }

TEST(TimedRunsTest, NothingToDoIsDone) { EXPECT_TRUE(Measure({0, 0, 0, -1}, &Sleep).seconds.empty()); }

TEST(TimedRunsTest, StopsAtAnError) {
  TimedRuns runs;
  int left = 2;
  const absl::Status status = RunTimed(
      {10, 0, 0, -1}, [&] { return left-- > 0 ? absl::OkStatus() : absl::InternalError("no more"); },
      [](const TimedRuns&) {}, &runs);
  EXPECT_EQ(status.message(), "no more");
  EXPECT_EQ(runs.seconds.size(), 2u);
}

TEST(TimedRunsTest, StopsAtCtrlC) {
  const Interruption interruption;
  int count = 0;
  const TimedRuns runs = Measure({1000000, 0, 0, -1}, [&] {
    if (++count == 3) raise(SIGINT);
    return absl::OkStatus();
  });
  EXPECT_EQ(runs.seconds.size(), 3u);
  EXPECT_TRUE(runs.was_interrupted);
}

TEST(TimedRunsTest, DelaysAreNotMeasured) {
  const TimedRuns runs = Measure({3, 0, 0, 0.02}, [] { return absl::OkStatus(); });
  EXPECT_LT(runs.total(), 0.02);
}

TEST(InterruptionTest, IsForgottenByTheNext) {
  {
    const Interruption interruption;
    raise(SIGINT);
    EXPECT_TRUE(Interruption::IsRequested());
  }
  const Interruption interruption;
  EXPECT_FALSE(Interruption::IsRequested());
}

TEST(ProcessFactsTest, KnowsMemory) {
  const ProcessFacts facts = ReadProcessFacts();
  EXPECT_GT(facts.resident_bytes, 100000);
  EXPECT_GE(facts.peak_resident_bytes, facts.resident_bytes / 2);
}

}  // namespace
}  // namespace permafrost
