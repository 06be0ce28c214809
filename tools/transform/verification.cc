// Compares what a graph answers before and after.
#include "tools/transform/verification.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "runtime_check/checking/coded_feeds.h"
#include "runtime_check/session.h"
#include "tools/command_line/console.h"
#include "transforms/pass.h"

namespace permafrost {
namespace {

std::vector<std::string> OutputsOf(const Graph& graph) {
  std::vector<std::string> outputs;
  for (const Endpoint& output : graph.outputs()) outputs.push_back(output.text);
  return outputs;
}

// Runs the graph on every set. Inputs that it no longer has are not fed.
absl::StatusOr<std::vector<std::vector<Tensor>>> RunAll(const Graph& graph, const std::vector<std::string>& fetches,
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
      absl::StrAppend(&allowance.why, allowance.why.empty() ? "changes numbers: " : "; ", numerics.why);
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

bool Verdict::Passes(const Allowance& allowance) const {
  if (!was_run || outputs.empty()) return true;
  // Numbers that became infinite or another shape are wrong by any declaration.
  return allowance.is_unlimited ? std::isfinite(worst()) : worst() <= allowance.tolerance;
}

Verifier::Verifier(const Graph& before, std::vector<InputSet> inputs, SessionOptions options)
    : inputs_(std::move(inputs)), options_(std::move(options)) {
  options_.print = [](absl::string_view, absl::string_view) {};  // What nodes print is not asked for.
  if (before.outputs().empty()) {
    why_not_ = "the graph has no declared outputs";
    return;
  }
  absl::StatusOr<std::vector<std::vector<Tensor>>> results = RunAll(before, OutputsOf(before), inputs_, options_);
  if (!results.ok()) {
    why_not_ = std::string(results.status().message());
    return;
  }
  expected_ = *std::move(results);
}

absl::StatusOr<std::vector<Tensor>> Verifier::RunOnFirst(const Graph& graph,
                                                         const std::vector<std::string>& fetches) const {
  if (inputs_.empty()) return absl::FailedPreconditionError(why_not_);
  PF_ASSIGN_OR_RETURN(std::vector<std::vector<Tensor>> results,
                      RunAll(graph, fetches, absl::MakeConstSpan(inputs_).subspan(0, 1), options_));
  return std::move(results[0]);
}

absl::StatusOr<Verdict> Verifier::Check(const Graph& after) const {
  Verdict verdict;
  verdict.why_not = why_not_;
  if (!why_not_.empty()) return verdict;
  const absl::StatusOr<std::vector<std::vector<Tensor>>> results = RunAll(after, OutputsOf(after), inputs_, options_);
  if (results.status().code() == absl::StatusCode::kUnimplemented) {
    verdict.why_not = absl::StrCat("after the passes: ", results.status().message());
    return verdict;
  }
  if (!results.ok()) {
    return absl::AbortedError(absl::StrCat("the graph ran before and does not now: ", results.status().message()));
  }
  verdict.was_run = true;
  verdict.num_inputs = inputs_.size();
  for (size_t set = 0; set < results->size(); ++set) {
    for (size_t i = 0; i < (*results)[set].size() && i < expected_[set].size(); ++i) {
      VerifiedOutput output{after.outputs()[i].text, CompareTensors(expected_[set][i], (*results)[set][i])};
      if (set == 0) {
        verdict.outputs.push_back(std::move(output));
      } else if (output.difference.relative() > verdict.outputs[i].difference.relative()) {
        verdict.outputs[i] = std::move(output);
      }
    }
  }
  return verdict;
}

}  // namespace permafrost
