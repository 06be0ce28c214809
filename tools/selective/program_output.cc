// Runs a program file and its graph on the same inputs.
#include "tools/selective/program_output.h"

#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "graph/tensor.h"
#include "runtime_check/checking/seeded_inputs.h"
#include "runtime_check/program_file/program_file.h"
#include "runtime_check/program_file/program_session.h"
#include "runtime_check/program_file/program_writer.h"
#include "runtime_check/session.h"

namespace permafrost {
namespace {

constexpr int kNumInputs = 2;  // Sets of inputs for the comparison.

std::vector<std::string> NamesOf(const std::vector<Endpoint>& endpoints) {
  std::vector<std::string> names;
  for (const Endpoint& endpoint : endpoints) names.push_back(endpoint.text);
  return names;
}

absl::Status Compare(const Graph& graph, const ProgramFile& program, const std::vector<std::string>& inputs,
                     const std::vector<std::string>& outputs, uint64_t seed) {
  PF_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session, Session::Create(graph, inputs, outputs));
  PF_ASSIGN_OR_RETURN(const std::unique_ptr<ProgramSession> made, ProgramSession::Create(program, inputs, outputs));
  const std::vector<TensorSpec> specs = made->Inputs();
  for (int i = 0; i < kNumInputs; ++i) {
    std::vector<Tensor> feeds;
    for (const TensorSpec& spec : specs) {
      PF_ASSIGN_OR_RETURN(feeds.emplace_back(), SeededTensor(spec.dtype, spec.shape, seed++));
    }
    PF_ASSIGN_OR_RETURN(const std::vector<Tensor> expected, session->Run(feeds));
    PF_ASSIGN_OR_RETURN(const std::vector<Tensor> found, made->Run(feeds));
    for (size_t j = 0; j < expected.size(); ++j) {
      if (found[j] == expected[j]) continue;
      return absl::AbortedError(
          absl::StrCat("output '", outputs[j], "' of the program differs from that of the graph; nothing is written"));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::string> EncodeProgram(const Graph& graph, uint64_t seed) {
  const std::vector<std::string> inputs = NamesOf(graph.inputs()), outputs = NamesOf(graph.outputs());
  PF_ASSIGN_OR_RETURN(std::string bytes, MakeProgramFile(graph, inputs, outputs));
  PF_ASSIGN_OR_RETURN(const std::unique_ptr<ProgramFile> program, ProgramFile::Read(bytes, nullptr));
  PF_RETURN_IF_ERROR(Annotate(Compare(graph, *program, inputs, outputs, seed), "the proof of the program"));
  return bytes;
}

}  // namespace permafrost
