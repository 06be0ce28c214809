// NPY, numpy's file of one array: versions 1.0, 2.0 and 3.0 are read, 1.0 is written.
//
// Layout: the bytes 93 'N' 'U' 'M' 'P' 'Y', major and minor version, the header's length (2 bytes little-endian in
// version 1, 4 after it), the header, the elements. The header is a Python dictionary of exactly three keys: 'descr'
// (the element type, '<f4'), 'fortran_order' (column-major if True) and 'shape' (a tuple); it is padded with blanks and
// ends in a line feed.
#ifndef PERMAFROST_IO_FORMATS_NPY_H_
#define PERMAFROST_IO_FORMATS_NPY_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "graph/base/wire.h"
#include "graph/tensor.h"

namespace permafrost {

// The array in `file`, as a view of it, which `owner` keeps alive. DataLoss: not an NPY file, a header that is
// malformed or cut short, more or fewer elements than the shape asks for. Unimplemented: column-major order, big-endian
// elements, and element types without a number of fixed size (text, objects, records).
absl::StatusOr<Tensor> ParseNpy(absl::string_view file, Owner owner);

// Writes `tensor` as version 1.0. Unimplemented for types that numpy has no name for (bfloat16, quantised, string).
absl::Status WriteNpy(const Tensor& tensor, ByteSink* sink);

}  // namespace permafrost

#endif  // PERMAFROST_IO_FORMATS_NPY_H_
