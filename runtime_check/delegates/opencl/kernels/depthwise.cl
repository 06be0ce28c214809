// Depthwise convolutions with one result for each channel. A work item computes 4 channels of a pixel.
//
// Weights: [taps, channels rounded up to 4].

__kernel void depthwise(HEADER, IN(x), OUT(y) FINISH_PARAMS) {
  BEGIN;
  LOAD(x);
  STORE(y);
  const int in_h = s[0], in_w = s[1], channels = s[2], out_h = s[3], out_w = s[4];
  const int taps_y = s[5], taps_x = s[6], stride_y = s[7], stride_x = s[8], dilation_y = s[9], dilation_x = s[10];
  const int pad_y = s[11], pad_x = s[12];
  __global const float *w = constants + s[13];

  const int blocks = (channels + 3) / 4;
  const int first = item % blocks * 4;
  const int pixel = item / blocks;
  const int oy = pixel / out_w % out_h;
  const int top = oy * stride_y - pad_y, left = pixel % out_w * stride_x - pad_x;
  __global const float *image = x + pixel / (out_h * out_w) * in_h * in_w * channels + first;
  const int lanes = min(4, channels - first);

  float4 sum = 0.0f;
  for (int ky = 0; ky < taps_y; ++ky) {
    const int iy = top + ky * dilation_y;
    if (iy < 0 || iy >= in_h) continue;
    for (int kx = 0; kx < taps_x; ++kx) {
      const int ix = left + kx * dilation_x;
      if (ix < 0 || ix >= in_w) continue;
      __global const float *p = image + (iy * in_w + ix) * channels;
      float4 v = 0.0f;
      if (lanes == 4) {
        v = vload4(0, p);
      } else {
        v.x = p[0];
        if (lanes > 1) v.y = p[1];
        if (lanes > 2) v.z = p[2];
      }
      sum += v * vload4(0, w + (ky * taps_x + kx) * blocks * 4 + first);
    }
  }
  y += pixel * channels + first;
  y[0] = FINISH(sum.x, pixel, first);
  if (lanes > 1) y[1] = FINISH(sum.y, pixel, first + 1);
  if (lanes > 2) y[2] = FINISH(sum.z, pixel, first + 2);
  if (lanes > 3) y[3] = FINISH(sum.w, pixel, first + 3);
}
