// The options of a session. Start at session.h.
#ifndef PERMAFROST_RUNTIME_CHECK_SESSION_OPTIONS_H_
#define PERMAFROST_RUNTIME_CHECK_SESSION_OPTIONS_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "runtime_check/execution/loop_limits.h"
#include "runtime_check/packing/packed_weights.h"
#include "runtime_check/profiling/callbacks.h"
#include "runtime_check/program/lookups.h"
#include "runtime_check/resources/print_writer.h"

namespace permafrost {

class Delegate;  // runtime_check/delegate.h
class Profiler;  // runtime_check/profiling/profiler.h

struct SessionOptions {
  // The number of threads that compute, including the calling thread. Clamped to 1 and ThreadPool::kMostThreads.
  int num_threads = 1;
  // How many nodes may run at the same time, each on one thread. Below 2, one node runs at a time. Used only where a
  // plan estimates a gain and no callback or profiler (on_node, on_piece, profiler) is set. The nodes run on the
  // threads of num_threads if there are as many, otherwise on additional threads. Results stay bitwise identical;
  // activations may take more memory, within memory_limit. A partition never runs beside other nodes; its delegate
  // decides whether its parts run at the same time. Three kinds of nodes run one at a time: nodes whose shapes are
  // known only during the run, nodes with side effects, and the nodes of graphs with V1 control flow.
  int inter_op_threads = 1;
  // The processors, by the operating system's numbers, on which the session's threads run, and the calling thread
  // during a call of the session. Threads that a delegate's library starts keep the processors of the call that started
  // them. Empty: all.
  std::vector<int> processors;
  // Limit in bytes on activations, computed constants and copied constants together; packed weights are not counted. A
  // graph that needs more is rejected with ResourceExhausted.
  int64_t memory_limit = int64_t{4} << 30;
  NodeCallback on_node;  // For profiling; costs two clock reads per node. Empty: none.
  // The number of plans that are kept, each for other input shapes, so that recently fed shapes need no new plan. At
  // least 1 plan is kept, and fewer than this if the memory limit leaves no room.
  int most_plans = 4;
  KernelLookup kernel_lookup;                // Empty: FindKernel, the reference kernels.
  std::shared_ptr<const Delegate> delegate;  // Null: the reference kernels run everything.
  PieceCallback on_piece;                    // The pieces of partitions, for profiling. Empty: none.
  // The cache of packed weights, which the reference kernels read and fill; null: none. Valid only for the model that
  // it was created for.
  SharedPackedWeights packed;
  // Records runs while recording is on; must outlive the session. May be null.
  Profiler* profiler = nullptr;
  // Receives the text of nodes that print (Print, PrintV2). Empty: the text goes to standard output where the node
  // says "stdout", otherwise to standard error.
  PrintWriter print;
  // Returns the tensor of a memory region that an ImmutableConst names. Empty: there are no regions.
  RegionReader region_reader;
  // Names of nodes that run in addition to those that the fetches need; their outputs are discarded.
  std::vector<std::string> targets;
  // Whether loops of recurrent networks run as one plan for all iterations (docs/design/control_flow.md). The results
  // are those of the reference kernels, node by node, in either case, unless a delegate runs the nodes.
  bool fuse_loops = true;
  // Limits on loops, because a graph may contain an endless loop.
  LoopLimits loop_limits;
};

}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_SESSION_OPTIONS_H_
