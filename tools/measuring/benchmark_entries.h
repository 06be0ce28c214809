// The reports that the original writes for --benchmark_name and --output_prefix: one small protobuf file for each
// figure.
#ifndef PERMAFROST_TOOLS_MEASURING_BENCHMARK_ENTRIES_H_
#define PERMAFROST_TOOLS_MEASURING_BENCHMARK_ENTRIES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "io/file_system.h"

namespace permafrost {

struct BenchmarkEntry {
  std::string name;
  int64_t iterations = 0;
  double total_seconds = 0;
  double throughput = -1;  // MiB of the first input a second; -1: none.
};

// The encoded BenchmarkEntries message with this one entry.
std::string EncodeBenchmarkEntry(const BenchmarkEntry& entry);

// The file that an entry goes to: prefix and name, "/" in the name as "__".
std::string BenchmarkEntryPath(const std::string& prefix, const std::string& name);

// Writes a file for each. AlreadyExists, and nothing written, when one of them is there.
absl::Status WriteBenchmarkEntries(const std::string& prefix, const std::vector<BenchmarkEntry>& entries,
                                   FileSystem& files);

}  // namespace permafrost

#endif  // PERMAFROST_TOOLS_MEASURING_BENCHMARK_ENTRIES_H_
