// Finds who computes: delegates and kernels, built in or from shared libraries, and the precision.
#include "tools/model/run_flags.h"

#include <algorithm>
#include <string>
#include <thread>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "graph/status.h"
#include "runtime_check/custom_ops.h"
#include "runtime_check/delegate_registry.h"
#include "runtime_check/delegates/external/external_delegate.h"
#include "runtime_check/precision_choice.h"
#include "tools/model/precision_plan_file.h"
#include "tools/model/run_options.h"

namespace permafrost {
namespace {

constexpr absl::string_view kAuto = "auto";
// More would make the choice slow and hardly better.
constexpr size_t kMostSamples = 8;

bool IsLibrary(const std::string& name) { return absl::StrContains(name, '/') || absl::EndsWith(name, ".so"); }

// Whether the precision depends on the model and its inputs: SettlePrecision then makes the delegate.
bool IsSettledLater(const RunFlags& run) {
  if (run.precision == kAuto) return true;
  for (const DelegateInfo& info : KnownDelegates()) {
    const std::vector<std::string>& planned = info.planned_precisions;
    if (info.name == run.delegate) return std::find(planned.begin(), planned.end(), run.precision) != planned.end();
  }
  return false;
}

absl::StatusOr<std::shared_ptr<const Delegate>> FindDelegate(const RunFlags& run) {
  const std::string& name = run.delegate;
  if (IsLibrary(name)) {
    absl::StatusOr<std::shared_ptr<const Delegate>> loaded = LoadExternalDelegate(name);
    PF_RETURN_IF_ERROR(Annotate(loaded.status(), "--delegate"));
    return loaded;
  }
  DelegateOptions options;
  if (!run.precision.empty() && !IsSettledLater(run)) options.precision = run.precision;
  absl::StatusOr<std::shared_ptr<const Delegate>> made = MakeDelegate(name, options);
  PF_RETURN_IF_ERROR(Annotate(made.status(), "--delegate"));
  return made;
}

// InvalidArgument for a precision that the delegate does not have. A name that nobody knows is for FindDelegate.
absl::Status CheckPrecision(const std::string& name, const std::string& precision) {
  if (precision.empty()) return absl::OkStatus();
  if (IsLibrary(name)) {
    return absl::InvalidArgumentError(absl::StrCat("--precision: found '", precision, "' with the shared library '",
                                                   name,
                                                   "', expected none: a library decides itself what it computes with"));
  }
  for (const DelegateInfo& info : KnownDelegates()) {
    if (info.name != name) continue;
    std::vector<std::string> precisions = info.precisions;
    precisions.insert(precisions.end(), info.planned_precisions.begin(), info.planned_precisions.end());
    if (name != "reference") precisions.emplace_back(kAuto);
    if (std::find(precisions.begin(), precisions.end(), precision) != precisions.end()) break;
    return absl::InvalidArgumentError(absl::StrCat("--precision: found '", precision, "', expected what --delegate=",
                                                   name, " has: ", absl::StrJoin(precisions, ", ")));
  }
  return absl::OkStatus();
}

// One line: what was measured, or why nothing was; then, if asked for, what the plan is like.
void PrintTrial(const PrecisionTrial& trial, bool is_chosen, bool explain, Console& console) {
  console.err << "precision " << trial.precision << ": ";
  if (trial.milliseconds > 0) {
    console.err << FormatSeconds(trial.milliseconds / 1000) << ", largest rms error "
                << absl::StrFormat("%.2g", trial.worst_relative_rms) << " of an output's rms";
    if (!trial.is_within_budget) console.err << "; beyond the budget: ";
  } else {
    console.err << "does not run: ";
  }
  console.err << Printable(trial.reason) << (is_chosen ? "; chosen" : "") << "\n";
  for (const std::string& note : trial.notes) {
    if (explain) console.err << "  " << Printable(note) << "\n";
  }
}

absl::StatusOr<std::string> UseSavedPlan(const RunFlags& run, const Graph& graph, FileSystem& files, SessionOptions* chosen,
                          Console& console) {
  PF_ASSIGN_OR_RETURN(const std::string text, files.ReadFile(run.precision_plan));
  PF_ASSIGN_OR_RETURN(const SavedPlan saved, ParsePrecisionPlan(text));
  const auto check = [](absl::string_view what, absl::string_view found, absl::string_view expected) {
    if (found == expected) return absl::OkStatus();
    return absl::FailedPreconditionError(absl::StrCat("precision plan: found ", what, " '", found, "', expected '",
                                                      expected, "'; remove the file to have it made again"));
  };
  PF_RETURN_IF_ERROR(check("the model", saved.model, ModelFingerprint(graph)));
  PF_RETURN_IF_ERROR(check("the delegate", saved.delegate, run.delegate));
  if (run.precision != kAuto) PF_RETURN_IF_ERROR(check("the precision", saved.precision, run.precision));
  PF_ASSIGN_OR_RETURN(chosen->delegate, MakeDelegate(run.delegate, {saved.precision, saved.plan}));
  console.err << "precision " << saved.precision << ": as '" << Printable(run.precision_plan) << "' says\n";
  return saved.precision;
}

}  // namespace

void AddRunFlags(RunFlags* run, FlagTable* flags) {
  std::vector<std::string> names;
  for (const DelegateInfo& info : KnownDelegates()) names.push_back(info.name);
  flags->Add(
      "delegate", &run->delegate, "NAME",
      absl::StrCat("Who computes as much of the model as it can; the built-in kernels compute the rest: ",
                   absl::StrJoin(names, ", "), ", or the path of a shared library (docs/writing_a_delegate.md)."));
  flags->Add(
      "precision", &run->precision, "NAME",
      "What the delegate computes with: f32, bf16, int8, mixed, or auto. int8 and mixed are planned with the inputs: "
      "int8 is eight bits wherever they are possible, mixed the fastest choice for each part of the model that stays "
      "inside the budget. auto measures all of them on the inputs, and takes the fastest of those inside the budget: "
      "the rms error of each output within 3 % of its rms (or within 1e-4) and the likeliest class of each row as it "
      "is. Left out: f32.");
  flags->Add("calibration", &run->calibration, "METHOD",
             absl::StrCat("How int8 and mixed find the range of values that eight bits tell apart: ",
                          absl::StrJoin(RangeMethodNames(), ", "), "."));
  flags->Add("precision_plan", &run->precision_plan, "FILE",
             "Where what auto, int8 or mixed settled on is kept: read if the file is there, else written.");
  flags->Add("custom_ops", &run->custom_ops, "FILES",
             "Shared libraries with kernels for own ops, or faster ones for known ops, separated by commas "
             "(docs/writing_a_custom_op.md).");
  flags->Add("threads", &run->threads, "N", "Threads to compute with; 0: one for each core.");
  flags->Add("explain", &run->explain,
             "Say what the delegate runs and as which pieces, and why it leaves the rest to the built-in kernels.");
}

absl::StatusOr<RunOptions> MakeRunOptions(const RunFlags& run, FileSystem& files) {
  if (run.threads < 0) {
    return absl::InvalidArgumentError(absl::StrCat("--threads: found ", run.threads, ", expected at least 0"));
  }
  if (!run.precision_plan.empty() && !IsSettledLater(run)) {
    return absl::InvalidArgumentError(absl::StrCat("--precision_plan: found '", run.precision_plan,
                                                   "' with --precision=", run.precision,
                                                   ", expected none: only auto, int8 and mixed settle on something"));
  }
  const int num_threads = run.threads > 0 ? run.threads : static_cast<int>(std::thread::hardware_concurrency());
  RunOptions options;
  options.reference = ToolSessionOptions(std::max(1, num_threads), files);
  options.chosen = options.reference;
  PF_RETURN_IF_ERROR(CheckPrecision(run.delegate, run.precision));
  PF_RETURN_IF_ERROR(Annotate(RangeMethodOf(run.calibration).status(), "--calibration"));
  PF_ASSIGN_OR_RETURN(options.chosen.delegate, FindDelegate(run));
  std::vector<std::string> paths;
  for (const std::string& list : run.custom_ops) {
    for (std::string& path : SplitList(list)) paths.push_back(std::move(path));
  }
  if (paths.empty()) return options;
  absl::StatusOr<CustomOps> ops = LoadCustomOps(paths);
  PF_RETURN_IF_ERROR(Annotate(ops.status(), "--custom_ops"));
  options.reference.kernel_lookup = std::move(ops->kernels_of_new_ops);
  options.chosen.kernel_lookup = std::move(ops->kernels);
  return options;
}

absl::StatusOr<std::string> SettlePrecision(const RunFlags& run, const Graph& graph, absl::Span<const Endpoint> inputs,
                                            absl::Span<const Endpoint> outputs,
                                            absl::Span<const std::vector<Tensor>> samples, FileSystem& files,
                                            SessionOptions* chosen, Console& console) {
  if (!IsSettledLater(run)) return run.precision.empty() ? "f32" : run.precision;
  const bool is_kept = !run.precision_plan.empty();
  if (is_kept && files.Exists(run.precision_plan)) {
    absl::StatusOr<std::string> saved = UseSavedPlan(run, graph, files, chosen, console);
    if (!saved.ok()) return Annotate(saved.status(), absl::StrCat("'", run.precision_plan, "'"));
    return saved;
  }
  std::vector<std::string> feeds, fetches;
  for (const Endpoint& input : inputs) feeds.push_back(input.text);
  for (const Endpoint& output : outputs) fetches.push_back(output.text);
  SessionOptions plain = *chosen;
  plain.delegate = nullptr;
  ChoiceOptions options;
  PF_ASSIGN_OR_RETURN(options.calibration, RangeMethodOf(run.calibration));
  if (run.precision != kAuto) options.precisions = {run.precision};
  PF_ASSIGN_OR_RETURN(const PrecisionChoice choice,
                      ChoosePrecision(graph, feeds, fetches, samples.subspan(0, std::min(kMostSamples, samples.size())),
                                      run.delegate, plain, options));
  for (const PrecisionTrial& trial : choice.trials) {
    PrintTrial(trial, trial.precision == choice.precision, run.explain, console);
    if (run.precision != kAuto && trial.milliseconds == 0) {
      return absl::FailedPreconditionError(absl::StrCat("--precision=", run.precision, ": ", trial.reason));
    }
  }
  PF_ASSIGN_OR_RETURN(chosen->delegate, MakeDelegate(run.delegate, {choice.precision, choice.plan}));
  if (!is_kept) return choice.precision;
  const std::string text = PrecisionPlanText({ModelFingerprint(graph), run.delegate, choice.precision, choice.plan});
  PF_ASSIGN_OR_RETURN(const std::unique_ptr<FileWriter> writer, files.NewWriter(run.precision_plan, text.size()));
  PF_RETURN_IF_ERROR(writer->Append(text));
  PF_RETURN_IF_ERROR(writer->Commit());
  return choice.precision;
}

}  // namespace permafrost
