// Records what a session does: every node, partition and piece of a partition, with start and end.
//
//   Profiler profiler;
//   SessionOptions options;
//   options.profiler = &profiler;
//   ...
//   profiler.set_recording(true);
//   session->Run(feeds);                      // Any number of runs.
//   for (const ProfileRun& run : profiler.runs()) ...
//
// While it does not record, it costs a run one test for each plan, not for each node.
#ifndef PERMAFROST_RUNTIME_CHECK_PROFILING_PROFILER_H_
#define PERMAFROST_RUNTIME_CHECK_PROFILING_PROFILER_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "graph/graph.h"
#include "runtime_check/profiling/callbacks.h"

namespace permafrost {

// What ran.
struct ProfileLabel {
  enum class Kind : uint8_t {
    kNode,       // A node, by its kernel; also one that calls functions, whose nodes are inside of it.
    kPartition,  // What a delegate runs as one.
    kPiece,      // A part of a partition.
  };
  Kind kind = Kind::kNode;
  std::string name;      // Of the node; of a piece what its delegate calls it.
  std::string op;        // Of a node; of a partition and its pieces the delegate's name.
  std::string function;  // Whose body it lies in; empty for the graph itself.
};

struct ProfileEvent {
  int32_t label = 0;     // Index into Profiler::labels().
  int32_t depth = 0;     // 0 for a step of the graph itself; what ran inside of it has 1 more, and comes before it.
  int64_t start_ns = 0;  // Of the steady clock.
  int64_t end_ns = 0;
  int64_t output_bytes = 0;  // Of the tensors that it made; 0 for a piece, of which nobody knows.
};

struct ProfileRun {
  int64_t start_ns = 0;
  int64_t end_ns = 0;
  absl::Span<const ProfileEvent> events;  // In the order in which they ended. Valid until the next run or Clear.
  int64_t num_dropped = 0;                // Events beyond the limit.
};

// What a session keeps of a step for the profiler that records it: a run is like the one before, so that names are
// looked up once for each step and not for each run.
struct ProfileTicket {
  uint32_t profiler = 0;  // Whose label it is; 0: nobody's.
  int32_t label = -1;
  int64_t output_bytes = 0;  // Where they are known before the run.
};

// The same of the pieces of a partition, in the order in which they were reported last.
struct PieceTickets {
  struct Piece {
    absl::string_view name;  // Compared by address, which the delegate promises to keep.
    int32_t label = -1;
  };
  uint32_t profiler = 0;
  std::vector<Piece> pieces;
};

// For one session at a time. Not thread-safe: a session runs on one thread. What a session calls is virtual, so that a
// program that makes no profiler need not hold one.
class Profiler {
 public:
  // What an event reads. The fastest is the processor's counter of cycles where it counts at one rate, and costs less
  // than half of the steady clock; the times of a run's events lie between the run's start and end as their counts do.
  enum class Clock : uint8_t { kFastest, kSteady };

  // Events beyond `most_events` are counted and not kept: a loop may go round for ever. About 50 bytes each.
  explicit Profiler(size_t most_events = size_t{1} << 22, Clock clock = Clock::kFastest);
  Profiler(const Profiler&) = delete;
  Profiler& operator=(const Profiler&) = delete;
  virtual ~Profiler() = default;

  void set_recording(bool recording) { is_recording_ = recording; }
  bool is_recording() const { return is_recording_; }

  // The runs that ended since the last Clear. A run that failed is left out.
  std::vector<ProfileRun> runs() const;
  const std::vector<ProfileLabel>& labels() const { return labels_; }
  // Forgets the runs; the labels stay.
  void Clear();

  // --- For the session ---------------------------------------------------------------------------------------------
  static int64_t NowNanoseconds();
  virtual void BeginRun();
  // Without it the run counts as failed, and the next one takes its place.
  virtual void EndRun();
  // Whether the ticket is of this profiler; if not, Name makes it so. `is_partition`: the node stands for one.
  bool Knows(const ProfileTicket& ticket) const { return ticket.profiler == id_; }
  virtual void Name(const Node& node, bool is_partition, ProfileTicket* ticket);
  // What is recorded next lies inside of a step. Returns when that began, for Leave: where the event before it ended,
  // so that the clock is read once for each step and what lies between two is not lost.
  int64_t Enter() {
    ++depth_;
    return last_;
  }
  // REQUIRES: Knows(ticket).
  virtual void Leave(const ProfileTicket& ticket, int64_t start, int64_t output_bytes) {
    --depth_;
    Add(ticket.label, start, Now(), output_bytes);
  }
  // After an error.
  void Abandon() { --depth_; }
  // What follows are pieces of the partition that `node` stands for. The tickets must outlive its run, and belong to it
  // alone.
  virtual void EnterPartition(const Node& node, PieceTickets* tickets);
  // What partitions report to.
  const PieceCallback& on_piece() const { return on_piece_; }
  // Names the function whose nodes follow, and returns the one before.
  virtual const std::string* EnterFunction(const std::string* name);

 private:
  struct Run {
    int64_t start_ns, end_ns, num_dropped;
    size_t first_event, num_events;
  };
  // An event that says itself how long it took.
  struct Timed {
    size_t event;
    int64_t nanoseconds;
  };

  // In counts of the processor, or nanoseconds.
  int64_t Now() const {
#if defined(__x86_64__)
    if (counts_cycles_) return static_cast<int64_t>(__builtin_ia32_rdtsc());
#endif
    return NowNanoseconds();
  }
  void Add(int32_t label, int64_t start, int64_t end, int64_t output_bytes) {
    last_ = end;
    if (events_.size() >= most_events_) {
      ++num_dropped_;
      return;
    }
    events_.push_back({label, depth_, start, end, output_bytes});
  }
  void AddPiece(absl::string_view name, absl::Duration duration);
  // Turns the counts of the run's events into nanoseconds.
  void Date(int64_t end, int64_t end_ns);
  int32_t LabelOf(ProfileLabel::Kind kind, absl::string_view name, absl::string_view op);

  const uint32_t id_;
  const bool counts_cycles_;
  const size_t most_events_;
  bool is_recording_ = false;
  int32_t depth_ = 0;
  int64_t num_dropped_ = 0;
  int64_t run_start_ = 0, run_start_ns_ = 0;
  int64_t last_ = 0;  // When the last event ended.
  size_t run_first_event_ = 0;
  const std::string* function_ = nullptr;
  std::vector<ProfileEvent> events_;  // Those of the run under way in counts, not nanoseconds.
  std::vector<Timed> timed_;          // Of the run under way.
  std::vector<Run> runs_;
  std::vector<ProfileLabel> labels_;
  absl::flat_hash_map<std::string, int32_t> by_text_;  // By all that a label says.
  absl::string_view delegate_;                         // Whose pieces are coming; a partition has no partitions inside.
  PieceTickets* tickets_ = nullptr;                    // Of them.
  size_t next_piece_ = 0;
  PieceCallback on_piece_;
};

}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_PROFILING_PROFILER_H_
