// The delegate that runs float networks on a device with OpenCL 1.2: a GPU, or a processor through PoCL.
#ifndef PERMAFROST_RUNTIME_CHECK_DELEGATES_OPENCL_OPENCL_DELEGATE_H_
#define PERMAFROST_RUNTIME_CHECK_DELEGATES_OPENCL_OPENCL_DELEGATE_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "runtime_check/delegate.h"
#include "runtime_check/delegates/delegate_blobs.h"

namespace permafrost {

struct OpenClOptions {
  // Path of the ICD loader, or of a driver; empty: libOpenCL.so.1.
  std::string loader;
  // Copies inputs and outputs to the device and back, even if it computes in the memory of the host.
  bool copies_buffers = false;
  // Keeps compiled programs, and which of them were checked, for the device and its driver; null: nothing is kept.
  std::shared_ptr<DelegateBlobs> blobs = nullptr;
};

// Creates the delegate. Returns Unavailable, with the reason, if there is no driver or no device. The delegate computes
// all work on the device, and ignores numbers of threads.
absl::StatusOr<std::shared_ptr<const Delegate>> MakeOpenClDelegate(const OpenClOptions& options = {});

// Returns the path of the ICD loader, empty if it is not loaded.
std::string OpenClLibraryPath();

}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_DELEGATES_OPENCL_OPENCL_DELEGATE_H_
