// The simulated processor of the dsp_int8 delegate: an accelerator with integers only, and with a small local memory
// that all arithmetic reads and writes.
//
// | part | model |
// |---|---|
// | local memory | 1 MB; two buffers of each kind, so that data is moved while the other buffers are computed |
// | DMA | 8 bytes per cycle between external and local memory, and 64 cycles to start a block of equal rows |
// | matrix unit | 16 x 16 products per cycle: 16 input channels with weights of 16 output channels; 32-bit sums |
// | vector unit | 16 codes per cycle: one tap of a depthwise convolution or pooling, one rescaling, one sum |
//
// A part of 16 channels costs as much as 16. Tile i of an operator overlaps the load of tile i + 1 and the store of
// tile i - 1; the first load and the last store are not hidden, and operators do not overlap. The figures are not those
// of a product: 256 products per cycle and 8 bytes per cycle are common sizes of such parts.
//
// The functions also count. With `local` NULL they only count, so the cycles of a program are known before it runs.
#ifndef PERMAFROST_EXAMPLES_DSP_INT8_MACHINE_H_
#define PERMAFROST_EXAMPLES_DSP_INT8_MACHINE_H_

#include <stddef.h>
#include <stdint.h>

enum {
  DSP_LOCAL_BYTES = 1 << 20,
  DSP_LANES = 16,             // Channels or codes that one instruction computes.
  DSP_DMA_BYTES = 8,          // Per cycle.
  DSP_DMA_START_CYCLES = 64,  // Per block.
  DSP_MEGAHERTZ = 1000        // For the time that --explain shows.
};

typedef struct dsp_counts {
  uint64_t macs;       // Products of weights and codes, including taps outside of an image.
  uint64_t dma_bytes;  // Between external and local memory, both ways.
  uint64_t cycles;
} dsp_counts;

typedef struct dsp_machine {
  int8_t* local;  // DSP_LOCAL_BYTES, or NULL: count only.
  dsp_counts counts;
  // Cycles of the current tile, of the one before, and of the store before that.
  uint64_t load, compute, store;
  uint64_t last_compute, last_store, earlier_store;
} dsp_machine;

// Starts an operator.
void dsp_begin_operator(dsp_machine* machine);
// Moves `rows` rows between external memory and local memory, where they lie without gaps. To be called before
// dsp_computed of the same tile.
void dsp_load(dsp_machine* machine, size_t local_offset, const void* from, uint64_t rows, uint64_t row_bytes,
              uint64_t from_stride);
// Adds the cycles and the products of the current tile.
void dsp_computed(dsp_machine* machine, uint64_t cycles, uint64_t macs);
// Moves the results of the current tile, and ends it.
void dsp_store(dsp_machine* machine, void* to, size_t local_offset, uint64_t rows, uint64_t row_bytes,
               uint64_t to_stride);
void dsp_end_tile(dsp_machine* machine);
void dsp_end_operator(dsp_machine* machine);

// A positive factor as integers. Two forms: multiplier / 2^31 * 2^shift with a multiplier of 31 bits, and mantissa *
// 2^exponent with all 53 bits of a double.
typedef struct dsp_factor {
  int32_t multiplier, shift;
  uint64_t mantissa;
  int32_t exponent;
} dsp_factor;

// Ways to round a product, as permafrost's attribute `rounding` names them.
typedef enum dsp_rounding { DSP_TWICE, DSP_ONCE, DSP_EXACT } dsp_rounding;

// Converts a factor when a program is compiled. The processor has no floats, so this runs on the host.
dsp_factor dsp_factor_of(double factor);
// Returns x * factor as the rescaling unit rounds it: twice (a doubled high product, then a shift, halves away from
// zero), once (halves up), or the integer that is nearest to the product of doubles (halves away from zero). The result
// of DSP_EXACT is limited to 32 bits.
int32_t dsp_rescale(int32_t x, const dsp_factor* factor, dsp_rounding rounding);

#endif  // PERMAFROST_EXAMPLES_DSP_INT8_MACHINE_H_
