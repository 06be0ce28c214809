// Binds threads to processors.
#ifndef PERMAFROST_RUNTIME_CHECK_THREADS_PROCESSORS_H_
#define PERMAFROST_RUNTIME_CHECK_THREADS_PROCESSORS_H_

#include <sched.h>

#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"

namespace permafrost {

// Binds this thread, and the threads that it starts, to processors during its lifetime. Use it only on the thread that
// created it.
class ProcessorBinding {
 public:
  ProcessorBinding();
  ~ProcessorBinding();
  ProcessorBinding(const ProcessorBinding&) = delete;
  ProcessorBinding& operator=(const ProcessorBinding&) = delete;

  // Binds the thread to processors, by the operating system's numbers from 0; an empty list changes nothing.
  // InvalidArgument, with the available processors, for a processor that this thread may not use.
  absl::Status Bind(absl::Span<const int> processors);

 private:
  cpu_set_t before_;
  bool is_bound_ = false;
};

}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_THREADS_PROCESSORS_H_
