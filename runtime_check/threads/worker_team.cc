// The workers of a team. Each waits for a loop, and takes items of it until none is left.
#include "runtime_check/threads/worker_team.h"

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "runtime_check/threads/sleeping.h"
#include "runtime_check/threads/spin_wait.h"

namespace permafrost {

#ifdef PERMAFROST_WITHOUT_THREADS

// In builds without threads, the calling thread computes all items, whatever number of threads is requested.
class WorkerTeam::Team {
 public:
  explicit Team(int) {}
  int num_threads() const { return 1; }
  void Run(int64_t count, absl::FunctionRef<void(Items*)> body) {
    AllItems items(count);
    body(&items);
  }

 private:
  class AllItems final : public Items {
   public:
    explicit AllItems(int64_t count) : count_(count) {}
    int thread() const override { return 0; }
    bool Next(int64_t* item) override {
      *item = next_;
      return next_++ < count_;
    }
    bool NextRange(int64_t* begin, int64_t* end) override {
      *begin = std::exchange(next_, count_);
      *end = count_;
      return *begin < count_;
    }

   private:
    int64_t next_ = 0;
    const int64_t count_;
  };
};

#else

namespace {

// The number of forks between the first process and this one.
std::atomic<uint32_t>& Forks() {
  static std::atomic<uint32_t> forks{0};
  static const int is_counted = pthread_atfork(nullptr, nullptr, [] { Forks().fetch_add(1); });
  (void)is_counted;
  return forks;
}

// Words that different threads write are this far from each other, so that they do not share a cache line.
constexpr size_t kCacheLine = 64;

// The fraction of the remaining items of its part that a thread takes at a time, if the body can use several. Taking
// single tiles, of which wide convolutions have thousands, made two threads 14 % slower on a small network (selfie).
// The last items are taken one by one, so that the threads end at the same time.
constexpr uint32_t kTakenFraction = 16;
constexpr uint32_t kOneItem = 0;

// The items of a loop that one thread starts with: [begin, end) in the halves of a word. Its own thread takes the first
// and other threads take the last. An item is taken once, and only in the loop that is running: the ranges of a loop
// that has ended are empty until the next one is set up.
class Range {
 public:
  void Set(uint32_t begin, uint32_t end) {
    word_.store(static_cast<uint64_t>(begin) << 32 | end, std::memory_order_release);
  }
  // Takes the first item, or the given fraction of the items, [*begin, *end). Returns false if none is left.
  bool TakeFirst(uint32_t fraction, uint32_t* begin, uint32_t* end) {
    uint64_t word = word_.load(std::memory_order_relaxed);
    while (Begin(word) < End(word)) {
      const uint32_t count = CountOf(word, fraction);
      *begin = Begin(word);
      *end = *begin + count;
      if (Replace(&word, word + (uint64_t{count} << 32))) return true;
    }
    return false;
  }
  bool TakeLast(uint32_t fraction, uint32_t* begin, uint32_t* end) {
    uint64_t word = word_.load(std::memory_order_relaxed);
    while (Begin(word) < End(word)) {
      const uint32_t count = CountOf(word, fraction);
      *end = End(word);
      *begin = *end - count;
      if (Replace(&word, word - count)) return true;
    }
    return false;
  }

 private:
  static uint32_t Begin(uint64_t word) { return static_cast<uint32_t>(word >> 32); }
  static uint32_t End(uint64_t word) { return static_cast<uint32_t>(word); }
  static uint32_t CountOf(uint64_t word, uint32_t fraction) {
    return fraction == kOneItem ? 1 : std::max<uint32_t>(1, (End(word) - Begin(word)) / fraction);
  }
  bool Replace(uint64_t* word, uint64_t with) {
    return word_.compare_exchange_weak(*word, with, std::memory_order_acq_rel, std::memory_order_relaxed);
  }

  std::atomic<uint64_t> word_{0};
  char padding_[kCacheLine - sizeof(word_)];
};

}  // namespace

class WorkerTeam::Team {
 public:
  explicit Team(int num_threads) : ranges_(static_cast<size_t>(num_threads)), forks_(Forks()) { StartThreads(); }

  ~Team() {
    if (forks_ != Forks()) AbandonThreads();
    Publish(kStop, static_cast<int>(workers_.size()));
    for (std::thread& worker : workers_) worker.join();
  }

  int num_threads() const { return static_cast<int>(workers_.size()) + 1; }

  void Run(int64_t count, absl::FunctionRef<void(Items*)> body) {
    if (forks_ != Forks()) Restart();
    for (int64_t first = 0; first < count; first += kMostItems) {
      RunItems(first, static_cast<uint32_t>(std::min(count - first, kMostItems)), body);
    }
  }

 private:
  static constexpr int64_t kMostItems = int64_t{1} << 31;
  static constexpr uint64_t kStop = ~uint64_t{0};

  class TakenItems final : public Items {
   public:
    TakenItems(Team* team, int thread) : team_(team), thread_(thread) {}
    // Takes the first item, before which the body must not be used. Returns false if none is left.
    bool Start() { return has_first_ = team_->Take(thread_, kOneItem, &begin_, &end_); }
    int thread() const override { return thread_; }
    bool Next(int64_t* item) override {
      if (!Take(kOneItem)) return false;
      *item = team_->offset_ + begin_;
      return true;
    }
    bool NextRange(int64_t* begin, int64_t* end) override {
      if (!Take(kTakenFraction)) return false;
      *begin = team_->offset_ + begin_;
      *end = team_->offset_ + end_;
      return true;
    }
    uint32_t count() const { return count_; }

   private:
    bool Take(uint32_t fraction) {
      if (!std::exchange(has_first_, false) && !team_->Take(thread_, fraction, &begin_, &end_)) return false;
      count_ += end_ - begin_;
      return true;
    }

    Team* const team_;
    const int thread_;
    bool has_first_ = false;
    uint32_t begin_ = 0, end_ = 0;  // The items that were taken last.
    uint32_t count_ = 0;
  };

  void StartThreads() {
    const auto start = [this] {
      for (size_t i = 1; i < ranges_.size(); ++i) workers_.emplace_back([this, i] { Work(static_cast<int>(i)); });
    };
    workers_.reserve(ranges_.size() - 1);
#if defined(__cpp_exceptions)
    try {
      start();
    } catch (const std::system_error&) {
      // The system starts no more threads: the team is smaller.
    }
#else
    start();
#endif
  }

  // The threads of the parent process do not exist in this one, so they can be neither joined nor detached.
  void AbandonThreads() {
    if (!workers_.empty()) new std::vector<std::thread>(std::move(workers_));
    workers_.clear();
  }

  void Restart() {
    AbandonThreads();
    forks_ = Forks();
    num_asleep_.store(0);
    caller_sleeps_.store(false);
    StartThreads();
  }

  void RunItems(int64_t offset, uint32_t count, const absl::FunctionRef<void(Items*)>& body) {
    body_ = &body;
    offset_ = offset;
    unfinished_.store(count, std::memory_order_relaxed);
    const auto parts = static_cast<uint32_t>(std::min<size_t>(count, workers_.size() + 1));
    uint32_t begin = 0;
    for (uint32_t i = 0; i < parts; ++i) {
      const uint32_t end = begin + count / parts + (i < count % parts ? 1 : 0);
      ranges_[i].Set(begin, end);
      begin = end;
    }
    if (parts > 1) Publish(loop_.load(std::memory_order_relaxed) + 1, static_cast<int>(parts) - 1);
    TakenItems items(this, 0);
    if (items.Start()) body(&items);
    Finish(items.count());
    const auto is_done = [this] { return unfinished_.load(std::memory_order_seq_cst) == 0; };
    if (SpinWait::Until(is_done)) return;
    caller_sleeps_.store(true, std::memory_order_seq_cst);
    while (const uint32_t left = unfinished_.load(std::memory_order_seq_cst)) SleepWhile(unfinished_, left);
    caller_sleeps_.store(false, std::memory_order_relaxed);
  }

  // Wakes workers until `wanted` of them are awake. Those that are awake look at the loop before they sleep.
  void Publish(uint64_t loop, int wanted) {
    loop_.store(loop, std::memory_order_seq_cst);
    const int asleep = num_asleep_.load(std::memory_order_seq_cst);
    const int missing = wanted - (static_cast<int>(workers_.size()) - asleep);
    if (missing <= 0) return;
    wakes_.fetch_add(1, std::memory_order_seq_cst);
    Wake(wakes_, missing);
  }

  bool Take(int thread, uint32_t fraction, uint32_t* begin, uint32_t* end) {
    if (ranges_[static_cast<size_t>(thread)].TakeFirst(fraction, begin, end)) return true;
    const auto team = static_cast<int>(ranges_.size());
    for (int i = 1; i < team; ++i) {
      const int other = thread + i < team ? thread + i : thread + i - team;
      if (ranges_[static_cast<size_t>(other)].TakeLast(fraction, begin, end)) return true;
    }
    return false;
  }

  void Finish(uint32_t count) {
    if (unfinished_.fetch_sub(count, std::memory_order_seq_cst) != count) return;
    if (caller_sleeps_.load(std::memory_order_seq_cst)) Wake(unfinished_, 1);
  }

  uint64_t NextLoop(uint64_t last) {
    const auto has_next = [&] { return loop_.load(std::memory_order_seq_cst) != last; };
    if (!SpinWait::Until(has_next)) {
      num_asleep_.fetch_add(1, std::memory_order_seq_cst);
      while (true) {
        const uint32_t wakes = wakes_.load(std::memory_order_seq_cst);
        if (has_next()) break;
        SleepWhile(wakes_, wakes);
      }
      num_asleep_.fetch_sub(1, std::memory_order_seq_cst);
    }
    return loop_.load(std::memory_order_seq_cst);
  }

  void Work(int thread) {
    for (uint64_t loop = NextLoop(0); loop != kStop; loop = NextLoop(loop)) {
      TakenItems items(this, thread);
      if (!items.Start()) continue;
      (*body_)(&items);
      Finish(items.count());
    }
  }

  std::vector<Range> ranges_;  // One per thread that was asked for.
  std::vector<std::thread> workers_;
  uint32_t forks_;  // The value of Forks() when the threads were started.
  // Written by the caller before the ranges are set, and constant while an item is unfinished.
  const absl::FunctionRef<void(Items*)>* body_ = nullptr;
  int64_t offset_ = 0;
  std::atomic<uint64_t> loop_{0};  // Number of the loop.
  char padding_[kCacheLine];
  std::atomic<uint32_t> unfinished_{0};  // Items. The caller sleeps on this word.
  std::atomic<bool> caller_sleeps_{false};
  char more_padding_[kCacheLine];
  std::atomic<uint32_t> wakes_{0};  // Workers sleep on this word.
  std::atomic<int> num_asleep_{0};
};

#endif

WorkerTeam::WorkerTeam(int num_threads) : team_(std::make_unique<Team>(std::clamp(num_threads, 1, kMostThreads))) {}

WorkerTeam::~WorkerTeam() = default;

int WorkerTeam::num_threads() const { return team_->num_threads(); }

void WorkerTeam::Run(int64_t count, absl::FunctionRef<void(Items*)> body) { team_->Run(count, body); }

}  // namespace permafrost
