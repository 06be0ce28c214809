// Measures the peak arithmetic and memory throughput of this machine.
#ifndef PERMAFROST_TOOLS_MEASURING_MACHINE_PEAKS_H_
#define PERMAFROST_TOOLS_MEASURING_MACHINE_PEAKS_H_

#include <string>

namespace permafrost {

struct MachinePeaks {
  // Float operations in registers; a fused multiply-add counts as two.
  double flops_per_second = 0;
  // Bytes read and written by a[i] = b[i] + s * c[i] over arrays larger than the caches.
  double bytes_per_second = 0;
  // The same loop over arrays that fit a core's second-level cache.
  double cache_bytes_per_second = 0;
  // The size of arrays per thread up to which the rate stays above half of cache_bytes_per_second.
  double cache_bytes = 0;
  int num_threads = 0;
  std::string instructions;  // "avx512", "avx2", or "baseline".
};

// Measures for about half a second. Takes the best of many short tries, so that disturbances do no harm.
MachinePeaks MeasureMachinePeaks(int num_threads);

}  // namespace permafrost

#endif  // PERMAFROST_TOOLS_MEASURING_MACHINE_PEAKS_H_
