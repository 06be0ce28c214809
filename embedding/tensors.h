// Between the tensors of the C interface and the project's.
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

// The shape that the caller gives: all dimensions are known. InvalidArgument otherwise.
absl::StatusOr<Shape> ShapeOf(const pf_tensor& tensor);

// A view of the caller's elements, or of strings a copy. InvalidArgument when the sizes do not fit.
absl::StatusOr<Tensor> ViewOfCaller(const pf_tensor& tensor);

// What is known of a tensor that is not there yet. InvalidArgument for a rank beyond PF_MAX_RANK.
absl::StatusOr<pf_tensor> Described(const TensorSpec& spec);

// The same for one that is there, with its elements; of strings `strings` is filled, and views the tensor's.
absl::StatusOr<pf_tensor> Described(const Tensor& tensor, std::vector<pf_string>* strings);

// InvalidArgument when the memory of an output overlaps that of another tensor.
absl::Status CheckDisjoint(absl::Span<const pf_tensor> inputs, absl::Span<const pf_tensor> outputs);

}  // namespace permafrost

#endif  // PERMAFROST_EMBEDDING_TENSORS_H_
