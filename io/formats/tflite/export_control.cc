// Writes branches and loops, whose functions become subgraphs.
#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "io/formats/tflite/operator_export.h"

namespace permafrost {

absl::Status ExportIf(OperatorExport* op) {
  PF_ASSIGN_OR_RETURN(const DType condition, op->TypeOf(op->input(0)));
  if (condition != DType::kBool) {
    return absl::UnimplementedError(
        absl::StrCat("decides by ", DTypeName(condition), ", expected bool; run lower_to_tflite"));
  }
  std::vector<Shape> args;
  for (int i = 1; i < op->num_inputs(); ++i) args.push_back(op->ShapeOf(op->input(i)));
  PF_ASSIGN_OR_RETURN(const int32_t then_branch, op->SubgraphOf("then_branch", args));
  PF_ASSIGN_OR_RETURN(const int32_t else_branch, op->SubgraphOf("else_branch", std::move(args)));
  for (int i = 0; i < op->num_inputs(); ++i) op->AddOperand(op->input(i));
  op->SetOptions(tflite::CreateIfOptions(op->builder(), then_branch, else_branch));
  return absl::OkStatus();
}

// The last branch is taken for a number that is none of the others', as in TensorFlow.
absl::Status ExportCase(OperatorExport* op) {
  std::vector<Shape> args;
  for (int i = 1; i < op->num_inputs(); ++i) args.push_back(op->ShapeOf(op->input(i)));
  PF_ASSIGN_OR_RETURN(const std::vector<int32_t> branches, op->SubgraphsOf("branches", args));
  if (branches.empty()) return absl::UnimplementedError("has no branches");
  for (int i = 0; i < op->num_inputs(); ++i) op->AddOperand(op->input(i));
  op->SetOptions2(tflite::CreateStablehloCaseOptions(op->builder(), op->builder().CreateVector(branches)));
  return absl::OkStatus();
}

absl::Status ExportWhile(OperatorExport* op) {
  // The shapes that variables have in every iteration are those of the results.
  std::vector<Shape> args;
  for (int i = 0; i < op->num_inputs(); ++i) args.push_back(op->ShapeOf({&op->node(), i}));
  PF_ASSIGN_OR_RETURN(const int32_t condition, op->SubgraphOf("cond", args));
  PF_ASSIGN_OR_RETURN(const int32_t body, op->SubgraphOf("body", std::move(args)));
  for (int i = 0; i < op->num_inputs(); ++i) op->AddOperand(op->input(i));
  op->SetOptions(tflite::CreateWhileOptions(op->builder(), condition, body));
  return absl::OkStatus();
}

}  // namespace permafrost
