// Tests of the processors that the threads of a session are bound to.
#include "runtime_check/threads/processors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "runtime_check/session.h"
#include "tests/runtime_check/small_graph.h"

namespace permafrost {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// Returns the processors that a thread may use; 0 is the calling thread.
std::vector<int> UsableBy(pid_t thread) {
  cpu_set_t set;
  CPU_ZERO(&set);
  EXPECT_EQ(sched_getaffinity(thread, sizeof(set), &set), 0);
  std::vector<int> processors;
  for (int i = 0; i < CPU_SETSIZE; ++i) {
    if (CPU_ISSET(i, &set)) processors.push_back(i);
  }
  return processors;
}

// Returns the threads of this process.
std::set<pid_t> Threads() {
  std::set<pid_t> threads;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/task")) {
    threads.insert(std::stoi(entry.path().filename().string()));
  }
  return threads;
}

TEST(AvailableProcessorsTest, AreThoseOfTheThread) {
  EXPECT_GE(AvailableProcessors(), 1);
  EXPECT_LE(AvailableProcessors(), static_cast<int>(UsableBy(0).size()));
  ProcessorBinding binding;
  ASSERT_TRUE(binding.Bind({UsableBy(0).back()}).ok());
  EXPECT_EQ(AvailableProcessors(), 1);
}

// Returns the limit that these files make.
double LimitOf(const std::map<std::string, std::string>& files) {
  const std::string root = testing::TempDir() + "/limits";
  std::filesystem::remove_all(root);
  for (const auto& [path, content] : files) {
    std::filesystem::create_directories(std::filesystem::path(root + path).parent_path());
    std::ofstream(root + path) << content;
  }
  return ProcessorLimit(root);
}

TEST(ProcessorLimitTest, IsTheLowestOfTheGroupsAbove) {
  EXPECT_EQ(LimitOf({}), 0);
  EXPECT_EQ(LimitOf({{"/proc/self/cgroup", "0::/\n"}, {"/sys/fs/cgroup/cpu.max", "max 100000\n"}}), 0);
  EXPECT_EQ(LimitOf({{"/proc/self/cgroup", "0::/\n"}, {"/sys/fs/cgroup/cpu.max", "250000 100000\n"}}), 2.5);
  EXPECT_EQ(LimitOf({{"/proc/self/cgroup", "0::/a/b\n"},
                     {"/sys/fs/cgroup/a/cpu.max", "150000 100000\n"},
                     {"/sys/fs/cgroup/a/b/cpu.max", "400000 100000\n"}}),
            1.5);
}

TEST(ProcessorLimitTest, ReadsTheFirstVersion) {
  const std::string groups = "5:memory:/m\n4:cpu,cpuacct:/docker/1\n";
  const std::string quota = "/cpu.cfs_quota_us", period = "/cpu.cfs_period_us", top = "/sys/fs/cgroup/cpu,cpuacct";
  EXPECT_EQ(LimitOf({{"/proc/self/cgroup", groups}, {top + quota, "-1\n"}, {top + period, "100000\n"}}), 0);
  // The path of the host, under which the container shows nothing.
  EXPECT_EQ(LimitOf({{"/proc/self/cgroup", groups}, {top + quota, "50000\n"}, {top + period, "100000\n"}}), 0.5);
  EXPECT_EQ(LimitOf({{"/proc/self/cgroup", groups},
                     {top + "/docker/1" + quota, "300000\n"},
                     {top + "/docker/1" + period, "100000\n"}}),
            3);
}

TEST(ProcessorLimitTest, IgnoresDamagedFiles) {
  for (const std::string content : {"", "x", "0 0", "100000", "-5 100000", "5 -1", "1 2 3"}) {
    EXPECT_EQ(LimitOf({{"/proc/self/cgroup", "0::/\n"}, {"/sys/fs/cgroup/cpu.max", content}}), 0) << content;
  }
  EXPECT_EQ(LimitOf({{"/proc/self/cgroup", "::\n0:\n0::relative\n0::/../../..\n"}}), 0);
}

TEST(ProcessorBindingTest, BindsAndUnbinds) {
  const std::vector<int> before = UsableBy(0);
  {
    ProcessorBinding binding;
    EXPECT_EQ(binding.Bind({1000}).code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(binding.Bind({-1}).code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(UsableBy(0), before);
    ASSERT_TRUE(binding.Bind({before.back()}).ok());
    EXPECT_THAT(UsableBy(0), ElementsAre(before.back()));
  }
  EXPECT_EQ(UsableBy(0), before);
}

TEST(ProcessorBindingTest, NoProcessorsLeaveTheThreadAlone) {
  const std::vector<int> before = UsableBy(0);
  ProcessorBinding binding;
  ASSERT_TRUE(binding.Bind({}).ok());
  EXPECT_EQ(UsableBy(0), before);
}

// A session with option `processors`, and the processors that its threads were bound to in a run.
class BoundSession {
 public:
  explicit BoundSession(SessionOptions options) {
    graph_.Placeholder("x", DType::kFloat, {1 << 20});
    graph_.Float("y", "Relu", {"x"});
    session_ = Session::Create(graph_.graph(), {"x"}, {"y"}, std::move(options));
  }

  absl::Status status() const { return session_.status(); }
  absl::StatusOr<std::vector<Tensor>> Run() {
    return (*session_)->Run({Floats({1 << 20}, std::vector<float>(1 << 20, 1))});
  }

 private:
  SmallGraph graph_;
  absl::StatusOr<std::unique_ptr<Session>> session_ = absl::UnknownError("");
};

TEST(SessionProcessorsTest, ACallIsBoundAndTheCallerIsNotAfterwards) {
  const std::vector<int> before = UsableBy(0);
  std::vector<int> during;
  SessionOptions options;
  options.processors = {before.back()};
  options.on_node = [&](const Node&, absl::Duration) { during = UsableBy(0); };
  BoundSession session(options);
  ASSERT_TRUE(session.status().ok()) << session.status();
  EXPECT_EQ(UsableBy(0), before);
  ASSERT_TRUE(session.Run().ok());
  EXPECT_THAT(during, ElementsAre(before.back()));
  EXPECT_EQ(UsableBy(0), before);
}

TEST(SessionProcessorsTest, TheSessionsOwnThreadsAreBoundToo) {
  const std::set<pid_t> others = Threads();
  const std::vector<int> all = UsableBy(0);
  for (const int processor : {all.front(), all.back()}) {
    SessionOptions options;
    options.num_threads = 3;
    options.processors = {processor};
    BoundSession session(options);
    ASSERT_TRUE(session.status().ok()) << session.status();
    ASSERT_TRUE(session.Run().ok());
    int own = 0;
    for (const pid_t thread : Threads()) {
      if (others.count(thread) > 0) continue;
      EXPECT_THAT(UsableBy(thread), ElementsAre(processor));
      ++own;
    }
    EXPECT_EQ(own, 2);
  }
}

TEST(SessionProcessorsTest, ResultsAreThoseOfFreeThreads) {
  SessionOptions options;
  options.num_threads = 4;
  const std::vector<Tensor> free = BoundSession(options).Run().value();
  options.processors = {UsableBy(0).front()};  // More threads than processors.
  EXPECT_EQ(BoundSession(options).Run().value(), free);
}

TEST(SessionProcessorsTest, RefusesProcessorsThatAreNotThere) {
  SessionOptions options;
  options.processors = {CPU_SETSIZE};
  EXPECT_THAT(std::string(BoundSession(options).status().message()),
              HasSubstr("found processor 1024, expected some of"));
}

}  // namespace
}  // namespace permafrost
