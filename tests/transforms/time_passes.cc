// Prints the cost of every pass on large graphs: `time_passes num_nodes [shape [pass ...]]`.
#include <algorithm>
#include <chrono>
#include <cstdio>

#include "absl/strings/numbers.h"
#include "runtime_check/checking/evaluate.h"
#include "tests/transforms/large_graphs.h"
#include "transforms/pipeline/presets.h"

namespace permafrost {
namespace {

double Seconds() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

int Main(int argc, char** argv) {
  int num_nodes = 0;
  if (argc < 2 || !absl::SimpleAtoi(argv[1], &num_nodes) || num_nodes < 1) {
    std::fprintf(stderr, "usage: time_passes num_nodes [shape [pass ...]]\n");
    return 2;
  }
  const auto calls = CallsOfEveryPass();
  if (!calls.ok()) {
    std::fprintf(stderr, "%s\n", calls.status().ToString().c_str());
    return 1;
  }
  std::printf("%-20s %-30s %9s %9s %9s %9s\n", "shape", "pass", "rewrites", "nodes", "pass s", "total s");
  for (const LargeShape shape : kLargeShapes) {
    if (argc > 2 && absl::string_view(argv[2]) != Name(shape)) continue;
    const auto graph = MakeLargeGraph(shape, num_nodes);
    if (!graph.ok()) {
      std::fprintf(stderr, "%s\n", graph.status().ToString().c_str());
      return 1;
    }
    for (const PassCall& call : *calls) {
      if (argc > 3 && std::none_of(argv + 3, argv + argc, [&](const char* name) { return call.name == name; }))
        continue;
      std::unique_ptr<Graph> copy = (*graph)->Clone();
      const KernelEvaluator evaluator;
      PassContext context = ContextOfEveryPass(*copy);
      context.evaluator = &evaluator;
      const auto expanded = ExpandPresets({call});
      const double start = Seconds();
      const auto reports = RunPipeline(&copy, *expanded, &context);
      const double total = Seconds() - start;
      if (!reports.ok()) {
        std::printf("%-20s %-30s %s\n", Name(shape), call.name.c_str(), reports.status().ToString().c_str());
        continue;
      }
      double seconds = 0;
      int64_t rewrites = 0;
      for (const PassReport& report : *reports) {
        seconds += report.seconds;
        rewrites += report.rewrites;
      }
      std::printf("%-20s %-30s %9lld %9zu %9.2f %9.2f\n", Name(shape), call.name.c_str(),
                  static_cast<long long>(rewrites), copy->num_nodes(), seconds, total);
      std::fflush(stdout);
    }
  }
  return 0;
}

}  // namespace
}  // namespace permafrost

int main(int argc, char** argv) { return permafrost::Main(argc, argv); }
