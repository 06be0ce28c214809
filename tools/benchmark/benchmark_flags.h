// The flags of benchmark_model.
#ifndef PERMAFROST_TOOLS_BENCHMARK_BENCHMARK_FLAGS_H_
#define PERMAFROST_TOOLS_BENCHMARK_BENCHMARK_FLAGS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "tools/benchmark/benchmark_subject.h"
#include "tools/command_line/flags.h"
#include "tools/measuring/profile_tables.h"
#include "tools/model/run_flags.h"
#include "tools/validation/image_flags.h"

namespace permafrost {

// Number of LiteRT's flags for hardware that no delegate supports.
inline constexpr int kNumAbsentDelegates = 3;

// Number of LiteRT's flags that are accepted and have no effect.
inline constexpr size_t kNumIgnoredFlags = 24;

// Names and defaults are those of TensorFlow's benchmark_model where it has the flag. An empty delegate stands for the
// reference, with a note if another delegate is faster.
struct BenchmarkModelOptions {
  BenchmarkModelOptions() { run.delegate.clear(); }

  SubjectFlags subject;
  std::string init_ops;

  // Length of the measurement.
  int32_t max_num_runs = 1000;  // 0 or less: until max_time.
  double max_time = 10;         // Maximum seconds of a phase; 0 or less: until max_num_runs.
  double min_secs = 0;
  double inference_delay = -1;
  double inter_benchmark_delay = -1;
  int32_t warmup_runs = 1;
  double warmup_min_secs = 0;

  // Delegate, precision and threads.
  RunFlags run;
  ImageFlags image;          // Preprocessing of calibration pictures.
  int32_t num_threads = -1;  // TensorFlow's name for --threads; 0 or less: unset.
  std::string use_delegate;  // LiteRT's names for --delegate.
  std::string external_delegate_path;
  bool use_xnnpack = false;
  bool use_gpu = false;
  bool use_absent[kNumAbsentDelegates] = {};  // --use_nnapi and others.
  // Flags of LiteRT's tool that change nothing here, in the order of their table.
  std::optional<std::string> ignored[kNumIgnoredFlags];

  // Contents of the output.
  bool enable_op_profiling = true;
  bool show_sizes = false;
  bool show_flops = false;
  ProfileTableOptions tables;
  std::string profiling_output_csv_file;
  bool report_peak_memory_footprint = false;
  std::string benchmark_name;
  std::string output_prefix;
  bool json = false;

  // Modes that answer other questions than the latency of a model.
  bool compare = false;
  double compare_time = 30;  // Maximum seconds of --compare and --against.
  std::string against;
  int32_t with_load = 0;
  std::string device;
  std::string baseline;
  double max_regression = 0.05;
  std::string trace;
  bool roofline = false;
  bool hardware_counters = false;
};

// Adds all flags of benchmark_model to the table, bound to `options`.
void DefineBenchmarkFlags(BenchmarkModelOptions* options, FlagTable* flags);
// Checks the flags. InvalidArgument for values that are out of range or contradict each other.
absl::Status CheckBenchmarkFlags(const BenchmarkModelOptions& options);
// Returns one line for each flag that was given and has no effect.
std::vector<std::string> NotesOfIgnoredFlags(const BenchmarkModelOptions& options);
// Returns whether a flag selects the delegate.
bool NamesDelegate(const BenchmarkModelOptions& options);
// Returns the run flags, with the values of alternative flag names merged in.
RunFlags SettledRunFlags(const BenchmarkModelOptions& options);

}  // namespace permafrost

#endif  // PERMAFROST_TOOLS_BENCHMARK_BENCHMARK_FLAGS_H_
