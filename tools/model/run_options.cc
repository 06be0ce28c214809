// Checks the flags, and loads the delegates and custom ops that they name.
#include "tools/model/run_options.h"

#include <algorithm>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "graph/base/status.h"
#include "runtime_check/custom_ops/custom_ops.h"
#include "runtime_check/delegates/delegate_list.h"
#include "runtime_check/delegates/delegate_registry.h"
#include "runtime_check/precision/value_range.h"
#include "runtime_check/session_settings.h"
#include "runtime_check/threads/processors.h"
#include "tools/model/blob_files.h"
#include "tools/model/precision_request.h"
#include "tools/model/processor_list.h"
#include "tools/model/tool_session.h"

namespace permafrost {
namespace {

absl::StatusOr<std::shared_ptr<const Delegate>> FindDelegate(const RunFlags& run, FileSystem& files) {
  if (run.delegate == kBestDelegate) return nullptr;
  DelegateOptions options;
  if (!run.precision.empty() && !NeedsSamples(run)) options.precision = run.precision;
  SetSwitches(run, &options);
  options.blobs = BlobsOf(run, files);
  absl::StatusOr<std::shared_ptr<const Delegate>> made = MakeDelegates(run.delegate, options);
  PF_RETURN_IF_ERROR(Annotate(made.status(), "--delegate"));
  return made;
}

// Checks the precision. InvalidArgument for one that the delegate does not have. FindDelegate reports unknown
// delegates.
absl::Status CheckPrecision(const RunFlags& run) {
  if (run.precision.empty()) return absl::OkStatus();
  if (run.delegate == kBestDelegate && run.precision != DelegateOptions().precision) {
    return absl::InvalidArgumentError(absl::StrCat("--precision: found '", run.precision,
                                                   "' with --delegate=", kBestDelegate, ", expected f32 or none"));
  }
  if (IsDelegateList(run.delegate)) {
    if (run.precision != kAutoPrecision) return absl::OkStatus();  // MakeDelegates checks the others.
    return absl::InvalidArgumentError(
        absl::StrCat("--precision: found '", run.precision, "' with several delegates, expected a single one"));
  }
  if (IsLibrary(run)) {
    return absl::InvalidArgumentError(absl::StrCat("--precision: found '", run.precision, "' with the shared library '",
                                                   run.delegate,
                                                   "', expected none: a library decides itself what it computes with"));
  }
  const DelegateInfo* info = FindDelegateInfo(run.delegate);
  if (info == nullptr) return absl::OkStatus();
  std::vector<std::string> precisions = info->AllPrecisions();
  if (info->supports_auto) precisions.emplace_back(kAutoPrecision);
  if (absl::c_linear_search(precisions, run.precision)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("--precision: found '", run.precision, "', expected what --delegate=",
                                                 run.delegate, " has: ", absl::StrJoin(precisions, ", ")));
}

absl::Status CheckCount(absl::string_view flag, int32_t found, int32_t most) {
  if (found >= 0 && found <= most) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(flag, ": found ", found, ", expected 0 to ", most));
}

}  // namespace

void SetSwitches(const RunFlags& run, DelegateOptions* options) {
#define PERMAFROST_SET(field, flag, help) options->field = run.flag;
  PERMAFROST_SESSION_SWITCHES(PERMAFROST_SET)
#undef PERMAFROST_SET
}

std::shared_ptr<DelegateBlobs> BlobsOf(const RunFlags& run, FileSystem& files) {
  return run.cache_dir.empty() ? nullptr : BlobFiles(files, run.cache_dir);
}

bool IsLibrary(const RunFlags& run) { return !IsDelegateList(run.delegate) && IsLibraryPath(run.delegate); }

bool NeedsSamples(const RunFlags& run) {
  if (run.precision == kAutoPrecision || run.delegate == kBestDelegate) return true;
  const DelegateInfo* info = FindDelegateInfo(run.delegate);
  return info != nullptr && info->NeedsPlan(run.precision);
}

absl::StatusOr<RunOptions> MakeRunOptions(const RunFlags& run, FileSystem& files) {
#define PERMAFROST_CHECK(field, flag, preset, most, at_zero, help) \
  PF_RETURN_IF_ERROR(CheckCount("--" #flag, run.flag, most));
  PERMAFROST_SESSION_COUNTS(PERMAFROST_CHECK)
#undef PERMAFROST_CHECK
  if (!run.precision_plan.empty() && !NeedsSamples(run)) {
    return absl::InvalidArgumentError(absl::StrCat("--precision_plan: found '", run.precision_plan,
                                                   "' with --precision=", run.precision,
                                                   ", expected none: only auto, int8 and mixed settle on something"));
  }
  if (!run.calibration_inputs.empty() && !NeedsSamples(run)) {
    return absl::InvalidArgumentError(
        absl::StrCat("--calibration_inputs: found with --precision=", run.precision.empty() ? "f32" : run.precision,
                     ", expected none: only auto, int8 and mixed look at inputs"));
  }
  RunOptions run_options;
  SessionOptions& options = run_options.reference;
  options = ToolSessionOptions(1, files);
  {
    ProcessorBinding binding;  // The default number of threads is that of the processors that were chosen.
    if (!run.cpu_affinity.empty()) {
      absl::StatusOr<std::vector<int>> processors = ParseProcessors(run.cpu_affinity);
      PF_RETURN_IF_ERROR(Annotate(processors.status(), "--cpu_affinity"));
      PF_RETURN_IF_ERROR(Annotate(binding.Bind(*processors), "--cpu_affinity"));
      options.processors = *std::move(processors);
    }
#define PERMAFROST_SET(field, flag, preset, most, at_zero, help) \
  options.field = std::max<int>(1, run.flag > 0 ? run.flag : (at_zero));
    PERMAFROST_SESSION_COUNTS(PERMAFROST_SET)
#undef PERMAFROST_SET
  }
  run_options.chosen = options;
  PF_RETURN_IF_ERROR(CheckPrecision(run));
  PF_RETURN_IF_ERROR(Annotate(RangeMethodOf(run.calibration).status(), "--calibration"));
  PF_ASSIGN_OR_RETURN(run_options.chosen.delegate, FindDelegate(run, files));
  std::vector<std::string> paths;
  for (const std::string& list : run.custom_ops) {
    for (std::string& path : SplitList(list)) paths.push_back(std::move(path));
  }
  if (paths.empty()) return run_options;
  absl::StatusOr<CustomOps> ops = LoadCustomOps(paths);
  PF_RETURN_IF_ERROR(Annotate(ops.status(), "--custom_ops"));
  options.kernel_lookup = std::move(ops->kernels_of_new_ops);
  run_options.chosen.kernel_lookup = std::move(ops->kernels);
  return run_options;
}

}  // namespace permafrost
