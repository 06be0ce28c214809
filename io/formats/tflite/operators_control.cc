// Operators that call other subgraphs.
#include "graph/base/status.h"
#include "io/formats/tflite/operator_import.h"

namespace permafrost {
namespace {

using tflite::BuiltinOperator;

absl::StatusOr<std::vector<DType>> OutputTypesOf(const OperatorImport& op) {
  std::vector<DType> types;
  for (int i = 0; i < op.num_outputs(); ++i) types.push_back(op.OutputType(i));
  return types;
}

Results If(OperatorImport* op) {
  const auto* options = op->op().builtin_options_as<tflite::IfOptions>();
  if (options == nullptr) return absl::InvalidArgumentError("has no options");
  PF_ASSIGN_OR_RETURN(const std::vector<TensorRef> inputs, op->Inputs());
  PF_ASSIGN_OR_RETURN(const FunctionRef then_branch, op->FunctionOf(options->then_subgraph_index()));
  PF_ASSIGN_OR_RETURN(const FunctionRef else_branch, op->FunctionOf(options->else_subgraph_index()));
  PF_ASSIGN_OR_RETURN(const std::vector<DType> types, OutputTypesOf(*op));
  PF_ASSIGN_OR_RETURN(Node * node, op->AddCall(ops::kStatelessIf, ops::kIf,
                                               {options->then_subgraph_index(), options->else_subgraph_index()}, inputs,
                                               {{"Tout", AttrValue::TypeList(types)},
                                                {"then_branch", AttrValue::Function(then_branch)},
                                                {"else_branch", AttrValue::Function(else_branch)}}));
  return AllOutputs(node, op->num_outputs());
}

Results While(OperatorImport* op) {
  const auto* options = op->op().builtin_options_as<tflite::WhileOptions>();
  if (options == nullptr) return absl::InvalidArgumentError("has no options");
  PF_ASSIGN_OR_RETURN(const std::vector<TensorRef> inputs, op->Inputs());
  PF_ASSIGN_OR_RETURN(const FunctionRef cond, op->FunctionOf(options->cond_subgraph_index()));
  PF_ASSIGN_OR_RETURN(const FunctionRef body, op->FunctionOf(options->body_subgraph_index()));
  PF_ASSIGN_OR_RETURN(
      Node * node,
      op->AddCall(ops::kStatelessWhile, ops::kWhile, {options->cond_subgraph_index(), options->body_subgraph_index()},
                  inputs, {{"cond", AttrValue::Function(cond)}, {"body", AttrValue::Function(body)}}));
  return AllOutputs(node, op->num_outputs());
}

// Imports the decomposition of the composite operator, whatever its name.
Results Composite(OperatorImport* op) {
  const auto* options = op->op().builtin_options_2_as<tflite::StableHLOCompositeOptions>();
  if (options == nullptr) return absl::InvalidArgumentError("has no options");
  PF_ASSIGN_OR_RETURN(const std::vector<TensorRef> inputs, op->Inputs());
  PF_ASSIGN_OR_RETURN(const FunctionRef function, op->FunctionOf(options->decomposition_subgraph_index()));
  PF_ASSIGN_OR_RETURN(const std::vector<DType> types, OutputTypesOf(*op));
  PF_ASSIGN_OR_RETURN(
      Node * node,
      op->AddCall(ops::kPartitionedCall, ops::kStatefulPartitionedCall, {options->decomposition_subgraph_index()},
                  inputs, {{"Tout", AttrValue::TypeList(types)}, {"f", AttrValue::Function(function)}}));
  return AllOutputs(node, op->num_outputs());
}

constexpr OperatorRow kRows[] = {
    {BuiltinOperator::IF, 1, -1, If, Codes::kMoved, Form({ops::kStatelessIf, ops::kIf}, kPlain, ExportIf, "", "1.15")},
    {BuiltinOperator::WHILE, 1, -1, While, Codes::kMoved,
     Form({ops::kStatelessWhile, ops::kWhile}, kPlain, ExportWhile, "", "1.15")},
    {BuiltinOperator::STABLEHLO_COMPOSITE, 0, -1, Composite, Codes::kMoved},
};

}  // namespace

absl::Span<const OperatorRow> ControlOperators() { return kRows; }

}  // namespace permafrost
