// The stage of fusion that assigns a type to each storage.
#include <algorithm>
#include <cstddef>
#include <numeric>
#include <utility>
#include <vector>

#include "runtime_check/delegates/onednn/depthwise_convolution.h"
#include "runtime_check/delegates/onednn/fusion_stages.h"
#include "runtime_check/delegates/onednn/narrow_convolution.h"
#include "runtime_check/delegates/onednn/quantization.h"

namespace permafrost {
namespace onednn {
namespace {

std::vector<const TensorStatistics*> FindStatistics(const Partition& partition, const PrecisionPlan& plan,
                                                    const Storages& storages) {
  std::vector<const TensorStatistics*> statistics(storages.storage.size(), nullptr);
  const auto note = [&](int tensor, absl::string_view name) {
    const TensorStatistics*& known = statistics[storages.storage[tensor]];
    if (known == nullptr) known = plan.StatisticsOf(name);
  };
  for (const DelegateNode& node : partition.nodes) {
    for (size_t j = 0; j < node.inputs.size(); ++j) {
      const TensorRef from = node.node->input(static_cast<int>(j));
      if (from.port == 0) note(node.inputs[j], from.node->name());
    }
    note(node.outputs[0], node.node->name());
  }
  return statistics;
}

// Finds the 8-bit type of each storage. Nodes that only move numbers need the same scale for inputs and outputs, so the
// storages that they connect share one.
std::vector<StorageType> FindEightBits(const ParsedPartition& parsed, const Storages& storages, const FusedPads& pads,
                                       const std::vector<const TensorStatistics*>& statistics) {
  std::vector<int> group(storages.storage.size());
  std::iota(group.begin(), group.end(), 0);
  const auto find = [&](int storage) {
    while (group[storage] != storage) storage = group[storage] = group[group[storage]];
    return storage;
  };
  for (size_t i = 0; i < parsed.nodes.size(); ++i) {
    const ParsedNode& node = parsed.nodes[i];
    if (pads.is_fused[i] || parsed.precisions[i] != Precision::kInt8 || !MovesNumbers(node.kind)) continue;
    const int num_values = node.kind == NodeKind::kConcat ? node.num_values : 1;
    for (int j = 0; j < num_values; ++j) group[find(storages.Input(i, j))] = find(storages.Output(i));
  }
  std::vector<TensorStatistics> joined(group.size());
  std::vector<bool> is_known(group.size(), false);
  for (size_t s = 0; s < group.size(); ++s) {
    if (statistics[s] == nullptr) continue;
    const auto root = static_cast<size_t>(find(static_cast<int>(s)));
    joined[root].least = std::min(joined[root].least, statistics[s]->least);
    joined[root].bound = std::max(joined[root].bound, statistics[s]->bound);
    is_known[root] = true;
  }
  std::vector<StorageType> eight_bits(group.size());
  for (size_t s = 0; s < group.size(); ++s) {
    const auto root = static_cast<size_t>(find(static_cast<int>(s)));
    if (statistics[s] != nullptr && is_known[root]) eight_bits[s] = EightBitType(joined[root]);
  }
  return eight_bits;
}

// Returns the precision in which a weighted node computes if oneDNN has such a primitive.
Precision PrecisionOfWeighted(const ParsedPartition& parsed, size_t i, const Storages& storages, const FusedPads& pads,
                              const std::vector<StorageType>& eight_bits) {
  if (IsNarrow(parsed.nodes[i])) return Precision::kF32;
  if (parsed.precisions[i] != Precision::kInt8) return parsed.precisions[i];
  const int input = pads.input_of[i] != kNone ? pads.input_of[i] : storages.Input(i, parsed.DataInput(i));
  const bool has_eight_bits = eight_bits[input].IsInt8() && parsed.nodes[i].kind != NodeKind::kTransposedConvolution;
  return has_eight_bits ? Precision::kInt8 : Precision::kBf16;
}

// The storages that pieces write, in the order of the pieces, each with the narrowest precision that its writer
// supports. A chain writes its last result.
struct Writes {
  std::vector<Precision> narrowest;        // Indexed by storage.
  std::vector<std::pair<int, int>> order;  // Pairs of position and storage.
};

Writes FindWrites(const ParsedPartition& parsed, const StepGraph& graph, const FusedPads& pads, const Chains& chains,
                  const std::vector<Precision>& precisions, const Storages& storages) {
  Writes writes;
  writes.narrowest.assign(storages.storage.size(), Precision::kF32);
  std::vector<bool> is_ordered(storages.storage.size(), false);
  const auto write = [&](int storage, int position, Precision precision) {
    writes.narrowest[storage] = precision;
    if (!is_ordered[storage]) writes.order.emplace_back(position, storage);
    is_ordered[storage] = true;
  };
  for (size_t i = 0; i < graph.steps.size(); ++i) {
    const Step& step = graph.steps[i];
    if (chains.is_chained[i] || step.is_dropped) continue;
    write(step.result, step.position, parsed.precisions[static_cast<size_t>(step.node)]);
  }
  for (size_t i = 0; i < parsed.nodes.size(); ++i) {
    const ParsedNode& node = parsed.nodes[i];
    if (IsWeighted(node.kind)) {
      const std::vector<int>& steps = chains.chains[i].steps;
      // The delegate's own convolutions write any type.
      const bool is_own = precisions[i] == Precision::kBf16x3 ||
                          (precisions[i] == Precision::kBf16 && IsOwnDepthwise(node, Element::kBf16));
      write(steps.empty() ? storages.Output(i) : graph.steps[steps.back()].result, chains.end[i],
            is_own ? Precision::kInt8 : precisions[i]);
    } else if (MovesNumbers(node.kind) && !pads.is_fused[i]) {
      write(storages.Output(i), static_cast<int>(i), parsed.precisions[i]);
    }
  }
  std::sort(writes.order.begin(), writes.order.end());
  return writes;
}

// The types that the readers of a storage request.
struct Wanted {
  bool floats = false, bf16 = false, int8 = false;

  void Add(Precision precision) {
    floats = floats || ReadsFloats(precision);
    bf16 = bf16 || precision == Precision::kBf16;
    int8 = int8 || precision == Precision::kInt8;
  }
};

}  // namespace

void TypeAssignment::Set(int storage, StorageType type, Storages* storages) {
  if (static_cast<size_t>(storage) >= types.types.size()) types.types.resize(static_cast<size_t>(storage) + 1);
  types.types[storage] = type;
  storages->bytes[storage] = storages->bytes[storage] / static_cast<int64_t>(sizeof(float)) * type.bytes();
}

TypeAssignment AssignTypes(const ParsedPartition& parsed, const PrecisionPlan& plan, const StepGraph& graph,
                           const FusedPads& pads, const Chains& chains, Storages* storages) {
  TypeAssignment result;
  result.types.types.assign(storages->storage.size(), {});
  result.statistics = FindStatistics(*parsed.given, plan, *storages);
  result.eight_bits = FindEightBits(parsed, *storages, pads, result.statistics);
  result.precisions = parsed.precisions;
  for (size_t i = 0; i < parsed.nodes.size(); ++i) {
    if (!IsWeighted(parsed.nodes[i].kind)) continue;
    result.precisions[i] = PrecisionOfWeighted(parsed, i, *storages, pads, result.eight_bits);
  }
  const auto is_f32 = [](Precision precision) { return precision == Precision::kF32; };
  if (std::all_of(parsed.precisions.begin(), parsed.precisions.end(), is_f32)) return result;

  const Writes writes = FindWrites(parsed, graph, pads, chains, result.precisions, *storages);
  std::vector<size_t> root_of_step(graph.steps.size(), parsed.nodes.size());
  for (size_t i = 0; i < chains.chains.size(); ++i) {
    for (const int step : chains.chains[i].steps) root_of_step[static_cast<size_t>(step)] = i;
  }
  // In reverse order, so that the type of a node's result is known before the inputs of a node that only moves numbers.
  for (auto next = writes.order.rbegin(); next != writes.order.rend(); ++next) {
    const int s = next->second;
    if (storages->is_output[s] || storages->storage[s] != s || writes.narrowest[s] == Precision::kF32) continue;
    Wanted wanted;
    for (const int step : graph.readers[s].steps) {
      const size_t root = root_of_step[static_cast<size_t>(step)];
      const size_t node = root < parsed.nodes.size() ? root : static_cast<size_t>(graph.steps[step].node);
      (ReadsFloats(parsed.precisions[node]) ? wanted.floats : wanted.bf16) = true;
    }
    for (const int reader : graph.node_readers[s]) {
      const auto i = static_cast<size_t>(reader);
      const ParsedNode& node = parsed.nodes[i];
      if (IsWeighted(node.kind)) {
        // A narrow convolution converts its input itself.
        if (!IsNarrow(node)) wanted.Add(result.precisions[i]);
      } else if (pads.is_fused[i]) {
        // The convolution that absorbed the Pad reads its input instead.
        wanted.Add(result.precisions[static_cast<size_t>(graph.node_readers[storages->Output(i)][0])]);
      } else if (MovesNumbers(node.kind)) {
        const StorageType type = result.types.Of(storages->Output(i));
        wanted.bf16 = wanted.bf16 || type.IsBf16();
        wanted.int8 = wanted.int8 || type.IsInt8();
        wanted.floats = wanted.floats || parsed.precisions[i] == Precision::kF32;
      }
    }
    if (wanted.floats) continue;
    // Sums of many 8-bit numbers would accumulate rounding errors.
    const bool is_read_by_steps = !graph.readers[s].steps.empty();
    if (wanted.int8 && writes.narrowest[s] == Precision::kInt8 && !is_read_by_steps && result.eight_bits[s].IsInt8()) {
      result.Set(s, result.eight_bits[s], storages);
    } else if (wanted.bf16 || wanted.int8) {
      result.Set(s, {Element::kBf16}, storages);
    }
  }
  return result;
}

}  // namespace onednn
}  // namespace permafrost
