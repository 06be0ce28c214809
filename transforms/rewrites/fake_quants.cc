// Converts fake-quantisation to quantisation.
#include "transforms/rewrites/fake_quants.h"

#include <cmath>
#include <string>

#include "graph/base/status.h"
#include "graph/matching/matcher.h"
#include "transforms/rewrites/channel_scaling.h"
#include "transforms/rewrites/eight_bit.h"

namespace permafrost {
namespace {

constexpr int kFullBits = 8;
// Maximum number of nodes that one fake-quant may move across, so that many in a row take linear time. Training graphs
// have an activation and a pooling between a 32-bit op and its fake-quant.
constexpr int kMostPassed = 64;

// Ops of one input whose results are input values, possibly clamped, in an order that earlier clamping and rounding do
// not change. They map 0 to 0, which every range represents.
bool CommutesWithFakeQuant(Op op) {
  for (const Op known : {ops::kRelu, ops::kRelu6, ops::kMaxPool, ops::kIdentity, ops::kStopGradient, ops::kSqueeze}) {
    if (op == known) return true;
  }
  return false;
}

// Returns the value of a constant float scalar.
absl::StatusOr<float> ConstantScalar(const Node& node, int index) {
  const Node* constant = ConstantBehind(node.input(index));
  if (constant == nullptr) {
    return absl::FailedPreconditionError(
        "its range is not constant: run remove_nodes(op=Identity) and fold_constants first");
  }
  PF_ASSIGN_OR_RETURN(const Tensor value, ConstValue(*constant));
  if (value.dtype() != DType::kFloat || value.num_elements() != 1) {
    return absl::FailedPreconditionError("its range is not a pair of float scalars");
  }
  return value.elements<float>()[0];
}

// Returns OK if quantising to eight bits over the constant range is equivalent to `fake`.
absl::Status CheckFakeQuant(const Node& fake) {
  if (fake.num_data_inputs() != 3) return absl::FailedPreconditionError("it has not three inputs");
  PF_ASSIGN_OR_RETURN(const int64_t bits, IntAttr(fake, "num_bits"));
  PF_ASSIGN_OR_RETURN(const bool is_narrow, BoolAttr(fake, "narrow_range"));
  if (bits != kFullBits) {
    return absl::FailedPreconditionError(absl::StrCat("its num_bits is ", bits, ", expected ", kFullBits));
  }
  if (is_narrow) return absl::FailedPreconditionError("its narrow_range is true, expected false");
  PF_ASSIGN_OR_RETURN(const float min, ConstantScalar(fake, 1));
  PF_ASSIGN_OR_RETURN(const float max, ConstantScalar(fake, 2));
  if (!std::isfinite(min) || !std::isfinite(max) || !(min < max)) {
    return absl::FailedPreconditionError(
        absl::StrCat("its range is [", min, ", ", max, "], expected a finite one that is not empty"));
  }
  return absl::OkStatus();
}

// Returns why a fake-quant cannot move across `node`, although its op allows it; empty if it can.
std::string Obstacle(const Node& node) {
  if (node.graph().IsEndpoint(&node)) return "is a declared input or output";
  if (node.uses().size() != 1) return absl::StrCat("has ", node.uses().size(), " users, expected one");
  if (node.num_data_inputs() != 1) return "has not one input";
  return "";
}

absl::StatusOr<bool> Hoist(Graph* graph, Node* fake, PassContext* context) {
  const TensorRef data = fake->input(0);
  TensorRef source = data;
  Node* lowest = nullptr;
  for (int passed = 0; passed < kMostPassed; ++passed) {
    if (source.port != 0 || !CommutesWithFakeQuant(source.node->op())) break;
    if (const std::string obstacle = Obstacle(*source.node); !obstacle.empty()) {
      context->MissIfWanted(*fake, "stops after ", source.node->Describe(), ", which ", obstacle);
      break;
    }
    lowest = source.node;
    source = lowest->input(0);
  }
  if (lowest == nullptr) return false;
  const RewriteScope rewrite(context, graph, {fake, lowest});
  if (!rewrite) return false;
  PF_ASSIGN_OR_RETURN(Node * hoisted, AddNodeAt(graph, absl::StrCat(fake->name(), "_hoisted"), fake->op(), lowest));
  hoisted->set_device(fake->device());
  hoisted->CopyAttrs(*fake);
  graph->AddInput(hoisted, source);
  graph->AddInput(hoisted, fake->input(1));
  graph->AddInput(hoisted, fake->input(2));
  for (int i = fake->num_data_inputs(); i < fake->num_inputs(); ++i) {
    graph->AddControlInput(hoisted, fake->input(i).node);
  }
  graph->SetInput(lowest, 0, {hoisted, 0});
  PF_RETURN_IF_ERROR(TakeOver(graph, fake, data.node));
  return true;
}

bool IsFakeQuant(const Graph& graph, const Node& node, PassContext* context) {
  if (node.op() != ops::kFakeQuantWithMinMaxVars) return false;
  if (graph.IsInput(&node)) {
    context->Miss(node, NotMatched(NearMiss::Kind::kEndpoint, {const_cast<Node*>(&node), 0}, "is a declared input"));
    return false;
  }
  if (const absl::Status status = CheckFakeQuant(node); !status.ok()) {
    context->Miss(node, status);
    return false;
  }
  return true;
}

// Returns the node of that op whose outputs 0, 1 and 2 are inputs 0, 1 and 2 of `node`, or null.
Node* CodesFrom(const Node& node, Op op) {
  if (node.num_data_inputs() < 3) return nullptr;
  Node* producer = node.input(0).node;
  for (int i = 0; i < 3; ++i) {
    if (node.input(i) != TensorRef{producer, i}) return nullptr;
  }
  return producer->op() == op && !node.graph().IsInput(producer) ? producer : nullptr;
}

bool HasTypes(const Node& requantize, DType from, DType to) {
  const absl::StatusOr<DType> input = TypeAttr(requantize, "Tinput");
  const absl::StatusOr<DType> output = TypeAttr(requantize, "out_type");
  return input.ok() && output.ok() && *input == from && *output == to;
}

// Returns the Requantize to a measured range whose result `outer` requantises to a constant range; null if there is
// none.
Node* InnerRequantize(const Node& outer) {
  if (outer.op() != ops::kRequantize || outer.num_data_inputs() != 5) return nullptr;
  if (!HasTypes(outer, DType::kQInt32, DType::kQUint8)) return nullptr;
  if (ConstantBehind(outer.input(3)) == nullptr || ConstantBehind(outer.input(4)) == nullptr) return nullptr;
  const Node* quantize = CodesFrom(outer, ops::kQuantizeV2);
  if (quantize == nullptr || !IsPlainQuantize(*quantize, DType::kQInt32)) return nullptr;
  if (ConstantBehind(quantize->input(1)) == nullptr || ConstantBehind(quantize->input(2)) == nullptr) return nullptr;
  const TensorRef values = quantize->input(0);
  if (values.port != 0 || !IsPlainDequantize(*values.node) || outer.graph().IsInput(values.node)) return nullptr;
  Node* inner = CodesFrom(*values.node, ops::kRequantize);
  if (inner == nullptr || inner->num_data_inputs() != 5) return nullptr;
  if (!HasTypes(*inner, DType::kQInt32, DType::kQUint8)) return nullptr;
  for (const int i : {3, 4}) {
    if (inner->input(i).node->op() != ops::kRequantizationRange) return nullptr;
  }
  return inner;
}

}  // namespace

absl::StatusOr<int64_t> HoistFakeQuants(Graph* graph, PassContext* context) {
  int64_t hoisted = 0;
  for (Node* node : graph->Nodes()) {
    // A node that a hoist has merged is removed but keeps its last op, which is never a fake-quant.
    if (!IsFakeQuant(*graph, *node, context)) continue;
    PF_ASSIGN_OR_RETURN(const bool moved, Hoist(graph, node, context));
    hoisted += moved ? 1 : 0;
  }
  return hoisted;
}

absl::StatusOr<int64_t> FakeQuantsToRequantizes(Graph* graph, PassContext* context) {
  int64_t replaced = 0;
  PassContext quiet;  // HoistFakeQuants has recorded the misses already.
  for (Node* fake : graph->Nodes()) {
    if (!IsFakeQuant(*graph, *fake, &quiet)) continue;
    const RewriteScope rewrite(context, graph, {fake});
    if (!rewrite) break;
    const std::string prefix = absl::StrCat(fake->name(), "_eightbit/");
    const TensorRef min = fake->input(1), max = fake->input(2);
    PF_ASSIGN_OR_RETURN(Node * quantize, AddNodeAt(graph, absl::StrCat(prefix, "quantize"), ops::kQuantizeV2, fake));
    quantize->SetAttr("T", AttrValue::Type(DType::kQInt32));
    quantize->SetAttr("mode", AttrValue::String(kCodingMode));
    for (const TensorRef& input : {fake->input(0), min, max}) graph->AddInput(quantize, input);
    for (int i = fake->num_data_inputs(); i < fake->num_inputs(); ++i) {
      graph->AddControlInput(quantize, fake->input(i).node);
    }
    PF_ASSIGN_OR_RETURN(Node * requantize, AddRequantize(graph, absl::StrCat(prefix, "requantize"),
                                                         CodedOutputOf(quantize), min, max, fake));
    BecomeDequantize(graph, fake, CodedOutputOf(requantize));
    ++replaced;
  }
  return replaced;
}

int64_t MergeAdjacentRequantizes(Graph* graph, PassContext* context) {
  int64_t merged = 0;
  for (Node* outer = graph->first(); outer != nullptr; outer = outer->next()) {
    const Node* inner = InnerRequantize(*outer);
    if (inner == nullptr) continue;
    const RewriteScope rewrite(context, graph, {outer, inner});
    if (!rewrite) break;
    for (int i = 0; i < 3; ++i) graph->SetInput(outer, i, inner->input(i));
    ++merged;
  }
  return merged;
}

}  // namespace permafrost
