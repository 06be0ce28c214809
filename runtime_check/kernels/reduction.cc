// Ops that reduce the elements along axes: Sum, Mean, Max, Min, Prod, All, Any, EuclideanNorm, L2Loss.
//
// Floating-point sums are accumulated in double, so they are at least as accurate as pairwise sums.
#include <algorithm>
#include <complex>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "runtime_check/kernels/elementwise.h"
#include "runtime_check/kernels/prepare.h"
#include "runtime_check/kernels/reduction_loops.h"

namespace permafrost {
namespace {

using reduction::LoopsFor;
using reduction::ReductionLoops;

// Minimum number of elements per unit of work, outputs and inputs together.
constexpr int64_t kGrain = 1 << 14;
// Number of outputs that are accumulated together, and of elements that are converted at a time.
constexpr int64_t kBlock = 256;
constexpr size_t kBlockBytes = kBlock * sizeof(std::complex<double>);

// --- Walking the input -----------------------------------------------------------------------------------------------

struct Dim {
  int64_t size;
  int64_t stride;
};
using Dims = absl::InlinedVector<Dim, 4>;

int64_t Count(const Dims& dims) {
  int64_t count = 1;
  for (const Dim& dim : dims) count *= dim.size;
  return count;
}

// Returns the offset of the i-th combination of indices.
int64_t OffsetOf(const Dims& dims, int64_t i) {
  int64_t offset = 0;
  for (int d = static_cast<int>(dims.size()) - 1; d >= 0; --d) {
    offset += i % dims[d].size * dims[d].stride;
    i /= dims[d].size;
  }
  return offset;
}

// Calls f(offset) for every combination of indices.
template <typename F>
void ForEachOffset(const Dims& dims, F f) {
  const int64_t count = Count(dims);
  absl::InlinedVector<int64_t, 4> index(dims.size(), 0);
  int64_t offset = 0;
  for (int64_t i = 0; i < count; ++i) {
    f(offset);
    for (int d = static_cast<int>(dims.size()) - 1; d >= 0; --d) {
      offset += dims[d].stride;
      if (++index[d] < dims[d].size) break;
      offset -= dims[d].size * dims[d].stride;
      index[d] = 0;
    }
  }
}

// The dimensions of the input. Neighbouring dimensions that are both kept or both reduced are merged. The innermost
// dimension is stored separately.
struct ReductionState : KernelState {
  const ReductionLoops* loops = nullptr;
  const Conversion* conversion = nullptr;
  size_t element_size = 0;
  Dims kept;
  Dims reduced;
  int64_t inner = 1;  // Contiguous elements.
  bool inner_is_reduced = false;
  int64_t num_reduced = 1;
  int64_t num_outputs = 1;
};

void CollapseDims(const Shape& input, const std::vector<bool>& is_reduced, ReductionState* state) {
  struct Run {
    int64_t size;
    bool reduced;
  };
  absl::InlinedVector<Run, 4> runs;
  for (int d = 0; d < input.rank(); ++d) {
    int64_t& count = is_reduced[d] ? state->num_reduced : state->num_outputs;
    // May wrap around if a dimension of the other kind is 0; the result is then not used.
    count = static_cast<int64_t>(static_cast<uint64_t>(count) * static_cast<uint64_t>(input.dim(d)));
    if (input.dim(d) == 1) continue;
    if (!runs.empty() && runs.back().reduced == is_reduced[d]) {
      runs.back().size = static_cast<int64_t>(static_cast<uint64_t>(runs.back().size) * input.dim(d));
    } else {
      runs.push_back({input.dim(d), is_reduced[d]});
    }
  }
  if (!runs.empty()) {
    state->inner = runs.back().size;
    state->inner_is_reduced = runs.back().reduced;
    runs.pop_back();
  }
  uint64_t stride = static_cast<uint64_t>(state->inner);
  for (int r = static_cast<int>(runs.size()) - 1; r >= 0; --r) {
    Dims& dims = runs[r].reduced ? state->reduced : state->kept;
    dims.insert(dims.begin(), {runs[r].size, static_cast<int64_t>(stride)});
    stride *= static_cast<uint64_t>(runs[r].size);
  }
}

absl::Status PrepareReductionWith(PrepareContext* context, const ReductionLoops* (*loops_for)(DType),
                                  const std::vector<bool>& is_reduced, Shape output) {
  auto state = std::make_unique<ReductionState>();
  const DType type = context->input_type(0);
  state->conversion = ConversionFor(type);
  state->element_size = SizeOf(type);
  state->loops = loops_for(state->conversion == nullptr ? type : state->conversion->wide);
  if (state->loops == nullptr) return absl::UnimplementedError(absl::StrCat("no reduction of ", DTypeName(type)));
  CollapseDims(context->input_shape(0), is_reduced, state.get());
  context->SetState(std::move(state));
  return SetCheckedShape(context, 0, std::move(output));
}

template <typename R>
absl::Status PrepareReduction(PrepareContext* context) {
  PF_ASSIGN_OR_RETURN(bool keep_dims, BoolAttr(context->node(), "keep_dims"));
  PF_ASSIGN_OR_RETURN(std::vector<int64_t> axes, IntegerVectorInput(context, 1));
  const Shape& input = context->input_shape(0);
  std::vector<bool> is_reduced(input.rank(), false);
  for (int64_t given : axes) {
    PF_ASSIGN_OR_RETURN(int axis, ResolveAxis(given, input.rank()));
    if (is_reduced[axis]) return absl::InvalidArgumentError(absl::StrCat("axis ", axis, " is given twice"));
    is_reduced[axis] = true;
  }
  Shape output;
  for (int d = 0; d < input.rank(); ++d) {
    if (!is_reduced[d]) output.AddDim(input.dim(d));
    if (is_reduced[d] && keep_dims) output.AddDim(1);
  }
  return PrepareReductionWith(context, LoopsFor<R>, is_reduced, std::move(output));
}

absl::Status PrepareL2Loss(PrepareContext* context) {
  const std::vector<bool> all(context->input_shape(0).rank(), true);
  return PrepareReductionWith(context, LoopsFor<reduction::HalfSquaresOf>, all, Shape());
}

class Reducer {
 public:
  explicit Reducer(ComputeContext* context)
      : state_(context->state<ReductionState>()), input_(context->input_bytes(0)), output_(context->output_bytes(0)) {}

  // Computes outputs [begin, end), each from contiguous elements.
  void ReduceInner(int64_t begin, int64_t end) const {
    for (int64_t i = begin; i < end; ++i) {
      alignas(16) char accumulator[16];
      state_.loops->start(accumulator, 1);
      const int64_t base = OffsetOf(state_.kept, i);
      ForEachOffset(state_.reduced, [&](int64_t offset) {
        ForEachWideBlock(base + offset, state_.inner,
                         [&](const char* x, int64_t count) { state_.loops->add_all(x, count, accumulator); });
      });
      Finish(accumulator, 1, i);
    }
  }

  // Computes `count` outputs starting at `column` in kept row `row`. Neighbouring outputs are neighbours in the input
  // too.
  void ReduceOuter(int64_t row, int64_t column, int64_t count) const {
    alignas(64) char accumulators[kBlockBytes];
    state_.loops->start(accumulators, count);
    const int64_t base = OffsetOf(state_.kept, row) + column;
    ForEachOffset(state_.reduced, [&](int64_t offset) {
      ForEachWideBlock(base + offset, count,
                       [&](const char* x, int64_t n) { state_.loops->add_each(x, n, accumulators); });
    });
    Finish(accumulators, count, row * state_.inner + column);
  }

 private:
  // Calls f(elements, count) for blocks of the input in the type of the loops.
  template <typename F>
  void ForEachWideBlock(int64_t offset, int64_t count, F f) const {
    const char* x = input_ + offset * state_.element_size;
    if (state_.conversion == nullptr) {
      f(x, count);
      return;
    }
    alignas(64) char wide[kBlockBytes];
    for (int64_t first = 0; first < count; first += kBlock) {
      const int64_t n = std::min(kBlock, count - first);
      state_.conversion->widen(x + first * state_.element_size, wide, n);
      f(wide, n);
    }
  }

  void Finish(const char* accumulators, int64_t count, int64_t to) const {
    char* y = output_ + to * state_.element_size;
    if (state_.conversion == nullptr) {
      state_.loops->finish(accumulators, count, state_.num_reduced, y);
      return;
    }
    alignas(64) char wide[kBlockBytes];
    state_.loops->finish(accumulators, count, state_.num_reduced, wide);
    state_.conversion->narrow(wide, y, count);
  }

  const ReductionState& state_;
  const char* input_;
  char* output_;
};

absl::Status ComputeReduction(ComputeContext* context) {
  const auto& state = context->state<ReductionState>();
  if (state.num_outputs == 0) return absl::OkStatus();
  const Reducer reducer(context);
  if (state.inner_is_reduced) {
    const int64_t grain = std::max<int64_t>(1, kGrain / std::max<int64_t>(1, state.num_reduced));
    context->threads().ParallelFor(state.num_outputs, grain,
                                   [&](int64_t begin, int64_t end) { reducer.ReduceInner(begin, end); });
    return absl::OkStatus();
  }
  const int64_t blocks = (state.inner + kBlock - 1) / kBlock;
  const int64_t work = std::max<int64_t>(1, state.num_reduced) * std::min(state.inner, kBlock);
  context->threads().ParallelFor(state.num_outputs / state.inner * blocks, std::max<int64_t>(1, kGrain / work),
                                 [&](int64_t begin, int64_t end) {
                                   for (int64_t i = begin; i < end; ++i) {
                                     const int64_t column = i % blocks * kBlock;
                                     reducer.ReduceOuter(i / blocks, column, std::min(kBlock, state.inner - column));
                                   }
                                 });
  return absl::OkStatus();
}

template <typename R>
Kernel NumberReduction(const char* formula) {
  return Kernel(formula)
      .TypeNumbers("T", reduction::kKnowsComplex<R> ? NumberAndComplexTypes() : NumberTypes())
      .Prepare(PrepareReduction<R>)
      .Compute(ComputeReduction);
}

}  // namespace

DEFINE_KERNEL(Sum) { return NumberReduction<reduction::SumOf>("the sum along the axes"); }
DEFINE_KERNEL(Mean) { return NumberReduction<reduction::MeanOf>("the mean along the axes; truncated for integers"); }
DEFINE_KERNEL(Prod) { return NumberReduction<reduction::ProductOf>("the product along the axes"); }
DEFINE_KERNEL(Max) {
  return NumberReduction<reduction::MaximumOf>("the maximum along the axes; NaN if an element is NaN");
}
DEFINE_KERNEL(Min) {
  return NumberReduction<reduction::MinimumOf>("the minimum along the axes; NaN if an element is NaN");
}

DEFINE_KERNEL(EuclideanNorm) {
  return NumberReduction<reduction::NormOf>("the square root of the sum of squares along the axes");
}

DEFINE_KERNEL(All) {
  return Kernel("whether all elements along the axes are true")
      .Prepare(PrepareReduction<reduction::AllOf>)
      .Compute(ComputeReduction);
}

DEFINE_KERNEL(Any) {
  return Kernel("whether any element along the axes is true")
      .Prepare(PrepareReduction<reduction::AnyOf>)
      .Compute(ComputeReduction);
}

DEFINE_KERNEL(L2Loss) {
  return Kernel("half the sum of squares")
      .TypeNumbers("T", FloatingTypes())
      .Prepare(PrepareL2Loss)
      .Compute(ComputeReduction);
}

}  // namespace permafrost
