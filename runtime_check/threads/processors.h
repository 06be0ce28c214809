// Which processors threads run on.
#ifndef PERMAFROST_RUNTIME_CHECK_THREADS_PROCESSORS_H_
#define PERMAFROST_RUNTIME_CHECK_THREADS_PROCESSORS_H_

#include <sched.h>

#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"

namespace permafrost {

// Binds this thread, and the threads that it starts, to processors while it lives; on the thread that made it alone.
class ProcessorBinding {
 public:
  ProcessorBinding();
  ~ProcessorBinding();
  ProcessorBinding(const ProcessorBinding&) = delete;
  ProcessorBinding& operator=(const ProcessorBinding&) = delete;

  // Numbers as the kernel counts processors, from 0. None leaves the thread as it is. InvalidArgument, with those that
  // there are, for a processor that this thread may not use.
  absl::Status Bind(absl::Span<const int> processors);

 private:
  cpu_set_t before_;
  bool is_bound_ = false;
};

}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_THREADS_PROCESSORS_H_
