// The recurrent cells of TensorFlow 1 that are one op: LSTMBlockCell, BlockLSTM, BlockLSTMV2 and GRUBlockCell.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "graph/base/multiversion.h"
#include "graph/base/status.h"
#include "runtime_check/kernel.h"
#include "runtime_check/kernels/prepare.h"
#include "runtime_check/kernels/scratch.h"
#include "runtime_check/kernels/stand_in.h"
#include "runtime_check/threads/cancellation.h"

namespace permafrost {
namespace {

float Sigmoid(float x) { return 1.f / (1.f + std::exp(-x)); }

absl::Status RequireShape(PrepareContext* context, int i, const Shape& expected) {
  if (context->input_shape(i) == expected) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("input ", i, " has the shape ", context->input_shape(i).ToString(),
                                                 ", expected ", expected.ToString()));
}

// The matrices that one step multiplies. Their rows follow each other: x, then the state.
struct Step {
  int64_t batch, inputs, cells;
  const float *x, *state;
};

// output[b,c] = bias[c] + sum over the inputs of weights[.,c], on all threads.
void MultiplyStep(ThreadPool& threads, const Step& step, const float* weights, const float* bias, int64_t columns,
                  float* output) {
  const int64_t cost = std::max<int64_t>(1, step.batch * (step.inputs + step.cells));
  threads.ParallelFor(columns, 1 + (64 << 10) / cost, [&](int64_t begin, int64_t end) {
    for (int64_t b = 0; b < step.batch && !RunIsCancelled(); ++b) {
      float* row = output + b * columns;
      std::copy(bias + begin, bias + end, row + begin);
      Multiversion([&]() PF_INLINE {
        for (int64_t k = 0; k < step.inputs + step.cells; ++k) {
          const float factor =
              k < step.inputs ? step.x[b * step.inputs + k] : step.state[b * step.cells + k - step.inputs];
          const float* from = weights + k * columns;
          for (int64_t c = begin; c < end; ++c) row[c] += factor * from[c];
        }
      });
    }
  });
}

// --- LSTM ------------------------------------------------------------------------------------------------------------

struct LstmState : KernelState {
  int64_t steps = 1, batch = 0, inputs = 0, cells = 0;
  int first = 0;                    // The number of input x.
  float forget_bias = 0, clip = 0;  // The state is not clipped if `clip` is not positive.
  bool peephole = false;
  int64_t cell_gate = 1,
          forget_gate = 2;  // Places of two gates; the input gate is the first, the output gate the last.
  int64_t gates_part = 0;
};

absl::Status PrepareLstm(PrepareContext* context) {
  auto state = std::make_unique<LstmState>();
  const Node& node = context->node();
  const bool is_sequence = node.op() != ops::kLSTMBlockCell;
  state->first = is_sequence ? 1 : 0;
  if (node.op() == ops::kBlockLSTMV2) {
    std::swap(state->cell_gate, state->forget_gate);
  } else {
    PF_ASSIGN_OR_RETURN(state->forget_bias, FloatAttr(node, "forget_bias"));
  }
  PF_ASSIGN_OR_RETURN(state->clip, FloatAttr(node, "cell_clip"));
  PF_ASSIGN_OR_RETURN(state->peephole, BoolAttr(node, "use_peephole"));
  const int x = state->first;
  PF_RETURN_IF_ERROR(RequireRank(context, x, is_sequence ? 3 : 2));
  PF_RETURN_IF_ERROR(RequireRank(context, x + 1, 2));
  if (is_sequence) PF_RETURN_IF_ERROR(RequireRank(context, 0, 0));
  const Shape& shape = context->input_shape(x);
  if (is_sequence) state->steps = shape.dim(0);
  state->batch = shape.dim(is_sequence ? 1 : 0);
  state->inputs = shape.dim(is_sequence ? 2 : 1);
  state->cells = context->input_shape(x + 1).dim(1);
  int64_t rows, gates;
  if (__builtin_add_overflow(state->inputs, state->cells, &rows) ||
      __builtin_mul_overflow(state->cells, int64_t{4}, &gates)) {
    return absl::InvalidArgumentError("the sizes of the cell exceed int64");
  }
  PF_RETURN_IF_ERROR(RequireShape(context, x + 1, Shape({state->batch, state->cells})));
  PF_RETURN_IF_ERROR(RequireShape(context, x + 2, Shape({state->batch, state->cells})));
  PF_RETURN_IF_ERROR(RequireShape(context, x + 3, Shape({rows, gates})));
  for (int i = 4; i < 7; ++i) PF_RETURN_IF_ERROR(RequireShape(context, x + i, Shape({state->cells})));
  PF_RETURN_IF_ERROR(RequireShape(context, x + 7, Shape({gates})));
  const Shape output =
      is_sequence ? Shape({state->steps, state->batch, state->cells}) : Shape({state->batch, state->cells});
  for (int i = 0; i < context->num_outputs(); ++i) PF_RETURN_IF_ERROR(SetCheckedShape(context, i, output));
  int64_t elements;
  if (__builtin_mul_overflow(gates, state->batch, &elements)) {
    return absl::InvalidArgumentError("the gates have more elements than int64 counts");
  }
  ScratchParts parts;
  PF_ASSIGN_OR_RETURN(state->gates_part, parts.Add(elements));
  parts.Request(context);
  context->SetState(std::move(state));
  return absl::OkStatus();
}

absl::Status ComputeLstm(ComputeContext* context) {
  const auto& state = context->state<LstmState>();
  if (context->output_shape(0).num_elements() == 0) return absl::OkStatus();
  const int x = state.first;
  const int64_t cells = state.cells, size = state.batch * cells;
  int64_t steps = state.steps;
  if (x > 0) {
    steps = *context->input<int64_t>(0);
    if (steps < 0 || steps > state.steps) {
      return absl::InvalidArgumentError(
          absl::StrCat("'seq_len_max' is ", steps, ", expected at most ", state.steps, ", the number of steps"));
    }
  }
  const float *cell_before = context->input<float>(x + 1), *state_before = context->input<float>(x + 2);
  const float* weights = context->input<float>(x + 3);
  const float *of_input = context->input<float>(x + 4), *of_forget = context->input<float>(x + 5),
              *of_output = context->input<float>(x + 6);
  const float* bias = context->input<float>(x + 7);
  float* outputs[7];  // i, cs, f, o, ci, co, h.
  for (int i = 0; i < 7; ++i) outputs[i] = context->output<float>(i);
  float* gates = ScratchAt(context, state.gates_part);
  for (int64_t t = 0; t < steps && !RunIsCancelled(); ++t) {
    const Step step = {state.batch, state.inputs, cells, context->input<float>(x) + t * state.batch * state.inputs,
                       state_before};
    MultiplyStep(context->threads(), step, weights, bias, 4 * cells, gates);
    for (int64_t e = 0; e < size; ++e) {
      const int64_t c = e % cells;
      const float* row = gates + e / cells * 4 * cells + c;
      const float before = cell_before[e];
      float in = row[0], forget = row[state.forget_gate * cells] + state.forget_bias, out = row[3 * cells];
      if (state.peephole) {
        in += before * of_input[c];
        forget += before * of_forget[c];
      }
      in = Sigmoid(in);
      forget = Sigmoid(forget);
      const float candidate = std::tanh(row[state.cell_gate * cells]);
      float cell = in * candidate + forget * before;
      if (state.clip > 0) cell = std::min(std::max(cell, -state.clip), state.clip);
      if (state.peephole) out += cell * of_output[c];
      out = Sigmoid(out);
      const float squashed = std::tanh(cell);
      const float values[] = {in, cell, forget, out, candidate, squashed, out * squashed};
      for (int i = 0; i < 7; ++i) outputs[i][t * size + e] = values[i];
    }
    cell_before = outputs[1] + t * size;
    state_before = outputs[6] + t * size;
  }
  // Steps after the longest sequence.
  for (float* output : outputs) std::fill_n(output + steps * size, (state.steps - steps) * size, 0.f);
  return absl::OkStatus();
}

// --- GRU -------------------------------------------------------------------------------------------------------------

struct GruState : KernelState {
  int64_t batch = 0, inputs = 0, cells = 0;
  int64_t gates_part = 0, reset_part = 0;
};

absl::Status PrepareGru(PrepareContext* context) {
  auto state = std::make_unique<GruState>();
  PF_RETURN_IF_ERROR(RequireRank(context, 0, 2));
  PF_RETURN_IF_ERROR(RequireRank(context, 1, 2));
  state->batch = context->input_shape(0).dim(0);
  state->inputs = context->input_shape(0).dim(1);
  state->cells = context->input_shape(1).dim(1);
  int64_t rows, gates, elements;
  if (__builtin_add_overflow(state->inputs, state->cells, &rows) ||
      __builtin_mul_overflow(state->cells, int64_t{2}, &gates) ||
      __builtin_mul_overflow(gates, state->batch, &elements)) {
    return absl::InvalidArgumentError("the sizes of the cell exceed int64");
  }
  const Shape output({state->batch, state->cells});
  PF_RETURN_IF_ERROR(RequireShape(context, 1, output));
  PF_RETURN_IF_ERROR(RequireShape(context, 2, Shape({rows, gates})));
  PF_RETURN_IF_ERROR(RequireShape(context, 3, Shape({rows, state->cells})));
  PF_RETURN_IF_ERROR(RequireShape(context, 4, Shape({gates})));
  PF_RETURN_IF_ERROR(RequireShape(context, 5, Shape({state->cells})));
  for (int i = 0; i < context->num_outputs(); ++i) PF_RETURN_IF_ERROR(SetCheckedShape(context, i, output));
  ScratchParts parts;
  PF_ASSIGN_OR_RETURN(state->gates_part, parts.Add(elements));
  PF_ASSIGN_OR_RETURN(state->reset_part, parts.Add(elements / 2));
  parts.Request(context);
  context->SetState(std::move(state));
  return absl::OkStatus();
}

absl::Status ComputeGru(ComputeContext* context) {
  const auto& state = context->state<GruState>();
  const int64_t cells = state.cells, size = state.batch * cells;
  if (size == 0) return absl::OkStatus();
  const float *x = context->input<float>(0), *before = context->input<float>(1);
  float *r = context->output<float>(0), *u = context->output<float>(1), *c = context->output<float>(2),
        *h = context->output<float>(3);
  float *gates = ScratchAt(context, state.gates_part), *reset = ScratchAt(context, state.reset_part);
  MultiplyStep(context->threads(), {state.batch, state.inputs, cells, x, before}, context->input<float>(2),
               context->input<float>(4), 2 * cells, gates);
  for (int64_t e = 0; e < size; ++e) {
    const float* row = gates + e / cells * 2 * cells + e % cells;
    r[e] = Sigmoid(row[0]);
    u[e] = Sigmoid(row[cells]);
    reset[e] = before[e] * r[e];
  }
  MultiplyStep(context->threads(), {state.batch, state.inputs, cells, x, reset}, context->input<float>(3),
               context->input<float>(5), cells, gates);
  for (int64_t e = 0; e < size; ++e) {
    c[e] = std::tanh(gates[e]);
    h[e] = u[e] * before[e] + (1 - u[e]) * c[e];
  }
  return absl::OkStatus();
}

Kernel LstmKernel(const char* formula) {
  return Kernel(formula)
      .Types<float, Half>("T")
      .Prepare(PrepareWidened<PrepareLstm>)
      .Compute(ComputeWidened<ComputeLstm>);
}

}  // namespace

DEFINE_KERNEL(LSTMBlockCell) {
  return LstmKernel("one step of an LSTM, with its gates in the order input, cell, forget, output");
}
DEFINE_KERNEL(BlockLSTM) {
  return LstmKernel(
      "the first seq_len_max steps of an LSTM, with its gates in the order input, cell, forget, output; then zeros");
}
DEFINE_KERNEL(BlockLSTMV2) {
  return LstmKernel(
      "the first seq_len_max steps of an LSTM, with its gates in the order input, forget, cell, output; then zeros");
}
DEFINE_KERNEL(GRUBlockCell) {
  return Kernel("one step of a GRU, with its gates in the order reset, update")
      .Types<float>("T")
      .Prepare(PrepareGru)
      .Compute(ComputeGru);
}

}  // namespace permafrost
