// Rounds the tensors of a graph with Cast nodes, and compares it with itself.
#include "tools/validation/half_simulation.h"

#include <algorithm>
#include <cmath>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "graph/analysis/order.h"
#include "graph/base/status.h"
#include "graph/ops/op_schema.h"
#include "runtime_check/checking/output_quality.h"
#include "runtime_check/session.h"

namespace permafrost {
namespace {

std::string TextOf(absl::string_view node, int port) {
  return port == 0 ? std::string(node) : absl::StrCat(node, ":", port);
}

double LargestOf(const Tensor& tensor) {
  double largest = 0;
  const auto values = tensor.elements<float>();
  for (size_t i = 0; i < values.size(); ++i) {
    if (std::isfinite(values[i])) largest = std::max(largest, std::fabs(static_cast<double>(values[i])));
  }
  return largest;
}

absl::Status AddCast(Graph* graph, const std::string& base, DType from, DType to, Node* position, TensorRef* tensor) {
  PF_ASSIGN_OR_RETURN(Node * cast, graph->AddNode(graph->UniqueName(base), ops::kCast, position));
  cast->SetAttr("SrcT", AttrValue::Type(from));
  cast->SetAttr("DstT", AttrValue::Type(to));
  graph->AddInput(cast, *tensor);
  *tensor = {cast, 0};
  return absl::OkStatus();
}

// Returns by id whether an output depends on a node; others may need inputs that are not fed.
std::vector<bool> NodesThatOutputsNeed(const Graph& graph) {
  std::vector<bool> needed(graph.id_limit(), false);
  std::vector<const Node*> waiting;
  for (const Endpoint& output : graph.outputs()) {
    if (output.node != nullptr) waiting.push_back(output.node);
  }
  while (!waiting.empty()) {
    const Node* node = waiting.back();
    waiting.pop_back();
    if (needed[node->id()]) continue;
    needed[node->id()] = true;
    if (graph.IsInput(node)) continue;
    for (int i = 0; i < node->num_inputs(); ++i) waiting.push_back(node->input(i).node);
  }
  return needed;
}

}  // namespace

absl::StatusOr<RoundedGraph> RoundTensors(const Graph& graph, DType dtype) {
  RoundedGraph rounded;
  rounded.graph = graph.Clone();
  PF_ASSIGN_OR_RETURN(const std::vector<Node*> order, StackTopologicalOrder(*rounded.graph));
  for (Node* node : order) {
    const OpSchema* schema = FindSchema(node->op());
    if (schema == nullptr || schema->Is(kControlFlow)) continue;
    const absl::StatusOr<std::vector<DType>> types = OutputTypes(*node);
    if (!types.ok()) continue;
    for (int port = 0; port < static_cast<int>(types->size()); ++port) {
      if ((*types)[static_cast<size_t>(port)] != DType::kFloat) continue;
      const std::vector<Use> uses = rounded.graph->UsesOf({node, port});
      TensorRef tensor = {node, port};
      const std::string base = absl::StrCat(node->name(), "/rounded");
      PF_RETURN_IF_ERROR(AddCast(rounded.graph.get(), base, DType::kFloat, dtype, node->next(), &tensor));
      PF_RETURN_IF_ERROR(AddCast(rounded.graph.get(), base, dtype, DType::kFloat, tensor.node->next(), &tensor));
      for (const Use& use : uses) rounded.graph->SetInput(use.consumer, static_cast<int>(use.index), tensor);
      rounded.tensors.emplace_back(TextOf(node->name(), port), TextOf(tensor.node->name(), 0));
    }
  }
  return rounded;
}

absl::StatusOr<HalfSimulation> SimulateHalf(const Graph& graph, DType dtype, BatchSource& source, size_t most_batches,
                                            const SessionOptions& options) {
  HalfSimulation result;
  result.dtype = dtype;
  // The largest finite numbers: 2^16 - 2^5, and 2^128 - 2^120. Numbers from half a unit in the last place beyond are
  // rounded to infinity.
  const bool is_half = dtype == DType::kHalf;
  result.limit = is_half ? 65504 : std::ldexp(255, 120);
  const double rounds_to_infinity = is_half ? 65520 : std::ldexp(511, 119);
  PF_ASSIGN_OR_RETURN(const RoundedGraph rounded, RoundTensors(graph, dtype));
  std::vector<std::string> feeds, fetches, rounded_fetches;
  for (const Endpoint& input : graph.inputs()) feeds.push_back(input.text);
  absl::flat_hash_set<std::string> outputs;
  for (const Endpoint& output : graph.outputs()) {
    if (output.node != nullptr) outputs.insert(TextOf(output.node->name(), output.port));
  }
  const std::vector<bool> needed = NodesThatOutputsNeed(graph);
  for (const auto& [original, copy] : rounded.tensors) {
    const Node* node = graph.Find(original.substr(0, original.rfind(':')));
    if (node == nullptr || !needed[node->id()] || (node->op() == ops::kConst && !outputs.contains(original))) continue;
    fetches.push_back(original);
    rounded_fetches.push_back(copy);
  }
  const auto create = [&](std::unique_ptr<Session>* first, std::unique_ptr<Session>* second) -> absl::Status {
    PF_ASSIGN_OR_RETURN(*first, Session::Create(graph, feeds, fetches, options));
    PF_ASSIGN_OR_RETURN(*second, Session::Create(*rounded.graph, feeds, rounded_fetches, options));
    return absl::OkStatus();
  };
  std::unique_ptr<Session> in_float, in_half;
  // Tensors of loops and of branches that are not taken cannot be fetched.
  const auto keep_outputs_only = [&] {
    std::vector<std::string> kept, kept_rounded;
    for (size_t i = 0; i < fetches.size(); ++i) {
      if (!outputs.contains(fetches[i])) continue;
      kept.push_back(fetches[i]);
      kept_rounded.push_back(rounded_fetches[i]);
    }
    fetches = std::move(kept);
    rounded_fetches = std::move(kept_rounded);
    result.covers_inner_tensors = false;
  };
  if (!create(&in_float, &in_half).ok()) {
    keep_outputs_only();
    PF_RETURN_IF_ERROR(create(&in_float, &in_half));
  }
  std::vector<SimulatedTensor> tensors(fetches.size());
  for (size_t batch = 0; batch < std::min(most_batches, source.num_batches()); ++batch) {
    PF_ASSIGN_OR_RETURN(const Batch read, source.Read(batch, nullptr));
    absl::StatusOr<std::vector<Tensor>> expected = in_float->Run(read.feeds);
    if (!expected.ok() && batch == 0 && result.covers_inner_tensors) {
      keep_outputs_only();
      tensors.assign(fetches.size(), {});
      PF_RETURN_IF_ERROR(create(&in_float, &in_half));
      expected = in_float->Run(read.feeds);
    }
    if (!expected.ok()) return expected.status();
    PF_ASSIGN_OR_RETURN(const std::vector<Tensor> actual, in_half->Run(read.feeds));
    for (size_t i = 0; i < fetches.size(); ++i) {
      tensors[i].largest = std::max(tensors[i].largest, LargestOf((*expected)[i]));
      tensors[i].difference.Merge(CompareTensors((*expected)[i], actual[i]));
    }
    ++result.num_batches;
  }
  for (size_t i = 0; i < fetches.size(); ++i) {
    SimulatedTensor& tensor = tensors[i];
    tensor.name = fetches[i];
    const Node* node = graph.Find(fetches[i].substr(0, fetches[i].rfind(':')));
    if (node != nullptr) tensor.op = std::string(node->op().name());
    tensor.is_beyond = tensor.largest >= rounds_to_infinity;
    if (tensor.is_beyond) result.beyond.push_back(tensor);
    // Small inner tensors may be multiplied later, so they are judged by their own scale.
    constexpr double kNoFloor = 1e-30;
    OutputDifference by_own_scale = tensor.difference;
    by_own_scale.scale_floor = kNoFloor;
    const bool is_ruined =
        tensor.difference.num_nonfinite_mismatches > 0 || JudgeQuality(by_own_scale) == OutputQuality::kRuined;
    if (is_ruined && !result.lost.has_value()) result.lost = tensor;
    if (outputs.contains(fetches[i])) result.outputs.push_back(std::move(tensor));
  }
  // A difference that no output shows is not a loss.
  const bool is_fine = std::all_of(result.outputs.begin(), result.outputs.end(), [](const SimulatedTensor& output) {
    return output.difference.num_nonfinite_mismatches == 0 && JudgeQuality(output.difference) == OutputQuality::kFine;
  });
  if (is_fine) result.lost.reset();
  return result;
}

}  // namespace permafrost
