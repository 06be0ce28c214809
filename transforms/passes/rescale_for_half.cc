// Scales parts of a graph by powers of two, so that their values fit the range of half.
#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "graph/base/status.h"
#include "graph/matching/matcher.h"
#include "transforms/pass.h"
#include "transforms/rewrites/absorption.h"
#include "transforms/rewrites/channel_scaling.h"
#include "transforms/rewrites/colocation.h"

namespace permafrost {
namespace {

// Half holds up to 65504. A margin of a factor of two is left for inputs that reach further than those measured.
constexpr double kWanted = 32768;
constexpr double kLargestWeight = 65504;

struct Params {
  std::vector<std::string> largest;
};

bool IsOneOf(const Node& node, std::initializer_list<Op> ops) {
  return std::find(ops.begin(), ops.end(), node.op()) != ops.end();
}

bool IsFloat(const Node& node) { return TypeAttr(node, "T").value_or(DType::kInvalid) == DType::kFloat; }

bool IsConstant(const Node& node, int index) {
  return index < node.num_data_inputs() && ConstantBehind(node.input(index)) != nullptr;
}

// Returns the input with the constant by which a node multiplies its data, or -1: the result is linear in either.
int FactorInput(const Node& node) {
  if (!IsFloat(node)) return -1;
  if (IsConvolution(node.op())) return IsConstant(node, kWeightsInput) ? kWeightsInput : -1;
  if (node.op() != ops::kMul || node.num_data_inputs() != 2) return -1;
  if (IsConstant(node, 1)) return 1;
  return IsConstant(node, 0) ? 0 : -1;
}

int DataOf(const Node& node, int factor_input) {
  return IsConvolution(node.op()) ? DataInput(node.op()) : 1 - factor_input;
}

// Returns the inputs that have to be scaled for the result to be scaled: all floats of a homogeneous op. Empty for
// other ops.
std::vector<int> HomogeneousInputs(const Node& node) {
  if (!IsFloat(node) || node.num_data_inputs() == 0) return {};
  if (IsOneOf(node, {ops::kIdentity,
                     ops::kRelu,
                     ops::kLeakyRelu,
                     ops::kNeg,
                     ops::kAbs,
                     ops::kMaxPool,
                     ops::kAvgPool,
                     ops::kReshape,
                     ops::kSqueeze,
                     ops::kExpandDims,
                     ops::kTranspose,
                     ops::kPad,
                     ops::kMirrorPad,
                     ops::kMean,
                     ops::kSum,
                     ops::kMax,
                     ops::kMin,
                     ops::kResizeNearestNeighbor,
                     ops::kStridedSlice,
                     ops::kSlice,
                     ops::kSpaceToBatchND,
                     ops::kBatchToSpaceND,
                     ops::kSpaceToDepth,
                     ops::kDepthToSpace})) {
    return {0};
  }
  std::vector<int> inputs;
  int count = 0;
  if (IsOneOf(node, {ops::kAdd, ops::kAddV2, ops::kSub, ops::kBiasAdd, ops::kMaximum, ops::kMinimum})) count = 2;
  if (node.op() == ops::kAddN) count = node.num_data_inputs();
  if (node.op() == ops::kConcatV2) count = node.num_data_inputs() - 1;
  for (int i = 0; i < count && i < node.num_data_inputs(); ++i) inputs.push_back(i);
  return inputs;
}

// Nodes whose results are scaled together, by 2^-exponent.
class Region {
 public:
  Region(Graph* graph, const absl::flat_hash_map<const Node*, double>& largest) : graph_(graph), largest_(largest) {}

  // Grows the region from a node until everything around it can undo the scale. FailedPrecondition with the node that
  // prevents it. The graph is unchanged.
  absl::Status Grow(Node* seed) {
    PF_RETURN_IF_ERROR(Add(seed));
    while (!waiting_.empty()) {
      Node* node = waiting_.back();
      waiting_.pop_back();
      PF_RETURN_IF_ERROR(Examine(node));
    }
    double most = 0;
    for (const Node* node : nodes_) {
      if (const auto value = largest_.find(node); value != largest_.end()) most = std::max(most, value->second);
    }
    exponent_ = std::max(1, static_cast<int>(std::ceil(std::log2(most / kWanted))));
    // A reader that has joined on another way has a scaled result of its scaled data.
    absorbers_.erase(std::remove_if(absorbers_.begin(), absorbers_.end(), [&](const Node* n) { return Contains(n); }),
                     absorbers_.end());
    for (const Node* reader : absorbers_) PF_RETURN_IF_ERROR(CheckWeights(*reader));
    return absl::OkStatus();
  }

  bool Contains(const Node* node) const { return nodes_.contains(node); }
  int exponent() const { return exponent_; }
  size_t size() const { return nodes_.size(); }

  std::vector<const Node*> Matched(const Node* seed) const {
    std::vector<const Node*> matched = {seed};
    for (const Node* node : ordered_) {
      if (node != seed) matched.push_back(node);
    }
    matched.insert(matched.end(), absorbers_.begin(), absorbers_.end());
    return matched;
  }

  absl::Status Rewrite() {
    const auto down = static_cast<float>(std::ldexp(1, -exponent_)), up = static_cast<float>(std::ldexp(1, exponent_));
    for (Node* node : ordered_) {
      const int factor = FactorInput(*node);
      if (factor >= 0) {
        // Scaled data gives a scaled result by itself.
        if (!Contains(node->input(DataOf(*node, factor)).node)) PF_RETURN_IF_ERROR(ScaleConstant(node, factor, down));
        continue;
      }
      for (const int i : HomogeneousInputs(*node)) {
        if (IsConstant(*node, i)) {
          PF_RETURN_IF_ERROR(ScaleConstant(node, i, down));
        } else if (!Contains(node->input(i).node)) {
          PF_RETURN_IF_ERROR(InsertFactor(node, i, down, "scaled_down"));
        }
      }
    }
    for (Node* reader : absorbers_) PF_RETURN_IF_ERROR(ScaleConstant(reader, FactorInput(*reader), up));
    for (const Use& use : exits_) {
      PF_RETURN_IF_ERROR(InsertFactor(use.consumer, static_cast<int>(use.index), up, "scaled_up"));
    }
    return absl::OkStatus();
  }

 private:
  bool IsBeyond(const Node* node) const { return largest_.contains(node); }

  // Returns whether the result of a node can be scaled.
  bool IsScalable(const Node& node) const {
    return !graph_->IsEndpoint(&node) && (FactorInput(node) >= 0 || !HomogeneousInputs(node).empty());
  }

  absl::Status Add(Node* node) {
    if (Contains(node)) return absl::OkStatus();
    if (graph_->IsEndpoint(node)) return BlockedByEndpoint(*node);
    if (!IsScalable(*node)) return Blocked(*node, "is not homogeneous, or multiplies with nothing constant");
    PF_RETURN_IF_ERROR(RequireUnmarked(*node));
    nodes_.insert(node);
    ordered_.push_back(node);
    waiting_.push_back(node);
    return absl::OkStatus();
  }

  absl::Status Examine(Node* node) {
    if (FactorInput(*node) < 0) {
      for (const int i : HomogeneousInputs(*node)) {
        const TensorRef input = node->input(i);
        if (IsConstant(*node, i)) continue;
        const bool joins = input.port == 0 && IsScalable(*input.node);
        if (joins || IsBeyond(input.node)) PF_RETURN_IF_ERROR(Add(input.node));
      }
    }
    for (const Use& use : node->uses()) {
      Node* reader = use.consumer;
      const TensorRef read = reader->input(static_cast<int>(use.index));
      if (read.is_control()) continue;
      if (read.port != 0) return Blocked(*node, "has a second output that is read");
      const int factor = FactorInput(*reader);
      if (factor >= 0 && static_cast<int>(use.index) == DataOf(*reader, factor)) {
        // A reader whose own result is too large stays scaled.
        if (IsBeyond(reader)) {
          PF_RETURN_IF_ERROR(Add(reader));
        } else if (!Contains(reader)) {
          absorbers_.push_back(reader);
        }
        continue;
      }
      const std::vector<int> inputs = HomogeneousInputs(*reader);
      const bool is_homogeneous = std::find(inputs.begin(), inputs.end(), static_cast<int>(use.index)) != inputs.end();
      if (is_homogeneous && !graph_->IsEndpoint(reader)) {
        PF_RETURN_IF_ERROR(Add(reader));
      } else if (IsBeyond(node)) {
        return Blocked(*reader, absl::StrCat("reads ", node->Describe(), " and cannot take it scaled"));
      } else {
        exits_.push_back(use);
      }
    }
    return absl::OkStatus();
  }

  absl::Status CheckWeights(const Node& reader) const {
    PF_ASSIGN_OR_RETURN(const Tensor weights, ConstValue(*ConstantBehind(reader.input(FactorInput(reader)))));
    if (weights.dtype() != DType::kFloat) return Blocked(reader, "has weights that are not float");
    const auto values = weights.elements<float>();
    for (size_t i = 0; i < values.size(); ++i) {
      if (std::fabs(std::ldexp(values[i], exponent_)) > kLargestWeight) {
        return Blocked(reader, "would have weights beyond the range of half");
      }
    }
    return absl::OkStatus();
  }

  absl::Status ScaleConstant(Node* node, int index, float factor) {
    PF_ASSIGN_OR_RETURN(const Tensor value, ConstValue(*ConstantBehind(node->input(index))));
    const auto elements = value.elements<float>();
    std::vector<float> scaled;
    scaled.reserve(elements.size());
    for (size_t i = 0; i < elements.size(); ++i) scaled.push_back(elements[i] * factor);
    return SetConstantInput(graph_, node, index, Tensor::FromVector(value.shape(), std::move(scaled)));
  }

  absl::Status InsertFactor(Node* reader, int index, float factor, const char* suffix) {
    const TensorRef data = reader->input(index);
    const std::string base = absl::StrCat(data.node->name(), "/", suffix);
    PF_ASSIGN_OR_RETURN(Node * mul, graph_->AddNode(graph_->UniqueName(base), ops::kMul, reader));
    PF_ASSIGN_OR_RETURN(Node * constant, graph_->AddConst(graph_->UniqueName(absl::StrCat(base, "/factor")),
                                                          Tensor::Scalar<float>(factor), mul));
    mul->SetAttr("T", AttrValue::Type(DType::kFloat));
    mul->set_device(reader->device());
    constant->set_device(reader->device());
    graph_->AddInput(mul, data);
    graph_->AddInput(mul, {constant, 0});
    graph_->SetInput(reader, index, {mul, 0});
    return absl::OkStatus();
  }

  Graph* graph_;
  const absl::flat_hash_map<const Node*, double>& largest_;
  absl::flat_hash_set<const Node*> nodes_;
  std::vector<Node*> ordered_, waiting_, absorbers_;
  std::vector<Use> exits_;
  int exponent_ = 0;
};

absl::StatusOr<int64_t> Rescale(Graph* graph, const Params& params, PassContext* context) {
  absl::flat_hash_map<const Node*, double> largest;
  std::vector<Node*> seeds;
  for (const std::string& entry : params.largest) {
    const size_t equals = entry.rfind('=');
    double value = 0;
    if (equals == std::string::npos || !absl::SimpleAtod(entry.substr(equals + 1), &value) || !std::isfinite(value) ||
        value <= 0) {
      return absl::InvalidArgumentError(absl::StrCat("parameter 'largest': found '", entry, "', expected NODE=VALUE"));
    }
    Node* node = graph->Find(entry.substr(0, equals));
    if (node == nullptr) {
      context->NoteAbsent(absl::StrCat("no node is named '", entry.substr(0, equals), "'"));
      continue;
    }
    if (value > kWanted && largest.emplace(node, value).second) seeds.push_back(node);
  }
  int64_t rewrites = 0;
  absl::flat_hash_set<const Node*> done;
  for (Node* seed : seeds) {
    if (done.contains(seed)) continue;
    Region region(graph, largest);
    const absl::Status grown = region.Grow(seed);
    if (absl::IsFailedPrecondition(grown)) {
      context->Miss(*seed, grown);
      context->Note(absl::StrCat("keep ", seed->Describe(), " in float: ", grown.message()));
      continue;
    }
    PF_RETURN_IF_ERROR(grown);
    const RewriteScope rewrite(context, graph, region.Matched(seed));
    if (!rewrite) continue;
    PF_RETURN_IF_ERROR(region.Rewrite());
    for (const Node* other : seeds) {
      if (region.Contains(other)) done.insert(other);
    }
    context->Note(
        absl::StrCat("scaled ", region.size(), " nodes around ", seed->Describe(), " by 2^-", region.exponent()));
    ++rewrites;
  }
  if (rewrites > 0) DropDanglingColocations(graph);
  return rewrites;
}

}  // namespace

// Scales tensors that exceed the range of half by a power of two, which changes no digit of the results.
//
//   Conv2D(Relu(BiasAdd(Conv2D(x, w), b)), v)   =>   Conv2D(Relu(BiasAdd(Conv2D(x, w / 8), b / 8)), v * 8)
//
// largest="NODE=VALUE", once for each tensor, has the largest magnitudes of a run; validate_model --simulate=half
// prints them. From such a node the scale extends through homogeneous ops (Relu, poolings, additions, concatenations,
// shapes and the like) to convolutions, matrix products and multiplications with constants, which take it into their
// weights. Where an operand outside is needed scaled, or a result inside unscaled, a Mul does it.
//
// A node is left unchanged, and a note names it as one to keep in float, if an op that is not homogeneous reads a
// tensor beyond the range, if it is a declared input or output, or if weights would leave the range.
DEFINE_PASS(rescale_for_half) {
  return Pass<Params>("Scales tensors beyond the range of half by powers of two.")
      .Why("Delegates that compute in half return infinities and NaN where an activation exceeds 65,504.")
      .Param("largest", &Params::largest, "NODE=VALUE: the largest magnitude of a node's output.", Required())
      .Numerics(Within(1e-6))
      .Run(Rescale);
}

}  // namespace permafrost
