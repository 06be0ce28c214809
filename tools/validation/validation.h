// Runs two models on the same inputs and measures how far apart their answers are.
#ifndef PERMAFROST_TOOLS_VALIDATION_VALIDATION_H_
#define PERMAFROST_TOOLS_VALIDATION_VALIDATION_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "graph/graph.h"
#include "graph/tensor.h"
#include "runtime_check/compare.h"
#include "runtime_check/session.h"
#include "tools/model/model_inputs.h"

namespace permafrost {

struct OutputValidation {
  std::string name;
  OutputDifference difference;
  // The share of rows whose largest element is at the label's place; only for outputs that classify what the labels
  // label.
  std::optional<double> reference_accuracy;
  std::optional<double> candidate_accuracy;
};

struct Validation {
  size_t num_runs = 0;  // How many sets of inputs were run.
  std::vector<OutputValidation> outputs;
  // Of one run on the first set; 0 when not measured.
  double reference_seconds = 0;
  double candidate_seconds = 0;
  PlanReport candidate_plan;  // Of its last run.
};

struct ValidationSettings {
  SessionOptions reference;
  SessionOptions candidate;
  int timed_runs = 0;  // How often each model runs, in turn, for the median time.
};

// Runs both graphs on every set. The interface of `reference` must be declared; `candidate` has inputs and outputs of
// the same names, of which inputs may be missing. The answers to all sets are joined along dimension 0 before they are
// compared. `labels` may be null: else one integer for each row. Errors as of Session, with the model named.
absl::StatusOr<Validation> Validate(const Graph& reference, const Graph& candidate, const std::vector<InputSet>& sets,
                                    const std::vector<int64_t>* labels, const ValidationSettings& settings);

// Joins tensors along dimension 0; scalars become a vector. InvalidArgument when they do not fit each other.
absl::StatusOr<Tensor> JoinRows(absl::Span<const Tensor> tensors);

// The share of rows of `scores` [rows, classes] whose largest element (the first of equals) is at the label's place;
// absent when the shape does not fit the labels or the elements are no numbers.
std::optional<double> Accuracy(const Tensor& scores, const std::vector<int64_t>& labels);

}  // namespace permafrost

#endif  // PERMAFROST_TOOLS_VALIDATION_VALIDATION_H_
