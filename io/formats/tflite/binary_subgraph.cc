// Implements the recognition of subgraphs of one operator.
#include "io/formats/tflite/binary_subgraph.h"

#include "absl/strings/str_cat.h"
#include "graph/base/status.h"

namespace permafrost {
namespace {

using tflite::BuiltinOperator;
using tflite::ReduceWindowFunction;

bool Exists(const TfliteContainer& container, int32_t subgraph) {
  return subgraph >= 0 && static_cast<uint32_t>(subgraph) < container.model().subgraphs()->size();
}

// Returns the function of a subgraph that combines its two inputs with one operator.
ReduceWindowFunction FunctionOf(const tflite::SubGraph& subgraph, const TfliteContainer& container) {
  const auto* inputs = subgraph.inputs();
  const auto* outputs = subgraph.outputs();
  if (inputs == nullptr || outputs == nullptr || subgraph.operators() == nullptr || inputs->size() != 2 ||
      outputs->size() != 1 || subgraph.operators()->size() != 1) {
    return ReduceWindowFunction::UNSUPPORTED;
  }
  const tflite::Operator& op = *subgraph.operators()->Get(0);
  if (op.inputs() == nullptr || op.inputs()->size() != 2 || op.outputs() == nullptr || op.outputs()->size() != 1 ||
      op.outputs()->Get(0) != outputs->Get(0)) {
    return ReduceWindowFunction::UNSUPPORTED;
  }
  const int32_t a = op.inputs()->Get(0), b = op.inputs()->Get(1);
  if (!(a == inputs->Get(0) && b == inputs->Get(1)) && !(a == inputs->Get(1) && b == inputs->Get(0))) {
    return ReduceWindowFunction::UNSUPPORTED;
  }
  switch (container.OperatorOf(op)) {
    case BuiltinOperator::STABLEHLO_ADD:
    case BuiltinOperator::ADD:
      return ReduceWindowFunction::ADD;
    case BuiltinOperator::STABLEHLO_MULTIPLY:
    case BuiltinOperator::MUL:
      return ReduceWindowFunction::MUL;
    case BuiltinOperator::STABLEHLO_MINIMUM:
    case BuiltinOperator::MINIMUM:
      return ReduceWindowFunction::MINIMUM;
    case BuiltinOperator::STABLEHLO_MAXIMUM:
    case BuiltinOperator::MAXIMUM:
      return ReduceWindowFunction::MAXIMUM;
    case BuiltinOperator::STABLEHLO_AND:
    case BuiltinOperator::LOGICAL_AND:
      return ReduceWindowFunction::ALL;
    case BuiltinOperator::STABLEHLO_OR:
    case BuiltinOperator::LOGICAL_OR:
      return ReduceWindowFunction::ANY;
    default:
      return ReduceWindowFunction::UNSUPPORTED;
  }
}

}  // namespace

absl::StatusOr<ReduceWindowFunction> FunctionOfSubgraph(const TfliteContainer& container, int32_t subgraph) {
  if (!Exists(container, subgraph)) {
    return absl::InvalidArgumentError(
        absl::StrCat("found subgraph ", subgraph, ", expected less than ", container.model().subgraphs()->size()));
  }
  return FunctionOf(container.subgraph(subgraph), container);
}

bool ReturnsSecondInput(const TfliteContainer& container, int32_t subgraph) {
  if (!Exists(container, subgraph)) return false;
  const tflite::SubGraph& body = container.subgraph(subgraph);
  return body.inputs() != nullptr && body.inputs()->size() == 2 && body.outputs() != nullptr &&
         body.outputs()->size() == 1 && body.inputs()->Get(0) != body.inputs()->Get(1) &&
         body.outputs()->Get(0) == body.inputs()->Get(1);
}

}  // namespace permafrost
