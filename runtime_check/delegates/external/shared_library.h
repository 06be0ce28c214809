// A shared library of the user's.
#ifndef PERMAFROST_RUNTIME_CHECK_DELEGATES_EXTERNAL_SHARED_LIBRARY_H_
#define PERMAFROST_RUNTIME_CHECK_DELEGATES_EXTERNAL_SHARED_LIBRARY_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace permafrost {

// Stays loaded as long as the object lives. Its symbols are visible to nobody else.
class SharedLibrary {
 public:
  // NotFound when there is no such file, InvalidArgument when it cannot be loaded. A path without a folder is a file in
  // the working directory: the system's library path is not searched.
  static absl::StatusOr<std::shared_ptr<const SharedLibrary>> Load(const std::string& path);
  ~SharedLibrary();
  SharedLibrary(const SharedLibrary&) = delete;
  SharedLibrary& operator=(const SharedLibrary&) = delete;

  const std::string& path() const { return path_; }
  // InvalidArgument when the library does not export it.
  absl::StatusOr<void*> Find(const char* symbol) const;

 private:
  SharedLibrary(std::string path, void* handle) : path_(std::move(path)), handle_(handle) {}

  std::string path_;
  void* handle_;
};

// FailedPrecondition unless a library built for that version of the interface can be used.
absl::Status CheckAbiVersion(int32_t major, int32_t minor);

// A struct that a library fills in. A library of a newer minor version might write more than this one knows.
template <typename T>
union Fillable {
  Fillable() : bytes() { value.struct_size = sizeof(T); }

  char bytes[1024];
  T value;
  static_assert(sizeof(T) <= sizeof(bytes));
};

// The caller's buffer for an error text.
class ErrorBuffer {
 public:
  char* data() { return text_; }
  size_t size() const { return sizeof(text_); }
  // OK for PERMAFROST_OK, Unimplemented for PERMAFROST_NO, else Internal; with the text, which may be missing.
  absl::Status ToStatus(int32_t result);

 private:
  char text_[1024] = {};
};

}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_DELEGATES_EXTERNAL_SHARED_LIBRARY_H_
