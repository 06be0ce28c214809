// Transposed convolutions of images [N, H, W, C]. A work item computes 4 channels of a pixel, from the input pixels that
// reach it.
//
// Weights: [taps, input channels, blocks of 4 output channels, 4].

__kernel void transposed_convolution(HEADER, IN(x), OUT(y) FINISH_PARAMS) {
  BEGIN;
  LOAD(x);
  STORE(y);
  const int in_h = s[0], in_w = s[1], in_c = s[2], out_h = s[3], out_w = s[4], out_c = s[5];
  const int taps_y = s[6], taps_x = s[7], stride_y = s[8], stride_x = s[9], dilation_y = s[10], dilation_x = s[11];
  const int pad_y = s[12], pad_x = s[13], blocks = s[14];
  __global const float *w = constants + s[15];

  const int block = item % blocks;
  const int pixel = item / blocks;
  const int oy = pixel / out_w % out_h, ox = pixel % out_w;
  __global const float *image = x + pixel / (out_h * out_w) * in_h * in_w * in_c;

  float4 sum = 0.0f;
  for (int ky = 0; ky < taps_y; ++ky) {
    const int down = oy + pad_y - ky * dilation_y;
    if (down < 0 || down % stride_y != 0 || down / stride_y >= in_h) continue;
    for (int kx = 0; kx < taps_x; ++kx) {
      const int right = ox + pad_x - kx * dilation_x;
      if (right < 0 || right % stride_x != 0 || right / stride_x >= in_w) continue;
      __global const float *p = image + (down / stride_y * in_w + right / stride_x) * in_c;
      __global const float *wt = w + ((ky * taps_x + kx) * in_c * blocks + block) * 4;
      for (int begin = 0; begin < in_c; begin += SUM_BLOCK) {
        const int end = min(begin + SUM_BLOCK, in_c);
        float4 a = 0.0f;
        for (int c = begin; c < end; ++c) a += p[c] * vload4(0, wt + c * blocks * 4);
        sum += a;
      }
    }
  }
  const int first = block * 4;
  const int lanes = min(4, out_c - first);
  y += pixel * out_c + first;
  y[0] = FINISH(sum.x, pixel, first);
  if (lanes > 1) y[1] = FINISH(sum.y, pixel, first + 1);
  if (lanes > 2) y[2] = FINISH(sum.z, pixel, first + 2);
  if (lanes > 3) y[3] = FINISH(sum.w, pixel, first + 3);
}
