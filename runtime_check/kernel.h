// What a kernel is: the definition of how one op is computed, and what it sees while it prepares and computes.
//
// One kernel is one definition in a family file of runtime_check/kernels; the list of kernels is generated from the
// files. There are no registration calls and no static constructors:
//
//   // min(max(x, 0), 6)
//   DEFINE_KERNEL(Relu6) {
//     return Kernel("min(max(x, 0), 6)").Types<float, double,
//     int32_t>("T").InPlace(0).Prepare(SameShape).Compute(Relu6);
//   }
//
// Life of a kernel: Prepare runs once for each node and set of input shapes: it checks attributes and shapes, says what
// the outputs look like, packs constant weights and asks for scratch memory. Compute runs once for each inference and
// allocates nothing. A kernel never throws, prints only what its op is there to print, to the
// session's log, and checks in Prepare all that a file can get wrong.
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

// A tensor in the hands of the runtime: memory that the plan assigned. Does not own the elements.
struct Value {
  DType dtype = DType::kInvalid;
  Shape shape;                                  // Fully known once the node that makes the value has run.
  char* data = nullptr;                         // 64-byte aligned. Null for strings and objects.
  std::vector<std::string>* strings = nullptr;  // Only for DType::kString.
  std::vector<ObjectRef>* objects = nullptr;    // Only for the types of HoldsObjects.
  int64_t bytes = 0;                            // Size of the memory at `data`: no less than the elements occupy.
};

// Resource and variant: elements are references to objects, made during the run.
inline bool HoldsObjects(DType dtype) { return dtype == DType::kResource || dtype == DType::kVariant; }

// Whatever a kernel wants to keep from Prepare to Compute: parsed attributes, packed weights.
class KernelState {
 public:
  virtual ~KernelState() = default;
};

class PrepareContext;
class ComputeContext;
using PrepareFunction = absl::Status (*)(PrepareContext*);
using ComputeFunction = absl::Status (*)(ComputeContext*);

// What Prepare sees and decides. Errors need not name the node: the session does.
class PrepareContext {
 public:
  virtual ~PrepareContext() = default;

  virtual const Node& node() const = 0;
  virtual int num_inputs() const = 0;
  virtual DType input_type(int i) const = 0;
  virtual const Shape& input_shape(int i) const = 0;  // Fully known.
  // The value of an input that is known before the run (a constant, or computed from constants and shapes); else null.
  // The tensor is aligned and outlives the prepared kernel.
  virtual const Tensor* input_value(int i) const = 0;

  virtual int num_outputs() const = 0;
  virtual DType output_type(int i) const = 0;  // From the op's schema.
  virtual void SetOutputShape(int i, Shape shape) = 0;
  // Prepare cannot go on because it needs the value of input i, which is only known during the run. The session
  // prepares the node again when it comes to it. Prepare returns the result of this call.
  virtual absl::Status NeedsValueOf(int i) = 0;
  // The shape of output i is known only after Compute (NonZero, Unique): Compute calls AllocateOutput.
  virtual void OutputShapeDependsOnValues(int i) = 0;

  virtual void SetState(std::unique_ptr<KernelState> state) = 0;
  // Compute will not read input i: its constant value lives on in the state (packed weights). The session then keeps no
  // aligned copy of it; pointers from input_value(i) end with Prepare, and Compute finds null data there.
  virtual void ReleaseInput(int i) = 0;
  // Memory that Compute may use; its content is undefined. One block a node.
  virtual void RequestScratch(size_t bytes) = 0;
  virtual int num_threads() const = 0;

  // Kernel::Data of the kernel that is prepared.
  virtual const void* kernel_data() const = 0;
  // Compute is to be this function instead of the kernel's own.
  virtual void ComputeWith(ComputeFunction function) = 0;

  // Where forms of inputs are kept in which they were packed before; null for nowhere.
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
  // What a kernel that prints writes to; null outside a session.
  virtual RunLog* log() = 0;
  // REQUIRES: Prepare called OutputShapeDependsOnValues(i).
  virtual absl::Status AllocateOutput(int i, Shape shape) = 0;
  // For what objects keep beyond this call.
  virtual MemoryBudget& budget() = 0;
  // Null where there is no session. A kernel that needs it is marked with Kernel::UsesState.
  virtual ResourceStore* resources() = 0;
  // Nobody but this node will read the objects of input i: Compute may change them where it would copy. True only for
  // an input that holds objects.
  virtual bool OwnsInput(int i) const = 0;

  const Shape& input_shape(int i) const { return input_at(i).shape; }
  const Shape& output_shape(int i) { return output_at(i).shape; }
  DType input_type(int i) const { return input_at(i).dtype; }
  DType output_type(int i) { return output_at(i).dtype; }

  // Views of the elements, the only way for a kernel to reach them. Each call compares the type and the size of the
  // tensor with those of the view, in release builds too. A view that does not fit is zeroed spare memory for as many
  // elements as the shape has, and RunKernel then returns an error: a missing check elsewhere costs an error status,
  // never memory of other tensors. Null for an input that was released. Thread-safe.
  template <typename T>
  const T* input(int i) const {
    return reinterpret_cast<const T*>(View(input_at(i), i, "input", DTypeOf<T>::value, sizeof(T)));
  }
  template <typename T>
  T* output(int i) {
    return reinterpret_cast<T*>(View(output_at(i), i, "output", DTypeOf<T>::value, sizeof(T)));
  }
  // The same for elements of any type of the size of T: codes as integers, elements that are moved as they are.
  template <typename T>
  const T* input_bits(int i) const {
    return reinterpret_cast<const T*>(View(input_at(i), i, "input", DType::kInvalid, sizeof(T)));
  }
  template <typename T>
  T* output_bits(int i) {
    return reinterpret_cast<T*>(View(output_at(i), i, "output", DType::kInvalid, sizeof(T)));
  }
  // The same for elements of any fixed size, SizeOf(input_type(i)).
  const char* input_bytes(int i) const { return View(input_at(i), i, "input", DType::kInvalid, 0); }
  char* output_bytes(int i) { return View(output_at(i), i, "output", DType::kInvalid, 0); }
  // REQUIRES: nothing; a tensor of another type has as many empty strings, or null references, as its shape elements.
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

  // Memory in place of views that do not fit, and the first reason.
  struct SpareViews;

  // `dtype` kInvalid: of any type with elements of `size` bytes; `size` 0: of any fixed size.
  char* View(const Value& value, int i, absl::string_view role, DType dtype, size_t size) const;
  std::vector<std::string>& Strings(const Value& value, int i, absl::string_view role) const;
  std::vector<ObjectRef>& Objects(const Value& value, int i, absl::string_view role) const;
  SpareViews& Spare(const Value& value, int i, absl::string_view role, absl::string_view wanted) const;

  mutable std::shared_ptr<SpareViews> spare_;  // Null while every view fits.
};

// Calls Compute. Internal when it asked for a view of a type or a size that the tensor does not have: then the outputs
// are undefined. Everything that computes a node goes through this function.
absl::Status RunKernel(ComputeFunction compute, ComputeContext* context);

// A type constraint: the node's type attribute `attr` must be one of `types`.
struct TypeConstraint {
  std::string attr;
  std::vector<DType> types;
};

// What a schema would say of an op that has none.
struct KernelSignature {
  std::vector<ArgSpec> inputs, outputs;
  bool is_pure = true;  // The outputs depend on inputs and attributes alone.
};

class Kernel {
 public:
  // `formula` says in one line what is computed; docs/kernels.md prints it.
  // A selective build, which prints none, does not keep it.
  explicit Kernel(absl::string_view formula) {
    if constexpr (!selection::kIsSelective) formula_ = std::string(formula);
  }

  template <typename... Ts>
  Kernel&& Types(std::string attr) && {
    constraints_.push_back({std::move(attr), {DTypeOf<Ts>::value...}});
    return std::move(*this);
  }
  // For types without a C++ type of their own (string).
  Kernel&& TypeNumbers(std::string attr, std::vector<DType> types) && {
    constraints_.push_back({std::move(attr), std::move(types)});
    return std::move(*this);
  }
  // Output 0 may take over the memory of input i when both have the same size and nobody else reads the input.
  Kernel&& InPlace(int input) && {
    in_place_.push_back(input);
    return std::move(*this);
  }
  // Output 0 is input 0 under another shape: nothing is computed, and the memory is shared (Identity, Reshape).
  Kernel&& Alias() && {
    is_alias_ = true;
    return std::move(*this);
  }
  // The outputs depend on the shapes of the inputs alone (Shape, Size, Rank): they are computed before the run, and
  // Compute must not read input data.
  Kernel&& ReadsShapesOnly() && {
    reads_shapes_only_ = true;
    return std::move(*this);
  }
  // The session itself does what the op does (control flow, calls of functions): there is neither Prepare nor Compute.
  Kernel&& DoneBySession() && {
    done_by_session_ = true;
    return std::move(*this);
  }
  // Works on state of the session: cannot run outside one.
  Kernel&& UsesState() && {
    uses_state_ = true;
    return std::move(*this);
  }
  // For an op outside of the table of schemas.
  Kernel&& Signature(KernelSignature signature) && {
    signature_ = std::move(signature);
    return std::move(*this);
  }
  // For a kernel that is made while the program runs: what Prepare finds as kernel_data. Must outlive the kernel's use.
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

// Defines the kernel of the op of that name. A second kernel for the same op is a link error; an op whose types need
// different code dispatches in Prepare or Compute.
#define DEFINE_KERNEL(op) ::permafrost::Kernel KernelDefinition_##op()

// The kernel of an op, or null. The table is generated from the family files. Thread-safe.
const Kernel* FindKernel(Op op);
// All ops that have one, by name.
std::vector<Op> KernelOps();

// OK when a kernel exists for the node and its types; else Unimplemented with the reason.
absl::Status CheckKernel(const Node& node);
// The same for a given kernel, null for none.
absl::Status CheckKernel(const Node& node, const Kernel* kernel);

// The types of a node's data inputs and outputs, from its op's schema, or from the kernel (may be null) where there is
// none. Errors as of InputTypes and OutputTypes.
absl::StatusOr<std::vector<DType>> InputTypesFor(const Node& node, const Kernel* kernel);
absl::StatusOr<std::vector<DType>> OutputTypesFor(const Node& node, const Kernel* kernel);

}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_KERNEL_H_
