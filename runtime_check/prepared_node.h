// One node made ready to compute: the contexts that kernels see, for the session and for the evaluator.
#ifndef PERMAFROST_RUNTIME_CHECK_PREPARED_NODE_H_
#define PERMAFROST_RUNTIME_CHECK_PREPARED_NODE_H_

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
#include "runtime_check/kernel.h"

namespace permafrost {

// How many bytes the runtime may still take on behalf of one graph.
class MemoryBudget {
 public:
  explicit MemoryBudget(int64_t limit) : limit_(limit) {}

  // ResourceExhausted, and nothing taken, when `bytes` (0 or more) would exceed the limit; `what` says what they are
  // for.
  absl::Status Take(int64_t bytes, absl::string_view what);
  void GiveBack(int64_t bytes) { used_ -= bytes; }
  int64_t used() const { return used_; }

 private:
  int64_t limit_;
  int64_t used_ = 0;
};

// Bytes taken from a budget, which must outlive it; gives them back in the end.
class Reservation {
 public:
  Reservation() = default;
  static absl::StatusOr<Reservation> Take(MemoryBudget* budget, int64_t bytes, absl::string_view what);
  ~Reservation() { Release(); }
  Reservation(Reservation&& other) noexcept
      : budget_(std::exchange(other.budget_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
  Reservation& operator=(Reservation&& other) noexcept {
    std::swap(budget_, other.budget_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }

  int64_t bytes() const { return bytes_; }
  void Release() {
    if (budget_ != nullptr) budget_->GiveBack(bytes_);
    budget_ = nullptr;
    bytes_ = 0;
  }

 private:
  MemoryBudget* budget_ = nullptr;
  int64_t bytes_ = 0;
};

// Bytes of the elements; for strings those of the std::string objects. InvalidArgument on overflow and for unknown
// shapes, Unimplemented for types that have no elements in memory (resource, variant).
absl::StatusOr<int64_t> ValueBytes(DType dtype, const Shape& shape);

// The value of a tensor in the hands of the runtime. REQUIRES: aligned. The tensor must outlive the value.
Value ViewOf(const Tensor& tensor);
// The other way: a tensor that views the value's memory, which `owner` keeps alive (null: the caller does). Strings are
// copied.
absl::StatusOr<Tensor> TensorOver(const Value& value, Owner owner);
// A tensor with a copy of the value.
absl::StatusOr<Tensor> CopyOf(const Value& value);

struct OutputSpec {
  DType dtype = DType::kInvalid;
  Shape shape;  // Meaningless while depends_on_values.
  bool depends_on_values = false;
};

// What Prepare decided.
struct PreparedNode {
  std::vector<OutputSpec> outputs;
  std::unique_ptr<KernelState> state;
  int64_t scratch_bytes = 0;
  std::vector<bool> released;  // By input.
  // If not -1, Prepare asked for the value of this input, and nothing else here counts.
  int needs_value_of = -1;
};

struct PrepareInput {
  DType dtype = DType::kInvalid;
  Shape shape;
};

// Runs the kernel's Prepare. `value(i)` gives the known value of input i, aligned, or null. OK also when the kernel
// needs a value (see needs_value_of). Errors name the node. Internal when the kernel breaks its contract.
absl::Status PrepareNode(const Node& node, const Kernel& kernel, absl::Span<const PrepareInput> inputs,
                         absl::Span<const DType> output_types, int num_threads,
                         absl::FunctionRef<absl::StatusOr<const Tensor*>(int)> value, PreparedNode* prepared);

// What Compute sees. Points into the tables of whoever owns it; cheap to build and to call.
class NodeContext final : public ComputeContext {
 public:
  // Makes memory for an output whose shape is known only now, and fills in *output.
  using AllocateFunction = absl::FunctionRef<absl::Status(int index, Shape shape, Value* output)>;

  NodeContext(const Node* node, absl::Span<const Value* const> inputs, Value* outputs, int num_outputs, char* scratch,
              const KernelState* state, ThreadPool* threads)
      : node_(node),
        inputs_(inputs),
        outputs_(outputs),
        num_outputs_(num_outputs),
        scratch_(scratch),
        state_(state),
        threads_(threads) {}

  void set_state(const KernelState* state) { state_ = state; }
  void set_scratch(char* scratch) { scratch_ = scratch; }
  // `allocate` must live as long as Compute runs.
  void set_allocate(const AllocateFunction* allocate) { allocate_ = allocate; }

  const Node& node() const override { return *node_; }
  const Value& input_at(int i) const override { return *inputs_[i]; }
  Value& output_at(int i) override { return outputs_[i]; }
  int num_inputs() const override { return static_cast<int>(inputs_.size()); }
  int num_outputs() const override { return num_outputs_; }
  char* scratch() override { return scratch_; }
  const KernelState* raw_state() const override { return state_; }
  ThreadPool& threads() override { return *threads_; }
  absl::Status AllocateOutput(int i, Shape shape) override;

 private:
  const Node* node_;
  absl::Span<const Value* const> inputs_;
  Value* outputs_;
  int num_outputs_;
  char* scratch_;
  const KernelState* state_;
  ThreadPool* threads_;
  const AllocateFunction* allocate_ = nullptr;
};

// A new tensor within the budget, and the value that lets a kernel fill it.
struct HeapOutput {
  Tensor tensor;                                      // Of no type for strings.
  std::unique_ptr<std::vector<std::string>> strings;  // Only for strings.
  Reservation reservation;
};
absl::StatusOr<HeapOutput> AllocateHeapOutput(DType dtype, Shape shape, MemoryBudget* budget, Value* value);

// Computes one node on the heap: the values must be aligned and fit the prepared node. Errors name the node.
absl::StatusOr<std::vector<HeapOutput>> ComputeNode(const Node& node, const Kernel& kernel,
                                                    const PreparedNode& prepared, absl::Span<const Value* const> inputs,
                                                    Value* outputs, ThreadPool* threads, MemoryBudget* budget);

}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_PREPARED_NODE_H_
