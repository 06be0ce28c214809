// Runs the samples in each precision, and compares outputs and times.
#include "runtime_check/precision/precision_choice.h"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "graph/base/status.h"
#include "runtime_check/delegate.h"
#include "runtime_check/delegates/delegate_list.h"
#include "runtime_check/delegates/delegate_registry.h"
#include "runtime_check/precision/calibration.h"
#include "runtime_check/precision/precision_search.h"

namespace permafrost {
namespace {

constexpr int kTimedRounds = 7;
// Number of runs in a profile; enough to compare the precisions at each node.
constexpr int kProfiledRuns = 5;

constexpr char kMixed[] = "mixed";

absl::StatusOr<SampleOutputs> RunAll(Session* session, absl::Span<const std::vector<Tensor>> samples) {
  SampleOutputs outputs;
  for (const std::vector<Tensor>& sample : samples) {
    PF_ASSIGN_OR_RETURN(outputs.emplace_back(), session->Run(sample));
  }
  return outputs;
}

// Returns a list such as "a, b and 3 more".
std::string ListOf(const std::vector<std::string>& names) {
  constexpr size_t kMost = 6;
  const size_t shown = std::min(kMost, names.size());
  std::string list =
      absl::StrJoin(names.begin(), names.begin() + static_cast<ptrdiff_t>(shown), ", ",
                    [](std::string* out, const std::string& name) { absl::StrAppend(out, "'", name, "'"); });
  if (names.size() > shown) absl::StrAppend(&list, " and ", names.size() - shown, " more");
  return list;
}

class Chooser {
 public:
  Chooser(const Graph& graph, absl::Span<const std::string> feeds, absl::Span<const std::string> fetches,
          absl::Span<const std::vector<Tensor>> samples, const std::string& name, const SessionOptions& session_options,
          const ChoiceOptions& options)
      : graph_(graph),
        feeds_(feeds),
        fetches_(fetches),
        samples_(samples),
        name_(name),
        session_options_(session_options),
        options_(options) {}

  absl::StatusOr<PrecisionChoice> Run() {
    if (samples_.empty()) {
      return absl::InvalidArgumentError("precision 'auto' is chosen with sample inputs: found none");
    }
    PF_RETURN_IF_ERROR(FindPrecisions());
    PF_ASSIGN_OR_RETURN(std::unique_ptr<Session> reference,
                        Session::Create(graph_, feeds_, fetches_, session_options_));
    PF_ASSIGN_OR_RETURN(expected_, RunAll(reference.get(), samples_));
    reference.reset();
    PrecisionChoice choice;
    std::vector<std::unique_ptr<Session>> sessions;
    for (const std::string& precision : precisions_) {
      PrecisionTrial& trial = choice.trials.emplace_back();
      trial.precision = precision;
      absl::StatusOr<std::unique_ptr<Session>> session = Try(&trial);
      PF_RETURN_IF_ERROR(CheckCancelled());
      if (!session.ok()) {
        trial.is_within_budget = false;
        trial.reason = std::string(session.status().message());
      }
      sessions.push_back(session.ok() ? *std::move(session) : nullptr);
    }
    PF_RETURN_IF_ERROR(Time(&sessions, &choice.trials));
    const PrecisionTrial* best = nullptr;
    for (const PrecisionTrial& trial : choice.trials) {
      if (!trial.is_within_budget) continue;
      if (best == nullptr || trial.milliseconds < best->milliseconds) best = &trial;
    }
    if (best == nullptr) best = &choice.trials[0];
    choice.precision = best->precision;
    choice.plan = best->plan;
    return choice;
  }

 private:
  absl::Status CheckCancelled() const {
    const std::function<bool()>& is_cancelled = session_options_.loop_limits.is_cancelled;
    return is_cancelled != nullptr && is_cancelled() ? absl::CancelledError("interrupted while precisions were tried")
                                                     : absl::OkStatus();
  }

  absl::Status FindPrecisions() {
    if (IsDelegateList(name_)) {
      precisions_ = {DelegateOptions().precision};
      return absl::OkStatus();
    }
    delegate_ = FindDelegateInfo(name_);
    if (delegate_ == nullptr) return MakeDelegate(name_, {}).status();
    const std::vector<std::string> known = delegate_->AllPrecisions();
    for (const std::string& wanted : options_.precisions) {
      if (std::find(known.begin(), known.end(), wanted) != known.end()) continue;
      return absl::InvalidArgumentError(absl::StrCat("delegate '", name_, "': found precision '", wanted,
                                                     "', expected ", absl::StrJoin(known, ", ")));
    }
    precisions_ = options_.precisions.empty() ? known : options_.precisions;
    return absl::OkStatus();
  }

  absl::StatusOr<std::unique_ptr<Session>> Open(const std::string& precision, std::shared_ptr<const PrecisionPlan> plan,
                                                PieceCallback on_piece = nullptr) const {
    DelegateOptions delegate_options = options_.delegate;
    delegate_options.precision = precision;
    delegate_options.plan = std::move(plan);
    delegate_options.packed = {};
    SessionOptions session_options = session_options_;
    session_options.on_piece = std::move(on_piece);
    PF_ASSIGN_OR_RETURN(session_options.delegate, MakeDelegates(name_, delegate_options));
    return Session::Create(graph_, feeds_, fetches_, std::move(session_options));
  }

  absl::StatusOr<std::unique_ptr<Session>> Try(PrecisionTrial* trial) {
    if (delegate_ != nullptr && delegate_->NeedsPlan(trial->precision)) {
      PF_RETURN_IF_ERROR(PlanTrial(trial));
    }
    PF_ASSIGN_OR_RETURN(std::unique_ptr<Session> session, Open(trial->precision, trial->plan));
    PF_ASSIGN_OR_RETURN(const SampleOutputs actual, RunAll(session.get(), samples_));
    const std::string& failure = session->report().delegation.failure;
    if (!failure.empty()) return absl::InternalError(failure);
    Judge(CompareOutputs(expected_, actual), trial);
    return session;
  }

  void Judge(const std::vector<OutputError>& errors, PrecisionTrial* trial) const {
    const AccuracyBudget& budget = options_.budget;
    trial->is_within_budget = true;
    const auto refuse = [&](std::string reason) {
      if (trial->is_within_budget) trial->reason = std::move(reason);
      trial->is_within_budget = false;
    };
    for (size_t i = 0; i < errors.size(); ++i) {
      const OutputError& error = errors[i];
      trial->worst_relative_rms = std::max(trial->worst_relative_rms, error.relative());
      if (!error.is_comparable()) refuse(absl::StrCat("output '", fetches_[i], "' is not what it was"));
      if (error.has_other_class()) refuse(absl::StrCat("output '", fetches_[i], "' has its largest elsewhere"));
      if (error.relative() <= budget.relative_rms || error.rms() <= budget.absolute_rms) continue;
      refuse(absl::StrCat("output '", fetches_[i], "': found rms error ", error.rms(), ", ", error.relative(),
                          " of its rms, expected at most ", budget.absolute_rms, " or ", budget.relative_rms));
    }
  }

  // Times the sessions in turn, so that other load on the machine affects all of them.
  absl::Status Time(std::vector<std::unique_ptr<Session>>* sessions, std::vector<PrecisionTrial>* trials) const {
    for (int round = 0; round < kTimedRounds; ++round) {
      for (size_t i = 0; i < sessions->size(); ++i) {
        if ((*sessions)[i] == nullptr) continue;
        PF_RETURN_IF_ERROR(CheckCancelled());
        // The first run starts with the caches left by the previous session; the second one is the warm run.
        for (int run = 0; run < 2; ++run) {
          const absl::Time start = absl::Now();
          PF_RETURN_IF_ERROR((*sessions)[i]->Run(samples_[0]).status());
          const double time = absl::ToDoubleMilliseconds(absl::Now() - start);
          double& least = (*trials)[i].milliseconds;
          if (least == 0 || time < least) least = time;
        }
      }
    }
    return absl::OkStatus();
  }

  // Determines, once for all trials, the nodes that the delegate supports and the statistics of their values.
  absl::Status Prepare() {
    if (base_.has_value()) return absl::OkStatus();
    PF_ASSIGN_OR_RETURN(std::unique_ptr<Session> session, Open("f32", nullptr));
    std::vector<Shape> shapes;
    for (const Tensor& feed : samples_[0]) shapes.push_back(feed.shape());
    PF_RETURN_IF_ERROR(session->Plan(shapes).status());
    report_ = session->FullReport().delegation;
    session.reset();
    const auto inputs = options_.calibrate_on.empty() ? samples_ : absl::MakeConstSpan(options_.calibrate_on);
    PrecisionPlan base;
    PF_ASSIGN_OR_RETURN(base.tensors,
                        Calibrate(graph_, feeds_, inputs, report_, options_.calibration, session_options_));
    base_ = std::move(base);
    return absl::OkStatus();
  }

  // Returns OK if the processor supports the precision.
  absl::Status Has(Precision precision) const {
    auto plan = std::make_shared<PrecisionPlan>();
    plan->precision = precision;
    return MakeDelegate(name_, {kMixed, std::move(plan), nullptr}).status();
  }

  absl::Status PlanTrial(PrecisionTrial* trial) {
    PF_RETURN_IF_ERROR(Has(trial->precision == kMixed ? Precision::kBf16 : Precision::kInt8));
    PF_RETURN_IF_ERROR(Prepare());
    if (trial->precision != kMixed) {
      trial->plan = std::make_shared<const PrecisionPlan>(EightBitPlan(graph_, report_, *base_));
      trial->notes.push_back(
          absl::StrCat("calibrated ", base_->tensors.size(), " tensors; the first and the last layer ", "in bf16"));
      return absl::OkStatus();
    }
    std::vector<Precision> narrow;
    for (const Precision precision : kPrecisions) {
      if (precision != Precision::kF32 && Has(precision).ok()) narrow.push_back(precision);
    }
    PF_ASSIGN_OR_RETURN(SearchResult found, SearchPlan(graph_, report_, *base_, narrow, options_.search_seconds,
                                                       [&](const std::shared_ptr<const PrecisionPlan>& plan,
                                                           bool with_times) { return Measure(plan, with_times); }));
    for (const Precision precision : kPrecisions) {
      std::vector<std::string> layers;
      for (const PlanSection& section : found.sections) {
        if (section.precision == precision) {
          layers.insert(layers.end(), section.layers.begin(), section.layers.end());
        }
      }
      if (layers.empty()) continue;
      trial->notes.push_back(absl::StrCat(NameOf(precision), ": ", layers.size(),
                                          layers.size() == 1 ? " layer, " : " layers, ", ListOf(layers)));
    }
    trial->notes.push_back(absl::StrCat("found with ", found.measurements, " measurements"));
    trial->plan = std::make_shared<const PrecisionPlan>(std::move(found.plan));
    return absl::OkStatus();
  }

  absl::StatusOr<PlanMeasurement> Measure(const std::shared_ptr<const PrecisionPlan>& plan, bool with_times) const {
    PF_RETURN_IF_ERROR(CheckCancelled());
    PlanMeasurement measured;
    PF_ASSIGN_OR_RETURN(std::unique_ptr<Session> session, Open(kMixed, plan));
    PF_ASSIGN_OR_RETURN(const SampleOutputs actual, RunAll(session.get(), samples_));
    for (const OutputError& error : CompareOutputs(expected_, actual)) {
      measured.shares.push_back(error.ShareOf(options_.budget));
      measured.has_other_class = measured.has_other_class || error.has_other_class();
    }
    if (!with_times) return measured;
    std::map<std::string, double> least;  // By piece.
    PF_ASSIGN_OR_RETURN(session, Open(kMixed, plan, [&](absl::string_view piece, absl::Duration duration) {
                          const double seconds = absl::ToDoubleSeconds(duration);
                          const auto [known, is_new] = least.emplace(std::string(piece), seconds);
                          if (!is_new) known->second = std::min(known->second, seconds);
                        }));
    for (int i = 0; i <= kProfiledRuns; ++i) PF_RETURN_IF_ERROR(session->Run(samples_[0]).status());
    for (const auto& [piece, seconds] : least) {
      measured.times.emplace_back(piece.substr(0, piece.find(": ")), seconds);
    }
    return measured;
  }

  const Graph& graph_;
  const absl::Span<const std::string> feeds_, fetches_;
  const absl::Span<const std::vector<Tensor>> samples_;
  const std::string& name_;
  const SessionOptions& session_options_;
  const ChoiceOptions& options_;
  const DelegateInfo* delegate_ = nullptr;  // Describes name_; null for an unknown name.
  std::vector<std::string> precisions_;
  SampleOutputs expected_;
  DelegationReport report_;
  std::optional<PrecisionPlan> base_;  // Contains only statistics.
};

}  // namespace

absl::StatusOr<PrecisionChoice> ChoosePrecision(const Graph& graph, absl::Span<const std::string> feeds,
                                                absl::Span<const std::string> fetches,
                                                absl::Span<const std::vector<Tensor>> samples, const std::string& name,
                                                const SessionOptions& session_options, const ChoiceOptions& options) {
  return Chooser(graph, feeds, fetches, samples, name, session_options, options).Run();
}

}  // namespace permafrost
