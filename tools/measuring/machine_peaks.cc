// Two loops: one for peak arithmetic, one for peak memory bandwidth.
#include "tools/measuring/machine_peaks.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "runtime_check/threads/thread_pool.h"

namespace permafrost {
namespace {

using Clock = std::chrono::steady_clock;

// Each try takes about a millisecond, less than a scheduler's time slice. On a shared machine some of many tries are
// undisturbed.
constexpr int kTries = 40;
// Passes over memory, and the number of separately measured parts of each pass.
constexpr int kPasses = 5;
constexpr size_t kParts = 16;
// The number of independent chains that hides a latency of 4 cycles on two units with one instruction per cycle each.
constexpr int kChains = 12;
constexpr int64_t kSteps = 1 << 18;
// Floats in each of a thread's three arrays: 64 MiB each, larger than the last-level cache of today's machines.
constexpr size_t kFloats = size_t{16} << 20;
// The smallest arrays for measuring caches, 128 KiB each: larger than the first-level cache, and within the
// second-level cache of most machines. Smaller arrays are passed over more often.
constexpr size_t kCachedFloats = size_t{32} << 10;
constexpr size_t kCachedRounds = 64;

// Multiplies and adds in `kChains` registers of type V; the sum prevents the compiler from removing the loop.
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

// A separate function, so that the compiler cannot remove all rounds but the last.
__attribute__((noinline)) void AddScaled(const float* b, const float* c, float scale, size_t count, float* a) {
  for (size_t i = 0; i < count; ++i) a[i] = b[i] + scale * c[i];
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
  // Uses the sum.
  const float scale = sums[0] > 0 ? 0.5f : 0.25f;
  std::vector<float> a(kFloats), b(kFloats, 1.0f), c(kFloats, 2.0f);
  constexpr size_t kPart = kFloats / kParts;
  for (size_t part = 0; part < kPasses * kParts; ++part) {
    const size_t first = part % kParts * kPart;
    const Clock::time_point start = Clock::now();
    threads.ParallelFor(static_cast<int64_t>(kPart), 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const size_t at = first + static_cast<size_t>(i);
        a[at] = b[at] + scale * c[at];
      }
    });
    const double bytes = 3.0 * sizeof(float) * static_cast<double>(kPart);
    peaks.bytes_per_second = std::max(peaks.bytes_per_second, bytes / Since(start));
  }
  for (size_t floats = kCachedFloats; floats * static_cast<size_t>(count) <= kFloats; floats *= 2) {
    double rate = 0;
    for (int attempt = 0; attempt < kTries; ++attempt) {
      const size_t rounds = std::max<size_t>(1, kCachedRounds * kCachedFloats / floats);
      const Clock::time_point start = Clock::now();
      threads.ParallelFor(count, 1, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
          // Each thread uses its own part of the arrays.
          const size_t first = static_cast<size_t>(i) * floats;
          for (size_t round = 0; round < rounds; ++round) AddScaled(&b[first], &c[first], scale, floats, &a[first]);
        }
      });
      const double bytes = 3.0 * sizeof(float) * static_cast<double>(floats * rounds) * static_cast<double>(count);
      rate = std::max(rate, bytes / Since(start));
    }
    peaks.cache_bytes_per_second = std::max(peaks.cache_bytes_per_second, rate);
    if (rate < peaks.cache_bytes_per_second / 2) break;
    peaks.cache_bytes = 3.0 * sizeof(float) * static_cast<double>(floats);
  }
  return peaks;
}

}  // namespace permafrost
