// Runs static nodes, which were prepared before the run, and dynamic nodes, which are prepared during it.
#include "runtime_check/execution/step_runner.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"
#include "graph/base/selection.h"
#include "graph/base/status.h"
#include "runtime_check/planning/cluster.h"
#include "runtime_check/profiling/profiler.h"
#include "runtime_check/program/functions.h"
#include "runtime_check/threads/cancellation.h"

namespace permafrost {
namespace {

// Returns whether the last preparation is valid for these inputs.
bool StillFits(const DynamicNode& dynamic, const NodeContext& context) {
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

// Returns, by input, whether the node owns the objects: it is the last reader and no other reference exists. Empty if
// no input holds objects.
std::vector<bool> OwnedInputs(const Plan& plan, const Program& program, const ProgramNode& node,
                              absl::Span<const int> release) {
  std::vector<bool> owned;
  const absl::Span<const int> inputs = program.InputsOf(node);
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!HoldsObjects(program.tensors[inputs[i]].dtype)) continue;
    owned.resize(inputs.size(), false);
    owned[i] = plan.held[inputs[i]].use_count() == 1 &&
               std::find(release.begin(), release.end(), inputs[i]) != release.end() &&
               std::count(inputs.begin(), inputs.end(), inputs[i]) == 1;
  }
  return owned;
}

}  // namespace

absl::Status StepRunner::Run(Step* step, absl::Span<const int> release) {
  if (step->dynamic != nullptr) {
    PF_RETURN_IF_ERROR(RunDynamic(step, release));
  } else if (absl::Status status = RunKernel(step->compute, &step->context); !status.ok()) {
    return Annotate(status, step->context.node().Describe());
  }
  PF_RETURN_IF_ERROR(CheckNotCancelled());
  for (const int tensor : release) plan_.held[tensor].reset();
  return absl::OkStatus();
}

absl::Status StepRunner::RunDynamic(Step* step, absl::Span<const int> release) {
  DynamicNode& dynamic = *step->dynamic;
  if (selection::kHoldsDelegates && plan_.clustered != nullptr && dynamic.node->call >= 0 &&
      program_.calls[dynamic.node->call].cluster != nullptr) {
    return RunCluster(*dynamic.node, step->context);
  }
  if (selection::kHoldsFunctions && dynamic.node->call >= 0) {
    const absl::Status status = Call(*dynamic.node, step->context);
    return environment_.AnnotatesCalls() ? Annotate(status, step->context.node().Describe()) : status;
  }
  if (!StillFits(dynamic, step->context)) PF_RETURN_IF_ERROR(Prepare(&dynamic, step->context));
  if (dynamic.node->kernel->is_alias()) {
    Alias(dynamic, step->context);
    return absl::OkStatus();
  }
  return Compute(dynamic, step->context, release);
}

absl::Status StepRunner::Compute(const DynamicNode& dynamic, const NodeContext& context,
                                 absl::Span<const int> release) {
  const ProgramNode& node = *dynamic.node;
  absl::InlinedVector<const Value*, 8> inputs;
  for (int i = 0; i < node.num_inputs; ++i) inputs.push_back(&context.input_at(i));
  const std::vector<bool> owned = OwnedInputs(plan_, program_, node, release);
  PF_ASSIGN_OR_RETURN(std::vector<HeapOutput> made,
                      ComputeNode(*node.node, dynamic.prepared, inputs, plan_.values.data() + node.first_output,
                                  environment_, owned.empty() ? nullptr : &owned));
  for (int i = 0; i < node.num_outputs; ++i) {
    plan_.held[node.first_output + i] = std::make_shared<HeapOutput>(std::move(made[i]));
  }
  return absl::OkStatus();
}

absl::Status StepRunner::Prepare(DynamicNode* dynamic, const NodeContext& context) {
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
  // Values are granted one at a time, only when Prepare requests them. Otherwise a kernel could treat an activation as
  // a constant weight and pack it.
  while (true) {
    PF_RETURN_IF_ERROR(PrepareNode(*node.node, *node.kernel, dynamic->inputs, output_types,
                                   environment_.threads->num_threads(), value, &dynamic->prepared));
    const int needed = dynamic->prepared.needs_value_of;
    if (needed < 0) break;
    if (dynamic->constants[needed] != nullptr || dynamic->granted[needed].dtype() != DType::kInvalid) {
      return absl::InternalError(
          absl::StrCat(node.node->Describe(), ": the kernel asks for the value of input ", needed, ", which is known"));
    }
    PF_ASSIGN_OR_RETURN(dynamic->granted[needed], CopyOf(context.input_at(needed)));
  }
  dynamic->is_prepared = true;
  return absl::OkStatus();
}

absl::Status StepRunner::Call(const ProgramNode& node, const NodeContext& context) {
  const absl::Span<const int> inputs = program_.InputsOf(node);
  std::vector<Passed> arguments;
  arguments.reserve(inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Value& value = context.input_at(static_cast<int>(i));
    if (plan_.is_overwritten[inputs[i]] && plan_.held[inputs[i]] == nullptr) {
      // A result may be an unchanged argument.
      PF_ASSIGN_OR_RETURN(arguments.emplace_back(), CopyOnHeap(value, environment_.budget));
    } else {
      arguments.push_back({value, plan_.held[inputs[i]]});
    }
  }
  PF_ASSIGN_OR_RETURN(std::vector<Passed> results, RunCall(program_, node, std::move(arguments), environment_));
  return TakeResults(node, std::move(results));
}

absl::Status StepRunner::RunCluster(const ProgramNode& node, const NodeContext& context) {
  const absl::Span<const int> inputs = program_.InputsOf(node);
  std::vector<Passed> arguments;
  arguments.reserve(inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    arguments.push_back({context.input_at(static_cast<int>(i)), plan_.held[inputs[i]]});
  }
  absl::StatusOr<std::vector<Passed>> results = program_.calls[node.call].cluster->Call(arguments, environment_);
  if (absl::IsResourceExhausted(results.status())) plan_.clustered->failure = results.status();
  PF_RETURN_IF_ERROR(results.status());
  return TakeResults(node, *std::move(results));
}

absl::Status StepRunner::TakeResults(const ProgramNode& node, std::vector<Passed> results) {
  if (results.size() != static_cast<size_t>(node.num_outputs)) {
    return absl::InvalidArgumentError(
        absl::StrCat("the function gives ", results.size(), " results, expected ", node.num_outputs));
  }
  for (int i = 0; i < node.num_outputs; ++i) {
    const int tensor = node.first_output + i;
    if (results[i].value.dtype != program_.tensors[tensor].dtype) {
      return absl::InvalidArgumentError(absl::StrCat("result ", i, " is ", DTypeName(results[i].value.dtype),
                                                     ", expected ", DTypeName(program_.tensors[tensor].dtype)));
    }
    plan_.values[tensor] = results[i].value;
    plan_.held[tensor] = std::move(results[i].held);
  }
  return absl::OkStatus();
}

void StepRunner::Alias(const DynamicNode& dynamic, const NodeContext& context) {
  const ProgramNode& node = *dynamic.node;
  const Value& input = context.input_at(0);
  Value& output = plan_.values[node.first_output];
  output.shape = dynamic.prepared.outputs[0].shape;
  output.data = input.data;
  output.strings = input.strings;
  output.objects = input.objects;
  output.bytes = input.bytes;
  plan_.held[node.first_output] = plan_.held[program_.InputsOf(node)[0]];
}

}  // namespace permafrost
