// Two loops: one that only computes, one that only moves.
#include "tools/measuring/machine_peaks.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "runtime_check/thread_pool.h"

namespace permafrost {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kTries = 5;
// So many independent chains hide the latency of 4 cycles of two units that take one instruction each a cycle.
constexpr int kChains = 12;
constexpr int64_t kSteps = 1 << 21;
// Floats of one of the three arrays of a thread: 64 MiB each, beyond the last cache of today's machines.
constexpr size_t kFloats = size_t{16} << 20;

// Multiplies and adds in `kChains` registers of type V; the sum keeps the compiler from leaving it out.
template <typename V>
__attribute__((always_inline)) inline float Compute(int64_t steps) {
  V chains[kChains];
  for (int i = 0; i < kChains; ++i) chains[i] = V{} + static_cast<float>(i);
  const V factor = V{} + 0.999f;
  const V term = V{} + 0.001f;
  for (int64_t step = 0; step < steps; ++step) {
#pragma GCC unroll 12
    for (int i = 0; i < kChains; ++i) chains[i] = chains[i] * factor + term;
  }
  float sum = 0;
  for (int i = 0; i < kChains; ++i) sum += chains[i][0];
  return sum;
}

typedef float Vector4 __attribute__((vector_size(16)));
float ComputeBaseline(int64_t steps) { return Compute<Vector4>(steps); }

#if defined(__x86_64__)
typedef float Vector8 __attribute__((vector_size(32)));
typedef float Vector16 __attribute__((vector_size(64)));
__attribute__((target("avx2,fma"))) float ComputeAvx2(int64_t steps) { return Compute<Vector8>(steps); }
__attribute__((target("avx512f,fma"))) float ComputeAvx512(int64_t steps) { return Compute<Vector16>(steps); }
#endif

struct Variant {
  const char* name;
  float (*compute)(int64_t steps);
  int floats;
};

Variant BestVariant() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f")) return {"avx512", &ComputeAvx512, 16};
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return {"avx2", &ComputeAvx2, 8};
#endif
  return {"baseline", &ComputeBaseline, 4};
}

double Since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

}  // namespace

MachinePeaks MeasureMachinePeaks(int num_threads) {
  MachinePeaks peaks;
  ThreadPool threads(num_threads);
  peaks.num_threads = threads.num_threads();
  const int64_t count = threads.num_threads();
  const Variant variant = BestVariant();
  peaks.instructions = variant.name;
  std::vector<float> sums(static_cast<size_t>(count));
  for (int attempt = 0; attempt < kTries; ++attempt) {
    const Clock::time_point start = Clock::now();
    threads.ParallelFor(count, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) sums[static_cast<size_t>(i)] += variant.compute(kSteps);
    });
    const double flops = 2.0 * kChains * variant.floats * static_cast<double>(kSteps) * static_cast<double>(count);
    peaks.flops_per_second = std::max(peaks.flops_per_second, flops / Since(start));
  }
  // A sum that is used.
  const float scale = sums[0] > 0 ? 0.5f : 0.25f;
  std::vector<float> a(kFloats), b(kFloats, 1.0f), c(kFloats, 2.0f);
  for (int attempt = 0; attempt < kTries; ++attempt) {
    const Clock::time_point start = Clock::now();
    threads.ParallelFor(static_cast<int64_t>(kFloats), 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const auto at = static_cast<size_t>(i);
        a[at] = b[at] + scale * c[at];
      }
    });
    const double bytes = 3.0 * sizeof(float) * static_cast<double>(kFloats);
    peaks.bytes_per_second = std::max(peaks.bytes_per_second, bytes / Since(start));
  }
  return peaks;
}

}  // namespace permafrost
