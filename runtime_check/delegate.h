// What a delegate is: a faster way to compute parts of a graph than node by node with the reference kernels.
//
// While a session plans, it shows a delegate each node whose shapes are known (Supports), joins what the delegate takes
// into partitions, as few and as large as the order of the graph allows, and has them compiled. A partition then runs
// as one step between the steps of the nodes that were left. What no delegate takes, or fails to compile, the reference
// kernels run.
#ifndef PERMAFROST_RUNTIME_CHECK_DELEGATE_H_
#define PERMAFROST_RUNTIME_CHECK_DELEGATE_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "graph/graph.h"
#include "graph/tensor.h"
#include "runtime_check/profiling/callbacks.h"

namespace permafrost {

struct DelegateTensor {
  DType dtype = DType::kInvalid;
  Shape shape;  // Fully known.
  // The value, where it is known before the run. Its bytes need not be aligned; they live as long as a copy of the
  // Tensor does and the graph.
  std::optional<Tensor> constant;
  // Names the value in the model, whatever shapes are fed. Empty where it is not a constant that follows from the model
  // alone.
  std::string value_name = "";
};

struct DelegateNode {
  const Node* node = nullptr;  // Op and attributes, which the reference kernel has checked against the shapes.
  std::vector<int> inputs;     // Data inputs: numbers of tensors.
  std::vector<int> outputs;
};

// A part of a graph that runs as one: no node outside of it lies on a path between two of its own.
struct Partition {
  std::vector<DelegateTensor> tensors;
  std::vector<DelegateNode> nodes;  // Each after those whose outputs it reads.
  std::vector<int> inputs;          // The tensors that others compute, each once.
  std::vector<int> outputs;         // The tensors that others read, each once; all are outputs of nodes.
};

class CompiledPartition {
 public:
  virtual ~CompiledPartition() = default;
  // Memory that Run may use, in bytes.
  virtual int64_t scratch_bytes() const = 0;
  // What is kept from run to run beside the graph's own constants: packed weights, in bytes.
  virtual int64_t constant_bytes() const = 0;
  // One line for each piece that runs, for --explain.
  virtual std::vector<std::string> Describe() const = 0;
  // The buffers are in the order of Partition::inputs and outputs, 64-byte aligned and of exactly the tensors' sizes.
  // No output overlaps another buffer; inputs may share memory. Allocates nothing of a size that depends on the model.
  // After an error the session computes everything again with the reference kernels, and never calls this again.
  // `on_piece` (may be empty) is called for each piece, in order. The names that it is given live, unchanged, as long
  // as the partition.
  virtual absl::Status Run(absl::Span<const char* const> inputs, absl::Span<char* const> outputs, char* scratch,
                           const PieceCallback& on_piece) = 0;
};

// Thread-safe, and outlives the sessions that use it.
class Delegate {
 public:
  virtual ~Delegate() = default;
  virtual absl::string_view name() const = 0;
  // For a partition of one node; its outputs are those that somebody reads. Any error means no, and its message
  // is the reason that --explain prints.
  virtual absl::Status Supports(const Partition& single) const = 0;
  // Whether to take the partition at all; no for what costs more to enter than it saves.
  virtual bool IsWorthwhile(const Partition& partition) const = 0;
  // An error sends the nodes back to the reference kernels, with a note.
  virtual absl::StatusOr<std::unique_ptr<CompiledPartition>> Compile(const Partition& partition,
                                                                     int num_threads) const = 0;
  // The same where up to `num_lanes` parts of the partition may run at the same time, each on one thread, with the same
  // results. It is for the delegate to find out whether that is faster; by default none do.
  virtual absl::StatusOr<std::unique_ptr<CompiledPartition>> CompileInLanes(const Partition& partition, int num_threads,
                                                                            int /*num_lanes*/) const {
    return Compile(partition, num_threads);
  }
};

}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_DELEGATE_H_
