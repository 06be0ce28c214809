// Finds, encodes and decodes blocks of weights.
#include "transforms/rewrites/weight_blocks.h"

#include <cmath>
#include <utility>

#include "graph/base/status.h"
#include "transforms/rewrites/weight_codes.h"

namespace permafrost {
namespace {

// Dequantize divides ranges by the highest code of qint8, and codes of four bits are in the high bits.
constexpr float kStepOfRange = 16 / 127.f;

// Copies a matrix of `rows` and `columns` to its transpose.
template <typename T, typename From>
void Transpose(const From& from, int64_t rows, int64_t columns, T* to) {
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < columns; ++c) to[c * rows + r] = from[static_cast<size_t>(r * columns + c)];
  }
}

}  // namespace

Shape WeightBlocks::CodesShape() const {
  return has_channels_last ? Shape({count, block, channels}) : Shape({channels, count, block});
}

Shape WeightBlocks::ScalesShape() const {
  return has_channels_last ? Shape({count, 1, channels}) : Shape({channels, count, 1});
}

std::optional<WeightBlocks> FindWeightBlocks(const Shape& shape, int channel_dim, int64_t wanted) {
  if (wanted <= 0 || shape.rank() < 2 || channel_dim < 0) return std::nullopt;
  if (channel_dim != 0 && channel_dim != shape.rank() - 1) return std::nullopt;
  WeightBlocks blocks;
  blocks.has_channels_last = channel_dim != 0;
  blocks.channels = shape.dim(channel_dim);
  if (blocks.channels == 0 || shape.num_elements() == 0) return std::nullopt;
  const int64_t inputs = shape.num_elements() / blocks.channels;
  double nearest = 0;
  for (int64_t block = (wanted + 1) / 2; block <= 2 * wanted && block < inputs; ++block) {
    if (inputs % block != 0) continue;
    const double distance = std::fabs(std::log2(static_cast<double>(block) / static_cast<double>(wanted)));
    if (blocks.block > 0 && distance >= nearest) continue;
    nearest = distance;
    blocks.block = block;
  }
  if (blocks.block == 0) return std::nullopt;
  blocks.count = inputs / blocks.block;
  return blocks;
}

absl::StatusOr<BlockCodes> EncodeBlocks(const Tensor& values, const WeightBlocks& blocks, bool keep_sums,
                                        ThreadTeam* team) {
  const int64_t inputs = blocks.count * blocks.block, ranges = blocks.channels * blocks.count;
  const Shape rows({ranges, blocks.block});
  float* ordered = nullptr;
  PF_ASSIGN_OR_RETURN(Tensor by_block, Tensor::Allocate<float>(rows, &ordered));
  if (blocks.has_channels_last) {
    Transpose(values.elements<float>(), inputs, blocks.channels, ordered);
  } else {
    const UnalignedSpan<float> elements = values.elements<float>();
    for (size_t i = 0; i < elements.size(); ++i) ordered[i] = elements[i];
  }
  CodeFormat format;
  format.mode = CodeMode::kScaled;
  format.bits = 4;
  format.channels = {ranges, blocks.block};
  format.keep_sums = keep_sums;
  format.has_coarse_steps = true;
  PF_ASSIGN_OR_RETURN(CodedTensor coded, Encode(by_block, format, team));
  BlockCodes result;
  std::vector<float> scales(coded.max.size());
  for (size_t i = 0; i < scales.size(); ++i) scales[i] = ToFloat(ToBFloat16(coded.max[i] * kStepOfRange));
  if (!blocks.has_channels_last) {
    PF_ASSIGN_OR_RETURN(result.codes, coded.codes.Reshaped(blocks.CodesShape()));
    result.scales = std::move(scales);
    return result;
  }
  QInt8* codes = nullptr;
  PF_ASSIGN_OR_RETURN(result.codes, Tensor::Allocate<QInt8>(blocks.CodesShape(), &codes));
  Transpose(coded.codes.elements<QInt8>(), blocks.channels, inputs, codes);
  result.scales.resize(scales.size());
  Transpose(scales, blocks.channels, blocks.count, result.scales.data());
  return result;
}

absl::StatusOr<Tensor> DecodeBlocks(const BlockCodes& coded, const WeightBlocks& blocks, const Shape& shape) {
  float* values = nullptr;
  PF_ASSIGN_OR_RETURN(Tensor decoded, Tensor::Allocate<float>(shape, &values));
  const UnalignedSpan<QInt8> codes = coded.codes.elements<QInt8>();
  for (size_t i = 0; i < codes.size(); ++i) {
    values[i] =
        static_cast<float>(codes[i].value) * coded.scales[static_cast<size_t>(blocks.ScaleOf(static_cast<int64_t>(i)))];
  }
  return decoded;
}

}  // namespace permafrost
