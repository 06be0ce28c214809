// What this machine can do at most: arithmetic and memory traffic, measured.
#ifndef PERMAFROST_TOOLS_MEASURING_MACHINE_PEAKS_H_
#define PERMAFROST_TOOLS_MEASURING_MACHINE_PEAKS_H_

#include <string>

namespace permafrost {

struct MachinePeaks {
  double flops_per_second = 0;        // Multiplications and additions of floats, in registers, two for each fused pair.
  double bytes_per_second = 0;        // Read and written by a[i] = b[i] + s * c[i] over more than the caches hold.
  double cache_bytes_per_second = 0;  // The same over what the second-level cache of a core holds.
  // How much of a thread's data is that near: the arrays over which the rate is still above half of that.
  double cache_bytes = 0;
  int num_threads = 0;
  std::string instructions;  // "avx512", "avx2", or "baseline".
};

// Takes about half a second. The best of many short tries, so that disturbances do no harm.
MachinePeaks MeasureMachinePeaks(int num_threads);

}  // namespace permafrost

#endif  // PERMAFROST_TOOLS_MEASURING_MACHINE_PEAKS_H_
