// Compares running one node at a time with running several at the same time, alternating in one process, and compares
// the results bit by bit:
//     inter_op_threads FOLDER THREADS DELEGATE [ROUNDS]
// FOLDER has model.pb and spec.json, in the form given in tests/bench/recorded_models.py. DELEGATE is as in
// validate_model. Prints a row of a table; milliseconds are the minimum of all rounds.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "io/file_system.h"
#include "io/formats/npy.h"
#include "io/model_file.h"
#include "runtime_check/delegates/delegate_registry.h"
#include "runtime_check/session.h"
#include "tests/model_spec.h"

namespace permafrost {
namespace {

struct Side {
  std::unique_ptr<Session> session;
  std::vector<double> milliseconds;
  std::vector<Tensor> outputs;

  double least() const { return *std::min_element(milliseconds.begin(), milliseconds.end()); }
  double median() const {
    std::vector<double> sorted = milliseconds;
    std::sort(sorted.begin(), sorted.end());
    return sorted[sorted.size() / 2];
  }
};

absl::Status Run(const std::string& folder, int num_threads, const std::string& delegate, int rounds) {
  PF_ASSIGN_OR_RETURN(const ModelSpec spec, ReadModelSpec(folder));
  PF_ASSIGN_OR_RETURN(const std::unique_ptr<Graph> graph, OpenModel(RealFileSystem(), folder + "/model.pb"));
  PF_ASSIGN_OR_RETURN(const FileView file, RealFileSystem().MapFile(folder + "/input_0.npy"));
  PF_ASSIGN_OR_RETURN(const Tensor input, ParseNpy(file.bytes, file.owner));
  std::vector<Side> sides(2);
  for (size_t i = 0; i < sides.size(); ++i) {
    SessionOptions options;
    options.num_threads = num_threads;
    options.inter_op_threads = i == 0 ? 1 : std::max(2, num_threads);
    PF_ASSIGN_OR_RETURN(options.delegate, MakeDelegate(delegate, {}));
    PF_ASSIGN_OR_RETURN(sides[i].session, Session::Create(*graph, spec.inputs, spec.outputs, options));
    PF_RETURN_IF_ERROR(sides[i].session->Run({input}).status());
  }
  for (int round = 0; round < rounds; ++round) {
    for (Side& side : sides) {
      const auto start = std::chrono::steady_clock::now();
      PF_ASSIGN_OR_RETURN(side.outputs, side.session->Run({input}));
      const auto end = std::chrono::steady_clock::now();
      side.milliseconds.push_back(std::chrono::duration<double, std::milli>(end - start).count());
    }
  }
  bool is_same = true;
  for (size_t i = 0; i < sides[0].outputs.size(); ++i) is_same = is_same && sides[0].outputs[i] == sides[1].outputs[i];
  const PlanReport &serial = sides[0].session->report(), &beside = sides[1].session->report();
  size_t pieces_beside = 0;
  for (const auto& partition : beside.delegation.partitions) {
    for (const std::string& piece : partition.pieces) pieces_beside += piece.find("beside others") != std::string::npos;
  }
  std::printf("| %s | %s | %.3f | %.3f | %.2f | %.2f | %.1f | %.1f | %lld of %lld | %zu | %s |\n",
              folder.substr(folder.rfind('/') + 1).c_str(), delegate.c_str(), sides[0].least(), sides[1].least(),
              sides[0].least() / sides[1].least(), sides[0].median() / sides[1].median(),
              static_cast<double>(serial.arena_bytes) / 1e6, static_cast<double>(beside.arena_bytes) / 1e6,
              static_cast<long long>(beside.num_beside), static_cast<long long>(beside.num_steps), pieces_beside,
              is_same ? "same bits" : "OTHER BITS");
  return absl::OkStatus();
}

}  // namespace
}  // namespace permafrost

int main(int argc, char** argv) {
  if (argc < 4) {
    std::fprintf(stderr, "usage: inter_op_threads FOLDER THREADS DELEGATE [ROUNDS]\n");
    return 2;
  }
  const absl::Status status =
      permafrost::Run(argv[1], std::atoi(argv[2]), argv[3], argc > 4 ? std::max(1, std::atoi(argv[4])) : 30);
  if (status.ok()) return 0;
  std::fprintf(stderr, "inter_op_threads: %s\n", std::string(status.message()).c_str());
  return 1;
}
