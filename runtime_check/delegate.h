// The interface of a delegate, which computes parts of a graph faster than the reference kernels do node by node.
//
// While a session plans, it offers the delegate each node whose shapes are known (Supports). It joins the supported
// nodes into partitions, as few and as large as the order of the graph allows, and compiles them. A partition runs as
// one step, between the steps of the other nodes. The reference kernels run every node that the delegate does not
// support or fails to compile.
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
  // Value, if it is known before the run. Its bytes may be unaligned; they stay valid as long as the graph and a copy
  // of the Tensor live.
  std::optional<Tensor> constant;
  // Identifies the value within the model, independently of the shapes that are fed. Empty unless the value is a
  // constant that depends on the model alone.
  std::string value_name = "";
};

struct DelegateNode {
  const Node* node = nullptr;  // Op and attributes, which the reference kernel has checked against the shapes.
  std::vector<int> inputs;     // Data inputs: tensor numbers.
  std::vector<int> outputs;
};

// A part of a graph that runs as one step. No node outside the partition lies on a path between two nodes inside it.
struct Partition {
  std::vector<DelegateTensor> tensors;
  std::vector<DelegateNode> nodes;  // Topological order.
  std::vector<int> inputs;          // Tensors computed outside the partition, each once.
  std::vector<int> outputs;         // Tensors read outside the partition, each once; all are outputs of nodes.
};

class CompiledPartition {
 public:
  virtual ~CompiledPartition() = default;
  // Returns the size of the scratch memory for Run, in bytes.
  virtual int64_t scratch_bytes() const = 0;
  // Returns the size of the memory kept between runs in addition to the graph's constants (packed weights), in bytes.
  virtual int64_t constant_bytes() const = 0;
  // Returns one line for each piece that runs, for --explain.
  virtual std::vector<std::string> Describe() const = 0;
  // Computes the partition. The buffers are in the order of Partition::inputs and outputs, 64-byte aligned and of
  // exactly the tensors' sizes. No output overlaps another buffer; inputs may share memory. Allocates nothing of a size
  // that depends on the model. After an error the session computes everything again with the reference kernels, and
  // never calls Run again. `on_piece` (may be empty) is called for each piece, in order; the names passed to it are
  // valid and unchanged as long as the partition lives.
  virtual absl::Status Run(absl::Span<const char* const> inputs, absl::Span<char* const> outputs, char* scratch,
                           const PieceCallback& on_piece) = 0;
};

// Estimated speed of a delegate, by which nodes are placed if a session has several. The defaults are those of a thread
// of a server of 2023, as step_cost.h measured them for the built-in kernels.
struct DelegateSpeed {
  double flops_per_ns = 40;  // Additions and multiplications of convolutions and matrix products.
  double bytes_per_ns = 5;   // Bytes of operands and results.
  double node_ns = 300;      // For each node.
  double entry_ns = 2000;    // For each run of a partition.
  bool fuses_steps = false;  // Steps with one operand cost little behind the node that makes it.
  // Copies between the memory of the host and that of the device, both ways; 0: the device uses the memory of the host.
  double transfer_bytes_per_ns = 0;
};

class Delegate;

// The delegates among which a session places nodes.
struct DelegateChoice {
  std::vector<std::shared_ptr<const Delegate>> members;  // In order of preference, at most 16.
  // Whether nodes that a member supports may run with the built-in kernels.
  bool includes_kernels = false;
};

// A backend that compiles partitions. Thread-safe; outlives the sessions that use it.
class Delegate {
 public:
  virtual ~Delegate() = default;
  virtual absl::string_view name() const = 0;
  // Returns OK if the delegate can compute the node of a partition with one node; its outputs are those that have
  // readers. The message of an error is the reason that --explain prints.
  virtual absl::Status Supports(const Partition& single) const = 0;
  // Returns whether the partition is worth compiling; false if entering it costs more than it saves.
  virtual bool IsWorthwhile(const Partition& partition) const = 0;
  // Compiles a partition. After an error the reference kernels run its nodes, and the report has a note.
  virtual absl::StatusOr<std::unique_ptr<CompiledPartition>> Compile(const Partition& partition,
                                                                     int num_threads) const = 0;
  // Returns the speed, for sessions with several delegates.
  virtual DelegateSpeed Speed(int /*num_threads*/) const { return {}; }
  // Returns the estimated nanoseconds of the node of a partition with one node, if the delegate knows better than
  // Speed; else a negative number.
  virtual double EstimateNanoseconds(const Partition& /*single*/) const { return -1; }
  // Returns the delegates that this one stands for (delegates/delegate_list.h), or null if it is a single one.
  virtual const DelegateChoice* choice() const { return nullptr; }
  // Compiles a partition like Compile, but up to `num_lanes` parts of it may run at the same time, each on one thread,
  // with the same results. The delegate decides whether that is faster; the default implementation calls Compile.
  virtual absl::StatusOr<std::unique_ptr<CompiledPartition>> CompileInLanes(const Partition& partition, int num_threads,
                                                                            int /*num_lanes*/) const {
    return Compile(partition, num_threads);
  }
};

}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_DELEGATE_H_
