// Tensors and arrays: the buffer protocol in both directions, without copies and without numpy.
#ifndef PERMAFROST_PYTHON_NATIVE_TENSORS_H_
#define PERMAFROST_PYTHON_NATIVE_TENSORS_H_

#include <pybind11/pybind11.h>

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "graph/shape.h"
#include "graph/tensor.h"

namespace permafrost::python {

// A tensor as a buffer that numpy.asarray views; it is read only, since weights and results are shared. The 16-bit
// brain floats, which the buffer protocol does not know, and quantised codes show as integers of their size.
struct TensorBuffer {
  Tensor tensor;
};

void BindTensors(pybind11::module_& m);

// The tensor as a TensorBuffer, or as a list of bytes where it is of strings.
pybind11::object ToPython(const Tensor& tensor);
// A tuple, with None for an unknown dimension; None for an unknown rank.
pybind11::object ToPython(const Shape& shape);
// Out of a sequence of integers and None, or None.
absl::StatusOr<Shape> ShapeFromPython(pybind11::handle object);

// A view of an object with the buffer protocol, which lives as long as the tensor. The elements must be those of
// `dtype` in C order; `shape` is checked by whoever takes the tensor. InvalidArgument: found, expected. REQUIRES: the
// GIL.
absl::StatusOr<Tensor> TensorFromBuffer(pybind11::handle object, DType dtype);
// The same for a type that the object itself tells.
absl::StatusOr<Tensor> TensorFromBuffer(pybind11::handle object);
// Of a list of bytes and a shape: a tensor of strings. InvalidArgument when the numbers do not fit.
absl::StatusOr<Tensor> TensorFromStrings(pybind11::handle shape, pybind11::handle strings);

// The memory of an array that is to take an output of this type and shape, and what holds it.
struct WritableMemory {
  absl::Span<char> bytes;
  std::shared_ptr<const void> owner;
};
// InvalidArgument (found, expected) for another type or shape, an array that is not contiguous or must not be written.
absl::StatusOr<WritableMemory> OutputMemory(pybind11::handle object, DType dtype, const Shape& shape);

}  // namespace permafrost::python

#endif  // PERMAFROST_PYTHON_NATIVE_TENSORS_H_
