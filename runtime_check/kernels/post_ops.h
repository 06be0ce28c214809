// What the _Fused ops do to the result of a convolution or a matrix product: they add a bias or apply a batch norm, and
// then an activation.
#ifndef PERMAFROST_RUNTIME_CHECK_KERNELS_POST_OPS_H_
#define PERMAFROST_RUNTIME_CHECK_KERNELS_POST_OPS_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "graph/base/selection.h"
#include "graph/dtype.h"
#include "runtime_check/kernel.h"
#include "runtime_check/kernels/scratch.h"

namespace permafrost {

// Read in Prepare and kept in the state. A default one does nothing.
struct PostOps {
  enum class Scaling { kNone, kBias, kBatchNorm };
  enum class Activation { kNone, kRelu, kRelu6, kElu, kLeakyRelu, kTanh, kSigmoid };

  Scaling scaling = Scaling::kNone;
  Activation activation = Activation::kNone;
  int first_arg = 0;  // The input that is the bias, or the scale of a batch norm; its offset, mean, variance follow.
  float epsilon = 0, alpha = 0;
  int64_t channels = 0;
  int64_t factor_part = 0;  // Of the scratch memory: one float a channel, for a batch norm.

  bool is_empty() const {
    return !selection::kHoldsFusedOps || (scaling == Scaling::kNone && activation == Activation::kNone);
  }
};

// Reads fused_ops, epsilon and leakyrelu_alpha of a _Fused op whose args begin at input `first_arg`: BiasAdd or
// FusedBatchNorm, alone or with an activation behind it. Empty for an op without attribute fused_ops. Unimplemented for
// other lists; InvalidArgument unless the args are there, one float vector of `channels` elements each (of another type
// where the op's results are: a bias, and what a batch norm of doubles reads).
absl::StatusOr<PostOps> ReadPostOps(PrepareContext* context, int first_arg, int64_t channels, ScratchParts* parts);

// Post-ops on the values of one run. Cheap to make.
class BoundPostOps {
 public:
  BoundPostOps(const PostOps& ops, ComputeContext* context);

  bool is_empty() const { return ops_.is_empty(); }

  // Changes `rows` rows of `count` floats each, `stride` floats apart, which belong to channels [first, first + count).
  void Apply(int64_t rows, int64_t first, int64_t count, float* data, int64_t stride) const;
  // What x, an element of that channel, becomes. REQUIRES: the results are of type double.
  double Of(int64_t channel, double x) const;
  // The same as Apply for rows of all channels of one type: float, half or bfloat16. REQUIRES: no batch norm for the
  // latter two.
  void ApplyToRows(ComputeContext* context, DType dtype, int64_t rows, void* data) const;

 private:
  void Activate(int64_t count, float* row) const;
  template <typename T>
  void ApplyTo16Bits(int64_t rows, T* data) const;

  const PostOps& ops_;
  const void* bias_ = nullptr;
  const float *mean_ = nullptr, *factor_ = nullptr, *offset_ = nullptr;
  const double* doubles_[4] = {};  // Of a batch norm of doubles: scale, offset, mean, variance.
};

}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_KERNELS_POST_OPS_H_
