// Reports errors to callers of the C interface.
#ifndef PERMAFROST_EMBEDDING_CALLER_ERROR_H_
#define PERMAFROST_EMBEDDING_CALLER_ERROR_H_

#include <cstddef>
#include <cstring>
#include <exception>
#include <new>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "embedding/permafrost_runtime.h"

namespace permafrost {

// The caller's error buffer; `text` may be null.
struct CallerError {
  char* text;
  size_t size;
};

// Copies as much of `text` as fits, as one line, with a terminating '\0'.
void CopyLine(absl::string_view text, char* to, size_t size);

// Returns the number of the status and writes its message to the buffer.
pf_status Tell(const absl::Status& status, CallerError error);

// Calls body(), which returns an absl::Status, and reports the result. Catches all exceptions.
template <typename Body>
pf_status Guarded(CallerError error, Body&& body) {
#if defined(__cpp_exceptions)
  try {
    return Tell(body(), error);
  } catch (const std::bad_alloc&) {
    return Tell(absl::ResourceExhaustedError("there is not enough memory"), error);
  } catch (const std::exception& exception) {
    return Tell(absl::InternalError(exception.what()), error);
  }
#else
  return Tell(body(), error);
#endif
}

// Returns InvalidArgument, naming the argument, if `pointer` is null.
absl::Status CheckGiven(const void* pointer, absl::string_view name);

// Larger than any version of the options; a larger struct_size is invalid.
inline constexpr size_t kMostOptionBytes = 4096;

// Copies *options to *read. Members beyond the caller's struct_size become zero, as do all members if `options` is
// null. Returns InvalidArgument for a struct_size that no version has, Unimplemented if a member of a later version is
// not zero.
template <typename Options>
absl::Status ReadOptions(const Options* options, Options* read) {
  std::memset(read, 0, sizeof(*read));
  if (options == nullptr) return absl::OkStatus();
  const size_t size = options->struct_size;
  if (size < sizeof(size_t)) return absl::InvalidArgumentError("options: struct_size is not set");
  if (size > kMostOptionBytes)
    return absl::InvalidArgumentError("options: struct_size is larger than that of any version");
  // A size that ends within a member would leave a part of a pointer.
  if (size % alignof(Options) != 0)
    return absl::InvalidArgumentError("options: struct_size is not the size of any version");
  for (size_t i = sizeof(*read); i < size; ++i) {
    if (reinterpret_cast<const char*>(options)[i] == 0) continue;
    return absl::UnimplementedError("options: found a member set that this version of the library does not support");
  }
  std::memcpy(read, options, size < sizeof(*read) ? size : sizeof(*read));
  return absl::OkStatus();
}

// Copies `from` to a struct of the caller, up to its struct_size.
template <typename Struct>
absl::Status WriteStruct(const Struct& from, Struct* to) {
  const size_t size = to->struct_size;
  if (size < sizeof(size_t)) return absl::InvalidArgumentError("struct_size is not set");
  std::memcpy(to, &from, size < sizeof(from) ? size : sizeof(from));
  to->struct_size = size;
  return absl::OkStatus();
}

}  // namespace permafrost

#endif  // PERMAFROST_EMBEDDING_CALLER_ERROR_H_
