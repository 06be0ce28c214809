// Runs a model once in the reference runtime, for tests: run_tflite MODEL OUT INPUT.npy... writes the elements of
// output k to OUT_<k>.bin.
#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

#include "graph/base/status.h"
#include "io/file_system.h"
#include "io/formats/npy.h"
#include "io/model_file.h"
#include "runtime_check/session.h"

namespace permafrost {
namespace {

absl::Status Run(const std::vector<std::string>& arguments) {
  if (arguments.size() < 2) return absl::InvalidArgumentError("expected MODEL OUT INPUT.npy...");
  PF_ASSIGN_OR_RETURN(const std::unique_ptr<Graph> graph, OpenModel(RealFileSystem(), arguments[0]));
  std::vector<std::string> feeds, fetches;
  for (const Endpoint& input : graph->inputs()) feeds.push_back(input.text);
  for (const Endpoint& output : graph->outputs()) fetches.push_back(output.text);
  PF_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session, Session::Create(*graph, feeds, fetches));
  std::vector<Tensor> inputs;
  for (size_t i = 2; i < arguments.size(); ++i) {
    PF_ASSIGN_OR_RETURN(const FileView file, RealFileSystem().MapFile(arguments[i]));
    PF_ASSIGN_OR_RETURN(inputs.emplace_back(), ParseNpy(file.bytes, file.owner));
  }
  PF_ASSIGN_OR_RETURN(const std::vector<Tensor> outputs, session->Run(inputs));
  for (size_t k = 0; k < outputs.size(); ++k) {
    std::ofstream file(arguments[1] + "_" + std::to_string(k) + ".bin", std::ios::binary);
    file.write(outputs[k].bytes().data(), static_cast<std::streamsize>(outputs[k].bytes().size()));
    if (!file) return absl::InternalError("cannot write the output");
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace permafrost

int main(int argc, char** argv) {
  const absl::Status status = permafrost::Run(std::vector<std::string>(argv + 1, argv + argc));
  if (!status.ok()) std::fprintf(stderr, "%s\n", std::string(status.message()).c_str());
  return status.ok() ? 0 : 1;
}
