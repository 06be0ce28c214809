// Convolutions of images [N, H, W, C], in any number of groups. A work item computes 4 neighbouring pixels of 4 channels.
//
// Weights: [taps, input channels of a group, blocks of 4 output channels, 4]. No block has channels of two groups.

__kernel void convolution(HEADER, IN(x), OUT(y) FINISH_PARAMS) {
  BEGIN;
  LOAD(x);
  STORE(y);
  const int in_h = s[0], in_w = s[1], in_c = s[2], out_h = s[3], out_w = s[4], out_c = s[5];
  const int taps_y = s[6], taps_x = s[7], stride_y = s[8], stride_x = s[9], dilation_y = s[10], dilation_x = s[11];
  const int pad_y = s[12], pad_x = s[13], group_in = s[14], group_out = s[15], group_blocks = s[16], blocks = s[17];
  __global const float *w = constants + s[18];

  const int block = item % blocks;
  const int tiles = (out_w + 3) / 4;
  const int left = item / blocks % tiles * 4;
  const int line = item / blocks / tiles;
  const int oy = line % out_h;
  const int group = block / group_blocks;
  __global const float *image = x + line / out_h * in_h * in_w * in_c + group * group_in;
  const int count = min(4, out_w - left);

  float4 sum0 = 0.0f, sum1 = 0.0f, sum2 = 0.0f, sum3 = 0.0f;
  for (int ky = 0; ky < taps_y; ++ky) {
    const int iy = oy * stride_y - pad_y + ky * dilation_y;
    if (iy < 0 || iy >= in_h) continue;
    __global const float *row = image + iy * in_w * in_c;
    for (int kx = 0; kx < taps_x; ++kx) {
      const int ix = left * stride_x - pad_x + kx * dilation_x;
      const bool is0 = ix >= 0 && ix < in_w;
      const bool is1 = count > 1 && ix + stride_x >= 0 && ix + stride_x < in_w;
      const bool is2 = count > 2 && ix + 2 * stride_x >= 0 && ix + 2 * stride_x < in_w;
      const bool is3 = count > 3 && ix + 3 * stride_x >= 0 && ix + 3 * stride_x < in_w;
      if (!is0 && !is1 && !is2 && !is3) continue;
      // Positions outside the image read the zeros of the buffer of constants.
      __global const float *p0 = is0 ? row + ix * in_c : constants;
      __global const float *p1 = is1 ? row + (ix + stride_x) * in_c : constants;
      __global const float *p2 = is2 ? row + (ix + 2 * stride_x) * in_c : constants;
      __global const float *p3 = is3 ? row + (ix + 3 * stride_x) * in_c : constants;
      __global const float *wt = w + ((ky * taps_x + kx) * group_in * blocks + block) * 4;
      for (int begin = 0; begin < group_in; begin += SUM_BLOCK) {
        const int end = min(begin + SUM_BLOCK, group_in);
        float4 a0 = 0.0f, a1 = 0.0f, a2 = 0.0f, a3 = 0.0f;
        for (int c = begin; c < end; ++c) {
          const float4 v = vload4(0, wt + c * blocks * 4);
          a0 += p0[is0 ? c : 0] * v;
          a1 += p1[is1 ? c : 0] * v;
          a2 += p2[is2 ? c : 0] * v;
          a3 += p3[is3 ? c : 0] * v;
        }
        sum0 += a0;
        sum1 += a1;
        sum2 += a2;
        sum3 += a3;
      }
    }
  }

  const int in_group = (block - group * group_blocks) * 4;
  const int first = group * group_out + in_group;
  const int lanes = min(4, group_out - in_group);
  float results[16];
  vstore4(sum0, 0, results);
  vstore4(sum1, 1, results);
  vstore4(sum2, 2, results);
  vstore4(sum3, 3, results);
  for (int j = 0; j < count; ++j) {
    const int pixel = line * out_w + left + j;
    for (int k = 0; k < lanes; ++k) {
      y[pixel * out_c + first + k] = FINISH(results[j * 4 + k], pixel, first + k);
    }
  }
}
