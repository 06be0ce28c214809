// NPY, NumPy's file format for one array. Reads versions 1.0, 2.0 and 3.0; writes 1.0.
//
// Layout: the bytes 93 'N' 'U' 'M' 'P' 'Y', major and minor version, the length of the header (little-endian, 2 bytes
// in version 1, 4 bytes in later versions), the header, the elements. The header is a Python dictionary with exactly
// three keys: 'descr' (the element type, '<f4'), 'fortran_order' (column-major if True) and 'shape' (a tuple). It is
// padded with spaces and ends with a line feed.
#ifndef PERMAFROST_IO_FORMATS_NPY_H_
#define PERMAFROST_IO_FORMATS_NPY_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "graph/base/wire.h"
#include "graph/tensor.h"

namespace permafrost {

// Returns the array in `file` as a view, which `owner` keeps alive; strings ('|S22', and '<U22' converted to UTF-8) are
// copied. Returns DataLoss if it is not an NPY file, the header is malformed or truncated, or the number of elements
// does not match the shape. Returns Unimplemented for column-major order, big-endian elements, and other element types
// (objects, records), ResourceExhausted for more than 2^24 strings.
absl::StatusOr<Tensor> ParseNpy(absl::string_view file, Owner owner);

// Writes `tensor` as version 1.0. Returns Unimplemented for types that NPY does not support (bfloat16, quantised,
// string).
absl::Status WriteNpy(const Tensor& tensor, ByteSink* sink);

}  // namespace permafrost

#endif  // PERMAFROST_IO_FORMATS_NPY_H_
