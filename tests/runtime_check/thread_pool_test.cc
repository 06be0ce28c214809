// Tests of the thread pool: every index runs once, pieces are deterministic, and no work is lost in many short loops.
#include "runtime_check/threads/thread_pool.h"

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "gtest/gtest.h"

namespace permafrost {
namespace {

using Pieces = std::vector<std::pair<int64_t, int64_t>>;

Pieces PiecesOf(ThreadPool* pool, int64_t count, int64_t grain) {
  std::mutex mutex;
  Pieces pieces;
  pool->ParallelFor(count, grain, [&](int64_t begin, int64_t end) {
    std::lock_guard<std::mutex> lock(mutex);
    pieces.emplace_back(begin, end);
  });
  std::sort(pieces.begin(), pieces.end());
  return pieces;
}

TEST(ThreadPoolTest, PiecesCoverTheRangeOnce) {
  for (const int num_threads : {-1, 1, 2, 3, 8}) {
    ThreadPool pool(num_threads);
    EXPECT_EQ(pool.num_threads(), std::max(num_threads, 1));
    for (const int64_t count : {0, 1, 2, 7, 8, 9, 1000}) {
      for (const int64_t grain : {1, 3, 100000}) {
        const Pieces pieces = PiecesOf(&pool, count, grain);
        int64_t next = 0;
        for (const auto& [begin, end] : pieces) {
          EXPECT_EQ(begin, next);
          EXPECT_LT(begin, end);
          next = end;
        }
        EXPECT_EQ(next, count);
        EXPECT_LE(pieces.size(), static_cast<size_t>(pool.num_threads()));
        if (grain >= count) {
          EXPECT_LE(pieces.size(), 1u);
        }
        EXPECT_EQ(PiecesOf(&pool, count, grain), pieces);
      }
    }
  }
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // The sanitizers need much address space.
TEST(ThreadPoolTest, FewerThreadsDoWhereTheSystemStartsNoMore) {
  // Runs in a separate process, whose address space has no room for the stacks of that many threads.
  const pid_t child = fork();
  if (child == 0) {
    struct rlimit limit = {size_t{1} << 31, size_t{1} << 31};
    if (setrlimit(RLIMIT_AS, &limit) != 0) _exit(2);
    ThreadPool pool(ThreadPool::kMostThreads);
    std::atomic<int64_t> sum{0};
    pool.ParallelFor(5000, 1, [&](int64_t begin, int64_t end) { sum += end - begin; });
    _exit(pool.num_threads() < ThreadPool::kMostThreads && sum == 5000 ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

#endif

TEST(ThreadPoolTest, OnePieceRunsOnTheCaller) {
  ThreadPool pool(4);
  std::thread::id id;
  pool.ParallelFor(10, 10, [&](int64_t, int64_t) { id = std::this_thread::get_id(); });
  EXPECT_EQ(id, std::this_thread::get_id());
}

TEST(ThreadPoolTest, ManyLoopsOfChangingWidth) {
  ThreadPool pool(4);
  std::atomic<int64_t> sum{0};
  int64_t expected = 0;
  for (int64_t i = 0; i < 20000; ++i) {
    const int64_t count = i % 5;
    pool.ParallelFor(count, 1, [&](int64_t begin, int64_t end) { sum += end - begin; });
    expected += count;
    // Occasionally waits long enough for the workers to park.
    if (i % 5000 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  EXPECT_EQ(sum, expected);
}

}  // namespace
}  // namespace permafrost
