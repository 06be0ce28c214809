// Session settings common to all tools, such as limits of a run.
#ifndef PERMAFROST_TOOLS_MODEL_TOOL_SESSION_H_
#define PERMAFROST_TOOLS_MODEL_TOOL_SESSION_H_

#include <cstdint>
#include <memory>

#include "io/file_system.h"
#include "io/formats/memmapped_package.h"
#include "runtime_check/session.h"

namespace permafrost {

// Maximum number of iterations of a loop. A graph may loop forever on inputs that are not real.
inline constexpr int64_t kMostLoopIterations = 1'000'000;

// Returns a reader of file regions: an ImmutableConst maps the file that its region names. Unimplemented for a name
// that begins with "memmapped_package://", since that region lies inside a model file. InvalidArgument if the size of
// the file differs from that of the tensor. `files` must outlive the result.
SessionOptions ToolSessionOptions(int num_threads, FileSystem& files);

// Returns a reader for the graph of a package, as Package::ReadGraph returns it. Regions of the package are read when a
// session needs them, regions that are files as above. `files` must outlive the result.
RegionReader PackageRegions(std::shared_ptr<const Package> package, FileSystem& files);

}  // namespace permafrost

#endif  // PERMAFROST_TOOLS_MODEL_TOOL_SESSION_H_
