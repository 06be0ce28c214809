// How the tools run a model: the limits of a run.
#ifndef PERMAFROST_TOOLS_RUN_OPTIONS_H_
#define PERMAFROST_TOOLS_RUN_OPTIONS_H_

#include <cstdint>

#include "io/file_system.h"
#include "runtime_check/session.h"

namespace permafrost {

// A graph whose inputs are not real may loop for ever: a tool gives up on a loop after so many iterations.
inline constexpr int64_t kMostLoopIterations = 1'000'000;

// An ImmutableConst reads the file that its region names, mapped. Unimplemented for a name that begins with
// "memmapped_package://": it lies inside a model file. InvalidArgument for a file of another size than the tensor.
// `files` must outlive the result.
SessionOptions ToolSessionOptions(int num_threads, FileSystem& files);

}  // namespace permafrost

#endif  // PERMAFROST_TOOLS_RUN_OPTIONS_H_
