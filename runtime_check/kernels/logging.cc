// Ops that print, and the op that stops a run with a message: Print, PrintV2, Assert.
#include <cstring>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "graph/base/status.h"
#include "runtime_check/kernels/prepare.h"
#include "runtime_check/kernels/tensor_text.h"
#include "runtime_check/resources/run_log.h"

namespace permafrost {
namespace {

constexpr absl::string_view kStreams[] = {"stdout", "stderr", "log(info)", "log(warning)", "log(error)"};
constexpr absl::string_view kFilePrefix = "file://";

absl::Status RequireOneElement(PrepareContext* context, int input, absl::string_view what) {
  if (context->input_shape(input).CheckedNumElements().value_or(0) == 1) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(what, " has the shape ", context->input_shape(input).ToString(), ", expected a scalar"));
}

// Returns the text "[1 2][a]", with `separator` between the brackets, for all inputs except the first.
std::string TextOfInputs(const ComputeContext& context, int64_t summarize, absl::string_view separator) {
  std::string text;
  for (int i = 1; i < context.num_inputs(); ++i) {
    absl::StrAppend(&text, i == 1 ? "" : separator, "[", TextOfValues(context.input_at(i), summarize), "]");
  }
  return text;
}

// --- Print -----------------------------------------------------------------------------------------------------------

struct PrintState : KernelState {
  std::string message;
  int64_t first_n = -1;
  int64_t summarize = 3;
};

absl::Status PreparePrint(PrepareContext* context) {
  auto state = std::make_unique<PrintState>();
  PF_ASSIGN_OR_RETURN(state->message, StringAttr(context->node(), "message"));
  PF_ASSIGN_OR_RETURN(state->first_n, IntAttr(context->node(), "first_n"));
  PF_ASSIGN_OR_RETURN(state->summarize, IntAttr(context->node(), "summarize"));
  context->SetState(std::move(state));
  return SameShape(context);
}

absl::Status ComputePrint(ComputeContext* context) {
  const auto& state = context->state<PrintState>();
  RunLog* log = context->log();
  if (log != nullptr && log->Admits(context->node(), state.first_n)) {
    log->Write("stderr", absl::StrCat(state.message, TextOfInputs(*context, state.summarize, ""), "\n"));
  }
  if (context->input_type(0) == DType::kString) {
    context->output_strings(0) = context->input_strings(0);
    return absl::OkStatus();
  }
  if (HoldsObjects(context->input_type(0))) {
    context->output_objects(0) = context->input_objects(0);
    return absl::OkStatus();
  }
  const char* input = context->input_bytes(0);
  char* output = context->output_bytes(0);
  const size_t bytes = context->input_shape(0).num_elements() * SizeOf(context->input_type(0));
  if (bytes > 0 && output != input) std::memcpy(output, input, bytes);
  return absl::OkStatus();
}

// --- PrintV2 ---------------------------------------------------------------------------------------------------------

struct PrintV2State : KernelState {
  std::string stream;
  std::string end;
};

absl::Status PreparePrintV2(PrepareContext* context) {
  auto state = std::make_unique<PrintV2State>();
  PF_ASSIGN_OR_RETURN(state->stream, StringAttr(context->node(), "output_stream"));
  PF_ASSIGN_OR_RETURN(state->end, StringAttr(context->node(), "end"));
  if (absl::StartsWith(state->stream, kFilePrefix)) {
    return absl::UnimplementedError(
        absl::StrCat("output_stream is '", state->stream, "': graphs do not write files here"));
  }
  if (!absl::c_linear_search(kStreams, state->stream)) {
    return absl::InvalidArgumentError(
        absl::StrCat("output_stream is '", state->stream, "', expected one of ", absl::StrJoin(kStreams, ", ")));
  }
  context->SetState(std::move(state));
  return RequireOneElement(context, 0, "the text");
}

absl::Status ComputePrintV2(ComputeContext* context) {
  const auto& state = context->state<PrintV2State>();
  if (context->log() != nullptr) {
    context->log()->Write(state.stream, absl::StrCat(context->input_strings(0).front(), state.end));
  }
  return absl::OkStatus();
}

// --- Assert ----------------------------------------------------------------------------------------------------------

struct AssertState : KernelState {
  int64_t summarize = 3;
};

absl::Status PrepareAssert(PrepareContext* context) {
  auto state = std::make_unique<AssertState>();
  PF_ASSIGN_OR_RETURN(state->summarize, IntAttr(context->node(), "summarize"));
  context->SetState(std::move(state));
  return RequireOneElement(context, 0, "the condition");
}

absl::Status ComputeAssert(ComputeContext* context) {
  if (*context->input<bool>(0)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("assertion failed: ", TextOfInputs(*context, context->state<AssertState>().summarize, " ")));
}

}  // namespace

DEFINE_KERNEL(Print) {
  return Kernel(
             "input; prints message and the first `summarize` values of each tensor of data, in the first `first_n` "
             "runs")
      .InPlace(0)
      .Prepare(PreparePrint)
      .Compute(ComputePrint);
}

DEFINE_KERNEL(PrintV2) {
  return Kernel("nothing; prints input, then end").Prepare(PreparePrintV2).Compute(ComputePrintV2);
}

DEFINE_KERNEL(Assert) {
  return Kernel("nothing; an error that shows data if the condition is false")
      .Prepare(PrepareAssert)
      .Compute(ComputeAssert);
}

}  // namespace permafrost
