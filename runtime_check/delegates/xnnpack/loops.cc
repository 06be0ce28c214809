// Implements the delegate's own loops on the library's threads.
#include "runtime_check/delegates/xnnpack/loops.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "runtime_check/kernels/inner_loops.h"

namespace permafrost {
namespace xnnpack {
namespace {

constexpr size_t kBytesPerPiece = 16 << 10;  // Bytes per piece of work: half of the L1 cache.

struct CopyArguments {
  const BlockCopy* copy;
  const float* input;
  float* output;
};

// Copies `count` rows of the innermost dimension, starting with row `begin`.
void CopyRows(void* context, size_t begin, size_t count) {
  const auto& arguments = *static_cast<const CopyArguments*>(context);
  const BlockCopy& copy = *arguments.copy;
  for (size_t i = begin; i < begin + count; ++i) {
    size_t rest = i, from = copy.input_offset, to = copy.output_offset;
    for (int dim = kMostBlockDims - 2; dim >= 0; --dim) {
      const size_t at = rest % copy.sizes[dim];
      rest /= copy.sizes[dim];
      from += at * copy.input_strides[dim];
      to += at * copy.output_strides[dim];
    }
    std::memcpy(arguments.output + to, arguments.input + from, copy.sizes[kMostBlockDims - 1] * sizeof(float));
  }
}

struct LoopArguments {
  void (*loop)(int64_t count, const float* x, float* y);
  const float* x;
  float* y;
};

void RunLoop(void* context, size_t begin, size_t count) {
  const auto& arguments = *static_cast<const LoopArguments*>(context);
  arguments.loop(static_cast<int64_t>(count), arguments.x + begin, arguments.y + begin);
}

struct BiasArguments {
  const Operation* operation;
  float* x;
};

void AddBiasToRows(void* context, size_t begin, size_t count) {
  const auto& arguments = *static_cast<const BiasArguments*>(context);
  const Operation& operation = *arguments.operation;
  const size_t channels = operation.bias.size();
  const float* const bias = operation.bias.data();
  const float min = operation.min, max = operation.max;
  for (size_t row = begin; row < begin + count; ++row) {
    float* const x = arguments.x + row * channels;
    for (size_t i = 0; i < channels; ++i) {
      const float sum = x[i] + bias[i];
      const float above = sum < min ? min : sum;
      x[i] = above > max ? max : above;
    }
  }
}

}  // namespace

void CopyBlock(const BlockCopy& copy, const float* input, float* output, pthreadpool_t pool) {
  size_t rows = 1;
  for (int dim = 0; dim < kMostBlockDims - 1; ++dim) rows *= copy.sizes[dim];
  const size_t row_bytes = copy.sizes[kMostBlockDims - 1] * sizeof(float);
  CopyArguments arguments = {&copy, input, output};
  pthreadpool_parallelize_1d_tile_1d(pool, &CopyRows, &arguments, rows, std::max<size_t>(1, kBytesPerPiece / row_bytes),
                                     0);
}

void ApplyLoop(OperationKind kind, size_t count, const float* x, float* y, pthreadpool_t pool) {
  const InnerLoops& loops = BestInnerLoops();
  LoopArguments arguments = {kind == OperationKind::kSigmoid ? loops.sigmoid : loops.tanh, x, y};
  pthreadpool_parallelize_1d_tile_1d(pool, &RunLoop, &arguments, count, kBytesPerPiece / sizeof(float), 0);
}

void AddBias(const Operation& operation, float* x, pthreadpool_t pool) {
  BiasArguments arguments = {&operation, x};
  const size_t row_bytes = operation.bias.size() * sizeof(float);
  pthreadpool_parallelize_1d_tile_1d(pool, &AddBiasToRows, &arguments, operation.rows,
                                     std::max<size_t>(1, kBytesPerPiece / row_bytes), 0);
}

bool AreFinite(absl::string_view bytes) {
  constexpr uint32_t kExponent = 0x7f800000;
  const char* const data = bytes.data();
  const size_t count = bytes.size() / sizeof(float);
  uint32_t found = 0;
  for (size_t i = 0; i < count; ++i) {
    uint32_t bits;
    std::memcpy(&bits, data + i * sizeof(float), sizeof(bits));
    found |= (bits & kExponent) == kExponent ? 1u : 0u;
  }
  return found == 0;
}

}  // namespace xnnpack
}  // namespace permafrost
