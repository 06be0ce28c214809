// Loops over tiles of bytes whose 32-bit sums become codes while they are in the first-level cache: products of
// matrices, depthwise convolutions, and elementwise sums and products. Compiled for AVX-512 with dot products of bytes
// (VNNI); other processors use the loops of integer_loops.h and integer_elementwise.cc, with the same results.
//
// Codes are read where they lie, without a copy: bytes of int8 are XORed with 0x80 when they are loaded, because the
// instruction multiplies unsigned by signed bytes.
#ifndef PERMAFROST_RUNTIME_CHECK_KERNELS_INTEGER_BYTE_TILES_H_
#define PERMAFROST_RUNTIME_CHECK_KERNELS_INTEGER_BYTE_TILES_H_

#include <cstdint>

namespace permafrost {

constexpr int kTileColumns = 32;   // Columns of a panel of packed weights.
constexpr int kMostTileRows = 12;  // 24 sums, 2 registers of weights and one of a row fit in 32 registers.
constexpr int kBlockChannels = 16;

// Conversion of the sums of 16 channels with Rounding::kTwice and a shift to the right of 1 to 31. Both roundings
// are one shift of the 64-bit product:
//
//   (sum * multiplier + addend - (sum < 0 ? 2^31 : 0)) >> shift,  addend = 2^30 + 2^(30 + right), shift = 31 + right
struct alignas(64) ConversionBlock {
  int32_t multipliers[kBlockChannels];
  int64_t even_addends[kBlockChannels / 2], odd_addends[kBlockChannels / 2];  // Of channels 0, 2, ... and 1, 3, ...
  int64_t even_shifts[kBlockChannels / 2], odd_shifts[kBlockChannels / 2];
};

// Factors of 16 channels with Rounding::kExact.
struct alignas(64) FactorBlock {
  double factors[kBlockChannels];
};

// Conversion of sums to bytes. One of the pointers is set; each channel has a block by its number / 16.
struct ByteConversion {
  const ConversionBlock* twice = nullptr;
  const FactorBlock* exact = nullptr;
  int32_t zero_point = 0;    // Here and in the range: less 128 for uint8.
  int8_t low = 0, high = 0;  // The range of codes.
  uint8_t flip = 0;          // XORed to the result: 0x80 for uint8.
};

// Rows of bytes that consist of the same segments. Row r has segment s at first + r * step + segments[s]. Each segment
// is read up to the next multiple of 4 bytes; the weights of bytes past its end are 0.
struct ByteRows {
  const uint8_t* first = nullptr;
  int64_t step = 0;
  const int64_t* segments = nullptr;
  int64_t num_segments = 0, segment_groups = 0;  // A group is 4 bytes.
  uint8_t flip = 0;                              // XORed to each byte: 0x80 for int8.
};

struct ProductTiles {
  // sums[r][c] = start[c] + the product of row r and column c, for up to 12 rows and 32 columns, modulo 2^32. Rows of
  // `sums` are 32 elements apart. `weights` are a panel of 32 columns: for each group 4 bytes of each column. Columns
  // from `columns` on may be left out.
  void (*multiply)(int64_t row_count, const ByteRows& rows, const int8_t* weights, int64_t columns,
                   const int32_t* start, int32_t* sums);
  // Converts such sums of channels [16 * block, 16 * block + columns) to bytes, `output_step` bytes from row to row.
  void (*convert)(const ByteConversion& conversion, int64_t block, const int32_t* sums, int64_t row_count,
                  int64_t columns, uint8_t* output, int64_t output_step);
};

// Channels of a depthwise convolution are computed 32 at a time, in the order in which 4 taps are interleaved.
constexpr int kDepthwiseChannels = 32;
// The channel of a block whose sum is at position i of [0, 32).
constexpr int DepthwiseChannelAt(int i) { return i / 4 % 2 * 16 + i / 8 * 4 + i % 4; }

// A line of pixels of a depthwise convolution.
struct DepthwiseLine {
  // Addresses of the taps of the first pixel, and their distance to those of the next one in bytes: the channels of an
  // input pixel, or of zeros. They are advanced. The number of taps is a multiple of 4; weights of the others are 0.
  const uint8_t** taps = nullptr;
  const int64_t* steps = nullptr;
  int64_t num_taps = 0;
  uint8_t flip = 0;
  int64_t channels = 0;
  const int32_t* start = nullptr;   // By block and position.
  const int8_t* weights = nullptr;  // By block, 4 taps, and position: 4 bytes.
  ByteConversion conversion;        // `twice` has two ConversionBlocks for each block, by position.
};
using DepthwiseLoop = void (*)(int64_t pixels, const DepthwiseLine& line, uint8_t* output);

// y = clamp(rescale(x0 + x1) + zero), or of x0 * x1, with Rounding::kTwice. Operand i of a sum is
// (code - zero) * 2^20 * multiplier / 2^31, rounded, then shifted to the right by `shift`, rounded.
struct ByteBinary {
  bool is_sum = true, is_unsigned = false;
  int32_t zeros[2] = {};
  int32_t multipliers[2] = {}, shifts[2] = {};
  int32_t sign = 1;                                 // Of the second operand of a sum.
  int32_t output_multiplier = 0, output_shift = 1;  // To the right, 1 to 31.
  ByteConversion conversion;                        // Pointers are not read.
};
// Steps are 0 or 1.
using ByteBinaryLoop = void (*)(int64_t count, const ByteBinary& binary, const uint8_t* a, int64_t a_step,
                                const uint8_t* b, int64_t b_step, uint8_t* y);

// Return the loops of this processor, or null. Thread-safe.
const ProductTiles* SupportedProductTiles();
DepthwiseLoop SupportedDepthwiseLoop();
ByteBinaryLoop SupportedByteBinaryLoop();

}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_KERNELS_INTEGER_BYTE_TILES_H_
