// Conversion of attribute values to Python objects and back.
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "python/native/errors.h"
#include "python/native/model.h"
#include "python/native/tensors.h"
#include "python/native/text.h"

namespace py = pybind11;

namespace permafrost::python {
namespace {

py::object TypeToPython(DType dtype) {
  return py::module_::import("permafrost.values").attr("DType")(DTypeName(dtype));
}

py::object ShapeToPython(const Shape& shape) {
  return py::module_::import("permafrost.values").attr("Shape")(ToPython(shape));
}

py::object TensorToPython(const Tensor& tensor) {
  return py::module_::import("permafrost.values").attr("array_of")(ToPython(tensor));
}

py::object FunctionToPython(const FunctionRef& function) {
  py::dict attributes;
  for (const auto& [key, value] : function.attrs) attributes[ToPython(key)] = ToPython(value);
  return py::module_::import("permafrost.values").attr("Function")(ToPython(function.name), attributes);
}

template <typename T, typename F>
bool AddAll(const absl::StatusOr<std::vector<T>>& values, py::list* list, F to_python) {
  if (!values.ok() || values->empty()) return false;
  for (const T& value : *values) list->append(to_python(value));
  return true;
}

// The kind of a list is that of its non-empty member; the kind of an empty list is unknown.
py::object ListToPython(const AttrValue& value) {
  py::list list;
  AddAll(value.AsIntList(), &list, [](int64_t element) { return py::int_(element); }) ||
      AddAll(value.AsStringList(), &list, [](const std::string& element) { return py::bytes(element); }) ||
      AddAll(value.AsFloatList(), &list, [](float element) { return py::float_(element); }) ||
      AddAll(value.AsTypeList(), &list, &TypeToPython) || AddAll(value.AsShapeList(), &list, &ShapeToPython) ||
      AddAll(value.AsFunctionList(), &list, &FunctionToPython);
  if (list.empty()) {
    const absl::StatusOr<std::vector<bool>> bools = value.AsBoolList();
    if (bools.ok()) {
      for (const bool element : *bools) list.append(py::bool_(element));
    }
  }
  return list;
}

bool IsInstance(py::handle object, const char* type) {
  return py::isinstance(object, py::module_::import("permafrost.values").attr(type));
}

absl::Status NoAttribute(py::handle object) {
  return absl::InvalidArgumentError(absl::StrCat(
      "found a value of type ", Py_TYPE(object.ptr())->tp_name,
      ", expected a bool, int, float, str, bytes, DType, Shape, an array, or a list of one kind of these"));
}

absl::StatusOr<int64_t> IntFromPython(py::handle object) {
  const int64_t value = PyLong_AsLongLong(object.ptr());
  if (PyErr_Occurred() == nullptr) return value;
  PyErr_Clear();
  return absl::InvalidArgumentError("found an integer of more than 64 bits");
}

absl::StatusOr<AttrValue> ListFromPython(const py::list& list) {
  if (list.empty()) return AttrValue::IntList({});
  const py::object first = list[0];
  std::vector<int64_t> integers;
  std::vector<float> floats;
  std::vector<std::string> strings;
  std::vector<DType> types;
  std::vector<Shape> shapes;
  for (const py::handle element : list) {
    if (IsInstance(first, "DType")) {
      if (!IsInstance(element, "DType")) return NoAttribute(element);
      PF_ASSIGN_OR_RETURN(types.emplace_back(), ParseDType(element.cast<Text>().bytes));
    } else if (IsInstance(first, "Shape")) {
      if (!IsInstance(element, "Shape")) return NoAttribute(element);
      PF_ASSIGN_OR_RETURN(shapes.emplace_back(), ShapeFromPython(element.attr("dims")));
    } else if (PyUnicode_Check(first.ptr()) || PyBytes_Check(first.ptr())) {
      if (!PyUnicode_Check(element.ptr()) && !PyBytes_Check(element.ptr())) return NoAttribute(element);
      strings.push_back(element.cast<Text>().bytes);
    } else if (PyLong_Check(first.ptr()) && !PyBool_Check(first.ptr())) {
      if (!PyLong_Check(element.ptr())) return NoAttribute(element);
      PF_ASSIGN_OR_RETURN(integers.emplace_back(), IntFromPython(element));
    } else {
      if (!PyFloat_Check(element.ptr())) return NoAttribute(element);
      floats.push_back(static_cast<float>(PyFloat_AS_DOUBLE(element.ptr())));
    }
  }
  if (!types.empty()) return AttrValue::TypeList(types);
  if (!shapes.empty()) return AttrValue::ShapeList(shapes);
  if (!strings.empty()) return AttrValue::StringList(strings);
  if (!integers.empty()) return AttrValue::IntList(integers);
  return AttrValue::FloatList(floats);
}

}  // namespace

py::object ToPython(const AttrValue& value) {
  switch (value.kind()) {
    case AttrValue::Kind::kString:
      return py::bytes(std::string(ValueOrThrow(value.AsString())));
    case AttrValue::Kind::kInt:
      return py::int_(ValueOrThrow(value.AsInt()));
    case AttrValue::Kind::kFloat:
      return py::float_(ValueOrThrow(value.AsFloat()));
    case AttrValue::Kind::kBool:
      return py::bool_(ValueOrThrow(value.AsBool()));
    case AttrValue::Kind::kType:
      return TypeToPython(ValueOrThrow(value.AsType()));
    case AttrValue::Kind::kShape:
      return ShapeToPython(ValueOrThrow(value.AsShape()));
    case AttrValue::Kind::kTensor:
      return TensorToPython(ValueOrThrow(value.AsTensor()));
    case AttrValue::Kind::kList:
      return ListToPython(value);
    case AttrValue::Kind::kFunction:
      return FunctionToPython(ValueOrThrow(value.AsFunction()));
    case AttrValue::Kind::kPlaceholder:
      return py::module_::import("permafrost.values")
          .attr("Placeholder")(ToPython(ValueOrThrow(value.AsPlaceholder())));
    case AttrValue::Kind::kNone:
      break;
  }
  return py::none();
}

absl::StatusOr<AttrValue> AttrFromPython(py::handle object) {
  if (IsInstance(object, "DType")) {
    PF_ASSIGN_OR_RETURN(const DType dtype, ParseDType(object.cast<Text>().bytes));
    return AttrValue::Type(dtype);
  }
  if (IsInstance(object, "Shape")) {
    PF_ASSIGN_OR_RETURN(const Shape shape, ShapeFromPython(object.attr("dims")));
    return AttrValue::OfShape(shape);
  }
  if (PyBool_Check(object.ptr())) return AttrValue::Bool(object.ptr() == Py_True);
  if (PyLong_Check(object.ptr())) {
    PF_ASSIGN_OR_RETURN(const int64_t value, IntFromPython(object));
    return AttrValue::Int(value);
  }
  if (PyFloat_Check(object.ptr())) return AttrValue::Float(static_cast<float>(PyFloat_AS_DOUBLE(object.ptr())));
  if (PyUnicode_Check(object.ptr()) || PyBytes_Check(object.ptr())) {
    return AttrValue::String(object.cast<Text>().bytes);
  }
  if (PyList_Check(object.ptr())) return ListFromPython(py::reinterpret_borrow<py::list>(object));
  if (PyObject_CheckBuffer(object.ptr()) != 0) {
    PF_ASSIGN_OR_RETURN(const Tensor tensor, TensorFromBuffer(object));
    return AttrValue::OfTensor(tensor);
  }
  return NoAttribute(object);
}

}  // namespace permafrost::python
