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
#include "graph/base/content_hash.h"
#include "graph/base/status.h"
#include "io/byte_source.h"
#include "io/model_file.h"
#include "runtime_check/custom_ops/custom_ops.h"
#include "runtime_check/delegates/delegate_registry.h"
#include "runtime_check/delegates/external/external_delegate.h"
#include "runtime_check/packing/packed_region.h"
#include "runtime_check/packing/precision_plan_bytes.h"
#include "runtime_check/threads/processors.h"
#include "tools/model/precision_plan_file.h"
#include "tools/model/precision_request.h"
#include "tools/model/processor_list.h"
#include "tools/model/run_options.h"

namespace permafrost {
namespace {

bool IsLibrary(const std::string& name) { return absl::StrContains(name, '/') || absl::EndsWith(name, ".so"); }

// Whether the precision depends on the model and its inputs: SettleDelegate then makes the delegate.
bool IsSettledLater(const RunFlags& run) {
  if (run.precision == kAutoPrecision) return true;
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
    if (name != "reference") precisions.emplace_back(kAutoPrecision);
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

// The precision that is settled on, with its plan where it wants one.
struct Settled {
  std::string precision;
  std::shared_ptr<const PrecisionPlan> plan;
};

// A plan that the user names is a text for people too; one in --cache_dir is bytes for the next start.
absl::StatusOr<Settled> ReadSavedPlan(const RunFlags& run, const std::string& path, const std::string& fingerprint,
                                      FileSystem& files, Console& console) {
  PF_ASSIGN_OR_RETURN(const std::string text, files.ReadFile(path));
  PF_ASSIGN_OR_RETURN(const SavedPlan saved,
                      run.precision_plan.empty() ? ParsePrecisionPlanBytes(text) : ParsePrecisionPlan(text));
  const auto check = [](absl::string_view what, absl::string_view found, absl::string_view expected) {
    if (found == expected) return absl::OkStatus();
    return absl::FailedPreconditionError(absl::StrCat("precision plan: found ", what, " '", found, "', expected '",
                                                      expected, "'; remove the file to have it made again"));
  };
  PF_RETURN_IF_ERROR(check("the model", saved.model, fingerprint));
  PF_RETURN_IF_ERROR(check("the delegate", saved.delegate, run.delegate));
  if (run.precision != kAutoPrecision) PF_RETURN_IF_ERROR(check("the precision", saved.precision, run.precision));
  console.err << "precision " << saved.precision << ": as '" << Printable(path) << "' says\n";
  return Settled{saved.precision, saved.plan};
}

absl::Status WriteSavedPlan(const RunFlags& run, const std::string& path, const std::string& fingerprint,
                            const Settled& settled, FileSystem& files) {
  const SavedPlan saved{fingerprint, run.delegate, settled.precision, settled.plan};
  const std::string text = run.precision_plan.empty() ? PrecisionPlanBytes(saved) : PrecisionPlanText(saved);
  PF_ASSIGN_OR_RETURN(const std::unique_ptr<FileWriter> writer, files.NewWriter(path, text.size()));
  PF_RETURN_IF_ERROR(writer->Append(text));
  return writer->Commit();
}

absl::StatusOr<Settled> Choose(const RunFlags& run, const ModelToRun& model,
                               absl::Span<const std::vector<Tensor>> samples, const SessionOptions& chosen,
                               Console& console) {
  PF_ASSIGN_OR_RETURN(const RangeMethod calibration, RangeMethodOf(run.calibration));
  PF_ASSIGN_OR_RETURN(const PrecisionChoice choice, ChooseOnSamples(model.graph, model.inputs, model.outputs, samples,
                                                                    run.delegate, run.precision, calibration, chosen));
  for (const PrecisionTrial& trial : choice.trials) {
    PrintTrial(trial, trial.precision == choice.precision, run.explain, console);
    if (run.precision != kAutoPrecision && trial.milliseconds == 0) {
      return absl::FailedPreconditionError(absl::StrCat("--precision=", run.precision, ": ", trial.reason));
    }
  }
  return Settled{choice.precision, choice.plan};
}

// Where in the folder the plan is that was settled with these samples. What auto takes depends on the machine and on
// the number of threads too.
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
    }
  }
  hash.AddWord(static_cast<uint64_t>(num_threads));
  return absl::StrFormat("%s/%s-%s-%016x.plan", run.cache_dir, fingerprint, run.precision, hash.value());
}

void PrintNotes(const std::vector<std::string>& notes, Console& console) {
  for (const std::string& note : notes) console.err << "note: " << Printable(note) << "\n";
}

// Whether the model was encrypted: its weights are not to lie about in a folder. Also where it cannot be told.
bool IsSecret(FileSystem& files, const std::string& path) {
  const absl::StatusOr<std::shared_ptr<const ByteSource>> source = OpenModelBytes(files, path);
  // A folder, a SavedModel's, is never encrypted.
  if (!source.ok()) return !files.Stat(path).ok() || !files.Stat(path)->is_directory;
  return (*source)->is_secret();
}

class Settler {
 public:
  Settler(const RunFlags& run, const ModelToRun& model, absl::Span<const std::vector<Tensor>> samples,
          FileSystem& files, SessionOptions* chosen, Console& console)
      : run_(run), model_(model), samples_(samples), files_(files), chosen_(*chosen), console_(console) {}

  // What Run has settled on.
  const std::string& precision() const { return settled_.precision; }

  absl::StatusOr<KeptWeights> Run() {
    const bool may_keep = model_.keeps_weights && !IsLibrary(run_.delegate);
    const std::string identity = may_keep ? PackingIdentity(run_.delegate) : "";
    std::shared_ptr<const PackedWeightsFile> region;
    if (!identity.empty()) {
      std::vector<std::string> notes;
      region = FindPackedRegion(files_, model_.path, run_.delegate, Asked(), identity, &notes);
      PrintNotes(notes, console_);
    }
    // A plan that the user names comes first.
    if (region != nullptr && run_.precision_plan.empty()) return FromPackage(std::move(region));
    FindCacheDir(identity);
    if (IsSettledLater(run_)) {
      PF_RETURN_IF_ERROR(SettlePrecision());
    } else {
      settled_.precision = Asked();
    }
    return FromFolder(identity);
  }

 private:
  std::string Asked() const { return run_.precision.empty() ? DelegateOptions().precision : run_.precision; }

  absl::StatusOr<KeptWeights> FromPackage(std::shared_ptr<const PackedWeightsFile> region) {
    std::shared_ptr<WeightCache> cache = CacheOf(std::move(region));
    PF_ASSIGN_OR_RETURN(const DelegateOptions packed, AsPacked(cache));
    settled_ = {packed.precision, packed.plan};
    if (packed.plan != nullptr) console_.err << "precision " << settled_.precision << ": as the model is packed\n";
    PF_RETURN_IF_ERROR(Make(cache));
    return KeptWeights(std::move(cache), "");
  }

  // Computed once: it reads all of the weights.
  const std::string& Fingerprint() {
    if (fingerprint_.empty()) fingerprint_ = ModelFingerprint(model_.graph);
    return fingerprint_;
  }

  // Leaves the folder's name empty where nothing is to be kept there.
  void FindCacheDir(const std::string& identity) {
    if (run_.cache_dir.empty() || identity.empty()) return;
    if (IsSecret(files_, model_.path)) {
      PrintNotes({"--cache_dir is not used: the model is encrypted, and its weights would lie there for all to read"},
                 console_);
      return;
    }
    cache_dir_ = run_.cache_dir;
  }

  absl::Status SettlePrecision() {
    const bool is_named = !run_.precision_plan.empty();
    const std::string path = is_named ? run_.precision_plan
                             : cache_dir_.empty()
                                 ? ""
                                 : CachedPlanPath(run_, model_, samples_, chosen_.num_threads, Fingerprint());
    if (!path.empty() && files_.Exists(path)) {
      absl::StatusOr<Settled> saved = ReadSavedPlan(run_, path, Fingerprint(), files_, console_);
      if (saved.ok()) {
        settled_ = *std::move(saved);
        return absl::OkStatus();
      }
      const absl::Status error = Annotate(saved.status(), absl::StrCat("'", path, "'"));
      if (is_named) return error;
      PrintNotes({absl::StrCat("not used, and made again: ", error.message())}, console_);
    }
    PF_ASSIGN_OR_RETURN(settled_, Choose(run_, model_, samples_, chosen_, console_));
    if (path.empty()) return absl::OkStatus();
    if (is_named) return WriteSavedPlan(run_, path, Fingerprint(), settled_, files_);
    absl::Status written = files_.MakeDirectory(cache_dir_);
    if (written.ok()) written = WriteSavedPlan(run_, path, Fingerprint(), settled_, files_);
    if (!written.ok()) PrintNotes({absl::StrCat("--cache_dir: ", written.message())}, console_);
    return absl::OkStatus();
  }

  absl::StatusOr<KeptWeights> FromFolder(const std::string& identity) {
    if (cache_dir_.empty()) {
      if (IsSettledLater(run_)) PF_RETURN_IF_ERROR(Make(nullptr));
      return KeptWeights();
    }
    PackedMaker maker{Fingerprint(), run_.delegate, identity, settled_.precision, ""};
    if (settled_.plan != nullptr) {
      // Enough to tell it from another.
      maker.plan = absl::StrFormat("%016x", HashContent(PrecisionPlanBytes({"", "", "", settled_.plan})));
    }
    std::string path = CachePath(cache_dir_, maker);
    std::vector<std::string> notes;
    std::shared_ptr<WeightCache> cache = OpenWeightCache(files_, path, std::move(maker), &notes);
    PrintNotes(notes, console_);
    PF_RETURN_IF_ERROR(Make(cache));
    return KeptWeights(std::move(cache), std::move(path));
  }

  absl::Status Make(std::shared_ptr<WeightCache> cache) {
    chosen_.packed = cache;
    DelegateOptions options{settled_.precision, settled_.plan, std::move(cache)};
    PF_ASSIGN_OR_RETURN(chosen_.delegate, MakeDelegate(run_.delegate, options));
    return absl::OkStatus();
  }

  const RunFlags& run_;
  const ModelToRun& model_;
  const absl::Span<const std::vector<Tensor>> samples_;
  FileSystem& files_;
  SessionOptions& chosen_;
  Console& console_;
  std::string cache_dir_;    // Empty: nothing is kept in a folder.
  std::string fingerprint_;  // See Fingerprint.
  Settled settled_;
};

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
      "What the delegate computes with: f32, bf16x3 (nearly f32, for processors with AMX), bf16, int8, mixed, or auto. "
      "int8 and mixed are planned with the inputs: int8 is eight bits wherever they are possible, mixed the fastest "
      "choice for each part of the model that stays inside the budget. auto measures all of them on the inputs, and "
      "takes the fastest of those inside the budget: the rms error of each output within 3 % of its rms (or within "
      "1e-4) and the likeliest class of each row as it "
      "is. Left out: f32.");
  flags->Add("calibration", &run->calibration, "METHOD",
             absl::StrCat("How int8 and mixed find the range of values that eight bits tell apart: ",
                          absl::StrJoin(RangeMethodNames(), ", "), "."));
  flags->Add(
      "calibration_inputs", &run->calibration_inputs, "FOLDER|FILES",
      "Real inputs for that, at most 128, the first 8 of which auto, int8 and mixed are also judged by: NPY files as "
      "for --inputs of validate_model, or a folder of them or of PNG and JPEG files (--image_size and the like say "
      "how they are fed). INPUT=... where there are several inputs. Left out: what is run.");
  flags->Add("precision_plan", &run->precision_plan, "FILE",
             "Where what auto, int8 or mixed settled on is kept: read if the file is there, else written.");
  flags->Add("cache_dir", &run->cache_dir, "DIR",
             "A folder in which is kept, for the next run of the same model on such a machine, what the delegate and "
             "the built-in kernels made of its weights and what auto, int8 or mixed settled on with the same inputs. A "
             "model that is packed for the "
             "delegate (convert_graphdef_memmapped_format --pack_for) brings that with it. Made if it is not there.");
  flags->Add("custom_ops", &run->custom_ops, "FILES",
             "Shared libraries with kernels for own ops, or faster ones for known ops, separated by commas "
             "(docs/writing_a_custom_op.md).");
  flags->Add("threads", &run->threads, "N", "Threads to compute with; 0: one for each core.");
  flags->Add(
      "inter_op_threads", &run->inter_op_threads, "N",
      "How many nodes may run at the same time, each on one thread, where that is faster; 0: as many as --threads.");
  flags->Add("cpu_affinity", &run->cpu_affinity, "CPUS",
             "Processors to run on: 0-2,5 or a mask such as 0x27. Left out: all.");
  flags->Add("explain", &run->explain,
             "Say what the delegate runs and as which pieces, and why it leaves the rest to the built-in kernels.");
}

absl::StatusOr<RunOptions> MakeRunOptions(const RunFlags& run, FileSystem& files) {
  if (run.threads < 0 || run.threads > ThreadPool::kMostThreads) {
    return absl::InvalidArgumentError(
        absl::StrCat("--threads: found ", run.threads, ", expected 0 to ", ThreadPool::kMostThreads));
  }
  if (run.inter_op_threads < 0 || run.inter_op_threads > ThreadPool::kMostThreads) {
    return absl::InvalidArgumentError(
        absl::StrCat("--inter_op_threads: found ", run.inter_op_threads, ", expected 0 to ", ThreadPool::kMostThreads));
  }
  if (!run.precision_plan.empty() && !IsSettledLater(run)) {
    return absl::InvalidArgumentError(absl::StrCat("--precision_plan: found '", run.precision_plan,
                                                   "' with --precision=", run.precision,
                                                   ", expected none: only auto, int8 and mixed settle on something"));
  }
  if (!run.calibration_inputs.empty() && !IsSettledLater(run)) {
    return absl::InvalidArgumentError(
        absl::StrCat("--calibration_inputs: found with --precision=", run.precision.empty() ? "f32" : run.precision,
                     ", expected none: only auto, int8 and mixed look at inputs"));
  }
  const int num_threads = run.threads > 0 ? run.threads : static_cast<int>(std::thread::hardware_concurrency());
  RunOptions options;
  options.reference = ToolSessionOptions(std::max(1, num_threads), files);
  options.reference.inter_op_threads = run.inter_op_threads > 0 ? run.inter_op_threads : options.reference.num_threads;
  if (!run.cpu_affinity.empty()) {
    absl::StatusOr<std::vector<int>> processors = ParseProcessors(run.cpu_affinity);
    PF_RETURN_IF_ERROR(Annotate(processors.status(), "--cpu_affinity"));
    PF_RETURN_IF_ERROR(Annotate(ProcessorBinding().Bind(*processors), "--cpu_affinity"));
    options.reference.processors = *std::move(processors);
  }
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

void KeptWeights::Save(FileSystem& files, Console& console) const {
  if (cache_ == nullptr) return;
  PrintNotes(cache_->notes(), console);
  if (path_.empty()) return;
  const absl::Status status = SaveWeightCache(*cache_, files, path_);
  if (!status.ok()) PrintNotes({absl::StrCat("--cache_dir: ", status.message())}, console);
}

void KeptWeights::Print(const Console& console) const {
  if (cache_ == nullptr) return;
  console.out << "  weights packed before, from " << (path_.empty() ? "the model" : "--cache_dir") << ": "
              << FormatBytes(static_cast<uint64_t>(cache_->found().bytes))
              << "; packed now: " << FormatBytes(static_cast<uint64_t>(cache_->packed().bytes)) << "\n";
}

void KeptWeights::Write(JsonWriter* json) const {
  if (cache_ == nullptr) {
    json->Null();
    return;
  }
  json->BeginObject();
  json->Key("from").Text(path_.empty() ? "model" : "cache_dir");
  json->Key("bytes_packed_before").Integer(cache_->found().bytes);
  json->Key("bytes_packed_now").Integer(cache_->packed().bytes);
  json->End();
}

absl::StatusOr<KeptWeights> SettleDelegate(const RunFlags& run, const ModelToRun& model,
                                           absl::Span<const std::vector<Tensor>> samples, FileSystem& files,
                                           SessionOptions* chosen, Console& console) {
  Settler settler(run, model, samples, files, chosen, console);
  PF_ASSIGN_OR_RETURN(KeptWeights kept, settler.Run());
  kept.set_precision(settler.precision());
  return kept;
}

}  // namespace permafrost
