// How the tools run a model: the limits of a run.
#ifndef PERMAFROST_TOOLS_MODEL_TOOL_SESSION_H_
#define PERMAFROST_TOOLS_MODEL_TOOL_SESSION_H_

#include <cstdint>
#include <memory>

#include "io/file_system.h"
#include "io/formats/memmapped_package.h"
#include "runtime_check/session.h"

namespace permafrost {

// A graph whose inputs are not real may loop for ever: a tool gives up on a loop after so many iterations.
inline constexpr int64_t kMostLoopIterations = 1'000'000;

// An ImmutableConst reads the file that its region names, mapped. Unimplemented for a name that begins with
// "memmapped_package://": it lies inside a model file. InvalidArgument for a file of another size than the tensor.
// `files` must outlive the result.
SessionOptions ToolSessionOptions(int num_threads, FileSystem& files);

// For the graph of a package as Package::ReadGraph gives it: regions of the package are read when a session needs them,
// those that are files as above. `files` must outlive the result.
RegionReader PackageRegions(std::shared_ptr<const Package> package, FileSystem& files);

}  // namespace permafrost

#endif  // PERMAFROST_TOOLS_MODEL_TOOL_SESSION_H_
