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
  flags->Add(
      "delegate", &run->delegate, "NAME",
      absl::StrCat("Who computes as much of the model as it can; the built-in kernels compute the rest: ",
                   absl::StrJoin(names, ", "), ", or the path of a shared library (docs/writing_a_delegate.md)."));
  flags->Add(
      "precision", &run->precision, "NAME",
      "What the delegate computes with: f32, bf16x3 (nearly f32, for processors with AMX), bf16, int8, mixed, or auto. "
      "int8 and mixed are planned with the inputs: int8 is eight bits wherever they are possible, mixed the fastest "
      "choice for each part of the model that stays inside the budget. auto measures all of them on the inputs, and "
      "takes the fastest of those inside the budget: the rms error of each output within 3 % of its rms (or within "
      "1e-4) and the likeliest class of each row as it "
      "is. Left out: f32.");
  flags->Add("calibration", &run->calibration, "METHOD",
             absl::StrCat("How int8 and mixed find the range of values that eight bits tell apart: ",
                          absl::StrJoin(RangeMethodNames(), ", "), "."));
  flags->Add(
      "calibration_inputs", &run->calibration_inputs, "FOLDER|FILES",
      "Real inputs for that, at most 128, the first 8 of which auto, int8 and mixed are also judged by: NPY files as "
      "for --inputs of validate_model, or a folder of them or of PNG and JPEG files (--image_size and the like say "
      "how they are fed). INPUT=... where there are several inputs. Left out: what is run.");
  flags->Add("precision_plan", &run->precision_plan, "FILE",
             "Where what auto, int8 or mixed settled on is kept: read if the file is there, else written.");
  flags->Add("cache_dir", &run->cache_dir, "DIR",
             "A folder in which is kept, for the next run of the same model on such a machine, what the delegate and "
             "the built-in kernels made of its weights and what auto, int8 or mixed settled on with the same inputs. A "
             "model that is packed for the "
             "delegate (convert_graphdef_memmapped_format --pack_for) brings that with it. Made if it is not there.");
  flags->Add("custom_ops", &run->custom_ops, "FILES",
             "Shared libraries with kernels for own ops, or faster ones for known ops, separated by commas "
             "(docs/writing_a_custom_op.md).");
#define PERMAFROST_ADD(field, flag, preset, most, at_zero, help) flags->Add(#flag, &run->flag, "N", help);
  PERMAFROST_SESSION_COUNTS(PERMAFROST_ADD)
#undef PERMAFROST_ADD
  flags->Add("cpu_affinity", &run->cpu_affinity, "CPUS",
             "Processors to run on: 0-2,5 or a mask such as 0x27. Left out: all.");
  flags->Add("explain", &run->explain,
             "Say what the delegate runs and as which pieces, and why it leaves the rest to the built-in kernels.");
}

}  // namespace permafrost
