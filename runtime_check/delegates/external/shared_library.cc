// Loads shared libraries and checks their versions.
#include "runtime_check/delegates/external/shared_library.h"

#include <dlfcn.h>
#include <unistd.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime_check/delegates/external/permafrost_delegate.h"
#include "third_party/deferred/deferred_library.h"

namespace permafrost {
namespace {

std::string LastError() {
  const char* text = dlerror();
  return text == nullptr ? "the loader gives no reason" : text;
}

}  // namespace

absl::StatusOr<std::shared_ptr<const SharedLibrary>> SharedLibrary::Load(const std::string& path) {
  if (path.empty()) return absl::InvalidArgumentError("the path of a shared library is empty");
  if (access(path.c_str(), F_OK) != 0) return absl::NotFoundError(absl::StrCat("'", path, "': no such file"));
  if (!deferred::CanLoadLibraries()) {
    return absl::UnimplementedError(absl::StrCat("'", path, "' cannot be loaded: ", deferred::kNoLibraries));
  }
  const std::string place = path.find('/') == std::string::npos ? absl::StrCat("./", path) : path;
  void* handle = dlopen(place.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat("'", path, "' cannot be loaded as a shared library: ", LastError()));
  }
  return std::shared_ptr<const SharedLibrary>(new SharedLibrary(path, handle));
}

SharedLibrary::~SharedLibrary() { dlclose(handle_); }

absl::StatusOr<void*> SharedLibrary::Find(const char* symbol) const {
  void* found = dlsym(handle_, symbol);
  if (found != nullptr) return found;
  return absl::InvalidArgumentError(absl::StrCat("'", path_, "' does not export '", symbol, "'"));
}

absl::Status CheckAbiVersion(int32_t major, int32_t minor) {
  if (major == PERMAFROST_ABI_MAJOR) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat("is built for version ", major, ".", minor,
                                                    " of the interface, expected ", PERMAFROST_ABI_MAJOR,
                                                    ".x; rebuild it with the header of this version"));
}

absl::Status ErrorBuffer::ToStatus(int32_t result) {
  if (result == PERMAFROST_OK) return absl::OkStatus();
  text_[sizeof(text_) - 1] = '\0';
  std::string text = text_;
  if (text.empty()) text = absl::StrCat("the library gives no reason (result ", result, ")");
  return result == PERMAFROST_NO ? absl::UnimplementedError(text) : absl::InternalError(text);
}

}  // namespace permafrost
