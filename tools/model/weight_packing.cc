// Plans the model in a session, and collects the weights that its delegate packs.
#include "tools/model/weight_packing.h"

#include <algorithm>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "graph/base/nearest.h"
#include "graph/base/status.h"
#include "runtime_check/delegates/delegate_registry.h"
#include "runtime_check/packing/precision_plan_bytes.h"
#include "runtime_check/planning/delegation.h"
#include "tools/model/precision_request.h"

namespace permafrost {
namespace {

// Returns an error if a part of the model was planned without the delegate because of a failure: its weights are not
// packed, and a package without them would look whole.
absl::Status CheckAllPacked(const PlanReport& report) {
  if (!report.delegation.failure.empty()) return absl::ResourceExhaustedError(report.delegation.failure);
  for (const DelegationReport::Left& left : report.delegation.left) {
    if (!absl::StartsWith(left.reason, kFailedToCompile)) continue;
    return absl::ResourceExhaustedError(absl::StrCat("node '", left.node, "' (", left.op, "): ", left.reason));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<PackRequest> ParsePackRequest(absl::string_view text) {
  const std::pair<std::string, std::string> parts = absl::StrSplit(text, absl::MaxSplits(':', 1));
  std::vector<absl::string_view> packing;
  for (const DelegateInfo& info : KnownDelegates()) {
    if (PackingIdentity(info.name).empty()) continue;
    packing.push_back(info.name);
    if (info.name != parts.first) continue;
    PackRequest request{parts.first, parts.second.empty() ? info.precisions[0] : parts.second};
    const std::vector<std::string> precisions = info.AllPrecisions();
    request.wants_samples = request.precision == kAutoPrecision || info.NeedsPlan(request.precision);
    if (request.wants_samples || absl::c_linear_search(precisions, request.precision)) return request;
    return absl::InvalidArgumentError(absl::StrCat("found precision '", request.precision, "', expected ",
                                                   absl::StrJoin(precisions, ", "), " or ", kAutoPrecision));
  }
  // A delegate whose library does not load has no identity.
  if (FindDelegateInfo(parts.first) != nullptr) {
    const absl::Status made = MakeDelegate(parts.first, {}).status();
    if (absl::IsNotFound(made) || absl::IsFailedPrecondition(made)) return made;
  }
  return absl::InvalidArgumentError(absl::StrCat("found delegate '", parts.first,
                                                 "', expected one that packs weights: ", absl::StrJoin(packing, ", "),
                                                 DidYouMean(parts.first, packing)));
}

absl::StatusOr<std::shared_ptr<const WeightCache>> PackWeights(const Graph& graph, const PackRequest& request,
                                                               absl::Span<const std::vector<Tensor>> samples,
                                                               absl::Span<const std::vector<Tensor>> calibration,
                                                               const SessionOptions& options, Console& console) {
  std::vector<std::string> feeds, fetches;
  for (const Endpoint& input : graph.inputs()) feeds.push_back(input.text);
  for (const Endpoint& output : graph.outputs()) fetches.push_back(output.text);
  DelegateOptions delegate;
  delegate.precision = request.precision;
  PackedMaker maker{"", request.delegate, PackingIdentity(request.delegate), request.precision, ""};
  if (request.wants_samples) {
    PF_ASSIGN_OR_RETURN(
        const PrecisionChoice choice,
        ChooseOnSamples(graph, graph.inputs(), graph.outputs(), calibration.empty() ? samples : calibration,
                        request.delegate, request.precision, ChoiceOptions().calibration, options));
    for (const PrecisionTrial& trial : choice.trials) {
      if (trial.precision != choice.precision) continue;
      if (trial.milliseconds == 0) {
        return absl::FailedPreconditionError(absl::StrCat("precision '", trial.precision, "': ", trial.reason));
      }
      if (!trial.is_within_budget) {
        console.err << "note: precision " << trial.precision
                    << " is beyond the budget of error: " << Printable(trial.reason) << "\n";
      }
    }
    delegate.precision = choice.precision;
    delegate.plan = choice.plan;
    maker.plan = PrecisionPlanBytes({"", request.delegate, choice.precision, choice.plan});
  }
  auto cache = std::make_shared<WeightCache>(std::move(maker));
  delegate.packed = cache;
  SessionOptions with_delegate = options;
  with_delegate.packed = cache;
  PF_ASSIGN_OR_RETURN(with_delegate.delegate, MakeDelegate(request.delegate, delegate));
  PF_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session,
                      Session::Create(graph, feeds, fetches, std::move(with_delegate)));
  for (const std::vector<Tensor>& sample : samples) {
    std::vector<Shape> shapes;
    for (const Tensor& tensor : sample) shapes.push_back(tensor.shape());
    PF_RETURN_IF_ERROR(session->Plan(shapes).status());
    PF_RETURN_IF_ERROR(CheckAllPacked(session->FullReport()));
  }
  if (cache->packed().entries == 0) {
    return absl::FailedPreconditionError(
        absl::StrCat("'", request.delegate, "' takes no part of the model that has weights to pack"));
  }
  return std::shared_ptr<const WeightCache>(std::move(cache));
}

}  // namespace permafrost
