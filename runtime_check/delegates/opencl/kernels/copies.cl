// Kernels that copy elements: views, concatenation, padding, selection, gathering, resizing. A work item writes one element.

// Elements of x in another order. Table: number of dimensions, offset, then size and stride of each.
__kernel void view(HEADER, IN(x), OUT(y)) {
  BEGIN;
  LOAD(x);
  STORE(y);
  int rest = item, from = s[1];
  for (int d = s[0] - 1; d >= 0; --d) {
    const int size = s[2 + 2 * d];
    from += rest % size * s[3 + 2 * d];
    rest /= size;
  }
  y[item] = x[from];
}

// Copies runs of s[0] elements to rows of s[1] elements, at position s[2].
__kernel void copy_runs(HEADER, IN(x), OUT(y)) {
  BEGIN;
  LOAD(x);
  STORE(y);
  y[item / s[0] * s[1] + s[2] + item % s[0]] = x[item];
}

__kernel void pad(HEADER, IN(x), OUT(y)) {
  BEGIN;
  LOAD(x);
  STORE(y);
  const int in_h = s[0], in_w = s[1], channels = s[2], out_h = s[3], out_w = s[4];
  const int pixel = item / channels;
  const int iy = pixel / out_w % out_h - s[5], ix = pixel % out_w - s[6];
  const bool is_inside = iy >= 0 && iy < in_h && ix >= 0 && ix < in_w;
  const int image = pixel / (out_h * out_w);
  y[item] = is_inside ? x[((image * in_h + iy) * in_w + ix) * channels + item % channels] : 0.0f;
}

// Table: number of dimensions, then the size of each and its strides in condition, a and b.
__kernel void choose(HEADER, BYTES_IN(condition), IN(a), IN(b), OUT(y)) {
  BEGIN;
  LOAD_BYTES(condition);
  LOAD(a);
  LOAD(b);
  STORE(y);
  int rest = item, c = 0, i = 0, j = 0;
  for (int d = s[0] - 1; d >= 0; --d) {
    __global const int *dimension = s + 1 + 4 * d;
    const int index = rest % dimension[0];
    rest /= dimension[0];
    c += index * dimension[1];
    i += index * dimension[2];
    j += index * dimension[3];
  }
  y[item] = condition[c] != 0 ? a[i] : b[j];
}

#define GATHER(type)                                                                          \
  __kernel void gather_##type(HEADER, IN(x), __global const type *indices, const int indices_at, OUT(y)) { \
    BEGIN;                                                                                    \
    LOAD(x);                                                                                  \
    STORE(y);                                                                                 \
    const int entries = s[0], inner = s[1], count = s[2];                                     \
    const int i = item / inner % count;                                                       \
    y[item] = x[(item / inner / count * entries + (int)indices[indices_at + i]) * inner + item % inner]; \
  }
GATHER(int)
GATHER(long)

// Table: sizes, then where the positions of lines and columns are: lower, upper and fraction of each.
__kernel void resize_bilinear(HEADER, IN(x), OUT(y)) {
  BEGIN;
  LOAD(x);
  STORE(y);
  const int in_h = s[0], in_w = s[1], channels = s[2], out_h = s[3], out_w = s[4];
  const int pixel = item / channels;
  __global const float *row = constants + s[5] + pixel / out_w % out_h * 3;
  __global const float *column = constants + s[6] + pixel % out_w * 3;
  __global const float *image = x + pixel / (out_h * out_w) * in_h * in_w * channels + item % channels;
  const int left = as_int(column[0]) * channels, right = as_int(column[1]) * channels;
  __global const float *top = image + as_int(row[0]) * in_w * channels;
  __global const float *bottom = image + as_int(row[1]) * in_w * channels;
  const float upper = top[left] + (top[right] - top[left]) * column[2];
  const float lower = bottom[left] + (bottom[right] - bottom[left]) * column[2];
  y[item] = upper + (lower - upper) * row[2];
}

__kernel void resize_nearest(HEADER, IN(x), OUT(y)) {
  BEGIN;
  LOAD(x);
  STORE(y);
  const int in_h = s[0], in_w = s[1], channels = s[2], out_h = s[3], out_w = s[4];
  const int pixel = item / channels;
  const int iy = as_int(constants[s[5] + pixel / out_w % out_h * 3]);
  const int ix = as_int(constants[s[6] + pixel % out_w * 3]);
  y[item] = x[((pixel / (out_h * out_w) * in_h + iy) * in_w + ix) * channels + item % channels];
}
