// Blocks of weights with a scale each, for codes of four bits.
//
// TensorFlow's Dequantize has one range for each channel at most. So a constant n in blocks is stored as
//
//   Reshape n (Mul n/scaled (Cast n/numbers (codes of int8 [blocks, block, channels]), scales [blocks, 1, channels]))
//
// or with [channels, blocks, block] if the channels are the first dimension. Codes are four bits, unpacked as for one
// range per channel; scales are bfloat16.
#ifndef PERMAFROST_TRANSFORMS_REWRITES_WEIGHT_BLOCKS_H_
#define PERMAFROST_TRANSFORMS_REWRITES_WEIGHT_BLOCKS_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "graph/shape.h"
#include "graph/tensor.h"
#include "transforms/pipeline/thread_team.h"

namespace permafrost {

// A matrix of weights in blocks. Each block is of inputs that follow each other, for one channel.
struct WeightBlocks {
  int64_t channels = 0, count = 0, block = 0;  // `count` blocks for each channel.
  bool has_channels_last = false;

  Shape CodesShape() const;
  Shape ScalesShape() const;
  // The index of the scale of element i: [count][channels], or [channels][count].
  int64_t ScaleOf(int64_t i) const {
    return has_channels_last ? i / (block * channels) * channels + i % channels : i / block;
  }
};

// Returns the blocks of a tensor whose channels are its first or last dimension. The length of a block is the divisor
// of the number of inputs that is nearest to `wanted`, from half to twice as much. Nothing if there is none, if there
// would be one block, or if `wanted` is 0.
std::optional<WeightBlocks> FindWeightBlocks(const Shape& shape, int channel_dim, int64_t wanted);

struct BlockCodes {
  Tensor codes;               // qint8 from -8 to 7, of shape CodesShape().
  std::vector<float> scales;  // bfloat16 numbers, in the order of ScaleOf.
};

// Quantises float values to four bits. FailedPrecondition with the reason as of Encode (weight_codes.h). `keep_sums`:
// as CodeFormat::keep_sums, by block.
absl::StatusOr<BlockCodes> EncodeBlocks(const Tensor& values, const WeightBlocks& blocks, bool keep_sums,
                                        ThreadTeam* team);

// Returns the float values of the codes, in `shape`.
absl::StatusOr<Tensor> DecodeBlocks(const BlockCodes& coded, const WeightBlocks& blocks, const Shape& shape);

}  // namespace permafrost

#endif  // PERMAFROST_TRANSFORMS_REWRITES_WEIGHT_BLOCKS_H_
