// Float products on the bfloat16 matrix units (AMX). Each float is the sum of two bfloat16 numbers, so a product takes
// three multiplications.
#ifndef PERMAFROST_RUNTIME_CHECK_DELEGATES_ONEDNN_SPLIT_PRODUCTS_H_
#define PERMAFROST_RUNTIME_CHECK_DELEGATES_ONEDNN_SPLIT_PRODUCTS_H_

#include <cstdint>
#include <vector>

namespace permafrost {
namespace onednn {

// Returns true if the processor has AMX with bfloat16, the system lets this process use it, and oneDNN's settings do
// not disable it.
bool HasSplitProducts();

// Number of positions, and of output channels, that are computed at once.
constexpr int64_t kSplitBlock = 32;

// Splits each float into the nearest bfloat16 (`high`) and the nearest bfloat16 of the remainder (`low`). Their sum is
// within 2^-17 of the float. `from` must be finite.
// REQUIRES: HasSplitProducts.
void SplitFloats(int64_t count, const float* from, uint16_t* high, uint16_t* low);

// Weights [runs, length, outputs] in blocks of kSplitBlock outputs, stored as tiles in the order of the matrix units.
class SplitWeights {
 public:
  SplitWeights(const std::vector<float>& weights, int64_t runs, int64_t length, int64_t outputs);
  SplitWeights(const SplitWeights&) = delete;
  SplitWeights& operator=(const SplitWeights&) = delete;

  int64_t outputs() const { return outputs_; }
  int64_t num_blocks() const { return (outputs_ + kSplitBlock - 1) / kSplitBlock; }
  int64_t runs() const { return runs_; }
  // The number of tiles in one run, each of 32 elements: runs are padded to whole tiles.
  int64_t chunks() const { return chunks_; }
  int64_t bytes() const { return static_cast<int64_t>(memory_.size() * sizeof(uint16_t)); }
  const uint16_t* block(int64_t index) const { return tiles_ + index * block_elements_; }

 private:
  int64_t runs_ = 0, chunks_ = 0, outputs_ = 0, block_elements_ = 0;
  std::vector<uint16_t> memory_;
  uint16_t* tiles_ = nullptr;  // Points into memory_, aligned to a cache line.
};

// The layout of the left operand: position p reads run r starting at element p * step + offsets[r].
struct SplitSource {
  const uint16_t* high;
  const uint16_t* low;  // Null means zeros.
  int64_t step;
  const int64_t* offsets;
};

// Configures the matrix units of the calling thread for the products below, during its lifetime.
class SplitUnits {
 public:
  SplitUnits();
  ~SplitUnits();
  SplitUnits(const SplitUnits&) = delete;
  SplitUnits& operator=(const SplitUnits&) = delete;
};

// Computes sums[position, output], with kSplitBlock positions and outputs. Sums are valid for the first `positions`
// positions and for the outputs of the block; the others are undefined. All kSplitBlock positions are read, and each
// run is read to the end of its last tile.
// REQUIRES: SplitUnits.
void MultiplySplit(const SplitSource& source, const SplitWeights& weights, int64_t block, int64_t positions,
                   float* sums);

// Adds the bias to the first `wanted` sums of each row of kSplitBlock sums, clips the result to [least, most], and
// writes rows that are `to_step` apart. `to` may be `sums`. REQUIRES: HasSplitProducts; kSplitBlock numbers in `bias`.
void WriteSums(const float* sums, int64_t rows, int64_t wanted, const float* bias, float least, float most, float* to,
               int64_t to_step);

}  // namespace onednn
}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_DELEGATES_ONEDNN_SPLIT_PRODUCTS_H_
