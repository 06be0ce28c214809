// Implements the engine of the elementwise kernels.
#include "runtime_check/kernels/elementwise.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>
#include <utility>

#include "graph/base/status.h"
#include "runtime_check/kernels/broadcast.h"
#include "runtime_check/kernels/prepare.h"
#include "runtime_check/kernels/wide_elements.h"

namespace permafrost {
namespace {

// Number of elements converted at a time: three blocks of doubles stay in the L1 cache.
constexpr int64_t kBlock = 256;
constexpr size_t kBlockBytes = kBlock * sizeof(double);
// A repeated row that is shorter than this is copied several times, to lengthen the loops.
constexpr int64_t kShortRow = 128;
constexpr int64_t kRepeatedElements = 512;

template <typename T, typename Wide>
void WidenAll(const char* from, char* to, int64_t count) {
  const T* x = reinterpret_cast<const T*>(from);
  Wide* y = reinterpret_cast<Wide*>(to);
  for (int64_t i = 0; i < count; ++i) y[i] = Comparable(x[i]);
}

template <typename T, typename Wide>
void NarrowAll(const char* from, char* to, int64_t count) {
  const Wide* x = reinterpret_cast<const Wide*>(from);
  T* y = reinterpret_cast<T*>(to);
  for (int64_t i = 0; i < count; ++i) y[i] = Narrow<T>(x[i]);
}

template <typename T, typename Wide>
constexpr Conversion MakeConversion() {
  return {DTypeOf<Wide>::value, sizeof(T), sizeof(Wide), WidenAll<T, Wide>, NarrowAll<T, Wide>};
}

struct UnaryState : KernelState {
  UnaryLoop loop = nullptr;
  const Conversion* conversion = nullptr;
  size_t input_size = 0;
  size_t output_size = 0;
  int64_t grain = 0;
  bool narrows = false;  // The result is converted back.

  bool Run(const char* x, char* y, int64_t count) const {
    if (conversion == nullptr) return loop(x, y, count);
    alignas(64) char wide_x[kBlockBytes];
    alignas(64) char wide_y[kBlockBytes];
    for (int64_t begin = 0; begin < count; begin += kBlock) {
      const int64_t n = std::min(kBlock, count - begin);
      conversion->widen(x + begin * input_size, wide_x, n);
      if (!loop(wide_x, narrows ? wide_y : y + begin * output_size, n)) return false;
      if (narrows) conversion->narrow(wide_y, y + begin * output_size, n);
    }
    return true;
  }
};

struct BinaryState : KernelState {
  Broadcast broadcast;
  BinaryLoop loop = nullptr;
  const Conversion* conversion = nullptr;
  size_t input_size = 0;
  size_t output_size = 0;
  int64_t grain = 0;
  const char* failure = "";
  bool narrows = false;
  int repeated_input = -1;  // The input whose short row is copied several times; -1 for none.

  bool Run(const char* x, bool x_is_scalar, const char* y, bool y_is_scalar, char* z, int64_t count) const {
    if (conversion == nullptr) return loop(x, x_is_scalar, y, y_is_scalar, z, count);
    alignas(64) char wide_x[kBlockBytes];
    alignas(64) char wide_y[kBlockBytes];
    alignas(64) char wide_z[kBlockBytes];
    for (int64_t begin = 0; begin < count; begin += kBlock) {
      const int64_t n = std::min(kBlock, count - begin);
      conversion->widen(x + (x_is_scalar ? 0 : begin * input_size), wide_x, x_is_scalar ? 1 : n);
      conversion->widen(y + (y_is_scalar ? 0 : begin * input_size), wide_y, y_is_scalar ? 1 : n);
      char* result = z + begin * output_size;
      if (!loop(wide_x, x_is_scalar, wide_y, y_is_scalar, narrows ? wide_z : result, n)) return false;
      if (narrows) conversion->narrow(wide_z, result, n);
    }
    return true;
  }
};

// Returns the loop for a type, which may be null.
template <typename Loops>
auto LoopFor(const Loops& loops, DType dtype) {
  switch (dtype) {
    case DType::kFloat:
      return loops.for_float;
    case DType::kDouble:
      return loops.for_double;
    case DType::kInt32:
    case DType::kQInt32:
      return loops.for_int32;
    case DType::kInt64:
      return loops.for_int64;
    case DType::kUint64:
      return loops.for_uint64;
    case DType::kComplex64:
      return loops.for_complex64;
    case DType::kComplex128:
      return loops.for_complex128;
    default:
      return decltype(loops.for_float)();
  }
}

// Sets the common fields of both kinds of state. Returns false if no loop supports the type.
template <typename State, typename Loops>
bool ChooseLoop(DType input, DType output, const Loops& loops, State* state) {
  state->conversion = ConversionFor(input);
  state->loop = LoopFor(loops, state->conversion == nullptr ? input : state->conversion->wide);
  state->input_size = SizeOf(input);
  state->output_size = SizeOf(output);
  state->narrows = state->conversion != nullptr && input == output;
  state->grain = loops.grain;
  return state->loop != nullptr;
}

absl::Status NoLoop(DType dtype) {
  return absl::UnimplementedError(absl::StrCat("no elementwise loop for the type ", DTypeName(dtype)));
}

}  // namespace

const Conversion* ConversionFor(DType dtype) {
  static constexpr Conversion kHalf = MakeConversion<Half, float>();
  static constexpr Conversion kBFloat16 = MakeConversion<BFloat16, float>();
  static constexpr Conversion kInt8 = MakeConversion<int8_t, int32_t>();
  static constexpr Conversion kInt16 = MakeConversion<int16_t, int32_t>();
  static constexpr Conversion kUint8 = MakeConversion<uint8_t, int32_t>();
  static constexpr Conversion kUint16 = MakeConversion<uint16_t, int32_t>();
  static constexpr Conversion kUint32 = MakeConversion<uint32_t, int64_t>();
  switch (dtype) {
    case DType::kHalf:
      return &kHalf;
    case DType::kBFloat16:
      return &kBFloat16;
    case DType::kInt8:
    case DType::kQInt8:
      return &kInt8;
    case DType::kInt16:
    case DType::kQInt16:
      return &kInt16;
    case DType::kUint8:
    case DType::kQUint8:
      return &kUint8;
    case DType::kUint16:
    case DType::kQUint16:
      return &kUint16;
    case DType::kUint32:
      return &kUint32;
    default:
      return nullptr;
  }
}

absl::Status PrepareUnaryLoops(PrepareContext* context, const UnaryLoops* loops) {
  auto state = std::make_unique<UnaryState>();
  if (!ChooseLoop(context->input_type(0), context->output_type(0), *loops, state.get())) {
    return NoLoop(context->input_type(0));
  }
  context->SetState(std::move(state));
  return SameShape(context);
}

absl::Status ComputeUnaryLoops(ComputeContext* context) {
  const auto& state = context->state<UnaryState>();
  const char* x = context->input_bytes(0);
  char* y = context->output_bytes(0);
  std::atomic<bool> ok{true};
  context->threads().ParallelFor(context->input_shape(0).num_elements(), state.grain, [&](int64_t begin, int64_t end) {
    if (!state.Run(x + begin * state.input_size, y + begin * state.output_size, end - begin)) ok = false;
  });
  return ok ? absl::OkStatus() : absl::InvalidArgumentError("an element is outside of the op's domain");
}

absl::Status PrepareBinaryLoops(PrepareContext* context, const BinaryLoops* loops) {
  const DType type = context->input_type(0);
  auto state = std::make_unique<BinaryState>();
  bool known = ChooseLoop(type, context->output_type(0), *loops, state.get());
  if (type == DType::kBool) {
    state->loop = loops->for_bool;
    known = state->loop != nullptr;
  }
  if (!known) return NoLoop(type);
  state->failure = loops->failure;
  const Shape inputs[] = {context->input_shape(0), context->input_shape(1)};
  PF_ASSIGN_OR_RETURN(Shape output, BroadcastShapes(inputs[0], inputs[1]));
  PF_RETURN_IF_ERROR(SetCheckedShape(context, 0, output));
  state->broadcast = Broadcast(inputs, output);
  if (state->broadcast.row_size() < kShortRow && state->broadcast.num_elements() > kRepeatedElements) {
    for (int i : {0, 1}) {
      if (state->broadcast.IsRepeatedRow(i)) state->repeated_input = i;
    }
  }
  if (state->repeated_input >= 0) {
    context->RequestScratch((kRepeatedElements + state->broadcast.row_size()) * state->input_size);
  }
  context->SetState(std::move(state));
  return absl::OkStatus();
}

absl::Status ComputeBinaryLoops(ComputeContext* context) {
  const auto& state = context->state<BinaryState>();
  const char* inputs[] = {context->input_bytes(0), context->input_bytes(1)};
  char* output = context->output_bytes(0);
  std::atomic<bool> ok{true};
  const size_t size = state.input_size;
  if (state.repeated_input >= 0) {
    const int64_t row = state.broadcast.row_size();
    const int64_t chunk = kRepeatedElements / row * row;
    char* repeated = context->scratch();
    for (int64_t begin = 0; begin < chunk + row; begin += row) {
      std::memcpy(repeated + begin * size, inputs[state.repeated_input], row * size);
    }
    context->threads().ParallelFor(state.broadcast.num_elements(), state.grain, [&](int64_t begin, int64_t end) {
      const char* phase = repeated + begin % row * size;
      for (; begin < end; begin += chunk) {
        const char* own[] = {inputs[0] + begin * size, inputs[1] + begin * size};
        own[state.repeated_input] = phase;
        if (!state.Run(own[0], false, own[1], false, output + begin * state.output_size,
                       std::min(chunk, end - begin))) {
          ok = false;
        }
      }
    });
  } else {
    const bool x_is_scalar = state.broadcast.IsScalarInRow(0);
    const bool y_is_scalar = state.broadcast.IsScalarInRow(1);
    context->threads().ParallelFor(state.broadcast.num_elements(), state.grain, [&](int64_t begin, int64_t end) {
      state.broadcast.ForEachRow(begin, end, [&](const int64_t* offsets, int64_t to, int64_t count) {
        if (!state.Run(inputs[0] + offsets[0] * size, x_is_scalar, inputs[1] + offsets[1] * size, y_is_scalar,
                       output + to * state.output_size, count)) {
          ok = false;
        }
      });
    });
  }
  return ok ? absl::OkStatus() : absl::InvalidArgumentError(state.failure);
}

}  // namespace permafrost
