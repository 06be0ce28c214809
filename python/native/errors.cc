// Converts statuses to exceptions, and exceptions of callbacks to statuses and back.
#include "python/native/errors.h"

#include <pybind11/pybind11.h>

#include <string>

#include "absl/strings/cord.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "python/native/text.h"

namespace py = pybind11;

namespace permafrost::python {
namespace {

// The payload of a status that stands for an exception: the index of the kept exception.
constexpr absl::string_view kPayload = "permafrost.dev/python-exception";

// Returns the exception as in the last line of its traceback.
std::string LineOf(py::handle exception) {
  std::string line = Py_TYPE(exception.ptr())->tp_name;
  try {
    const std::string text = py::str(exception).cast<Text>().bytes;
    if (!text.empty()) absl::StrAppend(&line, ": ", text);
  } catch (const py::error_already_set&) {
    // The exception cannot be converted to text, so only its type is returned.
  }
  return line;
}

}  // namespace

absl::Status RaisedExceptions::Keep(const py::error_already_set& error) {
  const py::object exception = error.value();
  if (error.trace()) PyException_SetTraceback(exception.ptr(), error.trace().ptr());
  exceptions_.emplace_back(py::object(exception).release().ptr());
  absl::Status status = absl::AbortedError(absl::StrCat("a callback raised ", LineOf(exception)));
  status.SetPayload(kPayload, absl::Cord(absl::StrCat(exceptions_.size() - 1)));
  return status;
}

void RaisedExceptions::Rethrow(const absl::Status& status) const {
  const absl::optional<absl::Cord> payload = status.GetPayload(kPayload);
  size_t place = 0;
  if (!payload.has_value() || !absl::SimpleAtoi(std::string(*payload), &place) || place >= exceptions_.size()) return;
  PyObject* exception = exceptions_[place].get();
  PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(exception)), exception);
  throw py::error_already_set();
}

void Throw(const absl::Status& status, absl::string_view pass) {
  const py::object make = py::module_::import("permafrost.errors").attr("from_status");
  const py::object error = make(absl::StatusCodeToString(status.code()), ToPython(status.message()), ToPython(pass));
  PyErr_SetObject(py::type::of(error).ptr(), error.ptr());
  throw py::error_already_set();
}

}  // namespace permafrost::python
