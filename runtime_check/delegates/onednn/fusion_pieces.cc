// The last stage of fusion, which makes the pieces.
#include <algorithm>
#include <cstddef>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "graph/base/status.h"
#include "runtime_check/delegates/onednn/array_pieces.h"
#include "runtime_check/delegates/onednn/attention_piece.h"
#include "runtime_check/delegates/onednn/depthwise_convolution.h"
#include "runtime_check/delegates/onednn/fusion_stages.h"
#include "runtime_check/delegates/onednn/image_pieces.h"
#include "runtime_check/delegates/onednn/loop_nest.h"
#include "runtime_check/delegates/onednn/product_pieces.h"
#include "runtime_check/delegates/onednn/split_convolution.h"
#include "runtime_check/delegates/onednn/weighted.h"
#include "runtime_check/delegates/onednn/winograd_convolution.h"

namespace permafrost {
namespace onednn {
namespace {

// Returns the next wider precision, to try if oneDNN has no primitive for this one.
Precision Wider(Precision precision) { return precision == Precision::kInt8 ? Precision::kBf16 : Precision::kF32; }

// Folds a step that is affine per channel into the scale and bias of the op.
void Fold(const Step& step, WeightedOp* op) {
  const auto channels = static_cast<size_t>(op->output_channels());
  const auto at = [&](size_t c) { return step.constants[step.constants.size() == 1 ? 0 : c]; };
  const auto add = [&](auto value) {
    op->bias.resize(channels, 0.0f);
    for (size_t c = 0; c < channels; ++c) op->bias[c] += value(c);
  };
  const auto multiply = [&](auto value) {
    op->scale.resize(channels, 1.0f);
    for (size_t c = 0; c < channels; ++c) {
      op->scale[c] *= value(c);
      if (!op->bias.empty()) op->bias[c] *= value(c);
    }
  };
  switch (step.op) {
    case LoopOp::kAffine:
      if (step.alpha != 1) multiply([&](size_t) { return step.alpha; });
      if (step.beta != 0) add([&](size_t) { return step.beta; });
      return;
    case LoopOp::kAdd:
      return add(at);
    case LoopOp::kSub:
      return add([&](size_t c) { return -at(c); });
    case LoopOp::kMul:
      return multiply(at);
    case LoopOp::kDiv:
      return multiply([&](size_t c) { return 1.0f / at(c); });
    default:
      return;
  }
}

// Returns the input shape of a weighted node, without the padding of a folded Pad.
Shape InputShape(const ParsedNode& node) {
  if (node.kind == NodeKind::kMatMul) return Shape({node.rows, node.depth});
  const WindowGeometry& window = node.window;
  if (node.kind == NodeKind::kTransposedConvolution) {
    return Shape({window.batch, window.y.output, window.x.output, window.input_channels});
  }
  return Shape({window.batch, window.y.input, window.x.input, window.input_channels});
}

// The packed weights of one partition. They exist as long as their pieces.
class SharedWeights final : public PackedWeights {
 public:
  std::optional<PackedBytes> Find(const std::string& key) override {
    const auto found = entries_.find(key);
    return found == entries_.end() ? std::nullopt : std::optional<PackedBytes>(found->second);
  }
  void Keep(const std::string& key, PackedBytes packed) override { entries_[key] = std::move(packed); }

 private:
  std::map<std::string, PackedBytes> entries_;
};

class PieceMaker {
 public:
  PieceMaker(FusionDecisions decisions, const FusionOptions& options, const std::vector<bool>& is_beside)
      : parsed_(std::move(decisions.parsed)),
        storages_(std::move(decisions.storages)),
        graph_(std::move(decisions.graph)),
        pads_(std::move(decisions.pads)),
        chains_(std::move(decisions.chains)),
        groups_(std::move(decisions.groups)),
        types_(std::move(decisions.types)),
        num_threads_(options.num_threads),
        uses_winograd_(options.uses_winograd),
        packed_(options.packed),
        is_beside_(is_beside) {}

  absl::StatusOr<Fused> Run() {
    CountReaders();
    for (size_t i = 0; i < parsed_.nodes.size(); ++i) {
      if (!pads_.is_fused[i]) PF_RETURN_IF_ERROR(MakePiece(i));
    }
    MakeLoopNests();
    Fused fused;
    fused.order.resize(made_.size());
    std::iota(fused.order.begin(), fused.order.end(), 0);
    std::stable_sort(fused.order.begin(), fused.order.end(),
                     [this](int a, int b) { return made_[a].position < made_[b].position; });
    for (const int number : fused.order) fused.pieces.push_back(std::move(made_[number].piece));
    fused.storage = std::move(storages_.storage);
    fused.bytes = std::move(storages_.bytes);
    fused.wants_finite = wants_finite_;
    return fused;
  }

 private:
  struct Made {
    int position;
    std::unique_ptr<Piece> piece;
  };
  struct Conversion {
    int position;
    int storage;
  };

  // Returns the number of threads for the next piece.
  int NextThreads() const { return made_.size() < is_beside_.size() && is_beside_[made_.size()] ? 1 : num_threads_; }

  void Add(int position, std::unique_ptr<Piece> piece) { made_.push_back({position, std::move(piece)}); }

  // Adds a conversion. `name` is the name of the node that needs it.
  void Convert(int from, int to, const Shape& shape, const std::string& name, int position) {
    PlainOp op;
    op.inputs.emplace_back(from, shape);
    op.output = {to, shape};
    op.num_threads = NextThreads();
    op.name = name;
    Add(position, MakeConversion(op, types_.types.Of(from), types_.types.Of(to)));
  }

  // Returns the storage, or a copy of the requested type that is made before the piece at `position`. `name` is the
  // name of the node that reads it.
  int As(int storage, StorageType type, const Shape& shape, const std::string& name, int position) {
    if (types_.types.Of(storage) == type) return storage;
    const std::pair<int, int> key(storage, static_cast<int>(type.element));
    const auto found = converted_.find(key);
    if (found != converted_.end() && found->second.position <= position &&
        types_.types.Of(found->second.storage) == type) {
      return found->second.storage;
    }
    const int copy = storages_.Add(shape.num_elements());
    types_.Set(copy, type, &storages_);
    Convert(storage, copy, shape, name, position);
    converted_[key] = {position, copy};
    return copy;
  }

  // Returns node `i` with its first `num_inputs` inputs, those with floats converted to the requested type.
  PlainOp PlainIn(StorageType type, size_t i, int num_inputs) {
    PlainOp op;
    op.parsed = parsed_.nodes[i];
    op.output = {storages_.Output(i), parsed_.OutputShape(i)};
    op.name = parsed_.NameOf(i);
    op.type = type;
    for (int j = 0; j < num_inputs; ++j) {
      const Shape& shape = parsed_.Input(i, j).shape;
      if (parsed_.Input(i, j).constant.has_value()) {
        op.inputs.emplace_back(kNone, shape);
        op.constants.push_back(*parsed_.Input(i, j).constant);
        continue;
      }
      op.inputs.emplace_back(As(storages_.Input(i, j), type, shape, op.name, static_cast<int>(i)), shape);
    }
    op.num_threads = NextThreads();
    return op;
  }

  absl::Status MakePiece(size_t i) {
    const auto position = static_cast<int>(i);
    const StorageType result_type = types_.types.Of(storages_.Output(i));
    switch (parsed_.nodes[i].kind) {
      case NodeKind::kElementwise:
      case NodeKind::kBatchNorm:
        break;
      case NodeKind::kAlias:
        if (storages_.is_copied[i]) Add(position, MakeCopy(PlainIn({}, i, 1)));
        break;
      case NodeKind::kConvolution:
      case NodeKind::kTransposedConvolution:
      case NodeKind::kMatMul:
        return MakeWeightedPiece(i);
      case NodeKind::kPool: {
        PF_ASSIGN_OR_RETURN(std::unique_ptr<Piece> piece, MakePool(PlainIn(result_type, i, 1)));
        Add(position, std::move(piece));
        break;
      }
      case NodeKind::kReduce:
        Add(position, MakeReduce(PlainIn({}, i, 1)));
        break;
      case NodeKind::kConcat:
        Add(position, MakeConcat(PlainIn(result_type, i, parsed_.nodes[i].num_values)));
        made_.back().piece->note = parsed_.nodes[i].near_miss;
        break;
      case NodeKind::kPad:
        Add(position, MakePad(PlainIn(result_type, i, 1)));
        break;
      case NodeKind::kResize:
        Add(position, MakeResize(PlainIn({}, i, 1)));
        break;
      case NodeKind::kSoftmax:
        Add(position, MakeSoftmax(PlainIn({}, i, 1)));
        made_.back().piece->note = parsed_.nodes[i].near_miss;
        break;
      case NodeKind::kBroadcast:
        Add(position, MakeBroadcast(PlainIn({}, i, 2)));
        made_.back().piece->note = parsed_.nodes[i].near_miss;
        break;
      case NodeKind::kSelect:
        Add(position, MakeSelect(PlainIn({}, i, 3)));
        break;
      case NodeKind::kGather:
        Add(position, MakeGather(PlainIn({}, i, 2), parsed_.Input(i, 1).dtype));
        break;
      case NodeKind::kProduct:
        Add(position, MakeProduct(PlainIn({}, i, 2)));
        break;
      case NodeKind::kNormalize:
        Add(position, MakeNormalize(PlainIn({}, i, 1)));
        break;
      case NodeKind::kAttention:
        Add(position, MakeAttention(PlainIn({}, i, static_cast<int>(parsed_.Source(i).inputs.size()))));
        break;
      case NodeKind::kView:
        MakeViews(i);
        break;
    }
    return absl::OkStatus();
  }

  // Makes one piece for each output that has readers.
  void MakeViews(size_t i) {
    const int data = parsed_.nodes[i].data;
    const DelegateNode& source = parsed_.Source(i);
    for (size_t j = 0; j < source.outputs.size(); ++j) {
      const int output = storages_.storage[source.outputs[j]];
      const Readers& readers = graph_.readers[output];
      if (readers.steps.empty() && readers.others == 0) continue;
      PlainOp op;
      op.parsed = parsed_.nodes[i];
      op.output = {output, parsed_.partition->tensors[source.outputs[j]].shape};
      op.name = parsed_.NameOf(i);
      const Shape& shape = parsed_.Input(i, data).shape;
      op.inputs.emplace_back(As(storages_.Input(i, data), {}, shape, op.name, static_cast<int>(i)), shape);
      op.num_threads = NextThreads();
      Add(static_cast<int>(i), MakeView(op, op.parsed.views[j]));
    }
  }

  // Makes the piece in the narrowest precision for which oneDNN has a primitive, starting with the precision of the
  // node.
  absl::Status MakeWeightedPiece(size_t i) {
    WeightedOp op;
    op.parsed = parsed_.nodes[i];
    const DelegateTensor& weights = parsed_.Input(i, op.parsed.weights);
    op.weights = *weights.constant;
    if (op.parsed.kind == NodeKind::kMatMul && op.weights.shape().rank() != 2) {
      const int64_t depth = op.parsed.depth, columns = op.parsed.columns;
      const Shape matrix = op.parsed.transpose_b ? Shape({columns, depth}) : Shape({depth, columns});
      PF_ASSIGN_OR_RETURN(op.weights, op.weights.Reshaped(matrix));
    }
    op.weights_name = NameOfWeights(i);
    op.input = pads_.input_of[i] != kNone ? pads_.input_of[i] : storages_.Input(i, parsed_.DataInput(i));
    op.output = storages_.Output(i);
    op.name = parsed_.NameOf(i);
    if (op.parsed.has_bias) op.bias = FloatsOf(*parsed_.Input(i, 2).constant);
    Chain& chain = chains_.chains[i];
    for (size_t k = 0; k < chain.num_folded; ++k) Fold(graph_.steps[chain.steps[k]], &op);
    op.post_steps = std::move(chain.post_steps);
    if (!chain.steps.empty()) op.output = graph_.steps[chain.steps.back()].result;
    const TensorStatistics* statistics = types_.statistics[op.input];
    if (statistics != nullptr) op.means = statistics->means;
    for (Precision precision = types_.precisions[i];; precision = Wider(precision)) {
      const size_t num_made = made_.size();
      const auto converted = converted_;
      const absl::Status status = MakeWeightedAs(precision, op, i);
      if (status.ok()) {
        wants_finite_ = wants_finite_ || precision == Precision::kInt8 || precision == Precision::kBf16x3;
        return absl::OkStatus();
      }
      if (precision == Precision::kF32) return status;
      made_.resize(num_made);
      converted_ = converted;
    }
  }

  // Returns the type that a weighted node of that precision reads.
  StorageType InputType(Precision precision, int storage) const {
    switch (precision) {
      case Precision::kF32:
        return {};
      case Precision::kBf16:
        return {Element::kBf16};
      case Precision::kInt8:
        return types_.eight_bits[storage];
      case Precision::kBf16x3:
        return types_.types.Of(storage);
    }
    return {};
  }

  // Returns the cache for packed weights of the op; null for weights that were computed from shapes, which may differ
  // in the next run of the program. Without a cache of the session, weights that several nodes read are shared.
  PackedWeights* PackedFor(const WeightedOp& op) {
    if (op.weights_name.empty()) return nullptr;
    if (packed_ != nullptr) return packed_;
    return num_readers_[op.weights_name] > 1 ? &shared_ : nullptr;
  }

  void CountReaders() {
    for (size_t i = 0; i < parsed_.nodes.size(); ++i) {
      if (IsWeighted(parsed_.nodes[i].kind)) ++num_readers_[NameOfWeights(i)];
    }
  }

  // Returns DelegateTensor::value_name of the weights, and for the same memory always the same one: each step of an
  // unrolled network may read its weights through an Identity of its own.
  const std::string& NameOfWeights(size_t i) {
    const DelegateTensor& weights = parsed_.Input(i, parsed_.nodes[i].weights);
    if (weights.value_name.empty()) return weights.value_name;
    return names_.emplace(weights.constant->bytes(), weights.value_name).first->second;
  }

  // Returns Unimplemented, with the reason, or InvalidArgument if the direct form is better.
  absl::StatusOr<std::unique_ptr<Piece>> MakeInWinogradForm(const WeightedOp& op) {
    PF_ASSIGN_OR_RETURN(const WinogradChoice choice, ChooseWinograd(op.parsed, NextThreads()));
    return MakeWinograd(op, choice, types_.types, NextThreads(), PackedFor(op));
  }

  absl::Status MakeWeightedAs(Precision precision, WeightedOp op, size_t i) {
    const int position = chains_.end[i];
    const StorageTypes& types = types_.types;
    op.input = As(op.input, InputType(precision, op.input), InputShape(op.parsed), op.name, position);
    std::string note;  // The reason for the direct form.
    const auto add = [&](std::unique_ptr<Piece> piece) {
      piece->products = Products(op.parsed);
      piece->note = note;
      Add(position, std::move(piece));
    };
    if (IsOwnDepthwise(op.parsed, types.Of(op.input).element)) {
      absl::StatusOr<std::unique_ptr<Piece>> piece = MakeDepthwise(op, types, NextThreads(), PackedFor(op));
      if (piece.ok()) {
        add(*std::move(piece));
        return absl::OkStatus();
      }
      if (!absl::IsUnimplemented(piece.status())) return piece.status();
    }
    const int result = op.output;
    const StorageType type = types.Of(result);
    if ((precision == Precision::kF32 && !type.IsFloat()) || (precision == Precision::kBf16 && type.IsInt8())) {
      op.output = storages_.Add(parsed_.OutputShape(i).num_elements());
    }
    const auto make = [&]() -> absl::StatusOr<std::unique_ptr<Piece>> {
      if (precision == Precision::kBf16x3) return MakeSplitConvolution(op, types, NextThreads());
      if (precision == Precision::kF32 && uses_winograd_) {
        absl::StatusOr<std::unique_ptr<Piece>> piece = MakeInWinogradForm(op);
        if (piece.ok()) return piece;
        if (absl::IsUnimplemented(piece.status())) note = std::string(piece.status().message());
      }
      return MakeWeighted(op, types, NextThreads(), PackedFor(op));
    };
    absl::StatusOr<std::unique_ptr<Piece>> piece = make();
    if (piece.ok()) {
      add(*std::move(piece));
      if (op.output != result) Convert(op.output, result, parsed_.OutputShape(i), op.name, position);
      return absl::OkStatus();
    }
    if (!absl::IsUnimplemented(piece.status()) || op.post_steps.empty()) return piece.status();
    // The post-steps run in a loop nest after the primitive.
    std::vector<Step> steps;
    steps.swap(op.post_steps);
    op.output = storages_.Add(steps[0].rows.elements());
    for (size_t k = 0; k < steps.size(); ++k) {
      steps[k].value = k == 0 ? op.output : steps[k - 1].result;
      steps[k].result = k + 1 == steps.size() ? result : storages_.Add(steps[k].rows.elements());
    }
    PF_ASSIGN_OR_RETURN(std::unique_ptr<Piece> bare, make());
    add(std::move(bare));
    std::vector<const Step*> pointers;
    for (const Step& step : steps) pointers.push_back(&step);
    Add(position, MakeLoopNest(pointers, {result}, types, op.name, NextThreads()));
    return absl::OkStatus();
  }

  void MakeLoopNests() {
    for (const std::vector<int>& group : groups_.groups) {
      std::vector<const Step*> steps;
      std::vector<int> results;
      for (const int member : group) {
        const Step& step = graph_.steps[member];
        steps.push_back(&step);
        const Readers& readers = graph_.readers[step.result];
        const auto is_outside = [&](int reader) { return groups_.group_of[reader] != groups_.group_of[member]; };
        if (readers.others > 0 || std::any_of(readers.steps.begin(), readers.steps.end(), is_outside)) {
          results.push_back(step.result);
        }
      }
      if (results.empty()) continue;  // The results have no readers.
      const Step& last = *steps.back();
      Add(last.position,
          MakeLoopNest(steps, results, types_.types, parsed_.NameOf(static_cast<size_t>(last.node)), NextThreads()));
      for (const Step* step : steps) {
        const std::string& near_miss = parsed_.nodes[static_cast<size_t>(step->node)].near_miss;
        if (!near_miss.empty()) made_.back().piece->note = near_miss;
      }
    }
  }

  const ParsedPartition parsed_;
  Storages storages_;
  const StepGraph graph_;
  const FusedPads pads_;
  Chains chains_;
  const StepGroups groups_;
  TypeAssignment types_;
  const int num_threads_;
  const bool uses_winograd_;
  PackedWeights* const packed_;
  const std::vector<bool>& is_beside_;
  std::map<std::pair<int, int>, Conversion> converted_;  // Indexed by storage and type.
  // Orders memory, not its content.
  struct Before {
    bool operator()(absl::string_view a, absl::string_view b) const {
      return std::make_pair(reinterpret_cast<uintptr_t>(a.data()), a.size()) <
             std::make_pair(reinterpret_cast<uintptr_t>(b.data()), b.size());
    }
  };
  std::map<absl::string_view, std::string, Before> names_;  // Indexed by memory of weights.
  std::map<std::string, int> num_readers_;                  // Indexed by name of the weights: the nodes that read them.
  SharedWeights shared_;
  std::vector<Made> made_;
  bool wants_finite_ = false;
};

}  // namespace

absl::StatusOr<Fused> MakePieces(FusionDecisions decisions, const FusionOptions& options,
                                 const std::vector<bool>& is_beside) {
  return PieceMaker(std::move(decisions), options, is_beside).Run();
}

}  // namespace onednn
}  // namespace permafrost
