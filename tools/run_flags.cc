// Finds who computes: delegates and kernels, built in or from shared libraries, and the precision.
#include "tools/run_flags.h"

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
#include "tools/run_options.h"

namespace permafrost {
namespace {

constexpr absl::string_view kAuto = "auto";
// More would make the choice slow and hardly better.
constexpr size_t kMostSamples = 8;

bool IsLibrary(const std::string& name) { return absl::StrContains(name, '/') || absl::EndsWith(name, ".so"); }

absl::StatusOr<std::shared_ptr<const Delegate>> FindDelegate(const std::string& name, const std::string& precision) {
  if (IsLibrary(name)) {
    absl::StatusOr<std::shared_ptr<const Delegate>> loaded = LoadExternalDelegate(name);
    PF_RETURN_IF_ERROR(Annotate(loaded.status(), "--delegate"));
    return loaded;
  }
  DelegateOptions options;
  if (!precision.empty() && precision != kAuto) options.precision = precision;
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
    if (name != "reference") precisions.emplace_back(kAuto);
    if (std::find(precisions.begin(), precisions.end(), precision) != precisions.end()) break;
    return absl::InvalidArgumentError(absl::StrCat("--precision: found '", precision, "', expected what --delegate=",
                                                   name, " has: ", absl::StrJoin(precisions, ", ")));
  }
  return absl::OkStatus();
}

// One line: what was measured, or why nothing was.
void PrintTrial(const PrecisionTrial& trial, bool is_chosen, Console& console) {
  console.err << "precision " << trial.precision << ": ";
  if (trial.milliseconds > 0) {
    console.err << FormatSeconds(trial.milliseconds / 1000) << ", largest rms error "
                << absl::StrFormat("%.2g", trial.worst_relative_rms) << " of an output's rms";
    if (!trial.is_within_budget) console.err << "; beyond the budget: ";
  } else {
    console.err << "does not run: ";
  }
  console.err << Printable(trial.reason) << (is_chosen ? "; chosen" : "") << "\n";
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
      "What the delegate computes with: f32, bf16, or auto. auto measures on the inputs, and takes the fastest of "
      "those that keep the rms error of each output within 3 % of its rms (or within 1e-4) and the likeliest "
      "class of each row as it is. Left out: f32.");
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
  const int num_threads = run.threads > 0 ? run.threads : static_cast<int>(std::thread::hardware_concurrency());
  RunOptions options;
  options.reference = ToolSessionOptions(std::max(1, num_threads), files);
  options.chosen = options.reference;
  PF_RETURN_IF_ERROR(CheckPrecision(run.delegate, run.precision));
  PF_ASSIGN_OR_RETURN(options.chosen.delegate, FindDelegate(run.delegate, run.precision));
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

absl::Status SettlePrecision(const RunFlags& run, const Graph& graph, absl::Span<const Endpoint> inputs,
                             absl::Span<const Endpoint> outputs, absl::Span<const std::vector<Tensor>> samples,
                             SessionOptions* chosen, Console& console) {
  if (run.precision != kAuto) return absl::OkStatus();
  std::vector<std::string> feeds, fetches;
  for (const Endpoint& input : inputs) feeds.push_back(input.text);
  for (const Endpoint& output : outputs) fetches.push_back(output.text);
  SessionOptions plain = *chosen;
  plain.delegate = nullptr;
  PF_ASSIGN_OR_RETURN(const PrecisionChoice choice,
                      ChoosePrecision(graph, feeds, fetches, samples.subspan(0, std::min(kMostSamples, samples.size())),
                                      run.delegate, plain));
  for (const PrecisionTrial& trial : choice.trials) {
    PrintTrial(trial, trial.precision == choice.precision, console);
  }
  DelegateOptions options;
  options.precision = choice.precision;
  PF_ASSIGN_OR_RETURN(chosen->delegate, MakeDelegate(run.delegate, options));
  return absl::OkStatus();
}

}  // namespace permafrost
