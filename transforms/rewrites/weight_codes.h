// Float tensors as codes of few bits, in the three ways that TensorFlow's Dequantize reads them.
#ifndef PERMAFROST_TRANSFORMS_REWRITES_WEIGHT_CODES_H_
#define PERMAFROST_TRANSFORMS_REWRITES_WEIGHT_CODES_H_

#include <vector>

#include "absl/status/statusor.h"
#include "graph/tensor.h"
#include "transforms/pipeline/thread_team.h"
#include "transforms/rewrites/channel_scaling.h"

namespace permafrost {

// What code c stands for, where n is the highest code plus the magnitude of the lowest:
//   kMinFirst     (c + round(min / step)) * step, step = (max - min) / n
//   kScaled       c * step, step = max / highest code; signed codes
//   kMinCombined  c * step + min, step = (max - min) / n
enum class CodeMode { kMinFirst, kScaled, kMinCombined };

struct CodeFormat {
  CodeMode mode = CodeMode::kMinFirst;
  int bits = 8;               // 8; 16 but for kMinFirst; 4 for kScaled alone.
  bool is_symmetric = false;  // The range spans as far below zero as above. kScaled: and the lowest code is not used.
  // Channels each have a range; count == 1 is one for the tensor. kMinFirst: 1 alone.
  Channels channels = {1, 1};
  // Among the two codes next to a value, picks so that the codes of a channel sum to what its values sum to: what reads
  // the weights adds them up, and inputs that are mostly positive, as those behind a Relu, turn a bias of the weights
  // into one of the results. Needs channels.
  bool keep_sums = false;
  // Rounds ranges up to bfloat16. kScaled alone.
  bool has_coarse_ranges = false;
};

struct CodedTensor {
  // kScaled: qint8 (codes -8 to 7 for 4 bits) or qint16; otherwise quint8 or quint16. The shape of the values.
  Tensor codes;
  // The ranges, one for each channel; kScaled has one array for both, since TensorFlow takes the larger of what each
  // gives.
  std::vector<float> min, max;
};

// FailedPrecondition says why the values cannot be coded: NaN or infinity among them, or a range that float cannot
// divide. REQUIRES: float values, of which there is at least one.
absl::StatusOr<CodedTensor> Encode(const Tensor& values, const CodeFormat& format, ThreadTeam* team);

// Returns the float values that the codes stand for.
absl::StatusOr<Tensor> Decode(const CodedTensor& coded, const CodeFormat& format);

// How far what `coded` stands for is from `values`: for each channel of `channels` the root of the mean square of its
// errors, relative to that of its values; of these the root of the mean square over the channels that are not all zero.
// A channel that is lost counts in full, however small its values are beside those of others.
double CodingError(const Tensor& values, const CodedTensor& coded, const CodeFormat& format, Channels channels);

// Two codes of 4 bits in each byte of an int8 tensor whose `dim` is half as long: the first half of the codes along it
// in the low bits, the second in the high. REQUIRES: dimension `dim` is even.
absl::StatusOr<Tensor> PackNibbles(const Tensor& codes, int dim);

}  // namespace permafrost

#endif  // PERMAFROST_TRANSFORMS_REWRITES_WEIGHT_CODES_H_
