// Quantises to eight bits: converts float ops to their eight-bit forms, and removes conversions between neighbours.
#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "absl/algorithm/container.h"
#include "graph/analysis/order.h"
#include "graph/base/status.h"
#include "graph/shapes/shape_inference.h"
#include "transforms/pass.h"
#include "transforms/rewrites/colocation.h"
#include "transforms/rewrites/duplicates.h"
#include "transforms/rewrites/eight_bit.h"
#include "transforms/rewrites/eight_bit_ops.h"
#include "transforms/rewrites/fake_quants.h"
#include "transforms/rewrites/splicing.h"

namespace permafrost {
namespace {

struct Params {
  std::optional<float> input_min;
  std::optional<float> input_max;
  std::optional<float> fallback_min;
  std::optional<float> fallback_max;
  std::vector<std::string> ignore_op;
};

absl::StatusOr<std::optional<FloatBounds>> RangeOf(absl::string_view name, std::optional<float> min,
                                                   std::optional<float> max) {
  if (min.has_value() != max.has_value()) {
    return absl::InvalidArgumentError(
        absl::StrCat("You must pass both ", name, "_min and ", name, "_max into quantize_nodes"));
  }
  if (!min.has_value()) return std::nullopt;
  if (!std::isfinite(*min) || !std::isfinite(*max) || !(*min < *max)) {
    return absl::InvalidArgumentError(absl::StrCat("parameters '", name, "_min' and '", name, "_max': found ", *min,
                                                   " and ", *max, ", expected a finite minimum below the maximum"));
  }
  return FloatBounds{*min, *max};
}

// Rewrites Placeholder p (float)  =>  Dequantize p_eightbit/dequantize of Placeholder p (quint8) and the range.
absl::StatusOr<int64_t> QuantizePlaceholders(Graph* graph, const FloatBounds& range, PassContext* context) {
  int64_t converted = 0;
  for (Node* node : graph->Nodes()) {
    if (node->op() != ops::kPlaceholder) continue;
    PF_ASSIGN_OR_RETURN(const DType type, TypeAttr(*node, "dtype"));
    if (type != DType::kFloat) {
      context->MissIfWanted(*node, "is fed with ", DTypeName(type), ", expected float");
      continue;
    }
    if (graph->IsOutput(node)) {
      context->Miss(*node, NotMatched(NearMiss::Kind::kEndpoint, {node, 0}, "is a declared output too"));
      continue;
    }
    const RewriteScope rewrite(context, graph, {node});
    if (!rewrite) break;
    const std::string prefix = absl::StrCat(node->name(), "_eightbit/");
    Node* position = node->next() == nullptr ? node : node->next();
    PF_ASSIGN_OR_RETURN(Node * min, AddScalarAt(graph, absl::StrCat(prefix, "min"), range.min, position, nullptr));
    PF_ASSIGN_OR_RETURN(Node * max, AddScalarAt(graph, absl::StrCat(prefix, "max"), range.max, position, nullptr));
    PF_ASSIGN_OR_RETURN(Node * decoded,
                        AddNodeAt(graph, absl::StrCat(prefix, "dequantize"), ops::kDequantize, position));
    for (Node* made : {min, max, decoded}) made->set_device(node->device());
    node->SetAttr("dtype", AttrValue::Type(DType::kQUint8));
    graph->ReplaceUses({node, 0}, {decoded, 0});
    BecomeDequantize(graph, decoded, {{node, 0}, {min, 0}, {max, 0}});
    ++converted;
  }
  return converted;
}

absl::StatusOr<int64_t> ConvertOps(Graph* graph, std::optional<FloatBounds> fallback, const Params& params,
                                   PassContext* context) {
  // Shapes are empty if inference fails; then no known shape prevents a conversion.
  ShapeMap shapes;
  if (absl::StatusOr<ShapeMap> inferred = InferShapes(*graph); inferred.ok()) shapes = *std::move(inferred);
  EightBitConverter converter(graph, fallback, shapes, context);
  // Producers first, so that their readers find codes. For a graph with a cycle any order serves.
  const absl::StatusOr<std::vector<Node*>> order = StableTopologicalOrder(*graph);
  int64_t converted = 0;
  for (Node* node : order.ok() ? *order : graph->Nodes()) {
    const EightBitForm* form = FindEightBitForm(node->op());
    if (form == nullptr) {
      const absl::string_view way = WayToEightBits(node->op());
      if (!way.empty()) context->MissIfWanted(*node, WayOut{way}, "has no eight-bit form");
      continue;
    }
    if (node->op() == ops::kReshape && IsPartOfQuantizer(*node)) continue;
    if (absl::c_linear_search(params.ignore_op, node->op().name())) {
      context->MissIfWanted(*node, WayOut{"leave it out of ignore_op"}, "is ignored by ignore_op");
      continue;
    }
    PF_ASSIGN_OR_RETURN(const bool is_converted, converter.Convert(node, *form));
    converted += is_converted ? 1 : 0;
  }
  return converted;
}

// Removes pairs of Dequantize and QuantizeV2: readers of the second read the original codes.
int64_t CancelPairs(Graph* graph, PassContext* context) {
  int64_t cancelled = 0;
  for (Node* node = graph->first(); node != nullptr; node = node->next()) {
    if (node->op() != ops::kQuantizeV2 || node->uses().empty() || graph->IsEndpoint(node)) continue;
    const std::optional<EightBitTensor> codes = CodesBehind(*node);
    if (!codes.has_value() || graph->IsInput(node->input(0).node)) continue;
    const RewriteScope rewrite(context, graph, {node, node->input(0).node});
    if (!rewrite) break;
    graph->ReplaceUses({node, 0}, codes->codes);
    graph->ReplaceUses({node, 1}, codes->min);
    graph->ReplaceUses({node, 2}, codes->max);
    graph->ReplaceControlUses(node, codes->codes.node);
    ++cancelled;
  }
  return cancelled;
}

// Returns the nodes that the pass has added, or whose last reader it has removed. Ids below `had_uses.size()` belong to
// nodes from before the pass.
std::vector<Node*> NoLongerRead(const Graph& graph, const std::vector<bool>& had_uses) {
  std::vector<Node*> unread;
  for (Node* node = graph.first(); node != nullptr; node = node->next()) {
    if (node->uses().empty() && (node->id() >= had_uses.size() || had_uses[node->id()])) unread.push_back(node);
  }
  return unread;
}

absl::StatusOr<int64_t> Quantize(Graph* graph, const Params& params, PassContext* context) {
  PF_ASSIGN_OR_RETURN(const std::optional<FloatBounds> input_range,
                      RangeOf("input", params.input_min, params.input_max));
  PF_ASSIGN_OR_RETURN(const std::optional<FloatBounds> fallback,
                      RangeOf("fallback", params.fallback_min, params.fallback_max));
  for (const std::string& name : params.ignore_op) {
    if (FindEightBitForm(Op::Named(name)) == nullptr) {
      context->Note(absl::StrCat("parameter 'ignore_op': '", name, "' is not an op that is converted"));
    }
  }
  std::vector<bool> had_uses(graph->id_limit(), false);
  for (const Node* node = graph->first(); node != nullptr; node = node->next()) {
    had_uses[node->id()] = !node->uses().empty();
  }

  int64_t placeholders = 0;
  if (input_range.has_value()) {
    PF_ASSIGN_OR_RETURN(placeholders, QuantizePlaceholders(graph, *input_range, context));
  }
  PF_ASSIGN_OR_RETURN(const int64_t hoisted, HoistFakeQuants(graph, context));
  PF_ASSIGN_OR_RETURN(const int64_t fake_quants, FakeQuantsToRequantizes(graph, context));
  PF_ASSIGN_OR_RETURN(const int64_t converted, ConvertOps(graph, fallback, params, context));
  const int64_t shortened = MergeAdjacentRequantizes(graph, context);
  PF_ASSIGN_OR_RETURN(const int64_t merged, MergeDuplicates(graph, OperandOrder::kAsWritten, context));
  const int64_t cancelled = CancelPairs(graph, context);
  PF_ASSIGN_OR_RETURN(const int64_t removed, RemoveUnread(graph, NoLongerRead(*graph, had_uses)));

  const int64_t rewrites = placeholders + hoisted + fake_quants + converted + shortened + merged + cancelled + removed;
  if (rewrites > 0) DropDanglingColocations(graph);
  if (converted + fake_quants + placeholders > 0) {
    context->Note(absl::StrCat("converted ", converted, " ops, ", fake_quants, " fake-quants and ", placeholders,
                               " placeholders to eight bits"));
  }
  return rewrites;
}

}  // namespace

// Replaces float ops by ops on eight-bit codes, inserts conversions around them, and removes conversions between
// adjacent quantised ops. The range of each result is computed at run time, unless it is known from training or given
// by a parameter.
//
//   Relu n (Conv2D c (x, w))   =>   Dequantize n of QuantizedRelu n/eightbit of Requantize c/eightbit/requantize,
//                                   RequantizationRange c/eightbit/requant_range of QuantizedConv2D c/eightbit
//                                   of QuantizeV2 c_eightbit/x/quantize, c_eightbit/w/quantize
//
// Converts Add, AvgPool, BiasAdd, Concat, Conv2D, MatMul, MaxPool, Mul, Relu, Relu6, Reshape and ResizeBilinear on
// floats. A FakeQuantWithMinMaxVars with a constant range sets the range of its input. Equal nodes are merged, as by
// merge_duplicate_nodes.
//
// Leaves unchanged ops with attributes that the eight-bit op does not support (NCHW, dilations, explicit paddings,
// unequal strides), operands that broadcast other than along the trailing dimensions, constants that are empty or hold
// NaN or infinity, and declared inputs. Fold batch norms before this pass, and constants after it.
DEFINE_PASS(quantize_nodes) {
  return Pass<Params>("Converts float ops to quantised ops that compute in eight bits.")
      .Why(
          "Eight-bit arithmetic is several times faster where the hardware supports it, and moves a quarter of the "
          "bytes.")
      .Param(
          "input_min", &Params::input_min,
          "Minimum of the values fed to placeholders. With input_max, the placeholders are fed quint8 codes instead.")
      .Param("input_max", &Params::input_max, "Maximum of the values fed to placeholders.")
      .Param("fallback_min", &Params::fallback_min,
             "With fallback_max, the range of every result without a FakeQuant op, instead of a range computed at run "
             "time.")
      .Param("fallback_max", &Params::fallback_max, "Upper end of the range that starts at fallback_min.")
      .Param("ignore_op", &Params::ignore_op, "An op that stays in float.")
      .Numerics(Changes("ops compute in eight bits"))
      .Idempotent()
      .ChangesInterface("with input_min and input_max, float placeholders become quint8")
      .Run(Quantize);
}

}  // namespace permafrost
