// Maximum and average pooling of images [N, H, W, C]. A work item computes one channel of a pixel.

#define WINDOW                                                                                                 \
  BEGIN;                                                                                                       \
  LOAD(x);                                                                                                     \
  STORE(y);                                                                                                    \
  const int in_h = s[0], in_w = s[1], channels = s[2], out_h = s[3], out_w = s[4], taps_y = s[5], taps_x = s[6]; \
  const int pixel = item / channels;                                                                           \
  const int top = pixel / out_w % out_h * s[7] - s[9], left = pixel % out_w * s[8] - s[10];                    \
  const int top_in = max(top, 0), left_in = max(left, 0);                                                      \
  const int bottom_in = min(top + taps_y, in_h), right_in = min(left + taps_x, in_w);                          \
  __global const float *image = x + pixel / (out_h * out_w) * in_h * in_w * channels + item % channels

__kernel void max_pool(HEADER, IN(x), OUT(y)) {
  WINDOW;
  float most = -FLT_MAX;  // As TensorFlow, which ignores -infinity.
  for (int iy = top_in; iy < bottom_in; ++iy) {
    for (int ix = left_in; ix < right_in; ++ix) {
      const float v = image[(iy * in_w + ix) * channels];
      most = v > most ? v : most;
    }
  }
  y[item] = most;
}

// The average of the pixels inside the image.
__kernel void average_pool(HEADER, IN(x), OUT(y)) {
  WINDOW;
  float sum = 0.0f;
  for (int iy = top_in; iy < bottom_in; ++iy) {
    float line = 0.0f;
    for (int ix = left_in; ix < right_in; ++ix) line += image[(iy * in_w + ix) * channels];
    sum += line;
  }
  y[item] = sum / (float)((bottom_in - top_in) * (right_in - left_in));
}
