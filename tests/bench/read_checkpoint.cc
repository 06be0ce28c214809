// Times reading a whole checkpoint including checksums: read_checkpoint PATH ROUNDS prints {"bytes": ..., ...}.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "graph/base/status.h"
#include "io/file_system.h"
#include "io/formats/checkpoint/checkpoint.h"

namespace permafrost {
namespace {

double Milliseconds(std::chrono::steady_clock::duration duration) {
  return std::chrono::duration<double, std::milli>(duration).count();
}

absl::Status Measure(const std::string& path, int rounds) {
  std::vector<double> opening, reading;
  uint64_t bytes = 0;
  size_t variables = 0;
  for (int i = 0; i < rounds; ++i) {
    const auto start = std::chrono::steady_clock::now();
    PF_ASSIGN_OR_RETURN(const std::unique_ptr<VariableSource> source, OpenCheckpoint(RealFileSystem(), path));
    const auto opened = std::chrono::steady_clock::now();
    bytes = 0;
    variables = source->variables().size();
    for (const VariableInfo& variable : source->variables()) {
      PF_ASSIGN_OR_RETURN(const Tensor value, source->Read(variable.name));
      bytes += value.bytes().size();
    }
    opening.push_back(Milliseconds(opened - start));
    reading.push_back(Milliseconds(std::chrono::steady_clock::now() - opened));
  }
  std::sort(opening.begin(), opening.end());
  std::sort(reading.begin(), reading.end());
  const double median = reading[reading.size() / 2];
  std::printf("{\"variables\": %zu, \"bytes\": %llu, \"open_ms\": %.3f, \"read_ms\": %.3f, \"gb_per_s\": %.3f}\n",
              variables, static_cast<unsigned long long>(bytes), opening[opening.size() / 2], median,
              static_cast<double>(bytes) / median / 1e6);
  return absl::OkStatus();
}

}  // namespace
}  // namespace permafrost

int main(int argc, char** argv) {
  const int rounds = argc == 3 ? std::atoi(argv[2]) : 0;
  if (rounds < 1) {
    std::fprintf(stderr, "usage: read_checkpoint PATH ROUNDS\n");
    return 2;
  }
  const absl::Status status = permafrost::Measure(argv[1], rounds);
  if (status.ok()) return 0;
  std::fprintf(stderr, "read_checkpoint: %s\n", std::string(status.message()).c_str());
  return 1;
}
