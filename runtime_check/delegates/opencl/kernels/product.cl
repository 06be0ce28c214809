// Batches of products of two computed matrices with any strides. A work item computes 4 rows of 4 columns.

__kernel void product(HEADER, IN(a), IN(b), OUT(c)) {
  BEGIN;
  LOAD(a);
  LOAD(b);
  STORE(c);
  const int rows = s[0], columns = s[1], depth = s[2], row_a = s[3], depth_a = s[4], depth_b = s[5], column_b = s[6];
  const int row_c = s[7], column_c = s[8];
  const int column_tiles = (columns + 3) / 4, row_tiles = (rows + 3) / 4;
  const int column = item % column_tiles * 4;
  const int row = item / column_tiles % row_tiles * 4;
  // Where the batch begins in a, b and c.
  __global const int *batch = s + 9 + item / column_tiles / row_tiles * 3;
  const int last_row = min(3, rows - 1 - row), last_column = min(3, columns - 1 - column);
  // Rows and columns past the end repeat the last ones; their results are not stored.
  __global const float *p = a + batch[0] + row * row_a;
  __global const float *q = b + batch[1] + column * column_b;
  const int p1 = min(1, last_row) * row_a, p2 = min(2, last_row) * row_a, p3 = last_row * row_a;
  const int q1 = min(1, last_column) * column_b, q2 = min(2, last_column) * column_b, q3 = last_column * column_b;

  float4 sum0 = 0.0f, sum1 = 0.0f, sum2 = 0.0f, sum3 = 0.0f;
  for (int begin = 0; begin < depth; begin += SUM_BLOCK) {
    const int end = min(begin + SUM_BLOCK, depth);
    float4 a0 = 0.0f, a1 = 0.0f, a2 = 0.0f, a3 = 0.0f;
    for (int k = begin; k < end; ++k) {
      __global const float *left = p + k * depth_a;
      __global const float *right = q + k * depth_b;
      const float4 v = FLOAT4(right[0], right[q1], right[q2], right[q3]);
      a0 += left[0] * v;
      a1 += left[p1] * v;
      a2 += left[p2] * v;
      a3 += left[p3] * v;
    }
    sum0 += a0;
    sum1 += a1;
    sum2 += a2;
    sum3 += a3;
  }

  float results[16];
  vstore4(sum0, 0, results);
  vstore4(sum1, 1, results);
  vstore4(sum2, 2, results);
  vstore4(sum3, 3, results);
  c += batch[2];
  for (int j = 0; j <= last_row; ++j) {
    for (int k = 0; k <= last_column; ++k) c[(row + j) * row_c + (column + k) * column_c] = results[j * 4 + k];
  }
}
