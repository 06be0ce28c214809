// Fetches what both have, part by part.
#include "tools/report/layer_errors.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <utility>

#include "absl/types/span.h"
#include "graph/op_schema.h"
#include "graph/order.h"
#include "graph/status.h"
#include "runtime_check/coded_feeds.h"
#include "runtime_check/compare.h"
#include "tools/measuring/node_costs.h"

namespace permafrost {
namespace {

// Bytes of the tensors that are fetched at a time, and their number: a session keeps all of them.
constexpr uint64_t kMostBytes = uint64_t{256} << 20;
constexpr size_t kMostFetches = 500;

bool IsFloatLayer(const Node& node) {
  for (const Op op : {ops::kConst, ops::kPlaceholder, ops::kPlaceholderWithDefault, ops::kIdentity}) {
    if (node.op() == op) return false;
  }
  const absl::StatusOr<std::vector<DType>> types = OutputTypes(node);
  return types.ok() && !types->empty() && (*types)[0] == DType::kFloat;
}

// By node id: what the outputs need.
std::vector<bool> Needed(const Graph& graph) {
  std::vector<Node*> roots;
  for (const Endpoint& output : graph.outputs()) roots.push_back(output.node);
  return ReachedBackwards(graph, roots, {});
}

// The values of `fetches` on what `fed` is fed.
absl::StatusOr<std::vector<Tensor>> Run(const BenchmarkSubject& model, const BenchmarkSubject& fed,
                                        absl::Span<const std::string> fetches, const SessionOptions& options) {
  std::vector<std::string> names;
  std::vector<Tensor> feeds;
  for (const Endpoint& input : fed.graph().inputs()) {
    const size_t i = static_cast<size_t>(&input - fed.graph().inputs().data());
    const std::string& text = input.text;
    Node* node = model.graph().Find(text.substr(0, text.rfind(':')));
    if (node == nullptr || i >= fed.feeds().size()) continue;
    names.push_back(text);
    PF_ASSIGN_OR_RETURN(feeds.emplace_back(), CodedFeed({text, node, input.port}, fed.feeds()[i]));
  }
  PF_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session,
                      Session::Create(model.graph(), names, fetches, options));
  return session->Run(feeds);
}

double ErrorOf(const Tensor& expected, const Tensor& actual) {
  const OutputDifference difference = CompareTensors(expected, actual);
  if (difference.num_nonfinite_mismatches > 0) return -std::numeric_limits<double>::infinity();
  return difference.is_identical() ? std::numeric_limits<double>::infinity() : difference.sqnr_db;
}

}  // namespace

absl::StatusOr<absl::flat_hash_map<std::string, double>> LayerErrors(const BenchmarkSubject& reference,
                                                                     const BenchmarkSubject& candidate,
                                                                     const SessionOptions& options) {
  const NodeCosts costs(reference.graph(), reference.fed_shapes());
  const std::vector<bool> needed = Needed(reference.graph()), needed_there = Needed(candidate.graph());
  std::vector<std::vector<std::string>> parts(1);
  uint64_t bytes = 0;
  for (const Node* node = reference.graph().first(); node != nullptr; node = node->next()) {
    const Node* other = candidate.graph().Find(node->name());
    if (other == nullptr || !needed[node->id()] || !needed_there[other->id()]) continue;
    if (!IsFloatLayer(*node) || !IsFloatLayer(*other) || reference.graph().IsInput(node)) continue;
    const NodeCost* cost = costs.Find(node->name());
    const uint64_t own = cost == nullptr ? 0 : cost->output_bytes;
    if (own > kMostBytes) continue;
    if (bytes + own > kMostBytes || parts.back().size() == kMostFetches) {
      parts.emplace_back();
      bytes = 0;
    }
    bytes += own;
    parts.back().emplace_back(node->name());
  }
  absl::flat_hash_map<std::string, double> errors;
  for (const std::vector<std::string>& part : parts) {
    if (part.empty()) continue;
    absl::StatusOr<std::vector<Tensor>> expected = Run(reference, reference, part, options);
    if (!expected.ok()) return Annotate(expected.status(), "the first model");
    absl::StatusOr<std::vector<Tensor>> actual = Run(candidate, reference, part, options);
    PF_RETURN_IF_ERROR(actual.status());
    for (size_t i = 0; i < part.size(); ++i) {
      if ((*expected)[i].shape() == (*actual)[i].shape()) errors[part[i]] = ErrorOf((*expected)[i], (*actual)[i]);
    }
  }
  return errors;
}

}  // namespace permafrost
