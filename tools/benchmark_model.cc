// Warms up, measures, profiles and prints.
#include "tools/benchmark_model.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>
#include <optional>
#include <sstream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "graph/base/status.h"
#include "runtime_check/profiling/profiler.h"
#include "runtime_check/threads/thread_activity.h"
#include "tools/benchmark/benchmark_questions.h"
#include "tools/benchmark/benchmark_report.h"
#include "tools/benchmark/faster_delegate.h"
#include "tools/command_line/interruption.h"
#include "tools/measuring/benchmark_baseline.h"
#include "tools/measuring/benchmark_entries.h"
#include "tools/measuring/hardware_counters.h"
#include "tools/measuring/run_trace.h"
#include "tools/measuring/timed_runs.h"
#include "tools/model/delegate_resolution.h"
#include "tools/model/delegation_listing.h"
#include "tools/model/run_options.h"
#include "tools/validation/calibration_inputs.h"

namespace permafrost {
namespace {

// Interval between updates of the progress line.
constexpr double kProgressSeconds = 0.1;

// Shows the progress of a phase at intervals.
class PhaseProgress {
 public:
  PhaseProgress(std::string phase, const RunLimits& limits, const Console& console)
      : phase_(std::move(phase)), limits_(limits), console_(console) {}

  void Show(const TimedRuns& runs) {
    if (!console_.progress) return;
    const auto now = std::chrono::steady_clock::now();
    if (now < next_) return;
    next_ = now + std::chrono::duration_cast<std::chrono::steady_clock::duration>(
                      std::chrono::duration<double>(kProgressSeconds));
    std::string text = absl::StrCat(phase_, ": ", runs.seconds.size());
    if (limits_.max_runs > 0) absl::StrAppend(&text, " of ", limits_.max_runs);
    console_.Progress(absl::StrCat(text, " runs, last ", FormatSeconds(runs.seconds.back())));
  }

 private:
  const std::string phase_;
  const RunLimits limits_;
  const Console& console_;
  std::chrono::steady_clock::time_point next_;
};

// Converts a number of runs, as in a flag, to the limits of a phase that is also limited in time.
RunLimits LimitsOf(const BenchmarkModelOptions& options) {
  return {std::max(0, options.max_num_runs), options.min_secs, options.max_time, options.inference_delay};
}

// Runs the three phases of TensorFlow's tool. `counters` may be null; `summary` stays empty without a profile.
absl::Status RunPhases(const BenchmarkModelOptions& options, const BenchmarkSubject& subject, Session* session,
                       HardwareCounters* counters, Profiler* profiler, ProfileSummary* summary, const Console& console,
                       BenchmarkResult* result) {
  std::vector<Tensor> outputs;
  const auto run = [&]() -> absl::Status {
    absl::StatusOr<std::vector<Tensor>> made = session->Run(subject.feeds());
    if (made.ok()) outputs = *std::move(made);
    return made.status();
  };
  const auto phase = [&](std::string name, const RunLimits& limits, TimedRuns* runs) {
    PhaseProgress progress(std::move(name), limits, console);
    return RunTimed(
        limits, run, [&](const TimedRuns& so_far) { progress.Show(so_far); }, runs);
  };
  const RunLimits warmup = {std::max<int64_t>(options.warmup_runs, options.warmup_min_secs > 0 ? 1 : 0),
                            options.warmup_min_secs, 0, options.inference_delay};
  PF_RETURN_IF_ERROR(phase("warm-up", warmup, &result->warmup));
  Pause(options.inter_benchmark_delay);
  const int64_t switches = ReadProcessFacts().involuntary_switches;
  if (counters != nullptr) counters->Start();
  PF_RETURN_IF_ERROR(phase("measuring", LimitsOf(options), &result->plain));
  if (counters != nullptr) {
    counters->Stop();
    result->counters = counters->Read();
    const auto runs = static_cast<double>(std::max<size_t>(1, result->plain.seconds.size()));
    for (CounterValue& counter : result->counters) counter.count /= runs;
  }
  for (std::string& note : NonFiniteNotes(subject.outputs(), outputs)) result->notes.push_back(std::move(note));
  for (size_t i = 0; i < outputs.size(); ++i) result->outputs.push_back({subject.outputs()[i], outputs[i]});
  if (std::optional<std::string> note =
          NoiseNote(Sample(result->plain.seconds), ReadProcessFacts().involuntary_switches - switches)) {
    result->notes.push_back(*std::move(note));
  }
  if (summary == nullptr || Interruption::IsRequested()) return absl::OkStatus();
  Pause(options.inter_benchmark_delay);
  profiler->set_recording(true);
  PhaseProgress progress("profiling", LimitsOf(options), console);
  const absl::Status status = RunTimed(
      LimitsOf(options), run,
      [&](const TimedRuns& so_far) {
        summary->Add(*profiler);
        profiler->Clear();
        progress.Show(so_far);
      },
      &result->profiled);
  profiler->set_recording(false);
  return status;
}

absl::Status WriteText(const std::string& path, const std::string& text, FileSystem& files) {
  PF_ASSIGN_OR_RETURN(const std::unique_ptr<FileWriter> writer, files.NewWriter(path, text.size()));
  PF_RETURN_IF_ERROR(writer->Append(text));
  return writer->Commit();
}

// Opens and closes the output file, so that an unwritable path is reported before the measurement.
absl::Status CheckWritable(const std::string& path, FileSystem& files) {
  return path.empty() ? absl::OkStatus() : files.NewWriter(path).status();
}

std::vector<BenchmarkEntry> Entries(const BenchmarkModelOptions& options, const BenchmarkSubject& subject,
                                    const BenchmarkResult& result, const ProfileSummary* summary) {
  const std::string& name = options.benchmark_name;
  const double total = result.plain.total();
  const auto runs = static_cast<int64_t>(result.plain.seconds.size());
  double throughput = -1;
  if (!subject.feeds().empty() && total > 0) {
    throughput = static_cast<double>(subject.feeds()[0].bytes().size()) * static_cast<double>(runs) / total / (1 << 20);
  }
  const double first = result.warmup.seconds.empty() ? 0 : result.warmup.seconds.front();
  std::vector<BenchmarkEntry> entries = {
      {name, runs, total, throughput},
      {name + "_meta-init", 1, result.init_seconds, -1},
      {name + "_meta-first-inference", 1, first, -1},
      {name + "_meta-init-plus-first-inference", 1, result.init_seconds + first, -1}};
  if (summary == nullptr) return entries;
  for (const ProfileType& type : summary->Types()) {
    entries.push_back({absl::StrCat(name, "_", type.type), summary->num_runs(), type.total_us * 1e-6, -1});
  }
  return entries;
}

// Notes differences in settings that make the comparison with the baseline unfair.
void CheckIsLikeBaseline(const Baseline& baseline, const BenchmarkModelOptions& options, BenchmarkResult* result) {
  const auto check = [&](absl::string_view what, const std::string& then, const std::string& now) {
    if (then == now) return;
    result->notes.push_back(absl::StrCat("the baseline was measured with ", what, " ", then, ", this with ", now));
  };
  check("the model", baseline.model, options.subject.graph);
  check("the delegate", baseline.delegate, result->delegate);
  check("precision", baseline.precision, result->precision);
  check("threads:", absl::StrCat(baseline.threads), absl::StrCat(result->num_threads));
}

// Records one more run.
absl::Status TraceRun(const BenchmarkModelOptions& options, const BenchmarkSubject& subject, const NodeCosts& costs,
                      Session* session, Profiler* profiler, FileSystem& files) {
  profiler->Clear();
  profiler->set_recording(true);
  ThreadActivity activity;
  const absl::Status status = session->Run(subject.feeds()).status();
  profiler->set_recording(false);
  PF_RETURN_IF_ERROR(status);
  std::ostringstream text;
  WriteTrace(*profiler, activity.Take(), subject.graph(), costs, options.subject.graph, text);
  return WriteText(options.trace, text.str(), files);
}

// One call of the tool.
class Benchmark {
 public:
  Benchmark(const BenchmarkModelOptions& options, FileSystem& files, Console& console)
      : options_(options), run_(SettledRunFlags(options)), files_(files), console_(console) {}

  absl::Status Run() {
    PF_RETURN_IF_ERROR(Prepare());
    PF_RETURN_IF_ERROR(OpenModel());
    const Interruption interruption;
    session_options_.loop_limits.is_cancelled = &Interruption::IsRequested;
    if (AsksQuestion(options_)) return AnswerQuestion(options_, *subject_, session_options_, files_, console_);
    PF_RETURN_IF_ERROR(MakeSession());
    PF_RETURN_IF_ERROR(Measure());
    Judge();
    Report();
    SuggestDelegate();
    PF_RETURN_IF_ERROR(WriteFiles());
    return Verdict();
  }

 private:
  // Reports errors that can be found before a model is read.
  absl::Status Prepare() {
    PF_RETURN_IF_ERROR(CheckBenchmarkFlags(options_));
    for (std::string& note : NotesOfIgnoredFlags(options_)) result_.notes.push_back(std::move(note));
    PF_RETURN_IF_ERROR(CheckWritable(options_.profiling_output_csv_file, files_));
    PF_RETURN_IF_ERROR(CheckWritable(options_.trace, files_));
    if (!options_.baseline.empty()) {
      absl::StatusOr<Baseline> read = ReadBaseline(files_, options_.baseline);
      PF_RETURN_IF_ERROR(Annotate(read.status(), "--baseline"));
      baseline_ = *std::move(read);
    }
    PF_ASSIGN_OR_RETURN(RunOptions run_options, MakeRunOptions(run_, files_));
    session_options_ = std::move(run_options.chosen);
    if (options_.hardware_counters) {
      // Opened before any thread that the counters must follow is started.
      absl::StatusOr<std::unique_ptr<HardwareCounters>> opened = HardwareCounters::Open();
      if (!opened.ok()) result_.notes.emplace_back(opened.status().message());
      if (opened.ok()) counters_ = *std::move(opened);
    }
    result_.before = ReadProcessFacts();
    return absl::OkStatus();
  }

  absl::Status OpenModel() {
    console_.Progress("reading the model");
    PF_ASSIGN_OR_RETURN(subject_, BenchmarkSubject::Open(options_.subject, files_, console_));
    const Graph& graph = subject_->graph();
    // The comparison modes may run several models with one delegate.
    const ModelToRun model = {graph, graph.inputs(), graph.outputs(), options_.subject.graph, !AsksQuestion(options_)};
    PF_ASSIGN_OR_RETURN(std::vector<InputSet> samples,
                        ReadCalibrationInputs(files_, run_.calibration_inputs, options_.image, {}, graph));
    if (samples.empty()) samples.push_back(subject_->feeds());
    for (const BenchmarkInput& input : subject_->inputs()) {
      if (!input.has_chosen_sizes) continue;
      result_.notes.push_back(absl::StrCat("input '", input.name, "' has unknown sizes; measured with ",
                                           input.tensor.shape().ToString(), " (--input_layer_shape)"));
    }
    PF_ASSIGN_OR_RETURN(kept_, ResolveDelegate(run_, model, samples, files_, &session_options_, console_));
    result_.precision = kept_.precision();
    if (options_.init_ops.empty()) return absl::OkStatus();
    return RunOnce(graph, SplitList(options_.init_ops), session_options_);
  }

  absl::Status MakeSession() {
    session_options_.profiler = &profiler_;
    result_.delegate = run_.delegate;
    result_.num_threads = session_options_.num_threads;
    result_.load_seconds = subject_->load_seconds();
    result_.is_tflite = subject_->is_tflite();
    console_.Progress("preparing");
    const auto start = std::chrono::steady_clock::now();
    PF_ASSIGN_OR_RETURN(session_, subject_->NewSession(session_options_));
    result_.init_seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    result_.after_init = ReadProcessFacts();
    console_.Progress("");
    if (!options_.json) PrintBenchmarkHead(options_, *subject_, result_, console_.out);
    console_.out.flush();
    costs_ = NodeCosts(subject_->graph(), subject_->fed_shapes());
    return absl::OkStatus();
  }

  absl::Status Measure() {
    const absl::Status status = RunPhases(options_, *subject_, session_.get(), counters_.get(), &profiler_,
                                          options_.enable_op_profiling ? &summary_ : nullptr, console_, &result_);
    console_.Progress("");
    kept_.Save(files_, console_);
    result_.was_interrupted = Interruption::IsRequested();
    PF_RETURN_IF_ERROR(absl::IsCancelled(status) ? absl::OkStatus() : status);
    result_.plan = session_->FullReport();
    result_.after = ReadProcessFacts();
    if (!result_.plan.delegation.failure.empty()) result_.notes.push_back(result_.plan.delegation.failure);
    if (summary_.num_dropped() > 0) {
      result_.notes.push_back(
          absl::StrCat("the profile lacks ", summary_.num_dropped(), " events: runs were too long"));
    }
    return absl::OkStatus();
  }

  // Compares the results with the machine's peaks and with the baseline.
  void Judge() {
    if (options_.roofline && profile() != nullptr && !result_.was_interrupted) {
      console_.Progress("measuring the machine");
      result_.roofline = MakeRoofline(summary_, costs_, MeasureMachinePeaks(result_.num_threads));
      console_.Progress("");
    }
    if (baseline_.has_value() && !result_.plain.seconds.empty()) {
      CheckIsLikeBaseline(*baseline_, options_, &result_);
      result_.baseline = CompareWithBaseline(*baseline_, Sample(result_.plain.seconds), options_.max_regression);
    }
  }

  void Report() {
    if (!options_.json) {
      PrintBenchmark(options_, result_, profile(), costs_, console_);
      if (run_.explain) {
        PrintDelegation(result_.plan, console_);
        kept_.Print(console_);
      }
      return;
    }
    JsonWriter json(console_.out);
    json.BeginObject();
    WriteBenchmark(*subject_, options_.subject.graph, result_, profile(), costs_, &json);
    if (run_.explain) {
      json.Key("plan");
      WriteDelegation(result_.plan, &json);
      json.Key("packed_weights");
      kept_.Write(&json);
    }
    json.End();
  }

  // Notes a delegate that is faster than the built-in kernels, if no flag selects one.
  void SuggestDelegate() {
    if (NamesDelegate(options_) || options_.json || result_.was_interrupted || result_.plain.seconds.empty()) return;
    console_.Progress("measuring other delegates");
    const double seconds = Sample(result_.plain.seconds).median();
    const std::optional<FasterDelegate> faster = FindFasterDelegate(run_, *subject_, seconds, files_);
    console_.Progress("");
    if (!faster.has_value()) return;
    console_.err << "note: measured with the built-in kernels; --delegate=" << faster->name << " takes "
                 << FormatSeconds(faster->seconds) << " per run, "
                 << absl::StrFormat("%.1f", 100 * faster->seconds / seconds) << " % of their time\n";
  }

  absl::Status WriteFiles() {
    if (!options_.profiling_output_csv_file.empty() && profile() != nullptr) {
      PF_RETURN_IF_ERROR(WriteText(options_.profiling_output_csv_file, ProfileCsv(summary_), files_));
    }
    if (!options_.trace.empty() && !result_.was_interrupted) {
      PF_RETURN_IF_ERROR(TraceRun(options_, *subject_, costs_, session_.get(), &profiler_, files_));
    }
    if (options_.benchmark_name.empty()) return absl::OkStatus();
    return WriteBenchmarkEntries(options_.output_prefix, Entries(options_, *subject_, result_, profile()), files_);
  }

  absl::Status Verdict() const {
    if (result_.was_interrupted) {
      return absl::CancelledError(absl::StrCat("interrupted after ", result_.plain.seconds.size(),
                                               " measured runs; what was measured until then is printed"));
    }
    if (!result_.baseline.has_value() || !result_.baseline->is_regression) return absl::OkStatus();
    return AnswerIsNo(absl::StrFormat("the median is %.3f times that of '%s', allowed %.3f", result_.baseline->ratio,
                                      options_.baseline, 1 + options_.max_regression));
  }

  // Returns the summary; null if no run was profiled.
  const ProfileSummary* profile() const { return summary_.num_runs() > 0 ? &summary_ : nullptr; }

  // Returns the name of a profile row; a piece of a partition is named after its node.
  ProfileRowName NameOf(const ProfileLabel& label) const {
    if (label.kind != ProfileLabel::Kind::kPiece) return {label.name, label.op};
    const std::string node(NodeOfPiece(label.name));
    const NodeCost* cost = costs_.Find(node);
    return {node, cost == nullptr ? node : cost->op};
  }

  int64_t MemoryOf(const ProfileLabel& label) const {
    const NodeCost* cost = costs_.Find(label);
    return cost == nullptr ? -1 : static_cast<int64_t>(cost->output_bytes);
  }

  const BenchmarkModelOptions& options_;
  const RunFlags run_;
  FileSystem& files_;
  Console& console_;
  std::optional<Baseline> baseline_;
  std::unique_ptr<HardwareCounters> counters_;  // Null if not requested or not available.
  std::unique_ptr<BenchmarkSubject> subject_;
  SessionOptions session_options_;
  KeptWeights kept_;
  Profiler profiler_;
  std::unique_ptr<Session> session_;
  NodeCosts costs_;
  ProfileSummary summary_{[this](const ProfileLabel& label) { return NameOf(label); },
                          [this](const ProfileLabel& label) { return MemoryOf(label); }};
  BenchmarkResult result_;
};

}  // namespace

absl::Status BenchmarkModel(const BenchmarkModelOptions& options, FileSystem& files, Console& console) {
  return Benchmark(options, files, console).Run();
}

Tool BenchmarkModelTool() {
  return DefineTool<BenchmarkModelOptions>(
      "benchmark_model", "measures latency, throughput and memory of a model, by node",
      {{"Inputs, outputs and shapes are detected.", "model.pb --delegate=onednn --show_flops"},
       {"Lowest latency on one core.", "model.pb --delegate=onednn --precision=bf16 --threads=1"},
       {"The flags of TensorFlow's tool.",
        "--graph=model.pb --input_layer=image:0 --input_layer_shape=1,224,224,3 --input_layer_type=float "
        "--output_layer=softmax:0 --max_num_runs=50"},
       {"Recommend a delegate, a precision and a number of threads.", "model.pb --compare"},
       {"Exit status 1 if the model has become slower.", "model.pb --json --baseline=last_week.json"}},
      &DefineBenchmarkFlags, &BenchmarkModel);
}

}  // namespace permafrost
