// The table of presets, and their expansion.
#include "transforms/pipeline/presets.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "graph/base/status.h"

namespace permafrost {
namespace {

constexpr Preset kPresets[] = {
    {"optimize_for_inference", "Computes the same outputs with fewer nodes; removes remains of training.",
     "The recommended start. Removes redundant control edges and nodes that the outputs do not need; removes nodes\n"
     "that only forward values or serve training; folds constants; folds batch norms and padding into convolutions;\n"
     "and merges equal nodes. Constants are folded first, because a batch norm is recognised only if its factors are\n"
     "constant. No fused ops are introduced, so every runtime that runs the original runs the result.",
     R"(remove_control_dependencies(keep_stateful=true)
strip_unused_nodes
remove_nodes(op=Identity, op=CheckNumerics, op=StopGradient, op=PreventGradient)
fold_constants
remove_no_ops
fold_batch_norms
fold_old_batch_norms
simplify_arithmetic
fold_pad_into_conv
fold_transposes
common_subexpressions
sort_by_execution_order)"},
    {"optimize_for_deployment", "optimize_for_inference without placement and annotations from training.",
     "For a model that is deployed to other machines: they choose devices themselves, and infer the shapes that\n"
     "annotations record. The outputs do not change.",
     R"(optimize_for_inference
remove_device
remove_attribute(attribute_name=_class, attribute_name=_output_shapes))"},
    {"quantize", "Stores weights in eight bits, a quarter of their size, where the measured error allows it.",
     "Folds batch norms first, because their variances lose too much accuracy in eight bits. Each channel of each\n"
     "constant then has its own range. A constant with an error above 3 % gets sixteen bits or stays in float, and a\n"
     "note reports it. The model is run to keep the SQNR of each output at 20 dB or more: constants that would reduce\n"
     "it further get sixteen bits. Provide real inputs with --verify_inputs, and evaluate the result on your own data\n"
     "before release.",
     R"(optimize_for_inference
quantize_weights(per_channel=true, max_error=0.03, min_output_sqnr=20))"},
    {"smallest_download", "Minimises the compressed size of the file.",
     "Extends quantize to smaller constants, stores the remaining float constants as float16, and shortens names. The\n"
     "names of inputs and outputs are kept. Compress the file with zstd or gzip for distribution.",
     R"(optimize_for_deployment
quantize_weights(minimum_size=256, per_channel=true, max_error=0.03, min_output_sqnr=20)
convert_float16_weights(minimum_size=32)
sort_by_execution_order
obfuscate_names)"},
    {"prepare_for_tflite", "Brings a graph into the form that the writer of TensorFlow Lite models expects.",
     "Every tool runs it before it writes a .tflite file. Run it yourself to inspect or verify the result. Extends\n"
     "optimize_for_inference: fused ops are split, dilated convolutions become one node, and ops without an operator\n"
     "are rewritten as ops that have one.",
     R"(inline_partitionedcall
lower_tensor_lists
sink_constants
defuse_ops
optimize_for_inference
flatten_atrous_conv(dilations=true)
lower_einsum
lower_to_tflite
fold_transposes
remove_no_ops
sort_by_execution_order)"},
    {"fuse_convolutions", "Fuses resizing and mirror padding into the convolutions that read them.",
     "For TensorFlow on CPUs, which then does not store the enlarged image. The pass that fuses both runs first,\n"
     "because the other passes would fuse only one of the two ops. Most other runtimes do not support the fused ops.",
     R"(fuse_resize_pad_and_conv
fuse_resize_and_conv
fuse_pad_and_conv)"},
};

}  // namespace

absl::Span<const Preset> AllPresets() { return kPresets; }

const Preset* FindPreset(absl::string_view name) {
  const auto* found =
      std::find_if(std::begin(kPresets), std::end(kPresets), [&](const Preset& preset) { return preset.name == name; });
  return found == std::end(kPresets) ? nullptr : found;
}

std::string TransformsOf(const Preset& preset) {
  PassCall call;
  call.name = std::string(preset.name);
  const absl::StatusOr<std::vector<PassCall>> calls = ExpandPresets({call});
  if (!calls.ok()) return std::string(preset.transforms);
  return absl::StrJoin(*calls, "\n", [](std::string* out, const PassCall& each) { out->append(each.ToString()); });
}

absl::StatusOr<std::vector<PassCall>> ExpandPresets(absl::Span<const PassCall> calls) {
  std::vector<PassCall> expanded;
  // The calls to expand, the next one last. Terminates, since presets only name earlier presets.
  std::vector<PassCall> open(calls.rbegin(), calls.rend());
  while (!open.empty()) {
    PassCall call = std::move(open.back());
    open.pop_back();
    const Preset* preset = FindPreset(call.name);
    if (preset == nullptr) {
      expanded.push_back(std::move(call));
      continue;
    }
    if (!call.arguments.empty()) {
      return absl::InvalidArgumentError(absl::StrCat("preset '", call.name, "' accepts only 'ignore_errors', found '",
                                                     call.arguments[0].name,
                                                     "'; to change it, write out its transforms"));
    }
    PF_ASSIGN_OR_RETURN(std::vector<PassCall> inner, ParsePipeline(preset->transforms));
    for (size_t i = inner.size(); i-- > 0;) {
      const Preset* named = FindPreset(inner[i].name);
      if (named != nullptr && named >= preset) {
        return absl::InternalError(
            absl::StrCat("preset '", preset->name, "' names '", named->name, "', which is not before it"));
      }
      inner[i].ignore_errors |= call.ignore_errors;
      inner[i].is_of_preset = true;
      open.push_back(std::move(inner[i]));
    }
  }
  return expanded;
}

}  // namespace permafrost
