// A node prepared for computation, and the contexts that kernels receive. Used by the session and the evaluator.
#ifndef PERMAFROST_RUNTIME_CHECK_PLANNING_PREPARED_NODE_H_
#define PERMAFROST_RUNTIME_CHECK_PLANNING_PREPARED_NODE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "graph/graph.h"
#include "graph/tensor.h"
#include "runtime_check/execution/loop_limits.h"
#include "runtime_check/kernel.h"
#include "runtime_check/profiling/callbacks.h"
#include "runtime_check/resources/memory_budget.h"

namespace permafrost {

class Delegate;
class PackedWeights;
struct PackedInputs;
class Profiler;

// State that the nodes of a session share during planning and runs. The pointers must outlive every user of the
// environment.
struct Environment {
  ThreadPool* threads = nullptr;
  MemoryBudget* budget = nullptr;
  ResourceStore* resources = nullptr;       // Null outside a session.
  const LoopLimits* limits = nullptr;       // Null: no limits.
  int* call_depth = nullptr;                // Number of function calls in progress; null outside a session.
  RunLog* log = nullptr;                    // Null outside a session.
  const Delegate* delegate = nullptr;       // Null: the reference kernels run everything.
  const PieceCallback* on_piece = nullptr;  // Null: pieces are not reported.
  Profiler* profiler = nullptr;             // Null: nothing is recorded.
  PackedWeights* packed = nullptr;          // Cache for the reference kernels; null: packed weights are not kept.
  // Threads for nodes that run at the same time, and the maximum number of such nodes; may be `threads`. Null and 1:
  // one node at a time.
  ThreadPool* lanes = nullptr;
  int num_lanes = 1;
  bool fuse_loops = true;  // SessionOptions::fuse_loops.

  // Returns whether errors name the calling functions; false for deeply nested calls, to bound the message.
  bool AnnotatesCalls() const { return call_depth == nullptr || *call_depth < 8; }
};

// Returns the number of bytes of the elements: for strings those of the std::string objects, for resources and variants
// those of the references. InvalidArgument on overflow and for unknown shapes, Unimplemented for unknown types.
absl::StatusOr<int64_t> ValueBytes(DType dtype, const Shape& shape);

// Returns a value that views a tensor. The tensor must outlive the value. REQUIRES: the tensor is aligned.
Value ViewOf(const Tensor& tensor);
// Returns a tensor that views the value's memory, which `owner` keeps alive (null: the caller does). Strings are
// copied. Unimplemented for objects.
absl::StatusOr<Tensor> TensorOver(const Value& value, Owner owner);
// Returns a tensor with a copy of the value. Unimplemented for objects.
absl::StatusOr<Tensor> CopyOf(const Value& value);

struct OutputSpec {
  DType dtype = DType::kInvalid;
  Shape shape;  // Undefined while depends_on_values.
  bool depends_on_values = false;
};

// The decisions of Prepare.
struct PreparedNode {
  std::vector<OutputSpec> outputs;
  std::unique_ptr<KernelState> state;
  ComputeFunction compute = nullptr;  // The kernel's own function, unless Prepare replaced it.
  int64_t scratch_bytes = 0;
  std::vector<bool> released;  // By input.
  // If not -1, Prepare requested the value of this input, and all other members are undefined.
  int needs_value_of = -1;
};

// Returns whether a custom kernel computes the node and did not defer to another kernel.
inline bool IsOfCustomKernel(const Kernel& kernel, const PreparedNode& prepared) {
  return kernel.data() != nullptr && prepared.compute == kernel.compute();
}

struct PrepareInput {
  DType dtype = DType::kInvalid;
  Shape shape;
};

// Runs the kernel's Prepare. `value(i)` returns the known value of input i, aligned, or null. Also returns OK if the
// kernel needs a value (see needs_value_of). Errors name the node. Internal if the kernel breaks its contract. `packed`
// may be null.
absl::Status PrepareNode(const Node& node, const Kernel& kernel, absl::Span<const PrepareInput> inputs,
                         absl::Span<const DType> output_types, int num_threads,
                         absl::FunctionRef<absl::StatusOr<const Tensor*>(int)> value, PreparedNode* prepared,
                         const PackedInputs* packed = nullptr);

// The context passed to Compute. Points into tables of its owner; cheap to construct and to call.
class NodeContext final : public ComputeContext {
 public:
  // Allocates an output whose shape is known only during Compute, and sets *output.
  using AllocateFunction = absl::FunctionRef<absl::Status(int index, Shape shape, Value* output)>;

  // `environment` must outlive the context.
  NodeContext(const Node* node, absl::Span<const Value* const> inputs, Value* outputs, int num_outputs, char* scratch,
              const KernelState* state, const Environment* environment)
      : node_(node),
        inputs_(inputs),
        outputs_(outputs),
        num_outputs_(num_outputs),
        scratch_(scratch),
        state_(state),
        environment_(environment) {}

  void set_state(const KernelState* state) { state_ = state; }
  void set_scratch(char* scratch) { scratch_ = scratch; }
  // `allocate` must outlive the call of Compute.
  void set_allocate(const AllocateFunction* allocate) { allocate_ = allocate; }
  // Sets the results of OwnsInput, by input; null: false for each input.
  void set_owned(const std::vector<bool>* owned) { owned_ = owned; }

  const Node& node() const override { return *node_; }
  const Value& input_at(int i) const override { return *inputs_[i]; }
  Value& output_at(int i) override { return outputs_[i]; }
  const Value& made(int i) const { return outputs_[i]; }
  int num_inputs() const override { return static_cast<int>(inputs_.size()); }
  int num_outputs() const override { return num_outputs_; }
  char* scratch() override { return scratch_; }
  const KernelState* raw_state() const override { return state_; }
  ThreadPool& threads() override { return *environment_->threads; }
  MemoryBudget& budget() override { return *environment_->budget; }
  ResourceStore* resources() override { return environment_->resources; }
  RunLog* log() override { return environment_->log; }
  bool OwnsInput(int i) const override { return owned_ != nullptr && (*owned_)[i]; }
  absl::Status AllocateOutput(int i, Shape shape) override;

 private:
  const Node* node_;
  absl::Span<const Value* const> inputs_;
  Value* outputs_;
  int num_outputs_;
  char* scratch_;
  const KernelState* state_;
  const Environment* environment_;
  const AllocateFunction* allocate_ = nullptr;
  const std::vector<bool>* owned_ = nullptr;
};

// A new tensor within the budget, and the storage of the value that a kernel fills.
struct HeapOutput {
  Tensor tensor;                                      // Of type kInvalid for strings and objects.
  std::unique_ptr<std::vector<std::string>> strings;  // Only for strings.
  std::unique_ptr<std::vector<ObjectRef>> objects;    // Only for objects.
  Reservation reservation;
};
absl::StatusOr<HeapOutput> AllocateHeapOutput(DType dtype, Shape shape, MemoryBudget* budget, Value* value);

// A value passed into a function, out of it or to the next iteration of a loop. `held` keeps its memory alive; null:
// the memory has another owner.
struct Passed {
  Value value;
  std::shared_ptr<HeapOutput> held;
};
// Copies the elements of a value. For objects, copies the references.
absl::StatusOr<Passed> CopyOnHeap(const Value& value, MemoryBudget* budget);

// Computes one node on the heap. The values must be aligned and match the prepared node. `owned` has the results of
// OwnsInput by input; null: false for each input. Errors name the node.
absl::StatusOr<std::vector<HeapOutput>> ComputeNode(const Node& node, const PreparedNode& prepared,
                                                    absl::Span<const Value* const> inputs, Value* outputs,
                                                    const Environment& environment,
                                                    const std::vector<bool>* owned = nullptr);

}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_PLANNING_PREPARED_NODE_H_
