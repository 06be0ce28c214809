// Opens a model like a program that is about to run it, and prints the time and the memory by owner.
//
//   package_load MODEL INPUT OUTPUT [run] [wait]
//
// Prints {"open_ms": ..., "session_ms": ..., "private_dirty": ..., ...}. With `run` it runs the model first; with
// `wait` it then keeps the model open until standard input ends.
#include <chrono>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iostream>
#include <map>
#include <string>
#include <vector>

#include "graph/base/status.h"
#include "io/file_system.h"
#include "io/model_file.h"
#include "runtime_check/checking/seeded_inputs.h"
#include "runtime_check/session.h"

namespace permafrost {
namespace {

double Milliseconds(std::chrono::steady_clock::duration duration) {
  return std::chrono::duration<double, std::milli>(duration).count();
}

// Returns memory of this process in bytes, by the kernel's name for it.
std::map<std::string, uint64_t> Memory() {
  std::map<std::string, uint64_t> memory;
  std::ifstream file("/proc/self/smaps_rollup");
  std::string line;
  std::getline(file, line);  // Skips the address range.
  std::string name, unit;
  uint64_t kilobytes;
  while (file >> name >> kilobytes >> unit) memory[name] = kilobytes * 1024;
  return memory;
}

absl::Status Measure(const std::string& path, const std::string& input, const std::string& output, bool runs,
                     bool waits) {
  const std::map<std::string, uint64_t> before = Memory();
  const auto start = std::chrono::steady_clock::now();
  PF_ASSIGN_OR_RETURN(const std::unique_ptr<Graph> graph, OpenModel(RealFileSystem(), path));
  const auto opened = std::chrono::steady_clock::now();
  PF_RETURN_IF_ERROR(graph->DeclareInterface({input}, {output}));
  PF_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session, Session::Create(*graph, {input}, {output}));
  const auto ready = std::chrono::steady_clock::now();
  if (runs) {
    PF_ASSIGN_OR_RETURN(const std::vector<Tensor> feeds, SeededInputs(graph->inputs(), {}, /*seed=*/1));
    PF_RETURN_IF_ERROR(session->Run(feeds).status());
  }
  std::map<std::string, uint64_t> after = Memory();
  std::printf("{\"open_ms\": %.3f, \"session_ms\": %.3f", Milliseconds(opened - start), Milliseconds(ready - opened));
  for (const char* name : {"Private_Dirty:", "Private_Clean:", "Shared_Clean:", "Anonymous:", "Pss:", "Rss:"}) {
    const auto found = before.find(name);
    const uint64_t base = found == before.end() ? 0 : found->second;
    std::printf(", \"%.*s\": %lld", static_cast<int>(std::strlen(name) - 1), name,
                static_cast<long long>(after[name]) - static_cast<long long>(base));
  }
  std::printf("}\n");
  std::fflush(stdout);
  for (std::string line; waits && std::getline(std::cin, line);) continue;
  return absl::OkStatus();
}

}  // namespace
}  // namespace permafrost

int main(int argc, char** argv) {
  bool runs = false, waits = false;
  for (int i = 4; i < argc; ++i) {
    runs = runs || std::strcmp(argv[i], "run") == 0;
    waits = waits || std::strcmp(argv[i], "wait") == 0;
  }
  if (argc < 4) {
    std::fprintf(stderr, "usage: package_load MODEL INPUT OUTPUT [run] [wait]\n");
    return 2;
  }
  const absl::Status status = permafrost::Measure(argv[1], argv[2], argv[3], runs, waits);
  if (!status.ok()) {
    std::fprintf(stderr, "package_load: %s\n", std::string(status.message()).c_str());
    return 1;
  }
  return 0;
}
