// Conversion of text between Python and the graph. Names in a graph are bytes, which need not be UTF-8: other bytes
// become surrogate escapes, as in Python's file names, and are converted back to the original bytes.
#ifndef PERMAFROST_PYTHON_NATIVE_TEXT_H_
#define PERMAFROST_PYTHON_NATIVE_TEXT_H_

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace permafrost::python {

inline pybind11::str ToPython(absl::string_view text) {
  PyObject* decoded = PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "surrogateescape");
  if (decoded == nullptr) throw pybind11::error_already_set();
  return pybind11::reinterpret_steal<pybind11::str>(decoded);
}

inline pybind11::list ToPython(absl::Span<const std::string> texts) {
  pybind11::list list;
  for (const std::string& text : texts) list.append(ToPython(text));
  return list;
}

// An argument: a str or bytes.
struct Text {
  std::string bytes;
};

inline std::vector<std::string> Bytes(std::vector<Text> texts) {
  std::vector<std::string> bytes;
  for (Text& text : texts) bytes.push_back(std::move(text.bytes));
  return bytes;
}

}  // namespace permafrost::python

namespace pybind11::detail {

template <>
struct type_caster<permafrost::python::Text> {
  PYBIND11_TYPE_CASTER(permafrost::python::Text, const_name("str"));

  bool load(handle source, bool) {
    object encoded = reinterpret_borrow<object>(source);
    if (PyUnicode_Check(source.ptr())) {
      encoded = reinterpret_steal<object>(PyUnicode_AsEncodedString(source.ptr(), "utf-8", "surrogateescape"));
      if (!encoded) throw error_already_set();
    }
    if (!encoded || !PyBytes_Check(encoded.ptr())) return false;
    value.bytes.assign(PyBytes_AS_STRING(encoded.ptr()), static_cast<size_t>(PyBytes_GET_SIZE(encoded.ptr())));
    return true;
  }

  static handle cast(const permafrost::python::Text& text, return_value_policy, handle) {
    return permafrost::python::ToPython(text.bytes).release();
  }
};

}  // namespace pybind11::detail

#endif  // PERMAFROST_PYTHON_NATIVE_TEXT_H_
