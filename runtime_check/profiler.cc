// Keeps events in one growing list.
#include "runtime_check/profiler.h"

#include <algorithm>
#include <chrono>

namespace permafrost {

Profiler::Profiler(size_t most_events)
    : most_events_(most_events),
      followers_(1, -1),
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
  depth_ = 0;
  num_dropped_ = 0;
  function_ = nullptr;
  last_label_ = -1;
  last_ns_ = run_start_ns_ = NowNanoseconds();
}

void Profiler::EndRun() {
  const int64_t end_ns = NowNanoseconds();
  runs_.push_back({run_start_ns_, end_ns, num_dropped_, run_first_event_, events_.size() - run_first_event_});
}

void Profiler::Leave(const Node& node, bool is_partition, int64_t start_ns, int64_t output_bytes) {
  const int64_t end_ns = NowNanoseconds();
  --depth_;
  Add(LabelOf(node, is_partition), start_ns, end_ns, output_bytes);
}

const std::string* Profiler::EnterFunction(const std::string* name) {
  const std::string* before = function_;
  function_ = name;
  return before;
}

void Profiler::AddPiece(absl::string_view name, absl::Duration duration) {
  const int64_t end_ns = NowNanoseconds();
  int32_t number = Expected(ProfileLabel::Kind::kPiece, name, delegate_);
  if (number < 0) {
    const auto [entry, is_new] = by_piece_.try_emplace(name, static_cast<int32_t>(labels_.size()));
    number = entry->second;
    if (is_new) {
      ProfileLabel& label = labels_.emplace_back();
      label.kind = ProfileLabel::Kind::kPiece;
      label.name = std::string(name);
      label.op = std::string(delegate_);
      if (function_ != nullptr) label.function = *function_;
    }
  }
  Add(number, end_ns - std::max<int64_t>(0, absl::ToInt64Nanoseconds(duration)), end_ns, 0);
}

void Profiler::Add(int32_t label, int64_t start_ns, int64_t end_ns, int64_t output_bytes) {
  followers_.resize(labels_.size() + 1, -1);
  followers_[static_cast<size_t>(last_label_ + 1)] = label;
  last_label_ = label;
  last_ns_ = end_ns;
  if (events_.size() >= most_events_) {
    ++num_dropped_;
    return;
  }
  events_.push_back({label, depth_, start_ns, end_ns, output_bytes});
}

int32_t Profiler::Expected(ProfileLabel::Kind kind, absl::string_view name, absl::string_view op) const {
  const int32_t number = followers_[static_cast<size_t>(last_label_ + 1)];
  if (number < 0) return -1;
  const ProfileLabel& label = labels_[static_cast<size_t>(number)];
  const absl::string_view function = function_ == nullptr ? absl::string_view() : absl::string_view(*function_);
  return label.kind == kind && label.name == name && label.op == op && label.function == function ? number : -1;
}

int32_t Profiler::LabelOf(const Node& node, bool is_partition) {
  const auto kind = is_partition ? ProfileLabel::Kind::kPartition : ProfileLabel::Kind::kNode;
  const int32_t expected = Expected(kind, node.name(), node.op().name());
  if (expected >= 0) return expected;
  const auto found = by_node_.find(&node);
  if (found != by_node_.end()) {
    const ProfileLabel& label = labels_[static_cast<size_t>(found->second)];
    if (label.kind == kind && label.name == node.name() && label.op == node.op().name()) return found->second;
  }
  const auto number = static_cast<int32_t>(labels_.size());
  ProfileLabel& label = labels_.emplace_back();
  label.kind = kind;
  label.name = std::string(node.name());
  label.op = std::string(node.op().name());
  if (function_ != nullptr) label.function = *function_;
  by_node_[&node] = number;
  return number;
}

}  // namespace permafrost
