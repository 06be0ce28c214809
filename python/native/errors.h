// Conversion of statuses to Python exceptions.
#ifndef PERMAFROST_PYTHON_NATIVE_ERRORS_H_
#define PERMAFROST_PYTHON_NATIVE_ERRORS_H_

#include <pybind11/pybind11.h>

#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "python/native/interruptible.h"

namespace permafrost::python {

// Throws the exception that permafrost.errors.from_status makes of the status and of the pass that was running, if any.
// REQUIRES: the GIL, and a status that is not OK.
[[noreturn]] void Throw(const absl::Status& status, absl::string_view pass = "");

// Throws the exception for `status` unless it is OK. REQUIRES: the GIL.
inline void ThrowIfError(const absl::Status& status) {
  if (!status.ok()) Throw(status);
}

template <typename T>
T ValueOrThrow(absl::StatusOr<T> value) {
  if (!value.ok()) Throw(value.status());
  return *std::move(value);
}

// Exceptions raised by Python callbacks during one piece of work, kept so that its caller can raise them again. Code in
// between passes statuses, not exceptions. The object may be destroyed on any thread; until then every exception is
// kept.
class RaisedExceptions {
 public:
  // Returns a status that stands for the exception. REQUIRES: the GIL.
  absl::Status Keep(const pybind11::error_already_set& error);
  // Throws the exception that the status stands for, if it stands for one. REQUIRES: the GIL.
  void Rethrow(const absl::Status& status) const;

 private:
  std::vector<Kept> exceptions_;
};

}  // namespace permafrost::python

#endif  // PERMAFROST_PYTHON_NATIVE_ERRORS_H_
