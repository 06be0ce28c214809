// The definition of a kernel, which computes one op, and the contexts that are passed to its Prepare and Compute.
//
// A kernel is one definition in a family file of runtime_check/kernels; the list of kernels is generated from the
// files. There are no registration calls and no static constructors:
//
//   // min(max(x, 0), 6)
//   DEFINE_KERNEL(Relu6) {
//     return Kernel("min(max(x, 0), 6)").Types<float, double,
//     int32_t>("T").InPlace(0).Prepare(SameShape).Compute(Relu6);
//   }
//
// Prepare runs once for each node and set of input shapes. It checks attributes and shapes, sets the shapes of the
// outputs, packs constant weights and requests scratch memory. Compute runs once for each inference and allocates
// nothing. A kernel throws no exceptions and prints only the text that its op prints, to the session's log. It checks
// in Prepare everything that a malformed file can contain.
#ifndef PERMAFROST_RUNTIME_CHECK_KERNEL_H_
#define PERMAFROST_RUNTIME_CHECK_KERNEL_H_

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "graph/base/selection.h"
#include "graph/graph.h"
#include "graph/ops/op_schema.h"
#include "graph/tensor.h"
#include "runtime_check/resources/memory_budget.h"
#include "runtime_check/resources/runtime_object.h"
#include "runtime_check/threads/thread_pool.h"

namespace permafrost {

class RunLog;         // runtime_check/resources/run_log.h
struct PackedInputs;  // runtime_check/packing/packed_weights.h

// A tensor in memory that the plan assigned. Does not own the elements.
struct Value {
  DType dtype = DType::kInvalid;
  Shape shape;                                  // Fully known once the node that makes the value has run.
  char* data = nullptr;                         // 64-byte aligned. Null for strings and objects.
  std::vector<std::string>* strings = nullptr;  // Only for DType::kString.
  std::vector<ObjectRef>* objects = nullptr;    // Only for the types of HoldsObjects.
  int64_t bytes = 0;                            // Size of the memory at `data`; at least the size of the elements.
};

// Returns whether elements of the type are references to objects, which are created during the run.
inline bool HoldsObjects(DType dtype) { return dtype == DType::kResource || dtype == DType::kVariant; }

// State that a kernel keeps from Prepare to Compute, such as parsed attributes and packed weights.
class KernelState {
 public:
  virtual ~KernelState() = default;
};

class PrepareContext;
class ComputeContext;
using PrepareFunction = absl::Status (*)(PrepareContext*);
using ComputeFunction = absl::Status (*)(ComputeContext*);

// The node's properties that Prepare reads, and the decisions that it makes. Errors need not name the node: the session
// adds the name.
class PrepareContext {
 public:
  virtual ~PrepareContext() = default;

  virtual const Node& node() const = 0;
  virtual int num_inputs() const = 0;
  virtual DType input_type(int i) const = 0;
  virtual const Shape& input_shape(int i) const = 0;  // Fully known.
  // Returns the value of an input that is known before the run (a constant, or computed from constants and shapes);
  // otherwise null. The tensor is aligned and outlives the prepared kernel.
  virtual const Tensor* input_value(int i) const = 0;

  virtual int num_outputs() const = 0;
  virtual DType output_type(int i) const = 0;  // From the op's schema.
  virtual void SetOutputShape(int i, Shape shape) = 0;
  // Reports that Prepare needs the value of input i, which is known only during the run. Prepare returns the result of
  // this call; the session prepares the node again during the run.
  virtual absl::Status NeedsValueOf(int i) = 0;
  // Declares that the shape of output i is known only after Compute (NonZero, Unique), which calls AllocateOutput.
  virtual void OutputShapeDependsOnValues(int i) = 0;

  virtual void SetState(std::unique_ptr<KernelState> state) = 0;
  // Declares that Compute does not read input i, because the state contains its constant value (packed weights). The
  // session then keeps no aligned copy. Pointers from input_value(i) are valid until Prepare returns, and Compute finds
  // null data for the input.
  virtual void ReleaseInput(int i) = 0;
  // Requests scratch memory for Compute, with undefined contents. One block per node.
  virtual void RequestScratch(size_t bytes) = 0;
  virtual int num_threads() const = 0;

  // Returns the Kernel::Data of the kernel that is being prepared.
  virtual const void* kernel_data() const = 0;
  // Replaces the kernel's Compute function for this node.
  virtual void ComputeWith(ComputeFunction function) = 0;

  // Returns the cache of packed inputs; null if there is none.
  const PackedInputs* packed_inputs() const { return packed_inputs_; }

 protected:
  const PackedInputs* packed_inputs_ = nullptr;
};

class ComputeContext {
 public:
  virtual ~ComputeContext() = default;

  virtual const Node& node() const = 0;
  virtual const Value& input_at(int i) const = 0;
  virtual Value& output_at(int i) = 0;
  virtual int num_inputs() const = 0;
  virtual int num_outputs() const = 0;
  virtual char* scratch() = 0;
  virtual const KernelState* raw_state() const = 0;
  virtual ThreadPool& threads() = 0;
  // Returns the log for kernels that print; null outside a session.
  virtual RunLog* log() = 0;
  // REQUIRES: Prepare called OutputShapeDependsOnValues(i).
  virtual absl::Status AllocateOutput(int i, Shape shape) = 0;
  // Returns the budget for memory that objects keep after this call.
  virtual MemoryBudget& budget() = 0;
  // Returns the store of resources; null outside a session. A kernel that needs it is marked with Kernel::UsesState.
  virtual ResourceStore* resources() = 0;
  // Returns true if this node is the last reader of the objects of input i, so that Compute may change them instead of
  // copying them. True only for an input that holds objects.
  virtual bool OwnsInput(int i) const = 0;

  const Shape& input_shape(int i) const { return input_at(i).shape; }
  const Shape& output_shape(int i) { return output_at(i).shape; }
  DType input_type(int i) const { return input_at(i).dtype; }
  DType output_type(int i) { return output_at(i).dtype; }

  // Return views of the elements, the only access that a kernel has to them. Each call compares the type and the size
  // of the tensor with those of the view, in release builds too. If the view does not match, the result is zeroed spare
  // memory for as many elements as the shape has, and RunKernel then returns an error. So a missing check elsewhere
  // causes an error status, but never an access to the memory of other tensors. Null for an input that was released.
  // Thread-safe.
  template <typename T>
  const T* input(int i) const {
    return reinterpret_cast<const T*>(View(input_at(i), i, "input", DTypeOf<T>::value, sizeof(T)));
  }
  template <typename T>
  T* output(int i) {
    return reinterpret_cast<T*>(View(output_at(i), i, "output", DTypeOf<T>::value, sizeof(T)));
  }
  // Return views of elements of any type that has the size of T, for quantised values read as integers and for elements
  // that are moved unchanged. Checked like input() and output().
  template <typename T>
  const T* input_bits(int i) const {
    return reinterpret_cast<const T*>(View(input_at(i), i, "input", DType::kInvalid, sizeof(T)));
  }
  template <typename T>
  T* output_bits(int i) {
    return reinterpret_cast<T*>(View(output_at(i), i, "output", DType::kInvalid, sizeof(T)));
  }
  // Return views of elements of any fixed size, SizeOf(input_type(i)). Checked like input() and output().
  const char* input_bytes(int i) const { return View(input_at(i), i, "input", DType::kInvalid, 0); }
  char* output_bytes(int i) { return View(output_at(i), i, "output", DType::kInvalid, 0); }
  // Return the elements. For a tensor of another type, the result has as many empty strings, or null references, as the
  // shape has elements.
  const std::vector<std::string>& input_strings(int i) const { return Strings(input_at(i), i, "input"); }
  std::vector<std::string>& output_strings(int i) { return Strings(output_at(i), i, "output"); }
  const std::vector<ObjectRef>& input_objects(int i) const { return Objects(input_at(i), i, "input"); }
  std::vector<ObjectRef>& output_objects(int i) { return Objects(output_at(i), i, "output"); }

  template <typename State>
  const State& state() const {
    return *static_cast<const State*>(raw_state());
  }

 private:
  friend absl::Status RunKernel(ComputeFunction compute, ComputeContext* context);

  // Memory that replaces views that do not match, and the first reason.
  struct SpareViews;

  // Checks a view. `dtype` kInvalid accepts any type whose elements have `size` bytes; `size` 0 accepts any fixed size.
  char* View(const Value& value, int i, absl::string_view role, DType dtype, size_t size) const;
  std::vector<std::string>& Strings(const Value& value, int i, absl::string_view role) const;
  std::vector<ObjectRef>& Objects(const Value& value, int i, absl::string_view role) const;
  SpareViews& Spare(const Value& value, int i, absl::string_view role, absl::string_view wanted) const;

  mutable std::shared_ptr<SpareViews> spare_;  // Null while every view matches.
};

// Calls Compute. Returns Internal if Compute requested a view of a type or a size that the tensor does not have; the
// outputs are then undefined. Every computation of a node uses this function.
absl::Status RunKernel(ComputeFunction compute, ComputeContext* context);

// A type constraint: the node's type attribute `attr` must be one of `types`.
struct TypeConstraint {
  std::string attr;
  std::vector<DType> types;
};

// The signature of an op that has no schema.
struct KernelSignature {
  std::vector<ArgSpec> inputs, outputs;
  bool is_pure = true;  // The outputs depend only on inputs and attributes.
};

class Kernel {
 public:
  // `formula` describes the computation in one line, for docs/kernels.md. A selective build does not print it, and
  // therefore does not keep it.
  explicit Kernel(absl::string_view formula) {
    if constexpr (!selection::kIsSelective) formula_ = std::string(formula);
  }

  template <typename... Ts>
  Kernel&& Types(std::string attr) && {
    constraints_.push_back({std::move(attr), {DTypeOf<Ts>::value...}});
    return std::move(*this);
  }
  // Adds a type constraint for types without a C++ type of their own (string).
  Kernel&& TypeNumbers(std::string attr, std::vector<DType> types) && {
    constraints_.push_back({std::move(attr), std::move(types)});
    return std::move(*this);
  }
  // Lets output 0 reuse the memory of input i if both have the same size and the input has no other reader.
  Kernel&& InPlace(int input) && {
    in_place_.push_back(input);
    return std::move(*this);
  }
  // Declares that output 0 is input 0 with another shape (Identity, Reshape): nothing is computed, and the memory is
  // shared.
  Kernel&& Alias() && {
    is_alias_ = true;
    return std::move(*this);
  }
  // Declares that the outputs depend only on the shapes of the inputs (Shape, Size, Rank). They are computed before the
  // run, and Compute must not read input data.
  Kernel&& ReadsShapesOnly() && {
    reads_shapes_only_ = true;
    return std::move(*this);
  }
  // Declares that the session itself implements the op (control flow, function calls), without Prepare and Compute.
  Kernel&& DoneBySession() && {
    done_by_session_ = true;
    return std::move(*this);
  }
  // Declares that the op uses state of the session and cannot run outside one.
  Kernel&& UsesState() && {
    uses_state_ = true;
    return std::move(*this);
  }
  // Sets the signature of an op that is not in the table of schemas.
  Kernel&& Signature(KernelSignature signature) && {
    signature_ = std::move(signature);
    return std::move(*this);
  }
  // Sets the data of a kernel that is created at run time, which Prepare reads as kernel_data. The data must outlive
  // all uses of the kernel.
  Kernel&& Data(const void* data) && {
    data_ = data;
    return std::move(*this);
  }
  Kernel&& Prepare(PrepareFunction function) && {
    prepare_ = function;
    return std::move(*this);
  }
  Kernel&& Compute(ComputeFunction function) && {
    compute_ = function;
    return std::move(*this);
  }

  const std::string& formula() const { return formula_; }
  const std::vector<TypeConstraint>& constraints() const { return constraints_; }
  const std::vector<int>& in_place() const { return in_place_; }
  bool is_alias() const { return is_alias_; }
  bool reads_shapes_only() const { return reads_shapes_only_; }
  bool is_done_by_session() const { return done_by_session_; }
  bool uses_state() const { return uses_state_; }
  const std::optional<KernelSignature>& signature() const { return signature_; }
  const void* data() const { return data_; }
  PrepareFunction prepare() const { return prepare_; }
  ComputeFunction compute() const { return compute_; }

 private:
  std::string formula_;
  std::vector<TypeConstraint> constraints_;
  std::vector<int> in_place_;
  bool is_alias_ = false;
  bool reads_shapes_only_ = false;
  bool done_by_session_ = false;
  bool uses_state_ = false;
  std::optional<KernelSignature> signature_;
  const void* data_ = nullptr;
  PrepareFunction prepare_ = nullptr;
  ComputeFunction compute_ = nullptr;
};

// Defines the kernel of the op with that name. A second kernel for the same op is a link error; an op whose types need
// different code dispatches in Prepare or Compute.
#define DEFINE_KERNEL(op) ::permafrost::Kernel KernelDefinition_##op()

// Returns the kernel of an op, or null. The table is generated from the family files. Thread-safe.
const Kernel* FindKernel(Op op);
// Returns all ops that have a kernel, sorted by name.
std::vector<Op> KernelOps();

// Returns OK if a kernel exists for the node and its types; otherwise Unimplemented with the reason.
absl::Status CheckKernel(const Node& node);
// Checks a node against the given kernel; null means that there is none. Errors are those of CheckKernel above.
absl::Status CheckKernel(const Node& node, const Kernel* kernel);

// Return the types of a node's data inputs and outputs, from the op's schema, or from the kernel (may be null) if there
// is no schema. Errors are those of InputTypes and OutputTypes.
absl::StatusOr<std::vector<DType>> InputTypesFor(const Node& node, const Kernel* kernel);
absl::StatusOr<std::vector<DType>> OutputTypesFor(const Node& node, const Kernel* kernel);

}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_KERNEL_H_
