// Finds groups of weights, and writes the passes that store them.
#include "tools/optimizing/weight_groups.h"

#include <algorithm>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "graph/tensor.h"
#include "transforms/pipeline/pipeline.h"

namespace permafrost {
namespace {

// Minimum number of elements of a constant stored as float16: that of the preset smallest_download.
constexpr int kMinHalfElements = 32;

int BitsOf(Coding coding) {
  switch (coding) {
    case Coding::kFourBits:
    case Coding::kFourBitBlocks:
      return 4;
    case Coding::kEightBits:
      return 8;
    case Coding::kSixteenBits:
      return 16;
    case Coding::kFloat:
      break;
  }
  return 32;
}

std::string ReaderOf(const Node& constant) {
  constexpr int kMostIdentities = 8;
  const Node* node = &constant;
  for (int i = 0; i < kMostIdentities; ++i) {
    const Node* reader = nullptr;
    for (const Use& use : node->uses()) {
      if (use.consumer->input(use.index).is_control()) continue;
      reader = use.consumer;
      break;
    }
    if (reader == nullptr) return "";
    if (reader->op() != ops::kIdentity) return std::string(reader->op().name());
    node = reader;
  }
  return "";
}

// Appends arguments `key="name"` of the constants in the groups for which is_named[i].
void AddNames(absl::string_view key, absl::Span<const WeightGroup> groups, const std::vector<bool>& is_named,
              PassCall* call) {
  for (size_t i = 0; i < groups.size(); ++i) {
    if (!is_named[i]) continue;
    for (const std::string& name : groups[i].constants) call->arguments.push_back({std::string(key), name});
  }
}

size_t NumConstants(absl::Span<const WeightGroup> groups, const std::vector<bool>& is_counted) {
  size_t count = 0;
  for (size_t i = 0; i < groups.size(); ++i) count += is_counted[i] ? groups[i].constants.size() : 0;
  return count;
}

}  // namespace

absl::string_view NameOf(Coding coding) {
  switch (coding) {
    case Coding::kFourBits:
      return "4 bits";
    case Coding::kFourBitBlocks:
      return "4 bits in blocks";
    case Coding::kEightBits:
      return "8 bits";
    case Coding::kSixteenBits:
      return "16 bits";
    case Coding::kFloat:
      break;
  }
  return "float";
}

std::string WeightGroup::Title() const {
  return constants.size() == 1 ? constants[0] : absl::StrCat(constants[0], " and ", constants.size() - 1, " more");
}

std::vector<WeightGroup> FindWeightGroups(const Graph& graph, size_t most) {
  std::vector<WeightGroup> groups;
  for (const Node* node : graph.Nodes()) {
    if (node->op() != ops::kConst || graph.IsInput(node)) continue;
    const absl::StatusOr<Tensor> value = ConstValue(*node);
    if (!value.ok() || value->dtype() != DType::kFloat || value->num_elements() < kMinCodedElements) continue;
    WeightGroup& group = groups.emplace_back();
    group.constants = {std::string(node->name())};
    group.elements = value->num_elements();
    group.reader = ReaderOf(*node);
  }
  std::stable_sort(groups.begin(), groups.end(),
                   [](const WeightGroup& a, const WeightGroup& b) { return a.elements > b.elements; });
  if (groups.size() <= most) return groups;
  // Three quarters of the groups are single constants, the rest share the others evenly.
  const size_t num_single = most * 3 / 4;
  const size_t num_bundles = most - num_single;
  const size_t num_others = groups.size() - num_single;
  std::vector<WeightGroup> bundled(groups.begin(), groups.begin() + static_cast<ptrdiff_t>(num_single));
  for (size_t b = 0; b < num_bundles; ++b) {
    WeightGroup bundle;
    for (size_t i = b * num_others / num_bundles; i < (b + 1) * num_others / num_bundles; ++i) {
      const WeightGroup& single = groups[num_single + i];
      if (bundle.constants.empty()) bundle.reader = single.reader;
      bundle.constants.push_back(single.constants[0]);
      bundle.elements += single.elements;
    }
    if (!bundle.constants.empty()) bundled.push_back(std::move(bundle));
  }
  return bundled;
}

std::string TransformsOf(absl::string_view base, absl::Span<const WeightGroup> groups, const Storage& storage) {
  std::string transforms(base);
  // Fewest bits first: later passes leave constants unchanged that are coded already.
  for (const Coding coding : {Coding::kFourBits, Coding::kFourBitBlocks, Coding::kEightBits, Coding::kSixteenBits}) {
    std::vector<bool> has_coding(groups.size()), has_more(groups.size());
    for (size_t i = 0; i < groups.size(); ++i) {
      has_coding[i] = storage.codings[i] == coding;
      has_more[i] = storage.codings[i] > coding;
    }
    const size_t num_coded = NumConstants(groups, has_coding), num_more = NumConstants(groups, has_more);
    if (num_coded == 0) continue;
    PassCall call;
    call.name = "quantize_weights";
    call.arguments.push_back({"bits", absl::StrCat(BitsOf(coding))});
    call.arguments.push_back({"per_channel", "true"});
    call.arguments.push_back({"minimum_size", absl::StrCat(kMinCodedElements)});
    if (coding == Coding::kFourBitBlocks) call.arguments.push_back({"block", absl::StrCat(kWeightsPerBlock)});
    if (storage.is_calibrated && coding < Coding::kSixteenBits) {
      call.arguments.push_back({"calibration", std::string(kCalibrationName)});
    }
    if (num_more > 0) {
      // The shorter list.
      num_more < num_coded ? AddNames("exclude_node", groups, has_more, &call)
                           : AddNames("only_node", groups, has_coding, &call);
    }
    absl::StrAppend(&transforms, " ", call.ToString());
  }
  if (!storage.has_half_remainder) return transforms;
  PassCall half;
  half.name = "convert_float16_weights";
  half.arguments.push_back({"minimum_size", absl::StrCat(kMinHalfElements)});
  std::vector<bool> is_float(groups.size());
  for (size_t i = 0; i < groups.size(); ++i) is_float[i] = storage.codings[i] == Coding::kFloat;
  AddNames("exclude_node", groups, is_float, &half);
  return absl::StrCat(transforms, " ", half.ToString());
}

double EstimatedBytes(const WeightGroup& group, Coding coding) {
  // Bytes of the nodes that decode one constant, measured on mobilenet_v2: about 300 for eight bits, five more nodes
  // for four, and three more for blocks.
  const double overhead = coding == Coding::kFloat           ? 0
                          : coding == Coding::kFourBits      ? 700
                          : coding == Coding::kFourBitBlocks ? 1000
                                                             : 300;
  // Scales of blocks take two bytes.
  const double scales = coding == Coding::kFourBitBlocks ? 2.0 / kWeightsPerBlock : 0;
  return static_cast<double>(group.elements) * (BitsOf(coding) / 8.0 + scales) +
         overhead * static_cast<double>(group.constants.size());
}

}  // namespace permafrost
