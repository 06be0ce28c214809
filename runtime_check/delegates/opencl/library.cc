// Loads the ICD loader of OpenCL, and names its errors.
#include "runtime_check/delegates/opencl/library.h"

#include <dlfcn.h>

#include <map>
#include <memory>
#include <mutex>

#include "absl/strings/str_cat.h"
#include "third_party/deferred/deferred_library.h"

namespace permafrost {
namespace opencl {
namespace {

constexpr char kLoader[] = "libOpenCL.so.1";

absl::StatusOr<std::unique_ptr<Library>> Load(const std::string& path) {
  if (!deferred::CanLoadLibraries()) {
    return absl::UnavailableError(absl::StrCat("cannot load the OpenCL loader: ", deferred::kNoLibraries));
  }
  void* const handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    return absl::UnavailableError(
        absl::StrCat("cannot load the OpenCL loader: ", dlerror(), "; install a driver with its ICD loader"));
  }
  auto library = std::make_unique<Library>();
#define FIND(name)                                                                                     \
  library->name = reinterpret_cast<decltype(library->name)>(dlsym(handle, "cl" #name));                \
  if (library->name == nullptr) {                                                                      \
    return absl::UnavailableError(                                                                     \
        absl::StrCat(path, ": found no function cl" #name ", expected those of OpenCL 1.2 or later")); \
  }
  PERMAFROST_OPENCL_FUNCTIONS(FIND)
#undef FIND
  return library;
}

struct LoadedLibraries {
  std::mutex mutex;
  std::map<std::string, std::unique_ptr<Library>> by_name;
};

LoadedLibraries& Loaded() {
  static auto* const loaded = new LoadedLibraries();
  return *loaded;
}

const char* NameOf(cl_int code) {
  switch (code) {
#define NAME(constant) \
  case constant:       \
    return #constant;
    NAME(CL_DEVICE_NOT_FOUND)
    NAME(CL_DEVICE_NOT_AVAILABLE)
    NAME(CL_COMPILER_NOT_AVAILABLE)
    NAME(CL_MEM_OBJECT_ALLOCATION_FAILURE)
    NAME(CL_OUT_OF_RESOURCES)
    NAME(CL_OUT_OF_HOST_MEMORY)
    NAME(CL_BUILD_PROGRAM_FAILURE)
    NAME(CL_MAP_FAILURE)
    NAME(CL_INVALID_VALUE)
    NAME(CL_INVALID_DEVICE)
    NAME(CL_INVALID_CONTEXT)
    NAME(CL_INVALID_COMMAND_QUEUE)
    NAME(CL_INVALID_HOST_PTR)
    NAME(CL_INVALID_MEM_OBJECT)
    NAME(CL_INVALID_BINARY)
    NAME(CL_INVALID_BUILD_OPTIONS)
    NAME(CL_INVALID_PROGRAM)
    NAME(CL_INVALID_PROGRAM_EXECUTABLE)
    NAME(CL_INVALID_KERNEL_NAME)
    NAME(CL_INVALID_KERNEL_ARGS)
    NAME(CL_INVALID_WORK_GROUP_SIZE)
    NAME(CL_INVALID_BUFFER_SIZE)
    NAME(CL_INVALID_OPERATION)
#undef NAME
    case -1001:  // CL_PLATFORM_NOT_FOUND_KHR of cl_khr_icd.
      return "no driver is installed";
    default:
      return "an error";
  }
}

}  // namespace

absl::StatusOr<const Library*> LoadLibrary(const std::string& path) {
  const std::string name = path.empty() ? kLoader : path;
  LoadedLibraries& loaded = Loaded();
  const std::lock_guard<std::mutex> lock(loaded.mutex);
  std::unique_ptr<Library>& library = loaded.by_name[name];
  if (library == nullptr) {
    absl::StatusOr<std::unique_ptr<Library>> made = Load(name);
    if (!made.ok()) return made.status();
    library = *std::move(made);
  }
  return library.get();
}

std::string LoadedLibraryPath() {
  LoadedLibraries& loaded = Loaded();
  const std::lock_guard<std::mutex> lock(loaded.mutex);
  const auto found = loaded.by_name.find(kLoader);
  Dl_info info;
  if (found == loaded.by_name.end() || found->second == nullptr ||
      dladdr(reinterpret_cast<void*>(found->second->GetPlatformIDs), &info) == 0) {
    return "";
  }
  return info.dli_fname;
}

absl::Status ToStatus(cl_int code, absl::string_view call) {
  if (code == CL_SUCCESS) return absl::OkStatus();
  const std::string message = absl::StrCat("OpenCL, cl", call, ": ", NameOf(code), " (", code, ")");
  switch (code) {
    case CL_MEM_OBJECT_ALLOCATION_FAILURE:
    case CL_OUT_OF_RESOURCES:
    case CL_OUT_OF_HOST_MEMORY:
    case CL_INVALID_BUFFER_SIZE:
      return absl::ResourceExhaustedError(message);
    case CL_DEVICE_NOT_FOUND:
    case CL_DEVICE_NOT_AVAILABLE:
    case -1001:
      return absl::UnavailableError(message);
    default:
      return absl::InternalError(message);
  }
}

}  // namespace opencl
}  // namespace permafrost
