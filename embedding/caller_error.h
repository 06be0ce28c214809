// How what went wrong gets to a caller that speaks C.
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

// The buffer of a caller; may be null.
struct CallerError {
  char* text;
  size_t size;
};

// Writes as much of `text` as fits, in one line, with '\0' at its end.
void CopyLine(absl::string_view text, char* to, size_t size);

// The number of the status, whose message goes into the buffer.
pf_status Tell(const absl::Status& status, CallerError error);

// Tells what body(), which returns an absl::Status, returns. Nothing that is thrown gets out.
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

// InvalidArgument, naming the argument, when it is null.
absl::Status CheckGiven(const void* pointer, absl::string_view name);

// More than options will ever have: beyond it struct_size is some other number.
inline constexpr size_t kMostOptionBytes = 4096;

// *options as a struct that has all members: those that the caller's does not have are zero. A null `options` gives
// zeros. InvalidArgument for a struct_size that no version has, Unimplemented for a member of a later version that is
// set.
template <typename Options>
absl::Status ReadOptions(const Options* options, Options* read) {
  std::memset(read, 0, sizeof(*read));
  if (options == nullptr) return absl::OkStatus();
  const size_t size = options->struct_size;
  if (size < sizeof(size_t)) return absl::InvalidArgumentError("options: struct_size is not set");
  if (size > kMostOptionBytes) return absl::InvalidArgumentError("options: struct_size is of no version");
  for (size_t i = sizeof(*read); i < size; ++i) {
    if (reinterpret_cast<const char*>(options)[i] == 0) continue;
    return absl::UnimplementedError("options: found a member set that this version of the library does not have");
  }
  std::memcpy(read, options, size < sizeof(*read) ? size : sizeof(*read));
  return absl::OkStatus();
}

// The other way, for a struct that the caller gave.
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
