// Ops that forward a tensor, check it, or do nothing.
#include <atomic>
#include <cmath>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "runtime_check/kernels/elementwise.h"
#include "runtime_check/kernels/prepare.h"

namespace permafrost {
namespace {

absl::Status PrepareNothing(PrepareContext*) { return absl::OkStatus(); }
absl::Status ComputeNothing(ComputeContext*) { return absl::OkStatus(); }

// --- IdentityN -------------------------------------------------------------------------------------------------------

absl::Status PrepareEnsureShape(PrepareContext* context) {
  PF_ASSIGN_OR_RETURN(const Shape shape, ShapeAttr(context->node(), "shape"));
  if (shape.IsCompatibleWith(context->input_shape(0))) return SameShape(context);
  return absl::InvalidArgumentError(
      absl::StrCat("found the shape ", context->input_shape(0).ToString(), ", expected ", shape.ToString()));
}

absl::Status PrepareIdentityN(PrepareContext* context) {
  for (int i = 0; i < context->num_inputs(); ++i) {
    if (context->input_type(i) == DType::kString || SizeOf(context->input_type(i)) == 0) {
      return absl::UnimplementedError(absl::StrCat("input ", i, " has the type ", DTypeName(context->input_type(i)),
                                                   ", which has no elements to copy"));
    }
    context->SetOutputShape(i, context->input_shape(i));
  }
  return absl::OkStatus();
}

absl::Status ComputeIdentityN(ComputeContext* context) {
  for (int i = 0; i < context->num_inputs(); ++i) {
    const char* input = context->input_bytes(i);
    char* output = context->output_bytes(i);
    const size_t bytes = context->input_shape(i).num_elements() * SizeOf(context->input_type(i));
    if (bytes > 0 && output != input) std::memcpy(output, input, bytes);
  }
  return absl::OkStatus();
}

// --- CheckNumerics ---------------------------------------------------------------------------------------------------

struct CheckNumericsState : KernelState {
  std::string message;
};

absl::Status PrepareCheckNumerics(PrepareContext* context) {
  auto state = std::make_unique<CheckNumericsState>();
  PF_ASSIGN_OR_RETURN(state->message, StringAttr(context->node(), "message"));
  context->SetState(std::move(state));
  return SameShape(context);
}

double ToDouble(float x) { return x; }
double ToDouble(double x) { return x; }
double ToDouble(Half x) { return ToFloat(x); }
double ToDouble(BFloat16 x) { return ToFloat(x); }

absl::Status ComputeCheckNumerics(ComputeContext* context) {
  const Value& input = context->input_at(0);
  std::atomic<bool> has_nan{false};
  std::atomic<bool> has_infinity{false};
  DispatchOn<float, double, Half, BFloat16>(input.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    context->threads().ParallelFor(input.shape.num_elements(), 1 << 14, [&](int64_t begin, int64_t end) {
      const T* x = context->input<T>(0);
      bool nan = false;
      bool infinity = false;
      for (int64_t i = begin; i < end; ++i) {
        const double value = ToDouble(x[i]);
        nan |= std::isnan(value);
        infinity |= std::isinf(value);
      }
      if (nan) has_nan = true;
      if (infinity) has_infinity = true;
    });
  });
  if (has_nan || has_infinity) {
    return absl::InvalidArgumentError(absl::StrCat(context->state<CheckNumericsState>().message, ": the tensor has ",
                                                   has_nan ? "NaN" : "", has_nan && has_infinity ? " and " : "",
                                                   has_infinity ? "Inf" : "", " values"));
  }
  const size_t bytes = input.shape.num_elements() * SizeOf(input.dtype);
  if (bytes > 0 && context->output_bytes(0) != context->input_bytes(0)) {
    std::memcpy(context->output_bytes(0), context->input_bytes(0), bytes);
  }
  return absl::OkStatus();
}

}  // namespace

// --- Control flow: see runtime_check/execution/flow_executor.cc

DEFINE_KERNEL(Switch) { return Kernel("x, at the output that pred selects; the other output is dead").DoneBySession(); }
DEFINE_KERNEL(RefSwitch) { return Kernel("same as Switch").DoneBySession(); }
DEFINE_KERNEL(_SwitchN) {
  return Kernel("x, at the output with the given index; the other outputs are dead").DoneBySession();
}
DEFINE_KERNEL(Merge) { return Kernel("the first input that is not dead, and its index").DoneBySession(); }
DEFINE_KERNEL(RefMerge) { return Kernel("same as Merge").DoneBySession(); }
DEFINE_KERNEL(Enter) { return Kernel("x, inside the loop").DoneBySession(); }
DEFINE_KERNEL(RefEnter) { return Kernel("same as Enter").DoneBySession(); }
DEFINE_KERNEL(Exit) { return Kernel("x, outside the loop").DoneBySession(); }
DEFINE_KERNEL(RefExit) { return Kernel("same as Exit").DoneBySession(); }
DEFINE_KERNEL(NextIteration) { return Kernel("x, in the next iteration of the loop").DoneBySession(); }
DEFINE_KERNEL(RefNextIteration) { return Kernel("same as NextIteration").DoneBySession(); }
DEFINE_KERNEL(LoopCond) { return Kernel("x").Alias().Prepare(SameShape); }
DEFINE_KERNEL(ControlTrigger) { return Kernel("nothing; runs even if its control inputs are dead").DoneBySession(); }

// --- Calls of functions: see runtime_check/program/calls.cc

DEFINE_KERNEL(PartitionedCall) { return Kernel("the results of the called function").DoneBySession(); }
DEFINE_KERNEL(StatefulPartitionedCall) { return Kernel("the results of the called function").DoneBySession(); }
DEFINE_KERNEL(If) { return Kernel("the results of then_branch if cond holds, else of else_branch").DoneBySession(); }
DEFINE_KERNEL(StatelessIf) {
  return Kernel("the results of then_branch if cond holds, else of else_branch").DoneBySession();
}
DEFINE_KERNEL(Case) {
  return Kernel("the results of the branch with the given index; of the last branch if the index is out of range")
      .DoneBySession();
}
DEFINE_KERNEL(StatelessCase) { return Kernel("same as Case").DoneBySession(); }
DEFINE_KERNEL(While) { return Kernel("the inputs after applying body repeatedly while cond holds").DoneBySession(); }
DEFINE_KERNEL(StatelessWhile) { return Kernel("same as While").DoneBySession(); }

DEFINE_KERNEL(ImmutableConst) {
  return Kernel("the tensor stored in a region of a memory-mapped package").DoneBySession();
}

DEFINE_KERNEL(NoOp) { return Kernel("nothing").Prepare(PrepareNothing).Compute(ComputeNothing); }
DEFINE_KERNEL(Identity) { return Kernel("x").Alias().Prepare(SameShape); }
DEFINE_KERNEL(Snapshot) { return Kernel("x").Alias().Prepare(SameShape); }
DEFINE_KERNEL(GuaranteeConst) { return Kernel("x").Alias().Prepare(SameShape); }
DEFINE_KERNEL(StopGradient) { return Kernel("x").Alias().Prepare(SameShape); }
DEFINE_KERNEL(PreventGradient) { return Kernel("x").Alias().Prepare(SameShape); }
DEFINE_KERNEL(PlaceholderWithDefault) {
  return Kernel("the fed value, or the default if none is fed").Alias().Prepare(SameShape);
}

DEFINE_KERNEL(EnsureShape) {
  return Kernel("x; an error if its shape does not match").Alias().Prepare(PrepareEnsureShape);
}

DEFINE_KERNEL(IdentityN) { return Kernel("the inputs").Prepare(PrepareIdentityN).Compute(ComputeIdentityN); }

DEFINE_KERNEL(CheckNumerics) {
  return Kernel("x; an error if an element is NaN or infinite")
      .TypeNumbers("T", FloatingTypes())
      .InPlace(0)
      .Prepare(PrepareCheckNumerics)
      .Compute(ComputeCheckNumerics);
}

}  // namespace permafrost
