// A part of a variable that was saved in parts: which part it is, what the file calls it, and putting parts together.
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

// Decodes a TensorSliceProto. DataLoss.
absl::StatusOr<TensorSlice> ParseTensorSlice(absl::string_view encoded);

// "[0:2, :]".
std::string ToString(const TensorSlice& slice);

// The shape of the part. DataLoss when it is not inside `whole`, which is fully known.
absl::StatusOr<Shape> SliceShape(const TensorSlice& slice, const Shape& whole);

// The key under which a table holds the part `slice` of variable `name`.
std::string SliceKey(absl::string_view name, const TensorSlice& slice);

// Puts a variable together from its parts. Each element comes from exactly one of them. REQUIRES: each slice is inside
// `whole`, and a part has the shape of its slice and the type `dtype`, which has fixed-size elements or is string.
class SliceAssembler {
 public:
  // ResourceExhausted when memory does not suffice.
  static absl::StatusOr<SliceAssembler> Create(DType dtype, const Shape& whole);

  // DataLoss when another part had one of its elements already.
  absl::Status Add(const TensorSlice& slice, const Tensor& part);
  // DataLoss when an element is missing. REQUIRES: called once.
  absl::StatusOr<Tensor> Finish();

 private:
  SliceAssembler(DType dtype, Shape whole) : dtype_(dtype), whole_(std::move(whole)) {}

  DType dtype_;
  Shape whole_;
  Tensor tensor_;
  char* data_ = nullptr;              // Of tensor_.
  std::vector<std::string> strings_;  // Instead of it, for strings.
  std::vector<uint64_t> is_set_;      // A bit for each element.
  int64_t num_set_ = 0;
};

}  // namespace permafrost

#endif  // PERMAFROST_IO_FORMATS_CHECKPOINT_TENSOR_SLICE_H_
