// The functions of OpenCL that the delegate calls, loaded from the ICD loader at run time. The build needs only
// headers.
#ifndef PERMAFROST_RUNTIME_CHECK_DELEGATES_OPENCL_LIBRARY_H_
#define PERMAFROST_RUNTIME_CHECK_DELEGATES_OPENCL_LIBRARY_H_

#ifndef CL_TARGET_OPENCL_VERSION
#define CL_TARGET_OPENCL_VERSION 120
#endif
#include <CL/cl.h>

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace permafrost {
namespace opencl {

#define PERMAFROST_OPENCL_FUNCTIONS(F) \
  F(GetPlatformIDs)                    \
  F(GetPlatformInfo)                   \
  F(GetDeviceIDs)                      \
  F(GetDeviceInfo)                     \
  F(CreateContext)                     \
  F(ReleaseContext)                    \
  F(CreateCommandQueue)                \
  F(ReleaseCommandQueue)               \
  F(CreateBuffer)                      \
  F(ReleaseMemObject)                  \
  F(CreateProgramWithSource)           \
  F(CreateProgramWithBinary)           \
  F(BuildProgram)                      \
  F(GetProgramInfo)                    \
  F(GetProgramBuildInfo)               \
  F(ReleaseProgram)                    \
  F(CreateKernel)                      \
  F(ReleaseKernel)                     \
  F(SetKernelArg)                      \
  F(GetKernelWorkGroupInfo)            \
  F(EnqueueNDRangeKernel)              \
  F(EnqueueReadBuffer)                 \
  F(EnqueueWriteBuffer)                \
  F(EnqueueMapBuffer)                  \
  F(EnqueueUnmapMemObject)             \
  F(Finish)                            \
  F(GetEventProfilingInfo)             \
  F(ReleaseEvent)

// The functions, with the names of OpenCL without "cl". Immutable.
struct Library {
#define DECLARE(name) decltype(&::cl##name) name = nullptr;
  PERMAFROST_OPENCL_FUNCTIONS(DECLARE)
#undef DECLARE
};

// Loads a library, libOpenCL.so.1 if `path` is empty. It is never unloaded, because drivers start threads. The result
// lives as long as the process. Returns Unavailable, with the loader's message, if it cannot be loaded or lacks a
// function. Thread-safe.
absl::StatusOr<const Library*> LoadLibrary(const std::string& path);

// Returns the path of libOpenCL.so.1, empty if it is not loaded. Thread-safe.
std::string LoadedLibraryPath();

// Converts an error code. An error message names `call`, and the constant of OpenCL. Lack of memory is
// ResourceExhausted, a lost device Unavailable, and any other error Internal.
absl::Status ToStatus(cl_int code, absl::string_view call);

// Owns an object of OpenCL.
template <typename T>
class Owned {
 public:
  using Release = cl_int(CL_API_CALL*)(T);

  Owned() = default;
  Owned(T object, Release release) : object_(object), release_(release) {}
  Owned(Owned&& other) noexcept : object_(other.object_), release_(other.release_) { other.object_ = nullptr; }
  Owned& operator=(Owned&& other) noexcept {
    if (this == &other) return *this;
    Reset();
    object_ = other.object_;
    release_ = other.release_;
    other.object_ = nullptr;
    return *this;
  }
  ~Owned() { Reset(); }

  T get() const { return object_; }

 private:
  void Reset() {
    if (object_ != nullptr) release_(object_);
    object_ = nullptr;
  }

  T object_ = nullptr;
  Release release_ = nullptr;
};

}  // namespace opencl
}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_DELEGATES_OPENCL_LIBRARY_H_
