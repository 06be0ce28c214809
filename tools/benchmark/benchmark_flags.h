// The flags of benchmark_model.
#ifndef PERMAFROST_TOOLS_BENCHMARK_BENCHMARK_FLAGS_H_
#define PERMAFROST_TOOLS_BENCHMARK_BENCHMARK_FLAGS_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "tools/benchmark/benchmark_subject.h"
#include "tools/command_line/flags.h"
#include "tools/measuring/profile_tables.h"
#include "tools/model/run_flags.h"
#include "tools/validation/image_flags.h"

namespace permafrost {

// Names and defaults are the original's where it has the flag.
struct BenchmarkModelOptions {
  SubjectFlags subject;
  std::string init_ops;

  // How long.
  int32_t max_num_runs = 1000;  // 0 or less: until max_time.
  double max_time = 10;         // Seconds that a phase may take; 0 or less: until max_num_runs.
  double min_secs = 0;
  double inference_delay = -1;
  double inter_benchmark_delay = -1;
  int32_t warmup_runs = 1;
  double warmup_min_secs = 0;

  // Who computes.
  RunFlags run;
  ImageFlags image;          // Of pictures to calibrate with.
  int32_t num_threads = -1;  // The original's name for --threads; 0 or less says nothing.
  std::string use_delegate;  // LiteRT's names for --delegate.
  std::string external_delegate_path;

  // What is printed.
  bool enable_op_profiling = true;
  bool show_sizes = false;
  bool show_flops = false;
  ProfileTableOptions tables;
  std::string profiling_output_csv_file;
  bool report_peak_memory_footprint = false;
  std::string benchmark_name;
  std::string output_prefix;
  bool json = false;

  // Other questions than how long a model takes.
  bool compare = false;
  double compare_time = 30;  // Seconds that --compare and --against may take.
  std::string against;
  int32_t with_load = 0;
  std::string device;
  std::string baseline;
  double max_regression = 0.05;
  std::string trace;
  bool roofline = false;
  bool hardware_counters = false;
};

void DefineBenchmarkFlags(BenchmarkModelOptions* options, FlagTable* flags);
// InvalidArgument for what does not go together or out of range.
absl::Status CheckBenchmarkFlags(const BenchmarkModelOptions& options);
// The flags with other names in their places.
RunFlags SettledRunFlags(const BenchmarkModelOptions& options);

}  // namespace permafrost

#endif  // PERMAFROST_TOOLS_BENCHMARK_BENCHMARK_FLAGS_H_
