// What a plan has besides its steps when the program has control flow: a list of instructions that knows of branches
// not taken and of loops.
//
// A node whose turn comes is dead when an input is, or a node that it waits for by a control input; a dead node does
// nothing and makes its outputs dead. Switch gives life to one of its outputs, Merge lives when one input does, and a
// frame runs again as long as a NextIteration lives.
#ifndef PERMAFROST_RUNTIME_CHECK_PLANNING_FLOW_INSTRUCTIONS_H_
#define PERMAFROST_RUNTIME_CHECK_PLANNING_FLOW_INSTRUCTIONS_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "runtime_check/program/program.h"

namespace permafrost {

struct Instruction {
  enum class Kind : uint8_t {
    kRun,    // A step.
    kGuard,  // Of a node computed before the run, and of ControlTrigger: only whether it is dead.
    kSwitch,
    kMerge,
    kEnter,
    kExit,
    kNextIteration,
    kFrameBegin,
    kFrameEnd,
  };
  Kind kind = Kind::kRun;
  int node = -1;             // Position in the program, but for kFrameBegin and kFrameEnd.
  int step = -1;             // Of kRun: into Plan::steps.
  int frame = 0;             // Of kFrameBegin and kFrameEnd.
  std::vector<int> release;  // Tensors whose heap memory nobody reads after this.
};

// Positions in the program.
struct FrameInstructions {
  int begin = 0;  // The instruction after kFrameBegin.
  std::vector<int> enters;
  std::vector<int> next_iterations;
  std::vector<int> exits;
};

struct FlowInstructions {
  std::vector<Instruction> instructions;
  std::vector<FrameInstructions> frames;   // As Program::frames.
  std::vector<bool> is_constant;           // By tensor: the value is set before the run.
  std::vector<bool> is_for_one_iteration;  // By tensor: of an Enter whose frame reads it in its first iteration alone.
  // By tensor and by position of the node, during the run and after.
  std::vector<uint8_t> dead_tensors;
  std::vector<uint8_t> dead_nodes;
};

// What the layout of a plan knows, by position of the node.
struct FlowFacts {
  std::vector<bool> is_live;                 // It has a step or flows.
  std::vector<bool> is_guarded;              // It was computed before the run, and it matters whether it is dead.
  std::vector<int> step_at;                  // -1 for none.
  std::vector<std::vector<int>> release_at;  // The dynamic tensors that it is the last to read.
};

// Lists the instructions. The flags by tensor are left for the layout to set. REQUIRES: program.has_control_flow().
std::unique_ptr<FlowInstructions> BuildFlowInstructions(const Program& program, FlowFacts facts);

}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_PLANNING_FLOW_INSTRUCTIONS_H_
