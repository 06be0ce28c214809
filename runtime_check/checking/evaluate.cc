// Prepares and computes one node on tensors.
#include "runtime_check/checking/evaluate.h"

#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "graph/ops/op_schema.h"
#include "runtime_check/planning/prepared_node.h"
#include "runtime_check/threads/cancellation.h"

namespace permafrost {
namespace {

int64_t NowNanoseconds() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

}  // namespace

absl::Status KernelEvaluator::Supports(const Node& node) const {
  if (node.op() == ops::kConst) return absl::OkStatus();
  const OpSchema* schema = FindSchema(node.op());
  if (schema != nullptr && schema->traits != kPure) {
    return absl::UnimplementedError(
        absl::StrCat("op '", node.op().name(), "' is not a function of its inputs and attributes"));
  }
  const Kernel* kernel = kernel_lookup_(node.op());
  PF_RETURN_IF_ERROR(CheckKernel(node, kernel));
  if (kernel->is_done_by_session() || kernel->uses_state()) {
    return absl::UnimplementedError(absl::StrCat("op '", node.op().name(), "' runs only in a session"));
  }
  for (const auto& types : {InputTypes(node), OutputTypes(node)}) {
    if (!types.ok()) continue;  // Evaluate reports the error, with the node named.
    for (const DType type : *types) {
      if (!HoldsObjects(RemoveRef(type))) continue;
      return absl::UnimplementedError(absl::StrCat("op '", node.op().name(), "' with values of type ", DTypeName(type),
                                                   ", which live in a run alone"));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<Tensor>> KernelEvaluator::Evaluate(const Node& node, absl::Span<const Tensor> inputs) const {
  PF_RETURN_IF_ERROR(Annotate(Supports(node), node.Describe()));
  if (node.op() == ops::kConst) {
    PF_ASSIGN_OR_RETURN(Tensor value, ConstValue(node));
    return std::vector<Tensor>{std::move(value)};
  }
  const Kernel& kernel = *kernel_lookup_(node.op());
  PF_ASSIGN_OR_RETURN(const std::vector<DType> input_types, InputTypes(node));
  PF_ASSIGN_OR_RETURN(std::vector<DType> output_types, OutputTypes(node));
  for (DType& type : output_types) type = RemoveRef(type);
  if (inputs.size() != input_types.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat(node.Describe(), ": found ", inputs.size(), " inputs, expected ", input_types.size()));
  }
  std::vector<Tensor> aligned;
  std::vector<Value> values;
  std::vector<const Value*> pointers;
  std::vector<PrepareInput> prepare_inputs;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].dtype() != RemoveRef(input_types[i])) {
      return absl::InvalidArgumentError(absl::StrCat(node.Describe(), ": input ", i, " is ",
                                                     DTypeName(inputs[i].dtype()), ", expected ",
                                                     DTypeName(input_types[i])));
    }
    PF_ASSIGN_OR_RETURN(aligned.emplace_back(), inputs[i].Aligned());
    prepare_inputs.push_back({aligned[i].dtype(), aligned[i].shape()});
  }
  for (const Tensor& tensor : aligned) values.push_back(ViewOf(tensor));
  for (const Value& value : values) pointers.push_back(&value);

  PreparedNode prepared;
  const auto value = [&](int i) -> absl::StatusOr<const Tensor*> { return &aligned[i]; };
  PF_RETURN_IF_ERROR(PrepareNode(node, kernel, prepare_inputs, output_types, /*num_threads=*/1, value, &prepared));
  if (prepared.needs_value_of >= 0) {
    return absl::InternalError(absl::StrCat(node.Describe(), ": the kernel asks for the value of input ",
                                            prepared.needs_value_of, ", which is known"));
  }
  if (kernel.is_alias()) {
    const OutputSpec& output = prepared.outputs[0];
    absl::StatusOr<Tensor> shared =
        output.dtype == inputs[0].dtype()
            ? inputs[0].Reshaped(output.shape)
            : Tensor::FromBytes(output.dtype, output.shape, inputs[0].bytes(), inputs[0].owner());
    PF_RETURN_IF_ERROR(Annotate(shared.status(), node.Describe()));
    return std::vector<Tensor>{*std::move(shared)};
  }
  std::vector<Tensor> results;
  if (kernel.compute() == nullptr) return results;
  ThreadPool threads(1);
  MemoryBudget budget(memory_limit_);
  const int64_t start_ns = NowNanoseconds();
  const int64_t left_ns = most_ns_ - spent_ns_;
  const CancellationFunction is_late = [start_ns, left_ns] { return NowNanoseconds() - start_ns > left_ns; };
  const CancellationScope scope(most_ns_ == INT64_MAX ? nullptr : &is_late);
  std::vector<Value> outputs(output_types.size());
  absl::StatusOr<std::vector<HeapOutput>> computed =
      ComputeNode(node, prepared, pointers, outputs.data(), {&threads, &budget});
  spent_ns_ += NowNanoseconds() - start_ns;
  if (absl::IsCancelled(computed.status())) has_run_out_ = true;
  PF_RETURN_IF_ERROR(computed.status());
  std::vector<HeapOutput> made = *std::move(computed);
  for (size_t i = 0; i < made.size(); ++i) {
    results.push_back(made[i].strings == nullptr ? std::move(made[i].tensor)
                                                 : Tensor::FromStrings(outputs[i].shape, std::move(*made[i].strings)));
  }
  return results;
}

}  // namespace permafrost
