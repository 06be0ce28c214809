// Implements the simulated processor: DMA, the overlap of moving and computing, and the rescaling unit.
#include "machine.h"

#include <string.h>

static uint64_t larger(uint64_t a, uint64_t b) { return a > b ? a : b; }

static uint64_t move_cycles(uint64_t bytes) {
  return DSP_DMA_START_CYCLES + (bytes + DSP_DMA_BYTES - 1) / DSP_DMA_BYTES;
}

void dsp_begin_operator(dsp_machine* machine) {
  machine->load = machine->compute = machine->store = 0;
  machine->last_compute = machine->last_store = machine->earlier_store = 0;
}

static void copy_rows(char* to, uint64_t to_stride, const char* from, uint64_t from_stride, uint64_t rows,
                      uint64_t row_bytes) {
  if (to_stride == row_bytes && from_stride == row_bytes) {
    memcpy(to, from, (size_t)(rows * row_bytes));
    return;
  }
  for (uint64_t i = 0; i < rows; ++i) memcpy(to + i * to_stride, from + i * from_stride, (size_t)row_bytes);
}

void dsp_load(dsp_machine* machine, size_t local_offset, const void* from, uint64_t rows, uint64_t row_bytes,
              uint64_t from_stride) {
  if (rows == 0 || row_bytes == 0) return;
  machine->load += move_cycles(rows * row_bytes);
  machine->counts.dma_bytes += rows * row_bytes;
  if (machine->local == NULL) return;
  copy_rows((char*)machine->local + local_offset, row_bytes, from, from_stride, rows, row_bytes);
}

void dsp_computed(dsp_machine* machine, uint64_t cycles, uint64_t macs) {
  machine->compute += cycles;
  machine->counts.macs += macs;
}

void dsp_store(dsp_machine* machine, void* to, size_t local_offset, uint64_t rows, uint64_t row_bytes,
               uint64_t to_stride) {
  if (rows == 0 || row_bytes == 0) return;
  machine->store += move_cycles(rows * row_bytes);
  machine->counts.dma_bytes += rows * row_bytes;
  if (machine->local == NULL) return;
  copy_rows(to, to_stride, (const char*)machine->local + local_offset, row_bytes, rows, row_bytes);
}

// While the tile before was computed, this one was loaded, and the one before that was stored.
void dsp_end_tile(dsp_machine* machine) {
  machine->counts.cycles += larger(machine->last_compute, machine->load + machine->earlier_store);
  machine->earlier_store = machine->last_store;
  machine->last_compute = machine->compute;
  machine->last_store = machine->store;
  machine->load = machine->compute = machine->store = 0;
}

// Nothing is left to load while the last tile is computed.
void dsp_end_operator(dsp_machine* machine) {
  machine->counts.cycles += larger(machine->last_compute, machine->earlier_store) + machine->last_store;
}

dsp_factor dsp_factor_of(double factor) {
  dsp_factor result = {0, 0, 0, 0};
  uint64_t bits;
  memcpy(&bits, &factor, sizeof(bits));
  const int32_t biased = (int32_t)(bits >> 52 & 0x7FF);
  if (biased == 0) return result;  // Zero, or below 2^-1022: products of 32 bits round to zero.
  result.mantissa = (bits & (((uint64_t)1 << 52) - 1)) | (uint64_t)1 << 52;
  result.exponent = biased - 1075;
  // factor = fraction * 2^shift with a fraction in [0.5, 1).
  result.shift = biased - 1022;
  uint64_t multiplier = (result.mantissa + ((uint64_t)1 << 21)) >> 22;
  if (multiplier == (uint64_t)1 << 31) {
    multiplier /= 2;
    ++result.shift;
  }
  result.multiplier = (int32_t)multiplier;
  if (result.shift < -31) result.multiplier = result.shift = 0;
  return result;
}

static int32_t limit32(int64_t x) { return x < INT32_MIN ? INT32_MIN : x > INT32_MAX ? INT32_MAX : (int32_t)x; }

static int32_t rescale_twice(int32_t x, const dsp_factor* factor) {
  const int32_t left = factor->shift > 0 ? factor->shift : 0, right = factor->shift < 0 ? -factor->shift : 0;
  const int64_t product = (int64_t)(int32_t)((uint32_t)x << left) * factor->multiplier;
  const int32_t high =
      limit32((product + (product >= 0 ? (int64_t)1 << 30 : 1 - ((int64_t)1 << 30))) / ((int64_t)1 << 31));
  const int32_t mask = (int32_t)(((int64_t)1 << right) - 1), rest = high & mask;
  return (high >> right) + (rest > (mask >> 1) + (high < 0 ? 1 : 0) ? 1 : 0);
}

static int32_t rescale_once(int32_t x, const dsp_factor* factor) {
  const int32_t shift = 31 - factor->shift;
  return limit32(((int64_t)x * factor->multiplier + ((int64_t)1 << (shift - 1))) >> shift);
}

// The product has up to 85 bits. It is rounded to 53 bits as a product of doubles is, halves to even, and then to an
// integer.
static int32_t rescale_exactly(int32_t x, const dsp_factor* factor) {
  unsigned __int128 product = (unsigned __int128)(x < 0 ? -(int64_t)x : (int64_t)x) * factor->mantissa;
  int32_t exponent = factor->exponent, extra = 0;
  while (product >> extra >= (unsigned __int128)1 << 53) ++extra;
  if (extra > 0) {
    const unsigned __int128 rest = product & (((unsigned __int128)1 << extra) - 1);
    const unsigned __int128 half = (unsigned __int128)1 << (extra - 1);
    product >>= extra;
    if (rest > half || (rest == half && (product & 1) != 0)) ++product;
    exponent += extra;
  }
  const uint64_t limit = (uint64_t)1 << 31;
  uint64_t whole = (uint64_t)product;
  if (exponent >= 0) {
    whole = whole == 0 ? 0 : exponent > 31 || whole >= limit ? limit : whole << exponent;
  } else {
    whole = exponent < -60 ? 0 : (whole + ((uint64_t)1 << (-exponent - 1))) >> -exponent;
  }
  const int64_t rounded = (int64_t)(whole > limit ? limit : whole);
  return limit32(x < 0 ? -rounded : rounded);
}

int32_t dsp_rescale(int32_t x, const dsp_factor* factor, dsp_rounding rounding) {
  if (rounding == DSP_EXACT) return rescale_exactly(x, factor);
  return rounding == DSP_ONCE ? rescale_once(x, factor) : rescale_twice(x, factor);
}
