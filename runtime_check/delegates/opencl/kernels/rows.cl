// Functions of whole rows: softmax, normalisation, sums. A work item computes one row.

__kernel void softmax(HEADER, IN(x), OUT(y)) {
  BEGIN;
  LOAD(x);
  STORE(y);
  const int columns = s[0];
  x += item * columns;
  y += item * columns;
  float most = x[0];
  for (int i = 1; i < columns; ++i) most = x[i] > most ? x[i] : most;
  float sum = 0.0f;
  for (int begin = 0; begin < columns; begin += SUM_BLOCK) {
    const int end = min(begin + SUM_BLOCK, columns);
    float part = 0.0f;
    for (int i = begin; i < end; ++i) {
      const float e = exp(x[i] - most);
      y[i] = e;
      part += e;
    }
    sum += part;
  }
  for (int i = 0; i < columns; ++i) y[i] /= sum;
}

// Attention probabilities: scores are scaled, a mask is added, and a condition selects between a score and a number.
__kernel void masked_softmax(HEADER, IN(x), OUT(y), IN(mask), BYTES_IN(condition)) {
  BEGIN;
  LOAD(x);
  LOAD(mask);
  LOAD_BYTES(condition);
  STORE(y);
  const int rows = s[0], columns = s[1];
  const float scale = as_float(s[2]), fill = as_float(s[3]);
  const int has_mask = s[4], has_condition = s[5], keeps_true = s[6];
  const int mask_row = s[7], mask_column = s[8], condition_row = s[9], condition_column = s[10];
  // Where the batch begins in mask and condition.
  __global const int *batch = s + 11 + item / rows * 2;
  const int row = item % rows;
  x += item * columns;
  y += item * columns;
  mask += batch[0] + row * mask_row;
  condition += batch[1] + row * condition_row;
  float most = -INFINITY;
  for (int i = 0; i < columns; ++i) {
    float v = x[i] * scale;
    if (has_mask) v += mask[i * mask_column];
    if (has_condition && (condition[i * condition_column] != 0) != (keeps_true != 0)) v = fill;
    y[i] = v;
    most = v > most ? v : most;
  }
  float sum = 0.0f;
  for (int begin = 0; begin < columns; begin += SUM_BLOCK) {
    const int end = min(begin + SUM_BLOCK, columns);
    float part = 0.0f;
    for (int i = begin; i < end; ++i) {
      const float e = exp(y[i] - most);
      y[i] = e;
      part += e;
    }
    sum += part;
  }
  for (int i = 0; i < columns; ++i) y[i] /= sum;
}

// Layer normalisation, or RMS normalisation if not centred. (The name without "rows" is that of a function of OpenCL C.)
__kernel void normalize_rows(HEADER, IN(x), OUT(y)) {
  BEGIN;
  LOAD(x);
  STORE(y);
  const int columns = s[0], is_centred = s[1];
  const float epsilon = as_float(s[2]);
  __global const float *factor = constants + s[3];
  __global const float *offset = constants + s[4];
  x += item * columns;
  y += item * columns;
  float mean = 0.0f;
  if (is_centred) {
    for (int begin = 0; begin < columns; begin += SUM_BLOCK) {
      const int end = min(begin + SUM_BLOCK, columns);
      float part = 0.0f;
      for (int i = begin; i < end; ++i) part += x[i];
      mean += part;
    }
    mean /= (float)columns;
  }
  float squares = 0.0f;
  for (int begin = 0; begin < columns; begin += SUM_BLOCK) {
    const int end = min(begin + SUM_BLOCK, columns);
    float part = 0.0f;
    for (int i = begin; i < end; ++i) part += (x[i] - mean) * (x[i] - mean);
    squares += part;
  }
  const float scale = 1.0f / sqrt(squares / (float)columns + epsilon);
  for (int i = 0; i < columns; ++i) y[i] = (x[i] - mean) * scale * factor[i] + offset[i];
}

// Sums over the second and the last dimension of [outer, reduced, inner, last], times a factor.
__kernel void reduce(HEADER, IN(x), OUT(y)) {
  BEGIN;
  LOAD(x);
  STORE(y);
  const int reduced = s[0], inner = s[1], last = s[2];
  const float count = as_float(s[3]);  // Sums are divided by it.
  x += (item / inner * reduced * inner + item % inner) * last;
  float sum = 0.0f;
  for (int begin = 0; begin < reduced; begin += SUM_BLOCK) {
    const int end = min(begin + SUM_BLOCK, reduced);
    float part = 0.0f;
    for (int r = begin; r < end; ++r) {
      __global const float *p = x + r * inner * last;
      float line = 0.0f;
      for (int i = 0; i < last; ++i) line += p[i];
      part += line;
    }
    sum += part;
  }
  y[item] = sum / count;
}
