// Quantises float tensors to codes of few bits, in the three modes of TensorFlow's Dequantize.
#ifndef PERMAFROST_TRANSFORMS_REWRITES_WEIGHT_CODES_H_
#define PERMAFROST_TRANSFORMS_REWRITES_WEIGHT_CODES_H_

#include <vector>

#include "absl/status/statusor.h"
#include "graph/tensor.h"
#include "transforms/pipeline/thread_team.h"
#include "transforms/rewrites/channel_scaling.h"

namespace permafrost {

// Value of code c, where n is the highest code plus the magnitude of the lowest:
//   kMinFirst     (c + round(min / step)) * step, step = (max - min) / n
//   kScaled       c * step, step = max / highest code; signed codes
//   kMinCombined  c * step + min, step = (max - min) / n
enum class CodeMode { kMinFirst, kScaled, kMinCombined };

struct CodeFormat {
  CodeMode mode = CodeMode::kMinFirst;
  int bits = 8;               // 8; 16 except for kMinFirst; 4 only for kScaled.
  bool is_symmetric = false;  // The range is symmetric around zero. kScaled: the lowest code is unused as well.
  // Each channel has its own range; count == 1 means one range per tensor. kMinFirst requires 1.
  Channels channels = {1, 1};
  // Chooses between the two codes next to a value so that the codes of a channel have the same sum as its values.
  // Otherwise a bias of the weights becomes a bias of the results if inputs are mostly positive, as after a Relu.
  // Requires channels.
  bool keep_sums = false;
  // Rounds ranges up to bfloat16. Only for kScaled.
  bool has_coarse_ranges = false;
  // Rounds the steps up to bfloat16 instead. Only for kScaled.
  bool has_coarse_steps = false;
};

struct CodedTensor {
  // Same shape as the values. kScaled: qint8 (codes -8 to 7 for 4 bits) or qint16; otherwise quint8 or quint16.
  Tensor codes;
  // The ranges, one per channel. For kScaled one array serves as both, since TensorFlow uses the larger of the two
  // magnitudes.
  std::vector<float> min, max;
};

// Quantises `values`. Returns FailedPrecondition with the reason if they contain NaN or infinity, or if the range is
// too wide or too small to be divided into float steps. REQUIRES: at least one float value.
absl::StatusOr<CodedTensor> Encode(const Tensor& values, const CodeFormat& format, ThreadTeam* team);

// Returns the float values of the codes.
absl::StatusOr<Tensor> Decode(const CodedTensor& coded, const CodeFormat& format);

// Returns the relative error of `decoded` values. For each channel of `channels` that is the root mean square of its
// errors, divided by that of its values. The result is the root mean square over the channels that are not all zero.
// Every channel has equal weight, whatever the magnitude of its values.
double CodingError(const Tensor& values, const Tensor& decoded, Channels channels);

// Packs two 4-bit codes into each byte of an int8 tensor whose `dim` is half as long: the first half of the codes along
// `dim` in the low bits, the second in the high bits. REQUIRES: dimension `dim` is even.
absl::StatusOr<Tensor> PackNibbles(const Tensor& codes, int dim);

}  // namespace permafrost

#endif  // PERMAFROST_TRANSFORMS_REWRITES_WEIGHT_CODES_H_
