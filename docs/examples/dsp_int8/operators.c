// Makes and runs the operators of the dsp_int8 delegate.
#include "operators.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// A tensor of more bytes is refused, so that sizes and positions fit in 64 bits by far.
static const uint64_t kMostBytes = (uint64_t)1 << 31;
// Codes that one buffer of an elementwise operator or of a copy holds: six buffers fit in local memory.
enum { kChunk = 128 << 10, kCopyChunk = 512 << 10, kMeanChunk = 256 << 10 };

static int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t larger(int64_t a, int64_t b) { return a > b ? a : b; }
static int64_t divide_up(int64_t a, int64_t b) { return (a + b - 1) / b; }
static int64_t lanes(int64_t count) { return divide_up(count, DSP_LANES); }
static int64_t align(int64_t bytes) { return (bytes + 63) / 64 * 64; }

// --- Reading a node ------------------------------------------------------------------------------------------------

typedef struct reader {
  const permafrost_host* host;
  const permafrost_partition* partition;
  const permafrost_node* node;
  int packs;
  dsp_operator* op;
  char* error;
  size_t error_size;
} reader;

static int32_t refuse(const reader* from, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(from->error, from->error_size, format, arguments);
  va_end(arguments);
  return PERMAFROST_NO;
}

static const permafrost_tensor* input_of(const reader* from, int32_t i) {
  return from->partition->tensors[from->node->inputs[i]];
}

static const permafrost_tensor* result_of(const reader* from) {
  return from->partition->tensors[from->node->outputs[0]];
}

static int is(const char* a, const char* b) { return strcmp(a, b) == 0; }

// Reads a short string attribute; "" if the node has none.
static void read_string(const reader* from, const char* name, char* value, size_t size) {
  size_t length = 0;
  if (from->host->string_attr(from->node, name, value, size, &length) != PERMAFROST_OK || length >= size) *value = '\0';
}

static int32_t require_codes(const reader* from, const permafrost_tensor* tensor, const char* role) {
  if (tensor->dtype == PERMAFROST_FLOAT) return refuse(from, "has no float: %s is of floats", role);
  if (tensor->dtype != PERMAFROST_INT8)
    return refuse(from, "computes codes of int8 only: %s has type %d", role, tensor->dtype);
  if (tensor->num_bytes == 0) return refuse(from, "%s is empty", role);
  if (tensor->num_bytes > kMostBytes) return refuse(from, "%s has more than 2^31 codes", role);
  return PERMAFROST_OK;
}

// Reads the scale of a tensor that has one.
static int32_t read_scale(const reader* from, const permafrost_tensor* tensor, const char* role, float* scale,
                          int32_t* zero_point) {
  if (!PERMAFROST_HAS(tensor, quantization))
    return refuse(from, "needs version 1.1 of the interface, which has scales");
  if (tensor->quantization == NULL) return refuse(from, "%s has no scale", role);
  if (tensor->quantization->num_scales != 1) return refuse(from, "%s has a scale for each slice", role);
  *scale = tensor->quantization->scales[0];
  *zero_point = tensor->quantization->zero_points[0];
  return PERMAFROST_OK;
}

static int32_t code_of(float limit, float scale, int32_t zero_point) {
  const double units = limit / scale;
  if (units > 1000) return 127;
  if (units < -1000) return -128;
  const int32_t code = (int32_t)(units < 0 ? units - 0.5 : units + 0.5) + zero_point;
  return (int32_t)larger(-128, smaller(code, 127));
}

// Sets the codes that remain after the activation, and the zero point of the result.
static int32_t read_result(const reader* from, float* scale) {
  dsp_operator* op = from->op;
  const int32_t status = read_scale(from, result_of(from), "the result", scale, &op->output_zero);
  if (status != PERMAFROST_OK) return status;
  char activation[24];
  read_string(from, "activation", activation, sizeof(activation));
  op->low = -128;
  op->high = 127;
  if (is(activation, "RELU") || is(activation, "RELU6")) op->low = code_of(0, *scale, op->output_zero);
  if (is(activation, "RELU6")) op->high = code_of(6, *scale, op->output_zero);
  if (is(activation, "RELU_N1_TO_1")) {
    op->low = code_of(-1, *scale, op->output_zero);
    op->high = code_of(1, *scale, op->output_zero);
  }
  if (op->low > op->high) return refuse(from, "no code remains after the activation");
  return PERMAFROST_OK;
}

static int32_t read_rounding(const reader* from, int allows_exact) {
  char rounding[16];
  read_string(from, "rounding", rounding, sizeof(rounding));
  if (is(rounding, "twice")) {
    from->op->rounding = DSP_TWICE;
  } else if (is(rounding, "once")) {
    from->op->rounding = DSP_ONCE;
  } else if (is(rounding, "exact") && allows_exact) {
    from->op->rounding = DSP_EXACT;
  } else {
    return refuse(from, "has no rounding '%s'", rounding);
  }
  return PERMAFROST_OK;
}

// Reads strides, dilations and padding of a window whose taps and whose sizes of images are set.
static int32_t read_window(const reader* from, int has_dilations) {
  const permafrost_host* host = from->host;
  int64_t strides[4] = {1, 1, 1, 1}, dilations[4] = {1, 1, 1, 1}, pads[8] = {0};
  size_t count = 0;
  if (host->int_list_attr(from->node, "strides", strides, 4, &count) != PERMAFROST_OK || count != 4) {
    return refuse(from, "its strides are malformed");
  }
  if (has_dilations && host->int_list_attr(from->node, "dilations", dilations, 4, &count) == PERMAFROST_OK &&
      count != 4) {
    return refuse(from, "its dilations are malformed");
  }
  char padding[16];
  read_string(from, "padding", padding, sizeof(padding));
  const int is_explicit = is(padding, "EXPLICIT");
  if (is_explicit &&
      (host->int_list_attr(from->node, "explicit_paddings", pads, 8, &count) != PERMAFROST_OK || count != 8)) {
    return refuse(from, "its paddings are malformed");
  }
  dsp_axis* axes[2] = {&from->op->y, &from->op->x};
  for (int i = 0; i < 2; ++i) {
    dsp_axis* axis = axes[i];
    axis->stride = strides[1 + i];
    axis->dilation = dilations[1 + i];
    // 2^20: products with a position stay far below 2^63.
    const int64_t most = 1 << 20;
    if (axis->stride < 1 || axis->stride > most || axis->dilation < 1 || axis->dilation > most || axis->taps > most) {
      return refuse(from, "its window is too large");
    }
    axis->pad = pads[2 + 2 * i];
    if (is(padding, "SAME")) {
      const int64_t span = (axis->output - 1) * axis->stride + (axis->taps - 1) * axis->dilation + 1;
      axis->pad = larger(span - axis->input, 0) / 2;
    } else if (!is_explicit && !is(padding, "VALID")) {
      return refuse(from, "its padding is '%s'", padding);
    }
    if (axis->pad < 0 || axis->pad > most) return refuse(from, "its padding is too large");
  }
  return PERMAFROST_OK;
}

static int32_t read_image(const reader* from) {
  dsp_operator* op = from->op;
  const permafrost_tensor *input = input_of(from, 0), *result = result_of(from);
  if (input->rank != 4 || result->rank != 4) return refuse(from, "computes images only");
  op->batch = input->dims[0];
  op->y.input = input->dims[1];
  op->x.input = input->dims[2];
  op->input_channels = input->dims[3];
  op->y.output = result->dims[1];
  op->x.output = result->dims[2];
  op->output_channels = result->dims[3];
  return PERMAFROST_OK;
}

// --- Tiles ---------------------------------------------------------------------------------------------------------

static int has_weights(const dsp_operator* op) { return op->kind == DSP_CONVOLUTION || op->kind == DSP_DEPTHWISE; }

// Output channels of each input channel; 0 for a convolution, whose outputs need all inputs.
static int64_t outputs_of_channel(const dsp_operator* op) {
  return op->kind == DSP_CONVOLUTION ? 0 : op->output_channels / op->input_channels;
}

static int64_t taps_of(const dsp_operator* op) { return op->y.taps * op->x.taps; }

// Weights of one output channel.
static int64_t depth_of(const dsp_operator* op) {
  return taps_of(op) * (op->kind == DSP_CONVOLUTION ? op->group_inputs : 1);
}

static int64_t patch_size(const dsp_axis* axis, int64_t outputs) {
  return smaller(axis->input, (outputs - 1) * axis->stride + (axis->taps - 1) * axis->dilation + 1);
}

// Sets the sizes of the buffers of a tile, and returns whether two of each fit in local memory.
static int set_buffers(const dsp_operator* op, dsp_tiling* tiling) {
  const int64_t each = outputs_of_channel(op);
  const int64_t inputs = each == 0 ? op->input_channels : tiling->channels / each;
  const int64_t pixels = patch_size(&op->y, tiling->rows) * patch_size(&op->x, tiling->columns);
  if (pixels > DSP_LOCAL_BYTES || inputs > DSP_LOCAL_BYTES || depth_of(op) > DSP_LOCAL_BYTES ||
      tiling->channels > DSP_LOCAL_BYTES || tiling->rows * tiling->columns > DSP_LOCAL_BYTES) {
    return 0;
  }
  tiling->patch_bytes = align(pixels * inputs);
  tiling->weight_bytes =
      has_weights(op) ? align(tiling->channels * depth_of(op)) + align(tiling->channels * (int64_t)sizeof(dsp_channel))
                      : 0;
  tiling->output_bytes = align(tiling->rows * tiling->columns * tiling->channels);
  return 2 * (tiling->patch_bytes + tiling->weight_bytes + tiling->output_bytes) <= DSP_LOCAL_BYTES;
}

// Bytes that are loaded for all tiles.
static double traffic(const dsp_operator* op, const dsp_tiling* tiling) {
  const double areas = (double)op->batch * (double)divide_up(op->y.output, tiling->rows) *
                       (double)divide_up(op->x.output, tiling->columns);
  const double parts = (double)divide_up(op->output_channels, tiling->channels);
  const double images = areas * (double)tiling->patch_bytes, weights = parts * (double)tiling->weight_bytes;
  if (outputs_of_channel(op) != 0) return images * parts + weights;
  if (tiling->weights_stay) return (areas == 1 ? images : images * parts) + weights;
  return images + (parts == 1 ? weights : weights * areas);
}

// Selects the tiles that load the fewest bytes; of equal ones the largest. Tries halves of each size.
static int32_t plan_tiles(const reader* from) {
  dsp_operator* op = from->op;
  const int64_t unit = larger(outputs_of_channel(op), 1);
  double best = 0;
  for (int64_t units = op->output_channels / unit;;
       units = units > DSP_LANES ? divide_up(units, 2 * DSP_LANES) * DSP_LANES : units / 2) {
    for (int64_t rows = op->y.output;; rows = divide_up(rows, 2)) {
      for (int64_t columns = op->x.output;; columns = divide_up(columns, 2)) {
        dsp_tiling tiling = {rows, columns, units * unit, 0, 0, 0, 0};
        if (set_buffers(op, &tiling)) {
          for (int stay = outputs_of_channel(op) != 0; stay < 2; ++stay) {
            tiling.weights_stay = stay;
            const double bytes = traffic(op, &tiling);
            if (op->tiling.rows == 0 || bytes < best) {
              op->tiling = tiling;
              best = bytes;
            }
          }
        }
        if (columns == 1 || rows > 1) break;
      }
      if (rows == 1) break;
    }
    if (units == 1) break;
  }
  if (op->tiling.rows != 0) return PERMAFROST_OK;
  return refuse(from, "one result needs more than the %d KB of local memory that one buffer has",
                DSP_LOCAL_BYTES / 2048);
}

// --- Making operators ----------------------------------------------------------------------------------------------

// Copies a filter with these distances between neighbours to [output][row][column][input].
static int pack_filter(dsp_operator* op, int64_t f_output, int64_t f_row, int64_t f_column, int64_t f_input) {
  op->owned_bytes += (uint64_t)(op->output_channels * depth_of(op));
  op->packed = malloc((size_t)(op->output_channels * depth_of(op)));
  if (op->packed == NULL) return 0;
  int8_t* to = op->packed;
  for (int64_t o = 0; o < op->output_channels; ++o) {
    for (int64_t y = 0; y < op->y.taps; ++y) {
      for (int64_t x = 0; x < op->x.taps; ++x) {
        for (int64_t i = 0; i < op->group_inputs; ++i) {
          *to++ = op->filter[o * f_output + y * f_row + x * f_column + i * f_input];
        }
      }
    }
  }
  op->filter = op->packed;
  return 1;
}

// Reads scales, bias and rounding of an operator with weights, whose sizes are set.
static int32_t read_weighting(const reader* from) {
  dsp_operator* op = from->op;
  const permafrost_tensor* filter = input_of(from, 1);
  const permafrost_tensor* bias = from->node->num_inputs > 2 ? input_of(from, 2) : NULL;
  int32_t status = require_codes(from, filter, "the filter");
  if (status != PERMAFROST_OK) return status;
  if (!filter->is_constant || (bias != NULL && !bias->is_constant)) return refuse(from, "its weights are computed");
  if (bias != NULL && (bias->dtype != PERMAFROST_INT32 || bias->num_bytes != 4 * (uint64_t)op->output_channels)) {
    return refuse(from, "adds a bias of int32 for each channel only");
  }
  float input_scale, output_scale;
  if ((status = read_scale(from, input_of(from, 0), "the input", &input_scale, &op->input_zero[0])) != PERMAFROST_OK)
    return status;
  if ((status = read_result(from, &output_scale)) != PERMAFROST_OK) return status;
  if ((status = read_rounding(from, 1)) != PERMAFROST_OK) return status;
  const permafrost_quantization* scales = filter->quantization;
  if (scales == NULL || (scales->num_scales != 1 && scales->num_scales != op->output_channels)) {
    return refuse(from, "the filter has no scale for each channel");
  }
  for (int32_t i = 0; i < scales->num_scales; ++i) {
    if (scales->zero_points[i] != 0) return refuse(from, "the filter has a zero point");
  }
  if ((status = plan_tiles(from)) != PERMAFROST_OK) return status;
  if (!from->packs) return PERMAFROST_OK;
  op->owned_bytes += (uint64_t)op->output_channels * sizeof(dsp_channel);
  op->channels = calloc((size_t)op->output_channels, sizeof(dsp_channel));
  op->filter = from->host->constant_data(filter);
  const int32_t* sums = bias == NULL ? NULL : from->host->constant_data(bias);
  if (op->channels == NULL || op->filter == NULL || (bias != NULL && sums == NULL)) return PERMAFROST_FAILED;
  for (int64_t c = 0; c < op->output_channels; ++c) {
    const double product = (double)input_scale * (double)scales->scales[scales->num_scales == 1 ? 0 : c];
    op->channels[c].factor = dsp_factor_of(product / (double)output_scale);
    if (sums != NULL) op->channels[c].bias = sums[c];
  }
  return PERMAFROST_OK;
}

static int32_t make_convolution(const reader* from) {
  dsp_operator* op = from->op;
  op->kind = DSP_CONVOLUTION;
  int32_t status = read_image(from);
  if (status != PERMAFROST_OK) return status;
  const permafrost_tensor* filter = input_of(from, 1);
  if (filter->rank != 4) return refuse(from, "the filter has rank %d", filter->rank);
  char format[8];
  read_string(from, "filter_format", format, sizeof(format));
  const int is_first = is(format, "OHWI");
  const int64_t* dims = filter->dims + (is_first ? 1 : 0);
  op->y.taps = dims[0];
  op->x.taps = dims[1];
  op->group_inputs = dims[2];
  if (op->group_inputs < 1 || op->input_channels % op->group_inputs != 0) return refuse(from, "its groups are uneven");
  if ((status = read_window(from, 1)) != PERMAFROST_OK) return status;
  if ((status = read_weighting(from)) != PERMAFROST_OK || is_first || !from->packs) return status;
  const int64_t o = op->output_channels, i = op->group_inputs;
  return pack_filter(op, 1, op->x.taps * i * o, i * o, o) ? PERMAFROST_OK : PERMAFROST_FAILED;
}

static int32_t make_depthwise(const reader* from) {
  dsp_operator* op = from->op;
  op->kind = DSP_DEPTHWISE;
  int32_t status = read_image(from);
  if (status != PERMAFROST_OK) return status;
  const permafrost_tensor* filter = input_of(from, 1);
  if (filter->rank != 4) return refuse(from, "the filter has rank %d", filter->rank);
  op->y.taps = filter->dims[0];
  op->x.taps = filter->dims[1];
  if ((status = read_window(from, 1)) != PERMAFROST_OK) return status;
  return read_weighting(from);
}

static int32_t make_product(const reader* from) {
  dsp_operator* op = from->op;
  op->kind = DSP_CONVOLUTION;
  const permafrost_tensor *input = input_of(from, 0), *filter = input_of(from, 1);
  if (input->rank != 2 || filter->rank != 2) return refuse(from, "computes products of matrices only");
  int32_t transposed = 0;
  from->host->bool_attr(from->node, "transpose_b", &transposed);
  const dsp_axis one = {1, 1, 1, 1, 1, 0};
  op->batch = 1;
  op->y = op->x = one;
  op->x.input = op->x.output = input->dims[0];
  op->input_channels = op->group_inputs = input->dims[1];
  op->output_channels = filter->dims[transposed ? 0 : 1];
  const int32_t status = read_weighting(from);
  if (status != PERMAFROST_OK || transposed || !from->packs) return status;
  return pack_filter(op, 1, 0, 0, op->output_channels) ? PERMAFROST_OK : PERMAFROST_FAILED;
}

static int32_t make_pool(const reader* from, dsp_kind kind) {
  dsp_operator* op = from->op;
  op->kind = kind;
  int32_t status = read_image(from);
  if (status != PERMAFROST_OK) return status;
  int64_t ksize[4] = {0};
  size_t count = 0;
  char format[8];
  read_string(from, "data_format", format, sizeof(format));
  if (is(format, "NCHW")) return refuse(from, "computes images in NHWC only");
  if (from->host->int_list_attr(from->node, "ksize", ksize, 4, &count) != PERMAFROST_OK || count != 4 ||
      ksize[0] != 1 || ksize[3] != 1 || ksize[1] < 1 || ksize[2] < 1) {
    return refuse(from, "its window is not two-dimensional");
  }
  op->y.taps = ksize[1];
  op->x.taps = ksize[2];
  op->group_inputs = 1;
  if ((status = read_window(from, 0)) != PERMAFROST_OK) return status;
  op->low = -128;
  op->high = 127;
  float scale;
  if (kind == DSP_AVERAGE_POOL && (status = read_result(from, &scale)) != PERMAFROST_OK) return status;
  return plan_tiles(from);
}

// Returns whether the operand is one element, or has the last dimensions of the result.
static int repeats_in(const permafrost_tensor* operand, const permafrost_tensor* result) {
  if (operand->num_bytes == 1) return 1;
  int32_t first = 0;
  while (first < operand->rank && operand->dims[first] == 1) ++first;
  const int32_t count = operand->rank - first;
  if (count > result->rank) return 0;
  return memcmp(operand->dims + first, result->dims + (result->rank - count), (size_t)count * sizeof(int64_t)) == 0;
}

static int32_t make_binary(const reader* from) {
  dsp_operator* op = from->op;
  char function[24];
  read_string(from, "function", function, sizeof(function));
  op->kind = is(function, "Mul") ? DSP_MUL : DSP_ADD;
  op->sign = is(function, "Sub") ? -1 : 1;
  if (op->kind == DSP_ADD && op->sign > 0 && !is(function, "Add"))
    return refuse(from, "has no unit for '%s'", function);
  int32_t status = read_rounding(from, 0);
  if (status != PERMAFROST_OK) return status;
  if (op->rounding != DSP_TWICE) return refuse(from, "rounds sums and products of codes twice only");
  float scales[2], output_scale;
  op->num_inputs = 2;
  op->inner = (int64_t)result_of(from)->num_bytes;
  for (int32_t i = 0; i < 2; ++i) {
    const permafrost_tensor* input = input_of(from, i);
    if ((status = require_codes(from, input, "an input")) != PERMAFROST_OK) return status;
    if ((status = read_scale(from, input, "an input", &scales[i], &op->input_zero[i])) != PERMAFROST_OK) return status;
    op->inputs[i] = from->node->inputs[i];
    op->sizes[i] = (int64_t)input->num_bytes;
    if (!repeats_in(input, result_of(from)) || (op->sizes[i] < op->inner && op->sizes[i] > kChunk)) {
      return refuse(from, "repeats an operand along the first dimensions only");
    }
  }
  if (op->sizes[0] < op->inner && op->sizes[1] < op->inner) return refuse(from, "repeats one operand only");
  if ((status = read_result(from, &output_scale)) != PERMAFROST_OK) return status;
  if (op->kind == DSP_MUL) {
    op->factors[2] = dsp_factor_of((double)(scales[0] * scales[1] / output_scale));
  } else {
    // Sums have 20 fraction bits; both operands are divided by twice the larger scale, so that the sum does not
    // overflow.
    const double twice = 2.0 * (double)(scales[0] > scales[1] ? scales[0] : scales[1]);
    for (int i = 0; i < 2; ++i) op->factors[i] = dsp_factor_of((double)scales[i] / twice);
    op->factors[2] = dsp_factor_of(twice / (double)((float)(1 << 20) * output_scale));
  }
  return PERMAFROST_OK;
}

static int32_t read_constant_ints(const reader* from, int32_t input, int64_t* values, int32_t capacity,
                                  int32_t* count) {
  const permafrost_tensor* tensor = input_of(from, input);
  const size_t size = tensor->dtype == PERMAFROST_INT64 ? 8 : 4;
  if (!tensor->is_constant || (tensor->dtype != PERMAFROST_INT64 && tensor->dtype != PERMAFROST_INT32) ||
      tensor->num_bytes / size > (uint64_t)capacity) {
    return refuse(from, "its axes are not a few constants");
  }
  *count = (int32_t)(tensor->num_bytes / size);
  const void* data = from->host->constant_data(tensor);
  if (*count > 0 && data == NULL) return PERMAFROST_FAILED;
  for (int32_t i = 0; i < *count; ++i) values[i] = size == 8 ? ((const int64_t*)data)[i] : ((const int32_t*)data)[i];
  return PERMAFROST_OK;
}

static int32_t make_mean(const reader* from) {
  dsp_operator* op = from->op;
  op->kind = DSP_MEAN;
  char function[8];
  read_string(from, "function", function, sizeof(function));
  if (!is(function, "Mean")) return refuse(from, "has no unit for '%s'", function);
  const permafrost_tensor* input = input_of(from, 0);
  int64_t axes[8];
  int32_t count = 0, status = read_constant_ints(from, 1, axes, 8, &count);
  if (status != PERMAFROST_OK) return status;
  int is_reduced[8] = {0};
  if (input->rank > 8) return refuse(from, "the input has rank %d", input->rank);
  for (int32_t i = 0; i < count; ++i) {
    const int64_t axis = axes[i] < 0 ? axes[i] + input->rank : axes[i];
    if (axis < 0 || axis >= input->rank) return refuse(from, "its axes are out of range");
    is_reduced[axis] = 1;
  }
  // [outer, count, inner]: dimensions of size 1 may be on either side.
  op->outer = op->count = op->inner = 1;
  int state = 0;
  for (int32_t d = 0; d < input->rank; ++d) {
    if (input->dims[d] == 1) continue;
    if (is_reduced[d] && state == 0) state = 1;
    if (!is_reduced[d] && state == 1) state = 2;
    if (is_reduced[d] && state == 2) return refuse(from, "reduces adjacent axes only");
    *(state == 0 ? &op->outer : state == 1 ? &op->count : &op->inner) *= input->dims[d];
  }
  if (op->count > kMeanChunk) return refuse(from, "takes the mean of at most %d codes", kMeanChunk);
  float input_scale, output_scale;
  if ((status = read_scale(from, input, "the input", &input_scale, &op->input_zero[0])) != PERMAFROST_OK) return status;
  if ((status = read_result(from, &output_scale)) != PERMAFROST_OK) return status;
  if ((status = read_rounding(from, 0)) != PERMAFROST_OK) return status;
  // The division by the count is part of the multiplier, which keeps as many bits as fit in 64.
  dsp_factor factor = dsp_factor_of((double)input_scale / (double)output_scale);
  int32_t bits = 0;
  while ((int64_t)2 << bits <= op->count) ++bits;
  const int32_t shift = (int32_t)smaller(smaller(bits, 32), 31 + factor.shift);
  factor.multiplier = (int32_t)(((int64_t)factor.multiplier << shift) / op->count);
  factor.shift -= shift;
  op->factors[0] = factor;
  return PERMAFROST_OK;
}

static int32_t make_concat(const reader* from) {
  dsp_operator* op = from->op;
  op->kind = DSP_CONCAT;
  op->num_inputs = from->node->num_inputs - 1;
  if (op->num_inputs < 1 || op->num_inputs > DSP_MOST_INPUTS)
    return refuse(from, "joins at most %d tensors", DSP_MOST_INPUTS);
  int64_t axis = 0;
  int32_t count = 0;
  int32_t status = read_constant_ints(from, op->num_inputs, &axis, 1, &count);
  if (status != PERMAFROST_OK) return status;
  const permafrost_tensor* result = result_of(from);
  if (axis < 0) axis += result->rank;
  if (count != 1 || axis < 0 || axis >= result->rank) return refuse(from, "its axis is out of range");
  op->outer = 1;
  for (int64_t d = 0; d < axis; ++d) op->outer *= result->dims[d];
  op->inner = (int64_t)result->num_bytes / op->outer;
  for (int32_t i = 0; i < op->num_inputs; ++i) {
    if ((status = require_codes(from, input_of(from, i), "an input")) != PERMAFROST_OK) return status;
    op->inputs[i] = from->node->inputs[i];
    op->part[i] = (int64_t)input_of(from, i)->num_bytes / op->outer;
  }
  return PERMAFROST_OK;
}

static int is_view(const char* op) {
  return is(op, "Reshape") || is(op, "Identity") || is(op, "Squeeze") || is(op, "ExpandDims");
}

static int32_t make(const reader* from) {
  const permafrost_node* node = from->node;
  dsp_operator* op = from->op;
  for (int32_t i = 0; i < node->num_inputs; ++i) {
    if (input_of(from, i)->dtype == PERMAFROST_FLOAT) return refuse(from, "has no float: input %d is of floats", i);
  }
  if (node->num_outputs != 1 || node->num_inputs < 1) return refuse(from, "has no unit for '%s'", node->op);
  const char* units[] = {"_IntegerConv2D", "_IntegerDepthwiseConv2dNative",
                         "_IntegerMatMul", "_IntegerPool",
                         "MaxPool",        "_IntegerBinary",
                         "_IntegerReduce", "_IntegerConcat",
                         "ConcatV2"};
  int is_known = is_view(node->op);
  for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); ++i) is_known |= is(node->op, units[i]);
  if (!is_known) {
    return refuse(from, is(node->op, "_IntegerSoftmax") ? "has no unit for exponentials" : "has no unit for '%s'",
                  node->op);
  }
  int32_t status = require_codes(from, input_of(from, 0), "the input");
  if (status == PERMAFROST_OK) status = require_codes(from, result_of(from), "the result");
  if (status != PERMAFROST_OK) return status;
  op->num_inputs = 1;
  op->inputs[0] = node->inputs[0];
  op->output = node->outputs[0];
  if (is(node->op, "_IntegerConv2D")) return make_convolution(from);
  if (is(node->op, "_IntegerDepthwiseConv2dNative")) return make_depthwise(from);
  if (is(node->op, "_IntegerMatMul")) return make_product(from);
  if (is(node->op, "_IntegerPool")) return make_pool(from, DSP_AVERAGE_POOL);
  if (is(node->op, "MaxPool")) return make_pool(from, DSP_MAX_POOL);
  if (is(node->op, "_IntegerBinary")) return make_binary(from);
  if (is(node->op, "_IntegerReduce")) return make_mean(from);
  if (!is_view(node->op)) return make_concat(from);
  op->kind = DSP_VIEW;
  op->inner = (int64_t)result_of(from)->num_bytes;
  return PERMAFROST_OK;
}

int32_t dsp_make_operator(const permafrost_host* host, const permafrost_partition* partition,
                          const permafrost_node* node, int packs, dsp_operator* made, char* error, size_t error_size) {
  memset(made, 0, sizeof(*made));
  const reader from = {host, partition, node, packs, made, error, error_size};
  snprintf(made->name, sizeof(made->name), "%s", node->name);
  const int32_t status = make(&from);
  if (status == PERMAFROST_FAILED) snprintf(error, error_size, "out of memory");
  if (status != PERMAFROST_OK) dsp_free_operator(made);
  return status;
}

void dsp_free_operator(dsp_operator* op) {
  free(op->packed);
  free(op->channels);
  op->packed = NULL;
  op->channels = NULL;
}

// --- Running -------------------------------------------------------------------------------------------------------

static int8_t limited(const dsp_operator* op, int32_t x) {
  const int32_t code = (int32_t)larger(op->low - op->output_zero, smaller(x, op->high - op->output_zero));
  return (int8_t)(code + op->output_zero);
}

// A rectangle of pixels and channels of an image.
typedef struct area {
  int64_t y, x, height, width, channel, channels;
} area;

// Returns the part of the input that the outputs [first, first + count) read along an axis.
static void reach(const dsp_axis* axis, int64_t first, int64_t count, int64_t* begin, int64_t* size) {
  const int64_t low = first * axis->stride - axis->pad;
  const int64_t high = low + (count - 1) * axis->stride + (axis->taps - 1) * axis->dilation + 1;
  *begin = smaller(larger(low, 0), axis->input);
  *size = larger(smaller(high, axis->input) - *begin, 0);
}

// Computes a tile from the patch of the input that lies in local memory.
static void compute_tile(const dsp_operator* op, const area* out, const area* in, const int8_t* patch,
                         const int8_t* weights, const dsp_channel* channels, int8_t* to) {
  const int64_t each = larger(outputs_of_channel(op), 1), depth = depth_of(op);
  const int64_t group_outputs =
      op->kind == DSP_CONVOLUTION ? op->output_channels / (op->input_channels / op->group_inputs) : 1;
  const int32_t zero = op->input_zero[0];
  for (int64_t y = out->y; y < out->y + out->height; ++y) {
    for (int64_t x = out->x; x < out->x + out->width; ++x) {
      for (int64_t c = 0; c < out->channels; ++c) {
        // Sums wrap around at 32 bits.
        uint32_t sum = channels == NULL ? 0 : (uint32_t)channels[c].bias;
        int32_t count = 0, most = -128;
        for (int64_t ty = 0; ty < op->y.taps; ++ty) {
          const int64_t row = y * op->y.stride - op->y.pad + ty * op->y.dilation - in->y;
          if (row < 0 || row >= in->height) continue;
          for (int64_t tx = 0; tx < op->x.taps; ++tx) {
            const int64_t column = x * op->x.stride - op->x.pad + tx * op->x.dilation - in->x;
            if (column < 0 || column >= in->width) continue;
            const int8_t* codes = patch + (row * in->width + column) * in->channels;
            const int64_t tap = ty * op->x.taps + tx;
            if (op->kind == DSP_CONVOLUTION) {
              const int8_t* group = codes + (out->channel + c) / group_outputs * op->group_inputs;
              const int8_t* row_of_weights = weights + c * depth + tap * op->group_inputs;
              for (int64_t i = 0; i < op->group_inputs; ++i) sum += (uint32_t)((group[i] - zero) * row_of_weights[i]);
            } else if (op->kind == DSP_DEPTHWISE) {
              sum += (uint32_t)((codes[c / each] - zero) * weights[tap * out->channels + c]);
            } else {
              sum += (uint32_t)codes[c];
              most = codes[c] > most ? codes[c] : most;
              ++count;
            }
          }
        }
        if (has_weights(op)) {
          *to++ = limited(op, dsp_rescale((int32_t)sum, &channels[c].factor, op->rounding));
        } else if (op->kind == DSP_MAX_POOL) {
          *to++ = (int8_t)most;
        } else {
          const int32_t total = (int32_t)sum, pixels = count > 0 ? count : 1;
          const int32_t average = (total + (total > 0 ? pixels / 2 : -(pixels / 2))) / pixels;
          *to++ = (int8_t)larger(op->low, smaller(average, op->high));
        }
      }
    }
  }
}

static uint64_t tile_cycles(const dsp_operator* op, const area* out) {
  const int64_t pixels = out->height * out->width;
  if (op->kind != DSP_CONVOLUTION) return (uint64_t)(pixels * lanes(out->channels) * (taps_of(op) + 1));
  const int64_t groups = op->input_channels / op->group_inputs, group_outputs = op->output_channels / groups;
  const int64_t parts =
      groups == 1 ? lanes(out->channels) : divide_up(out->channels, group_outputs) * lanes(group_outputs);
  return (uint64_t)(pixels * (parts * taps_of(op) * lanes(op->group_inputs) + lanes(out->channels)));
}

// Moves an area of an image with `width` x `channels` codes in a line. With all channels a line is one row of the DMA.
static void load_area(dsp_machine* machine, size_t local, const int8_t* image, int64_t width, int64_t channels,
                      const area* part) {
  const int8_t* from = image == NULL ? NULL : image + (part->y * width + part->x) * channels + part->channel;
  if (part->channels == channels) {
    dsp_load(machine, local, from, (uint64_t)part->height, (uint64_t)(part->width * channels),
             (uint64_t)(width * channels));
    return;
  }
  for (int64_t y = 0; y < part->height; ++y) {
    dsp_load(machine, local + (size_t)(y * part->width * part->channels),
             from == NULL ? NULL : from + y * width * channels, (uint64_t)part->width, (uint64_t)part->channels,
             (uint64_t)channels);
  }
}

static void store_area(dsp_machine* machine, int8_t* image, size_t local, int64_t width, int64_t channels,
                       const area* part) {
  int8_t* to = image == NULL ? NULL : image + (part->y * width + part->x) * channels + part->channel;
  if (part->channels == channels) {
    dsp_store(machine, to, local, (uint64_t)part->height, (uint64_t)(part->width * channels),
              (uint64_t)(width * channels));
    return;
  }
  for (int64_t y = 0; y < part->height; ++y) {
    dsp_store(machine, to == NULL ? NULL : to + y * width * channels,
              local + (size_t)(y * part->width * part->channels), (uint64_t)part->width, (uint64_t)part->channels,
              (uint64_t)channels);
  }
}

static void load_weights(const dsp_operator* op, dsp_machine* machine, size_t local, int64_t first, int64_t count) {
  const int64_t depth = depth_of(op);
  if (op->kind == DSP_CONVOLUTION) {
    const int8_t* from = op->filter == NULL ? NULL : op->filter + first * depth;
    dsp_load(machine, local, from, 1, (uint64_t)(count * depth), (uint64_t)(count * depth));
  } else {
    const int8_t* from = op->filter == NULL ? NULL : op->filter + first;
    dsp_load(machine, local, from, (uint64_t)depth, (uint64_t)count, (uint64_t)op->output_channels);
  }
  const uint64_t bytes = (uint64_t)count * sizeof(dsp_channel);
  dsp_load(machine, local + (size_t)align(op->tiling.channels * depth),
           op->channels == NULL ? NULL : op->channels + first, 1, bytes, bytes);
}

// State of the buffers of an operator with a window: two of each kind, and what is in the current ones.
typedef struct buffers {
  size_t patch[2], weights[2], result[2];
  int patch_now, weights_now, result_now;
  int64_t loaded_area, loaded_part;  // -1: none.
} buffers;

static void run_tile(const dsp_operator* op, const int8_t* input, int8_t* output, const area* out, int64_t area_number,
                     buffers* now, dsp_machine* machine) {
  const int64_t each = outputs_of_channel(op);
  area in = {0, 0, 0, 0, 0, op->input_channels};
  reach(&op->y, out->y, out->height, &in.y, &in.height);
  reach(&op->x, out->x, out->width, &in.x, &in.width);
  if (each != 0) {
    in.channel = out->channel / each;
    in.channels = out->channels / each;
  }
  if (each != 0 || now->loaded_area != area_number) {
    now->patch_now = 1 - now->patch_now;
    load_area(machine, now->patch[now->patch_now], input, op->x.input, op->input_channels, &in);
    now->loaded_area = area_number;
  }
  if (has_weights(op) && now->loaded_part != out->channel) {
    now->weights_now = 1 - now->weights_now;
    load_weights(op, machine, now->weights[now->weights_now], out->channel, out->channels);
    now->loaded_part = out->channel;
  }
  now->result_now = 1 - now->result_now;
  const int64_t pixels = out->height * out->width;
  dsp_computed(machine, tile_cycles(op, out), has_weights(op) ? (uint64_t)(pixels * out->channels * depth_of(op)) : 0);
  if (machine->local != NULL) {
    const int8_t* weights = machine->local + now->weights[now->weights_now];
    const dsp_channel* channels =
        has_weights(op) ? (const dsp_channel*)(const void*)(weights + align(op->tiling.channels * depth_of(op))) : NULL;
    compute_tile(op, out, &in, machine->local + now->patch[now->patch_now], weights, channels,
                 machine->local + now->result[now->result_now]);
  }
  store_area(machine, output, now->result[now->result_now], op->x.output, op->output_channels, out);
  dsp_end_tile(machine);
}

static void run_window(const dsp_operator* op, const int8_t* input, int8_t* output, dsp_machine* machine) {
  const dsp_tiling* tiling = &op->tiling;
  buffers now = {{0, 0}, {0, 0}, {0, 0}, 0, 0, 0, -1, -1};
  size_t offset = 0;
  for (int i = 0; i < 2; ++i) {
    now.patch[i] = offset;
    now.weights[i] = now.patch[i] + (size_t)tiling->patch_bytes;
    now.result[i] = now.weights[i] + (size_t)tiling->weight_bytes;
    offset = now.result[i] + (size_t)tiling->output_bytes;
  }
  const int64_t lines = divide_up(op->y.output, tiling->rows), strips = divide_up(op->x.output, tiling->columns);
  const int64_t areas = op->batch * lines * strips, parts = divide_up(op->output_channels, tiling->channels);
  for (int64_t i = 0; i < areas * parts; ++i) {
    const int64_t number = tiling->weights_stay ? i % areas : i / parts,
                  part = tiling->weights_stay ? i / areas : i % parts;
    const int64_t image = number / (lines * strips), line = number / strips % lines, strip = number % strips;
    area out = {line * tiling->rows, strip * tiling->columns, 0, 0, part * tiling->channels, 0};
    out.height = smaller(tiling->rows, op->y.output - out.y);
    out.width = smaller(tiling->columns, op->x.output - out.x);
    out.channels = smaller(tiling->channels, op->output_channels - out.channel);
    run_tile(op, input == NULL ? NULL : input + image * op->y.input * op->x.input * op->input_channels,
             output == NULL ? NULL : output + image * op->y.output * op->x.output * op->output_channels, &out, number,
             &now, machine);
  }
}

static int8_t combine(const dsp_operator* op, int32_t a, int32_t b) {
  a -= op->input_zero[0];
  b -= op->input_zero[1];
  if (op->kind == DSP_MUL) return limited(op, dsp_rescale(a * b, &op->factors[2], DSP_TWICE));
  const int32_t first = dsp_rescale(a * (1 << 20), &op->factors[0], DSP_TWICE);
  const int32_t second = dsp_rescale(b * (1 << 20), &op->factors[1], DSP_TWICE);
  return limited(op, dsp_rescale(first + op->sign * second, &op->factors[2], DSP_TWICE));
}

static void run_binary(const dsp_operator* op, const void* const* inputs, int8_t* output, dsp_machine* machine) {
  // Whole repetitions of the smaller operand in a chunk.
  const int64_t smallest = smaller(op->sizes[0], op->sizes[1]);
  const int64_t chunk = smallest < op->inner ? kChunk / smallest * smallest : kChunk;
  for (int64_t first = 0, turn = 0; first < op->inner; first += chunk, turn = 1 - turn) {
    const int64_t count = smaller(chunk, op->inner - first);
    size_t local[3];
    for (int i = 0; i < 3; ++i) local[i] = (size_t)((2 * i + turn) * kChunk);
    for (int i = 0; i < 2; ++i) {
      const int repeats = op->sizes[i] < op->inner;
      if (repeats) local[i] = (size_t)(2 * i * kChunk);
      if (repeats && first > 0) continue;
      const uint64_t bytes = (uint64_t)(repeats ? op->sizes[i] : count);
      dsp_load(machine, local[i], inputs == NULL ? NULL : (const int8_t*)inputs[i] + first, 1, bytes, bytes);
    }
    // A sum is three rescalings and an addition, a product one rescaling and a multiplication.
    dsp_computed(machine, (uint64_t)(lanes(count) * (op->kind == DSP_MUL ? 2 : 4)), 0);
    if (machine->local != NULL) {
      const int8_t *a = machine->local + local[0], *b = machine->local + local[1];
      for (int64_t i = 0; i < count; ++i) {
        machine->local[local[2] + (size_t)i] = combine(op, a[i % op->sizes[0]], b[i % op->sizes[1]]);
      }
    }
    dsp_store(machine, output == NULL ? NULL : output + first, local[2], 1, (uint64_t)count, (uint64_t)count);
    dsp_end_tile(machine);
  }
}

static void run_mean(const dsp_operator* op, const int8_t* input, int8_t* output, dsp_machine* machine) {
  const int64_t chunk = smaller(op->inner, kMeanChunk / op->count);
  int turn = 0;
  for (int64_t row = 0; row < op->outer; ++row) {
    for (int64_t first = 0; first < op->inner; first += chunk, turn = 1 - turn) {
      const int64_t count = smaller(chunk, op->inner - first);
      const size_t local = (size_t)(turn * kMeanChunk), result = (size_t)((2 + turn) * kMeanChunk);
      dsp_load(machine, local, input == NULL ? NULL : input + row * op->count * op->inner + first, (uint64_t)op->count,
               (uint64_t)count, (uint64_t)op->inner);
      dsp_computed(machine, (uint64_t)(lanes(count) * (op->count + 1)), 0);
      for (int64_t i = 0; i < count && machine->local != NULL; ++i) {
        int32_t sum = 0;
        for (int64_t k = 0; k < op->count; ++k)
          sum += machine->local[local + (size_t)(k * count + i)] - op->input_zero[0];
        machine->local[result + (size_t)i] = limited(op, dsp_rescale(sum, &op->factors[0], op->rounding));
      }
      dsp_store(machine, output == NULL ? NULL : output + row * op->inner + first, result, 1, (uint64_t)count,
                (uint64_t)count);
      dsp_end_tile(machine);
    }
  }
}

// Copies rows through local memory.
static void copy_rows(const int8_t* from, int64_t from_stride, int8_t* to, int64_t to_stride, int64_t rows,
                      int64_t row_bytes, dsp_machine* machine) {
  const int64_t bytes = smaller(row_bytes, kCopyChunk), at_once = larger(kCopyChunk / larger(bytes, 1), 1);
  int turn = 0;
  for (int64_t row = 0; row < rows; row += at_once) {
    for (int64_t first = 0; first < row_bytes; first += bytes, turn = 1 - turn) {
      const uint64_t count = (uint64_t)smaller(at_once, rows - row), part = (uint64_t)smaller(bytes, row_bytes - first);
      const size_t local = (size_t)(turn * kCopyChunk);
      dsp_load(machine, local, from == NULL ? NULL : from + row * from_stride + first, count, part,
               (uint64_t)from_stride);
      dsp_store(machine, to == NULL ? NULL : to + row * to_stride + first, local, count, part, (uint64_t)to_stride);
      dsp_end_tile(machine);
    }
  }
}

void dsp_run_operator(const dsp_operator* op, const void* const* inputs, void* output, dsp_machine* machine) {
  const int8_t* input = inputs == NULL ? NULL : inputs[0];
  dsp_begin_operator(machine);
  switch (op->kind) {
    case DSP_CONVOLUTION:
    case DSP_DEPTHWISE:
    case DSP_AVERAGE_POOL:
    case DSP_MAX_POOL:
      run_window(op, input, output, machine);
      break;
    case DSP_ADD:
    case DSP_MUL:
      run_binary(op, inputs, output, machine);
      break;
    case DSP_MEAN:
      run_mean(op, input, output, machine);
      break;
    case DSP_CONCAT: {
      int64_t offset = 0;
      for (int32_t i = 0; i < op->num_inputs; offset += op->part[i++]) {
        copy_rows(inputs == NULL ? NULL : inputs[i], op->part[i], output == NULL ? NULL : (int8_t*)output + offset,
                  op->inner, op->outer, op->part[i], machine);
      }
      break;
    }
    case DSP_VIEW:
      copy_rows(input, op->inner, output, op->inner, 1, op->inner, machine);
      break;
  }
  dsp_end_operator(machine);
}

void dsp_describe_operator(const dsp_operator* op, const dsp_counts* counts, char* text, size_t size) {
  const char* kinds[] = {"convolution",
                         "depthwise convolution",
                         "average pooling",
                         "max pooling",
                         "sum",
                         "product",
                         "mean",
                         "concatenation",
                         "copy"};
  char shape[160] = "";
  if (op->kind <= DSP_MAX_POOL) {
    const dsp_tiling* tiling = &op->tiling;
    const int64_t tiles = op->batch * divide_up(op->y.output, tiling->rows) * divide_up(op->x.output, tiling->columns) *
                          divide_up(op->output_channels, tiling->channels);
    snprintf(shape, sizeof(shape), " %lldx%lldx%lld -> %lldx%lldx%lld by %lldx%lld, %lld tile%s of %lldx%lldx%lld",
             (long long)op->y.input, (long long)op->x.input, (long long)op->input_channels, (long long)op->y.output,
             (long long)op->x.output, (long long)op->output_channels, (long long)op->y.taps, (long long)op->x.taps,
             (long long)tiles, tiles == 1 ? "" : "s", (long long)tiling->rows, (long long)tiling->columns,
             (long long)tiling->channels);
  }
  snprintf(text, size, "%s: %s%s; %llu MACs, %llu cycles, %llu bytes moved", op->name, kinds[op->kind], shape,
           (unsigned long long)counts->macs, (unsigned long long)counts->cycles, (unsigned long long)counts->dma_bytes);
}
