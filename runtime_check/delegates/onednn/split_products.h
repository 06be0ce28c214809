// Products of floats on matrix units of bfloat16 (AMX): each float is the sum of two, so a product takes three.
#ifndef PERMAFROST_RUNTIME_CHECK_DELEGATES_ONEDNN_SPLIT_PRODUCTS_H_
#define PERMAFROST_RUNTIME_CHECK_DELEGATES_ONEDNN_SPLIT_PRODUCTS_H_

#include <cstdint>
#include <vector>

namespace permafrost {
namespace onednn {

// Whether the processor has AMX with bfloat16, the system lets this process use it, and oneDNN is not told to do
// without.
bool HasSplitProducts();

// Positions and output channels that are computed at once.
constexpr int64_t kSplitBlock = 32;

// The nearest bfloat16 and that of what is left: together within 2^-17 of each float. `from` is finite.
// REQUIRES: HasSplitProducts.
void SplitFloats(int64_t count, const float* from, uint16_t* high, uint16_t* low);

// Weights [runs, length, outputs] by blocks of kSplitBlock outputs, in tiles as the units read them.
class SplitWeights {
 public:
  SplitWeights(const std::vector<float>& weights, int64_t runs, int64_t length, int64_t outputs);
  SplitWeights(const SplitWeights&) = delete;
  SplitWeights& operator=(const SplitWeights&) = delete;

  int64_t outputs() const { return outputs_; }
  int64_t num_blocks() const { return (outputs_ + kSplitBlock - 1) / kSplitBlock; }
  int64_t runs() const { return runs_; }
  // Tiles of one run, each of 32 elements: a run is read as if it were so much longer.
  int64_t chunks() const { return chunks_; }
  int64_t bytes() const { return static_cast<int64_t>(memory_.size() * sizeof(uint16_t)); }
  const uint16_t* block(int64_t index) const { return tiles_ + index * block_elements_; }

 private:
  int64_t runs_ = 0, chunks_ = 0, outputs_ = 0, block_elements_ = 0;
  std::vector<uint16_t> memory_;
  uint16_t* tiles_ = nullptr;  // In it, where a cache line begins.
};

// What lies where: position p reads run r from element p * step + offsets[r] on.
struct SplitSource {
  const uint16_t* high;
  const uint16_t* low;  // Null: zeros.
  int64_t step;
  const int64_t* offsets;
};

// While it lives, the matrix units of this thread are set up for the products below.
class SplitUnits {
 public:
  SplitUnits();
  ~SplitUnits();
  SplitUnits(const SplitUnits&) = delete;
  SplitUnits& operator=(const SplitUnits&) = delete;
};

// sums[position, output], kSplitBlock of each: those of the first `positions` positions and of the block's outputs are
// products, the others of no use. All kSplitBlock positions are read, and runs to the end of their last tile.
// REQUIRES: SplitUnits.
void MultiplySplit(const SplitSource& source, const SplitWeights& weights, int64_t block, int64_t positions,
                   float* sums);

// The first `wanted` of each row of sums, of kSplitBlock, with the bias added, clipped to [least, most]: to rows that
// are `to_step` apart. `to` may be `sums`. REQUIRES: HasSplitProducts; kSplitBlock numbers in `bias`.
void WriteSums(const float* sums, int64_t rows, int64_t wanted, const float* bias, float least, float most, float* to,
               int64_t to_step);

}  // namespace onednn
}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_DELEGATES_ONEDNN_SPLIT_PRODUCTS_H_
