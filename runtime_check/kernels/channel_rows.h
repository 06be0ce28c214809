// Addition of one value per channel to rows of channels.
#ifndef PERMAFROST_RUNTIME_CHECK_KERNELS_CHANNEL_ROWS_H_
#define PERMAFROST_RUNTIME_CHECK_KERNELS_CHANNEL_ROWS_H_

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "runtime_check/kernels/inner_loops.h"

namespace permafrost {

// Computes y = x + bias, element by element. `y` may be `x`.
template <typename T>
void AddRow(int64_t count, const T* x, const T* bias, T* y) {
  if constexpr (std::is_same_v<T, float>) {
    BestInnerLoops().add(count, x, bias, y);
  } else {
    for (int64_t i = 0; i < count; ++i) y[i] = x[i] + bias[i];
  }
}

// Adds `bias` to each of `rows` contiguous rows of `channels` elements. `y` may be `x`. Rows with few channels are too
// short for an efficient loop, so several of them are processed as one.
template <typename T>
void AddToRows(int64_t rows, int64_t channels, const T* x, const T* bias, T* y) {
  constexpr int64_t kBlock = 256;
  if (channels > kBlock / 2 || rows < 2) {
    for (int64_t i = 0; i < rows; ++i) AddRow(channels, x + i * channels, bias, y + i * channels);
    return;
  }
  T block[kBlock];
  const int64_t rows_of_block = std::min(kBlock / channels, rows);
  for (int64_t i = 0; i < rows_of_block; ++i) std::copy_n(bias, channels, block + i * channels);
  for (int64_t i = 0; i < rows; i += rows_of_block) {
    AddRow(std::min(rows_of_block, rows - i) * channels, x + i * channels, block, y + i * channels);
  }
}

}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_KERNELS_CHANNEL_ROWS_H_
