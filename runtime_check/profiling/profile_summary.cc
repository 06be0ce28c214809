// Subtracts the time of nested events from each event, and adds up the rest.
#include "runtime_check/profiling/profile_summary.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

namespace permafrost {
namespace {

constexpr double kNanosecondsInMicrosecond = 1000;

// Sums of one label in one run.
struct InRun {
  int64_t start_ns = 0;
  int64_t self_ns = 0;
  int64_t calls = 0;
  int64_t bytes = 0;
};

}  // namespace

ProfileSummary::ProfileSummary(Namer name_of, MemoryOf memory_of)
    : name_of_(std::move(name_of)), memory_of_(std::move(memory_of)) {}

void ProfileSummary::Add(const Profiler& profiler) {
  for (size_t i = rows_.size(); i < profiler.labels().size(); ++i) {
    const ProfileLabel& label = profiler.labels()[i];
    ProfileRow& row = rows_.emplace_back();
    row.label = label;
    row.shown = name_of_ != nullptr ? name_of_(label) : ProfileRowName{label.name, label.op};
    first_start_.push_back(0);
  }
  for (const ProfileRun& run : profiler.runs()) AddRun(profiler, run);
}

void ProfileSummary::AddRun(const Profiler& profiler, const ProfileRun& run) {
  absl::flat_hash_map<int32_t, InRun> in_run;
  std::vector<int64_t> inside;  // By depth: time of the events that ended since the last one at the level above.
  for (const ProfileEvent& event : run.events) {
    const auto depth = static_cast<size_t>(event.depth);
    if (inside.size() < depth + 2) inside.resize(depth + 2, 0);
    const int64_t duration = event.end_ns - event.start_ns;
    InRun& sums = in_run[event.label];
    if (sums.calls == 0 || event.start_ns < sums.start_ns) sums.start_ns = event.start_ns;
    sums.self_ns += std::max<int64_t>(0, duration - inside[depth + 1]);
    ++sums.calls;
    int64_t bytes = event.output_bytes;
    const ProfileLabel& label = profiler.labels()[static_cast<size_t>(event.label)];
    if (label.kind == ProfileLabel::Kind::kPiece) {
      bytes = memory_of_ != nullptr ? std::max<int64_t>(0, memory_of_(label)) : 0;
    } else if (label.kind == ProfileLabel::Kind::kPartition && inside[depth + 1] > 0) {
      bytes = 0;  // Counted for its pieces.
    }
    sums.bytes += bytes;
    inside[depth + 1] = 0;
    inside[depth] += duration;
  }
  const bool is_first = num_runs_++ == 0;
  num_dropped_ += run.num_dropped;
  double total_us = 0;
  int64_t memory = 0;
  for (const auto& [number, sums] : in_run) {
    ProfileRow& row = rows_[static_cast<size_t>(number)];
    const double time_us = static_cast<double>(sums.self_ns) / kNanosecondsInMicrosecond;
    const int64_t start_ns = sums.start_ns - run.start_ns;
    if (row.num_runs++ == 0) {
      // Labels that first run in a later run are sorted after those of the first run.
      first_start_[static_cast<size_t>(number)] = is_first ? start_ns : start_ns + num_runs_ * (int64_t{1} << 40);
      row.first_us = row.least_us = time_us;
    }
    row.num_calls += sums.calls;
    row.start_us += static_cast<double>(start_ns) / kNanosecondsInMicrosecond;
    row.total_us += time_us;
    row.least_us = std::min(row.least_us, time_us);
    row.memory = sums.bytes;
    row.memory_stat.Add(sums.bytes);
    total_us += time_us;
    memory += sums.bytes;
  }
  total_us_.Add(std::llround(total_us));
  memory_.Add(memory);
  wall_us_.Add(std::llround(static_cast<double>(run.end_ns - run.start_ns) / kNanosecondsInMicrosecond));
}

std::vector<ProfileRow> ProfileSummary::Rows() const {
  std::vector<size_t> order;
  for (size_t i = 0; i < rows_.size(); ++i) {
    if (rows_[i].num_runs > 0) order.push_back(i);
  }
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return first_start_[a] < first_start_[b]; });
  std::vector<ProfileRow> rows;
  for (const size_t i : order) rows.push_back(rows_[i]);
  return rows;
}

std::vector<ProfileType> ProfileSummary::Types() const {
  std::map<std::string, ProfileType> by_type;
  for (const ProfileRow& row : rows_) {
    if (row.num_runs == 0) continue;
    ProfileType& type = by_type[row.shown.type];
    type.type = row.shown.type;
    ++type.num_rows;
    type.num_calls += row.num_calls;
    type.total_us += row.total_us;
    type.memory += row.memory;
  }
  std::vector<ProfileType> types;
  for (auto& [name, type] : by_type) types.push_back(std::move(type));
  // For equal times the later name comes first, as in TensorFlow.
  std::sort(types.begin(), types.end(), [](const ProfileType& a, const ProfileType& b) {
    return a.total_us != b.total_us ? a.total_us > b.total_us : a.type > b.type;
  });
  return types;
}

}  // namespace permafrost
