// Reads, chooses and writes precisions and their plans.
#include "tools/model/precision_resolution.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "graph/base/content_hash.h"
#include "graph/base/status.h"
#include "io/checked_files.h"
#include "runtime_check/delegates/delegate_registry.h"
#include "runtime_check/packing/precision_plan_bytes.h"
#include "tools/model/kept_weights.h"
#include "tools/model/precision_plan_file.h"
#include "tools/model/precision_request.h"
#include "tools/model/run_options.h"

namespace permafrost {
namespace {

// Prints one line: the measurement, or why there is none; then, if requested, notes on the plan.
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

// The file given by the user is readable text; a file in --cache_dir is binary, for a fast start.
absl::StatusOr<ResolvedPrecision> ReadPrecisionPlan(const RunFlags& run, const std::string& path,
                                                    const std::string& fingerprint, FileSystem& files,
                                                    Console& console) {
  const bool is_cached = run.precision_plan.empty();
  PF_ASSIGN_OR_RETURN(const FileView file, is_cached ? MapOwnFile(files, path) : files.MapFile(path));
  PF_ASSIGN_OR_RETURN(const PrecisionPlanRecord record,
                      is_cached ? ParsePrecisionPlanBytes(file.bytes) : ParsePrecisionPlan(file.bytes));
  const auto check = [](absl::string_view what, absl::string_view found, absl::string_view expected) {
    if (found == expected) return absl::OkStatus();
    return absl::FailedPreconditionError(absl::StrCat("precision plan: found ", what, " '", found, "', expected '",
                                                      expected, "'; remove the file to have it made again"));
  };
  PF_RETURN_IF_ERROR(check("the model", record.model, fingerprint));
  PF_RETURN_IF_ERROR(check("the delegate", record.delegate, run.delegate));
  if (run.precision != kAutoPrecision) PF_RETURN_IF_ERROR(check("the precision", record.precision, run.precision));
  console.err << "precision " << record.precision << ": as '" << Printable(path) << "' says\n";
  return ResolvedPrecision{record.precision, record.plan};
}

absl::Status WritePrecisionPlan(const RunFlags& run, const std::string& path, const std::string& fingerprint,
                                const ResolvedPrecision& resolved, FileSystem& files) {
  const PrecisionPlanRecord record{fingerprint, run.delegate, resolved.precision, resolved.plan};
  const bool is_cached = run.precision_plan.empty();
  const std::string text = is_cached ? PrecisionPlanBytes(record) : PrecisionPlanText(record);
  PF_ASSIGN_OR_RETURN(const std::unique_ptr<FileWriter> writer,
                      is_cached ? NewOwnWriter(files, path, text.size()) : files.NewWriter(path, text.size()));
  PF_RETURN_IF_ERROR(writer->Append(text));
  return writer->Commit();
}

absl::StatusOr<ResolvedPrecision> Choose(const RunFlags& run, const ModelToRun& model,
                                         absl::Span<const std::vector<Tensor>> samples, const SessionOptions& chosen,
                                         Console& console) {
  PF_ASSIGN_OR_RETURN(const RangeMethod calibration, RangeMethodOf(run.calibration));
  DelegateOptions switches;
  SetSwitches(run, &switches);
  PF_ASSIGN_OR_RETURN(const PrecisionChoice choice,
                      ChooseOnSamples(model.graph, model.inputs, model.outputs, samples, run.delegate, run.precision,
                                      calibration, chosen, switches));
  for (const PrecisionTrial& trial : choice.trials) {
    PrintTrial(trial, trial.precision == choice.precision, run.explain, console);
    if (run.precision != kAutoPrecision && trial.milliseconds == 0) {
      return absl::FailedPreconditionError(absl::StrCat("--precision=", run.precision, ": ", trial.reason));
    }
  }
  return ResolvedPrecision{choice.precision, choice.plan};
}

// Returns the path of the plan in --cache_dir for these samples. The choice of auto depends on the machine and on the
// number of threads, too.
std::string CachedPlanPath(const RunFlags& run, const ModelToRun& model, absl::Span<const std::vector<Tensor>> samples,
                           int num_threads, const std::string& fingerprint) {
  ContentHash hash;
  for (const std::string& text : {run.delegate, run.calibration, PackingIdentity(run.delegate)}) hash.Add(text);
  for (const auto* ends : {&model.inputs, &model.outputs}) {
    for (const Endpoint& end : *ends) hash.Add(end.text);
  }
  for (const std::vector<Tensor>& sample : samples) {
    for (const Tensor& tensor : sample) {
      hash.Add(tensor.shape().ToString());
      hash.Add(tensor.bytes());
      if (tensor.dtype() != DType::kString) continue;
      for (const std::string& text : tensor.strings()) hash.Add(text);
    }
  }
  hash.AddWord(static_cast<uint64_t>(num_threads));
  return absl::StrFormat("%s/%s-%s-%016x.plan", run.cache_dir, fingerprint, run.precision, hash.value());
}

}  // namespace

absl::StatusOr<ResolvedPrecision> ResolvePrecision(const RunFlags& run, const ModelToRun& model,
                                                   absl::Span<const std::vector<Tensor>> samples,
                                                   const std::string& fingerprint, const std::string& cache_dir,
                                                   const SessionOptions& session, FileSystem& files, Console& console) {
  const bool is_named = !run.precision_plan.empty();
  const std::string path = is_named            ? run.precision_plan
                           : cache_dir.empty() ? ""
                                               : CachedPlanPath(run, model, samples, session.num_threads, fingerprint);
  if (!path.empty() && files.Exists(path)) {
    absl::StatusOr<ResolvedPrecision> stored = ReadPrecisionPlan(run, path, fingerprint, files, console);
    if (stored.ok()) return stored;
    const absl::Status error = Annotate(stored.status(), absl::StrCat("'", path, "'"));
    if (is_named) return error;
    PrintNotes({absl::StrCat("not used, and made again: ", error.message())}, console);
  }
  PF_ASSIGN_OR_RETURN(ResolvedPrecision resolved, Choose(run, model, samples, session, console));
  if (is_named) PF_RETURN_IF_ERROR(WritePrecisionPlan(run, path, fingerprint, resolved, files));
  if (is_named || path.empty()) return resolved;
  absl::Status written = files.MakeDirectory(cache_dir);
  if (written.ok()) written = WritePrecisionPlan(run, path, fingerprint, resolved, files);
  if (!written.ok()) PrintNotes({absl::StrCat("--cache_dir: ", written.message())}, console);
  return resolved;
}

}  // namespace permafrost
