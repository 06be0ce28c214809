// Slices of variables that were saved in parts: decoding, keys, and assembly of the variable.
#ifndef PERMAFROST_IO_FORMATS_CHECKPOINT_TENSOR_SLICE_H_
#define PERMAFROST_IO_FORMATS_CHECKPOINT_TENSOR_SLICE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "graph/shape.h"
#include "graph/tensor.h"

namespace permafrost {

struct SliceExtent {
  static constexpr int64_t kAll = -1;
  int64_t start = 0;
  int64_t length = kAll;
};

// One extent for each dimension.
using TensorSlice = std::vector<SliceExtent>;

// Decodes a TensorSliceProto. Returns DataLoss if it is malformed.
absl::StatusOr<TensorSlice> ParseTensorSlice(absl::string_view encoded);

// Returns a text such as "[0:2, :]".
std::string ToString(const TensorSlice& slice);

// Returns the shape of the slice. Returns DataLoss if it is not inside `whole`, which must be fully known.
absl::StatusOr<Shape> SliceShape(const TensorSlice& slice, const Shape& whole);

// Returns the key under which a table stores the slice of variable `name`.
std::string SliceKey(absl::string_view name, const TensorSlice& slice);

// Assembles a variable from its slices, which must not overlap. REQUIRES: each slice is inside `whole`, and each part
// has the shape of its slice and type `dtype`, which has fixed-size elements or is string.
class SliceAssembler {
 public:
  // Returns ResourceExhausted if memory is insufficient.
  static absl::StatusOr<SliceAssembler> Create(DType dtype, const Shape& whole);

  // Returns DataLoss if the slice overlaps an earlier one.
  absl::Status Add(const TensorSlice& slice, const Tensor& part);
  // Returns DataLoss if an element is missing. REQUIRES: called once.
  absl::StatusOr<Tensor> Finish();

 private:
  SliceAssembler(DType dtype, Shape whole) : dtype_(dtype), whole_(std::move(whole)) {}

  DType dtype_;
  Shape whole_;
  Tensor tensor_;
  char* data_ = nullptr;              // Of tensor_.
  std::vector<std::string> strings_;  // Used instead of tensor_ for strings.
  std::vector<uint64_t> is_set_;      // One bit per element.
  int64_t num_set_ = 0;
};

}  // namespace permafrost

#endif  // PERMAFROST_IO_FORMATS_CHECKPOINT_TENSOR_SLICE_H_
