// Collects facts from a graph.
#include "tools/report/model_facts.h"

#include <algorithm>
#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "graph/analysis/order.h"
#include "graph/ops/op_schema.h"
#include "tools/measuring/node_costs.h"
#include "tools/summary/flops.h"

namespace permafrost {
namespace {

constexpr size_t kMostHistograms = 200;
// Fewer elements have no meaningful distribution.
constexpr int64_t kLeastElements = 16;
// If the elements take this many times the bytes in the file, the constant is one repeated value.
constexpr uint64_t kFilledRatio = 64;

std::optional<TensorType> OutputType(const Node& node, int port, const absl::StatusOr<ShapeMap>& shapes) {
  const absl::StatusOr<std::vector<DType>> types = OutputTypes(node);
  if (!types.ok() || port < 0 || static_cast<size_t>(port) >= types->size()) return std::nullopt;
  TensorType type;
  type.dtype = RemoveRef((*types)[static_cast<size_t>(port)]);
  if (shapes.ok()) type.shape = shapes->Of({const_cast<Node*>(&node), port});
  return type;
}

std::vector<EndpointFacts> EndpointsOf(const std::vector<Endpoint>& endpoints, const absl::StatusOr<ShapeMap>& shapes) {
  std::vector<EndpointFacts> facts;
  for (const Endpoint& endpoint : endpoints) {
    if (endpoint.node == nullptr) continue;
    facts.push_back({endpoint.text, OutputType(*endpoint.node, endpoint.port, shapes)});
  }
  return facts;
}

std::optional<ConstantFacts> FactsOf(const Node& node, DType* dtype, int64_t* elements) {
  const AttrValue* value = node.FindAttr("value");
  Shape shape;
  if (value == nullptr || !value->TensorTypeAndShape(dtype, &shape).ok() || !shape.IsFullyKnown()) return std::nullopt;
  const absl::StatusOr<int64_t> count = shape.CheckedNumElements();
  ConstantFacts facts;
  if (!count.ok() || __builtin_mul_overflow(static_cast<uint64_t>(*count), SizeOf(*dtype), &facts.bytes)) {
    return std::nullopt;
  }
  *elements = *count;
  facts.node = &node;
  facts.type = {*dtype, shape};
  return facts;
}

uint64_t BytesOf(const Node& constant) {
  DType dtype;
  int64_t elements;
  const std::optional<ConstantFacts> facts = FactsOf(constant, &dtype, &elements);
  return facts.has_value() ? facts->bytes : 0;
}

// Returns whether the node is deterministic and all its inputs are known before the run.
bool IsComputedFrom(const Node& node, const std::vector<bool>& is_known) {
  const OpSchema* schema = FindSchema(node.op());
  if (node.num_data_inputs() == 0 || schema == nullptr || schema->Is(kStateful | kRandom | kControlFlow)) return false;
  for (int i = 0; i < node.num_data_inputs(); ++i) {
    if (!is_known[node.input(i).node->id()]) return false;
  }
  return true;
}

void AddConstants(const Graph& graph, GraphFacts* facts) {
  std::map<std::string, TypeTotal> by_type;
  for (const Node* node = graph.first(); node != nullptr; node = node->next()) {
    if (node->op() != ops::kConst) continue;
    DType dtype;
    int64_t elements = 0;
    std::optional<ConstantFacts> constant = FactsOf(*node, &dtype, &elements);
    if (!constant.has_value()) continue;
    // A hostile file may claim more than it contains; a sum beyond 64 bits is not counted.
    if (__builtin_add_overflow(facts->num_parameters, elements, &facts->num_parameters)) facts->num_parameters = 0;
    facts->weight_bytes += constant->bytes;
    TypeTotal& total = by_type[DTypeName(dtype)];
    total.type = DTypeName(dtype);
    ++total.count;
    total.bytes += constant->bytes;
    if (elements >= kLeastElements) facts->constants.push_back(*std::move(constant));
  }
  for (auto& [type, total] : by_type) facts->weights_by_type.push_back(std::move(total));
  std::stable_sort(facts->weights_by_type.begin(), facts->weights_by_type.end(),
                   [](const TypeTotal& a, const TypeTotal& b) { return a.bytes > b.bytes; });
  std::stable_sort(facts->constants.begin(), facts->constants.end(),
                   [](const ConstantFacts& a, const ConstantFacts& b) { return a.bytes > b.bytes; });
  facts->constants.resize(std::min(facts->constants.size(), kMostHistograms));
  for (ConstantFacts& constant : facts->constants) {
    const AttrValue& value = *constant.node->FindAttr("value");
    if (value.held_tensor() == nullptr && constant.bytes / kFilledRatio > value.EncodedSize()) continue;
    if (const absl::StatusOr<Tensor> tensor = value.AsTensor(); tensor.ok()) {
      constant.histogram = MakeWeightHistogram(*tensor);
    }
  }
}

}  // namespace

std::string TensorType::ToString() const {
  return shape.has_value() ? absl::StrCat(DTypeName(dtype), " ", shape->ToString()) : std::string(DTypeName(dtype));
}

GraphFacts CollectGraphFacts(const Graph& graph, const absl::flat_hash_map<std::string, Shape>& fed) {
  GraphFacts facts;
  const NodeCosts costs(graph, fed);
  const absl::StatusOr<ShapeMap> shapes = ShapesToCount(graph, fed);
  if (!shapes.ok()) facts.notes.push_back(absl::StrCat("shapes are not known: ", shapes.status().message()));
  facts.num_nodes = graph.num_nodes();
  facts.flops = costs.flops().total;
  facts.inputs = EndpointsOf(graph.inputs(), shapes);
  facts.outputs = EndpointsOf(graph.outputs(), shapes);
  std::map<std::string, int64_t> ops;
  for (const Node* node = graph.first(); node != nullptr; node = node->next()) ++ops[std::string(node->op().name())];
  facts.ops.assign(ops.begin(), ops.end());
  std::stable_sort(facts.ops.begin(), facts.ops.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  AddConstants(graph, &facts);
  std::vector<Node*> order = graph.Nodes();
  if (absl::StatusOr<std::vector<Node*>> sorted = StableTopologicalOrder(graph); sorted.ok())
    order = *std::move(sorted);
  std::vector<int32_t> number(graph.id_limit(), -1);
  // A frozen variable is a constant behind an Identity, which counts as a constant, too. The bytes of a value computed
  // from constants alone, such as unpacked weights, count for its readers.
  std::vector<bool> is_constant(graph.id_limit(), false), is_known(graph.id_limit(), false);
  std::vector<uint64_t> constant_bytes(graph.id_limit(), 0);
  for (const Node* node : order) {
    is_constant[node->id()] =
        node->op() == ops::kConst || (node->op() == ops::kIdentity && node->num_data_inputs() == 1 &&
                                      is_constant[node->input(0).node->id()] && !graph.IsOutput(node));
    is_known[node->id()] = is_constant[node->id()] || IsComputedFrom(*node, is_known);
    uint64_t weight_bytes = 0;
    for (int i = 0; i < node->num_data_inputs(); ++i) {
      const uint32_t input = node->input(i).node->id();
      if (is_known[input]) weight_bytes += constant_bytes[input];
    }
    constant_bytes[node->id()] = node->op() == ops::kConst ? BytesOf(*node) : weight_bytes;
    if (is_constant[node->id()]) continue;
    number[node->id()] = static_cast<int32_t>(facts.nodes.size());
    NodeFacts& made = facts.nodes.emplace_back();
    made.node = node;
    made.output = OutputType(*node, 0, shapes);
    if (!is_known[node->id()]) made.weight_bytes = weight_bytes;
    if (const NodeCost* cost = costs.Find(node->name()); cost != nullptr) {
      made.flops = cost->flops;
      made.output_bytes = cost->output_bytes;
    }
  }
  for (const NodeFacts& made : facts.nodes) {
    std::set<int32_t> from;
    for (int i = 0; i < made.node->num_inputs(); ++i) {
      const int32_t input = number[made.node->input(i).node->id()];
      if (input >= 0) from.insert(input);
    }
    for (const int32_t each : from) facts.edges.emplace_back(each, number[made.node->id()]);
  }
  if (facts.nodes.size() <= kMostDrawnNodes) {
    facts.layout = LayOut(static_cast<int32_t>(facts.nodes.size()), facts.edges);
  } else {
    facts.notes.push_back(absl::StrCat("not drawn: ", facts.nodes.size(), " nodes, at most ", kMostDrawnNodes, " are"));
  }
  return facts;
}

}  // namespace permafrost
