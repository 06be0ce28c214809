// The post-ops of the _Fused ops on the result of a convolution or a matrix product: a bias or a batch norm, then an
// activation.
#ifndef PERMAFROST_RUNTIME_CHECK_KERNELS_POST_OPS_H_
#define PERMAFROST_RUNTIME_CHECK_KERNELS_POST_OPS_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "graph/base/selection.h"
#include "graph/dtype.h"
#include "runtime_check/kernel.h"
#include "runtime_check/kernels/scratch.h"

namespace permafrost {

// The post-ops of a node, read in Prepare and kept in the state. The default value does nothing.
struct PostOps {
  enum class Scaling { kNone, kBias, kBatchNorm };
  enum class Activation { kNone, kRelu, kRelu6, kElu, kLeakyRelu, kTanh, kSigmoid };

  Scaling scaling = Scaling::kNone;
  Activation activation = Activation::kNone;
  int first_arg = 0;  // The input with the bias, or the scale of a batch norm; offset, mean and variance follow.
  float epsilon = 0, alpha = 0;
  int64_t channels = 0;
  int64_t factor_part = 0;  // Offset in the scratch memory: one float per channel, for a batch norm.

  bool is_empty() const {
    return !selection::kHoldsFusedOps || (scaling == Scaling::kNone && activation == Activation::kNone);
  }
};

// Reads fused_ops, epsilon and leakyrelu_alpha of a _Fused op whose args begin at input `first_arg`: BiasAdd or
// FusedBatchNorm, optionally followed by an activation. The result is empty for an op without the attribute fused_ops.
// Returns Unimplemented for other lists. Returns InvalidArgument unless each arg is a vector of `channels` floats. A
// bias, and the args of a batch norm of doubles, have the type of the op's results instead.
absl::StatusOr<PostOps> ReadPostOps(PrepareContext* context, int first_arg, int64_t channels, ScratchParts* parts);

// Post-ops with the values of one run. Cheap to construct.
class BoundPostOps {
 public:
  BoundPostOps(const PostOps& ops, ComputeContext* context);

  bool is_empty() const { return ops_.is_empty(); }

  // Applies the post-ops to `rows` rows of `count` floats, `stride` floats apart, for channels [first, first + count).
  void Apply(int64_t rows, int64_t first, int64_t count, float* data, int64_t stride) const;
  // Returns the result for one element x of a channel. REQUIRES: the results are of type double.
  double Of(int64_t channel, double x) const;
  // Applies the post-ops to rows of all channels of type float, half or bfloat16. REQUIRES: no batch norm for half and
  // bfloat16.
  void ApplyToRows(ComputeContext* context, DType dtype, int64_t rows, void* data) const;

 private:
  void Activate(int64_t count, float* row) const;
  template <typename T>
  void ApplyTo16Bits(int64_t rows, T* data) const;

  const PostOps& ops_;
  const void* bias_ = nullptr;
  const float *mean_ = nullptr, *factor_ = nullptr, *offset_ = nullptr;
  const double* doubles_[4] = {};  // For a batch norm of doubles: scale, offset, mean, variance.
};

}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_KERNELS_POST_OPS_H_
