// The operators of the dsp_int8 delegate: how a node becomes one, what is refused, and the tiles that it runs in.
//
// An operator refers to external memory by the addresses that the caller passes to dsp_run_operator. It owns its packed
// weights and factors; dsp_free_operator frees them.
#ifndef PERMAFROST_EXAMPLES_DSP_INT8_OPERATORS_H_
#define PERMAFROST_EXAMPLES_DSP_INT8_OPERATORS_H_

#include "machine.h"
#include "permafrost_delegate.h"

enum { DSP_MOST_INPUTS = 16 };

typedef enum dsp_kind {
  DSP_CONVOLUTION,  // Matrix products, too: an image of one line.
  DSP_DEPTHWISE,
  DSP_AVERAGE_POOL,
  DSP_MAX_POOL,
  DSP_ADD,  // And Sub.
  DSP_MUL,
  DSP_MEAN,
  DSP_CONCAT,
  DSP_VIEW  // The result has the codes of the input.
} dsp_kind;

// One spatial axis of a window.
typedef struct dsp_axis {
  int64_t input, output, taps, stride, dilation, pad;
} dsp_axis;

// Constants of an output channel, as they lie in external and local memory.
typedef struct dsp_channel {
  dsp_factor factor;
  int32_t bias;
} dsp_channel;

// Sizes of the tiles of an operator with a window.
typedef struct dsp_tiling {
  int64_t rows, columns, channels;  // Of the output.
  int weights_stay;                 // Weights of a tile's channels are loaded once, and images again for each of them.
  int64_t patch_bytes, weight_bytes, output_bytes;  // Of one buffer each, aligned.
} dsp_tiling;

typedef struct dsp_operator {
  dsp_kind kind;
  char name[96];
  int32_t num_inputs;               // Inputs with codes that are no weights.
  int32_t inputs[DSP_MOST_INPUTS];  // Tensors of the partition.
  int32_t output;

  // Windows. A convolution's filter is packed as [output][row][column][input], a depthwise one as
  // [row][column][output].
  int64_t batch, input_channels, output_channels, group_inputs;
  dsp_axis y, x;
  int8_t* packed;  // Owned; NULL if `filter` is the constant itself.
  const int8_t* filter;
  dsp_channel* channels;  // Owned. One for each output channel.
  uint64_t owned_bytes;
  dsp_tiling tiling;

  // Rows: DSP_MEAN reduces [outer, count, inner]; DSP_CONCAT writes parts of rows of `inner` codes; others have `inner`
  // elements.
  int64_t outer, count, inner;
  int64_t part[DSP_MOST_INPUTS];  // For DSP_CONCAT: codes of each input in a row.
  int64_t sizes[2];               // For DSP_ADD and DSP_MUL: elements of the inputs, which repeat.
  int32_t sign;                   // -1 for Sub.
  dsp_factor factors[3];          // Of both inputs and of the result.

  int32_t input_zero[2], output_zero, low, high;
  dsp_rounding rounding;
} dsp_operator;

// Makes the operator of a node. Returns PERMAFROST_OK, or PERMAFROST_NO with the reason in `error`, or
// PERMAFROST_FAILED if memory is exhausted. Without `packs` the operator cannot run: its weights are not read.
int32_t dsp_make_operator(const permafrost_host* host, const permafrost_partition* partition,
                          const permafrost_node* node, int packs, dsp_operator* made, char* error, size_t error_size);
void dsp_free_operator(dsp_operator* op);

// Runs an operator, or counts its cycles. `inputs` are the addresses of op->inputs. With machine->local NULL no address
// is used.
void dsp_run_operator(const dsp_operator* op, const void* const* inputs, void* output, dsp_machine* machine);

// Writes one line about an operator: shapes, tiles and counts.
void dsp_describe_operator(const dsp_operator* op, const dsp_counts* counts, char* text, size_t size);

#endif  // PERMAFROST_EXAMPLES_DSP_INT8_OPERATORS_H_
