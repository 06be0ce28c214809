// Computes cache keys, and serialises facts.
#include "runtime_check/delegates/onednn/packing.h"

#include <cstring>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "graph/base/content_hash.h"
#include "runtime_check/delegates/onednn/storage_values.h"

namespace permafrost {
namespace onednn {
namespace {

// Version of the computation of scales, rounding and corrections. A change invalidates all cached weights.
constexpr int kArithmeticVersion = 2;

constexpr absl::string_view kFactsSuffix = " facts";

void AddFloats(const std::vector<float>& values, ContentHash* hash) {
  hash->Add(absl::string_view(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)));
}

void AddAxis(const WindowAxis& axis, ContentHash* hash) {
  for (const int64_t number : {axis.input, axis.output, axis.taps, axis.stride, axis.dilation, axis.pad_before}) {
    hash->AddWord(static_cast<uint64_t>(number));
  }
}

// Serialised facts: one byte each for non-finite weights, scales and a bias; then the floats.
void AppendFloats(const std::vector<float>& values, std::string* to) {
  to->append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float));
}

std::vector<float> TakeFloats(size_t count, absl::string_view* from) {
  std::vector<float> values(count);
  if (count > 0) std::memcpy(values.data(), from->data(), count * sizeof(float));
  from->remove_prefix(count * sizeof(float));
  return values;
}

}  // namespace

std::string PackingKey(const WeightedOp& op, Element source) {
  const ParsedNode& parsed = op.parsed;
  const WindowGeometry& window = parsed.window;
  ContentHash hash;
  for (const int64_t number :
       {static_cast<int64_t>(parsed.kind), parsed.depth, parsed.columns, static_cast<int64_t>(parsed.transpose_b),
        window.groups, window.input_channels, window.output_channels, window.y.taps, window.x.taps}) {
    hash.AddWord(static_cast<uint64_t>(number));
  }
  hash.Add(op.weights.shape().ToString());
  AddFloats(op.scale, &hash);
  if (source != Element::kFloat) {
    // The correction of the bias depends on how often each tap is inside the image.
    AddAxis(window.y, &hash);
    AddAxis(window.x, &hash);
    AddFloats(op.bias, &hash);
    AddFloats(op.means, &hash);
  }
  // Weights for u8 and s8 sources have the same values in different layouts.
  // Without the name of the op: ops with the same weights share them, as the steps of an unrolled recurrent network do.
  return absl::StrCat(op.weights_name, " ", NameOf(source), " ", absl::Hex(hash.value(), absl::kZeroPad16));
}

std::string LayoutText(const dnnl::memory::desc& desc) {
  const dnnl_memory_desc_t& data = desc.data;
  if (data.format_kind != dnnl_blocked || data.ndims <= 0 || data.ndims > DNNL_MAX_NDIMS) return "";
  const auto list = [](const auto* values, int count) { return absl::StrJoin(values, values + count, ","); };
  const dnnl_blocking_desc_t& blocking = data.format_desc.blocking;
  const dnnl_memory_extra_desc_t& extra = data.extra;
  std::string text =
      absl::StrCat("type ", static_cast<int>(data.data_type), " [", list(data.dims, data.ndims), "] in [",
                   list(data.padded_dims, data.ndims), "] from ", data.offset0, " strides ",
                   list(blocking.strides, data.ndims), " blocks ", list(blocking.inner_blks, blocking.inner_nblks),
                   " of ", list(blocking.inner_idxs, blocking.inner_nblks));
  if (extra.flags != 0) {
    // Precomputed sums that follow the weights.
    absl::StrAppend(&text, " extra ", extra.flags, " ", extra.compensation_mask, " ", extra.asymm_compensation_mask);
    if ((extra.flags & dnnl_memory_extra_flag_scale_adjust) != 0) absl::StrAppend(&text, " ", extra.scale_adjust);
  }
  return absl::StrCat(text, " bytes ", desc.get_size());
}

std::optional<WeightFacts> FindFacts(const WeightedOp& op, const std::string& key, PackedWeights* packed) {
  if (packed == nullptr) return std::nullopt;
  const std::optional<PackedBytes> found = packed->Find(absl::StrCat(key, kFactsSuffix));
  if (!found.has_value() || found->bytes.size() < 3) return std::nullopt;
  absl::string_view bytes = found->bytes;
  const bool has_scales = bytes[1] != 0, has_bias = bytes[2] != 0;
  WeightFacts facts;
  facts.has_non_finite = bytes[0] != 0;
  bytes.remove_prefix(3);
  const auto channels = static_cast<size_t>(op.output_channels());
  const size_t bias_size = bytes.size() / sizeof(float) - (has_scales ? channels : 0);
  // A bias has one number per channel, or none.
  if (bytes.size() % sizeof(float) != 0 || bytes.size() / sizeof(float) < (has_scales ? channels : 0) ||
      (has_bias ? bias_size != channels && bias_size != 0 : bias_size != 0)) {
    return std::nullopt;
  }
  if (has_scales) facts.scales = TakeFloats(channels, &bytes);
  if (has_bias) facts.bias = TakeFloats(bias_size, &bytes);
  return facts;
}

void KeepFacts(const WeightFacts& facts, const std::string& key, PackedWeights* packed) {
  if (packed == nullptr) return;
  auto bytes = std::make_shared<std::string>();
  bytes->push_back(facts.has_non_finite ? '\1' : '\0');
  bytes->push_back(facts.scales.empty() ? '\0' : '\1');
  bytes->push_back(facts.bias.has_value() ? '\1' : '\0');
  AppendFloats(facts.scales, bytes.get());
  if (facts.bias.has_value()) AppendFloats(*facts.bias, bytes.get());
  const absl::string_view view = *bytes;
  packed->Keep(absl::StrCat(key, kFactsSuffix), {view, std::move(bytes)});
}

std::optional<PackedBytes> FindPacked(const std::string& key, const dnnl::memory::desc& layout, PackedWeights* packed) {
  const std::string text = packed == nullptr ? "" : LayoutText(layout);
  if (text.empty()) return std::nullopt;
  std::optional<PackedBytes> found = packed->Find(absl::StrCat(key, " ", text));
  // Primitives read whole vectors, so the weights must be aligned.
  if (found.has_value() &&
      (found->bytes.size() != layout.get_size() || reinterpret_cast<uintptr_t>(found->bytes.data()) % 64 != 0)) {
    return std::nullopt;
  }
  return found;
}

void KeepPacked(const std::string& key, const dnnl::memory& memory, PackedWeights* packed) {
  const std::string text = packed == nullptr ? "" : LayoutText(memory.get_desc());
  if (text.empty()) return;
  auto kept = std::make_shared<const dnnl::memory>(memory);
  const absl::string_view bytes(static_cast<const char*>(kept->get_data_handle()), kept->get_desc().get_size());
  packed->Keep(absl::StrCat(key, " ", text), {bytes, std::move(kept)});
}

std::string PackingIdentity() {
  const dnnl_version_t& version = *dnnl_version();
  return absl::StrCat("oneDNN ", version.major, ".", version.minor, ".", version.patch, " ", version.hash,
                      ", instructions ", absl::Hex(static_cast<unsigned>(dnnl::get_effective_cpu_isa())),
                      ", arithmetic ", kArithmeticVersion);
}

}  // namespace onednn
}  // namespace permafrost
