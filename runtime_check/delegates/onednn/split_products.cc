// Tiles of 16 rows of 64 bytes: 0 to 3 hold sums, 4 and 5 two blocks of 16 positions, 6 and 7 two of 16 outputs.
#include "runtime_check/delegates/onednn/split_products.h"

#if defined(__x86_64__)
#include <immintrin.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

#include <algorithm>
#include <cstring>

#include "runtime_check/delegates/onednn/loops.h"
#include "runtime_check/delegates/onednn/primitives.h"

namespace permafrost {
namespace onednn {
namespace {

constexpr int64_t kRows = 16;   // Rows of a tile.
constexpr int64_t kDepth = 32;  // Elements per row.
constexpr int64_t kTile = kRows * kDepth;
constexpr int64_t kTilesOfChunk = 4;  // Tiles per chunk of weights: the high parts of 32 outputs, then the low ones.

}  // namespace

SplitWeights::SplitWeights(const std::vector<float>& weights, int64_t runs, int64_t length, int64_t outputs)
    : runs_(runs), chunks_((length + kDepth - 1) / kDepth), outputs_(outputs) {
  block_elements_ = runs_ * chunks_ * kTilesOfChunk * kTile;
  memory_.assign(static_cast<size_t>(block_elements_ * num_blocks() + kDepth), 0);
  const auto address = reinterpret_cast<uintptr_t>(memory_.data()) / sizeof(uint16_t);
  tiles_ = memory_.data() + (kDepth - address % kDepth) % kDepth;
  const auto count = static_cast<int64_t>(weights.size());
  std::vector<uint16_t> high(weights.size()), low(weights.size());
  std::vector<float> rest(weights.size());
  ToBf16(count, weights.data(), high.data());
  FromBf16(count, high.data(), rest.data());
  for (size_t i = 0; i < weights.size(); ++i) rest[i] = weights[i] - rest[i];
  ToBf16(count, rest.data(), low.data());
  for (int64_t run = 0; run < runs; ++run) {
    for (int64_t e = 0; e < length; ++e) {
      const int64_t chunk = e / kDepth, row = e % kDepth / 2, side = e % 2;
      for (int64_t o = 0; o < outputs; ++o) {
        uint16_t* tile = tiles_ + o / kSplitBlock * block_elements_ +
                         ((run * chunks_ + chunk) * kTilesOfChunk + o % kSplitBlock / kRows) * kTile;
        const int64_t place = row * kDepth + o % kRows * 2 + side;
        const int64_t from = (run * length + e) * outputs + o;
        tile[place] = high[static_cast<size_t>(from)];
        tile[2 * kTile + place] = low[static_cast<size_t>(from)];
      }
    }
  }
}

#if defined(__x86_64__) && defined(__linux__)

namespace {

#define PERMAFROST_AMX __attribute__((target("amx-tile,amx-bf16,avx512f,avx512bw,avx512vl,avx512bf16")))

// Constants from linux/arch_prctl: the kernel enables tiles for a process on request.
constexpr int kRequestState = 0x1023, kTileData = 18;

bool AsksForTiles() { return syscall(SYS_arch_prctl, kRequestState, kTileData) == 0; }

struct alignas(64) TileSetup {
  uint8_t palette = 1, start_row = 0, reserved[14] = {};
  uint16_t row_bytes[16] = {};
  uint8_t rows[16] = {};
};

// Computes sums of kPositions blocks of 16 positions and kOutputs blocks of 16 outputs.
template <int kPositions, int kOutputs, bool kHasLow>
PERMAFROST_AMX inline void Multiply(const SplitSource& source, const uint16_t* tiles, int64_t runs, int64_t chunks,
                                    float* sums) {
  const int64_t step = source.step * 2, next = source.step * kRows;
  // GCC does not know that tile instructions read memory.
  asm volatile("" : : : "memory");
  _tile_zero(0);
  if constexpr (kOutputs == 2) _tile_zero(1);
  if constexpr (kPositions == 2) _tile_zero(2);
  if constexpr (kPositions == 2 && kOutputs == 2) _tile_zero(3);
  for (int64_t run = 0; run < runs; ++run) {
    const uint16_t* high = source.high + source.offsets[run];
    const uint16_t* low = kHasLow ? source.low + source.offsets[run] : nullptr;
    for (int64_t chunk = 0; chunk < chunks; ++chunk, high += kDepth, tiles += kTilesOfChunk * kTile) {
      _tile_loadd(4, high, step);
      if constexpr (kPositions == 2) _tile_loadd(5, high + next, step);
      // Adds the small products first, to reduce rounding errors.
      _tile_loadd(6, tiles + 2 * kTile, 64);
      if constexpr (kOutputs == 2) _tile_loadd(7, tiles + 3 * kTile, 64);
      _tile_dpbf16ps(0, 4, 6);
      if constexpr (kOutputs == 2) _tile_dpbf16ps(1, 4, 7);
      if constexpr (kPositions == 2) _tile_dpbf16ps(2, 5, 6);
      if constexpr (kPositions == 2 && kOutputs == 2) _tile_dpbf16ps(3, 5, 7);
      _tile_loadd(6, tiles, 64);
      if constexpr (kOutputs == 2) _tile_loadd(7, tiles + kTile, 64);
      _tile_dpbf16ps(0, 4, 6);
      if constexpr (kOutputs == 2) _tile_dpbf16ps(1, 4, 7);
      if constexpr (kPositions == 2) _tile_dpbf16ps(2, 5, 6);
      if constexpr (kPositions == 2 && kOutputs == 2) _tile_dpbf16ps(3, 5, 7);
      if constexpr (kHasLow) {
        _tile_loadd(4, low, step);
        if constexpr (kPositions == 2) _tile_loadd(5, low + next, step);
        _tile_dpbf16ps(0, 4, 6);
        if constexpr (kOutputs == 2) _tile_dpbf16ps(1, 4, 7);
        if constexpr (kPositions == 2) _tile_dpbf16ps(2, 5, 6);
        if constexpr (kPositions == 2 && kOutputs == 2) _tile_dpbf16ps(3, 5, 7);
        low += kDepth;
      }
    }
  }
  constexpr int64_t kStep = kSplitBlock * sizeof(float);
  _tile_stored(0, sums, kStep);
  if constexpr (kOutputs == 2) _tile_stored(1, sums + kRows, kStep);
  if constexpr (kPositions == 2) _tile_stored(2, sums + kRows * kSplitBlock, kStep);
  if constexpr (kPositions == 2 && kOutputs == 2) _tile_stored(3, sums + kRows * kSplitBlock + kRows, kStep);
}

template <bool kHasLow>
PERMAFROST_AMX void MultiplyBlock(const SplitSource& source, const SplitWeights& weights, int64_t block,
                                  int64_t positions, float* sums) {
  const uint16_t* tiles = weights.block(block);
  const bool is_wide = weights.outputs() - block * kSplitBlock > kRows;
  const int64_t runs = weights.runs(), chunks = weights.chunks();
  if (positions > kRows) {
    is_wide ? Multiply<2, 2, kHasLow>(source, tiles, runs, chunks, sums)
            : Multiply<2, 1, kHasLow>(source, tiles, runs, chunks, sums);
  } else {
    is_wide ? Multiply<1, 2, kHasLow>(source, tiles, runs, chunks, sums)
            : Multiply<1, 1, kHasLow>(source, tiles, runs, chunks, sums);
  }
}

PERMAFROST_AMX inline void WriteRow(const float* sums, const float* bias, __m512 least, __m512 most, __mmask16 first,
                                    __mmask16 second, float* to) {
  const __m512 a = _mm512_add_ps(_mm512_loadu_ps(sums), _mm512_loadu_ps(bias));
  const __m512 b = _mm512_add_ps(_mm512_loadu_ps(sums + kRows), _mm512_loadu_ps(bias + kRows));
  _mm512_mask_storeu_ps(to, first, _mm512_min_ps(_mm512_max_ps(a, least), most));
  _mm512_mask_storeu_ps(to + kRows, second, _mm512_min_ps(_mm512_max_ps(b, least), most));
}

PERMAFROST_AMX void WriteRows(const float* sums, int64_t rows, int64_t wanted, const float* bias, float least,
                              float most, float* to, int64_t to_step) {
  const auto mask = static_cast<uint32_t>((uint64_t{1} << wanted) - 1);
  for (int64_t row = 0; row < rows; ++row, sums += kSplitBlock, to += to_step) {
    WriteRow(sums, bias, _mm512_set1_ps(least), _mm512_set1_ps(most), static_cast<__mmask16>(mask),
             static_cast<__mmask16>(mask >> kRows), to);
  }
}

PERMAFROST_AMX void SplitWithMask(__mmask16 mask, const float* from, uint16_t* high, uint16_t* low) {
  const __m512 value = _mm512_maskz_loadu_ps(mask, from);
  const __m256bh nearest = _mm512_cvtneps_pbh(value);
  const __m512 rest = _mm512_sub_ps(value, _mm512_cvtpbh_ps(nearest));
  _mm256_mask_storeu_epi16(high, mask, (__m256i)nearest);
  _mm256_mask_storeu_epi16(low, mask, (__m256i)_mm512_cvtneps_pbh(rest));
}

PERMAFROST_AMX void SplitAll(int64_t count, const float* from, uint16_t* high, uint16_t* low) {
  int64_t i = 0;
  for (; i + 16 <= count; i += 16) SplitWithMask(0xffff, from + i, high + i, low + i);
  if (i < count) SplitWithMask(static_cast<__mmask16>((1u << (count - i)) - 1), from + i, high + i, low + i);
}

TileSetup FullTiles() {
  TileSetup setup;
  for (int tile = 0; tile < 8; ++tile) {
    setup.row_bytes[tile] = 64;
    setup.rows[tile] = kRows;
  }
  return setup;
}

PERMAFROST_AMX void SetUp() {
  static const TileSetup setup = FullTiles();
  // GCC assumes that the instruction reads only a pointer's worth of the setup.
  asm volatile("" : : "m"(setup));
  _tile_loadconfig(&setup);
}

PERMAFROST_AMX void TearDown() { _tile_release(); }

}  // namespace

bool HasSplitProducts() {
  static const bool has = [] {
    const auto wanted = static_cast<unsigned>(dnnl::cpu_isa::avx512_core_amx);
    return (static_cast<unsigned>(dnnl::get_effective_cpu_isa()) & wanted) == wanted && AsksForTiles();
  }();
  return has;
}

void SplitFloats(int64_t count, const float* from, uint16_t* high, uint16_t* low) { SplitAll(count, from, high, low); }

void WriteSums(const float* sums, int64_t rows, int64_t wanted, const float* bias, float least, float most, float* to,
               int64_t to_step) {
  WriteRows(sums, rows, wanted, bias, least, most, to, to_step);
}

SplitUnits::SplitUnits() { SetUp(); }
SplitUnits::~SplitUnits() { TearDown(); }

void MultiplySplit(const SplitSource& source, const SplitWeights& weights, int64_t block, int64_t positions,
                   float* sums) {
  source.low != nullptr ? MultiplyBlock<true>(source, weights, block, positions, sums)
                        : MultiplyBlock<false>(source, weights, block, positions, sums);
}

#else

bool HasSplitProducts() { return false; }
void SplitFloats(int64_t, const float*, uint16_t*, uint16_t*) {}
void WriteSums(const float*, int64_t, int64_t, const float*, float, float, float*, int64_t) {}
SplitUnits::SplitUnits() = default;
SplitUnits::~SplitUnits() = default;
void MultiplySplit(const SplitSource&, const SplitWeights&, int64_t, int64_t, float*) {}

#endif

}  // namespace onednn
}  // namespace permafrost
