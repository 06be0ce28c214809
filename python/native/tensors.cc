// Views of tensors as buffers and of buffers as tensors.
#include "python/native/tensors.h"

#include <complex>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "graph/base/status.h"
#include "python/native/errors.h"
#include "python/native/interruptible.h"
#include "python/native/text.h"

namespace py = pybind11;

namespace permafrost::python {
namespace {

// The format string of an element, as in the struct module: https://docs.python.org/3/library/struct.html, with numpy's
// Z for complex. The first row of a format is the type that it stands for; the rows below are types that the protocol
// does not have.
struct Format {
  absl::string_view text;
  DType dtype;
};

constexpr Format kFormats[] = {
    {"f", DType::kFloat},  {"d", DType::kDouble},   {"i", DType::kInt32},      {"B", DType::kUint8},
    {"h", DType::kInt16},  {"b", DType::kInt8},     {"l", DType::kInt64},      {"q", DType::kInt64},
    {"?", DType::kBool},   {"H", DType::kUint16},   {"I", DType::kUint32},     {"L", DType::kUint64},
    {"Q", DType::kUint64}, {"e", DType::kHalf},     {"Zf", DType::kComplex64}, {"Zd", DType::kComplex128},
    {"b", DType::kQInt8},  {"B", DType::kQUint8},   {"h", DType::kQInt16},     {"H", DType::kQUint16},
    {"i", DType::kQInt32}, {"H", DType::kBFloat16},
};

// Returns the format; empty for types without elements of a fixed size.
absl::string_view FormatOf(DType dtype) {
  for (const Format& format : kFormats) {
    if (format.dtype == dtype) return format.text;
  }
  return "";
}

// Returns the type of an array that shows these elements.
DType Carrier(DType dtype) {
  const absl::string_view text = FormatOf(dtype);
  for (const Format& format : kFormats) {
    if (format.text == text) return format.dtype;
  }
  return dtype;
}

// Returns the type of the elements; kInvalid for a format without a type.
DType TypeOf(const Py_buffer& buffer) {
  absl::string_view text = buffer.format == nullptr ? "B" : buffer.format;
  if (text.size() > 1 && absl::StrContains("@=<", text[0])) text.remove_prefix(1);
  for (const Format& format : kFormats) {
    // "l" has four bytes in the standard sizes that "<" and "=" select.
    if (text == format.text && SizeOf(format.dtype) == static_cast<size_t>(buffer.itemsize)) return format.dtype;
    if (text == "l" && format.dtype == DType::kInt32 && buffer.itemsize == 4) return DType::kInt32;
  }
  return DType::kInvalid;
}

std::string FormatName(const Py_buffer& buffer) {
  const DType dtype = TypeOf(buffer);
  if (dtype != DType::kInvalid) return DTypeName(dtype);
  return absl::StrCat("elements of format '", buffer.format == nullptr ? "" : buffer.format, "'");
}

std::string DimsText(const Py_buffer& buffer) {
  return absl::StrCat("[", absl::StrJoin(absl::MakeConstSpan(buffer.shape, buffer.ndim), ","), "]");
}

std::string TypeName(py::handle object) { return Py_TYPE(object.ptr())->tp_name; }

// An exported buffer, shared by its holders. The last holder may be destroyed on any thread, so the memory view that
// exports the buffer is Kept.
struct Exported {
  Kept view;
  const Py_buffer* buffer = nullptr;
};

absl::StatusOr<Exported> Export(py::handle object) {
  if (PyObject_CheckBuffer(object.ptr()) == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("found an object of type ", TypeName(object), ", expected an array"));
  }
  PyObject* view = PyMemoryView_FromObject(object.ptr());
  if (view == nullptr) {
    // Types without a format, such as dates.
    py::error_already_set error;
    return absl::InvalidArgumentError(absl::StrCat("found an array that has no buffer: ", error.what()));
  }
  Exported exported;
  exported.buffer = PyMemoryView_GET_BUFFER(view);
  exported.view = Kept(view);
  return exported;
}

Owner OwnerOf(const Exported& exported) { return std::make_shared<Kept>(exported.view); }

absl::Status CheckContiguous(const Py_buffer& buffer) {
  if (PyBuffer_IsContiguous(&buffer, 'C') != 0) return absl::OkStatus();
  return absl::InvalidArgumentError(
      "found an array that is not contiguous, expected one in C order (numpy.ascontiguousarray makes one)");
}

absl::StatusOr<Tensor> View(const Exported& exported, DType dtype) {
  PF_RETURN_IF_ERROR(CheckContiguous(*exported.buffer));
  const Py_buffer& buffer = *exported.buffer;
  Shape shape;
  for (int i = 0; i < buffer.ndim; ++i) shape.AddDim(buffer.shape[i]);
  return Tensor::FromBytes(dtype, std::move(shape),
                           absl::string_view(static_cast<const char*>(buffer.buf), static_cast<size_t>(buffer.len)),
                           OwnerOf(exported));
}

absl::Status WrongType(const Py_buffer& buffer, DType expected) {
  return absl::InvalidArgumentError(absl::StrCat("found an array of ", FormatName(buffer), " ", DimsText(buffer),
                                                 ", expected ", DTypeName(expected)));
}

py::buffer_info InfoOf(TensorBuffer& buffer) {
  const Tensor& tensor = buffer.tensor;
  const auto size = static_cast<py::ssize_t>(SizeOf(tensor.dtype()));
  std::vector<py::ssize_t> dims(tensor.shape().dims().begin(), tensor.shape().dims().end());
  std::vector<py::ssize_t> strides(dims.size());
  py::ssize_t stride = size;
  for (size_t i = dims.size(); i-- > 0;) {
    strides[i] = stride;
    stride *= dims[i];
  }
  const auto rank = static_cast<py::ssize_t>(dims.size());
  // The const_cast is safe: the buffer is read-only.
  return py::buffer_info(const_cast<char*>(tensor.bytes().data()), size, std::string(FormatOf(tensor.dtype())), rank,
                         std::move(dims), std::move(strides), /*readonly=*/true);
}

}  // namespace

py::object ToPython(const Tensor& tensor) {
  if (tensor.dtype() == DType::kString) {
    py::list list;
    for (const std::string& text : tensor.strings()) list.append(py::bytes(text));
    return py::make_tuple(ToPython(tensor.shape()), list);
  }
  if (FormatOf(tensor.dtype()).empty()) {
    Throw(absl::UnimplementedError(absl::StrCat("a tensor of ", DTypeName(tensor.dtype()), " has no array")));
  }
  return py::cast(TensorBuffer{tensor});
}

py::object ToPython(const Shape& shape) {
  if (!shape.has_rank()) return py::none();
  py::tuple dims(static_cast<size_t>(shape.rank()));
  for (int i = 0; i < shape.rank(); ++i) {
    dims[static_cast<size_t>(i)] =
        shape.dim(i) == kUnknownDim ? py::object(py::none()) : py::object(py::int_(shape.dim(i)));
  }
  return dims;
}

absl::StatusOr<Shape> ShapeFromPython(py::handle object) {
  if (object.is_none()) return Shape::UnknownRank();
  Shape shape;
  for (const py::handle dim : object) {
    if (dim.is_none()) {
      shape.AddDim(kUnknownDim);
      continue;
    }
    const int64_t value = PyLong_Check(dim.ptr()) ? PyLong_AsLongLong(dim.ptr()) : -1;
    if (PyErr_Occurred() != nullptr) PyErr_Clear();
    if (value < 0) {
      return absl::InvalidArgumentError(absl::StrCat("found a dimension ", std::string(py::repr(dim)),
                                                     ", expected None or an integer of at least 0"));
    }
    shape.AddDim(value);
  }
  return shape;
}

absl::StatusOr<Tensor> TensorFromBuffer(py::handle object, DType dtype) {
  PF_ASSIGN_OR_RETURN(const Exported exported, Export(object));
  if (TypeOf(*exported.buffer) != Carrier(dtype)) return WrongType(*exported.buffer, dtype);
  return View(exported, dtype);
}

absl::StatusOr<Tensor> TensorFromBuffer(py::handle object) {
  PF_ASSIGN_OR_RETURN(const Exported exported, Export(object));
  const DType dtype = TypeOf(*exported.buffer);
  if (dtype == DType::kInvalid) {
    return absl::InvalidArgumentError(absl::StrCat("found an array of ", FormatName(*exported.buffer),
                                                   ", expected numbers of a type that graphs have"));
  }
  return View(exported, dtype);
}

absl::StatusOr<Tensor> TensorFromStrings(py::handle shape, py::handle strings) {
  PF_ASSIGN_OR_RETURN(Shape dims, ShapeFromPython(shape));
  std::vector<std::string> values;
  for (const py::handle text : strings) values.push_back(text.cast<Text>().bytes);
  PF_ASSIGN_OR_RETURN(const int64_t expected, dims.CheckedNumElements());
  if (expected != static_cast<int64_t>(values.size())) {
    return absl::InvalidArgumentError(
        absl::StrCat("found ", values.size(), " strings, expected ", expected, " of shape ", dims.ToString()));
  }
  return Tensor::FromStrings(std::move(dims), std::move(values));
}

absl::StatusOr<WritableMemory> OutputMemory(py::handle object, DType dtype, const Shape& shape) {
  PF_ASSIGN_OR_RETURN(const Exported exported, Export(object));
  const Py_buffer& buffer = *exported.buffer;
  if (TypeOf(buffer) != Carrier(dtype)) return WrongType(buffer, dtype);
  const absl::Span<const int64_t> dims = shape.dims();
  const bool fits =
      shape.IsFullyKnown() && buffer.ndim == shape.rank() && std::equal(dims.begin(), dims.end(), buffer.shape);
  if (!fits) {
    return absl::InvalidArgumentError(absl::StrCat("found an array of shape ", DimsText(buffer), ", expected ",
                                                   shape.ToString(),
                                                   shape.IsFullyKnown() ? "" : ", which the run tells"));
  }
  if (buffer.readonly != 0)
    return absl::InvalidArgumentError("found an array that is read only, expected a writable one");
  PF_RETURN_IF_ERROR(CheckContiguous(buffer));
  return WritableMemory{absl::MakeSpan(static_cast<char*>(buffer.buf), static_cast<size_t>(buffer.len)),
                        OwnerOf(exported)};
}

void BindTensors(py::module_& m) {
  py::class_<TensorBuffer>(m, "TensorBuffer", py::buffer_protocol())
      .def_buffer(&InfoOf)
      .def_property_readonly("dtype", [](const TensorBuffer& buffer) { return DTypeName(buffer.tensor.dtype()); })
      .def_property_readonly("shape", [](const TensorBuffer& buffer) { return ToPython(buffer.tensor.shape()); });
}

}  // namespace permafrost::python
