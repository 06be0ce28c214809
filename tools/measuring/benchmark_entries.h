// Reports in the format of TensorFlow's --benchmark_name and --output_prefix: one small protobuf file per figure.
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
  double throughput = -1;  // MiB of the first input per second; -1: none.
};

// Returns the encoded BenchmarkEntries message with this one entry.
std::string EncodeBenchmarkEntry(const BenchmarkEntry& entry);

// Returns the path of an entry's file: prefix and name, with "/" in the name replaced by "__".
std::string BenchmarkEntryPath(const std::string& prefix, const std::string& name);

// Writes one file per entry. AlreadyExists, with nothing written, if one of the files exists.
absl::Status WriteBenchmarkEntries(const std::string& prefix, const std::vector<BenchmarkEntry>& entries,
                                   FileSystem& files);

}  // namespace permafrost

#endif  // PERMAFROST_TOOLS_MEASURING_BENCHMARK_ENTRIES_H_
