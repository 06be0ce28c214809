// A status as a Python exception.
#ifndef PERMAFROST_PYTHON_NATIVE_ERRORS_H_
#define PERMAFROST_PYTHON_NATIVE_ERRORS_H_

#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace permafrost::python {

// Throws what permafrost.errors.from_status makes of the status and of the pass that was running, if any. A status that
// FromPythonError made throws the exception that it stands for. REQUIRES: the GIL, and a status that is not OK.
[[noreturn]] void Throw(const absl::Status& status, absl::string_view pass = "");

inline void ThrowIfError(const absl::Status& status) {
  if (!status.ok()) Throw(status);
}

template <typename T>
T ValueOrThrow(absl::StatusOr<T> value) {
  if (!value.ok()) Throw(value.status());
  return *std::move(value);
}

// Takes the exception that a callback raised, for Throw to raise again on this side of what called the callback: an
// exception does not pass through code that knows none. REQUIRES: the GIL, inside of a catch of error_already_set.
absl::Status FromPythonError();

}  // namespace permafrost::python

#endif  // PERMAFROST_PYTHON_NATIVE_ERRORS_H_
