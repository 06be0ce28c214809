// Compares the outputs of a graph before and after passes.
#include "tools/transform/verification.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <new>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "graph/base/status.h"
#include "runtime_check/checking/coded_feeds.h"
#include "runtime_check/checking/output_quality.h"
#include "runtime_check/checking/split_mix.h"
#include "runtime_check/session.h"
#include "tools/command_line/console.h"
#include "tools/command_line/memory_limit.h"
#include "tools/model/graph_validity.h"
#include "tools/transform/batch_matching.h"
#include "transforms/pass.h"

namespace permafrost {
namespace {

std::vector<std::string> OutputsOf(const Graph& graph) {
  std::vector<std::string> outputs;
  for (const Endpoint& output : graph.outputs()) outputs.push_back(output.text);
  return outputs;
}

// Runs the graph on every set. Inputs that it no longer has are not fed.
absl::StatusOr<std::vector<std::vector<Tensor>>> RunOnSets(const Graph& graph, const std::vector<std::string>& fetches,
                                                           absl::Span<const InputSet> sets,
                                                           const SessionOptions& options) {
  std::vector<std::string> feeds;
  std::vector<size_t> positions;
  for (size_t i = 0; i < graph.inputs().size(); ++i) {
    if (graph.inputs()[i].node == nullptr) continue;
    feeds.push_back(graph.inputs()[i].text);
    positions.push_back(i);
  }
  PF_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session, Session::Create(graph, feeds, fetches, options));
  std::vector<std::vector<Tensor>> results;
  for (const InputSet& set : sets) {
    std::vector<Tensor> fed;
    for (const size_t position : positions) {
      if (position >= set.size()) return absl::InternalError("the graph has more inputs than before");
      PF_ASSIGN_OR_RETURN(fed.emplace_back(), CodedFeed(graph.inputs()[position], set[position]));
    }
    PF_ASSIGN_OR_RETURN(std::vector<Tensor> outputs, session->Run(fed));
    results.push_back(std::move(outputs));
  }
  return results;
}

// The relative change of the inputs that measures the sensitivity of an output: eight units in the last place of a
// float32, so that the change is larger than its own rounding.
constexpr double kRelativeMove = 0x1p-20;

bool IsSmall(const OutputDifference& difference) { return difference.max_abs_expected < 1; }

bool AnyIsSmall(const std::vector<std::vector<Tensor>>& results) {
  for (const std::vector<Tensor>& outputs : results) {
    for (const Tensor& output : outputs) {
      if (IsSmall(CompareTensors(output, output))) return true;
    }
  }
  return false;
}

// Returns whether the graph has an input whose meaning a pass may change.
bool TakesImages(const Graph& graph) {
  for (const Endpoint& input : graph.inputs()) {
    if (input.node == nullptr || input.node->op() != ops::kPlaceholder) continue;
    const Shape shape = ShapeAttr(*input.node, "shape").value_or(Shape::UnknownRank());
    if (shape.has_rank() && shape.rank() == 4) return true;
  }
  return false;
}

// Returns whether rounding may explain the difference of a small output. In float32, rounding of numbers about one
// seldom adds up to 1e-3, and no pass declares less than 1e-5.
bool MayBeRounding(const OutputDifference& difference) {
  constexpr double kMostRounding = 1e-3, kLeastDeclared = 1e-5;
  return IsSmall(difference) && difference.max_abs <= kMostRounding && difference.relative() > kLeastDeclared;
}

template <typename T>
Tensor MovedNumbers(const Tensor& tensor, uint64_t seed) {
  SplitMix64 random(seed);
  std::vector<T> moved;
  const UnalignedSpan<T> values = tensor.elements<T>();
  for (size_t i = 0; i < values.size(); ++i) {
    moved.push_back(static_cast<T>(values[i] * (random.Next() % 2 == 0 ? 1 + kRelativeMove : 1 - kRelativeMove)));
  }
  return Tensor::FromVector(tensor.shape(), std::move(moved));
}

// Returns the tensor with each floating-point number moved up or down by kRelativeMove; other types are unchanged.
Tensor Moved(const Tensor& tensor, uint64_t seed) {
  if (tensor.dtype() == DType::kFloat) return MovedNumbers<float>(tensor, seed);
  if (tensor.dtype() == DType::kDouble) return MovedNumbers<double>(tensor, seed);
  return tensor;
}

}  // namespace

Allowance DeclaredAllowance(absl::Span<const PassCall> calls) {
  Allowance allowance;
  for (const PassCall& call : calls) {
    const absl::StatusOr<const PassDefinition*> pass = FindPass(call.name);
    if (!pass.ok()) continue;
    const Numerics& numerics = (*pass)->numerics;
    if (numerics.kind == Numerics::Kind::kWithin) allowance.tolerance += numerics.tolerance;
    if (numerics.kind != Numerics::Kind::kChanges) continue;
    if (!absl::StrContains(allowance.why, numerics.why)) {
      absl::StrAppend(&allowance.why, allowance.why.empty() ? "changes outputs: " : "; ", numerics.why);
    }
    allowance.is_unlimited = true;
  }
  if (!allowance.is_unlimited) {
    allowance.why = allowance.tolerance == 0 ? "exact" : absl::StrCat("within ", FormatNumber(allowance.tolerance));
  }
  return allowance;
}

double Verdict::worst() const {
  double worst = 0;
  for (const VerifiedOutput& output : outputs) worst = std::max(worst, output.difference.relative());
  return worst;
}

std::vector<std::string> Verdict::RuinedOutputs() const {
  std::vector<std::string> ruined;
  for (const VerifiedOutput& output : outputs) {
    if (JudgeQuality(output.difference) == OutputQuality::kRuined) ruined.push_back(output.name);
  }
  return ruined;
}

bool Verdict::Passes(const Allowance& allowance) const {
  if (!was_run || outputs.empty()) return true;
  // Values that became infinite, or another shape, fail with any tolerance.
  return allowance.is_unlimited ? std::isfinite(worst()) : worst() <= allowance.tolerance;
}

absl::StatusOr<std::vector<std::vector<Tensor>>> Verifier::RunAll(const Graph& graph,
                                                                  const std::vector<std::string>& fetches,
                                                                  absl::Span<const InputSet> sets) const {
  const absl::Time start = absl::Now();
  const absl::Time end = start + absl::Seconds(seconds_left_);
  SessionOptions limited = options_;
  const std::function<bool()>& of_caller = options_.loop_limits.is_cancelled;
  limited.loop_limits.is_cancelled = [end, &of_caller] {
    return (of_caller != nullptr && of_caller()) || absl::Now() > end;
  };
  absl::StatusOr<std::vector<std::vector<Tensor>>> results;
  try {
    results = RunOnSets(graph, fetches, sets, limited);
  } catch (const std::bad_alloc&) {
    results = absl::ResourceExhaustedError("running the graph takes more memory than is allowed");
  }
  seconds_left_ = std::max(0.0, seconds_left_ - absl::ToDoubleSeconds(absl::Now() - start));
  if (absl::IsCancelled(results.status()) && absl::Now() > end) {
    return absl::CancelledError(absl::StrCat("running the graph takes more than ", FormatNumber(max_seconds_),
                                             " s; --max_time=SECONDS allows more"));
  }
  if (absl::IsResourceExhausted(results.status())) {
    return absl::ResourceExhaustedError(absl::StrCat(results.status().message(), kRaisesLimit));
  }
  return results;
}

Verifier::Verifier(const Graph& before, absl::StatusOr<std::vector<InputSet>> inputs, SessionOptions options,
                   double max_seconds)
    : options_(std::move(options)),
      max_seconds_(max_seconds),
      seconds_left_(max_seconds),
      validity_(CheckValidity(before)) {
  options_.print = [](absl::string_view, absl::string_view) {};  // Output of Print nodes is discarded.
  for (const absl::Status& status : {validity_, inputs.status()}) {
    if (status.ok()) continue;
    why_not_ = std::string(status.message());
    return;
  }
  inputs_ = *std::move(inputs);
  if (before.outputs().empty()) {
    why_not_ = "the graph has no declared outputs";
    return;
  }
  absl::StatusOr<std::vector<std::vector<Tensor>>> results = RunAll(before, OutputsOf(before), inputs_);
  if (!results.ok()) {
    why_not_ = std::string(results.status().message());
    return;
  }
  expected_ = *std::move(results);
  batches_ = DeclaredBatches(before);
  has_small_outputs_ = AnyIsSmall(expected_);
  if (has_small_outputs_ || TakesImages(before)) before_ = before.Clone();
}

const std::vector<double>& Verifier::Sensitivities() const {
  if (sensitivities_.has_value()) return *sensitivities_;
  sensitivities_.emplace(expected_.empty() ? 0 : expected_[0].size(), 0.0);
  std::vector<InputSet> moved;
  for (const InputSet& set : inputs_) {
    InputSet& moved_set = moved.emplace_back();
    for (const Tensor& tensor : set) moved_set.push_back(Moved(tensor, moved_set.size()));
  }
  const auto results = RunAll(*before_, OutputsOf(*before_), moved);
  if (!results.ok()) return *sensitivities_;
  for (size_t set = 0; set < results->size(); ++set) {
    for (size_t i = 0; i < (*results)[set].size(); ++i) {
      const OutputDifference difference = CompareTensors(expected_[set][i], (*results)[set][i]);
      (*sensitivities_)[i] = std::max((*sensitivities_)[i], difference.max_abs / kRelativeMove);
    }
  }
  return *sensitivities_;
}

absl::StatusOr<std::vector<Tensor>> Verifier::RunOnFirst(const Graph& graph,
                                                         const std::vector<std::string>& fetches) const {
  if (inputs_.empty()) return absl::FailedPreconditionError(why_not_);
  PF_ASSIGN_OR_RETURN(std::vector<std::vector<Tensor>> results,
                      RunAll(graph, fetches, absl::MakeConstSpan(inputs_).subspan(0, 1)));
  return std::move(results[0]);
}

bool Verifier::HasOtherInputs(const Graph& after) const {
  if (before_ == nullptr) return false;
  const std::vector<Endpoint>& old_inputs = before_->inputs();
  for (size_t i = 0; i < old_inputs.size() && i < after.inputs().size(); ++i) {
    if (after.inputs()[i].node != nullptr && HasOtherMeaning(old_inputs[i], after.inputs()[i])) return true;
  }
  return false;
}

absl::StatusOr<Verdict> Verifier::Check(const Graph& after) const {
  PF_RETURN_IF_ERROR(validity_);
  Verdict verdict;
  verdict.why_not = why_not_;
  if (!why_not_.empty()) return verdict;
  // With other inputs, the expected outputs are those for the images that both graphs can represent.
  std::vector<std::vector<Tensor>> matched_outputs;
  std::vector<InputSet> matched_inputs;
  const bool has_other_inputs = HasOtherInputs(after);
  std::optional<BatchMatching> batch;
  if (has_other_inputs) {
    std::vector<InputSet> old_inputs = inputs_;
    matched_inputs = inputs_;
    for (size_t set = 0; set < inputs_.size(); ++set) {
      for (size_t i = 0; i < inputs_[set].size() && i < after.inputs().size(); ++i) {
        if (after.inputs()[i].node == nullptr) continue;
        PF_ASSIGN_OR_RETURN(MatchedFeed matched, MatchFeed(before_->inputs()[i], after.inputs()[i], inputs_[set][i]));
        old_inputs[set][i] = std::move(matched.before);
        matched_inputs[set][i] = std::move(matched.after);
      }
    }
    PF_ASSIGN_OR_RETURN(matched_outputs, RunAll(*before_, OutputsOf(*before_), old_inputs));
  } else {
    absl::StatusOr<std::optional<BatchMatching>> found =
        BatchMatching::Find(batches_, after, inputs_, MemoryLimitInForce() / 2);
    if (!found.ok()) {
      verdict.why_not = absl::StrCat(found.status().message(), kRaisesLimit);
      return verdict;
    }
    batch = *std::move(found);
    if (batch.has_value()) {
      PF_ASSIGN_OR_RETURN(matched_inputs, batch->Inputs());
    }
  }
  const bool is_matched = has_other_inputs || batch.has_value();
  const std::vector<std::vector<Tensor>>& expected = has_other_inputs ? matched_outputs : expected_;
  const absl::StatusOr<std::vector<std::vector<Tensor>>> results =
      RunAll(after, OutputsOf(after), is_matched ? matched_inputs : inputs_);
  if (absl::IsUnimplemented(results.status()) || absl::IsCancelled(results.status())) {
    verdict.why_not = absl::StrCat("after the passes: ", results.status().message());
    return verdict;
  }
  if (absl::IsResourceExhausted(results.status())) return Annotate(results.status(), "the graph after the passes");
  if (!results.ok()) {
    return absl::AbortedError(absl::StrCat("the graph ran before and does not now: ", results.status().message()));
  }
  verdict.was_run = true;
  verdict.num_inputs = inputs_.size();
  for (const Endpoint& output : after.outputs()) verdict.outputs.push_back({output.text, {}});
  for (size_t set = 0; set < results->size(); ++set) {
    for (size_t i = 0; i < (*results)[set].size() && i < expected[0].size(); ++i) {
      const Tensor& actual = (*results)[set][i];
      Tensor wanted;
      if (batch.has_value()) {
        PF_ASSIGN_OR_RETURN(wanted, batch->Expected(expected, set, i, actual));
      } else {
        wanted = expected[set][i];
      }
      verdict.outputs[i].difference.Merge(CompareTensors(wanted, actual));
    }
  }
  for (size_t i = 0; i < verdict.outputs.size(); ++i) {
    OutputDifference& difference = verdict.outputs[i].difference;
    if (!has_small_outputs_ || !MayBeRounding(difference)) continue;
    // Small outputs are assumed to come from numbers of magnitude one at most.
    difference.scale_floor = std::max(difference.scale_floor, std::min(1.0, Sensitivities()[i]));
  }
  return verdict;
}

std::vector<double> OutputSqnrs(const Verdict& verdict) {
  std::vector<double> sqnr;
  for (const VerifiedOutput& output : verdict.outputs) {
    const OutputDifference& difference = output.difference;
    if (std::isinf(difference.relative())) {
      sqnr.push_back(-std::numeric_limits<double>::infinity());
    } else if (JudgeQuality(difference) == OutputQuality::kFine && difference.sqnr_db < QualityBounds().fine_sqnr_db) {
      // The difference is too small to matter, or nearly all exact values are equal.
      sqnr.push_back(QualityBounds().fine_sqnr_db);
    } else if (difference.has_exact_values) {
      const auto elements = static_cast<double>(std::max<int64_t>(1, difference.num_elements));
      const double by_share = -10 * std::log10(static_cast<double>(difference.num_different) / elements);
      sqnr.push_back(difference.has_numbers ? std::max(by_share, difference.sqnr_db) : by_share);
    } else {
      sqnr.push_back(difference.sqnr_db);
    }
  }
  return sqnr;
}

absl::StatusOr<std::vector<double>> Verifier::MeasureOutputs(const Graph& after) const {
  PF_ASSIGN_OR_RETURN(const Verdict verdict, Check(after));
  if (!verdict.was_run) return absl::FailedPreconditionError(verdict.why_not);
  return OutputSqnrs(verdict);
}

bool AnyMeasuresOutputs(absl::Span<const PassCall> calls) {
  for (const PassCall& call : calls) {
    for (const PassArgument& argument : call.arguments) {
      if (argument.name == "min_output_sqnr") return true;
    }
  }
  return false;
}

}  // namespace permafrost
