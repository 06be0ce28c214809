// Turns statuses into exceptions, and exceptions of callbacks into statuses and back.
#include "python/native/errors.h"

#include <pybind11/pybind11.h>

#include <exception>
#include <map>
#include <string>

#include "absl/strings/cord.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "python/native/text.h"

namespace py = pybind11;

namespace permafrost::python {
namespace {

// The payload of a status that stands for an exception: its number among the exceptions that wait.
constexpr absl::string_view kPayload = "permafrost.dev/python-exception";

// Those whose status is dropped (ignore_errors) are never asked for: only the last few are kept.
constexpr size_t kMostWaiting = 64;

// Read and written with the GIL held.
std::map<int64_t, std::exception_ptr>& Waiting() {
  static auto* waiting = new std::map<int64_t, std::exception_ptr>();
  return *waiting;
}

}  // namespace

absl::Status FromPythonError() {
  static int64_t last = 0;
  Waiting()[++last] = std::current_exception();
  if (Waiting().size() > kMostWaiting) Waiting().erase(Waiting().begin());
  absl::Status status = absl::AbortedError("a callback raised an exception");
  status.SetPayload(kPayload, absl::Cord(absl::StrCat(last)));
  return status;
}

void Throw(const absl::Status& status, absl::string_view pass) {
  int64_t number = 0;
  const absl::optional<absl::Cord> payload = status.GetPayload(kPayload);
  if (payload.has_value() && absl::SimpleAtoi(std::string(*payload), &number)) {
    const auto found = Waiting().find(number);
    if (found != Waiting().end()) {
      const std::exception_ptr exception = found->second;
      Waiting().erase(found);
      std::rethrow_exception(exception);
    }
  }
  const py::object make = py::module_::import("permafrost.errors").attr("from_status");
  const py::object error = make(absl::StatusCodeToString(status.code()), ToPython(status.message()), ToPython(pass));
  PyErr_SetObject(py::type::of(error).ptr(), error.ptr());
  throw py::error_already_set();
}

}  // namespace permafrost::python
