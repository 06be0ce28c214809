// Teams of threads: each item runs once, threads that come late hold up nothing, waiting threads sleep, and a child of
// a fork has a team of its own.
#include "runtime_check/threads/worker_team.h"

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "runtime_check/threads/team_lease.h"

namespace permafrost {
namespace {

// Runs a loop whose items wait for each other, which takes a thread for each.
void MeetInLoop(WorkerTeam* team, int count) {
  std::atomic<int> arrived{0};
  team->Run(count, [&](WorkerTeam::Items* items) {
    for (int64_t item; items->Next(&item);) {
      ++arrived;
      while (arrived < count) std::this_thread::yield();
    }
  });
  EXPECT_EQ(arrived, count);
}

TEST(WorkerTeamTest, RunsEachItemOnce) {
  for (const int num_threads : {1, 2, 5, 8}) {
    WorkerTeam team(num_threads);
    ASSERT_EQ(team.num_threads(), num_threads);
    for (const int64_t count : {0, 1, 2, 4, 5, 6, 8, 9, 1000}) {
      std::vector<std::atomic<int>> runs(static_cast<size_t>(count));
      team.Run(count, [&](WorkerTeam::Items* items) {
        EXPECT_GE(items->thread(), 0);
        EXPECT_LT(items->thread(), num_threads);
        for (int64_t item; items->Next(&item);) ++runs[static_cast<size_t>(item)];
      });
      for (const std::atomic<int>& number : runs) EXPECT_EQ(number, 1);
    }
  }
}

TEST(WorkerTeamTest, RangesContainEachItemOnce) {
  for (const int num_threads : {1, 2, 5}) {
    WorkerTeam team(num_threads);
    for (const int64_t count : {0, 1, 3, 31, 32, 33, 1000, 100000}) {
      std::vector<std::atomic<int>> runs(static_cast<size_t>(count));
      std::atomic<int64_t> longest{0};
      team.Run(count, [&](WorkerTeam::Items* items) {
        int64_t begin, end;
        // Items and ranges may alternate.
        if (items->Next(&begin)) ++runs[static_cast<size_t>(begin)];
        while (items->NextRange(&begin, &end)) {
          EXPECT_LT(begin, end);
          for (int64_t now = longest; now < end - begin && !longest.compare_exchange_weak(now, end - begin);) {
          }
          for (; begin < end; ++begin) ++runs[static_cast<size_t>(begin)];
        }
      });
      for (const std::atomic<int>& number : runs) EXPECT_EQ(number, 1);
      // No range is so long that the other threads wait for it.
      if (count > 0 && num_threads > 1) {
        EXPECT_LE(longest, std::max<int64_t>(1, count / num_threads / 8));
      }
    }
  }
}

TEST(WorkerTeamTest, ManyShortLoops) {
  WorkerTeam team(4);
  std::atomic<int64_t> sum{0};
  int64_t expected = 0;
  for (int64_t i = 0; i < 20000; ++i) {
    team.Run(i % 7, [&](WorkerTeam::Items* items) {
      for (int64_t item; items->Next(&item);) sum += item;
    });
    expected += (i % 7) * (i % 7 - 1) / 2;
    // Long enough, in some loops, for the workers to sleep.
    if (i % 2000 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  EXPECT_EQ(sum, expected);
}

TEST(WorkerTeamTest, ItemsMayWaitForEachOther) {
  WorkerTeam team(6);
  for (int i = 0; i < 50; ++i) {
    MeetInLoop(&team, 6);
    MeetInLoop(&team, 2);  // Fewer than the team has threads.
    if (i % 10 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
}

TEST(WorkerTeamTest, ItemsOfALateThreadRunOnOthers) {
  WorkerTeam team(4);
  for (int i = 0; i < 20; ++i) {
    std::atomic<int> done{0};
    std::atomic<bool> has_late_thread{false};
    // The thread that is first stays in its item until all others are done, its own further ones among them.
    team.Run(40, [&](WorkerTeam::Items* items) {
      for (int64_t item; items->Next(&item);) {
        if (!has_late_thread.exchange(true)) {
          while (done < 39) std::this_thread::yield();
        }
        ++done;
      }
    });
    EXPECT_EQ(done, 40);
  }
}

double CpuMilliseconds() {
  struct rusage usage;
  EXPECT_EQ(getrusage(RUSAGE_SELF, &usage), 0);
  const auto total = [](const timeval& time) { return static_cast<double>(time.tv_sec) * 1e3 + time.tv_usec / 1e3; };
  return total(usage.ru_utime) + total(usage.ru_stime);
}

// Threads that never slept would take 800 ms or more of processor time. Three threads that spin for 1 ms take 60.
TEST(WorkerTeamTest, WaitingThreadsSleep) {
  WorkerTeam team(4);
  double used_ms = 0;
  for (int i = 0; i < 20; ++i) {
    MeetInLoop(&team, 4);
    const double before = CpuMilliseconds();
    std::this_thread::sleep_for(std::chrono::milliseconds(40));
    used_ms += CpuMilliseconds() - before;
  }
  EXPECT_LT(used_ms, 200);
}

// As above, for the caller: one item is long, and the caller does not run it. A caller that never slept would take
// 800 ms.
TEST(WorkerTeamTest, ACallerThatWaitsSleeps) {
  WorkerTeam team(2);
  const std::thread::id caller = std::this_thread::get_id();
  double used_ms = 0;
  for (int i = 0; i < 20; ++i) {
    std::atomic<bool> is_worker_here{false};
    team.Run(2, [&](WorkerTeam::Items* items) {
      for (int64_t item; items->Next(&item);) {
        if (std::this_thread::get_id() == caller) {
          while (!is_worker_here) std::this_thread::yield();
        } else {
          is_worker_here = true;
          const double before = CpuMilliseconds();
          std::this_thread::sleep_for(std::chrono::milliseconds(40));
          used_ms += CpuMilliseconds() - before;
        }
      }
    });
  }
  EXPECT_LT(used_ms, 200);
}

TEST(TeamLeaseTest, KeepsIdleTeamsAndSharesNone) {
  WorkerTeam* first = nullptr;
  {
    const auto lease = TeamLease::Take(3);
    ASSERT_TRUE(lease.ok()) << lease.status();
    first = lease->team();
    EXPECT_EQ(first->num_threads(), 3);
    const auto other = TeamLease::Take(3);
    ASSERT_TRUE(other.ok()) << other.status();
    EXPECT_NE(other->team(), first);
  }
  const auto again = TeamLease::Take(3);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->team(), first);
  EXPECT_EQ(TeamLease::Take(1)->team(), nullptr);
}

#if !defined(__SANITIZE_THREAD__)  // It does not follow a process that forks with threads.
TEST(WorkerTeamTest, AChildOfAForkStartsItsThreads) {
  WorkerTeam team(4);
  MeetInLoop(&team, 4);
  { ASSERT_TRUE(TeamLease::Take(4).ok()); }
  const pid_t child = fork();
  if (child == 0) {
    alarm(60);
    MeetInLoop(&team, 4);
    {
      const auto lease = TeamLease::Take(4);
      if (!lease.ok()) _exit(2);
      MeetInLoop(lease->team(), 4);
    }
    { WorkerTeam own(3); }
    _exit(testing::Test::HasFailure() ? 1 : 0);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  MeetInLoop(&team, 4);
}
#endif

}  // namespace
}  // namespace permafrost
