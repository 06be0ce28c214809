// Products of a matrix and constant weights; also convolutions of single pixels. A work item computes 4 rows of 4 columns.
//
// Weights: [depth, blocks of 4 columns, 4].

__kernel void matrix(HEADER, IN(x), OUT(y) FINISH_PARAMS) {
  BEGIN;
  LOAD(x);
  STORE(y);
  const int rows = s[0], depth = s[1], columns = s[2], blocks = s[3];
  const int block = item % blocks;
  const int row = item / blocks * 4;
  __global const float *w = constants + s[4] + block * 4;
  const int count = min(4, rows - row);
  // Rows past the end repeat the last one; their results are not stored.
  __global const float *p0 = x + row * depth;
  __global const float *p1 = x + (row + min(1, count - 1)) * depth;
  __global const float *p2 = x + (row + min(2, count - 1)) * depth;
  __global const float *p3 = x + (row + min(3, count - 1)) * depth;

  float4 sum0 = 0.0f, sum1 = 0.0f, sum2 = 0.0f, sum3 = 0.0f;
  for (int begin = 0; begin < depth; begin += SUM_BLOCK) {
    const int end = min(begin + SUM_BLOCK, depth);
    float4 a0 = 0.0f, a1 = 0.0f, a2 = 0.0f, a3 = 0.0f;
    for (int c = begin; c < end; ++c) {
      const float4 v = vload4(0, w + c * blocks * 4);
      a0 += p0[c] * v;
      a1 += p1[c] * v;
      a2 += p2[c] * v;
      a3 += p3[c] * v;
    }
    sum0 += a0;
    sum1 += a1;
    sum2 += a2;
    sum3 += a3;
  }

  const int first = block * 4;
  const int lanes = min(4, columns - first);
  float results[16];
  vstore4(sum0, 0, results);
  vstore4(sum1, 1, results);
  vstore4(sum2, 2, results);
  vstore4(sum3, 3, results);
  for (int j = 0; j < count; ++j) {
    for (int k = 0; k < lanes; ++k) {
      y[(row + j) * columns + first + k] = FINISH(results[j * 4 + k], row + j, first + k);
    }
  }
}
