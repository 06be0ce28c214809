// Reads the model and its inputs, searches, and writes the result.
#include "tools/optimize_model.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <sstream>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "graph/base/content_hash.h"
#include "graph/base/status.h"
#include "io/model_file.h"
#include "runtime_check/delegates/delegate_registry.h"
#include "runtime_check/packing/precision_plan_bytes.h"
#include "runtime_check/threads/processors.h"
#include "runtime_check/threads/thread_pool.h"
#include "tools/certificate/certificate.h"
#include "tools/certificate/embedded_certificate.h"
#include "tools/command_line/certificate_path.h"
#include "tools/command_line/interruption.h"
#include "tools/command_line/json.h"
#include "tools/command_line/standard_streams.h"
#include "tools/measuring/machine_name.h"
#include "tools/model/graph_validity.h"
#include "tools/model/interface_declaration.h"
#include "tools/model/precision_plan_file.h"
#include "tools/model/tool_session.h"
#include "tools/optimizing/budget.h"
#include "tools/optimizing/journal.h"
#include "tools/optimizing/search.h"
#include "tools/optimizing/search_inputs.h"
#include "tools/optimizing/search_report.h"
#include "tools/optimizing/trial_bench.h"
#include "tools/transform/tflite_output.h"
#include "tools/validation/significance.h"

namespace permafrost {
namespace {

void DefineFlags(OptimizeModelOptions* options, FlagTable* flags) {
  flags->Add("in_model", &options->in_model, "FILE", "Model to read, in any format that is read.");
  flags->Add("out_model", &options->out_model, "FILE",
             "File to write the best model to, as a binary GraphDef. Written only if it is within the budget.");
  flags->Add("inputs", &options->inputs, "FILES",
             "Real inputs: NPY files separated by commas, with the wildcards * and ?, a folder of NPY files, or a "
             "folder of pictures (see --image_size); INPUT=... for each of several inputs. Half of them are held back "
             "to check the result. Default: random numbers.");
  flags->Add("labels", &options->labels, "FILE",
             "Labels for the accuracy: an NPY file with one class per row, or for pictures lines 'file,class'. A "
             "subfolder of pictures for each class needs none.");
  flags->Add("max_error", &options->max_error, "X",
             "Maximum rms error of each output, relative to its rms: 0.03 or 3%. Default: 3%, unless "
             "--max_accuracy_drop is given.");
  flags->Add("max_accuracy_drop", &options->max_accuracy_drop, "X",
             "Maximum loss of right answers, as 0.005 or 0.5%. Without labels: maximum share of rows with another top "
             "class than the original's.");
  flags->Add("max_size", &options->max_size, "BYTES", "Maximum size of the written file: 6MB, 600kB, 4MiB.");
  flags->Add("max_latency", &options->max_latency, "TIME",
             "Maximum median time of a run: 10ms, or 0.7x for a ratio to the original in float.");
  flags->AddChoice("minimize", &options->minimize, {"latency", "size", "memory"},
                   "What to minimise within the budget. latency and memory then minimise the size; size then "
                   "minimises the latency, and shortens the names of inner nodes.");
  flags->Add("time", &options->time, "TIME", "Approximate limit of the search, such as 10m; Ctrl-C ends it earlier.");
  flags->Group("search");
  flags->Add("journal", &options->journal, "FILE",
             "File that keeps the results of trials. A search that was interrupted or killed goes on from there.");
  flags->Add("results", &options->results, "FILE",
             "File to write all trials to, as JSON. Default: the name of --out_model with '.json'; empty: none.");
  flags->Add("page", &options->page, "FILE",
             "File to write a page with the fronts of all trials to. Default: the name of --out_model with '.html'; "
             "empty: none.");
  flags->Add("certificate", &options->certificate, "FILE",
             "File to write the certificate of the result to: hashes, passes, errors, and a proof that validate_model "
             "--certificate repeats. Default: the end of --out_model, or a file with its name and '.certificate.json' "
             "if that is compressed or encrypted, or would exceed --max_size; empty: none.");
  flags->Add("delegates", &options->delegates, "NAMES", "Delegates to try, separated by commas. Default: all.");
  flags->Add("precisions", &options->precisions, "NAMES",
             "Precisions of the delegates to try besides f32, separated by commas, such as int8,mixed. Default: all.");
  flags->Add("threads", &options->threads, "N", "Number of threads of a run; 0: one per core.");
  flags->Add("jobs", &options->jobs, "N", "Number of trials at the same time. Latencies are always measured alone.");
  flags->Add("trial_time", &options->trial_time, "TIME",
             "Maximum time of a trial; longer ones are ended and reported.");
  flags->Add("seed", &options->seed, "N", "Seed of random inputs and of the split of the given ones.");
  flags->Add("samples", &options->samples, "N",
             "Maximum number of inputs; of more, this many are taken, evenly spaced.");
  flags->Add("label_offset", &options->label_offset, "N", "Number added to each label.");
  flags->Add("input_layer", &options->input_layer, "NAMES", "Nodes to feed, separated by commas. Default: detected.");
  flags->Add("output_layer", &options->output_layer, "NAMES",
             "Nodes to fetch, separated by commas. Default: detected.");
  flags->Group("");
  flags->Add("json", &options->json, "Print one JSON object, as in --results, instead of text.");
  AddImageFlags(&options->image, flags);
  AddReadFlags(&options->read, flags);
  AddWriteFlags(&options->write, flags);
  flags->MarkCommon({"in_model", "out_model", "inputs", "labels", "max_error", "max_accuracy_drop", "max_size",
                     "max_latency", "minimize", "time", "journal", "results", "page", "delegates", "threads", "json"});
  flags->AcceptAsArguments({"in_model", "out_model"});
  flags->MarkOutputs({"out_model", "results", "page", "certificate"});
  flags->MarkWritten({"journal"});
  flags->DeclareProcesses();
}

template <typename Value>
absl::StatusOr<std::optional<Value>> Parsed(absl::string_view flag, const std::string& text,
                                            absl::StatusOr<Value> (*parse)(absl::string_view)) {
  if (text.empty()) return std::optional<Value>();
  absl::StatusOr<Value> value = parse(text);
  PF_RETURN_IF_ERROR(Annotate(value.status(), absl::StrCat("--", flag)));
  return std::make_optional(*std::move(value));
}

absl::StatusOr<OptimizationBudget> ParseBudget(const OptimizeModelOptions& options) {
  OptimizationBudget budget;
  PF_ASSIGN_OR_RETURN(budget.max_error, Parsed("max_error", options.max_error, &ParseFraction));
  PF_ASSIGN_OR_RETURN(budget.max_accuracy_drop, Parsed("max_accuracy_drop", options.max_accuracy_drop, &ParseFraction));
  PF_ASSIGN_OR_RETURN(budget.max_bytes, Parsed("max_size", options.max_size, &ParseByteCount));
  PF_ASSIGN_OR_RETURN(budget.max_latency, Parsed("max_latency", options.max_latency, &ParseLatencyLimit));
  if (budget.max_error.has_value() && *budget.max_error <= 0) {
    return absl::InvalidArgumentError("--max_error: found 0, expected more: even folding rounds outputs");
  }
  return budget;
}

absl::Status CheckOptions(const OptimizeModelOptions& options) {
  if (options.in_model.empty()) return absl::InvalidArgumentError("--in_model is missing");
  if (options.out_model.empty()) return absl::InvalidArgumentError("--out_model is missing");
  if (options.out_model == kStandardStream) {
    return absl::InvalidArgumentError(
        "--out_model: found '-', expected a file: the result is written beside its report");
  }
  if (IsTflitePath(options.out_model)) {
    return absl::InvalidArgumentError(absl::StrCat("--out_model: found '", options.out_model,
                                                   "', expected a GraphDef (.pb): other formats are not searched yet"));
  }
  if (!options.labels.empty() && options.inputs.empty()) {
    return absl::InvalidArgumentError("--labels needs --inputs: random inputs have no right answers");
  }
  if (!options.max_accuracy_drop.empty() && options.inputs.empty()) {
    return absl::InvalidArgumentError("--max_accuracy_drop needs --inputs: random inputs have no right answers");
  }
  const auto check = [](absl::string_view flag, int32_t found, int32_t least, int32_t most) {
    if (found >= least && found <= most) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat(flag, ": found ", found, ", expected ", least, " to ", most));
  };
  constexpr int32_t kMostSamples = 100'000;
  PF_RETURN_IF_ERROR(check("--threads", options.threads, 0, ThreadPool::kMostThreads));
  PF_RETURN_IF_ERROR(check("--jobs", options.jobs, 1, ThreadPool::kMostThreads));
  return check("--samples", options.samples, 1, kMostSamples);
}

// Returns the path with another extension: "best.json" for "best.pb".
std::string Beside(const std::string& path, absl::string_view extension) {
  const size_t name = path.rfind('/') == std::string::npos ? 0 : path.rfind('/') + 1;
  const size_t dot = path.rfind('.');
  return absl::StrCat(dot == std::string::npos || dot <= name ? path : path.substr(0, dot), extension);
}

std::string NamesOf(absl::Span<const Endpoint> endpoints) {
  return absl::StrJoin(endpoints, ",", [](std::string* out, const Endpoint& each) { out->append(each.text); });
}

absl::Status WriteText(FileSystem& files, const std::string& path, const std::string& text) {
  PF_ASSIGN_OR_RETURN(const std::unique_ptr<FileWriter> writer, files.NewWriter(path, text.size()));
  PF_RETURN_IF_ERROR(writer->Append(text));
  return writer->Commit();
}

// One run of the tool.
class Run {
 public:
  Run(const OptimizeModelOptions& options, FileSystem& files, Console& console)
      : options_(options), files_(files), console_(console) {}

  absl::Status Execute() {
    PF_RETURN_IF_ERROR(Prepare());
    const Interruption interruption;
    {
      const EndsAtOnce without_results;
      PF_RETURN_IF_ERROR(Load());
    }
    PF_RETURN_IF_ERROR(Search());
    return Finish();
  }

 private:
  absl::Status Prepare() {
    PF_RETURN_IF_ERROR(CheckOptions(options_));
    PF_ASSIGN_OR_RETURN(budget_, ParseBudget(options_));
    PF_ASSIGN_OR_RETURN(const std::optional<double> seconds, Parsed("time", options_.time, &ParseDuration));
    PF_ASSIGN_OR_RETURN(const std::optional<double> trial_seconds,
                        Parsed("trial_time", options_.trial_time, &ParseDuration));
    if (!seconds.has_value() || !trial_seconds.has_value()) {
      return absl::InvalidArgumentError("--time and --trial_time: found nothing, expected a duration such as 10m");
    }
    seconds_ = *seconds;
    trial_seconds_ = *trial_seconds;
    PF_ASSIGN_OR_RETURN(save_, MakeSaveOptions(options_.write, "pb", files_, nullptr));
    results_path_ = options_.results.value_or(Beside(options_.out_model, ".json"));
    certificate_path_ = options_.certificate.value_or(CertificatePath(options_.out_model));
    embeds_certificate_ = !options_.certificate.has_value() && save_.filters.empty();
    page_path_ = options_.page.value_or(Beside(options_.out_model, ".html"));
    for (const std::string& list : options_.delegates) {
      for (const std::string& name : SplitList(list)) {
        if (FindDelegateInfo(name) == nullptr) {
          std::vector<std::string> names;
          for (const DelegateInfo& info : KnownDelegates()) names.push_back(info.name);
          return absl::InvalidArgumentError(
              absl::StrCat("--delegates: found '", name, "', expected names of ", absl::StrJoin(names, ", ")));
        }
        delegates_.push_back(name);
      }
    }
    if (delegates_.empty()) {
      for (const DelegateInfo& info : KnownDelegates()) {
        if (!info.needs_device) delegates_.push_back(info.name);
      }
    }
    for (const std::string& list : options_.precisions) {
      for (std::string& name : SplitList(list)) {
        std::vector<std::string> known;
        for (const DelegateInfo& info : KnownDelegates()) {
          for (std::string& precision : info.AllPrecisions()) known.push_back(std::move(precision));
        }
        if (std::find(known.begin(), known.end(), name) == known.end()) {
          return absl::InvalidArgumentError(
              absl::StrCat("--precisions: found '", name, "', expected precisions of the delegates"));
        }
        precisions_.push_back(std::move(name));
      }
    }
    threads_ = options_.threads > 0 ? options_.threads : AvailableProcessors();
    // Opened before any work, so that an unwritable path is reported at once.
    PF_ASSIGN_OR_RETURN(out_file_, files_.NewWriter(options_.out_model));
    return absl::OkStatus();
  }

  absl::Status Load() {
    console_.Progress(absl::StrCat("reading ", options_.in_model));
    PF_ASSIGN_OR_RETURN(graph_, OpenModelFile(files_, options_.in_model, options_.read, console_));
    std::vector<std::string> interface_notes;
    PF_RETURN_IF_ERROR(
        DeclareOrFindInterface(options_.input_layer, options_.output_layer, graph_.get(), &interface_notes));
    if (graph_->outputs().empty()) return absl::InvalidArgumentError("no output is named");
    PF_RETURN_IF_ERROR(CheckValidity(*graph_));
    SearchInputsRequest request;
    request.inputs = options_.inputs;
    request.labels = options_.labels;
    request.label_offset = options_.label_offset;
    request.most_sets = options_.samples;
    request.seed = options_.seed;
    request.image = options_.image;
    console_.Progress("reading the inputs");
    PF_ASSIGN_OR_RETURN(inputs_, ReadSearchInputs(files_, request, *graph_));
    if (!options_.labels.empty() && !inputs_.has_labels) {
      return absl::InvalidArgumentError("--labels: no input has a label");
    }
    report_.notes = inputs_.notes;
    return absl::OkStatus();
  }

  absl::Status Search() {
    ContentHash interface;
    for (const Endpoint& endpoint : graph_->inputs()) interface.Add(endpoint.text);
    for (const Endpoint& endpoint : graph_->outputs()) interface.Add(endpoint.text);
    const JournalHeader header = {absl::StrCat(ModelFingerprint(*graph_), "-", absl::Hex(interface.value())),
                                  inputs_.fingerprint, MachineName()};
    PF_ASSIGN_OR_RETURN(journal_, Journal::Open(files_, options_.journal, header));
    const size_t num_known = journal_->size();
    if (num_known > 0) console_.err << "note: going on from a journal of " << num_known << " records\n";
    const auto start = std::chrono::steady_clock::now();
    const auto must_stop = [this, start] {
      if (is_checking_) return false;
      const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
      return Interruption::IsRequested() || seconds > seconds_;
    };
    BenchSettings bench_settings;
    bench_settings.save = save_;
    bench_settings.passes_threads = threads_;
    bench_settings.session = ToolSessionOptions(threads_, files_);
    bench_settings.isolation = {options_.jobs, trial_seconds_};
    bench_settings.must_stop = must_stop;
    const auto is_half_over = [this, start] {
      return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() > seconds_ / 2;
    };
    bench_settings.note = [this](const std::string& line) { report_.notes.push_back(line); };
    console_.Progress("running the original");
    std::optional<EndsAtOnce> without_results(std::in_place);
    PF_ASSIGN_OR_RETURN(bench_, TrialBench::Create(*graph_, inputs_, *journal_, files_, std::move(bench_settings)));
    SearchSettings settings;
    settings.budget = budget_;
    settings.minimize = options_.minimize == "size"     ? Objective::kSize
                        : options_.minimize == "memory" ? Objective::kMemory
                                                        : Objective::kLatency;
    settings.delegates = delegates_;
    settings.precisions = precisions_;
    settings.threads = threads_;
    settings.jobs = options_.jobs;
    settings.shortens_names = settings.minimize == Objective::kSize;
    settings.has_held_back = !inputs_.held_back.empty();
    settings.has_seeded = !inputs_.seeded.empty();
    settings.is_half_over = is_half_over;
    settings.begin_checks = [this] { is_checking_ = true; };
    settings.progress = [this, start](const std::string& line) {
      const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
      console_.Progress(absl::StrCat("[", FormatSeconds(seconds), "] ", line));
    };
    without_results.reset();
    absl::StatusOr<SearchOutcome> outcome = SearchModel(*graph_, *bench_, settings);
    console_.Progress("");
    PF_RETURN_IF_ERROR(outcome.status());
    outcome_ = *std::move(outcome);
    if (outcome_.was_interrupted) {
      report_.notes.push_back(
          Interruption::IsRequested()
              ? "the search was interrupted: this is the best model so far"
              : absl::StrCat("the search ended after --time=", options_.time, ": this is the best model so far"));
    }
    return WriteModel();
  }

  absl::Status WriteModel() {
    if (!outcome_.best.has_value()) return absl::OkStatus();
    const SearchedModel& best = *outcome_.best;
    PF_ASSIGN_OR_RETURN(const std::unique_ptr<Graph> result, bench_->Transform(best.transforms));
    if (const auto plan = bench_->PlanOf(best.run); plan != nullptr) {
      report_.precision_plan = Beside(options_.out_model, ".plan.json");
      PF_RETURN_IF_ERROR(
          WriteText(files_, report_.precision_plan,
                    PrecisionPlanText({ModelFingerprint(*result), best.run.delegate, best.run.precision, plan})));
    }
    if (absl::StrContains(best.transforms, kCalibrationName)) {
      report_.calibration = Beside(options_.out_model, ".calibration");
      PF_RETURN_IF_ERROR(WriteText(files_, report_.calibration, bench_->calibration()));
    }
    PF_RETURN_IF_ERROR(SaveModel(std::move(out_file_), *result, save_));
    const absl::StatusOr<FileStat> stat = files_.Stat(options_.out_model);
    report_.out_bytes = stat.ok() && stat->is_regular ? stat->size : best.result.bytes;
    return certificate_path_.empty() ? absl::OkStatus() : WriteCertificate(result.get());
  }

  // Returns the transform string with the path of the calibration file.
  std::string TransformsForUsers(const std::string& transforms) const {
    return absl::StrReplaceAll(
        transforms, {{absl::StrCat("\"", kCalibrationName, "\""), absl::StrCat("\"", report_.calibration, "\"")}});
  }

  absl::Status WriteCertificate(Graph* result) {
    console_.Progress("proving the result");
    Certificate certificate;
    certificate.tool = absl::StrCat("optimize_model ", kVersion);
    certificate.date = MeasurementDate();
    certificate.machine = MachineName();
    if (const absl::StatusOr<CertifiedFile> original = CertifyModel(files_, options_.in_model, nullptr);
        original.ok()) {
      certificate.original = *original;
    } else {
      certificate.original.sha256 = absl::StrCat("fingerprint ", ModelFingerprint(*graph_));  // A folder.
    }
    PF_ASSIGN_OR_RETURN(certificate.model, CertifyFile(files_, options_.out_model));
    certificate.transforms = TransformsForUsers(outcome_.best->transforms);
    certificate.run = outcome_.best->run.Flags();
    AddMeasure(NameOf(TrialInputs::kSearch), outcome_.best->result.accuracy, &certificate);
    for (const HeldBackCheck& check : outcome_.checks) AddMeasure(NameOf(check.inputs), check.accuracy, &certificate);
    for (const Endpoint& input : result->inputs()) certificate.inputs.push_back(input.text);
    for (const Endpoint& output : result->outputs()) certificate.outputs.push_back(output.text);
    certificate.seed = options_.seed;
    PF_ASSIGN_OR_RETURN(certificate.proof,
                        ProveOutputs(*result, certificate.seed, ToolSessionOptions(threads_, files_)));
    console_.Progress("");
    const std::string text = CertificateText(certificate);
    const uint64_t whole = certificate.model.bytes + EmbeddedCertificate(text).size();
    if (embeds_certificate_ && budget_.max_bytes.has_value() && whole > *budget_.max_bytes) {
      report_.notes.push_back(absl::StrCat("the certificate is in '", certificate_path_,
                                           "': inside of the model it would exceed --max_size"));
      embeds_certificate_ = false;
    }
    if (!embeds_certificate_) return WriteText(files_, certificate_path_, text);
    report_.certificate_bytes = whole - certificate.model.bytes;
    report_.out_bytes = whole;
    return EmbedCertificate(files_, options_.out_model, text);
  }

  static void AddMeasure(absl::string_view inputs, const AccuracyMeasure& accuracy, Certificate* certificate) {
    CertifiedMeasure& measure = certificate->measures.emplace_back();
    measure.inputs = std::string(inputs);
    measure.relative_rms = accuracy.worst_relative_rms();
    measure.labelled_rows = accuracy.labels.rows;
    measure.right = accuracy.labels.right;
    measure.reference_right = accuracy.labels.reference_right;
    const Interval share = ShareInterval(measure.right, measure.labelled_rows);
    measure.low = share.low;
    measure.high = share.high;
  }

  absl::Status Finish() {
    report_.in_model = options_.in_model;
    report_.out_model = options_.out_model;
    const absl::StatusOr<FileStat> stat = files_.Stat(options_.in_model);
    report_.in_bytes = stat.ok() && stat->is_regular ? stat->size : outcome_.original.bytes;
    report_.date = MeasurementDate();
    report_.machine = MachineName();
    report_.budget = budget_;
    report_.minimize = options_.minimize;
    report_.num_search_inputs = inputs_.num_given_search;
    report_.num_held_back_inputs = inputs_.held_back.size();
    report_.notes.insert(report_.notes.end(), outcome_.notes.begin(), outcome_.notes.end());
    report_.outcome = &outcome_;
    report_.bench = bench_.get();
    if (outcome_.best.has_value()) {
      report_.command = TransformCommand(options_.in_model, options_.out_model, NamesOf(graph_->inputs()),
                                         NamesOf(graph_->outputs()), TransformsForUsers(outcome_.best->transforms));
    }
    std::ostringstream results;
    JsonWriter json(results);
    WriteSearchJson(report_, &json);
    if (!results_path_.empty()) PF_RETURN_IF_ERROR(WriteText(files_, results_path_, results.str()));
    if (!page_path_.empty()) PF_RETURN_IF_ERROR(WriteText(files_, page_path_, SearchPage(report_)));
    if (options_.json) {
      console_.out << results.str();
    } else {
      PrintSearch(report_, console_);
    }
    for (const std::string& note : report_.notes) console_.err << "note: " << Printable(note) << "\n";
    return SearchVerdict(report_);
  }

  const OptimizeModelOptions& options_;
  FileSystem& files_;
  Console& console_;
  OptimizationBudget budget_;
  double seconds_ = 0, trial_seconds_ = 0;
  SaveOptions save_;
  std::string results_path_, page_path_, certificate_path_;  // Empty: not written.
  bool embeds_certificate_ = false;                          // At the end of the model instead of certificate_path_.
  std::vector<std::string> delegates_, precisions_;
  int threads_ = 1;
  std::unique_ptr<FileWriter> out_file_;
  std::unique_ptr<Graph> graph_;
  SearchInputs inputs_;
  std::optional<Journal> journal_;
  std::unique_ptr<TrialBench> bench_;
  bool is_checking_ = false;
  SearchOutcome outcome_;
  SearchReport report_;
};

}  // namespace

absl::Status OptimizeModel(const OptimizeModelOptions& options, FileSystem& files, Console& console) {
  return Run(options, files, console).Execute();
}

Tool OptimizeModelTool() {
  return DefineTool<OptimizeModelOptions>(
      "optimize_model", "finds the smallest and fastest model within a budget of accuracy, size and latency",
      {{"Find the fastest model, then the smallest file, with an rms error of at most 3 %.",
        "model.pb best.pb --inputs='photo_*.npy'"},
       {"Lose at most half a per cent of the right answers, and fit a size.",
        "model.pb best.pb --inputs=photos --image_range=-1,1 --max_accuracy_drop=0.5% --max_size=6MB"},
       {"Find the smallest file, in ten minutes, and go on later.",
        "model.pb best.pb --inputs=photos --minimize=size --time=10m --journal=search.journal"}},
      &DefineFlags, &OptimizeModel);
}

}  // namespace permafrost
