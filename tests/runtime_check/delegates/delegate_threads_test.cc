// The threads of the delegates: the delegates' libraries run on teams of this project, with the same results for each
// number of threads, in concurrent sessions and in a child of a fork.
#include <dirent.h>
#include <omp.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <xnnpack.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <memory>
#include <oneapi/dnnl/dnnl.hpp>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "runtime_check/delegates/onednn/onednn_delegate.h"
#include "runtime_check/delegates/onednn/openmp.h"
#include "runtime_check/delegates/xnnpack/library.h"
#include "runtime_check/delegates/xnnpack/pools.h"
#include "runtime_check/delegates/xnnpack/xnnpack_delegate.h"
#include "tests/runtime_check/delegates/delegate_run.h"
#include "tests/runtime_check/delegates/image_graph.h"

namespace permafrost {
namespace {

using onednn::TeamInScope;
using onednn::ThreadsInScope;

int NumThreadsOfProcess() {
  DIR* const folder = opendir("/proc/self/task");
  int count = 0;
  while (const dirent* entry = readdir(folder)) count += entry->d_name[0] != '.';
  closedir(folder);
  return count;
}

void RunRelu() {
  using dnnl::memory;
  dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  dnnl::stream stream(engine);
  const memory::desc desc({1, 64, 56, 56}, memory::data_type::f32, memory::format_tag::nhwc);
  memory source(desc, engine), target(desc, engine);
  auto* const from = static_cast<float*>(source.get_data_handle());
  const size_t count = desc.get_size() / sizeof(float);
  for (size_t i = 0; i < count; ++i) from[i] = i % 2 == 0 ? 1.0f : -1.0f;
  const dnnl::eltwise_forward relu(dnnl::eltwise_forward::primitive_desc(
      {dnnl::prop_kind::forward_inference, dnnl::algorithm::eltwise_relu, desc, 0.0f}, engine));
  relu.execute(stream, {{DNNL_ARG_SRC, source}, {DNNL_ARG_DST, target}});
  const auto* const to = static_cast<const float*>(target.get_data_handle());
  for (size_t i = 0; i < count; ++i) ASSERT_EQ(to[i], i % 2 == 0 ? 1.0f : 0.0f);
}

// First, so that no thread of another library exists.
TEST(DelegateThreadsTest, TheLibrariesStartNoThreads) {
  {
    const ThreadsInScope threads(3);
    const TeamInScope team(*TeamLease::Take(3));
    const int before = NumThreadsOfProcess();
    RunRelu();
    EXPECT_EQ(NumThreadsOfProcess(), before) << "oneDNN started threads";
  }
  ASSERT_TRUE(xnnpack::InitializeLibrary().ok());
  const int before = NumThreadsOfProcess();
  const auto lease = xnnpack::PoolLease::Take(3);
  ASSERT_TRUE(lease.ok()) << lease.status();
  EXPECT_EQ(pthreadpool_get_threads_count(lease->get()), 3u);
  xnn_operator_t copy = nullptr;
  ASSERT_EQ(xnn_create_copy_nc_x32(64, 64, 64, 0, &copy), xnn_status_success);
  const std::vector<float> from(64 * 1000, 3);
  std::vector<float> to(64 * 1000);
  ASSERT_EQ(xnn_setup_copy_nc_x32(copy, 1000, from.data(), to.data(), lease->get()), xnn_status_success);
  ASSERT_EQ(xnn_run_operator(copy, lease->get()), xnn_status_success);
  xnn_delete_operator(copy);
  EXPECT_EQ(from, to);
  EXPECT_EQ(NumThreadsOfProcess(), before) << "XNNPACK started threads";
}

TEST(DelegateThreadsTest, RegionsHaveTheirThreadsAndBarriers) {
  for (const int num_threads : {1, 2, 4, 7}) {
    const ThreadsInScope threads(num_threads);
    const TeamInScope team(*TeamLease::Take(num_threads));
    EXPECT_EQ(omp_get_max_threads(), num_threads);
    for (int round = 0; round < 50; ++round) {
      std::vector<int> steps(static_cast<size_t>(num_threads), 0);
      std::atomic<int> num_wrong{0};
#pragma omp parallel
      {
        const auto id = static_cast<size_t>(omp_get_thread_num());
        if (omp_get_num_threads() != num_threads || (omp_in_parallel() != 0) != (num_threads > 1)) ++num_wrong;
        for (int step = 1; step <= 5; ++step) {
          steps[id] = step;
#pragma omp barrier
          for (const int other : steps) num_wrong += other != step;
#pragma omp barrier
        }
      }
      EXPECT_EQ(num_wrong, 0);
      for (const int step : steps) EXPECT_EQ(step, 5);
      if (round % 10 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }
}

TEST(DelegateThreadsTest, RegionsInsideOfRegionsHaveOneThread) {
  const ThreadsInScope threads(3);
  const TeamInScope team(*TeamLease::Take(3));
  std::atomic<int> runs{0}, num_wrong{0};
#pragma omp parallel num_threads(3)
  {
    const int id = omp_get_thread_num();
#pragma omp parallel num_threads(3)
    {
      ++runs;
      num_wrong += omp_get_thread_num() != 0 || omp_get_num_threads() != 1;
    }
    num_wrong += omp_get_thread_num() != id || omp_get_num_threads() != 3;
  }
  EXPECT_EQ(runs, 3);
  EXPECT_EQ(num_wrong, 0);
}

// OpenMP of the rest of the program stays with GCC's library, some of whose functions this project does not define.
TEST(DelegateThreadsTest, RegionsOutsideOfAScopeAreThoseOfTheProgram) {
  omp_set_num_threads(3);
  for (int round = 0; round < 3; ++round) {
    std::atomic<int> sum{0}, num_wrong{0};
#pragma omp parallel
    {
      num_wrong += omp_get_num_threads() != 3;
#pragma omp for schedule(dynamic, 3)
      for (int i = 0; i < 100; ++i) sum += i;
#pragma omp barrier
#pragma omp single
      sum += 10000;
    }
    EXPECT_EQ(sum, 4950 + 10000);
    EXPECT_EQ(num_wrong, 0);
    {
      const ThreadsInScope threads(2);
      EXPECT_EQ(omp_get_max_threads(), 2);
    }
    EXPECT_EQ(omp_get_max_threads(), 3);
  }
}

TEST(DelegateThreadsTest, GridsAreCoveredOnce) {
  ASSERT_TRUE(xnnpack::InitializeLibrary().ok());
  for (const int num_threads : {1, 3, 8}) {
    const auto lease = xnnpack::PoolLease::Take(num_threads);
    ASSERT_TRUE(lease.ok()) << lease.status();
    for (const size_t rows : {0, 1, 5}) {
      for (const size_t columns : {1, 7, 100}) {
        struct Counts {
          size_t columns;
          std::vector<std::atomic<int>> counts;
        } counts{columns, std::vector<std::atomic<int>>(rows * columns * 2)};
        pthreadpool_parallelize_3d_tile_2d(
            lease->get(),
            [](void* context, size_t i, size_t j, size_t k, size_t size_j, size_t size_k) {
              auto& counts = *static_cast<Counts*>(context);
              for (size_t row = j; row < j + size_j; ++row) {
                for (size_t column = k; column < k + size_k; ++column) {
                  ++counts.counts[(row * counts.columns + column) * 2 + i];
                }
              }
            },
            &counts, 2, rows, columns, 2, 3, 0);
        for (const std::atomic<int>& count : counts.counts) EXPECT_EQ(count, 1);
      }
    }
  }
}

// A few layers, wide enough for all threads.
class NetworkTest : public testing::TestWithParam<const char*> {
 protected:
  NetworkTest() : graph_({1, 24, 24, 16}) {
    graph_.Convolution("a", "x", {3, 3, 16, 32});
    graph_.Float("b", "Relu6", {"a"});
    graph_.Window("c", "DepthwiseConv2dNative", "b", {3, 3, 32, 1}, 1, 1, "SAME");
    graph_.Convolution("d", "c", {1, 1, 32, 32});
    graph_.Float("e", "AddV2", {"d", "b"});
    Node* pool = graph_.Float("f", "MaxPool", {"e"});
    pool->SetAttr("ksize", AttrValue::IntList({1, 3, 3, 1}));
    pool->SetAttr("strides", AttrValue::IntList({1, 2, 2, 1}));
    pool->SetAttr("padding", AttrValue::String("SAME"));
    graph_.Convolution("y", "f", {3, 3, 32, 8});
  }

  static std::shared_ptr<const Delegate> TheDelegate() {
    const auto delegate =
        GetParam() == std::string("onednn") ? MakeOneDnnDelegate(PrecisionPlan()) : MakeXnnpackDelegate();
    EXPECT_TRUE(delegate.ok()) << delegate.status();
    return *delegate;
  }
  absl::StatusOr<std::unique_ptr<Session>> SessionWith(int num_threads) const {
    return MakeSession(TheDelegate(), graph_.graph(), {"x"}, {"y"}, num_threads);
  }

  ImageGraph graph_;
  const Tensor input_ = SomeFloats({1, 24, 24, 16}, 3);
};

TEST_P(NetworkTest, IsRightWithEachNumberOfThreads) {
  const auto reference = MakeSession(nullptr, graph_.graph(), {"x"}, {"y"}, 1);
  ASSERT_TRUE(reference.ok()) << reference.status();
  const auto expected = (*reference)->Run({input_});
  ASSERT_TRUE(expected.ok()) << expected.status();
  const UnalignedSpan<float> right = (*expected)[0].elements<float>();
  float largest = 0;
  for (size_t i = 0; i < right.size(); ++i) largest = std::max(largest, std::abs(right[i]));
  for (int num_threads = 1; num_threads <= 8; ++num_threads) {
    const auto session = SessionWith(num_threads);
    ASSERT_TRUE(session.ok()) << session.status();
    const auto outputs = (*session)->Run({input_});
    ASSERT_TRUE(outputs.ok()) << outputs.status();
    EXPECT_FALSE((*session)->report().delegation.partitions.empty());
    const UnalignedSpan<float> found = (*outputs)[0].elements<float>();
    ASSERT_EQ(found.size(), right.size());
    // Sums of several hundred products, which the libraries add in another order.
    for (size_t i = 0; i < found.size(); ++i) ASSERT_NEAR(found[i], right[i], 1e-5 * largest) << num_threads;
  }
}

TEST_P(NetworkTest, ConcurrentSessionsHaveTheSameResults) {
  const auto session = SessionWith(2);
  ASSERT_TRUE(session.ok()) << session.status();
  const auto expected = (*session)->Run({input_});
  ASSERT_TRUE(expected.ok()) << expected.status();
  const std::string bytes((*expected)[0].bytes());
  std::atomic<int> num_wrong{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      const auto own = SessionWith(2);
      for (int run = 0; run < 20; ++run) {
        const auto outputs = own.ok() ? (*own)->Run({input_}) : own.status();
        num_wrong += !outputs.ok() || (*outputs)[0].bytes() != bytes;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(num_wrong, 0);
}

// Threads that never slept would take 1 s of processor time or more. Three threads that spin for 1 ms take 150 ms.
TEST_P(NetworkTest, AnIdleSessionSleeps) {
  const auto session = SessionWith(4);
  ASSERT_TRUE(session.ok()) << session.status();
  double used_ms = 0;
  const auto used = [] {
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return static_cast<double>(usage.ru_utime.tv_sec) * 1e3 + usage.ru_utime.tv_usec / 1e3;
  };
  for (int i = 0; i < 50; ++i) {
    ASSERT_TRUE((*session)->Run({input_}).ok());
    const double before = used();
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    used_ms += used() - before;
  }
  EXPECT_LT(used_ms, 400);
}

#if !defined(__SANITIZE_THREAD__)  // It does not follow a process that forks with threads.
TEST_P(NetworkTest, RunsInAChildOfAFork) {
  const auto session = SessionWith(3);
  ASSERT_TRUE(session.ok()) << session.status();
  const auto expected = (*session)->Run({input_});
  ASSERT_TRUE(expected.ok()) << expected.status();
  const pid_t child = fork();
  if (child == 0) {
    alarm(60);
    for (int run = 0; run < 3; ++run) {
      const auto outputs = (*session)->Run({input_});
      if (!outputs.ok() || (*outputs)[0].bytes() != (*expected)[0].bytes()) _exit(1);
    }
    _exit(0);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}
#endif

INSTANTIATE_TEST_SUITE_P(Delegates, NetworkTest, testing::Values("onednn", "xnnpack"));

}  // namespace
}  // namespace permafrost
