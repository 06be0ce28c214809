// Finds out whether another delegate runs a model faster.
#ifndef PERMAFROST_TOOLS_BENCHMARK_FASTER_DELEGATE_H_
#define PERMAFROST_TOOLS_BENCHMARK_FASTER_DELEGATE_H_

#include <optional>
#include <string>

#include "io/file_system.h"
#include "tools/benchmark/benchmark_subject.h"
#include "tools/model/run_flags.h"

namespace permafrost {

// A delegate, and its latency with its default precision.
struct FasterDelegate {
  std::string name;
  double seconds = 0;  // Median.
};

// Measures each known delegate but the reference for some tenths of a second after a warm-up run, and returns the
// fastest if it takes clearly less than `seconds`; none for runs of some microseconds. Other settings are those of
// `run`. Delegates that do not run the model are left out.
std::optional<FasterDelegate> FindFasterDelegate(const RunFlags& run, const BenchmarkSubject& subject, double seconds,
                                                 FileSystem& files);

}  // namespace permafrost

#endif  // PERMAFROST_TOOLS_BENCHMARK_FASTER_DELEGATE_H_
