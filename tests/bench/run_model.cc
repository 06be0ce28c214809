// Times a model in the reference runtime: run_model MODEL INPUT OUTPUT THREADS prints {"median_ms": ..., ...}.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "graph/base/status.h"
#include "io/file_system.h"
#include "io/model_file.h"
#include "runtime_check/checking/seeded_inputs.h"
#include "runtime_check/session.h"

namespace permafrost {
namespace {

constexpr int kWarmupRuns = 2;
constexpr int kRuns = 7;

double Milliseconds(std::chrono::steady_clock::duration duration) {
  return std::chrono::duration<double, std::milli>(duration).count();
}

absl::Status Measure(const std::string& path, const std::string& input, const std::string& output, int threads) {
  const auto start = std::chrono::steady_clock::now();
  PF_ASSIGN_OR_RETURN(std::unique_ptr<Graph> graph, OpenModel(RealFileSystem(), path));
  PF_RETURN_IF_ERROR(graph->DeclareInterface({input}, {output}));
  SessionOptions options;
  options.num_threads = threads;
  PF_ASSIGN_OR_RETURN(std::unique_ptr<Session> session, Session::Create(*graph, {input}, {output}, options));
  const double load = Milliseconds(std::chrono::steady_clock::now() - start);
  PF_ASSIGN_OR_RETURN(const std::vector<Tensor> feeds, SeededInputs(graph->inputs(), {}, /*seed=*/1));
  std::vector<double> times;
  double first = 0;
  for (int i = 0; i < kWarmupRuns + kRuns; ++i) {
    const auto run_start = std::chrono::steady_clock::now();
    PF_RETURN_IF_ERROR(session->Run(feeds).status());
    const double run = Milliseconds(std::chrono::steady_clock::now() - run_start);
    if (i == 0) first = run;
    if (i >= kWarmupRuns) times.push_back(run);
  }
  std::sort(times.begin(), times.end());
  std::printf("{\"median_ms\": %.3f, \"min_ms\": %.3f, \"load_ms\": %.3f, \"first_ms\": %.3f}\n",
              times[times.size() / 2], times[0], load, first);
  return absl::OkStatus();
}

}  // namespace
}  // namespace permafrost

int main(int argc, char** argv) {
  if (argc != 5) {
    std::fprintf(stderr, "usage: run_model MODEL INPUT OUTPUT THREADS\n");
    return 2;
  }
  const absl::Status status = permafrost::Measure(argv[1], argv[2], argv[3], std::atoi(argv[4]));
  if (status.ok()) return 0;
  std::fprintf(stderr, "run_model: %s\n", std::string(status.message()).c_str());
  return 1;
}
