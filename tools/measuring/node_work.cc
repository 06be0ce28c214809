// Visits the graph once in topological order; each node starts a group or joins one.
#include "tools/measuring/node_work.h"

#include <algorithm>
#include <array>
#include <optional>

#include "absl/strings/str_cat.h"
#include "graph/analysis/order.h"
#include "graph/base/status.h"
#include "graph/ops/op_schema.h"
#include "tools/summary/flops.h"

namespace permafrost {
namespace {

// Fewer channels than the vector width of the narrowest machine that is worth tuning for.
constexpr int64_t kNarrowChannels = 8;

// The role of an op in the division.
enum class Role : uint8_t { kFree, kCheapStep, kHardStep, kPool, kMovement, kLead, kOther };

Role RoleOf(Op op) {
  switch (op.id()) {
    case ops::kConst:
    case ops::kPlaceholder:
    case ops::kPlaceholderWithDefault:
    case ops::kIdentity:
    case ops::kReshape:
    case ops::kSqueeze:
    case ops::kExpandDims:
    case ops::kStopGradient:
    case ops::kNoOp:
    case ops::kShape:
    case ops::kShapeN:
    case ops::kSize:
    case ops::kRank:
    case ops::kCheckNumerics:
    case ops::kAssert:
      return Role::kFree;
    case ops::kAdd:
    case ops::kAddV2:
    case ops::kAddN:
    case ops::kSub:
    case ops::kMul:
    case ops::kBiasAdd:
    case ops::kBiasAddV1:
    case ops::kRelu:
    case ops::kRelu6:
    case ops::kLeakyRelu:
    case ops::kMaximum:
    case ops::kMinimum:
    case ops::kClipByValue:
    case ops::kNeg:
    case ops::kAbs:
    case ops::kSquare:
    case ops::kFusedBatchNorm:
    case ops::kFusedBatchNormV2:
    case ops::kFusedBatchNormV3:
    case ops::kBatchNormWithGlobalNormalization:
      return Role::kCheapStep;
    case ops::kSigmoid:
    case ops::kTanh:
    case ops::kElu:
    case ops::kSelu:
    case ops::kExp:
    case ops::kLog:
    case ops::kSoftplus:
    case ops::kSqrt:
    case ops::kRsqrt:
    case ops::kDiv:
    case ops::kRealDiv:
    case ops::kPow:
    case ops::kErf:
      return Role::kHardStep;
    case ops::kMaxPool:
    case ops::kMaxPoolV2:
    case ops::kAvgPool:
    case ops::kMean:
    case ops::kSum:
    case ops::kMax:
    case ops::kMin:
    case ops::kResizeBilinear:
    case ops::kResizeBicubic:
      return Role::kPool;
    case ops::kPad:
    case ops::kPadV2:
    case ops::kMirrorPad:
    case ops::kConcat:
    case ops::kConcatV2:
    case ops::kSplit:
    case ops::kSplitV:
    case ops::kSlice:
    case ops::kStridedSlice:
    case ops::kTranspose:
    case ops::kPack:
    case ops::kUnpack:
    case ops::kTile:
    case ops::kGather:
    case ops::kGatherV2:
    case ops::kSpaceToBatchND:
    case ops::kBatchToSpaceND:
    case ops::kSpaceToDepth:
    case ops::kDepthToSpace:
    case ops::kResizeNearestNeighbor:
      return Role::kMovement;
    default:
      return Role::kOther;
  }
}

bool RunsUnknownTimes(Op op) {
  switch (op.id()) {
    case ops::kIf:
    case ops::kStatelessIf:
    case ops::kWhile:
    case ops::kStatelessWhile:
    case ops::kCase:
    case ops::kStatelessCase:
    case ops::kPartitionedCall:
    case ops::kStatefulPartitionedCall:
    case ops::kSymbolicGradient:
    case ops::kRemoteCall:
      return true;
    default:
      const OpSchema* schema = FindSchema(op);
      return schema != nullptr && schema->Is(kControlFlow) && op != ops::kIdentity && op != ops::kNoOp;
  }
}

class Division {
 public:
  Division(const Graph& graph, const ShapeMap& shapes, bool fuses)
      : graph_(graph), shapes_(shapes), fuses_(fuses), is_known_(graph.id_limit(), false) {
    work_.group_of.assign(graph.id_limit(), -1);
  }

  absl::StatusOr<ModelWork> Divide() {
    PF_ASSIGN_OR_RETURN(const std::vector<Node*> order, StableTopologicalOrder(graph_));
    const std::vector<bool> is_needed = NeededNodes();
    for (const Node* node : order) {
      if (!is_needed[node->id()] || graph_.IsInput(node)) continue;
      PF_RETURN_IF_ERROR(Visit(*node));
    }
    for (const NodeWork& group : work_.groups) work_.weight_bytes += group.weight_bytes;
    return std::move(work_);
  }

 private:
  // Returns, by node id, the nodes that the outputs need and that are not fed; all nodes if no output is declared.
  std::vector<bool> NeededNodes() const {
    if (graph_.outputs().empty()) return std::vector<bool>(graph_.id_limit(), true);
    std::vector<Node*> roots;
    for (const Endpoint& output : graph_.outputs()) roots.push_back(output.node);
    std::vector<bool> is_fed(graph_.id_limit(), false);
    for (const Endpoint& input : graph_.inputs()) {
      if (input.node != nullptr) is_fed[input.node->id()] = true;
    }
    return ReachedBackwards(graph_, roots, is_fed);
  }

  absl::Status Visit(const Node& node) {
    if (RunsUnknownTimes(node.op())) {
      return absl::FailedPreconditionError(absl::StrCat("node '", node.name(), "' (", node.op().name(),
                                                        ") branches, loops or calls: what runs how often is not known "
                                                        "before a run"));
    }
    const Role role = RoleOf(node.op());
    if (IsKnownBefore(node)) {
      is_known_[node.id()] = true;
      return absl::OkStatus();
    }
    if (role == Role::kFree || (fuses_ && IsPadOfConvolution(node))) {
      // The node's output belongs to the group of its producer.
      if (node.num_data_inputs() > 0) work_.group_of[node.id()] = work_.group_of[node.input(0).node->id()];
      return absl::OkStatus();
    }
    const bool is_step = role == Role::kCheapStep || role == Role::kHardStep;
    int32_t group = is_step && fuses_ ? GroupToJoin(node) : -1;
    const bool joins = group >= 0;
    if (!joins) {
      group = static_cast<int32_t>(work_.groups.size());
      NodeWork& made = work_.groups.emplace_back();
      made.node = &node;
      made.work_class = ClassOf(node, role);
      std::optional<uint64_t> flops;
      if (CountFlops(node, shapes_, &flops)) made.flops = static_cast<double>(flops.value_or(0));
    }
    work_.group_of[node.id()] = group;
    return AddTraffic(node, role, joins, &work_.groups[static_cast<size_t>(group)]);
  }

  // Returns whether the node is computed before the run and costs nothing in it.
  bool IsKnownBefore(const Node& node) const {
    if (node.op() == ops::kConst) return true;
    if (node.num_data_inputs() == 0) return false;
    if (node.op() == ops::kShape || node.op() == ops::kShapeN || node.op() == ops::kSize || node.op() == ops::kRank) {
      return true;
    }
    const OpSchema* schema = FindSchema(node.op());
    if (schema == nullptr || schema->Is(kStateful | kRandom)) return false;
    for (int i = 0; i < node.num_data_inputs(); ++i) {
      if (!is_known_[node.input(i).node->id()]) return false;
    }
    return true;
  }

  // A Pad whose only reader is a convolution becomes the padding of that convolution.
  bool IsPadOfConvolution(const Node& node) const {
    if (node.op() != ops::kPad || node.uses().size() != 1 || graph_.IsOutput(&node)) return false;
    const Op reader = node.uses()[0].consumer->op();
    return reader == ops::kConv2D || reader == ops::kDepthwiseConv2dNative;
  }

  // Returns, among the groups that produce the step's inputs, one whose result only steps read; -1: none. Prefers a
  // result that only this step reads: for a residual addition, the branch that ends there.
  int32_t GroupToJoin(const Node& node) const {
    int32_t second_choice = -1;
    for (int i = 0; i < node.num_data_inputs(); ++i) {
      const Node& producer = *node.input(i).node;
      const int32_t group = work_.group_of[producer.id()];
      if (is_known_[producer.id()] || group < 0 || RoleOf(producer.op()) == Role::kMovement) continue;
      if (graph_.IsOutput(&producer)) continue;
      const absl::Span<const Use> uses = producer.uses();
      if (uses.size() == 1) return group;
      const bool only_steps = std::all_of(uses.begin(), uses.end(), [](const Use& use) {
        const Role role = RoleOf(use.consumer->op());
        return role == Role::kCheapStep || role == Role::kHardStep;
      });
      if (only_steps && uses.size() <= 4) second_choice = std::max(second_choice, group);
    }
    return second_choice;
  }

  WorkClass ClassOf(const Node& node, Role role) const {
    const auto filter_dim = [&](int input, int axis) {
      const Shape shape = input < node.num_data_inputs() ? shapes_.Of(node.input(input)) : Shape::UnknownRank();
      return shape.has_rank() && axis < shape.rank() ? shape.dim(axis) : kUnknownDim;
    };
    const Op op = node.op();
    if (op == ops::kConv2D || op == ops::k_FusedConv2D || op == ops::kQuantizedConv2D || op == ops::kFusedPadConv2D ||
        op == ops::kFusedResizeAndPadConv2D || op == ops::kConv3D) {
      const int filter = op == ops::kFusedPadConv2D ? 2 : op == ops::kFusedResizeAndPadConv2D ? 3 : 1;
      const int places = op == ops::kConv3D ? 3 : 2;
      bool is_pointwise = true;
      for (int axis = 0; axis < places; ++axis) is_pointwise = is_pointwise && filter_dim(filter, axis) == 1;
      if (is_pointwise) return WorkClass::kPointwise;
      const int64_t channels = filter_dim(filter, places);
      return channels >= 0 && channels < kNarrowChannels ? WorkClass::kNarrowConvolution : WorkClass::kConvolution;
    }
    if (op == ops::kDepthwiseConv2dNative || op == ops::k_FusedDepthwiseConv2dNative) return WorkClass::kDepthwise;
    if (op == ops::kConv2DBackpropInput) return WorkClass::kTransposed;
    if (op == ops::kMatMul || op == ops::k_FusedMatMul || op == ops::kBatchMatMul || op == ops::kBatchMatMulV2 ||
        op == ops::kBatchMatMulV3 || op == ops::kQuantizedMatMul || op == ops::kEinsum) {
      return WorkClass::kMatrix;
    }
    switch (role) {
      case Role::kPool:
        return WorkClass::kPool;
      case Role::kCheapStep:
      case Role::kHardStep:
        return WorkClass::kElementwise;
      case Role::kMovement:
        return WorkClass::kMovement;
      default:
        return WorkClass::kOther;
    }
  }

  // Returns the bytes of an output; nothing if they are unknown before the run.
  std::optional<double> BytesOf(TensorRef ref) {
    const Shape shape = shapes_.Of(ref);
    const absl::StatusOr<std::vector<DType>> types = OutputTypes(*ref.node);
    if (!shape.IsFullyKnown() || !types.ok() || static_cast<size_t>(ref.port) >= types->size()) return std::nullopt;
    const absl::StatusOr<int64_t> elements = shape.CheckedNumElements();
    if (!elements.ok()) return std::nullopt;
    return static_cast<double>(*elements) *
           static_cast<double>(SizeOf(RemoveRef((*types)[static_cast<size_t>(ref.port)])));
  }

  absl::Status AddTraffic(const Node& node, Role role, bool joins, NodeWork* group) {
    const auto unknown = [&] {
      return absl::FailedPreconditionError(
          absl::StrCat("the shapes of node '", node.name(), "' (", node.op().name(), ") are not known before a run"));
    };
    group->members.push_back(&node);
    const int32_t own = work_.group_of[node.id()];
    for (int i = 0; i < node.num_data_inputs(); ++i) {
      const TensorRef input = node.input(i);
      const std::optional<double> bytes = BytesOf(input);
      if (!bytes.has_value()) return unknown();
      if (is_known_[input.node->id()]) {
        group->weight_bytes += *bytes;
      } else if (!joins || work_.group_of[input.node->id()] != own) {
        group->activation_bytes += *bytes;
      }
    }
    double made = 0;
    const absl::Span<const Shape> outputs = shapes_.OutputsOf(node);
    // The outputs of a batch normalisation after the first are for training.
    const size_t count = role == Role::kCheapStep ? std::min<size_t>(1, outputs.size()) : outputs.size();
    for (size_t port = 0; port < count; ++port) {
      const std::optional<double> bytes = BytesOf({const_cast<Node*>(&node), static_cast<int>(port)});
      if (!bytes.has_value()) return unknown();
      made += *bytes;
    }
    // The output of a step replaces its input.
    if (!joins) group->activation_bytes += made;
    if (role == Role::kCheapStep || role == Role::kHardStep) {
      const double elements = static_cast<double>(outputs.empty() ? 0 : outputs[0].num_elements());
      (role == Role::kHardStep ? group->hard_elements : group->step_elements) += elements;
    }
    return absl::OkStatus();
  }

  const Graph& graph_;
  const ShapeMap& shapes_;
  const bool fuses_;
  std::vector<bool> is_known_;  // By node id: computed before the run.
  ModelWork work_;
};

}  // namespace

absl::string_view WorkClassName(WorkClass work_class) {
  static constexpr std::array<absl::string_view, kNumWorkClasses> kNames = {
      "convolution", "narrow convolution", "pointwise", "depthwise", "transposed", "matrix",
      "pool",        "elementwise",        "movement",  "other"};
  return kNames[static_cast<size_t>(work_class)];
}

absl::StatusOr<ModelWork> DivideWork(const Graph& graph, const absl::flat_hash_map<std::string, Shape>& fed,
                                     bool fuses) {
  PF_ASSIGN_OR_RETURN(const ShapeMap shapes, ShapesToCount(graph, fed));
  return Division(graph, shapes, fuses).Divide();
}

}  // namespace permafrost
