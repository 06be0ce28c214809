// A program: the nodes that the fetches need, in execution order, with numbered tensors. Everything that does not
// depend on the shapes of the feeds has been checked.
#ifndef PERMAFROST_RUNTIME_CHECK_PROGRAM_PROGRAM_H_
#define PERMAFROST_RUNTIME_CHECK_PROGRAM_PROGRAM_H_

#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "graph/graph.h"
#include "graph/tensor.h"
#include "runtime_check/kernel.h"
#include "runtime_check/planning/prepared_node.h"
#include "runtime_check/program/frames.h"
#include "runtime_check/program/integer_fusion.h"
#include "runtime_check/program/lookups.h"

namespace permafrost {

struct ProgramTensor {
  DType dtype = DType::kInvalid;
  TensorRef ref;
};

struct ProgramNode {
  const Node* node = nullptr;
  const Kernel* kernel = nullptr;  // Null for a Const or ImmutableConst.
  int constant = -1;               // For these nodes, an index into Program::constants.
  int first_input = 0;             // Index into Program::inputs; one entry for each data input.
  int num_inputs = 0;
  int first_output = 0;  // Tensor number; the outputs are consecutive.
  int num_outputs = 0;
  // The outputs depend only on the inputs. The node may be computed before the run, and is skipped if its outputs have
  // no reader.
  bool is_pure = true;

  int call =
      -1;  // For a node that calls functions or represents a cluster, an index into Program::calls; otherwise -1.

  // Control flow. Keeps these defaults in a program without control flow.
  FlowRole role = FlowRole::kNone;
  int frame = 0;  // For an Enter, the parent.
  bool may_be_dead =
      false;              // The node is behind a Switch or in a frame, so whether it runs is known only during the run.
  int first_control = 0;  // Index into Program::controls.
  int num_controls = 0;
};

class Cluster;
class CompiledFunction;
class FunctionTable;
class FusedLoop;

// A function call made by a node.
struct FunctionCall {
  enum class Kind : uint8_t {
    kCall,   // PartitionedCall, and a node whose op is a function.
    kIf,     // Functions: then, else.
    kCase,   // Functions: the branches.
    kWhile,  // Functions: condition, body.
  };
  Kind kind = Kind::kCall;
  std::vector<CompiledFunction*> functions;
  Cluster* cluster = nullptr;  // If set, the node represents this cluster, and calls no function.
  // Set for kWhile alone. Created when a run first reaches the loop; copies of a program share it.
  std::shared_ptr<std::shared_ptr<FusedLoop>> fused;
};

struct ProgramFeed {
  std::string name;
  int tensor = 0;
  Shape declared;  // Unknown dimensions accept any size.
};

struct Program {
  const FunctionRef* function = nullptr;  // The function whose body this is; null for the graph itself.
  // The graph with integer nodes, if it has quantised operators; else null. Nothing in a build without them.
  struct NoGraph {};
  [[no_unique_address]] std::conditional_t<kHoldsQuantizedOperators, std::shared_ptr<const Graph>, NoGraph> fused;
  std::vector<ProgramTensor> tensors;
  std::vector<ProgramNode> nodes;  // Topological order, control inputs included.
  std::vector<int> inputs;         // Tensor numbers.
  std::vector<int> controls;       // Node positions: control inputs that may be dead, for nodes that may be dead.
  std::vector<Tensor> constants;
  std::vector<FunctionCall> calls;
  std::vector<ProgramFeed> feeds;
  std::vector<int> fetches;  // Tensor numbers.
  std::vector<std::string> fetch_names;
  int cluster_depth = 0;      // Number of clusters around the program.
  std::vector<Frame> frames;  // Empty without control flow; otherwise frame 0 is the program itself.

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

// Inputs of BuildProgram. The names are those of node outputs, "x" or "x:1". Any output of any node may be fed; nodes
// that only fed outputs need are omitted.
struct ProgramRequest {
  absl::Span<const std::string> feeds;
  absl::Span<const std::string> fetches;
  absl::Span<const std::string> targets;  // Nodes that run for their side effects.
};

struct ProgramContext {
  const KernelLookup& kernel_lookup;
  MemoryBudget* budget;      // Budget for the memory of constants that is not part of the graph.
  FunctionTable* functions;  // Null when the graph has no library.
  const RegionReader& region_reader;
};

// Builds a program. Functions that nodes call are only requested (FunctionTable::Get). Errors:
//   InvalidArgument   a name that does not exist (with the nearest), a placeholder that is needed and not fed, a cycle,
//                     wrong number or types of inputs, malformed frames, a fetch from inside a frame
//   Unimplemented     nodes without a kernel: all of them, by op; quantised operators without an integer form
absl::StatusOr<Program> BuildProgram(const Graph& graph, const ProgramRequest& request, const ProgramContext& context);

}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_PROGRAM_PROGRAM_H_
