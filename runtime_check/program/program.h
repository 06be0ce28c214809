// What a session computes: the nodes that the fetches need, in order, with their tensors numbered and everything
// checked that does not depend on the shapes that are fed.
#ifndef PERMAFROST_RUNTIME_CHECK_PROGRAM_PROGRAM_H_
#define PERMAFROST_RUNTIME_CHECK_PROGRAM_PROGRAM_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "graph/graph.h"
#include "graph/tensor.h"
#include "runtime_check/kernel.h"
#include "runtime_check/planning/prepared_node.h"
#include "runtime_check/program/frames.h"
#include "runtime_check/program/lookups.h"

namespace permafrost {

struct ProgramTensor {
  DType dtype = DType::kInvalid;
  TensorRef ref;
};

struct ProgramNode {
  const Node* node = nullptr;
  const Kernel* kernel = nullptr;  // Null for a Const or ImmutableConst.
  int constant = -1;               // Of these: index into Program::constants.
  int first_input = 0;             // Into Program::inputs; as many as the node has data inputs.
  int num_inputs = 0;
  int first_output = 0;  // Tensor number; the outputs follow each other.
  int num_outputs = 0;
  // The outputs depend on the inputs alone, so the node may run before the run, or not at all when nobody reads it.
  bool is_pure = true;

  int call = -1;  // Of a node that calls functions: index into Program::calls.

  // Control flow; all as here in a program without.
  FlowRole role = FlowRole::kNone;
  int frame = 0;  // Of an Enter the parent.
  bool may_be_dead =
      false;              // It lies behind a Switch or in a frame: whether it runs is known only when it is its turn.
  int first_control = 0;  // Into Program::controls.
  int num_controls = 0;
};

class CompiledFunction;
class FunctionTable;

// What a node calls.
struct FunctionCall {
  enum class Kind : uint8_t {
    kCall,   // PartitionedCall, and a node whose op is a function.
    kIf,     // Functions: then, else.
    kCase,   // Functions: the branches.
    kWhile,  // Functions: condition, body.
  };
  Kind kind = Kind::kCall;
  std::vector<CompiledFunction*> functions;
};

struct ProgramFeed {
  std::string name;
  int tensor = 0;
  Shape declared;  // Unknown dimensions are free.
};

struct Program {
  const FunctionRef* function = nullptr;  // Whose body this is; null for the graph itself.
  std::vector<ProgramTensor> tensors;
  std::vector<ProgramNode> nodes;  // Each after the nodes whose outputs it reads and its control inputs.
  std::vector<int> inputs;         // Tensor numbers.
  std::vector<int> controls;       // Positions of nodes: the control inputs that may be dead, of nodes that may be.
  std::vector<Tensor> constants;
  std::vector<FunctionCall> calls;
  std::vector<ProgramFeed> feeds;
  std::vector<int> fetches;  // Tensor numbers.
  std::vector<std::string> fetch_names;
  std::vector<Frame> frames;  // Empty without control flow; else frame 0 is the program itself.

  bool has_control_flow() const { return !frames.empty(); }
  absl::Span<const int> InputsOf(const ProgramNode& node) const {
    return absl::MakeConstSpan(inputs).subspan(static_cast<size_t>(node.first_input),
                                               static_cast<size_t>(node.num_inputs));
  }
  absl::Span<const int> ControlsOf(const ProgramNode& node) const {
    return absl::MakeConstSpan(controls).subspan(static_cast<size_t>(node.first_control),
                                                 static_cast<size_t>(node.num_controls));
  }
};

// The names are those of nodes, "x" or "x:1". Any output of any node may be fed; what only it needs is left out.
struct ProgramRequest {
  absl::Span<const std::string> feeds;
  absl::Span<const std::string> fetches;
  absl::Span<const std::string> targets;  // Nodes that run too, for what they do.
};

struct ProgramContext {
  const KernelLookup& kernel_lookup;
  MemoryBudget* budget;      // For the memory that constants need beyond the graph's own.
  FunctionTable* functions;  // Null when the graph has no library.
  const RegionReader& region_reader;
};

// Functions that nodes call are only asked for (FunctionTable::Get). Errors:
//   InvalidArgument   a name that does not exist (with the nearest), a placeholder that is needed and not fed, a cycle,
//                     wrong number or types of inputs, malformed frames, a fetch from inside a frame
//   Unimplemented     nodes without a kernel: all of them, by op
absl::StatusOr<Program> BuildProgram(const Graph& graph, const ProgramRequest& request, const ProgramContext& context);

}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_PROGRAM_PROGRAM_H_
