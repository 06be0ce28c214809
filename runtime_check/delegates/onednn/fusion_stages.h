// The stages of fusion, in the order in which Fuse runs them. Each is a function of the results of those before it.
//
//   ParsePartition (patterns) -> FindStorages -> MakeSteps -> FusePads -> ChainSteps -> GroupSteps -> AssignTypes ->
//   MakePieces
#ifndef PERMAFROST_RUNTIME_CHECK_DELEGATES_ONEDNN_FUSION_STAGES_H_
#define PERMAFROST_RUNTIME_CHECK_DELEGATES_ONEDNN_FUSION_STAGES_H_

#include <cstddef>
#include <cstdint>
#include <memory>
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

// Stands for a missing node, step, group or storage.
inline constexpr int kNone = -1;

// Returns true if nodes of that kind have constant weights: convolutions and matrix products.
inline bool IsWeighted(NodeKind kind) {
  return kind == NodeKind::kConvolution || kind == NodeKind::kTransposedConvolution || kind == NodeKind::kMatMul;
}
// Returns true if nodes of that kind copy or select numbers, and so can compute in 8 bits.
inline bool MovesNumbers(NodeKind kind) {
  return kind == NodeKind::kPool || kind == NodeKind::kConcat || kind == NodeKind::kPad;
}
// Returns true if a node with that precision reads floats.
inline bool ReadsFloats(Precision precision) { return precision == Precision::kF32 || precision == Precision::kBf16x3; }

// The partition, in which single nodes stand for patterns, with the parsed attributes and the planned precision of each
// node.
struct ParsedPartition {
  const Partition* given;  // Before patterns were replaced; tensors have the same numbers.
  std::shared_ptr<const Partition> partition;
  std::vector<ParsedNode> nodes;      // By node.
  std::vector<Precision> precisions;  // By node.

  const DelegateNode& Source(size_t node) const { return partition->nodes[node]; }
  const DelegateTensor& Input(size_t node, int i) const { return partition->tensors[Source(node).inputs[i]]; }
  const Shape& OutputShape(size_t node) const { return partition->tensors[Source(node).outputs[0]].shape; }
  std::string NameOf(size_t node) const { return std::string(Source(node).node->name()); }
  // Returns the input of a weighted node that is an image or a matrix.
  int DataInput(size_t node) const { return nodes[node].data; }
  bool IsStep(size_t node) const {
    return nodes[node].kind == NodeKind::kElementwise || nodes[node].kind == NodeKind::kBatchNorm;
  }
};

// Parses all nodes, and replaces patterns of several nodes by one. Returns the errors of ParseNode. `partition`
// must outlive the result.
absl::StatusOr<ParsedPartition> ParsePartition(const Partition& partition, const PrecisionPlan& plan);

// The mapping of tensors to storages. Tensors with the same elements under different shapes (Identity, Reshape) share a
// storage. A storage has the number of its first tensor; results that exist only between pieces have storages past
// those of the tensors.
struct Storages {
  const Partition* partition;
  std::vector<int> storage;     // By tensor: its storage.
  std::vector<int64_t> bytes;   // By storage.
  std::vector<bool> is_output;  // By tensor and storage: true for an output of the partition.
  std::vector<bool> is_copied;  // By node: true for an alias that cannot share memory.

  int Input(size_t node, int i) const { return storage[partition->nodes[node].inputs[i]]; }
  int Output(size_t node) const { return storage[partition->nodes[node].outputs[0]]; }
  // Adds a storage of `elements` floats, and returns its number.
  int Add(int64_t elements);
};

Storages FindStorages(const ParsedPartition& parsed);

// The elementwise nodes as simplified steps, and all readers of each storage.
struct StepGraph {
  std::vector<Step> steps;
  std::vector<Readers> readers;                // By storage.
  std::vector<std::vector<int>> node_readers;  // By storage: the readers that are not steps.
};

// Makes the steps, and adds storages for results between steps.
StepGraph MakeSteps(const ParsedPartition& parsed, Storages* storages);

// The Pad nodes that are folded into convolutions.
struct FusedPads {
  std::vector<bool> is_fused;  // By node: true for a Pad that runs as a part of its reader.
  std::vector<int> input_of;   // By node: the storage that a convolution reads in place of its input, or kNone.
};

// Folds a Pad into the convolution that is its only reader, by adding to the padding of the convolution's window.
FusedPads FusePads(const Storages& storages, const StepGraph& graph, ParsedPartition* parsed);

// The steps fused to a weighted node: some into its weights and bias, the others as post-steps.
struct Chain {
  std::vector<int> steps;
  size_t num_folded = 0;         // The number of leading steps that are folded into weights and bias.
  std::vector<Step> post_steps;  // The other steps, preceded by the activation of a _Fused op.
};

struct Chains {
  std::vector<Chain> chains;     // By node.
  std::vector<int> end;          // By node: the position where it runs, that of the last step of its chain.
  std::vector<bool> is_chained;  // By step.
};

// The steps that a piece can apply to its results.
enum class PostSteps {
  kOfPrimitives,  // Those that oneDNN supports behind a primitive; affine ones are folded into weights and bias.
  kAny,           // All; none is folded.
};

// Finds the chains. Reorders the operands of each step in a chain so that the chain's value comes first.
Chains ChainSteps(const ParsedPartition& parsed, const Storages& storages, StepGraph* graph,
                  PostSteps supported = PostSteps::kOfPrimitives);

// The remaining steps, combined into loop nests.
struct StepGroups {
  std::vector<std::vector<int>> groups;  // Step indices in order.
  std::vector<int> group_of;             // By step, or kNone.
};

StepGroups GroupSteps(const Storages& storages, const StepGraph& graph, const Chains& chains);

// The type of the numbers in each storage.
struct TypeAssignment {
  StorageTypes types;
  std::vector<const TensorStatistics*> statistics;  // By storage; null where unknown.
  // By storage: the 8-bit type it could have; float if it cannot have one.
  std::vector<StorageType> eight_bits;
  // By node: the precision in which a weighted node computes if oneDNN has such a primitive; for other nodes the
  // planned precision.
  std::vector<Precision> precisions;

  // Sets the type of a storage. REQUIRES: the storage holds floats.
  void Set(int storage, StorageType type, Storages* storages);
};

// Assigns each storage the narrowest type that all its readers compute with and its writer can write. A storage that an
// f32 node reads holds floats. `plan` must outlive the result.
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

// Makes the pieces. The other parameters are those of Fuse.
absl::StatusOr<Fused> MakePieces(FusionDecisions decisions, const FusionOptions& options,
                                 const std::vector<bool>& is_beside);

}  // namespace onednn
}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_DELEGATES_ONEDNN_FUSION_STAGES_H_
