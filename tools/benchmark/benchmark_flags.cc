// The flags of benchmark_model, and checks of their combinations.
#include "tools/benchmark/benchmark_flags.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime_check/threads/thread_pool.h"
#include "tools/measuring/device.h"

namespace permafrost {
namespace {

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
  AddImageFlags(&options->image, flags);
  flags->Add("num_threads", &options->num_threads, "N", "The same as --threads; -1: one for each core.");
  flags->Add("use_delegate", &options->use_delegate, "NAME", "The same as --delegate.");
  flags->Add("external_delegate_path", &options->external_delegate_path, "FILE",
             "The same as --delegate with the path of a shared library.");
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

void DefineQuestionFlags(BenchmarkModelOptions* options, FlagTable* flags) {
  flags->Add("compare", &options->compare,
             "Measure all delegates, precisions and numbers of threads against each other, and say which to ship.");
  flags->Add("against", &options->against, "FILE",
             "Another model, or this one before a change: measure both in turn, and say how much slower it is.");
  flags->Add("compare_time", &options->compare_time, "SECONDS", "What --compare and --against may take.");
  flags->Add("with_load", &options->with_load, "N",
             "Measure with 1, 2, 4 ... threads, alone and while N other threads work.");
  flags->Add("device", &options->device, "NAME|FILE",
             absl::StrCat("Estimate the time on a device that need not be here: ", DeviceNames(),
                          ", or a JSON file that describes one. Nothing is run."));
  flags->Add("baseline", &options->baseline, "FILE",
             "What --json printed before: exit with 1 when the median has grown by more than --max_regression and by "
             "more than noise explains.");
  flags->Add("max_regression", &options->max_regression, "SHARE", "How much the median may grow: 0.05 is 5 %.");
  flags->Add("trace", &options->trace, "FILE",
             "Write one run for chrome://tracing or ui.perfetto.dev: nodes, partitions, threads, memory.");
  flags->Add("roofline", &options->roofline,
             "Measure what this machine can do, and say how near to it each of the slowest nodes comes.");
  flags->Add("hardware_counters", &options->hardware_counters,
             "Count cycles, instructions and misses of caches, where the kernel allows it.");
}

}  // namespace

void DefineBenchmarkFlags(BenchmarkModelOptions* options, FlagTable* flags) {
  DefineSubjectFlags(&options->subject, flags);
  DefineRunFlags(options, flags);
  DefineOutputFlags(options, flags);
  DefineQuestionFlags(options, flags);
  AddReadFlags(&options->subject.read, flags);
}

absl::Status CheckBenchmarkFlags(const BenchmarkModelOptions& options) {
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
  const int questions = (options.compare ? 1 : 0) + (options.against.empty() ? 0 : 1) +
                        (options.with_load != 0 ? 1 : 0) + (options.device.empty() ? 0 : 1);
  if (questions > 1) {
    return absl::InvalidArgumentError("--compare, --against, --with_load and --device exclude each other");
  }
  const bool has_report = !options.baseline.empty() || !options.trace.empty() || options.roofline ||
                          options.hardware_counters || !options.benchmark_name.empty();
  if (questions > 0 && has_report) {
    return absl::InvalidArgumentError(
        "--compare, --against, --with_load and --device print tables of their own, without --baseline, --trace, "
        "--roofline, --hardware_counters and --benchmark_name");
  }
  if (options.with_load < 0 || options.with_load > ThreadPool::kMostThreads) {
    return absl::InvalidArgumentError(
        absl::StrCat("--with_load: found ", options.with_load, ", expected 1 to ", ThreadPool::kMostThreads));
  }
  if (!(options.max_regression >= 0)) {
    return absl::InvalidArgumentError(
        absl::StrCat("--max_regression: found ", options.max_regression, ", expected at least 0"));
  }
  if (!(options.compare_time > 0)) {
    return absl::InvalidArgumentError(
        absl::StrCat("--compare_time: found ", options.compare_time, ", expected more than 0"));
  }
  if (options.roofline && !options.enable_op_profiling) {
    return absl::InvalidArgumentError("--roofline needs --enable_op_profiling");
  }
  if (options.benchmark_name.empty() != options.output_prefix.empty()) {
    return absl::InvalidArgumentError("--benchmark_name and --output_prefix need each other");
  }
  return absl::OkStatus();
}

// Returns the run flags, with the values of alternative flag names merged in.
RunFlags SettledRunFlags(const BenchmarkModelOptions& options) {
  RunFlags run = options.run;
  if (options.num_threads > 0) run.threads = options.num_threads;
  if (!options.use_delegate.empty()) run.delegate = options.use_delegate;
  if (!options.external_delegate_path.empty()) run.delegate = options.external_delegate_path;
  return run;
}

}  // namespace permafrost
