// Converts between tensors of the C interface and Tensor.
#ifndef PERMAFROST_EMBEDDING_TENSORS_H_
#define PERMAFROST_EMBEDDING_TENSORS_H_

#include <cstddef>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "embedding/permafrost_runtime.h"
#include "graph/shape.h"
#include "graph/tensor.h"
#include "runtime_check/session.h"

namespace permafrost {

// Returns the shape of a tensor of the caller. Returns InvalidArgument if a dimension is unknown.
absl::StatusOr<Shape> ShapeOf(const pf_tensor& tensor);

// Returns a view of the caller's elements, or a copy of strings. Returns InvalidArgument if the size does not match.
absl::StatusOr<Tensor> ViewOfCaller(const pf_tensor& tensor);

// Describes a tensor that does not exist yet, as far as it is known. Returns InvalidArgument for a rank above
// PF_MAX_RANK.
absl::StatusOr<pf_tensor> Described(const TensorSpec& spec);

// Describes a tensor with its elements. If it holds strings, fills `strings` with views of them.
absl::StatusOr<pf_tensor> Described(const Tensor& tensor, std::vector<pf_string>* strings);

// Returns InvalidArgument if the memory of an output overlaps that of another tensor.
absl::Status CheckDisjoint(absl::Span<const pf_tensor> inputs, absl::Span<const pf_tensor> outputs);

}  // namespace permafrost

#endif  // PERMAFROST_EMBEDDING_TENSORS_H_
