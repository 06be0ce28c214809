// Makes session options from flags: loads the delegate and the custom ops, and validates the flags.
#ifndef PERMAFROST_TOOLS_MODEL_RUN_OPTIONS_H_
#define PERMAFROST_TOOLS_MODEL_RUN_OPTIONS_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "io/file_system.h"
#include "runtime_check/session.h"
#include "tools/model/run_flags.h"

namespace permafrost {

// Options for the same run with the built-in kernels, and with the delegate of the flags. Both include the kernels of
// custom ops.
struct RunOptions {
  SessionOptions reference;
  SessionOptions chosen;
};

// Loads the delegate and the custom ops that the flags name. Links the delegates. InvalidArgument for an unknown
// delegate or precision (with the known ones), for numbers of threads that are negative or greater than
// ThreadPool::kMostThreads, for processors that this thread may not use, and for flags that the precision does not use;
// errors of LoadExternalDelegate and LoadCustomOps. `files` must outlive the result.
absl::StatusOr<RunOptions> MakeRunOptions(const RunFlags& run, FileSystem& files);

// Sets the switches of session_settings.h to those of the flags.
void SetSwitches(const RunFlags& run, DelegateOptions* options);

// Returns the storage for what delegates compile: files of --cache_dir, or null. It has no weights.
std::shared_ptr<DelegateBlobs> BlobsOf(const RunFlags& run, FileSystem& files);

// Returns whether the delegate is the path of a shared library.
bool IsLibrary(const RunFlags& run);

// The value of --delegate that measures the delegates and takes the fastest.
inline constexpr char kBestDelegate[] = "best";

// Returns whether the precision or the delegate depends on the model and its inputs. MakeRunOptions then leaves the
// delegate to ResolveDelegate.
bool NeedsSamples(const RunFlags& run);

}  // namespace permafrost

#endif  // PERMAFROST_TOOLS_MODEL_RUN_OPTIONS_H_
