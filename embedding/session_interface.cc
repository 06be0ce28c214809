// Implements the choice of inputs and outputs: given, declared or found.
#include "embedding/session_interface.h"

#include <cstdint>
#include <optional>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "graph/analysis/interface_finder.h"
#include "graph/base/selection.h"
#include "graph/base/status.h"
#include "graph/ops/op_schema.h"
#include "graph/shapes/shape_inference.h"

namespace permafrost {
namespace {

// Returns the node and port that "x:1" names; the node is null if there is none.
TensorRef Named(const Graph& graph, absl::string_view text) {
  TensorRef ref;
  const size_t colon = text.rfind(':');
  if (colon != absl::string_view::npos && absl::SimpleAtoi(text.substr(colon + 1), &ref.port)) {
    text = text.substr(0, colon);
  }
  ref.node = graph.Find(text);
  return ref;
}

// Sets the shapes of these tensors. Entries without a node keep unknown shapes.
void SetShapes(const Graph& graph, const std::vector<TensorRef>& refs, std::vector<TensorSpec>* specs) {
  const absl::StatusOr<ShapeMap> shapes = InferShapes(graph);
  if (!shapes.ok()) return;
  for (size_t i = 0; i < refs.size(); ++i) {
    if (refs[i].node != nullptr) (*specs)[i].shape = shapes->Of(refs[i]);
  }
}

absl::Status Doubt(absl::string_view kind, absl::string_view reason, const std::vector<FoundEndpoint>& endpoints) {
  std::string candidates;
  for (size_t i = 0; i < endpoints.size() && i < 5; ++i) {
    absl::StrAppend(&candidates, i == 0 ? "; candidates: '" : ", '", endpoints[i].name(), "'");
  }
  return absl::InvalidArgumentError(
      absl::StrCat("the ", kind, " of the model are ambiguous: ", reason, "; specify them in the options", candidates));
}

}  // namespace

absl::StatusOr<SessionInterface> ChooseInterface(const Graph& graph, const pf_session_options& options) {
  SessionInterface interface;
  const bool gives_inputs = options.inputs != nullptr, gives_outputs = options.outputs != nullptr;
  PF_ASSIGN_OR_RETURN(interface.inputs, GivenNames(options.inputs, gives_inputs ? options.num_inputs : 0, "input"));
  PF_ASSIGN_OR_RETURN(interface.outputs,
                      GivenNames(options.outputs, gives_outputs ? options.num_outputs : 0, "output"));
  InterfaceChoice choice =
      ChooseInterface(graph, gives_inputs ? &interface.inputs : nullptr, gives_outputs ? &interface.outputs : nullptr);
  // A missing node is reported by the session, with the nearest names.
  if (!choice.found.outputs_doubt.empty()) return Doubt("outputs", choice.found.outputs_doubt, choice.found.outputs);
  if (!choice.found.inputs_doubt.empty()) return Doubt("inputs", choice.found.inputs_doubt, choice.found.inputs);
  interface.inputs = std::move(choice.inputs);
  interface.outputs = std::move(choice.outputs);
  return interface;
}

std::vector<TensorSpec> DescribeOutputs(const Graph& graph, const std::vector<std::string>& names) {
  std::vector<TensorSpec> specs;
  std::vector<TensorRef> refs;
  for (const std::string& name : names) {
    TensorSpec spec{name, DType::kInvalid, Shape::UnknownRank()};
    const TensorRef& ref = refs.emplace_back(Named(graph, name));
    if (ref.node != nullptr) {
      const absl::StatusOr<std::vector<DType>> types = OutputTypes(*ref.node);
      if (types.ok() && static_cast<size_t>(ref.port) < types->size()) spec.dtype = (*types)[ref.port];
    }
    specs.push_back(std::move(spec));
  }
  // A selective build does not infer shapes: its kernels compute them when a run is planned.
  if constexpr (!selection::kIsSelective) SetShapes(graph, refs, &specs);
  return specs;
}

}  // namespace permafrost
