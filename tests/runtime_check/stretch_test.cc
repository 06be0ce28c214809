// Tests of stretches of tasks that run at the same time: chosen only if they reduce the time, ordered on any number of
// threads, with the errors of the sequential list.
#include "runtime_check/planning/stretch.h"

#include <algorithm>
#include <atomic>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace permafrost {
namespace {

Task TaskOf(std::vector<int> after, double alone_ns, double beside_ns) {
  return {std::move(after), alone_ns, beside_ns, true};
}

std::vector<Task> RandomTasks(std::mt19937* random, int count) {
  std::vector<Task> tasks;
  for (int i = 0; i < count; ++i) {
    std::vector<int> after;
    const uint32_t num_after = i == 0 ? 0 : (*random)() % 3;
    for (uint32_t j = 0; j < num_after; ++j) after.push_back(i - 1 - static_cast<int>((*random)() % std::min(i, 7)));
    const double alone_ns = 1000 + (*random)() % 50000;
    tasks.push_back(TaskOf(std::move(after), alone_ns, alone_ns * (1 + (*random)() % 100 / 100.0)));
    tasks.back().may_be_beside = (*random)() % 20 != 0;
  }
  return tasks;
}

double SumNs(const std::vector<Task>& tasks) {
  double sum = 0;
  for (const Task& task : tasks) sum += task.alone_ns;
  return sum;
}

TEST(FindStretchesTest, TasksThatWaitForNothingRunAtTheSameTime) {
  const std::vector<Task> tasks(4, TaskOf({}, 50000, 50000));
  const std::vector<Stretch> stretches = FindStretches(tasks, 2);
  ASSERT_EQ(stretches.size(), 1u);
  EXPECT_EQ(stretches[0].begin, 0);
  EXPECT_EQ(stretches[0].end, 4);
  EXPECT_LT(EstimateNs(tasks, stretches, 2), 0.75 * SumNs(tasks));
  EXPECT_LT(EstimateNs(tasks, stretches, 4), 0.5 * SumNs(tasks));
}

TEST(FindStretchesTest, NothingIsChosenThatGainsNothing) {
  const std::vector<Task> few = {TaskOf({}, 50000, 50000)};
  EXPECT_TRUE(FindStretches(few, 2).empty());
  EXPECT_TRUE(FindStretches({}, 2).empty());
  const std::vector<Task> side_by_side(4, TaskOf({}, 50000, 50000));
  EXPECT_TRUE(FindStretches(side_by_side, 1).empty());
  std::vector<Task> chain;
  for (int i = 0; i < 50; ++i)
    chain.push_back(TaskOf(i == 0 ? std::vector<int>() : std::vector<int>{i - 1}, 50000, 50000));
  EXPECT_TRUE(FindStretches(chain, 4).empty());
  // Synchronising threads takes longer than these tasks.
  const std::vector<Task> small(4, TaskOf({}, 500, 500));
  EXPECT_TRUE(FindStretches(small, 4).empty());
  // Each task is twice as fast with two threads.
  const std::vector<Task> shared(8, TaskOf({}, 50000, 100000));
  EXPECT_TRUE(FindStretches(shared, 2).empty());
}

TEST(FindStretchesTest, WhatRunsAloneEndsAStretch) {
  std::vector<Task> tasks(9, TaskOf({}, 50000, 50000));
  tasks[4].may_be_beside = false;
  const std::vector<Stretch> stretches = FindStretches(tasks, 2);
  ASSERT_EQ(stretches.size(), 2u);
  EXPECT_EQ(stretches[0].end, 4);
  EXPECT_EQ(stretches[1].begin, 5);
}

TEST(FindStretchesTest, RandomListsAreNeverEstimatedSlower) {
  std::mt19937 random(1);
  for (int round = 0; round < 200; ++round) {
    const std::vector<Task> tasks = RandomTasks(&random, 1 + static_cast<int>(random() % 60));
    const int num_lanes = 2 + static_cast<int>(random() % 3);
    const std::vector<Stretch> stretches = FindStretches(tasks, num_lanes);
    int end = 0;
    for (const Stretch& stretch : stretches) {
      EXPECT_LE(end, stretch.begin);
      EXPECT_LE(stretch.begin + 2, stretch.end);
      end = stretch.end;
      for (int i = stretch.begin; i < stretch.end; ++i) EXPECT_TRUE(tasks[static_cast<size_t>(i)].may_be_beside);
    }
    EXPECT_LE(end, static_cast<int>(tasks.size()));
    if (!stretches.empty()) {
      EXPECT_LT(EstimateNs(tasks, stretches, num_lanes), SumNs(tasks));
    }
  }
}

TEST(FindStretchesTest, ALongListIsCutIntoStretches) {
  const std::vector<Task> tasks(100000, TaskOf({}, 50000, 50000));
  const std::vector<Stretch> stretches = FindStretches(tasks, 2);
  EXPECT_FALSE(stretches.empty());
  EXPECT_LT(EstimateNs(tasks, stretches, 2), 0.75 * SumNs(tasks));
}

// Runs the stretch on `num_threads` threads. `fails` marks the tasks that fail; *started receives the tasks that were
// run.
absl::Status RunOn(int num_threads, const std::vector<Task>& tasks, Stretch stretch, const std::vector<bool>& fails,
                   StretchRunner* runner, std::vector<int>* started) {
  const auto count = static_cast<size_t>(stretch.end);
  std::vector<std::atomic<int>> runs(count), done(count);
  runner->Begin();
  std::vector<std::thread> threads;
  const auto work = [&] {
    runner->Work([&](int i) -> absl::Status {
      const auto task = static_cast<size_t>(i);
      EXPECT_EQ(runs[task].fetch_add(1), 0) << "task " << i << " ran twice";
      for (const int before : tasks[task].after) {
        if (before >= stretch.begin) {
          EXPECT_EQ(done[static_cast<size_t>(before)].load(), 1) << i << " ran before " << before;
        }
      }
      if (fails[task]) return absl::InternalError(absl::StrCat(i));
      done[task].store(1);
      return absl::OkStatus();
    });
  };
  for (int i = 1; i < num_threads; ++i) threads.emplace_back(work);
  work();
  for (std::thread& thread : threads) thread.join();
  started->clear();
  for (size_t i = 0; i < count; ++i) started->push_back(runs[i].load());
  return runner->status();
}

TEST(StretchRunnerTest, EveryTaskRunsOnceAndInOrder) {
  std::mt19937 random(2);
  for (int round = 0; round < 60; ++round) {
    const std::vector<Task> tasks = RandomTasks(&random, 2 + static_cast<int>(random() % 40));
    const auto end = static_cast<int>(tasks.size());
    const Stretch stretch = {static_cast<int>(random() % tasks.size()) / 2, end};
    StretchRunner runner(tasks, stretch);
    const std::vector<bool> fails(tasks.size(), false);
    std::vector<int> started;
    for (const int num_threads : {1, 2, 4}) {
      EXPECT_TRUE(RunOn(num_threads, tasks, stretch, fails, &runner, &started).ok());
      for (int i = stretch.begin; i < end; ++i) EXPECT_EQ(started[static_cast<size_t>(i)], 1) << i;
    }
  }
}

TEST(StretchRunnerTest, TheErrorIsThatOfTheListInOrder) {
  std::mt19937 random(3);
  for (int round = 0; round < 60; ++round) {
    const std::vector<Task> tasks = RandomTasks(&random, 3 + static_cast<int>(random() % 40));
    const Stretch stretch = {0, static_cast<int>(tasks.size())};
    StretchRunner runner(tasks, stretch);
    std::vector<bool> fails(tasks.size(), false);
    for (int i = 0; i < 3; ++i) fails[random() % tasks.size()] = true;
    const auto first = std::find(fails.begin(), fails.end(), true) - fails.begin();
    std::vector<int> started;
    for (const int num_threads : {1, 2, 4}) {
      EXPECT_EQ(RunOn(num_threads, tasks, stretch, fails, &runner, &started), absl::InternalError(absl::StrCat(first)));
      for (int i = 0; i <= first; ++i) EXPECT_EQ(started[static_cast<size_t>(i)], 1) << i;
    }
    // The runner can be used again after an error.
    EXPECT_TRUE(RunOn(2, tasks, stretch, std::vector<bool>(tasks.size(), false), &runner, &started).ok());
  }
}

}  // namespace
}  // namespace permafrost
