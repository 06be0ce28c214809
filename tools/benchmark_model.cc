// Warms up, measures, profiles, prints.
#include "tools/benchmark_model.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "graph/status.h"
#include "runtime_check/profiler.h"
#include "tools/benchmark_entries.h"
#include "tools/benchmark_report.h"
#include "tools/interruption.h"
#include "tools/plan_listing.h"
#include "tools/timed_runs.h"

namespace permafrost {
namespace {

// How often a terminal sees how far a measurement is.
constexpr double kProgressSeconds = 0.1;

void DefineSubjectFlags(SubjectFlags* subject, FlagTable* flags) {
  flags->Add("graph", &subject->graph, "FILE", "The model to measure, of any format that can be read.");
  flags->Add("input_layer", &subject->input_layer, "NAMES",
             "What is fed: names separated by commas. Left out: the placeholders that the outputs need.");
  flags->Add("input_layer_shape", &subject->inputs.shapes, "SHAPES",
             "Their shapes, separated by colons: 1,224,224,3:8. Left out: those in the model, with a batch of 1.");
  flags->Add("input_layer_type", &subject->inputs.types, "TYPES",
             "Their types, separated by commas, to be checked against the model. Left out: those in the model.");
  flags->Add("input_layer_values", &subject->inputs.values, "VALUES",
             "Values for the first elements, separated by commas, those of several inputs by colons; the rest is zero. "
             "Left out: random numbers.");
  flags->Add("input_layer_value_files", &subject->inputs.files, "FILES",
             "INPUT=FILE, separated by commas: an NPY file, or the elements as they lie in memory.");
  flags->Add("output_layer", &subject->output_layer, "NAMES", "What is fetched. Left out: found.");
  flags->Add("target_layer", &subject->target_layer, "NAMES", "Nodes that run without being fetched.");
  flags->Add("seed", &subject->inputs.seed, "N", "For random inputs.");
}

void DefineRunFlags(BenchmarkModelOptions* options, FlagTable* flags) {
  flags->Add("init_ops", &options->init_ops, "NAMES",
             "Nodes to run once before anything else. Tables fill themselves without.");
  flags->Add("max_num_runs", &options->max_num_runs, "N",
             "Runs in each of the two phases, without and with a profile; 0: until --max_time.");
  flags->Add("num_runs", &options->max_num_runs, "N", "The same.");
  flags->Add("max_time", &options->max_time, "SECONDS", "What the runs of a phase may take; 0: until --max_num_runs.");
  flags->Add("max_secs", &options->max_time, "SECONDS", "The same.");
  flags->Add("min_secs", &options->min_secs, "SECONDS", "What they take at least, even after --max_num_runs.");
  flags->Add("warmup_runs", &options->warmup_runs, "N", "Runs before, measured apart; the first is the cold start.");
  flags->Add("warmup_min_secs", &options->warmup_min_secs, "SECONDS", "What they take at least.");
  flags->Add("inference_delay", &options->inference_delay, "SECONDS", "Sleep between two runs; -1: none.");
  flags->Add("run_delay", &options->inference_delay, "SECONDS", "The same.");
  flags->Add("inter_inference_sleep_seconds", &options->inference_delay, "SECONDS", "The same.");
  flags->Add("inter_benchmark_delay", &options->inter_benchmark_delay, "SECONDS",
             "Sleep before each of the two phases; -1: none.");
  AddRunFlags(&options->run, flags);
  flags->Add("num_threads", &options->num_threads, "N", "The same as --threads; -1: one for each core.");
  flags->Add("use_delegate", &options->use_delegate, "NAME", "The same as --delegate.");
  flags->Add("external_delegate_path", &options->external_delegate_path, "FILE",
             "The same as --delegate with the path of a shared library.");
  flags->Add("cpu_affinity", &options->cpu_affinity, "CPUS",
             "Processors to run on: 0-2,5 or a mask such as 0x27. Left out: all.");
}

void DefineOutputFlags(BenchmarkModelOptions* options, FlagTable* flags) {
  flags->Add("enable_op_profiling", &options->enable_op_profiling, "Measure every node in a phase of its own.");
  flags->Add("show_run_order", &options->tables.show_run_order, "All nodes, in the order in which they run.");
  flags->Add("run_order_limit", &options->tables.run_order_limit, "N", "At most so many of them; 0: all.");
  flags->Add("show_time", &options->tables.show_time, "Those that take the most time.");
  flags->Add("time_limit", &options->tables.time_limit, "N", "At most so many of them; 0: all.");
  flags->Add("show_memory", &options->tables.show_memory, "Those that make the largest tensors.");
  flags->Add("memory_limit", &options->tables.memory_limit, "N", "At most so many of them; 0: all.");
  flags->Add("show_type", &options->tables.show_type, "Sums by type of node.");
  flags->Add("show_summary", &options->tables.show_summary, "Sums over all nodes.");
  flags->Add("show_flops", &options->show_flops, "Arithmetic of a run, and how much of it a second does.");
  flags->Add("show_sizes", &options->show_sizes, "Types and shapes of the outputs.");
  flags->Add("report_peak_memory_footprint", &options->report_peak_memory_footprint,
             "The most memory that the tool held.");
  flags->Add("profiling_output_csv_file", &options->profiling_output_csv_file, "FILE", "The profile as CSV.");
  flags->Add("benchmark_name", &options->benchmark_name, "NAME",
             "With --output_prefix: write reports under this name.");
  flags->Add("output_prefix", &options->output_prefix, "PATH",
             "With --benchmark_name: what the names of the reports begin with, folder included.");
  flags->Add("json", &options->json, "Print one JSON object.");
}

void DefineFlags(BenchmarkModelOptions* options, FlagTable* flags) {
  DefineSubjectFlags(&options->subject, flags);
  DefineRunFlags(options, flags);
  DefineOutputFlags(options, flags);
  AddReadFlags(&options->subject.read, flags);
}

absl::Status CheckOptions(const BenchmarkModelOptions& options) {
  if (options.subject.graph.empty()) return absl::InvalidArgumentError("--graph is missing");
  if (options.max_num_runs <= 0 && options.max_time <= 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("found --max_num_runs=", options.max_num_runs, " and --max_time=", options.max_time,
                     ", expected one of them above 0: nothing else ends the measurement"));
  }
  if (options.warmup_runs < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("--warmup_runs: found ", options.warmup_runs, ", expected at least 0"));
  }
  for (const auto& [flag, value] : {std::pair{"--run_order_limit", options.tables.run_order_limit},
                                    std::pair{"--time_limit", options.tables.time_limit},
                                    std::pair{"--memory_limit", options.tables.memory_limit}}) {
    if (value < 0) return absl::InvalidArgumentError(absl::StrCat(flag, ": found ", value, ", expected at least 0"));
  }
  if (!options.profiling_output_csv_file.empty() && !options.enable_op_profiling) {
    return absl::InvalidArgumentError("--profiling_output_csv_file needs --enable_op_profiling");
  }
  if (options.benchmark_name.empty() != options.output_prefix.empty()) {
    return absl::InvalidArgumentError("--benchmark_name and --output_prefix need each other");
  }
  return absl::OkStatus();
}

// The flags with other names in their places.
RunFlags SettledRunFlags(const BenchmarkModelOptions& options) {
  RunFlags run = options.run;
  if (options.num_threads > 0) run.threads = options.num_threads;
  if (!options.use_delegate.empty()) run.delegate = options.use_delegate;
  if (!options.external_delegate_path.empty()) run.delegate = options.external_delegate_path;
  return run;
}

// Shows how far a phase is, now and then.
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

// A number of runs as a flag has it, for a phase that is also limited in time.
RunLimits LimitsOf(const BenchmarkModelOptions& options) {
  return {std::max(0, options.max_num_runs), options.min_secs, options.max_time, options.inference_delay};
}

// The three phases of the original. `summary` is null without a profile.
absl::Status RunPhases(const BenchmarkModelOptions& options, const BenchmarkSubject& subject, Session* session,
                       Profiler* profiler, ProfileSummary* summary, const Console& console, BenchmarkResult* result) {
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
  PF_RETURN_IF_ERROR(phase("measuring", LimitsOf(options), &result->plain));
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

// Opens and gives up what a path names, so that one that cannot be written shows before the measurement.
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

// How a row of the profile is called: a piece of a partition like the node that it is named after.
ProfileRowName NameOf(const NodeCosts& costs, const ProfileLabel& label) {
  if (label.kind != ProfileLabel::Kind::kPiece) return {label.name, label.op};
  const std::string node(NodeOfPiece(label.name));
  const NodeCost* cost = costs.Find(node);
  return {node, cost == nullptr ? node : cost->op};
}

std::string PrecisionOf(const RunFlags& run) { return run.precision.empty() ? "f32" : run.precision; }

}  // namespace

absl::Status BenchmarkModel(const BenchmarkModelOptions& options, FileSystem& files, Console& console) {
  PF_RETURN_IF_ERROR(CheckOptions(options));
  ProcessorBinding binding;
  if (!options.cpu_affinity.empty()) {
    const absl::StatusOr<std::vector<int>> processors = ParseProcessors(options.cpu_affinity);
    PF_RETURN_IF_ERROR(Annotate(processors.status(), "--cpu_affinity"));
    PF_RETURN_IF_ERROR(Annotate(binding.Bind(*processors), "--cpu_affinity"));
  }
  PF_RETURN_IF_ERROR(CheckWritable(options.profiling_output_csv_file, files));
  const RunFlags run = SettledRunFlags(options);
  PF_ASSIGN_OR_RETURN(RunOptions run_options, MakeRunOptions(run, files));
  BenchmarkResult result;
  result.before = ReadProcessFacts();
  console.Progress("reading the model");
  PF_ASSIGN_OR_RETURN(const std::unique_ptr<BenchmarkSubject> subject,
                      BenchmarkSubject::Open(options.subject, files, console));
  SessionOptions session_options = std::move(run_options.chosen);
  PF_RETURN_IF_ERROR(SettlePrecision(run, subject->graph(), subject->graph().inputs(), subject->graph().outputs(),
                                     {subject->feeds()}, files, &session_options, console));
  if (!options.init_ops.empty()) {
    PF_RETURN_IF_ERROR(RunOnce(subject->graph(), SplitList(options.init_ops), session_options));
  }
  const Interruption interruption;
  session_options.loop_limits.is_cancelled = &Interruption::IsRequested;
  Profiler profiler;
  session_options.profiler = &profiler;
  result.delegate = run.delegate;
  result.precision = PrecisionOf(run);
  result.num_threads = session_options.num_threads;
  result.load_seconds = subject->load_seconds();
  console.Progress("preparing");
  const auto start = std::chrono::steady_clock::now();
  PF_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session, subject->NewSession(session_options));
  result.init_seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  result.after_init = ReadProcessFacts();
  console.Progress("");
  if (!options.json) PrintBenchmarkHead(options, *subject, result, console.out);
  console.out.flush();

  const NodeCosts costs(subject->graph(), subject->fed_shapes());
  ProfileSummary summary([&](const ProfileLabel& label) { return NameOf(costs, label); },
                         [&](const ProfileLabel& label) -> int64_t {
                           const NodeCost* cost = costs.Find(label);
                           return cost == nullptr ? -1 : static_cast<int64_t>(cost->output_bytes);
                         });
  const bool has_profile = options.enable_op_profiling;
  const absl::Status status =
      RunPhases(options, *subject, session.get(), &profiler, has_profile ? &summary : nullptr, console, &result);
  console.Progress("");
  result.was_interrupted = Interruption::IsRequested();
  PF_RETURN_IF_ERROR(absl::IsCancelled(status) ? absl::OkStatus() : status);
  result.plan = session->FullReport();
  result.after = ReadProcessFacts();
  if (!result.plan.delegation.failure.empty()) result.notes.push_back(result.plan.delegation.failure);
  if (summary.num_dropped() > 0) {
    result.notes.push_back(absl::StrCat("the profile lacks ", summary.num_dropped(), " events: runs were too long"));
  }
  const ProfileSummary* shown = has_profile && summary.num_runs() > 0 ? &summary : nullptr;
  if (options.json) {
    JsonWriter json(console.out);
    json.BeginObject();
    WriteBenchmark(*subject, options.subject.graph, result, shown, costs, &json);
    if (run.explain) {
      json.Key("plan");
      WritePlan(result.plan, &json);
    }
    json.End();
  } else {
    PrintBenchmark(options, result, shown, costs, console);
    if (run.explain) PrintPlan(result.plan, console);
  }
  if (!options.profiling_output_csv_file.empty() && shown != nullptr) {
    PF_RETURN_IF_ERROR(WriteText(options.profiling_output_csv_file, ProfileCsv(summary), files));
  }
  if (!options.benchmark_name.empty()) {
    PF_RETURN_IF_ERROR(WriteBenchmarkEntries(options.output_prefix, Entries(options, *subject, result, shown), files));
  }
  if (result.was_interrupted) {
    return absl::CancelledError(absl::StrCat("interrupted after ", result.plain.seconds.size(),
                                             " measured runs; what was measured until then is printed"));
  }
  return absl::OkStatus();
}

Tool BenchmarkModelTool() {
  return DefineTool<BenchmarkModelOptions>(
      "benchmark_model", "says how long a model takes, and where the time and the memory go",
      {{"Everything that is left out is found.", "--graph=model.pb --show_flops"},
       {"The fastest answer that one core gives.", "--graph=model.pb --delegate=onednn --precision=bf16 --threads=1"},
       {"The original's flags.",
        "--graph=model.pb --input_layer=image:0 --input_layer_shape=1,224,224,3 --input_layer_type=float "
        "--output_layer=softmax:0 --max_num_runs=50"}},
      &DefineFlags, &BenchmarkModel);
}

}  // namespace permafrost
