// Reads a graph, runs passes over it, verifies and writes the result.
#include "tools/transform_graph.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "graph/base/status.h"
#include "io/formats/checkpoint/checkpoint.h"
#include "io/formats/zstd.h"
#include "io/model_file.h"
#include "runtime_check/checking/evaluate.h"
#include "runtime_check/threads/processors.h"
#include "tools/difference/lineage_file.h"
#include "tools/model/interface_declaration.h"
#include "tools/model/model_inputs.h"
#include "tools/model/tool_session.h"
#include "tools/transform/bisection.h"
#include "tools/transform/bisection_report.h"
#include "tools/transform/calibration.h"
#include "tools/transform/pass_listing.h"
#include "tools/transform/tflite_output.h"
#include "tools/transform/transform_report.h"
#include "tools/transform/verification.h"
#include "transforms/pass.h"
#include "transforms/pipeline/pipeline.h"
#include "transforms/rewrites/calibration_request.h"

namespace permafrost {
namespace {

// Two inputs, so that an equality that holds for one by chance is not accepted as a proof.
constexpr int kSeededInputs = 2;

void DefineFlags(TransformGraphOptions* options, FlagTable* flags) {
  flags->Add("in_graph", &options->in_graph, "FILE",
             "Model to read, in any format that is read (detected from its content): a frozen GraphDef, a SavedModel "
             "folder, a TensorFlow.js or TensorFlow Lite model. '-' is standard input.");
  flags->Add("out_graph", &options->out_graph, "FILE",
             "File to write the result to, atomically. It may be the input file. '-' is standard output.");
  flags->Add("transforms", &options->transforms, "PASSES",
             "Passes to run, in order, separated by blanks: 'strip_unused_nodes round_weights(num_steps=64)'. "
             "--list_passes prints all.");
  flags->Add("inputs", &options->inputs, "NAMES",
             "Nodes that are fed, separated by commas. Default: those of the signature, or else detected.");
  flags->Add("outputs", &options->outputs, "NAMES",
             "Nodes that are fetched, separated by commas. Default: those of the signature, or else detected.");
  flags->Add("output_as_text", &options->output_as_text, "Write protobuf's text format instead of binary.");
  flags->Group("verification");
  flags->AddChoice("verify", &options->verify, {"auto", "off", "each", "required"},
                   "Comparison of the outputs before and after, on the same inputs. auto: write nothing if they differ "
                   "by more than the passes declare; warn if the graph cannot be run. required: also fail if it "
                   "cannot be run. each: check after each pass. off: no check.");
  flags->Add("verify_inputs", &options->verify_inputs, "FILES",
             "Inputs for verification: NPY files separated by commas, with the wildcards * and ?, or INPUT=FILE for "
             "each of several inputs. Default: random numbers.");
  flags->Add("tolerance", &options->tolerance, "X",
             "Maximum difference of an output, relative to its scale (at least 1e-06). Default: the difference that "
             "the passes declare, which is unlimited for passes that reduce precision.");
  flags->Add("seed", &options->seed, "N", "Seed of the random inputs.");
  flags->Add("max_time", &options->max_time, "SECONDS",
             "Maximum time of the runs that verify, after which the result counts as one that cannot be run, and of "
             "folding constants, after which nothing is written.");
  flags->Add("bisect", &options->bisect,
             "Find the first pass, and its first rewrite, after which the outputs differ by more than allowed, and "
             "print it. Writes nothing; exit status 1 if one is found.");
  flags->Group("running and reporting");
  flags->Add("threads", &options->threads, "N", "Number of threads; 0: one per core.");
  flags->Add("dry_run", &options->dry_run, "Run and verify, print the report, and write nothing.");
  flags->Add("explain", &options->explain, "Print where a pass almost matched, and the condition that failed.");
  flags->Add("lineage", &options->lineage, "FILE",
             "File to write the origins of each node of the result to, as JSON, for compare_graphs --lineage.");
  flags->Add("write_calibration", &options->write_calibration, "FILE",
             "File to write the codes and ranges to that passes have found by runs on inputs (rounding=..., "
             "by=activations). Their parameter calibration reads it.");
  flags->Add("dump_dir", &options->dump_dir, "FOLDER",
             "Folder to write the graph to after each pass, as NNN.after_PASS.pbtxt.");
  flags->Add("json", &options->json, "Print one JSON object instead of text.");
  flags->Add("list_passes", &options->list_passes, "Print all passes and presets, and exit.");
  flags->Add("describe_pass", &options->describe_pass, "PASS", "Print the parameters of this pass, and exit.");
  AddReadFlags(&options->read, flags);
  AddWriteFlags(&options->write, flags);
  flags->MarkCommon({"in_graph", "out_graph", "transforms", "inputs", "outputs", "verify", "verify_inputs", "tolerance",
                     "dry_run", "explain", "json", "list_passes", "describe_pass"});
  flags->AcceptAsArguments({"in_graph", "out_graph"});
  flags->MarkOutputs({"out_graph", "lineage", "write_calibration"});
  flags->MarkWritten({"dump_dir"});
}

absl::Status CheckOptions(const TransformGraphOptions& options) {
  // The wording of TensorFlow's tool.
  if (options.in_graph.empty()) return absl::InvalidArgumentError("in_graph graph can't be empty.");
  if (options.out_graph.empty() && !options.dry_run && !options.bisect)
    return absl::InvalidArgumentError("out_graph graph can't be empty.");
  if (options.transforms.empty()) return absl::InvalidArgumentError("You must specify at least one transform.");
  if (options.bisect && options.verify == "off") {
    return absl::InvalidArgumentError("--bisect verifies: it cannot go with --verify=off");
  }
  if (options.tolerance.has_value() && options.verify == "off") {
    return absl::InvalidArgumentError("--tolerance asks for a check: it cannot go with --verify=off");
  }
  if (options.threads < 0) return absl::InvalidArgumentError("--threads is negative");
  PF_RETURN_IF_ERROR(CheckMaxTime(options.max_time));
  if (options.tolerance.has_value() && *options.tolerance < 0) {
    return absl::InvalidArgumentError("--tolerance is negative");
  }
  return absl::OkStatus();
}

// Checked before any work, so that a missing folder does not waste it.
absl::Status CheckOutputFolder(const std::string& path, FileSystem& files) {
  const absl::StatusOr<FileStat> stat = files.Stat(path);
  if (stat.ok() && stat->is_directory) {
    return absl::InvalidArgumentError(absl::StrCat("cannot write '", path, "': it is a folder"));
  }
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos || slash == 0) return absl::OkStatus();
  return Annotate(files.Stat(path.substr(0, slash)).status(), absl::StrCat("cannot write '", path, "'"));
}

int NumThreads(int32_t wanted) { return wanted > 0 ? wanted : AvailableProcessors(); }

absl::Status VerificationFailure(const TransformReport& report) {
  std::string text;
  if (!report.failed_pass.empty()) absl::StrAppend(&text, "after ", report.failed_pass, ": ");
  absl::StrAppend(&text, "the outputs differ by ", FormatNumber(report.verdict->worst()),
                  " relative to their scale, allowed: ", report.allowance.why, "; nothing was written");
  if (report.failed_pass.empty()) absl::StrAppend(&text, "; --verify=each names the pass");
  if (!report.has_real_inputs) {
    absl::StrAppend(&text, "; --verify_inputs replaces the random inputs (floats of magnitude up to 1) by real ones");
  }
  return AnswerIsNo(text);
}

// Returns whether one of the calls may ask for a calibration.
bool AnyCalibrates(const std::vector<PassCall>& calls) {
  for (const PassCall& call : calls) {
    for (const PassArgument& argument : call.arguments) {
      if (argument.name == "rounding" || argument.name == "by" || argument.name == "absorb_biases") return true;
    }
  }
  return false;
}

// One run of the tool.
class Run {
 public:
  Run(const TransformGraphOptions& options, FileSystem& files, Console& console)
      : options_(options), files_(files), console_(console), num_threads_(NumThreads(options.threads)) {
    evaluator_.LimitTime(options.max_time);
  }

  absl::Status Execute() {
    PF_ASSIGN_OR_RETURN(calls_, ParseTransforms(options_.transforms));
    if (calls_.empty()) return absl::InvalidArgumentError("You must specify at least one transform.");
    PF_ASSIGN_OR_RETURN(save_,
                        MakeSaveOptions(options_.write, options_.output_as_text ? "pbtxt" : "pb", files_, &console_));
    if (!options_.out_graph.empty() && !options_.dry_run && !options_.bisect) {
      PF_RETURN_IF_ERROR(OpenOutput());
    }
    if (!options_.lineage.empty()) PF_RETURN_IF_ERROR(CheckOutputFolder(options_.lineage, files_));
    if (!options_.write_calibration.empty()) PF_RETURN_IF_ERROR(CheckOutputFolder(options_.write_calibration, files_));
    PF_RETURN_IF_ERROR(Load());
    PF_RETURN_IF_ERROR(PrepareVerification());
    if (options_.bisect) return FindBreakingRewrite();
    PF_RETURN_IF_ERROR(RunPasses());
    return Finish();
  }

 private:
  // Opens the output before any work, so that an unwritable path is reported at once.
  absl::Status OpenOutput() {
    PF_RETURN_IF_ERROR(CheckOutputFolder(options_.out_graph, files_));
    if (IsTflitePath(options_.out_graph)) return absl::OkStatus();  // Written at once, when it is proved.
    PF_ASSIGN_OR_RETURN(out_file_, files_.NewWriter(options_.out_graph));
    if (num_threads_ == 1 || !save_.filters.empty() || options_.output_as_text) return absl::OkStatus();
    // The result is about as large as its source.
    const absl::StatusOr<FileStat> source = files_.Stat(options_.in_graph);
    if (source.ok()) out_file_->ReserveAhead(source->size);
    return absl::OkStatus();
  }

  absl::Status Load() {
    console_.Progress(absl::StrCat("reading ", options_.in_graph));
    PF_ASSIGN_OR_RETURN(graph_, OpenModelFile(files_, options_.in_graph, options_.read, console_,
                                              /*reads_all=*/out_file_ != nullptr && num_threads_ > 1));
    PF_RETURN_IF_ERROR(
        DeclareOrFindInterface(options_.inputs, options_.outputs, graph_.get(), &report_.interface_notes));
    for (const Endpoint& endpoint : graph_->inputs()) report_.inputs.push_back(endpoint.text);
    for (const Endpoint& endpoint : graph_->outputs()) report_.outputs.push_back(endpoint.text);
    if (!options_.lineage.empty()) graph_->RecordLineage();
    report_.in_graph = options_.in_graph;
    report_.out_graph = options_.dry_run ? "" : options_.out_graph;
    report_.nodes_before = graph_->num_nodes();
    report_.bytes_before = Measure(*graph_);
    report_.compressed_before = MeasureCompressed();
    return absl::OkStatus();
  }

  absl::Status PrepareVerification() {
    report_.allowance = DeclaredAllowance(calls_);
    if (options_.tolerance.has_value()) {
      report_.allowance = {*options_.tolerance, false,
                           absl::StrCat(FormatNumber(*options_.tolerance), " (--tolerance)")};
    }
    report_.seed = options_.seed;
    if (options_.verify == "off" && !AnyMeasuresOutputs(calls_) && !AnyCalibrates(calls_)) return absl::OkStatus();
    console_.Progress("running the graph as it is");
    std::vector<std::string> pieces;
    for (const std::string& list : options_.verify_inputs) {
      for (std::string& piece : SplitList(list)) pieces.push_back(std::move(piece));
    }
    report_.has_real_inputs = !pieces.empty();
    if (report_.has_real_inputs) {
      PF_ASSIGN_OR_RETURN(std::vector<InputSet> sets, ReadInputSets(files_, pieces, *graph_));
      calibration_inputs_ = sets;
      verifier_ = std::make_unique<Verifier>(*graph_, std::move(sets), ToolSessionOptions(num_threads_, files_),
                                             options_.max_time);
    } else {
      absl::StatusOr<std::vector<InputSet>> sets =
          SeededInputSets(*graph_, graph_->inputs(), options_.seed, kSeededInputs);
      if (sets.ok()) calibration_inputs_ = *sets;
      verifier_ = std::make_unique<Verifier>(*graph_, std::move(sets), ToolSessionOptions(num_threads_, files_),
                                             options_.max_time);
    }
    if (options_.verify == "off") return absl::OkStatus();
    if (const absl::Status& validity = verifier_->validity(); !validity.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat("'", options_.in_graph, "': ", validity.message(),
                       "; nothing was written; transform_graph --verify=off transforms the graph without running it"));
    }
    return CheckWasRun(verifier_->why_not());
  }

  // Returns FailedPrecondition if a required check cannot be made.
  absl::Status CheckWasRun(const std::string& why_not) const {
    if (why_not.empty()) return absl::OkStatus();
    std::string asked;
    if (options_.verify != "auto") {
      asked = absl::StrCat("--verify=", options_.verify);
    } else if (options_.tolerance.has_value()) {
      asked = "--tolerance";
    } else {
      return absl::OkStatus();
    }
    return absl::FailedPreconditionError(
        absl::StrCat("not verified, as ", asked, " demands: ", why_not, "; nothing was written"));
  }

  PassContext MakeContext() const {
    PassContext context;
    context.evaluator = &evaluator_;
    context.num_threads = num_threads_;
    if (verifier_ != nullptr) {
      context.measure_outputs = [this](const Graph& graph) { return verifier_->MeasureOutputs(graph); };
    }
    context.wants_misses = options_.explain;
    context.read_file = [this](absl::string_view path) -> absl::StatusOr<std::string> {
      if (const auto request = CalibrationRequest::OfPath(path); request.has_value()) return CalibrateFor(*request);
      return files_.ReadFile(std::string(path));
    };
    context.open_checkpoint = [this](absl::string_view path) { return OpenCheckpoint(files_, std::string(path)); };
    return context;
  }

  // Runs the graph as it is before the current pass.
  absl::StatusOr<std::string> CalibrateFor(const CalibrationRequest& request) const {
    if (calibration_inputs_.empty()) return absl::FailedPreconditionError("there are no inputs here");
    if (options_.bisect)
      return absl::FailedPreconditionError("--bisect runs no inputs for passes; give calibration=FILE");
    SessionOptions limited = ToolSessionOptions(num_threads_, files_);
    const absl::Time end = absl::Now() + absl::Seconds(options_.max_time);
    limited.loop_limits.is_cancelled = [end] { return absl::Now() > end; };
    limited.print = [](absl::string_view, absl::string_view) {};  // Output of Print nodes is discarded.
    absl::StatusOr<std::string> text = Calibrate(*graph_, calibration_inputs_, limited, request, num_threads_);
    if (absl::IsCancelled(text.status())) {
      return absl::ResourceExhaustedError(absl::StrCat(
          "running the graph takes more than ", FormatNumber(options_.max_time), " s; --max_time=SECONDS allows more"));
    }
    if (text.ok()) calibrations_ += *text;
    return text;
  }

  absl::Status FindBreakingRewrite() {
    BisectionOptions bisection;
    bisection.tolerance = options_.tolerance;
    bisection.context = MakeContext();
    bisection.progress = [this](const std::string& line) { console_.Progress(line); };
    PF_ASSIGN_OR_RETURN(const Bisection found, Bisect(*graph_, calls_, *verifier_, bisection));
    console_.Progress("");
    if (options_.json) {
      WriteBisectionJson(found, console_.out);
    } else {
      PrintBisection(found, console_);
    }
    if (found.result == Bisection::Result::kNothingBreaks) return absl::OkStatus();
    return AnswerIsNo(SummaryOf(found));
  }

  absl::Status RunPasses() {
    PassContext context = MakeContext();
    PipelineOptions pipeline;
    pipeline.measure_bytes = [](const Graph& graph) { return Measure(graph); };
    pipeline.before_pass = [this](size_t index, const PassCall& call) {
      console_.Progress(absl::StrCat("[", index + 1, "/", calls_.size(), "] ", call.name));
    };
    pipeline.after_pass = [this](size_t index, const PassReport& report, const Graph& graph) {
      return AfterPass(index, report, graph);
    };
    if (!options_.dump_dir.empty()) {
      PF_RETURN_IF_ERROR(files_.MakeDirectory(options_.dump_dir));
      PF_RETURN_IF_ERROR(SaveModel(files_, *graph_, DumpPath(0, "before"), {"pbtxt"}));
    }
    absl::StatusOr<std::vector<PassReport>> reports = RunPipeline(&graph_, calls_, &context, pipeline);
    console_.Progress("");
    PF_RETURN_IF_ERROR(CheckFoldingTime(evaluator_, options_.max_time));
    // A pass that fails verification ends the pipeline; the passes before it are still reported.
    if (!reports.ok() && report_.failed_pass.empty()) return reports.status();
    if (reports.ok()) report_.passes = *std::move(reports);
    report_.nodes_after = report_.passes.back().nodes_after;
    report_.bytes_after = report_.passes.back().bytes_after;
    return absl::OkStatus();
  }

  absl::Status AfterPass(size_t index, const PassReport& pass, const Graph& graph) {
    if (!options_.dump_dir.empty()) {
      PF_RETURN_IF_ERROR(SaveModel(files_, graph, DumpPath(index + 1, absl::StrCat("after_", pass.name)), {"pbtxt"}));
    }
    if (options_.verify != "each") return absl::OkStatus();
    report_.passes.push_back(pass);
    absl::StatusOr<Verdict> verdict = verifier_->Check(graph);
    if (!verdict.ok()) return Annotate(verdict.status(), pass.name);
    report_.verdict = *std::move(verdict);
    PF_RETURN_IF_ERROR(CheckWasRun(report_.verdict->why_not));
    // The tolerance at this point is that declared by the passes so far.
    Allowance allowance = report_.allowance;
    if (!options_.tolerance.has_value()) {
      allowance = DeclaredAllowance(absl::MakeConstSpan(calls_).subspan(0, index + 1));
    }
    if (report_.verdict->Passes(allowance)) return absl::OkStatus();
    report_.failed_pass = pass.name;
    report_.allowance = allowance;
    return VerificationFailure(report_);
  }

  absl::Status Finish() {
    if (options_.verify != "off" && options_.verify != "each") {
      console_.Progress("running the graph as it has become");
      PF_ASSIGN_OR_RETURN(report_.verdict, verifier_->Check(*graph_));
      console_.Progress("");
      PF_RETURN_IF_ERROR(CheckWasRun(report_.verdict->why_not));
    }
    report_.compressed_after = MeasureCompressed();
    const bool passes =
        report_.failed_pass.empty() && (!report_.verdict.has_value() || report_.verdict->Passes(report_.allowance));
    if (passes && !options_.dry_run) {
      PF_RETURN_IF_ERROR(Save());
      PF_ASSIGN_OR_RETURN(report_.bytes_written, BytesWritten());
      report_.is_written = true;
      report_.is_text = options_.output_as_text;
      report_.is_encrypted = !options_.write.encrypt_to.empty() || !options_.write.encrypt_to_file.empty();
    }
    if (passes && !options_.lineage.empty()) PF_RETURN_IF_ERROR(WriteLineage());
    if (passes && !options_.write_calibration.empty()) {
      PF_RETURN_IF_ERROR(SaveThrough(files_, options_.write_calibration, {}, calibrations_.size(),
                                     [&](ByteSink* sink) { return sink->Append(calibrations_); }));
    }
    if (options_.json) {
      WriteJson(report_, console_.out);
    } else {
      PrintPasses(report_, console_);
      PrintVerdict(report_, console_);
    }
    report_.way_out = WayOutOfRuin(calls_);
    WarnOfVerdict(report_, console_);
    return passes ? absl::OkStatus() : VerificationFailure(report_);
  }

  absl::Status Save() {
    if (!IsTflitePath(options_.out_graph)) return SaveModel(std::move(out_file_), *graph_, save_);
    TfliteFlags flags;
    flags.verify = options_.verify == "off" || options_.verify == "auto" ? options_.verify : "required";
    flags.verify_inputs = options_.verify_inputs;
    flags.seed = options_.seed;
    if (options_.tolerance.has_value()) flags.tolerance = *options_.tolerance;
    console_.Progress("writing a TensorFlow Lite model");
    PF_ASSIGN_OR_RETURN(const TfliteOutput output, EncodeTflite(*graph_, flags, num_threads_, files_));
    console_.Progress("");
    return SaveThrough(files_, options_.out_graph, save_.filters, output.bytes.size(),
                       [&](ByteSink* sink) { return sink->Append(output.bytes); });
  }

  // A pipe does not report the number of bytes written.
  absl::StatusOr<uint64_t> BytesWritten() const {
    const absl::StatusOr<FileStat> stat = files_.Stat(options_.out_graph);
    return stat.ok() && stat->is_regular ? stat->size : EncodedSize(*graph_, save_);
  }

  absl::Status WriteLineage() {
    LineageNote note{options_.in_graph, report_.out_graph, {}};
    for (const PassCall& call : calls_) note.transforms.push_back(call.ToString());
    return WriteLineageFile(*graph_, note, files_, options_.lineage);
  }

  // Measures the compressed size if the passes include one that only makes the file compress better.
  std::optional<uint64_t> MeasureCompressed() const {
    constexpr absl::string_view kCompressingPass = "round_weights";
    const bool is_asked =
        std::any_of(calls_.begin(), calls_.end(), [&](const PassCall& call) { return call.name == kCompressingPass; });
    if (!is_asked) return std::nullopt;
    console_.Progress("compressing the graph");
    const absl::StatusOr<uint64_t> size = CompressedSize(*graph_);
    console_.Progress("");
    return size.ok() ? std::make_optional(*size) : std::nullopt;
  }

  static uint64_t Measure(const Graph& graph) { return EncodedSize(graph).value_or(0); }

  std::string DumpPath(size_t index, absl::string_view what) const {
    return absl::StrFormat("%s/%03d.%s.pbtxt", options_.dump_dir, index, what);
  }

  const TransformGraphOptions& options_;
  FileSystem& files_;
  Console& console_;
  const int num_threads_;
  KernelEvaluator evaluator_;
  std::vector<PassCall> calls_;
  SaveOptions save_;
  std::unique_ptr<FileWriter> out_file_;  // Null where nothing is to be written.
  std::unique_ptr<Graph> graph_;
  std::vector<InputSet> calibration_inputs_;
  mutable std::string calibrations_;    // Lines that passes have asked for.
  std::unique_ptr<Verifier> verifier_;  // Null with --verify=off, unless a pass measures.
  TransformReport report_;
};

}  // namespace

absl::Status TransformGraph(const TransformGraphOptions& options, FileSystem& files, Console& console) {
  if (options.list_passes) {
    options.json ? ListPassesAsJson(console.out) : ListPasses(console);
    return absl::OkStatus();
  }
  if (!options.describe_pass.empty()) return DescribePass(options.describe_pass, console);
  PF_RETURN_IF_ERROR(CheckOptions(options));
  return Run(options, files, console).Execute();
}

Tool TransformGraphTool() {
  return DefineTool<TransformGraphOptions>(
      "transform_graph", "runs passes over a frozen graph, verifies that its outputs stay the same, and writes it",
      {{"Remove nodes that inference does not need, and fold batch norms; inputs and outputs are detected.",
        "model.pb small.pb \\\n"
        "      --transforms='strip_unused_nodes fold_constants fold_batch_norms fold_old_batch_norms'"},
       {"Store weights in 8 bits, and fail if an output changes by more than 5 %.",
        "small.pb tiny.pb --transforms=quantize_weights --tolerance=0.05"},
       {"Print the rewrites of a pass and the matches that failed, without writing.",
        "model.pb --transforms='fold_constants' --dry_run --explain"}},
      &DefineFlags, &TransformGraph);
}

}  // namespace permafrost
