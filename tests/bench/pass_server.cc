// Runs passes on request, so that a benchmark can alternate them with an equally warm peer:
//
//   pass_server MODEL INPUTS OUTPUTS OUT THREADS
//
// Reads transform strings from standard input, one per line, and answers each with one line of JSON: {"seconds": ...}
// for opening the model, running the passes and writing OUT, or {"error": ...}. The line "copy" writes the bytes of the
// model to OUT unchanged by the same calls, which is a lower bound for any pass.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "graph/base/status.h"
#include "io/file_system.h"
#include "io/model_file.h"
#include "runtime_check/checking/evaluate.h"
#include "transforms/pipeline/pipeline.h"

namespace permafrost {
namespace {

struct Job {
  std::string model, out;
  std::vector<std::string> inputs, outputs;
  int threads = 1;
};

absl::Status RunOnce(const Job& job, const std::string& transforms) {
  PF_ASSIGN_OR_RETURN(const std::vector<PassCall> calls, ParsePipeline(transforms));
  // Opens the files in the same way as transform_graph.
  PF_ASSIGN_OR_RETURN(std::unique_ptr<FileWriter> out, RealFileSystem().NewWriter(job.out));
  OpenOptions options;
  options.reads_all = job.threads > 1;
  if (job.threads > 1) {
    PF_ASSIGN_OR_RETURN(const FileStat source, RealFileSystem().Stat(job.model));
    out->ReserveAhead(source.size);
  }
  PF_ASSIGN_OR_RETURN(std::unique_ptr<Graph> graph, OpenModel(RealFileSystem(), job.model, options));
  PF_RETURN_IF_ERROR(graph->DeclareInterface(job.inputs, job.outputs));
  const KernelEvaluator evaluator;
  PassContext context;
  context.evaluator = &evaluator;
  context.num_threads = job.threads;
  context.read_file = [](absl::string_view path) { return RealFileSystem().ReadFile(std::string(path)); };
  PF_RETURN_IF_ERROR(RunPipeline(&graph, calls, &context).status());
  return SaveModel(std::move(out), *graph);
}

absl::Status Copy(const Job& job) {
  PF_ASSIGN_OR_RETURN(const FileView file, RealFileSystem().MapFile(job.model));
  PF_ASSIGN_OR_RETURN(const std::unique_ptr<FileWriter> writer, RealFileSystem().NewWriter(job.out, file.bytes.size()));
  PF_RETURN_IF_ERROR(writer->Append(file.bytes));
  return writer->Commit();
}

void Serve(const Job& job) {
  for (std::string line; std::getline(std::cin, line);) {
    const auto start = std::chrono::steady_clock::now();
    const absl::Status status = line == "copy" ? Copy(job) : RunOnce(job, line);
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    if (status.ok()) {
      std::printf("{\"seconds\": %.6f}\n", seconds);
    } else {
      std::fprintf(stderr, "pass_server: %s\n", std::string(status.message()).c_str());
      std::printf("{\"error\": \"see standard error\"}\n");
    }
    std::fflush(stdout);
  }
}

}  // namespace
}  // namespace permafrost

int main(int argc, char** argv) {
  if (argc != 6) {
    std::fprintf(stderr, "usage: pass_server MODEL INPUTS OUTPUTS OUT THREADS\n");
    return 2;
  }
  permafrost::Job job;
  job.model = argv[1];
  job.inputs = absl::StrSplit(argv[2], ',', absl::SkipEmpty());
  job.outputs = absl::StrSplit(argv[3], ',', absl::SkipEmpty());
  job.out = argv[4];
  job.threads = std::atoi(argv[5]);
  permafrost::Serve(job);
  return 0;
}
