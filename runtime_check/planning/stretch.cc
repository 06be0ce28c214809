// Finds stretches by dynamic programming over their ends, among all that are not too long.
#include "runtime_check/planning/stretch.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "runtime_check/threads/spin_wait.h"

namespace permafrost {
namespace {

// Cost of synchronising the threads before a stretch and after it.
constexpr double kMeetNs = 10000;
// Cost of dequeuing a task and reporting it done.
constexpr double kTakeNs = 300;
// Estimates are no more accurate than this, and threads that share a cache are slower than one alone.
constexpr double kCaution = 1.2;

// Limit on the pairs of a begin and an end, which take about 0.1 s; determines the maximum length.
constexpr size_t kMostPairs = size_t{1} << 22;
constexpr size_t kShortest = 16, kLongest = 1024;

// Assigns tasks in order to the thread that can start them first, which approximates a run.
class Schedule {
 public:
  Schedule(absl::Span<const Task> tasks, int first, int num_lanes)
      : tasks_(tasks), first_(first), free_ns_(static_cast<size_t>(num_lanes), 0) {}

  // Adds the next task, and returns the time at which all tasks so far are done.
  double Add() {
    const Task& task = tasks_[static_cast<size_t>(first_) + ends_ns_.size()];
    double ready_ns = 0;
    for (const int before : task.after) {
      if (before >= first_) ready_ns = std::max(ready_ns, ends_ns_[static_cast<size_t>(before - first_)]);
    }
    // Prefers, among the threads that could start it at once, the last to become free.
    auto best = free_ns_.begin();
    for (auto lane = free_ns_.begin() + 1; lane != free_ns_.end(); ++lane) {
      const double start = std::max(*lane, ready_ns), best_start = std::max(*best, ready_ns);
      if (start < best_start || (start == best_start && *lane > *best)) best = lane;
    }
    *best = std::max(*best, ready_ns) + task.beside_ns + kTakeNs;
    ends_ns_.push_back(*best);
    end_ns_ = std::max(end_ns_, *best);
    return kMeetNs + kCaution * end_ns_;
  }

 private:
  const absl::Span<const Task> tasks_;
  const int first_;
  std::vector<double> free_ns_;  // By thread.
  std::vector<double> ends_ns_;  // By task.
  double end_ns_ = 0;
};

}  // namespace

std::vector<Stretch> FindStretches(absl::Span<const Task> tasks, int num_lanes) {
  const size_t count = tasks.size();
  if (num_lanes < 2 || count < 2) return {};
  const size_t longest = std::clamp(kMostPairs / count, kShortest, kLongest);
  // By number of finished tasks: the least time for them, and how many were finished before the last stretch.
  std::vector<double> least_ns(count + 1, std::numeric_limits<double>::infinity());
  std::vector<size_t> before(count + 1, 0);
  least_ns[0] = 0;
  const auto reach = [&](size_t from, size_t to, double time_ns) {
    if (least_ns[from] + time_ns >= least_ns[to]) return;
    least_ns[to] = least_ns[from] + time_ns;
    before[to] = from;
  };
  for (size_t begin = 0; begin < count; ++begin) {
    reach(begin, begin + 1, tasks[begin].alone_ns);
    Schedule schedule(tasks, static_cast<int>(begin), num_lanes);
    for (size_t end = begin; end < std::min(count, begin + longest) && tasks[end].may_be_beside; ++end) {
      const double time_ns = schedule.Add();
      if (end > begin) reach(begin, end + 1, time_ns);
    }
  }
  std::vector<Stretch> stretches;
  for (size_t end = count; end > 0; end = before[end]) {
    if (end - before[end] > 1) stretches.push_back({static_cast<int>(before[end]), static_cast<int>(end)});
  }
  std::reverse(stretches.begin(), stretches.end());
  return stretches;
}

double EstimateNs(absl::Span<const Task> tasks, absl::Span<const Stretch> stretches, int num_lanes) {
  double time_ns = 0;
  auto next = stretches.begin();
  for (size_t i = 0; i < tasks.size();) {
    if (next == stretches.end() || static_cast<size_t>(next->begin) != i) {
      time_ns += tasks[i++].alone_ns;
      continue;
    }
    Schedule schedule(tasks, next->begin, num_lanes);
    double stretch_ns = 0;
    for (; i < static_cast<size_t>(next->end); ++i) stretch_ns = schedule.Add();
    time_ns += stretch_ns;
    ++next;
  }
  return time_ns;
}

StretchRunner::StretchRunner(absl::Span<const Task> tasks, Stretch stretch) : first_(stretch.begin) {
  const auto count = static_cast<size_t>(stretch.end - stretch.begin);
  num_before_.assign(count, 0);
  readers_.resize(count);
  way_ns_.assign(count, 0);
  for (size_t i = 0; i < count; ++i) {
    for (const int task : tasks[static_cast<size_t>(first_) + i].after) {
      if (task < first_) continue;
      readers_[static_cast<size_t>(task - first_)].push_back(static_cast<int>(i));
      ++num_before_[i];
    }
  }
  for (size_t i = count; i-- > 0;) {
    for (const int reader : readers_[i]) way_ns_[i] = std::max(way_ns_[i], way_ns_[static_cast<size_t>(reader)]);
    way_ns_[i] += tasks[static_cast<size_t>(first_) + i].beside_ns;
  }
  pending_ = num_before_;
  ready_.reserve(count);
  is_done_.resize(count);
}

void StretchRunner::Begin() {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto count = static_cast<int>(num_before_.size());
  std::copy(num_before_.begin(), num_before_.end(), pending_.begin());
  std::fill(is_done_.begin(), is_done_.end(), false);
  ready_.clear();
  limit_ = count;
  status_ = absl::OkStatus();
  for (int i = 0; i < count; ++i) {
    if (pending_[i] == 0) Offer(i);
  }
  num_left_.store(count, std::memory_order_relaxed);
}

bool StretchRunner::IsLess(int a, int b) const { return way_ns_[a] != way_ns_[b] ? way_ns_[a] < way_ns_[b] : a > b; }

void StretchRunner::Offer(int index) {
  ready_.push_back(index);
  std::push_heap(ready_.begin(), ready_.end(), [this](int a, int b) { return IsLess(a, b); });
  num_ready_.store(static_cast<int>(ready_.size()), std::memory_order_relaxed);
}

bool StretchRunner::Take(int* index) {
  while (!ready_.empty()) {
    std::pop_heap(ready_.begin(), ready_.end(), [this](int a, int b) { return IsLess(a, b); });
    *index = ready_.back();
    ready_.pop_back();
    num_ready_.store(static_cast<int>(ready_.size()), std::memory_order_relaxed);
    if (*index < limit_) return true;
  }
  return false;
}

void StretchRunner::Finish(int index, absl::Status status) {
  is_done_[index] = true;
  int left = num_left_.load(std::memory_order_relaxed);
  if (status.ok()) {
    if (index < limit_) --left;
    for (const int reader : readers_[index]) {
      if (--pending_[reader] == 0) Offer(reader);
    }
  } else if (index < limit_) {
    // Tasks before it do not wait for later ones, so all of them will be done.
    limit_ = index;
    status_ = std::move(status);
    left = static_cast<int>(std::count(is_done_.begin(), is_done_.begin() + limit_, false));
  }
  num_left_.store(left, std::memory_order_release);
  if (num_waiting_ > 0) news_.notify_all();
}

void StretchRunner::Work(absl::FunctionRef<absl::Status(int task)> run) {
  std::unique_lock<std::mutex> lock(mutex_);
  while (true) {
    int index;
    if (Take(&index)) {
      lock.unlock();
      absl::Status status = run(first_ + index);
      lock.lock();
      Finish(index, std::move(status));
      continue;
    }
    lock.unlock();
    const auto has_news = [this] {
      return num_ready_.load(std::memory_order_relaxed) != 0 || num_left_.load(std::memory_order_acquire) == 0;
    };
    const bool is_fast = SpinWait::Until(has_news);
    lock.lock();
    if (!is_fast) {
      ++num_waiting_;
      news_.wait(lock, has_news);
      --num_waiting_;
    }
    if (num_left_.load(std::memory_order_relaxed) == 0) return;
  }
}

}  // namespace permafrost
