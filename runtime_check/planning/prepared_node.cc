// Calls kernels and checks their contract.
#include "runtime_check/planning/prepared_node.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "graph/base/selection.h"
#include "graph/base/status.h"
#include "runtime_check/threads/cancellation.h"

namespace permafrost {
namespace {

constexpr bool kHoldsObjects = (selection::kTypesHere & (selection::SetOf(static_cast<int>(DType::kResource)) |
                                                         selection::SetOf(static_cast<int>(DType::kVariant)))) != 0;

// Returns the status, with the node's description if it is an error. The text is composed for errors only.
absl::Status OfNode(absl::Status status, const Node& node) {
  return status.ok() ? status : Annotate(std::move(status), node.Describe());
}

class Preparation final : public PrepareContext {
 public:
  Preparation(const Node& node, const Kernel& kernel, absl::Span<const PrepareInput> inputs,
              absl::Span<const DType> output_types, int num_threads,
              absl::FunctionRef<absl::StatusOr<const Tensor*>(int)> value, PreparedNode* prepared,
              const PackedInputs* packed)
      : node_(node), kernel_(kernel), inputs_(inputs), num_threads_(num_threads), value_(value), prepared_(prepared) {
    packed_inputs_ = packed;
    prepared->compute = kernel.compute();
    prepared->outputs.resize(output_types.size());
    for (size_t i = 0; i < output_types.size(); ++i) {
      prepared->outputs[i].dtype = output_types[i];
      prepared->outputs[i].shape = Shape::UnknownRank();
    }
    prepared->released.assign(inputs.size(), false);
  }

  const Node& node() const override { return node_; }
  int num_inputs() const override { return static_cast<int>(inputs_.size()); }
  DType input_type(int i) const override { return inputs_[i].dtype; }
  const Shape& input_shape(int i) const override { return inputs_[i].shape; }
  const Tensor* input_value(int i) const override {
    absl::StatusOr<const Tensor*> value = value_(i);
    if (value.ok()) return *value;
    if (value_error_.ok()) value_error_ = value.status();
    return nullptr;
  }
  int num_outputs() const override { return static_cast<int>(prepared_->outputs.size()); }
  DType output_type(int i) const override { return prepared_->outputs[i].dtype; }
  void SetOutputShape(int i, Shape shape) override { prepared_->outputs[i].shape = std::move(shape); }
  absl::Status NeedsValueOf(int i) override {
    prepared_->needs_value_of = i;
    return absl::FailedPreconditionError(absl::StrCat("needs the value of input ", i));
  }
  void OutputShapeDependsOnValues(int i) override { prepared_->outputs[i].depends_on_values = true; }
  void SetState(std::unique_ptr<KernelState> state) override { prepared_->state = std::move(state); }
  void ReleaseInput(int i) override { prepared_->released[i] = true; }
  void RequestScratch(size_t bytes) override {
    prepared_->scratch_bytes = static_cast<int64_t>(std::min<size_t>(bytes, INT64_MAX));
  }
  int num_threads() const override { return num_threads_; }
  const void* kernel_data() const override { return kernel_.data(); }
  void ComputeWith(ComputeFunction function) override { prepared_->compute = function; }

  // Returns the first failure to provide a value (no memory for an aligned copy).
  const absl::Status& value_error() const { return value_error_; }

 private:
  const Node& node_;
  const Kernel& kernel_;
  absl::Span<const PrepareInput> inputs_;
  int num_threads_;
  absl::FunctionRef<absl::StatusOr<const Tensor*>(int)> value_;
  PreparedNode* prepared_;
  mutable absl::Status value_error_;
};

}  // namespace

absl::Status LoopLimits::CheckIteration(int64_t iteration, absl::string_view loop) const {
  if (is_cancelled && is_cancelled()) {
    return absl::CancelledError(
        absl::StrCat("the run was cancelled in iteration ", iteration, " of the loop '", loop, "'"));
  }
  if (most_iterations > 0 && iteration >= most_iterations) {
    return absl::ResourceExhaustedError(
        absl::StrCat("the loop '", loop, "' goes on after ", iteration, " iterations, the most that are allowed"));
  }
  return absl::OkStatus();
}

absl::StatusOr<int64_t> ValueBytes(DType dtype, const Shape& shape) {
  const size_t size = dtype == DType::kString ? sizeof(std::string)
                      : HoldsObjects(dtype)   ? sizeof(ObjectRef)
                                              : SizeOf(dtype);
  if (size == 0) return absl::UnimplementedError(absl::StrCat("values of type ", DTypeName(dtype)));
  if (!shape.IsFullyKnown()) {
    return absl::InvalidArgumentError(absl::StrCat("the shape ", shape.ToString(), " is not fully known"));
  }
  PF_ASSIGN_OR_RETURN(const int64_t count, shape.CheckedNumElements());
  int64_t bytes;
  if (__builtin_mul_overflow(count, static_cast<int64_t>(size), &bytes)) {
    return absl::InvalidArgumentError(
        absl::StrCat("a ", DTypeName(dtype), " tensor of shape ", shape.ToString(), " exceeds 2^63 bytes"));
  }
  return bytes;
}

Value ViewOf(const Tensor& tensor) {
  Value value;
  value.dtype = tensor.dtype();
  value.shape = tensor.shape();
  // Kernels write only to outputs, although the type of an input's memory is not const.
  if (tensor.dtype() == DType::kString) {
    value.strings = const_cast<std::vector<std::string>*>(&tensor.strings());
  } else {
    value.data = const_cast<char*>(tensor.bytes().data());
    value.bytes = static_cast<int64_t>(tensor.bytes().size());
  }
  return value;
}

namespace {

absl::Status ObjectsAreNoTensor(DType dtype) {
  return absl::UnimplementedError(
      absl::StrCat("a value of type ", DTypeName(dtype), " lives in the run alone and cannot leave it as a tensor"));
}

}  // namespace

absl::StatusOr<Tensor> TensorOver(const Value& value, Owner owner) {
  if (HoldsObjects(value.dtype)) return ObjectsAreNoTensor(value.dtype);
  if (value.dtype == DType::kString) return Tensor::FromStrings(value.shape, *value.strings);
  PF_ASSIGN_OR_RETURN(const int64_t bytes, ValueBytes(value.dtype, value.shape));
  return Tensor::FromBytes(value.dtype, value.shape, absl::string_view(value.data, static_cast<size_t>(bytes)),
                           std::move(owner));
}

absl::StatusOr<Tensor> CopyOf(const Value& value) {
  if (HoldsObjects(value.dtype)) return ObjectsAreNoTensor(value.dtype);
  if (value.dtype == DType::kString) return Tensor::FromStrings(value.shape, *value.strings);
  PF_ASSIGN_OR_RETURN(const int64_t bytes, ValueBytes(value.dtype, value.shape));
  char* data;
  PF_ASSIGN_OR_RETURN(Tensor copy, Tensor::Allocate(value.dtype, value.shape, &data));
  if (bytes > 0) std::memcpy(data, value.data, static_cast<size_t>(bytes));
  return copy;
}

absl::Status PrepareNode(const Node& node, const Kernel& kernel, absl::Span<const PrepareInput> inputs,
                         absl::Span<const DType> output_types, int num_threads,
                         absl::FunctionRef<absl::StatusOr<const Tensor*>(int)> value, PreparedNode* prepared,
                         const PackedInputs* packed) {
  *prepared = PreparedNode();
  Preparation context(node, kernel, inputs, output_types, num_threads, value, prepared, packed);
  const absl::Status status = kernel.prepare()(&context);
  PF_RETURN_IF_ERROR(OfNode(context.value_error(), node));
  if (prepared->needs_value_of >= 0) return absl::OkStatus();
  PF_RETURN_IF_ERROR(OfNode(status, node));
  for (size_t i = 0; i < prepared->outputs.size(); ++i) {
    const OutputSpec& output = prepared->outputs[i];
    if (output.depends_on_values) continue;
    if (!output.shape.IsFullyKnown()) {
      return absl::InternalError(absl::StrCat(node.Describe(), ": the kernel gave output ", i, " the shape ",
                                              output.shape.ToString(), ", expected a fully known one"));
    }
    PF_RETURN_IF_ERROR(OfNode(ValueBytes(output.dtype, output.shape).status(), node));
  }
  if (kernel.is_alias() && (inputs.empty() || prepared->outputs.empty() || prepared->outputs[0].depends_on_values ||
                            ValueBytes(inputs[0].dtype, inputs[0].shape).value_or(-1) !=
                                ValueBytes(prepared->outputs[0].dtype, prepared->outputs[0].shape).value_or(-2))) {
    return absl::InternalError(absl::StrCat(node.Describe(), ": the kernel shares memory between unequal tensors"));
  }
  return absl::OkStatus();
}

absl::Status NodeContext::AllocateOutput(int i, Shape shape) {
  if (allocate_ == nullptr) {
    return absl::InternalError(absl::StrCat("the kernel allocates output ", i, ", whose shape Prepare has set"));
  }
  return (*allocate_)(i, std::move(shape), &outputs_[i]);
}

absl::StatusOr<HeapOutput> AllocateHeapOutput(DType dtype, Shape shape, MemoryBudget* budget, Value* value) {
  HeapOutput output;
  PF_ASSIGN_OR_RETURN(const int64_t bytes, ValueBytes(dtype, shape));
  absl::StatusOr<Reservation> reservation = Reservation::Take(budget, bytes, "a tensor");
  if (!reservation.ok()) {
    // The request is repeated for its message, which takes longer to compose than the rest of this function.
    return Reservation::Take(budget, bytes, absl::StrCat("a ", DTypeName(dtype), " tensor of shape ", shape.ToString()))
        .status();
  }
  output.reservation = *std::move(reservation);
  value->dtype = dtype;
  value->data = nullptr;
  value->strings = nullptr;
  value->objects = nullptr;
  value->bytes = 0;
  if (dtype == DType::kString) {
    output.strings = std::make_unique<std::vector<std::string>>(static_cast<size_t>(shape.num_elements()));
    value->strings = output.strings.get();
  } else if (kHoldsObjects && HoldsObjects(dtype)) {
    output.objects = std::make_unique<std::vector<ObjectRef>>(static_cast<size_t>(shape.num_elements()));
    value->objects = output.objects.get();
  } else {
    PF_ASSIGN_OR_RETURN(output.tensor, Tensor::Allocate(dtype, shape, &value->data));
    value->bytes = bytes;
  }
  value->shape = std::move(shape);
  return output;
}

absl::StatusOr<Passed> CopyOnHeap(const Value& value, MemoryBudget* budget) {
  Passed copy;
  copy.held = std::make_shared<HeapOutput>();
  PF_ASSIGN_OR_RETURN(*copy.held, AllocateHeapOutput(value.dtype, value.shape, budget, &copy.value));
  if (value.strings != nullptr) {
    *copy.value.strings = *value.strings;
  } else if (value.objects != nullptr) {
    *copy.value.objects = *value.objects;
  } else {
    PF_ASSIGN_OR_RETURN(const int64_t bytes, ValueBytes(value.dtype, value.shape));
    if (bytes > 0) std::memcpy(copy.value.data, value.data, static_cast<size_t>(bytes));
  }
  return copy;
}

absl::StatusOr<std::vector<HeapOutput>> ComputeNode(const Node& node, const PreparedNode& prepared,
                                                    absl::Span<const Value* const> inputs, Value* outputs,
                                                    const Environment& environment, const std::vector<bool>* owned) {
  MemoryBudget* budget = environment.budget;
  const auto num_outputs = static_cast<int>(prepared.outputs.size());
  std::vector<HeapOutput> made(prepared.outputs.size());
  for (int i = 0; i < num_outputs; ++i) {
    const OutputSpec& spec = prepared.outputs[i];
    outputs[i].dtype = spec.dtype;
    outputs[i].shape = Shape::UnknownRank();
    outputs[i].data = nullptr;
    outputs[i].strings = nullptr;
    outputs[i].objects = nullptr;
    outputs[i].bytes = 0;
    if (spec.depends_on_values) continue;
    absl::StatusOr<HeapOutput> output = AllocateHeapOutput(spec.dtype, spec.shape, budget, &outputs[i]);
    PF_RETURN_IF_ERROR(OfNode(output.status(), node));
    made[i] = *std::move(output);
  }
  Value scratch_value;
  HeapOutput scratch;
  if (prepared.scratch_bytes > 0) {
    absl::StatusOr<HeapOutput> block =
        AllocateHeapOutput(DType::kInt8, Shape({prepared.scratch_bytes}), budget, &scratch_value);
    PF_RETURN_IF_ERROR(OfNode(block.status(), node));
    scratch = *std::move(block);
  }
  NodeContext context(&node, inputs, outputs, num_outputs, scratch_value.data, prepared.state.get(), &environment);
  context.set_owned(owned);
  const auto allocate = [&](int i, Shape shape, Value* output) -> absl::Status {
    if (!prepared.outputs[i].depends_on_values) {
      return absl::InternalError(absl::StrCat("the kernel allocates output ", i, ", whose shape Prepare has set"));
    }
    PF_ASSIGN_OR_RETURN(made[i], AllocateHeapOutput(prepared.outputs[i].dtype, std::move(shape), budget, output));
    return absl::OkStatus();
  };
  const NodeContext::AllocateFunction allocate_function = allocate;
  context.set_allocate(&allocate_function);
  PF_RETURN_IF_ERROR(OfNode(RunKernel(prepared.compute, &context), node));
  PF_RETURN_IF_ERROR(CheckNotCancelled());
  for (int i = 0; i < num_outputs; ++i) {
    if (prepared.outputs[i].depends_on_values && !outputs[i].shape.IsFullyKnown()) {
      return absl::InternalError(absl::StrCat(node.Describe(), ": the kernel did not allocate output ", i));
    }
  }
  return made;
}

}  // namespace permafrost
