// Offers a node to a library, and runs the partition that the library compiles.
#include "runtime_check/custom_ops/custom_kernel.h"

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "runtime_check/delegate.h"
#include "runtime_check/delegates/external/compiled_code.h"
#include "runtime_check/delegates/external/partition_view.h"
#include "runtime_check/delegates/external/shared_library.h"

namespace permafrost {
namespace {

struct CustomState final : public KernelState {
  std::unique_ptr<CompiledCode> code;
  mutable std::vector<const void*> inputs;
  mutable std::vector<void*> outputs;
};

// Results of infer_shapes, by output.
using Shapes = std::vector<std::optional<Shape>>;

int32_t SetShape(const permafrost_shapes* shapes, int32_t output, const int64_t* dims, int32_t rank) {
  Shapes& all = *static_cast<Shapes*>(shapes->handle);
  if (output < 0 || static_cast<size_t>(output) >= all.size() || rank < 0 || (rank > 0 && dims == nullptr)) {
    return PERMAFROST_FAILED;
  }
  Shape shape;
  for (int32_t i = 0; i < rank; ++i) {
    if (dims[i] < 0) return PERMAFROST_FAILED;
    shape.AddDim(dims[i]);
  }
  all[output] = std::move(shape);
  return PERMAFROST_OK;
}

void ParallelFor(void* pool, int64_t count, int64_t grain, void (*body)(void* data, int64_t begin, int64_t end),
                 void* data) {
  if (count <= 0) return;
  static_cast<ThreadPool*>(pool)->ParallelFor(count, grain < 1 ? 1 : grain,
                                              [&](int64_t begin, int64_t end) { body(data, begin, end); });
}

// Returns the node as a partition of its own. All its inputs are inputs of the partition, including constants.
Partition PartitionOf(const PrepareContext& context) {
  Partition partition;
  DelegateNode& node = partition.nodes.emplace_back();
  node.node = &context.node();
  for (int i = 0; i < context.num_inputs(); ++i) {
    DelegateTensor& tensor = partition.tensors.emplace_back();
    tensor.dtype = context.input_type(i);
    tensor.shape = context.input_shape(i);
    if (const Tensor* value = context.input_value(i); value != nullptr) tensor.constant = *value;
    node.inputs.push_back(i);
  }
  for (int i = 0; i < context.num_outputs(); ++i) {
    node.outputs.push_back(static_cast<int>(partition.tensors.size()));
    DelegateTensor& tensor = partition.tensors.emplace_back();
    tensor.dtype = context.output_type(i);
    tensor.shape = Shape::UnknownRank();
  }
  partition.inputs = node.inputs;
  partition.outputs = node.outputs;
  return partition;
}

// Offers one node to the library. Unimplemented: the library rejects it.
class Attempt {
 public:
  Attempt(const CustomKernel& custom, PrepareContext* context)
      : custom_(custom), context_(*context), partition_(PartitionOf(*context)) {}

  absl::Status Run() {
    for (const DelegateTensor& tensor : partition_.tensors) {
      if (SizeOf(tensor.dtype) > 0) continue;
      return absl::UnimplementedError(absl::StrCat("a library sees no tensors of type ", DTypeName(tensor.dtype)));
    }
    PF_RETURN_IF_ERROR(InferShapes());
    return needs_value_ ? context_.NeedsValueOf(needs_value_of_) : Prepare();
  }

  bool needs_value() const { return needs_value_; }

 private:
  absl::Status InferShapes() {
    Shapes outputs(static_cast<size_t>(context_.num_outputs()));
    permafrost_shapes shapes = {sizeof(shapes), &SetShape, -1, &outputs};
    const PartitionView view(partition_);
    ErrorBuffer error;
    const int32_t answer =
        custom_.kernel->infer_shapes(custom_.kernel->self, view.get(), &shapes, error.data(), error.size());
    if (answer == PERMAFROST_NEEDS_VALUE) return NeedValue(shapes.needs_value_of);
    PF_RETURN_IF_ERROR(error.ToStatus(answer));
    for (size_t i = 0; i < outputs.size(); ++i) {
      if (!outputs[i].has_value()) {
        return absl::InternalError(absl::StrCat("infer_shapes gives output ", i, " no shape"));
      }
      DelegateTensor& tensor = partition_.tensors[partition_.outputs[i]];
      int64_t bytes = 0;
      PF_ASSIGN_OR_RETURN(const int64_t count, outputs[i]->CheckedNumElements());
      if (__builtin_mul_overflow(count, static_cast<int64_t>(SizeOf(tensor.dtype)), &bytes)) {
        return absl::InvalidArgumentError(
            absl::StrCat("output ", i, " of shape ", outputs[i]->ToString(), " exceeds 2^63 bytes"));
      }
      tensor.shape = *outputs[i];
    }
    return absl::OkStatus();
  }

  absl::Status NeedValue(int32_t input) {
    if (input < 0 || input >= context_.num_inputs() || partition_.tensors[input].constant.has_value()) {
      return absl::InternalError(
          absl::StrCat("infer_shapes asks for the value of input ", input,
                       input < 0 || input >= context_.num_inputs() ? ", which does not exist" : ", which is known"));
    }
    needs_value_ = true;
    needs_value_of_ = input;
    return absl::OkStatus();
  }

  absl::Status Prepare() {
    PartitionView view(partition_);
    Fillable<permafrost_compiled> compiled;
    ErrorBuffer error;
    PF_RETURN_IF_ERROR(error.ToStatus(custom_.kernel->prepare(custom_.kernel->self, view.get(), context_.num_threads(),
                                                              &compiled.value, error.data(), error.size())));
    auto state = std::make_unique<CustomState>();
    PF_ASSIGN_OR_RETURN(state->code, CompiledCode::Take(compiled.value, view.TakeConstants(), custom_.library));
    state->inputs.resize(static_cast<size_t>(context_.num_inputs()));
    state->outputs.resize(static_cast<size_t>(context_.num_outputs()));
    for (int i = 0; i < context_.num_outputs(); ++i) {
      context_.SetOutputShape(i, partition_.tensors[partition_.outputs[i]].shape);
    }
    context_.RequestScratch(static_cast<size_t>(state->code->scratch_bytes()));
    context_.SetState(std::move(state));
    return absl::OkStatus();
  }

  const CustomKernel& custom_;
  PrepareContext& context_;
  Partition partition_;
  bool needs_value_ = false;
  int needs_value_of_ = 0;
};

absl::Status PrepareCustom(PrepareContext* context) {
  const auto& custom = *static_cast<const CustomKernel*>(context->kernel_data());
  Attempt attempt(custom, context);
  const absl::Status status = attempt.Run();
  if (status.ok() || attempt.needs_value()) return status;
  if (!absl::IsUnimplemented(status) || custom.builtin == nullptr) {
    return Annotate(status, absl::StrCat("the kernel of '", custom.path, "'"));
  }
  PF_RETURN_IF_ERROR(CheckKernel(context->node(), custom.builtin));
  context->ComputeWith(custom.builtin->compute());
  return custom.builtin->prepare()(context);
}

absl::Status ComputeCustom(ComputeContext* context) {
  const auto& state = context->state<CustomState>();
  for (int i = 0; i < context->num_inputs(); ++i) state.inputs[i] = context->input_at(i).data;
  for (int i = 0; i < context->num_outputs(); ++i) state.outputs[i] = context->output_at(i).data;
  permafrost_run run = {};
  run.inputs = state.inputs.data();
  run.outputs = state.outputs.data();
  run.scratch = context->scratch();
  run.parallel_for = &ParallelFor;
  run.pool = &context->threads();
  return state.code->Run(run);
}

}  // namespace

Kernel MakeCustomKernel(const CustomKernel* custom) {
  return Kernel(absl::StrCat("as '", custom->path, "' computes it"))
      .Data(custom)
      .Prepare(&PrepareCustom)
      .Compute(&ComputeCustom);
}

}  // namespace permafrost
