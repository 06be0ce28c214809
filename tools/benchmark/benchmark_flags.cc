// The flags of benchmark_model, and checks of their combinations.
#include "tools/benchmark/benchmark_flags.h"

#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "runtime_check/delegates/delegate_registry.h"
#include "runtime_check/threads/thread_pool.h"
#include "tools/measuring/device.h"

namespace permafrost {
namespace {

// Flags of LiteRT's tool for hardware that no delegate supports, in the order of `use_absent`.
struct AbsentDelegate {
  absl::string_view flag;
  absl::string_view hardware;
};
constexpr AbsentDelegate kAbsentDelegates[kNumAbsentDelegates] = {
    {"use_nnapi", "Android's NNAPI"},
    {"use_hexagon", "Hexagon DSPs"},
    {"use_coreml", "Core ML"},
};

constexpr absl::string_view kNoDelegateSettings = "it is a setting of LiteRT's delegates";
constexpr absl::string_view kPlanned = "memory is always planned for the whole model";

// A flag of LiteRT's benchmark_model that is accepted and has no effect.
struct IgnoredFlag {
  absl::string_view name;
  absl::string_view reason;
};
constexpr IgnoredFlag kIgnoredFlags[kNumIgnoredFlags] = {
    {"allow_fp16", "--precision selects the arithmetic"},
    {"xnnpack_force_fp16", "--precision selects the arithmetic"},
    {"require_full_delegation", "nodes that a delegate declines run with the built-in kernels, which --explain lists"},
    {"max_delegated_partitions", kNoDelegateSettings},
    {"min_nodes_per_partition", kNoDelegateSettings},
    {"delegate_serialize_dir", kNoDelegateSettings},
    {"delegate_serialize_token", kNoDelegateSettings},
    {"disable_delegate_clustering", kNoDelegateSettings},
    {"external_delegate_options", kNoDelegateSettings},
    {"xnnpack_weight_cache_file_path", "--weight_cache names a file for packed weights"},
    {"enable_builtin_cast_constant_cache", "constants are always converted once"},
    {"use_caching", "constants are always packed once"},
    {"release_dynamic_tensors", kPlanned},
    {"optimize_memory_for_large_tensors", kPlanned},
    {"print_preinvoke_state", "--show_memory and --json print sizes of tensors"},
    {"print_postinvoke_state", "--show_memory and --json print sizes of tensors"},
    {"memory_footprint_check_interval_ms", "the peak is that of the operating system, without intervals"},
    {"op_profiling_output_mode", "the profile is printed, and written as CSV by --profiling_output_csv_file"},
    {"tensor_name_display_length", "names are printed in full"},
    {"tensor_type_display_length", "names are printed in full"},
    {"alloc_type_display_length", "names are printed in full"},
    {"max_profiling_buffer_entries", "all events are kept"},
    {"allow_dynamic_profiling_buffer_increase", "all events are kept"},
    {"verbose", "everything is printed"},
};

void DefineSubjectFlags(SubjectFlags* subject, FlagTable* flags) {
  flags->Add("graph", &subject->graph, "FILE",
             "Model to measure, in any format that is read (detected from its content). '-' is standard input.");
  flags->Group("inputs and outputs");
  flags->Add("input_layer", &subject->input_layer, "NAMES",
             "Nodes to feed, separated by commas. Default: the placeholders that the outputs need.");
  flags->Add("input_layer_shape", &subject->inputs.shapes, "SHAPES",
             "Shapes of the inputs, separated by colons: 1,224,224,3:8. Default: those of the model, with batch 1 and "
             "sizes with which the model runs.");
  flags->Add("input_layer_type", &subject->inputs.types, "TYPES",
             "Types of the inputs, separated by commas, which must be those of the model.");
  flags->Add("input_layer_values", &subject->inputs.values, "VALUES",
             "First elements of each input, separated by commas, inputs by colons; the rest is zero. Default: random "
             "numbers.");
  flags->Add("input_layer_value_range", &subject->inputs.ranges, "RANGES",
             "Ranges of random inputs, INPUT,LOW,HIGH separated by colons.");
  flags->Add("input_layer_value_files", &subject->inputs.files, "FILES",
             "Files with the elements of inputs, INPUT=FILE separated by commas: NPY, or raw elements.");
  flags->Add("output_layer", &subject->output_layer, "NAMES",
             "Nodes to fetch, separated by commas. Default: detected.");
  flags->Add("target_layer", &subject->target_layer, "NAMES",
             "Nodes to run without fetching their outputs, separated by commas.");
  flags->Add("seed", &subject->inputs.seed, "N", "Seed of the random inputs.");
  flags->Group("");
}

void DefineRunFlags(BenchmarkModelOptions* options, FlagTable* flags) {
  flags->Group("runs");
  flags->Add("init_ops", &options->init_ops, "NAMES",
             "Nodes to run once before the first run, separated by commas. Lookup tables need none: they are "
             "initialised from the graph.");
  flags->Add("max_num_runs", &options->max_num_runs, "N",
             "Maximum number of runs in each phase, without and with profiling; 0: until --max_time.");
  flags->Add("max_time", &options->max_time, "SECONDS",
             "Maximum duration of each phase in seconds; 0: until --max_num_runs.");
  flags->Add("min_secs", &options->min_secs, "SECONDS",
             "Minimum duration of each phase in seconds, even after --max_num_runs.");
  flags->Add("warmup_runs", &options->warmup_runs, "N",
             "Number of runs before the measurement, reported separately; the first is the cold start.");
  flags->Add("warmup_min_secs", &options->warmup_min_secs, "SECONDS", "Minimum duration of the warm-up in seconds.");
  flags->Add("inference_delay", &options->inference_delay, "SECONDS", "Pause between runs in seconds; -1: none.");
  flags->Add("inter_benchmark_delay", &options->inter_benchmark_delay, "SECONDS",
             "Pause before each phase in seconds; -1: none.");
  AddRunFlags(&options->run, flags);
  AddImageFlags(&options->image, flags);
  flags->Group("names in TensorFlow's and TensorFlow Lite's tools");
  flags->Add("num_runs", &options->max_num_runs, "N", "Same as --max_num_runs.");
  flags->Add("max_secs", &options->max_time, "SECONDS", "Same as --max_time.");
  flags->Add("run_delay", &options->inference_delay, "SECONDS", "Same as --inference_delay.");
  flags->Add("inter_inference_sleep_seconds", &options->inference_delay, "SECONDS", "Same as --inference_delay.");
  flags->Add("num_threads", &options->num_threads, "N", "Same as --threads; -1: one per core.");
  flags->Add("use_delegate", &options->use_delegate, "NAME", "Same as --delegate.");
  flags->Add("external_delegate_path", &options->external_delegate_path, "FILE",
             "Same as --delegate with the path of a shared library.");
  flags->Add("use_xnnpack", &options->use_xnnpack, "Same as --delegate=xnnpack.");
  flags->Add("use_gpu", &options->use_gpu, "Same as --delegate=gpu.");
  flags->Add("signature_to_run_for", &options->subject.read.signature, "NAME", "Same as --signature.");
  flags->Add("profiling_output_file", &options->profiling_output_csv_file, "FILE",
             "Same as --profiling_output_csv_file.");
  for (size_t i = 0; i < std::size(kIgnoredFlags); ++i) {
    flags->Add(std::string(kIgnoredFlags[i].name), &options->ignored[i], "VALUE",
               absl::StrCat("Accepted without effect: ", kIgnoredFlags[i].reason, "."));
  }
  for (size_t i = 0; i < std::size(kAbsentDelegates); ++i) {
    flags->Add(std::string(kAbsentDelegates[i].flag), &options->use_absent[i],
               absl::StrCat("Not supported: there is no delegate for ", kAbsentDelegates[i].hardware, "."));
  }
  flags->Group("");
}

void DefineOutputFlags(BenchmarkModelOptions* options, FlagTable* flags) {
  flags->Group("report");
  flags->Add("enable_op_profiling", &options->enable_op_profiling,
             "Measure each node, in a phase of its own after the measurement.");
  flags->Add("show_run_order", &options->tables.show_run_order, "Print all nodes in execution order.");
  flags->Add("run_order_limit", &options->tables.run_order_limit, "N",
             "Maximum number of nodes in execution order; 0: all.");
  flags->Add("show_time", &options->tables.show_time, "Print the nodes that take the most time.");
  flags->Add("time_limit", &options->tables.time_limit, "N", "Maximum number of nodes by time; 0: all.");
  flags->Add("show_memory", &options->tables.show_memory, "Print the nodes with the largest outputs.");
  flags->Add("memory_limit", &options->tables.memory_limit, "N", "Maximum number of nodes by memory; 0: all.");
  flags->Add("show_type", &options->tables.show_type, "Print totals by type of node.");
  flags->Add("show_summary", &options->tables.show_summary, "Print totals over all nodes.");
  flags->Add("show_flops", &options->show_flops, "Print the FLOPs of a run, and FLOPs per second.");
  flags->Add("show_sizes", &options->show_sizes, "Print types and shapes of the outputs.");
  flags->Add("report_peak_memory_footprint", &options->report_peak_memory_footprint,
             "Print the peak memory of the process.");
  flags->Add("profiling_output_csv_file", &options->profiling_output_csv_file, "FILE",
             "File to write the profile to, as CSV.");
  flags->Add("benchmark_name", &options->benchmark_name, "NAME",
             "Name of the benchmark in the entries that --output_prefix writes.");
  flags->Add("output_prefix", &options->output_prefix, "PATH",
             "Prefix of the paths of benchmark entries, in TensorFlow's format. Needs --benchmark_name.");
  flags->Add("json", &options->json, "Print one JSON object instead of text.");
  flags->Group("");
}

void DefineQuestionFlags(BenchmarkModelOptions* options, FlagTable* flags) {
  flags->Group("comparisons and analysis");
  flags->Add("compare", &options->compare,
             "Measure all delegates, precisions and numbers of threads in turn, and recommend one.");
  flags->Add("against", &options->against, "FILE",
             "Second model, for example this one before a change: measure both in turn and print the ratio.");
  flags->Add("compare_time", &options->compare_time, "SECONDS",
             "Maximum duration of --compare and --against in seconds.");
  flags->Add("with_load", &options->with_load, "N",
             "Measure with 1, 2, 4 ... threads, alone and beside N busy threads.");
  flags->Add("device", &options->device, "NAME|FILE",
             absl::StrCat("Estimate the latency on another device without running the model: ", DeviceNames(),
                          ", or a JSON file that describes one."));
  flags->Add("baseline", &options->baseline, "FILE",
             "Output of an earlier run with --json. Exit status 1 if the median has grown by more than "
             "--max_regression, and by more than noise explains.");
  flags->Add("max_regression", &options->max_regression, "FRACTION",
             "Maximum growth of the median for --baseline: 0.05 is 5 %.");
  flags->Add("trace", &options->trace, "FILE",
             "File to write a trace of one run to, for chrome://tracing or ui.perfetto.dev: nodes, partitions, "
             "threads, memory.");
  flags->Add("roofline", &options->roofline,
             "Measure peak FLOPs and bandwidth of this machine, and print the share that the slowest nodes reach.");
  flags->Add("hardware_counters", &options->hardware_counters,
             "Count cycles, instructions and cache misses, if the kernel permits it.");
  flags->Group("");
}

}  // namespace

void DefineBenchmarkFlags(BenchmarkModelOptions* options, FlagTable* flags) {
  DefineSubjectFlags(&options->subject, flags);
  DefineRunFlags(options, flags);
  DefineOutputFlags(options, flags);
  DefineQuestionFlags(options, flags);
  AddReadFlags(&options->subject.read, flags);
  flags->MarkCommon({"graph", "delegate", "precision", "threads", "input_layer", "input_layer_shape", "output_layer",
                     "max_num_runs", "max_time", "warmup_runs", "compare", "against", "baseline", "explain", "json"});
  flags->AcceptAsArguments({"graph"});
  flags->MarkOutputs({"profiling_output_csv_file", "trace"});
  flags->MarkWritten({"profiling_output_file", "output_prefix", "baseline"});
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
  for (size_t i = 0; i < std::size(kAbsentDelegates); ++i) {
    if (!options.use_absent[i]) continue;
    std::vector<std::string> names;
    for (const DelegateInfo& info : KnownDelegates()) {
      if (!info.is_reference) names.push_back(absl::StrCat("--delegate=", info.name));
    }
    return absl::InvalidArgumentError(
        absl::StrCat("--", kAbsentDelegates[i].flag, ": there is no delegate for ", kAbsentDelegates[i].hardware,
                     ", expected ", absl::StrJoin(names, " or "), ", or --delegate with the path of a shared library"));
  }
  if (options.benchmark_name.empty() != options.output_prefix.empty()) {
    return absl::InvalidArgumentError("--benchmark_name and --output_prefix need each other");
  }
  return absl::OkStatus();
}

std::vector<std::string> NotesOfIgnoredFlags(const BenchmarkModelOptions& options) {
  std::vector<std::string> notes;
  for (size_t i = 0; i < std::size(kIgnoredFlags); ++i) {
    if (!options.ignored[i].has_value()) continue;
    notes.push_back(absl::StrCat("--", kIgnoredFlags[i].name, " has no effect: ", kIgnoredFlags[i].reason));
  }
  return notes;
}

bool NamesDelegate(const BenchmarkModelOptions& options) {
  return !options.run.delegate.empty() || !options.use_delegate.empty() || !options.external_delegate_path.empty() ||
         options.use_xnnpack || options.use_gpu;
}

RunFlags SettledRunFlags(const BenchmarkModelOptions& options) {
  RunFlags run = options.run;
  if (options.num_threads > 0) run.threads = options.num_threads;
  if (options.use_xnnpack) run.delegate = "xnnpack";
  if (options.use_gpu) run.delegate = "gpu";
  if (!options.use_delegate.empty()) run.delegate = options.use_delegate;
  if (!options.external_delegate_path.empty()) run.delegate = options.external_delegate_path;
  if (run.delegate.empty()) run.delegate = kReferenceDelegate;
  return run;
}

}  // namespace permafrost
