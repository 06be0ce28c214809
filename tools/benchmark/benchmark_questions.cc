// Runs the selected comparison and prints its table.
#include "tools/benchmark/benchmark_questions.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "tools/benchmark/configuration_comparison.h"
#include "tools/benchmark/load_comparison.h"
#include "tools/benchmark/model_comparison.h"
#include "tools/command_line/interruption.h"
#include "tools/measuring/device.h"
#include "tools/measuring/device_estimate.h"
#include "tools/measuring/node_work.h"
#include "tools/model/run_options.h"

namespace permafrost {
namespace {

absl::Status Finished(bool was_interrupted) {
  if (!was_interrupted) return absl::OkStatus();
  return absl::CancelledError("interrupted; what was measured until then is printed");
}

absl::Status Compare(const BenchmarkModelOptions& options, const BenchmarkSubject& subject, SessionOptions session,
                     const ContestLimits& limits, const Console& console) {
  const RunFlags run = SettledRunFlags(options);
  session.delegate = nullptr;
  DelegateOptions switches;
  SetSwitches(run, &switches);
  PF_ASSIGN_OR_RETURN(const Comparison comparison, CompareConfigurations(subject, AllConfigurations(run.threads),
                                                                         session, switches, limits, console));
  console.Progress("");
  if (options.json) {
    JsonWriter json(console.out);
    WriteComparison(comparison, &json);
  } else {
    PrintComparison(comparison, console);
  }
  return Finished(comparison.was_interrupted);
}

absl::Status Against(const BenchmarkModelOptions& options, const BenchmarkSubject& subject,
                     const SessionOptions& session, const ContestLimits& limits, FileSystem& files, Console& console) {
  SubjectFlags flags = options.subject;
  flags.graph = options.against;
  absl::StatusOr<std::unique_ptr<BenchmarkSubject>> other = BenchmarkSubject::Open(flags, files, console);
  PF_RETURN_IF_ERROR(Annotate(other.status(), "--against"));
  PF_ASSIGN_OR_RETURN(const ModelComparison comparison, CompareModels(subject, options.subject.graph, **other,
                                                                      options.against, session, limits, console));
  if (options.json) {
    JsonWriter json(console.out);
    WriteModelComparison(comparison, &json);
  } else {
    PrintModelComparison(comparison, console);
  }
  return Finished(comparison.was_interrupted);
}

absl::Status WithLoad(const BenchmarkModelOptions& options, const BenchmarkSubject& subject,
                      const SessionOptions& session, const Console& console) {
  const RunLimits limits = {std::max(0, options.max_num_runs), options.min_secs, options.max_time,
                            options.inference_delay};
  PF_ASSIGN_OR_RETURN(
      const LoadComparison comparison,
      CompareUnderLoad(subject, session, ThreadCounts(session.num_threads), options.with_load, limits, console));
  if (options.json) {
    JsonWriter json(console.out);
    WriteLoadComparison(comparison, &json);
  } else {
    PrintLoadComparison(comparison, console);
  }
  return Finished(comparison.was_interrupted);
}

absl::Status Estimate(const BenchmarkModelOptions& options, const BenchmarkSubject& subject, FileSystem& files,
                      const Console& console) {
  const RunFlags run = SettledRunFlags(options);
  PF_RETURN_IF_ERROR(Annotate(CheckHasShares(run.delegate), "--delegate"));
  if (!run.precision.empty() && run.precision != "f32") {
    return absl::InvalidArgumentError(
        absl::StrCat("--precision: found '", run.precision, "', expected f32: estimates are for floats"));
  }
  absl::StatusOr<ModelWork> work = DivideWork(subject.graph(), subject.fed_shapes(), Fuses(run.delegate));
  PF_RETURN_IF_ERROR(Annotate(work.status(), "--device"));
  console.Progress("looking at the device");
  const absl::StatusOr<Device> device = FindDevice(options.device, files);
  console.Progress("");
  PF_RETURN_IF_ERROR(Annotate(device.status(), "--device"));
  // One thread unless a number is given, since a described device may use its cores in its own way.
  const DeviceEstimate estimate = EstimateOn(*device, *work, run.delegate, std::max(1, run.threads));
  if (options.json) {
    JsonWriter json(console.out);
    WriteEstimate(estimate, &json);
  } else {
    PrintEstimate(estimate, static_cast<size_t>(options.tables.time_limit), console);
  }
  return absl::OkStatus();
}

}  // namespace

bool AsksQuestion(const BenchmarkModelOptions& options) {
  return options.compare || !options.against.empty() || options.with_load > 0 || !options.device.empty();
}

absl::Status AnswerQuestion(const BenchmarkModelOptions& options, const BenchmarkSubject& subject,
                            const SessionOptions& session, FileSystem& files, Console& console) {
  ContestLimits limits;
  limits.max_seconds = options.compare_time;
  limits.seed = options.subject.inputs.seed;
  if (!options.device.empty()) return Estimate(options, subject, files, console);
  if (options.compare) return Compare(options, subject, session, limits, console);
  if (!options.against.empty()) return Against(options, subject, session, limits, files, console);
  return WithLoad(options, subject, session, console);
}

}  // namespace permafrost
