// The stages of fusion, in the order in which Fuse runs them. Each is a function of the results of those before it.
//
//   ParsePartition -> FindStorages -> MakeSteps -> FusePads -> ChainSteps -> GroupSteps -> AssignTypes -> MakePieces
#ifndef PERMAFROST_RUNTIME_CHECK_DELEGATES_ONEDNN_FUSION_STAGES_H_
#define PERMAFROST_RUNTIME_CHECK_DELEGATES_ONEDNN_FUSION_STAGES_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime_check/delegate.h"
#include "runtime_check/delegates/onednn/fusion.h"
#include "runtime_check/delegates/onednn/node_kinds.h"
#include "runtime_check/delegates/onednn/piece.h"
#include "runtime_check/delegates/onednn/steps.h"
#include "runtime_check/packing/packed_weights.h"
#include "runtime_check/precision/precision_plan.h"

namespace permafrost {
namespace onednn {

// In place of a number of a node, step, group or storage.
inline constexpr int kNone = -1;

// Whether nodes of that kind have constant weights: convolutions and matrix products.
inline bool IsWeighted(NodeKind kind) {
  return kind == NodeKind::kConvolution || kind == NodeKind::kTransposedConvolution || kind == NodeKind::kMatMul;
}
// Whether nodes of that kind copy numbers or choose among them, and so can compute in eight bits.
inline bool MovesNumbers(NodeKind kind) {
  return kind == NodeKind::kPool || kind == NodeKind::kConcat || kind == NodeKind::kPad;
}
// Whether a node of that precision reads floats.
inline bool ReadsFloats(Precision precision) { return precision == Precision::kF32 || precision == Precision::kBf16x3; }

// The partition with the attributes of its nodes, and the precision that the plan asks for.
struct ParsedPartition {
  const Partition* partition;
  std::vector<ParsedNode> nodes;      // By node.
  std::vector<Precision> precisions;  // By node.

  const DelegateNode& Source(size_t node) const { return partition->nodes[node]; }
  const DelegateTensor& Input(size_t node, int i) const { return partition->tensors[Source(node).inputs[i]]; }
  const Shape& OutputShape(size_t node) const { return partition->tensors[Source(node).outputs[0]].shape; }
  std::string NameOf(size_t node) const { return std::string(Source(node).node->name()); }
  // The input of a weighted node that is an image or a matrix.
  int DataInput(size_t node) const { return nodes[node].kind == NodeKind::kTransposedConvolution ? 2 : 0; }
  bool IsStep(size_t node) const {
    return nodes[node].kind == NodeKind::kElementwise || nodes[node].kind == NodeKind::kBatchNorm;
  }
};

// Errors of ParseNode. `partition` must outlive the result.
absl::StatusOr<ParsedPartition> ParsePartition(const Partition& partition, const PrecisionPlan& plan);

// Where tensors are stored: tensors that are one another under other shapes (Identity, Reshape) share a storage. A
// storage has the number of the first tensor in it; results that only exist between pieces have storages beyond those
// of the tensors.
struct Storages {
  const Partition* partition;
  std::vector<int> storage;     // By tensor: its storage.
  std::vector<int64_t> bytes;   // By storage.
  std::vector<bool> is_output;  // By tensor and storage: it is an output of the partition.
  std::vector<bool> is_copied;  // By node: an alias that cannot share memory.

  int Input(size_t node, int i) const { return storage[partition->nodes[node].inputs[i]]; }
  int Output(size_t node) const { return storage[partition->nodes[node].outputs[0]]; }
  // Adds a storage of so many floats, and returns its number.
  int Add(int64_t elements);
};

Storages FindStorages(const ParsedPartition& parsed);

// Elementwise nodes as steps, simplified, and all readers of each storage.
struct StepGraph {
  std::vector<Step> steps;
  std::vector<Readers> readers;                // By storage.
  std::vector<std::vector<int>> node_readers;  // By storage: the nodes that are no steps.
};

// Adds storages for steps between the nodes.
StepGraph MakeSteps(const ParsedPartition& parsed, Storages* storages);

// The Pad nodes that convolutions compute.
struct FusedPads {
  std::vector<bool> is_fused;  // By node: a Pad that runs as a part of its reader.
  std::vector<int> input_of;   // By node: the storage that a convolution reads in place of its input, or kNone.
};

// Folds a Pad into the convolution that is its only reader, by adding to the padding of the convolution's window.
FusedPads FusePads(const Storages& storages, const StepGraph& graph, ParsedPartition* parsed);

// The steps fused to a weighted node: some into its weights and bias, the others as post-steps.
struct Chain {
  std::vector<int> steps;
  size_t num_folded = 0;         // The first so many go into weights and bias.
  std::vector<Step> post_steps;  // The others, with the activation of a _Fused op before them.
};

struct Chains {
  std::vector<Chain> chains;     // By node.
  std::vector<int> end;          // By node: the position where it runs, which is that of the last step of its chain.
  std::vector<bool> is_chained;  // By step.
};

// Puts the operand that a chain continues first in each of its steps.
Chains ChainSteps(const ParsedPartition& parsed, const Storages& storages, StepGraph* graph);

// The steps that remain, joined into loop nests.
struct StepGroups {
  std::vector<std::vector<int>> groups;  // Steps, in order.
  std::vector<int> group_of;             // By step, or kNone.
};

StepGroups GroupSteps(const Storages& storages, const StepGraph& graph, const Chains& chains);

// The type of the numbers in each storage.
struct TypeAssignment {
  StorageTypes types;
  std::vector<const TensorStatistics*> statistics;  // By storage; null where unknown.
  // By storage: its type if it had eight bits; floats where it cannot have.
  std::vector<StorageType> eight_bits;
  // By node: the precision that a weighted node computes in, unless oneDNN has no such primitive; for other nodes that
  // of the plan.
  std::vector<Precision> precisions;

  // REQUIRES: the storage holds floats.
  void Set(int storage, StorageType type, Storages* storages);
};

// A storage holds as few bits as all its readers compute with and its writer can write. Storages that a node of f32
// reads hold floats. `plan` must outlive the result.
TypeAssignment AssignTypes(const ParsedPartition& parsed, const PrecisionPlan& plan, const StepGraph& graph,
                           const FusedPads& pads, const Chains& chains, Storages* storages);

// The results of all stages before the last one.
struct FusionDecisions {
  ParsedPartition parsed;
  Storages storages;
  StepGraph graph;
  FusedPads pads;
  Chains chains;
  StepGroups groups;
  TypeAssignment types;
};

// For the other parameters see Fuse.
absl::StatusOr<Fused> MakePieces(FusionDecisions decisions, int num_threads, PackedWeights* packed,
                                 const std::vector<bool>& is_beside);

}  // namespace onednn
}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_DELEGATES_ONEDNN_FUSION_STAGES_H_
