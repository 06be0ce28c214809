// Defines the flags that select delegate, precision and threads.
#include "tools/model/run_flags.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime_check/delegates/delegate_registry.h"
#include "runtime_check/precision/value_range.h"

namespace permafrost {

void AddRunFlags(RunFlags* run, FlagTable* flags) {
  std::vector<std::string> names;
  for (const DelegateInfo& info : KnownDelegates()) names.push_back(info.name);
  flags->Group("delegate, precision and threads");
  flags->Add(
      "delegate", &run->delegate, "NAME",
      absl::StrCat(
          "Delegate that runs the nodes it supports; the built-in kernels (reference, the default) run the rest: ",
          absl::StrJoin(names, ", "),
          ", or the path of a shared library (docs/writing_a_delegate.md). A list (gpu,onednn,reference) places each "
          "node where the estimated time is shortest, and prefers the first; best measures all and takes the "
          "fastest."));
  flags->Add("precision", &run->precision, "NAME",
             "Precision of the delegate: f32 (the default), bf16x3 (nearly f32, for processors with AMX), bf16, int8, "
             "mixed (the fastest choice for each part within the error budget), or auto (the fastest of all within "
             "the budget: 3 % rms error of each output, unchanged classes). int8, mixed and auto are planned on the "
             "inputs.");
  flags->Add("calibration", &run->calibration, "METHOD",
             absl::StrCat("Method that chooses the value ranges of int8 and mixed: ",
                          absl::StrJoin(RangeMethodNames(), ", "), "."));
  flags->Add("calibration_inputs", &run->calibration_inputs, "FOLDER|FILES",
             "Inputs for calibration, at most 128, of which the first 8 also measure the error: NPY files, or a folder "
             "of NPY, PNG or JPEG files (see --image_size). INPUT=... for each of several inputs. Default: the inputs "
             "of the run.");
  flags->Add("precision_plan", &run->precision_plan, "FILE",
             "File of the plan of auto, int8 or mixed. It is read if it exists, otherwise written.");
  flags->Add("cache_dir", &run->cache_dir, "FOLDER",
             "Folder that keeps packed weights and precision plans for later runs of the same model on the same kind "
             "of processor. Created if it does not exist.");
  flags->Add("custom_ops", &run->custom_ops, "FILES",
             "Shared libraries with kernels of custom ops, separated by commas (docs/writing_a_custom_op.md).");
#define PERMAFROST_ADD(field, flag, preset, most, at_zero, help) flags->Add(#flag, &run->flag, "N", help);
  PERMAFROST_SESSION_COUNTS(PERMAFROST_ADD)
#undef PERMAFROST_ADD
#define PERMAFROST_ADD(field, flag, help) flags->Add(#flag, &run->flag, help);
  PERMAFROST_SESSION_SWITCHES(PERMAFROST_ADD)
#undef PERMAFROST_ADD
  flags->Add("cpu_affinity", &run->cpu_affinity, "CPUS",
             "Processors to run on, as a list (0-2,5) or a mask (0x27). Default: all.");
  flags->Add("explain", &run->explain,
             "Print the partitions of the delegate, and why the other nodes are left to the built-in kernels.");
  flags->MarkWritten({"precision_plan", "cache_dir"});
  flags->Group("");
}

}  // namespace permafrost
