// Implements the choice of inputs and outputs of program files, which declare them.
#include "embedding/session_interface.h"
#include "graph/base/status.h"

namespace permafrost {
namespace {

std::vector<std::string> NamesOf(const std::vector<ProgramFileEndpoint>& endpoints) {
  std::vector<std::string> names;
  for (const ProgramFileEndpoint& endpoint : endpoints) names.emplace_back(endpoint.name);
  return names;
}

}  // namespace

absl::StatusOr<SessionInterface> ChooseInterface(const ProgramFile& program, const pf_session_options& options) {
  SessionInterface interface = {NamesOf(program.inputs()), NamesOf(program.outputs())};
  if (options.inputs != nullptr) {
    PF_ASSIGN_OR_RETURN(interface.inputs, GivenNames(options.inputs, options.num_inputs, "input"));
  }
  if (options.outputs != nullptr) {
    PF_ASSIGN_OR_RETURN(interface.outputs, GivenNames(options.outputs, options.num_outputs, "output"));
  }
  return interface;
}

// The shapes of a program are known, so a session describes its outputs.
std::vector<TensorSpec> DescribeOutputs(const ProgramFile& /*program*/, const std::vector<std::string>& /*names*/) {
  return {};
}

}  // namespace permafrost
