// Tells the pools.
#include "runtime_check/thread_lane.h"

#include <utility>

namespace permafrost {

// Of thread_pool.cc, which every kernel would be compiled again for if it had a header for this.
extern thread_local bool runs_loops_alone;

ThreadLane::ThreadLane() : before_(std::exchange(runs_loops_alone, true)) {}

ThreadLane::~ThreadLane() { runs_loops_alone = before_; }

}  // namespace permafrost
