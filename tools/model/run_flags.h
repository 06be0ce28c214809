// The flags that select delegate, precision and threads.
#ifndef PERMAFROST_TOOLS_MODEL_RUN_FLAGS_H_
#define PERMAFROST_TOOLS_MODEL_RUN_FLAGS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "runtime_check/delegates/delegate_options.h"
#include "runtime_check/session_settings.h"
#include "tools/command_line/flags.h"

namespace permafrost {

// Settings common to all tools that run models.
struct RunFlags {
  std::string delegate = kReferenceDelegate;    // A name, or the path of a shared library.
  std::string precision;                        // Empty: the delegate's default. See ResolveDelegate.
  std::string calibration = "mse";              // A RangeMethod.
  std::vector<std::string> calibration_inputs;  // See ReadCalibrationInputs.
  std::string precision_plan;                   // A file, or empty.
  std::string cache_dir;                        // A folder, or empty.
  std::vector<std::string> custom_ops;
#define PERMAFROST_MEMBER(field, flag, preset, most, at_zero, help) int32_t flag = preset;
  PERMAFROST_SESSION_COUNTS(PERMAFROST_MEMBER)
#undef PERMAFROST_MEMBER
#define PERMAFROST_MEMBER(field, flag, help) bool flag = false;
  PERMAFROST_SESSION_SWITCHES(PERMAFROST_MEMBER)
#undef PERMAFROST_MEMBER
  std::string cpu_affinity;  // In the format of ParseProcessors; empty: all.
  bool explain = false;
};

// Adds --delegate, --precision, --calibration, --calibration_inputs, --precision_plan, --cache_dir, --custom_ops,
// --cpu_affinity, --explain and those of session_settings.h.
void AddRunFlags(RunFlags* run, FlagTable* flags);

}  // namespace permafrost

#endif  // PERMAFROST_TOOLS_MODEL_RUN_FLAGS_H_
