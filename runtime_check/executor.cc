// The loop over the steps of a plan, and the way of a node that is prepared during the run.
#include "runtime_check/executor.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "graph/status.h"

namespace permafrost {
namespace {

class Executor {
 public:
  Executor(Plan* plan, const Program& program, ThreadPool* threads, MemoryBudget* budget)
      : plan_(*plan), program_(program), threads_(threads), budget_(budget) {}

  absl::Status RunStep(Step* step) {
    if (step->dynamic != nullptr) return RunDynamic(step);
    if (absl::Status status = step->compute(&step->context); !status.ok()) {
      return Annotate(status, step->context.node().Describe());
    }
    return absl::OkStatus();
  }

 private:
  absl::Status RunDynamic(Step* step) {
    DynamicNode& dynamic = *step->dynamic;
    const ProgramNode& node = *dynamic.node;
    if (!StillFits(dynamic, step->context)) PF_RETURN_IF_ERROR(Prepare(&dynamic, step->context));
    if (node.kernel->is_alias()) {
      Alias(dynamic, &step->context);
    } else {
      std::vector<const Value*> inputs;
      for (int i = 0; i < node.num_inputs; ++i) inputs.push_back(&step->context.input_at(i));
      PF_ASSIGN_OR_RETURN(std::vector<HeapOutput> made,
                          ComputeNode(*node.node, *node.kernel, dynamic.prepared, inputs,
                                      plan_.values.data() + node.first_output, threads_, budget_));
      for (int i = 0; i < node.num_outputs; ++i) {
        plan_.held[node.first_output + i] = std::make_shared<HeapOutput>(std::move(made[i]));
      }
    }
    for (const int tensor : dynamic.release_after) plan_.held[tensor].reset();
    return absl::OkStatus();
  }

  // Whether the last preparation serves for these inputs too.
  static bool StillFits(const DynamicNode& dynamic, const NodeContext& context) {
    if (!dynamic.is_prepared) return false;
    for (int i = 0; i < context.num_inputs(); ++i) {
      const Value& input = context.input_at(i);
      if (input.shape != dynamic.inputs[i].shape) return false;
      const Tensor& granted = dynamic.granted[i];
      if (granted.dtype() == DType::kInvalid) continue;
      const absl::StatusOr<Tensor> now = TensorOver(input, nullptr);
      if (!now.ok() || *now != granted) return false;
    }
    return true;
  }

  absl::Status Prepare(DynamicNode* dynamic, const NodeContext& context) {
    const ProgramNode& node = *dynamic->node;
    dynamic->is_prepared = false;
    for (int i = 0; i < node.num_inputs; ++i) {
      dynamic->inputs[i].shape = context.input_at(i).shape;
      dynamic->granted[i] = Tensor();
    }
    std::vector<DType> output_types;
    for (int i = 0; i < node.num_outputs; ++i) {
      output_types.push_back(program_.tensors[node.first_output + i].dtype);
    }
    const auto value = [&](int i) -> absl::StatusOr<const Tensor*> {
      if (dynamic->constants[i] != nullptr) return dynamic->constants[i];
      return dynamic->granted[i].dtype() != DType::kInvalid ? &dynamic->granted[i] : nullptr;
    };
    // Values are handed out only as Prepare asks for them, so that a kernel does not take an activation for a weight
    // and pack it. Each turn grants one more.
    while (true) {
      PF_RETURN_IF_ERROR(PrepareNode(*node.node, *node.kernel, dynamic->inputs, output_types, threads_->num_threads(),
                                     value, &dynamic->prepared));
      const int needed = dynamic->prepared.needs_value_of;
      if (needed < 0) break;
      if (dynamic->constants[needed] != nullptr || dynamic->granted[needed].dtype() != DType::kInvalid) {
        return absl::InternalError(absl::StrCat(node.node->Describe(), ": the kernel asks for the value of input ",
                                                needed, ", which is known"));
      }
      PF_ASSIGN_OR_RETURN(dynamic->granted[needed], CopyOf(context.input_at(needed)));
    }
    dynamic->is_prepared = true;
    return absl::OkStatus();
  }

  void Alias(const DynamicNode& dynamic, NodeContext* context) {
    const ProgramNode& node = *dynamic.node;
    Value& output = plan_.values[node.first_output];
    output.shape = dynamic.prepared.outputs[0].shape;
    output.data = context->input_at(0).data;
    output.strings = context->input_at(0).strings;
    plan_.held[node.first_output] = plan_.held[program_.InputsOf(node)[0]];
  }

  Plan& plan_;
  const Program& program_;
  ThreadPool* threads_;
  MemoryBudget* budget_;
};

void Bind(absl::Span<const Tensor> feeds, absl::Span<char* const> memory, Plan* plan) {
  for (size_t i = 0; i < feeds.size(); ++i) {
    if (plan->feed_values[i].empty()) continue;
    const Value fed = ViewOf(feeds[i]);
    for (const int value : plan->feed_values[i]) {
      plan->values[value].data = fed.data;
      plan->values[value].strings = fed.strings;
    }
  }
  for (size_t i = 0; i < memory.size(); ++i) {
    for (const int value : plan->fetches[i].bound_values) plan->values[value].data = memory[i];
  }
}

}  // namespace

absl::Status ExecutePlan(Plan* plan, const Program& program, absl::Span<const Tensor> feeds,
                         absl::Span<char* const> memory, ThreadPool* threads, MemoryBudget* budget,
                         const NodeCallback& on_node) {
  Bind(feeds, memory, plan);
  for (std::shared_ptr<HeapOutput>& held : plan->held) held.reset();
  Executor executor(plan, program, threads, budget);
  if (on_node == nullptr) {
    for (Step& step : plan->steps) PF_RETURN_IF_ERROR(executor.RunStep(&step));
    return absl::OkStatus();
  }
  for (Step& step : plan->steps) {
    const absl::Time start = absl::Now();
    PF_RETURN_IF_ERROR(executor.RunStep(&step));
    on_node(step.context.node(), absl::Now() - start);
  }
  return absl::OkStatus();
}

}  // namespace permafrost
