// Broadcasting ops on two tensors of strings, which the engine in elementwise.h does not support.
#ifndef PERMAFROST_RUNTIME_CHECK_KERNELS_STRING_PAIRS_H_
#define PERMAFROST_RUNTIME_CHECK_KERNELS_STRING_PAIRS_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "graph/base/status.h"
#include "runtime_check/kernel.h"
#include "runtime_check/kernels/broadcast.h"
#include "runtime_check/kernels/prepare.h"

namespace permafrost {

struct StringPairsState : KernelState {
  Broadcast broadcast;
};

inline absl::Status PrepareStringPairs(PrepareContext* context) {
  const Shape inputs[] = {context->input_shape(0), context->input_shape(1)};
  PF_ASSIGN_OR_RETURN(const Shape output, BroadcastShapes(inputs[0], inputs[1]));
  PF_RETURN_IF_ERROR(SetCheckedShape(context, 0, output));
  auto state = std::make_unique<StringPairsState>();
  state->broadcast = Broadcast(inputs, output);
  context->SetState(std::move(state));
  return absl::OkStatus();
}

// Calls f(x, y, number of the output element) for each output element.
template <typename F>
void ForEachStringPair(ComputeContext* context, F f) {
  const Broadcast& broadcast = context->state<StringPairsState>().broadcast;
  const std::string* x = context->input_strings(0).data();
  const std::string* y = context->input_strings(1).data();
  const int64_t x_step = broadcast.IsScalarInRow(0) ? 0 : 1, y_step = broadcast.IsScalarInRow(1) ? 0 : 1;
  broadcast.ForEachRow(0, broadcast.num_elements(), [&](const int64_t* offsets, int64_t to, int64_t count) {
    for (int64_t i = 0; i < count; ++i) f(x[offsets[0] + i * x_step], y[offsets[1] + i * y_step], to + i);
  });
}

}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_KERNELS_STRING_PAIRS_H_
