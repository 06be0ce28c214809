// Einsum: sums of products over named dimensions.
#include <algorithm>
#include <complex>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "graph/base/multiversion.h"
#include "graph/base/status.h"
#include "runtime_check/kernel.h"
#include "runtime_check/kernels/prepare.h"
#include "runtime_check/kernels/wide_elements.h"

namespace permafrost {
namespace {

constexpr int64_t kGrain = 1 << 14;  // Products per task.

// A label: its number of values, and its stride in each input (0 if the input does not have the label, or has only one
// value of it).
struct Label {
  int64_t size = 1;
  int64_t steps[2] = {0, 0};
};

struct EinsumState : KernelState {
  std::vector<Label> rows;  // Labels of the output, except the last one.
  Label lane;               // The last label of the output; of size 1 for a scalar.
  std::vector<Label> sums;  // The labels that are not in the output.
  int64_t num_rows = 1, num_sums = 1;
  bool has_two = false;
};

// Labels are numbers: the character for a written label, and 256 + k for the dimension k places before the end of an
// ellipsis, so that ellipses broadcast from the right.
using Term = std::vector<int>;

absl::StatusOr<Term> ParseTerm(absl::string_view text, int covered) {
  Term term;
  bool has_ellipsis = false;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == ' ') continue;
    if (text[i] != '.') {
      term.push_back(static_cast<unsigned char>(text[i]));
      continue;
    }
    if (has_ellipsis || text.substr(i, 3) != "...") {
      return absl::InvalidArgumentError(absl::StrCat("found '", text, "', expected labels and at most one '...'"));
    }
    has_ellipsis = true;
    i += 2;
    for (int k = covered; k > 0; --k) term.push_back(256 + k);
  }
  return term;
}

// Returns the number of dimensions that the ellipsis of a term covers, given the rank of its input; 0 without an
// ellipsis.
int CoveredDims(absl::string_view text, int rank) {
  if (text.find('.') == absl::string_view::npos) return 0;
  const int labels =
      static_cast<int>(std::count_if(text.begin(), text.end(), [](char c) { return c != '.' && c != ' '; }));
  return std::max(0, rank - labels);
}

absl::Status Prepare(PrepareContext* context) {
  PF_ASSIGN_OR_RETURN(const std::string equation, StringAttr(context->node(), "equation"));
  const std::vector<std::string> sides = absl::StrSplit(equation, "->");
  if (sides.size() != 2) {
    return absl::InvalidArgumentError(absl::StrCat("attr 'equation' is '", equation, "', expected one '->'"));
  }
  const std::vector<std::string> texts = absl::StrSplit(sides[0], ',');
  const int num_inputs = context->num_inputs();
  if (static_cast<int>(texts.size()) != num_inputs) {
    return absl::InvalidArgumentError(
        absl::StrCat("attr 'equation' is '", equation, "', expected ", num_inputs, " terms"));
  }
  if (num_inputs < 1 || num_inputs > 2) {
    return absl::UnimplementedError(absl::StrCat("found ", num_inputs, " inputs, expected 1 or 2"));
  }

  std::map<int, Label> labels;
  int covered_most = 0;
  for (int i = 0; i < num_inputs; ++i) {
    const Shape& shape = context->input_shape(i);
    const int covered = CoveredDims(texts[i], shape.rank());
    covered_most = std::max(covered_most, covered);
    PF_ASSIGN_OR_RETURN(const Term term, ParseTerm(texts[i], covered));
    if (static_cast<int>(term.size()) != shape.rank()) {
      return absl::InvalidArgumentError(
          absl::StrCat("input ", i, " has the shape ", shape.ToString(), ", which does not fit '", texts[i], "'"));
    }
    int64_t step = 1;
    for (int d = shape.rank() - 1; d >= 0; --d) {
      Label& label = labels[term[d]];
      const int64_t size = shape.dim(d);
      if (label.size != size && label.size != 1 && size != 1) {
        return absl::InvalidArgumentError(absl::StrCat("dimension ", d, " of input ", i, " is ", size, ", expected ",
                                                       label.size, " as where its label stands first"));
      }
      label.size = label.size == 1 ? size : label.size;
      if (size != 1) label.steps[i] += step;  // A repeated label walks along the diagonal.
      step *= size;
    }
  }
  const int covered_output = sides[1].find('.') == std::string::npos ? 0 : covered_most;
  PF_ASSIGN_OR_RETURN(const Term output, ParseTerm(sides[1], covered_output));
  auto state = std::make_unique<EinsumState>();
  Shape shape;
  for (const int name : output) {
    const auto found = labels.find(name);
    if (found == labels.end() || std::count(output.begin(), output.end(), name) > 1) {
      return absl::InvalidArgumentError(
          absl::StrCat("attr 'equation' is '", equation, "', expected each label of the output once, and in an input"));
    }
    shape.AddDim(found->second.size);
    state->rows.push_back(found->second);
  }
  PF_RETURN_IF_ERROR(SetCheckedShape(context, 0, shape));
  if (!state->rows.empty()) {
    state->lane = state->rows.back();
    state->rows.pop_back();
  }
  for (const auto& [name, label] : labels) {
    if (std::count(output.begin(), output.end(), name) == 0) state->sums.push_back(label);
  }
  if (shape.num_elements() > 0) {
    for (const Label& label : state->rows) state->num_rows *= label.size;
  } else {
    state->num_rows = 0;
  }
  for (const Label& label : state->sums) {
    if (__builtin_mul_overflow(state->num_sums, label.size, &state->num_sums)) {
      return absl::InvalidArgumentError("the sums have more terms than int64 counts");
    }
  }
  state->has_two = num_inputs == 2;
  context->SetState(std::move(state));
  return absl::OkStatus();
}

// Computes the offsets in both inputs for a combination of values.
void Locate(const std::vector<Label>& labels, int64_t number, int64_t* at) {
  for (int d = static_cast<int>(labels.size()) - 1; d >= 0; --d) {
    const int64_t value = number % labels[d].size;
    number /= labels[d].size;
    at[0] += value * labels[d].steps[0];
    at[1] += value * labels[d].steps[1];
  }
}

// Iterates over all combinations, the last label fastest.
class Walk {
 public:
  explicit Walk(const std::vector<Label>& labels) : labels_(labels), values_(labels.size(), 0) {}
  void Next(int64_t* at) {
    for (int d = static_cast<int>(labels_.size()) - 1; d >= 0; --d) {
      for (int i = 0; i < 2; ++i) at[i] += labels_[d].steps[i];
      if (++values_[d] < labels_[d].size) return;
      for (int i = 0; i < 2; ++i) at[i] -= labels_[d].steps[i] * labels_[d].size;
      values_[d] = 0;
    }
  }

 private:
  const std::vector<Label>& labels_;
  std::vector<int64_t> values_;
};

constexpr int64_t kLanes = 64;  // Number of sums computed at once.

template <typename T>
void ComputeRows(ComputeContext* context) {
  using S = decltype(Widen(T()));
  const auto& state = context->state<EinsumState>();
  const T* a = context->input<T>(0);
  const T* b = state.has_two ? context->input<T>(1) : nullptr;
  T* output = context->output<T>(0);
  const int64_t lanes = state.lane.size;
  const int64_t a_step = state.lane.steps[0], b_step = state.lane.steps[1];
  const int64_t products = std::max<int64_t>(1, lanes * std::min(state.num_sums, kGrain));
  context->threads().ParallelFor(state.num_rows, std::max<int64_t>(1, kGrain / products),
                                 [&](int64_t begin, int64_t end) {
                                   for (int64_t row = begin; row < end; ++row) {
                                     int64_t start[2] = {0, 0};
                                     Locate(state.rows, row, start);
                                     for (int64_t first = 0; first < lanes; first += kLanes) {
                                       const int64_t count = std::min(kLanes, lanes - first);
                                       S sums[kLanes] = {};
                                       int64_t at[2] = {start[0] + first * a_step, start[1] + first * b_step};
                                       Walk walk(state.sums);
                                       for (int64_t k = 0; k < state.num_sums; ++k) {
                                         const T* x = a + at[0];
                                         if (b == nullptr) {
                                           for (int64_t lane = 0; lane < count; ++lane)
                                             sums[lane] += Widen(x[lane * a_step]);
                                         } else {
                                           const T* y = b + at[1];
                                           Multiversion([&]() PF_INLINE {
                                             for (int64_t lane = 0; lane < count; ++lane) {
                                               sums[lane] += Widen(x[lane * a_step]) * Widen(y[lane * b_step]);
                                             }
                                           });
                                         }
                                         walk.Next(at);
                                       }
                                       for (int64_t lane = 0; lane < count; ++lane)
                                         output[row * lanes + first + lane] = Narrow<T>(sums[lane]);
                                     }
                                   }
                                 });
}

absl::Status Compute(ComputeContext* context) {
  DispatchOn<float, double, Half, BFloat16, int32_t, int64_t, std::complex<float>, std::complex<double>>(
      context->output_at(0).dtype, [&](auto tag) { ComputeRows<typename decltype(tag)::type>(context); });
  return absl::OkStatus();
}

}  // namespace

DEFINE_KERNEL(Einsum) {
  return Kernel("the product of the inputs, summed over all labels that the output does not have")
      .Types<float, double, Half, BFloat16, int32_t, int64_t, std::complex<float>, std::complex<double>>("T")
      .Prepare(Prepare)
      .Compute(Compute);
}

}  // namespace permafrost
