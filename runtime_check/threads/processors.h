// Counts the processors that a process may use, and binds threads to processors.
#ifndef PERMAFROST_RUNTIME_CHECK_THREADS_PROCESSORS_H_
#define PERMAFROST_RUNTIME_CHECK_THREADS_PROCESSORS_H_

#include <sched.h>

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"

namespace permafrost {

// Returns the number of threads to compute with by default, 1 or more: the processors on which the calling thread may
// run, or fewer if a control group (a container) limits the processor time. A limit of 2.5 processors counts as 2,
// since a process that exceeds its limit is stopped for the rest of the period, which is usually 100 ms.
int AvailableProcessors();

// Returns the lowest limit of the control groups of this process, in processors, or 0 if there is none. `root` precedes
// the paths of the system's files.
double ProcessorLimit(const std::string& root = "");

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
