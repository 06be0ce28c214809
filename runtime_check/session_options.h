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
  // The number of threads that compute, including the calling thread. Values below 1 count as 1, values above
  // ThreadPool::kMostThreads as that.
  int num_threads = 1;
  // How many nodes may run at the same time, each on one thread, where a plan finds that to be faster and no callback
  // or profiler (on_node, on_piece, profiler) is set. They run on the threads of num_threads where those are as many,
  // otherwise on threads of their own. Results stay the same bit for bit; activations may take more memory, within
  // memory_limit. A partition never runs beside other nodes; its delegate decides whether its parts run beside each
  // other. Nodes whose shapes are known only during the run, nodes with side effects, and the nodes of graphs with V1
  // control flow run one at a time. Below 2: one node at a time.
  int inter_op_threads = 1;
  // The processors, by the kernel's numbers, on which the session's threads run, and the calling thread during a call
  // of the session. Threads that a delegate's library starts keep the processors of the call that started them. Empty:
  // all.
  std::vector<int> processors;
  // Limit in bytes on activations, computed constants and copied constants together; packed weights are not counted. A
  // graph that needs more is rejected with ResourceExhausted.
  int64_t memory_limit = int64_t{4} << 30;
  NodeCallback on_node;  // For profiling; costs two clock readings a node. Empty: none.
  // How many plans are kept, each for other input shapes, so that shapes that were fed lately need no new plan. At
  // least 1 is kept, and fewer than this where the memory limit leaves no room.
  int most_plans = 4;
  KernelLookup kernel_lookup;                // Empty: FindKernel, the reference kernels.
  std::shared_ptr<const Delegate> delegate;  // Null: the reference kernels run everything.
  PieceCallback on_piece;                    // The pieces of partitions, for profiling. Empty: none.
  // Where the reference kernels look up packed weights, and store those that they pack; null: nowhere. Valid only for
  // the model that it was made for.
  SharedPackedWeights packed;
  // Records runs while it is recording; must outlive the session. May be null.
  Profiler* profiler = nullptr;
  // Receives the text of nodes that print (Print, PrintV2). Empty: the text goes to standard output where the node
  // says "stdout", otherwise to standard error.
  PrintWriter print;
  // Returns the tensor of a memory region that an ImmutableConst names. Empty: there are no regions.
  RegionReader region_reader;
  // Names of nodes that run in addition to those that the fetches need; their outputs are discarded.
  std::vector<std::string> targets;
  // Ends loops that run for too long: a graph may loop for ever.
  LoopLimits loop_limits;
};

}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_SESSION_OPTIONS_H_
