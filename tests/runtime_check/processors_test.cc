// Tests of the processors that the threads of a session are bound to.
#include "runtime_check/threads/processors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
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
