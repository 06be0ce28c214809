// Converts the order of a program with frames into instructions.
#include "runtime_check/planning/flow_instructions.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "graph/graph.h"
#include "runtime_check/program/fused_loop.h"

namespace permafrost {
namespace {

class FlowBuilder {
 public:
  FlowBuilder(const Program& program, FlowFacts facts)
      : program_(program), facts_(std::move(facts)), flow_(std::make_unique<FlowInstructions>()) {}

  std::unique_ptr<FlowInstructions> Run() {
    flow_->frames.resize(program_.frames.size());
    flow_->dead_tensors.assign(program_.tensors.size(), 0);
    flow_->dead_nodes.assign(program_.nodes.size(), 0);
    flow_->is_for_one_iteration.assign(program_.tensors.size(), false);
    is_entered_.assign(program_.tensors.size(), false);
    // By position, the frames that begin there. Outer frames have smaller numbers and come first.
    std::vector<std::vector<int>> frames_at(program_.nodes.size() + 1);
    for (size_t i = 1; i < program_.frames.size(); ++i) {
      const Frame& frame = program_.frames[i];
      by_name_.emplace(frame.name, static_cast<int>(i));
      if (frame.begin < frame.end) frames_at[frame.begin].push_back(static_cast<int>(i));
    }
    std::vector<int> open;
    for (size_t i = 0; i <= program_.nodes.size(); ++i) {
      while (!open.empty() && program_.frames[open.back()].end == static_cast<int>(i)) {
        AddMark(Instruction::Kind::kFrameEnd, open.back());
        flow_->frames[open.back()].end = static_cast<int>(flow_->instructions.size());
        open.pop_back();
      }
      for (const int frame : frames_at[i]) {
        AddMark(Instruction::Kind::kFrameBegin, frame);
        flow_->frames[frame].begin = static_cast<int>(flow_->instructions.size());
        open.push_back(frame);
      }
      if (i < program_.nodes.size()) AddInstruction(i);
    }
    if constexpr (kFusesLoops) FindVariables();
    return std::move(flow_);
  }

 private:
  using Kind = Instruction::Kind;

  void FindVariables() {
    absl::flat_hash_map<const Node*, int> entered;
    for (const ProgramNode& node : program_.nodes) {
      if (node.role == FlowRole::kEnter) entered.emplace(node.node, node.first_output);
    }
    for (size_t i = 1; i < program_.frames.size(); ++i) {
      const std::shared_ptr<FusedLoop>& fused = program_.frames[i].fused;
      if (fused == nullptr || fused->form() == nullptr) continue;
      std::vector<int> tensors;
      for (const LoopVariable& variable : fused->form()->variables) {
        const auto found = entered.find(variable.enter);
        if (found != entered.end()) tensors.push_back(found->second);
      }
      if (tensors.size() == fused->form()->variables.size()) flow_->frames[i].variables = std::move(tensors);
    }
  }

  void AddMark(Kind kind, int frame) {
    Instruction& mark = flow_->instructions.emplace_back();
    mark.kind = kind;
    mark.frame = frame;
  }

  // Records the node in its frame and returns its kind of instruction.
  Kind KindOf(const ProgramNode& node, int position) {
    switch (node.role) {
      case FlowRole::kSwitch:
        return Kind::kSwitch;
      case FlowRole::kMerge:
        return Kind::kMerge;
      case FlowRole::kEnter: {
        const int frame = by_name_[StringAttr(*node.node, "frame_name").value_or("")];
        flow_->frames[frame].enters.push_back(position);
        is_entered_[node.first_output] = true;
        flow_->is_for_one_iteration[node.first_output] = !BoolAttr(*node.node, "is_constant").value_or(false);
        return Kind::kEnter;
      }
      case FlowRole::kExit:
        flow_->frames[node.frame].exits.push_back(position);
        return Kind::kExit;
      case FlowRole::kNextIteration:
        flow_->frames[node.frame].next_iterations.push_back(position);
        return Kind::kNextIteration;
      case FlowRole::kTrigger:
      case FlowRole::kNone:
        break;
    }
    return Kind::kGuard;
  }

  void AddInstruction(size_t position) {
    const ProgramNode& node = program_.nodes[position];
    if (!facts_.is_live[position] && !facts_.is_guarded[position]) return;
    Instruction instruction;
    instruction.node = static_cast<int>(position);
    instruction.step = facts_.step_at[position];
    instruction.kind = instruction.step >= 0 ? Kind::kRun : KindOf(node, instruction.node);
    if (instruction.kind == Kind::kGuard && !node.may_be_dead) return;
    instruction.release = std::move(facts_.release_at[position]);
    // Values that enter a frame stay alive until the frame ends.
    std::vector<int>& release = instruction.release;
    release.erase(std::remove_if(release.begin(), release.end(), [&](int tensor) { return is_entered_[tensor]; }),
                  release.end());
    flow_->instructions.push_back(std::move(instruction));
  }

  const Program& program_;
  FlowFacts facts_;
  std::unique_ptr<FlowInstructions> flow_;
  std::vector<bool> is_entered_;  // By tensor: it is the output of an Enter.
  absl::flat_hash_map<absl::string_view, int> by_name_;
};

}  // namespace

std::unique_ptr<FlowInstructions> BuildFlowInstructions(const Program& program, FlowFacts facts) {
  return FlowBuilder(program, std::move(facts)).Run();
}

}  // namespace permafrost
