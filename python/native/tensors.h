// Conversion between tensors and arrays: the buffer protocol in both directions, without copies and without numpy.
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

// A tensor as a buffer that numpy.asarray views. It is read-only, since weights and results are shared. Values of type
// bfloat16, which the buffer protocol does not have, and quantised codes appear as integers of their size.
struct TensorBuffer {
  Tensor tensor;
};

void BindTensors(pybind11::module_& m);

// Returns the tensor as a TensorBuffer, or as a list of bytes if it holds strings.
pybind11::object ToPython(const Tensor& tensor);
// Returns a tuple, with None for an unknown dimension; None for an unknown rank.
pybind11::object ToPython(const Shape& shape);
// Converts a sequence of integers and None, or None.
absl::StatusOr<Shape> ShapeFromPython(pybind11::handle object);

// Returns a tensor that views an object with the buffer protocol and keeps it alive. The elements must be those of
// `dtype` in C order; the consumer of the tensor checks `shape`. InvalidArgument: found, expected. REQUIRES: the GIL.
absl::StatusOr<Tensor> TensorFromBuffer(pybind11::handle object, DType dtype);
// Like the above, with the element type that the buffer declares.
absl::StatusOr<Tensor> TensorFromBuffer(pybind11::handle object);
// Returns a tensor of strings from a list of bytes and a shape. InvalidArgument if the number of strings does not fit
// the shape.
absl::StatusOr<Tensor> TensorFromStrings(pybind11::handle shape, pybind11::handle strings);

// The memory of an array into which an output of this type and shape is written, and the object that keeps it alive.
struct WritableMemory {
  absl::Span<char> bytes;
  std::shared_ptr<const void> owner;
};
// Returns the memory of `object`. InvalidArgument (found, expected) for another type or shape, and for an array that is
// not contiguous or not writable.
absl::StatusOr<WritableMemory> OutputMemory(pybind11::handle object, DType dtype, const Shape& shape);

}  // namespace permafrost::python

#endif  // PERMAFROST_PYTHON_NATIVE_TENSORS_H_
