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
    {"optimize_for_inference", "The same answers from fewer nodes: what training leaves behind goes.",
     "Start here. Drops control edges that order nothing, cuts the graph down to what the outputs need, takes out\n"
     "nodes that only pass values on or watch over training, computes what is constant, puts batch norms and\n"
     "padding into the convolutions, and keeps one of each group of equal nodes. Constants are folded first, because a "
     "batch norm is only recognised\n"
     "when its factors are constants. It brings in no fused ops, so whatever ran the model runs it.",
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
    {"optimize_for_deployment", "optimize_for_inference, and nothing that ties the file to where it was trained.",
     "For a model that goes to other machines: they decide on devices themselves, and shapes that were noted for\n"
     "people are inferred when needed. The answers stay what they are.",
     R"(optimize_for_inference
remove_device
remove_attribute(attribute_name=_class, attribute_name=_output_shapes))"},
    {"quantize", "A quarter of the size: weights in eight bits, where measurement allows.",
     "Batch norms are folded first, because their variances do not survive eight bits. Then each channel of each\n"
     "constant has a range of its own; what still loses more than 3 % takes sixteen bits or stays in float, and a\n"
     "note says which. The model is run to hold each output to an SQNR of 20 dB: constants that would take it lower\n"
     "take sixteen bits. Give real inputs to measure with (--verify_inputs), and compare on your own data before you\n"
     "ship.",
     R"(optimize_for_inference
quantize_weights(per_channel=true, max_error=0.03, min_output_sqnr=20))"},
    {"smallest_download", "The smallest file that still answers alike, to be compressed on its way.",
     "As quantize, for smaller constants too; what stays in float is rounded to half, and names become short.\n"
     "Names of inputs and outputs stay. Compress the file with zstd or gzip on its way.",
     R"(optimize_for_deployment
quantize_weights(minimum_size=256, per_channel=true, max_error=0.03, min_output_sqnr=20)
convert_float16_weights(minimum_size=32)
sort_by_execution_order
obfuscate_names)"},
    {"fuse_convolutions", "Resizing and mirrored padding inside the convolutions that they feed.",
     "For TensorFlow on a CPU, which then keeps no enlarged copy of the image. The ops with both come first, since\n"
     "the others would take a part of what they fuse. Other runtimes mostly lack the fused ops.",
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
      return absl::InvalidArgumentError(absl::StrCat("preset '", call.name, "' takes 'ignore_errors' alone, found '",
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
