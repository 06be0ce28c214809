// The list of instructions of a plan with control flow, which handles branches not taken and loops.
//
// A node is dead if one of its inputs is dead, or a node that it waits for through a control input. A dead node does
// not run, and its outputs are dead. Switch makes one of its outputs live, Merge is live if one input is, and a frame
// repeats as long as one of its NextIteration nodes is live.
#ifndef PERMAFROST_RUNTIME_CHECK_PLANNING_FLOW_INSTRUCTIONS_H_
#define PERMAFROST_RUNTIME_CHECK_PLANNING_FLOW_INSTRUCTIONS_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "runtime_check/program/program.h"

namespace permafrost {

struct Instruction {
  enum class Kind : uint8_t {
    kRun,    // Runs a step.
    kGuard,  // Updates only whether a node is dead, for nodes computed before the run and ControlTrigger.
    kSwitch,
    kMerge,
    kEnter,
    kExit,
    kNextIteration,
    kFrameBegin,
    kFrameEnd,
  };
  Kind kind = Kind::kRun;
  int node = -1;             // Position in the program, except for kFrameBegin and kFrameEnd.
  int step = -1;             // For kRun: index into Plan::steps.
  int frame = 0;             // For kFrameBegin and kFrameEnd.
  std::vector<int> release;  // Tensors whose heap memory has no later reader.
};

// A frame as a range of instructions. Positions are those in the program.
struct FrameInstructions {
  int begin = 0;  // The instruction after kFrameBegin.
  int end = 0;    // The instruction after kFrameEnd.
  std::vector<int> enters;
  std::vector<int> next_iterations;
  std::vector<int> exits;
  // The tensors of the Enter nodes of the variables of Frame::fused, in their order; empty if the frame has none.
  std::vector<int> variables;
};

struct FlowInstructions {
  std::vector<Instruction> instructions;
  std::vector<FrameInstructions> frames;  // As Program::frames.
  std::vector<bool> is_constant;          // By tensor: the value is set before the run.
  std::vector<bool>
      is_for_one_iteration;  // By tensor: output of an Enter that its frame reads only in the first iteration.
  // By tensor and by node position, during the run and after it.
  std::vector<uint8_t> dead_tensors;
  std::vector<uint8_t> dead_nodes;
};

// Facts from the layout of a plan, by node position.
struct FlowFacts {
  std::vector<bool> is_live;                 // The node has a step or is part of control flow.
  std::vector<bool> is_guarded;              // The node was computed before the run, and its dead state is needed.
  std::vector<int> step_at;                  // -1 for none.
  std::vector<std::vector<int>> release_at;  // Dynamic tensors whose last reader is the node.
};

// Returns the list of instructions. The layout sets the flags by tensor. REQUIRES: program.has_control_flow().
std::unique_ptr<FlowInstructions> BuildFlowInstructions(const Program& program, FlowFacts facts);

}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_PLANNING_FLOW_INSTRUCTIONS_H_
