// Runs the candidates, checks their outputs, and times them in alternation.
#include "tools/model/best_delegate.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "graph/base/status.h"
#include "runtime_check/checking/output_error.h"
#include "runtime_check/delegates/delegate_list.h"
#include "runtime_check/delegates/delegate_registry.h"
#include "tools/command_line/interruption.h"
#include "tools/model/run_options.h"

namespace permafrost {
namespace {

// As many as a choice of precision takes (runtime_check/precision/precision_choice.cc).
constexpr int kTimedRounds = 7;
constexpr size_t kMostSamples = 8;

struct Candidate {
  std::string name;
  std::shared_ptr<const Delegate> delegate;
  std::unique_ptr<Session> session;  // Null if it does not run, or is not within the budget.
  double milliseconds = 0;           // Minimum over the rounds.
  double relative_rms = 0;           // The largest of all outputs.
  std::string objection;
};

class Contest {
 public:
  Contest(const RunFlags& run, const ModelToRun& model, absl::Span<const std::vector<Tensor>> samples,
          const SessionOptions& session, Console& console)
      : model_(model), samples_(samples.subspan(0, kMostSamples)), session_(session), console_(console) {
    SetSwitches(run, &switches_);
    for (const Endpoint& input : model.inputs) feeds_.push_back(input.text);
    for (const Endpoint& output : model.outputs) fetches_.push_back(output.text);
  }

  absl::StatusOr<std::shared_ptr<const Delegate>> Run() {
    if (samples_.empty()) {
      return absl::InvalidArgumentError("--delegate=best is chosen with sample inputs: found none");
    }
    std::string all;
    int num_delegates = 0;
    for (const DelegateInfo& info : KnownDelegates()) {
      PF_RETURN_IF_ERROR(Add(info.name));
      const Candidate& added = candidates_.back();
      if (info.is_reference) {
        if (added.session == nullptr)
          return absl::InternalError(absl::StrCat("the model does not run: ", added.objection));
      } else if (added.session != nullptr) {
        absl::StrAppend(&all, info.name, ",");
        ++num_delegates;
      }
    }
    if (num_delegates > 1) {
      PF_RETURN_IF_ERROR(Add(absl::StrCat(all, kReferenceDelegate)));
      DropIfOneTakesAll(&candidates_.back());
    }
    PF_RETURN_IF_ERROR(Time());
    const Candidate* best = &candidates_[0];
    for (const Candidate& each : candidates_) {
      if (each.session != nullptr && each.milliseconds < best->milliseconds) best = &each;
    }
    for (const Candidate& each : candidates_) Print(each, &each == best);
    return best->delegate;
  }

 private:
  static absl::Status CheckInterruption() {
    return Interruption::IsRequested() ? absl::CancelledError("interrupted while delegates were tried")
                                       : absl::OkStatus();
  }

  // Adds a candidate. A problem of the candidate is its objection, not an error.
  absl::Status Add(std::string name) {
    PF_RETURN_IF_ERROR(CheckInterruption());
    Candidate& added = candidates_.emplace_back();
    added.name = std::move(name);
    const absl::Status status = Open(&added);
    if (!status.ok()) {
      added.session = nullptr;
      added.objection = std::string(status.message());
    }
    return CheckInterruption();
  }

  absl::Status Open(Candidate* candidate) {
    PF_ASSIGN_OR_RETURN(candidate->delegate, MakeDelegates(candidate->name, switches_));
    SessionOptions options = session_;
    options.delegate = candidate->delegate;
    PF_ASSIGN_OR_RETURN(candidate->session, Session::Create(model_.graph, feeds_, fetches_, std::move(options)));
    SampleOutputs outputs;
    for (const std::vector<Tensor>& sample : samples_) {
      PF_ASSIGN_OR_RETURN(outputs.emplace_back(), candidate->session->Run(sample));
    }
    if (candidate->delegate == nullptr) {
      expected_ = std::move(outputs);
      return absl::OkStatus();
    }
    const DelegationReport& delegation = candidate->session->FullReport().delegation;
    if (!delegation.failure.empty()) return absl::InternalError(delegation.failure);
    if (delegation.partitions.empty()) return absl::UnimplementedError("takes no part");
    const std::vector<OutputError> errors = CompareOutputs(expected_, outputs);
    for (size_t i = 0; i < errors.size(); ++i) {
      candidate->relative_rms = std::max(candidate->relative_rms, errors[i].relative());
      if (!errors[i].is_comparable() || errors[i].has_other_class() || errors[i].ShareOf(AccuracyBudget()) > 1) {
        return absl::FailedPreconditionError(absl::StrFormat(
            "output '%s' is beyond the budget: rms error %.2g of its rms", fetches_[i], errors[i].relative()));
      }
    }
    return absl::OkStatus();
  }

  // All delegates together are no candidate of their own where one of them runs everything.
  static void DropIfOneTakesAll(Candidate* candidate) {
    if (candidate->session == nullptr) return;
    const PlanReport report = candidate->session->FullReport();
    const auto& partitions = report.delegation.partitions;
    const bool is_one = std::all_of(partitions.begin(), partitions.end(), [&](const DelegationReport::Taken& taken) {
      return taken.delegate == partitions[0].delegate;
    });
    if (!is_one) return;
    candidate->session = nullptr;
    candidate->objection = absl::StrCat("the estimate gives every part to ", partitions[0].delegate);
  }

  absl::Status Time() {
    for (int round = 0; round < kTimedRounds; ++round) {
      for (Candidate& candidate : candidates_) {
        if (candidate.session == nullptr) continue;
        PF_RETURN_IF_ERROR(CheckInterruption());
        // The first run starts with the caches that the candidate before left.
        for (int i = 0; i < 2; ++i) {
          const absl::Time start = absl::Now();
          PF_RETURN_IF_ERROR(candidate.session->Run(samples_[0]).status());
          const double time = absl::ToDoubleMilliseconds(absl::Now() - start);
          if (candidate.milliseconds == 0 || time < candidate.milliseconds) candidate.milliseconds = time;
        }
      }
    }
    return absl::OkStatus();
  }

  void Print(const Candidate& candidate, bool is_best) const {
    console_.err << "delegate " << candidate.name << ": ";
    if (candidate.session == nullptr) {
      console_.err << Printable(candidate.objection) << "\n";
      return;
    }
    console_.err << FormatSeconds(candidate.milliseconds / 1000);
    if (candidate.delegate != nullptr) {
      console_.err << ", largest rms error " << absl::StrFormat("%.2g", candidate.relative_rms)
                   << " of an output's rms";
    }
    console_.err << (is_best ? "; chosen\n" : "\n");
  }

  const ModelToRun& model_;
  const absl::Span<const std::vector<Tensor>> samples_;
  const SessionOptions& session_;
  Console& console_;
  DelegateOptions switches_;
  std::vector<std::string> feeds_, fetches_;
  SampleOutputs expected_;
  std::vector<Candidate> candidates_;
};

}  // namespace

absl::StatusOr<std::shared_ptr<const Delegate>> ChooseBestDelegate(const RunFlags& run, const ModelToRun& model,
                                                                   absl::Span<const std::vector<Tensor>> samples,
                                                                   const SessionOptions& session, Console& console) {
  return Contest(run, model, samples, session, console).Run();
}

}  // namespace permafrost
