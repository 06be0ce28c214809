// The threads of the delegates: teams finish without workers, and the delegates' libraries start no threads of their
// own.
#include <dirent.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <oneapi/dnnl/dnnl.hpp>
#include <vector>

#include "gtest/gtest.h"
#include "runtime_check/delegates/imports.h"
#include "runtime_check/delegates/onednn/team.h"
#include "runtime_check/delegates/xnnpack/pools.h"
#include "runtime_check/threads/worker_team.h"

namespace permafrost {
namespace {

int CountThreadsOfProcess() {
  DIR* const folder = opendir("/proc/self/task");
  int count = 0;
  while (const dirent* entry = readdir(folder)) count += entry->d_name[0] != '.';
  closedir(folder);
  return count;
}

TEST(WorkerTeamTest, RunsEachPieceOnce) {
  for (const int num_threads : {1, 2, 5}) {
    WorkerTeam team(num_threads);
    for (int pieces = 0; pieces <= num_threads * WorkerTeam::kPiecesPerThread; ++pieces) {
      std::vector<std::atomic<int>> runs(static_cast<size_t>(pieces));
      team.Run(pieces, [&](int piece, int thread) {
        EXPECT_LT(thread, num_threads);
        ++runs[static_cast<size_t>(piece)];
      });
      for (const std::atomic<int>& count : runs) EXPECT_EQ(count, 1);
    }
  }
}

#if !defined(__SANITIZE_THREAD__)  // It does not follow a process that forks with threads.
TEST(WorkerTeamTest, WorkersThatDoNotComeHoldUpNothing) {
  WorkerTeam team(4);
  std::atomic<int> sum{0};
  const auto add = [&](int piece, int) { sum += piece; };
  team.Run(4, add);
  const pid_t child = fork();  // The child has no workers.
  if (child == 0) {
    sum = 0;
    alarm(60);
    team.Run(8, add);
    _exit(sum == 28 ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}
#endif

TEST(DelegateThreadsTest, OneDnnRunsOnTheTeam) {
  using dnnl::memory;
  constexpr int kThreads = 3;
  dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  dnnl::stream stream(engine);
  const onednn::ThreadsInScope scope(kThreads);
  onednn::RunTeam(kThreads, [](int, int) {});
  const int before = CountThreadsOfProcess();
  const memory::desc desc({1, 64, 56, 56}, memory::data_type::f32, memory::format_tag::nhwc);
  memory source(desc, engine), target(desc, engine);
  std::memset(source.get_data_handle(), 0, desc.get_size());
  const dnnl::eltwise_forward relu(dnnl::eltwise_forward::primitive_desc(
      {dnnl::prop_kind::forward_inference, dnnl::algorithm::eltwise_relu, desc, 0.0f}, engine));
  relu.execute(stream, {{DNNL_ARG_SRC, source}, {DNNL_ARG_DST, target}});
  EXPECT_EQ(CountThreadsOfProcess(), before) << "oneDNN started threads of its own";
}

TEST(DelegateThreadsTest, TeamsDoNotNest) {
  const onednn::ThreadsInScope scope(2);
  std::atomic<int> runs{0};
  onednn::RunTeam(2, [&](int, int team) {
    EXPECT_EQ(team, 2);
    onednn::RunTeam(2, [&](int thread, int inner) {
      EXPECT_EQ(thread, 0);
      EXPECT_EQ(inner, 1);
      ++runs;
    });
  });
  EXPECT_EQ(runs, 2);
}

TEST(DelegateThreadsTest, TilesCoverTheRangeOnce) {
  for (const int num_threads : {1, 3}) {
    const auto lease = xnnpack::Lease::Take(num_threads);
    ASSERT_TRUE(lease.ok()) << lease.status();
    for (const size_t range : {0, 1, 7, 1000}) {
      std::vector<int> counts(range, 0);
      xnnpack::DivideTiles(
          lease->get(),
          [](void* context, size_t begin, size_t size) {
            for (size_t i = begin; i < begin + size; ++i) ++static_cast<int*>(context)[i];
          },
          counts.data(), range, 3);
      for (const int count : counts) EXPECT_EQ(count, 1);
    }
  }
}

TEST(ImportsTest, ChangesNothingUnlessAllAreFound) {
  void* const replacement = reinterpret_cast<void*>(&CountThreadsOfProcess);
  EXPECT_FALSE(RedirectImports(nullptr, {{"GOMP_parallel", replacement}}));
  EXPECT_FALSE(
      RedirectImports(reinterpret_cast<const void*>(&dnnl_primitive_execute), {{"no_such_function", replacement}}));
}

}  // namespace
}  // namespace permafrost
