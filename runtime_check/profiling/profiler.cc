// Appends events to one growing list during a run, and processes them at its end.
#include "runtime_check/profiling/profiler.h"

#include <algorithm>
#include <atomic>
#include <chrono>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include "absl/strings/str_cat.h"

namespace permafrost {
namespace {

uint32_t NextId() {
  static std::atomic<uint32_t> last{0};
  return ++last;
}

// Returns whether the cycle counter has a constant rate in all frequency and sleep states.
bool CountsEvenly() {
#if defined(__x86_64__)
  constexpr unsigned kPowerLeaf = 0x80000007, kInvariantCounter = 1u << 8;
  unsigned a, b, c, d;
  return __get_cpuid(kPowerLeaf, &a, &b, &c, &d) != 0 && (d & kInvariantCounter) != 0;
#else
  return false;
#endif
}

}  // namespace

Profiler::Profiler(size_t most_events, Clock clock)
    : id_(NextId()),
      counts_cycles_(clock == Clock::kFastest && CountsEvenly()),
      most_events_(most_events),
      on_piece_([this](absl::string_view name, absl::Duration duration) { AddPiece(name, duration); }) {}

int64_t Profiler::NowNanoseconds() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

std::vector<ProfileRun> Profiler::runs() const {
  std::vector<ProfileRun> runs;
  for (const Run& run : runs_) {
    runs.push_back({run.start_ns, run.end_ns, absl::MakeConstSpan(events_).subspan(run.first_event, run.num_events),
                    run.num_dropped});
  }
  return runs;
}

void Profiler::Clear() {
  events_.clear();
  runs_.clear();
}

void Profiler::BeginRun() {
  run_first_event_ = runs_.empty() ? 0 : runs_.back().first_event + runs_.back().num_events;
  events_.resize(run_first_event_);
  timed_.clear();
  depth_ = 0;
  num_dropped_ = 0;
  function_ = nullptr;
  tickets_ = nullptr;
  run_start_ns_ = NowNanoseconds();
  last_ = run_start_ = counts_cycles_ ? Now() : run_start_ns_;
}

void Profiler::EndRun() {
  // The clocks are read in the same order as in BeginRun, so that the delay between the two readings is the same.
  const int64_t end_ns = NowNanoseconds();
  Date(Now(), end_ns);
  runs_.push_back({run_start_ns_, end_ns, num_dropped_, run_first_event_, events_.size() - run_first_event_});
}

void Profiler::Date(int64_t end, int64_t end_ns) {
  if (counts_cycles_ && end > run_start_) {
    const double scale = static_cast<double>(end_ns - run_start_ns_) / static_cast<double>(end - run_start_);
    // Clamped to the run, because counters of different processors may differ.
    const auto date = [&](int64_t count) {
      const auto since = static_cast<int64_t>(static_cast<double>(count - run_start_) * scale);
      return std::min(std::max(run_start_ns_ + since, run_start_ns_), end_ns);
    };
    for (size_t i = run_first_event_; i < events_.size(); ++i) {
      ProfileEvent& event = events_[i];
      event.start_ns = date(event.start_ns);
      event.end_ns = std::max(event.start_ns, date(event.end_ns));
    }
  }
  for (const Timed& timed : timed_) {
    // Otherwise the event was not kept.
    if (timed.event < events_.size()) events_[timed.event].start_ns = events_[timed.event].end_ns - timed.nanoseconds;
  }
}

void Profiler::Name(const Node& node, bool is_partition, ProfileTicket* ticket) {
  ticket->label =
      LabelOf(is_partition ? ProfileLabel::Kind::kPartition : ProfileLabel::Kind::kNode, node.name(), node.op().name());
  ticket->profiler = id_;
}

const std::string* Profiler::EnterFunction(const std::string* name) {
  const std::string* before = function_;
  function_ = name;
  return before;
}

void Profiler::EnterPartition(const Node& node, PieceTickets* tickets) {
  delegate_ = node.op().name();
  tickets_ = tickets;
  next_piece_ = 0;
  if (tickets->profiler == id_) return;
  tickets->profiler = id_;
  tickets->pieces.clear();
}

void Profiler::AddPiece(absl::string_view name, absl::Duration duration) {
  const int64_t end = Now();
  if (duration != SinceTheOneBefore()) {
    timed_.push_back({events_.size(), std::max<int64_t>(0, absl::ToInt64Nanoseconds(duration))});
  }
  if (next_piece_ == tickets_->pieces.size()) tickets_->pieces.emplace_back();
  PieceTickets::Piece& piece = tickets_->pieces[next_piece_++];
  if (piece.name.data() != name.data() || piece.name.size() != name.size()) {
    piece = {name, LabelOf(ProfileLabel::Kind::kPiece, name, delegate_)};
  }
  Add(piece.label, last_, end, 0);
}

int32_t Profiler::LabelOf(ProfileLabel::Kind kind, absl::string_view name, absl::string_view op) {
  const absl::string_view function = function_ == nullptr ? absl::string_view() : absl::string_view(*function_);
  // Names contain no zero byte.
  const absl::string_view zero("\0", 1);
  std::string text = absl::StrCat(static_cast<int>(kind), function, zero, op, zero, name);
  const auto [entry, is_new] = by_text_.try_emplace(std::move(text), static_cast<int32_t>(labels_.size()));
  if (is_new) labels_.push_back({kind, std::string(name), std::string(op), std::string(function)});
  return entry->second;
}

}  // namespace permafrost
