// A profiler, which records every node, partition and piece of a partition of a session, with start and end.
//
//   Profiler profiler;
//   SessionOptions options;
//   options.profiler = &profiler;
//   ...
//   profiler.set_recording(true);
//   session->Run(feeds);                      // Any number of runs.
//   for (const ProfileRun& run : profiler.runs()) ...
//
// While it is not recording, it costs a run one test per plan, not per node.
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

// The subject of an event.
struct ProfileLabel {
  enum class Kind : uint8_t {
    kNode,       // A node, computed by its kernel. Nodes of called functions are nested inside the calling node.
    kPartition,  // A partition, which a delegate runs as one step.
    kPiece,      // A part of a partition.
  };
  Kind kind = Kind::kNode;
  std::string name;      // Name of the node; for a piece, the name that the delegate reports.
  std::string op;        // Op of the node; for a partition and its pieces, the delegate's name.
  std::string function;  // Function that contains the node; empty for the graph itself.
};

struct ProfileEvent {
  int32_t label = 0;     // Index into Profiler::labels().
  int32_t depth = 0;     // 0 for a step of the graph itself. Nested events have 1 more, and precede their parent.
  int64_t start_ns = 0;  // Time of the steady clock.
  int64_t end_ns = 0;
  int64_t output_bytes = 0;  // Bytes of its outputs; 0 for a piece, for which they are unknown.
};

struct ProfileRun {
  int64_t start_ns = 0;
  int64_t end_ns = 0;
  absl::Span<const ProfileEvent> events;  // In the order of their ends. Valid until the next run or Clear.
  int64_t num_dropped = 0;                // Number of events beyond the limit.
};

// Profiler data that a session caches for a step, so that names are looked up once per step and not in each run.
struct ProfileTicket {
  uint32_t profiler = 0;  // Profiler that the label belongs to; 0: none.
  int32_t label = -1;
  int64_t output_bytes = 0;  // Set if known before the run.
};

// The cached data of the pieces of a partition, in the order in which they were reported last.
struct PieceTickets {
  struct Piece {
    absl::string_view name;  // Compared by address, which the delegate keeps unchanged.
    int32_t label = -1;
  };
  uint32_t profiler = 0;
  std::vector<Piece> pieces;
};

// Records the runs of one session at a time. Not thread-safe: a session runs on one thread. Functions that a session
// calls are virtual, so that a program without a profiler need not link it.
class Profiler {
 public:
  // The clock of events. kFastest reads the processor's cycle counter if it has a constant rate, which costs less than
  // half of a read of the steady clock. The times of a run's events are interpolated between the start and the end of
  // the run.
  enum class Clock : uint8_t { kFastest, kSteady };

  // Creates a profiler that keeps at most `most_events` events of about 50 bytes each; further events are only counted,
  // because a loop may be endless.
  explicit Profiler(size_t most_events = size_t{1} << 22, Clock clock = Clock::kFastest);
  Profiler(const Profiler&) = delete;
  Profiler& operator=(const Profiler&) = delete;
  virtual ~Profiler() = default;

  void set_recording(bool recording) { is_recording_ = recording; }
  bool is_recording() const { return is_recording_; }

  // Returns the runs that ended since the last Clear, without failed runs.
  std::vector<ProfileRun> runs() const;
  const std::vector<ProfileLabel>& labels() const { return labels_; }
  // Drops the runs; the labels stay.
  void Clear();

  // --- For the session ---------------------------------------------------------------------------------------------
  static int64_t NowNanoseconds();
  virtual void BeginRun();
  // Ends a run. If it is not called, the run counts as failed, and the next run replaces it.
  virtual void EndRun();
  // Returns whether the ticket belongs to this profiler; if not, Name assigns it. `is_partition`: the node represents a
  // partition.
  bool Knows(const ProfileTicket& ticket) const { return ticket.profiler == id_; }
  virtual void Name(const Node& node, bool is_partition, ProfileTicket* ticket);
  // Starts a step: the following events are nested in it. Returns its start, for Leave. This is the end of the previous
  // event, so the clock is read once per step, and the time between two steps is not lost.
  int64_t Enter() {
    ++depth_;
    return last_;
  }
  // Ends a step. REQUIRES: Knows(ticket).
  virtual void Leave(const ProfileTicket& ticket, int64_t start, int64_t output_bytes) {
    --depth_;
    Add(ticket.label, start, Now(), output_bytes);
  }
  // Ends a step after an error, without recording it.
  void Abandon() { --depth_; }
  // Starts a partition: the following events are pieces of the partition that `node` represents. The tickets must
  // outlive its run, and must not be shared.
  virtual void EnterPartition(const Node& node, PieceTickets* tickets);
  // Returns the callback to which partitions report their pieces.
  const PieceCallback& on_piece() const { return on_piece_; }
  // Sets the function that contains the following nodes, and returns the previous one.
  virtual const std::string* EnterFunction(const std::string* name);

 private:
  struct Run {
    int64_t start_ns, end_ns, num_dropped;
    size_t first_event, num_events;
  };
  // An event with a reported duration.
  struct Timed {
    size_t event;
    int64_t nanoseconds;
  };

  // Returns the time in counts of the processor, or in nanoseconds.
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
  // Converts the counts of the run's events to nanoseconds.
  void Date(int64_t end, int64_t end_ns);
  int32_t LabelOf(ProfileLabel::Kind kind, absl::string_view name, absl::string_view op);

  const uint32_t id_;
  const bool counts_cycles_;
  const size_t most_events_;
  bool is_recording_ = false;
  int32_t depth_ = 0;
  int64_t num_dropped_ = 0;
  int64_t run_start_ = 0, run_start_ns_ = 0;
  int64_t last_ = 0;  // End of the last event.
  size_t run_first_event_ = 0;
  const std::string* function_ = nullptr;
  std::vector<ProfileEvent> events_;  // Events of the current run are in counts, not nanoseconds.
  std::vector<Timed> timed_;          // Events of the current run.
  std::vector<Run> runs_;
  std::vector<ProfileLabel> labels_;
  absl::flat_hash_map<std::string, int32_t> by_text_;  // By all fields of the label.
  absl::string_view delegate_;                         // Delegate of the current partition; partitions are not nested.
  PieceTickets* tickets_ = nullptr;                    // Pieces of the current partition.
  size_t next_piece_ = 0;
  PieceCallback on_piece_;
};

}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_PROFILING_PROFILER_H_
