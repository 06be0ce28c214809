// Executes the instructions of control flow with one loop over a program counter, at any nesting of frames.
#include "runtime_check/execution/flow_executor.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "runtime_check/program/fused_loop.h"

namespace permafrost {
namespace {

class FlowExecutor {
 public:
  FlowExecutor(Plan* plan, const Program& program, const Environment* environment, RunStepFunction run_step)
      : plan_(*plan),
        flow_(*plan->flow),
        program_(program),
        environment_(*environment),
        run_step_(run_step),
        next_(program.frames.size()),
        iteration_(program.frames.size(), 0) {}

  absl::Status Run() {
    std::fill(flow_.dead_tensors.begin(), flow_.dead_tensors.end(), 0);
    std::fill(flow_.dead_nodes.begin(), flow_.dead_nodes.end(), 0);
    for (size_t at = 0; at < flow_.instructions.size();) {
      const Instruction& instruction = flow_.instructions[at++];
      switch (instruction.kind) {
        case Instruction::Kind::kFrameBegin: {
          PF_ASSIGN_OR_RETURN(const bool is_done, RunFused(instruction.frame));
          if (is_done) {
            at = static_cast<size_t>(flow_.frames[instruction.frame].end);
          } else {
            BeginFrame(instruction.frame);
          }
          continue;
        }
        case Instruction::Kind::kFrameEnd: {
          PF_ASSIGN_OR_RETURN(const bool again, EndIteration(instruction.frame));
          if (again) at = static_cast<size_t>(flow_.frames[instruction.frame].begin);
          continue;
        }
        case Instruction::Kind::kRun:
          PF_RETURN_IF_ERROR(RunNode(instruction));
          continue;
        default:
          break;
      }
      const ProgramNode& node = program_.nodes[instruction.node];
      PF_RETURN_IF_ERROR(Annotate(Flow(instruction.kind, instruction.node, node), node.node->Describe()));
      for (const int tensor : instruction.release) plan_.held[tensor].reset();
    }
    return absl::OkStatus();
  }

 private:
  // A value that NextIteration holds until the iteration ends.
  struct Taken {
    int tensor = 0;
    bool is_dead = true;
    Value value;
    std::shared_ptr<HeapOutput> held;
  };

  bool IsDead(const ProgramNode& node) const {
    for (const int tensor : program_.InputsOf(node)) {
      if (flow_.dead_tensors[tensor]) return true;
    }
    for (const int control : program_.ControlsOf(node)) {
      if (flow_.dead_nodes[control]) return true;
    }
    return false;
  }

  void SetDead(int position, const ProgramNode& node, bool is_dead) {
    flow_.dead_nodes[position] = is_dead ? 1 : 0;
    for (int i = 0; i < node.num_outputs; ++i) flow_.dead_tensors[node.first_output + i] = is_dead ? 1 : 0;
  }

  absl::Status RunNode(const Instruction& instruction) {
    const ProgramNode& node = program_.nodes[instruction.node];
    if (node.may_be_dead) {
      const bool is_dead = IsDead(node);
      SetDead(instruction.node, node, is_dead);
      if (is_dead) {
        for (const int tensor : instruction.release) plan_.held[tensor].reset();
        return absl::OkStatus();
      }
    }
    return run_step_(&plan_.steps[instruction.step], instruction.release);
  }

  absl::Status Flow(Instruction::Kind kind, int position, const ProgramNode& node) {
    if (kind == Instruction::Kind::kMerge) return Merge(position, node);
    const bool is_dead = node.role != FlowRole::kTrigger && IsDead(node);
    // A loop executes its Exit nodes in each iteration; only the last one has a live input.
    if (kind == Instruction::Kind::kExit && is_dead) return absl::OkStatus();
    if (kind == Instruction::Kind::kNextIteration) return Take(position, node, is_dead);
    SetDead(position, node, is_dead);
    if (is_dead || kind == Instruction::Kind::kGuard) return absl::OkStatus();
    if (kind == Instruction::Kind::kSwitch) return Switch(node);
    return Pass(program_.InputsOf(node)[0], node.first_output);
  }

  absl::Status Switch(const ProgramNode& node) {
    const absl::Span<const int> inputs = program_.InputsOf(node);
    const Value& choice = plan_.values[inputs[1]];
    if (choice.shape.CheckedNumElements().value_or(0) != 1) {
      return absl::InvalidArgumentError(
          absl::StrCat("input 1 has the shape ", choice.shape.ToString(), ", expected a scalar"));
    }
    int64_t chosen = 0;
    if (choice.dtype == DType::kBool) {
      chosen = *choice.data != 0 ? 1 : 0;
    } else {
      int32_t index;
      std::memcpy(&index, choice.data, sizeof(index));
      // An index out of range selects the last branch.
      chosen = index < 0 || index >= node.num_outputs ? node.num_outputs - 1 : index;
    }
    for (int i = 0; i < node.num_outputs; ++i) flow_.dead_tensors[node.first_output + i] = i == chosen ? 0 : 1;
    return Pass(inputs[0], node.first_output + static_cast<int>(chosen));
  }

  absl::Status Merge(int position, const ProgramNode& node) {
    const absl::Span<const int> inputs = program_.InputsOf(node);
    const auto living =
        std::find_if(inputs.begin(), inputs.end(), [&](int tensor) { return !flow_.dead_tensors[tensor]; });
    SetDead(position, node, living == inputs.end());
    if (living == inputs.end()) return absl::OkStatus();
    PF_RETURN_IF_ERROR(Pass(*living, node.first_output));
    const int index_tensor = node.first_output + 1;
    HeapOutput index;
    PF_ASSIGN_OR_RETURN(index,
                        AllocateHeapOutput(DType::kInt32, Shape(), environment_.budget, &plan_.values[index_tensor]));
    const auto number = static_cast<int32_t>(living - inputs.begin());
    std::memcpy(plan_.values[index_tensor].data, &number, sizeof(number));
    plan_.held[index_tensor] = std::make_shared<HeapOutput>(std::move(index));
    // This Merge takes the value from the previous iteration.
    if (program_.tensors[*living].ref.node != nullptr &&
        FlowRoleOf(program_.tensors[*living].ref.node->op()) == FlowRole::kNextIteration) {
      plan_.held[*living].reset();
    }
    return absl::OkStatus();
  }

  // Makes the output an alias of the input, with shared memory.
  absl::Status Pass(int from, int to) {
    if (flow_.is_constant[to]) return absl::OkStatus();
    const Value& input = plan_.values[from];
    if (plan_.is_overwritten[from] && plan_.held[from] == nullptr) {
      PF_ASSIGN_OR_RETURN(Passed copy, CopyOnHeap(input, environment_.budget));
      SetValue(copy.value, std::move(copy.held), to);
      return absl::OkStatus();
    }
    SetValue(input, plan_.held[from], to);
    return absl::OkStatus();
  }

  void SetValue(const Value& value, std::shared_ptr<HeapOutput> held, int to) {
    Value& output = plan_.values[to];
    output.shape = value.shape;
    output.data = value.data;
    output.strings = value.strings;
    output.objects = value.objects;
    output.bytes = value.bytes;
    plan_.held[to] = std::move(held);
  }

  absl::Status Take(int position, const ProgramNode& node, bool is_dead) {
    flow_.dead_nodes[position] = is_dead ? 1 : 0;
    Taken taken;
    taken.tensor = node.first_output;
    taken.is_dead = is_dead;
    if (!is_dead) {
      const int from = program_.InputsOf(node)[0];
      taken.value = plan_.values[from];
      taken.held = plan_.held[from];
    }
    next_[node.frame].push_back(std::move(taken));
    return absl::OkStatus();
  }

  // Runs all iterations of a frame as one plan. Returns false, without effects, if the frame must run node by node.
  absl::StatusOr<bool> RunFused(int number) {
    if constexpr (!kFusesLoops) return false;
    const std::shared_ptr<FusedLoop>& fused = program_.frames[number].fused;
    const FrameInstructions& frame = flow_.frames[number];
    if (!environment_.fuse_loops || frame.variables.empty()) return false;
    const std::vector<LoopVariable>& variables = fused->form()->variables;
    std::vector<Passed> arguments;
    for (size_t i = 0; i < frame.variables.size(); ++i) {
      const int tensor = frame.variables[i];
      const Value& value = plan_.values[tensor];
      if (value.data != nullptr || value.objects != nullptr) {
        if (flow_.dead_tensors[tensor]) return false;
        arguments.push_back({value, plan_.held[tensor]});
        continue;
      }
      PF_ASSIGN_OR_RETURN(const Tensor* const constant, fused->ConstantOf(i));
      if (constant == nullptr || constant->dtype() == DType::kString) return false;
      arguments.push_back({ViewOf(*constant), nullptr});
    }
    PF_ASSIGN_OR_RETURN(std::optional<std::vector<Passed>> results, fused->Run(arguments, environment_));
    if (!results.has_value()) return false;
    for (const int position : frame.exits) {
      const ProgramNode& node = program_.nodes[position];
      SetDead(position, node, true);
      for (size_t i = 0; i < variables.size(); ++i) {
        if (variables[i].exit != node.node) continue;
        SetDead(position, node, false);
        if (flow_.is_constant[node.first_output]) continue;
        SetValue((*results)[i].value, (*results)[i].held, node.first_output);
      }
    }
    for (const int position : frame.enters) {
      const int tensor = program_.nodes[position].first_output;
      flow_.dead_tensors[tensor] = 1;
      plan_.held[tensor].reset();
    }
    return true;
  }

  void BeginFrame(int number) {
    iteration_[number] = 0;
    for (const int position : flow_.frames[number].next_iterations) SetDead(position, program_.nodes[position], true);
    for (const int position : flow_.frames[number].exits) SetDead(position, program_.nodes[position], true);
  }

  // Ends an iteration. Returns true if the frame runs once more.
  absl::StatusOr<bool> EndIteration(int number) {
    const FrameInstructions& frame = flow_.frames[number];
    bool again = false;
    for (Taken& taken : next_[number]) {
      flow_.dead_tensors[taken.tensor] = taken.is_dead ? 1 : 0;
      again = again || !taken.is_dead;
      SetValue(taken.value, std::move(taken.held), taken.tensor);
    }
    next_[number].clear();
    const bool is_first = iteration_[number]++ == 0;
    for (const int position : frame.enters) {
      const int tensor = program_.nodes[position].first_output;
      if (again && !(is_first && flow_.is_for_one_iteration[tensor])) continue;
      flow_.dead_tensors[tensor] = 1;
      plan_.held[tensor].reset();
    }
    if (!again) return false;
    if (environment_.limits != nullptr) {
      PF_RETURN_IF_ERROR(environment_.limits->CheckIteration(iteration_[number], program_.frames[number].name));
    }
    return true;
  }

  Plan& plan_;
  FlowInstructions& flow_;
  const Program& program_;
  const Environment& environment_;
  RunStepFunction run_step_;
  std::vector<std::vector<Taken>> next_;  // By frame.
  std::vector<int64_t> iteration_;        // By frame.
};

}  // namespace

absl::Status ExecuteFlow(Plan* plan, const Program& program, const Environment* environment, RunStepFunction run_step) {
  return FlowExecutor(plan, program, environment, run_step).Run();
}

}  // namespace permafrost
