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
#ifndef PERMAFROST_RUNTIME_CHECK_PROFILER_H_
#define PERMAFROST_RUNTIME_CHECK_PROFILER_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "graph/graph.h"
#include "runtime_check/delegate.h"

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

// For one session at a time. Not thread-safe: a session runs on one thread. What a session calls is virtual, so that a
// program that makes no profiler need not hold one.
class Profiler {
 public:
  // Events beyond `most_events` are counted and not kept: a loop may go round for ever. About 50 bytes each.
  explicit Profiler(size_t most_events = size_t{1} << 22);
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
  // What is recorded next lies inside of `node`, which stands for a partition, or is one that a kernel runs. Returns when
  // that began: where the event before it ended, so that the clock is read once for each node and what lies between two
  // nodes is not lost.
  int64_t Enter(const Node& node, bool is_partition) {
    ++depth_;
    if (is_partition) delegate_ = node.op().name();
    return last_ns_;
  }
  virtual void Leave(const Node& node, bool is_partition, int64_t start_ns, int64_t output_bytes);
  // After an error.
  void Abandon() { --depth_; }
  // What partitions report to.
  const PieceCallback& on_piece() const { return on_piece_; }
  // Names the function whose nodes follow, and returns the one before.
  virtual const std::string* EnterFunction(const std::string* name);

 private:
  struct Run {
    int64_t start_ns, end_ns, num_dropped;
    size_t first_event, num_events;
  };

  void AddPiece(absl::string_view name, absl::Duration duration);
  void Add(int32_t label, int64_t start_ns, int64_t end_ns, int64_t output_bytes);
  int32_t LabelOf(const Node& node, bool is_partition);
  // The label that came after the last event when that was last there, if it is this one; else -1. A run is like the one
  // before, so that hardly anything is looked up.
  int32_t Expected(ProfileLabel::Kind kind, absl::string_view name, absl::string_view op) const;

  const size_t most_events_;
  bool is_recording_ = false;
  int32_t depth_ = 0;
  int64_t num_dropped_ = 0;
  int64_t run_start_ns_ = 0;
  int64_t last_ns_ = 0;      // When the last event ended.
  int32_t last_label_ = -1;  // Of it; -1 at the beginning of a run.
  size_t run_first_event_ = 0;
  const std::string* function_ = nullptr;
  std::vector<ProfileEvent> events_;
  std::vector<Run> runs_;
  std::vector<ProfileLabel> labels_;
  std::vector<int32_t> followers_;  // By label + 1: which came after it last; -1 for nothing yet.
  // Pointers that are compared, never followed: the plan that a node belonged to may be gone, and another node be where
  // it was. Its label is checked against the node.
  absl::flat_hash_map<const Node*, int32_t> by_node_;
  absl::flat_hash_map<std::string, int32_t> by_piece_;
  absl::string_view delegate_;  // Whose pieces are coming; a partition has no partitions inside.
  PieceCallback on_piece_;
};

}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_PROFILER_H_
