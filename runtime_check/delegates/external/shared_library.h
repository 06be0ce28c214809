// Loading of shared libraries that users provide.
#ifndef PERMAFROST_RUNTIME_CHECK_DELEGATES_EXTERNAL_SHARED_LIBRARY_H_
#define PERMAFROST_RUNTIME_CHECK_DELEGATES_EXTERNAL_SHARED_LIBRARY_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace permafrost {

// A loaded shared library. It stays loaded during the lifetime of the object. Other libraries do not see its symbols.
class SharedLibrary {
 public:
  // Loads a library. Returns NotFound if the file does not exist, InvalidArgument if it cannot be loaded. A path
  // without a folder is a file in the working directory: the library search path of the system is not used.
  static absl::StatusOr<std::shared_ptr<const SharedLibrary>> Load(const std::string& path);
  ~SharedLibrary();
  SharedLibrary(const SharedLibrary&) = delete;
  SharedLibrary& operator=(const SharedLibrary&) = delete;

  const std::string& path() const { return path_; }
  // Returns the address of a symbol; InvalidArgument if the library does not export it.
  absl::StatusOr<void*> Find(const char* symbol) const;

 private:
  SharedLibrary(std::string path, void* handle) : path_(std::move(path)), handle_(handle) {}

  std::string path_;
  void* handle_;
};

// Returns FailedPrecondition unless a library built for that version of the interface is compatible.
absl::Status CheckAbiVersion(int32_t major, int32_t minor);

// A struct that a library fills in, with spare room: a library of a newer minor version may write a larger struct.
template <typename T>
union Fillable {
  Fillable() : bytes() { value.struct_size = sizeof(T); }

  char bytes[1024];
  T value;
  static_assert(sizeof(T) <= sizeof(bytes));
};

// A buffer in which a library writes its error message.
class ErrorBuffer {
 public:
  char* data() { return text_; }
  size_t size() const { return sizeof(text_); }
  // Converts a result of the library, with its message if there is one: OK for PERMAFROST_OK, Unimplemented for
  // PERMAFROST_NO, else Internal.
  absl::Status ToStatus(int32_t result);

 private:
  char text_[1024] = {};
};

}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_DELEGATES_EXTERNAL_SHARED_LIBRARY_H_
