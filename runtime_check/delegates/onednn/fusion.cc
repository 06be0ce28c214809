// Orders of work: aliases, steps, pads, chains behind convolutions, loop nests.
#include "runtime_check/delegates/onednn/fusion.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <string>
#include <utility>

#include "graph/base/status.h"
#include "runtime_check/delegates/onednn/depthwise_convolution.h"
#include "runtime_check/delegates/onednn/image_pieces.h"
#include "runtime_check/delegates/onednn/loop_nest.h"
#include "runtime_check/delegates/onednn/narrow_convolution.h"
#include "runtime_check/delegates/onednn/node_kinds.h"
#include "runtime_check/delegates/onednn/quantization.h"
#include "runtime_check/delegates/onednn/split_convolution.h"
#include "runtime_check/delegates/onednn/steps.h"
#include "runtime_check/delegates/onednn/weighted.h"

namespace permafrost {
namespace onednn {
namespace {

constexpr int kNone = -1;

bool IsWeighted(NodeKind kind) {
  return kind == NodeKind::kConvolution || kind == NodeKind::kTransposedConvolution || kind == NodeKind::kMatMul;
}

class Fuser {
 public:
  Fuser(const Partition& partition, const PrecisionPlan& plan, int num_threads, PackedWeights* packed,
        const std::vector<bool>& is_beside)
      : partition_(partition), plan_(plan), num_threads_(num_threads), packed_(packed), is_beside_(is_beside) {}

  absl::StatusOr<Fused> Run() {
    for (const DelegateNode& node : partition_.nodes) {
      PF_ASSIGN_OR_RETURN(plans_.emplace_back(), ParseNode(partition_, node));
      Precision precision = plan_.Of(node.node->name());
      if (precision == Precision::kBf16x3 && !IsSplittable(plans_.back())) precision = Precision::kF32;
      precisions_.push_back(precision);
    }
    FindStorages();
    MakeSteps();
    FindReaders();
    Simplify(&steps_, &readers_);
    TakePads();
    ChainSteps();
    GroupSteps();
    AssignTypes();
    PF_RETURN_IF_ERROR(MakePieces());
    fused_.order.resize(made_.size());
    std::iota(fused_.order.begin(), fused_.order.end(), 0);
    std::stable_sort(fused_.order.begin(), fused_.order.end(),
                     [this](int a, int b) { return made_[a].position < made_[b].position; });
    for (const int number : fused_.order) fused_.pieces.push_back(std::move(made_[number].piece));
    return std::move(fused_);
  }

 private:
  struct Made {
    int position;
    std::unique_ptr<Piece> piece;
  };

  // The steps fused to a weighted node: some into its weights and bias, the others as post-steps.
  struct Chain {
    std::vector<int> steps;
    size_t num_folded = 0;
    std::vector<Step> post_steps;  // Taken when the piece is made.
  };

  // Of the piece that is made next.
  int NextThreads() const { return made_.size() < is_beside_.size() && is_beside_[made_.size()] ? 1 : num_threads_; }

  // Where a node runs: at the end of its chain.
  int EndOf(size_t node) const {
    const std::vector<int>& steps = chains_[node].steps;
    return steps.empty() ? static_cast<int>(node) : steps_[steps.back()].position;
  }

  const DelegateNode& NodeAt(size_t i) const { return partition_.nodes[i]; }
  int Input(size_t node, int i) const { return fused_.storage[NodeAt(node).inputs[i]]; }
  int Output(size_t node) const { return fused_.storage[NodeAt(node).outputs[0]]; }
  const DelegateTensor& TensorOf(size_t node, int i) const { return partition_.tensors[NodeAt(node).inputs[i]]; }
  const Shape& OutputShape(size_t node) const { return partition_.tensors[NodeAt(node).outputs[0]].shape; }
  std::string NameOfNode(size_t node) const { return std::string(NodeAt(node).node->name()); }

  // An alias of an input of the partition has memory of its own where it is an output: both are given.
  void FindStorages() {
    fused_.storage.resize(partition_.tensors.size());
    std::iota(fused_.storage.begin(), fused_.storage.end(), 0);
    for (const DelegateTensor& tensor : partition_.tensors) {
      fused_.bytes.push_back(tensor.shape.num_elements() * static_cast<int64_t>(SizeOf(tensor.dtype)));
    }
    is_copied_.assign(plans_.size(), false);
    is_output_.resize(partition_.tensors.size(), false);
    for (const int output : partition_.outputs) is_output_[output] = true;
    std::vector<bool> is_given(partition_.tensors.size(), false);
    for (const int input : partition_.inputs) is_given[input] = true;
    for (size_t i = 0; i < plans_.size(); ++i) {
      if (plans_[i].kind != NodeKind::kAlias) continue;
      const int output = NodeAt(i).outputs[0];
      const int source = fused_.storage[NodeAt(i).inputs[0]];
      const bool has_two_homes = is_output_[output] && (is_given[source] || is_output_[source]);
      if (has_two_homes || partition_.tensors[NodeAt(i).inputs[0]].constant.has_value()) {
        is_copied_[i] = true;
        continue;
      }
      fused_.storage[output] = source;
      if (is_output_[output]) is_output_[source] = true;
    }
  }

  int NewStorage(int64_t elements) {
    fused_.storage.push_back(static_cast<int>(fused_.storage.size()));
    fused_.bytes.push_back(elements * static_cast<int64_t>(sizeof(float)));
    is_output_.push_back(false);
    return fused_.storage.back();
  }

  Step NewStep(size_t node, int position) const {
    Step step(OutputShape(node));
    step.position = position;
    step.node = static_cast<int>(node);
    return step;
  }

  void MakeSteps() {
    for (size_t i = 0; i < plans_.size(); ++i) {
      const ParsedNode& parsed = plans_[i];
      const auto position = static_cast<int>(i);
      if (parsed.kind == NodeKind::kElementwise) {
        Step step = NewStep(i, position);
        step.op = parsed.loop;
        step.alpha = parsed.alpha;
        step.beta = parsed.beta;
        step.value = Input(i, parsed.left);
        step.result = Output(i);
        step.meeting = parsed.meeting;
        if (parsed.right >= 0) {
          const DelegateTensor& right = TensorOf(i, parsed.right);
          if (right.constant.has_value()) {
            step.constants = FloatsOf(*right.constant);
          } else {
            step.other = Input(i, parsed.right);
          }
        }
        steps_.push_back(std::move(step));
      } else if (parsed.kind == NodeKind::kBatchNorm) {
        Step scale = NewStep(i, position);
        scale.op = LoopOp::kMul;
        scale.value = Input(i, 0);
        scale.constants = parsed.factor;
        scale.meeting = Meeting::kPerChannel;
        scale.result = NewStorage(scale.rows.elements());
        Step shift = NewStep(i, position);
        shift.op = LoopOp::kAdd;
        shift.value = scale.result;
        shift.constants = parsed.offset;
        shift.meeting = Meeting::kPerChannel;
        shift.result = Output(i);
        steps_.push_back(std::move(scale));
        steps_.push_back(std::move(shift));
      }
    }
  }

  bool IsStepNode(size_t i) const {
    return plans_[i].kind == NodeKind::kElementwise || plans_[i].kind == NodeKind::kBatchNorm;
  }

  void FindReaders() {
    readers_.resize(fused_.storage.size());
    node_readers_.resize(fused_.storage.size());
    for (size_t i = 0; i < steps_.size(); ++i) {
      readers_[steps_[i].value].steps.push_back(static_cast<int>(i));
      if (steps_[i].other >= 0) readers_[steps_[i].other].steps.push_back(static_cast<int>(i));
    }
    for (size_t i = 0; i < plans_.size(); ++i) {
      if (IsStepNode(i) || (plans_[i].kind == NodeKind::kAlias && !is_copied_[i])) continue;
      for (size_t j = 0; j < NodeAt(i).inputs.size(); ++j) {
        const int storage = Input(i, static_cast<int>(j));
        ++readers_[storage].others;
        node_readers_[storage].push_back(static_cast<int>(i));
      }
    }
    for (size_t i = 0; i < is_output_.size(); ++i) {
      if (is_output_[i]) ++readers_[fused_.storage[i]].others;
    }
  }

  // A convolution pads as well as the node before it.
  void TakePads() {
    is_taken_.assign(plans_.size(), false);
    input_of_.assign(plans_.size(), kNone);
    for (size_t i = 0; i < plans_.size(); ++i) {
      if (plans_[i].kind != NodeKind::kPad) continue;
      const int padded = Output(i);
      if (is_output_[padded] || !readers_[padded].steps.empty() || node_readers_[padded].size() != 1) continue;
      const auto reader = static_cast<size_t>(node_readers_[padded][0]);
      ParsedNode& convolution = plans_[reader];
      if (convolution.kind != NodeKind::kConvolution) continue;
      const Shape& image = TensorOf(i, 0).shape;
      convolution.window.y.input = image.dim(1);
      convolution.window.x.input = image.dim(2);
      convolution.window.y.pad_before += plans_[i].pad_top;
      convolution.window.x.pad_before += plans_[i].pad_left;
      input_of_[reader] = Input(i, 0);
      is_taken_[i] = true;
    }
  }

  // The steps that only continue what `storage` holds: each the only reader of the one before.
  std::vector<int> ChainFrom(int storage, const Shape& shape) {
    std::vector<int> chain;
    const Rows rows(shape);
    while (!is_output_[storage] && readers_[storage].others == 0) {
      const std::vector<int>& readers = readers_[storage].steps;
      if (readers.size() != 1 || is_chained_[readers[0]]) break;
      Step& step = steps_[readers[0]];
      if (step.value != storage) {
        // The order of operands does not matter to some.
        if (step.meeting != Meeting::kSame || step.other != storage || step.op == LoopOp::kSub ||
            step.op == LoopOp::kDiv || step.op == LoopOp::kPrelu) {
          break;
        }
        std::swap(step.value, step.other);
      }
      if (step.rows.channels != rows.channels || step.rows.rows != rows.rows) break;
      chain.push_back(readers[0]);
      storage = step.result;
    }
    return chain;
  }

  void ChainSteps() {
    chains_.resize(plans_.size());
    is_chained_.assign(steps_.size(), false);
    for (size_t i = 0; i < plans_.size(); ++i) {
      if (!IsWeighted(plans_[i].kind)) continue;
      Chain& chain = chains_[i];
      std::vector<int> steps = ChainFrom(Output(i), OutputShape(i));
      // What is affine for each channel goes into weights and bias, unless an activation comes before.
      if (plans_[i].activation == PostActivation::kNone) {
        while (chain.num_folded < steps.size() && IsAffine(steps_[steps[chain.num_folded]])) ++chain.num_folded;
      }
      Step activation = NewStep(i, static_cast<int>(i));
      if (ActivationStep(plans_[i], &activation)) chain.post_steps.push_back(activation);
      size_t count = chain.num_folded;
      const bool takes_slopes = IsOwnDepthwise(plans_[i], SourceOf(precisions_[i]));
      while (count < steps.size() && AppendPostStep(steps_[steps[count]], takes_slopes, &chain.post_steps)) ++count;
      steps.resize(count);
      for (const int step : steps) is_chained_[step] = true;
      chain.steps = std::move(steps);
    }
  }

  static bool IsAffine(const Step& step) {
    if (step.op == LoopOp::kAffine) return true;
    if (step.constants.empty() || (step.meeting != Meeting::kPerChannel && step.meeting != Meeting::kScalar)) {
      return false;
    }
    return step.op == LoopOp::kAdd || step.op == LoopOp::kSub || step.op == LoopOp::kMul || step.op == LoopOp::kDiv;
  }

  static void Fold(const Step& step, WeightedOp* op) {
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

  // The activation of a _Fused op.
  static bool ActivationStep(const ParsedNode& parsed, Step* step) {
    switch (parsed.activation) {
      case PostActivation::kNone:
        return false;
      case PostActivation::kRelu:
        step->op = LoopOp::kRelu;
        return true;
      case PostActivation::kRelu6:
        step->op = LoopOp::kClip;
        step->beta = 6;
        return true;
      case PostActivation::kElu:
        step->op = LoopOp::kElu;
        step->alpha = 1;
        return true;
      case PostActivation::kLeakyRelu:
        step->op = LoopOp::kLeakyRelu;
        step->alpha = parsed.activation_alpha;
        return true;
      case PostActivation::kTanh:
        step->op = LoopOp::kTanh;
        return true;
      case PostActivation::kSigmoid:
        step->op = LoopOp::kSigmoid;
        return true;
    }
    return false;
  }

  absl::Status MakeWeightedPiece(size_t i) {
    WeightedOp op;
    op.parsed = plans_[i];
    op.weights = *TensorOf(i, 1).constant;
    op.weights_name = TensorOf(i, 1).value_name;
    const int data = plans_[i].kind == NodeKind::kTransposedConvolution ? 2 : 0;
    op.input = input_of_[i] != kNone ? input_of_[i] : Input(i, data);
    op.output = Output(i);
    op.name = NameOfNode(i);
    if (plans_[i].has_bias) op.bias = FloatsOf(*TensorOf(i, 2).constant);
    Chain& chain = chains_[i];
    for (size_t k = 0; k < chain.num_folded; ++k) Fold(steps_[chain.steps[k]], &op);
    op.post_steps = std::move(chain.post_steps);
    if (!chain.steps.empty()) op.output = steps_[chain.steps.back()].result;
    const int position = EndOf(i);
    const TensorStatistics* statistics = statistics_[op.input];
    if (statistics != nullptr) op.means = statistics->means;
    absl::Status status;
    for (Precision precision = PrecisionOf(i);; precision = Wider(precision)) {
      const size_t num_made = made_.size();
      const auto converted = converted_;
      status = MakeWeightedAs(precision, op, i, position);
      if (status.ok()) {
        fused_.wants_finite = fused_.wants_finite || precision == Precision::kInt8 || precision == Precision::kBf16x3;
        return absl::OkStatus();
      }
      // oneDNN may have it for wider numbers alone.
      if (precision == Precision::kF32) return status;
      made_.resize(num_made);
      converted_ = converted;
    }
  }

  // Whether what it reads is worth all bits of a float.
  static bool IsOfFloats(Precision precision) {
    return precision == Precision::kF32 || precision == Precision::kBf16x3;
  }

  // What a convolution of that precision reads, where calibration found it.
  static Element SourceOf(Precision precision) {
    return precision == Precision::kInt8 ? Element::kU8 : IsOfFloats(precision) ? Element::kFloat : Element::kBf16;
  }

  static Precision Wider(Precision precision) {
    return precision == Precision::kInt8 ? Precision::kBf16 : Precision::kF32;
  }

  // Weights that were worked out of the shapes are others the next time.
  PackedWeights* PackedFor(const WeightedOp& op) const { return op.weights_name.empty() ? nullptr : packed_; }

  absl::Status MakeWeightedAs(Precision precision, WeightedOp op, size_t i, int position) {
    op.input = As(op.input, InputType(precision, op.input), InputShape(i), op.name, position);
    if (IsOwnDepthwise(op.parsed, types_.Of(op.input).element)) {
      absl::StatusOr<std::unique_ptr<Piece>> piece = MakeDepthwise(op, types_, NextThreads(), PackedFor(op));
      if (piece.ok()) {
        (*piece)->products = Products(op.parsed);
        made_.push_back({position, *std::move(piece)});
        return absl::OkStatus();
      }
      if (!absl::IsUnimplemented(piece.status())) return piece.status();
    }
    const int result = op.output;
    const StorageType type = types_.Of(result);
    if ((precision == Precision::kF32 && !type.IsFloat()) || (precision == Precision::kBf16 && type.IsInt8())) {
      op.output = NewStorage(OutputShape(i).num_elements());
    }
    const auto make = [&] {
      return precision == Precision::kBf16x3 ? MakeSplitConvolution(op, types_, NextThreads())
                                             : MakeWeighted(op, types_, NextThreads(), PackedFor(op));
    };
    absl::StatusOr<std::unique_ptr<Piece>> piece = make();
    if (piece.ok()) {
      (*piece)->products = Products(op.parsed);
      made_.push_back({position, *std::move(piece)});
      if (op.output != result) Convert(op.output, result, OutputShape(i), op.name, position);
      return absl::OkStatus();
    }
    if (!absl::IsUnimplemented(piece.status()) || op.post_steps.empty()) return piece.status();
    // The steps run in a pass of their own.
    std::vector<Step> steps;
    steps.swap(op.post_steps);
    op.output = NewStorage(steps[0].rows.elements());
    for (size_t k = 0; k < steps.size(); ++k) {
      steps[k].value = k == 0 ? op.output : steps[k - 1].result;
      steps[k].result = k + 1 == steps.size() ? result : NewStorage(steps[k].rows.elements());
    }
    PF_ASSIGN_OR_RETURN(std::unique_ptr<Piece> bare, make());
    bare->products = Products(op.parsed);
    made_.push_back({position, std::move(bare)});
    std::vector<const Step*> pointers;
    for (const Step& step : steps) pointers.push_back(&step);
    made_.push_back({position, MakeLoopNest(pointers, {result}, types_, op.name, NextThreads())});
    return absl::OkStatus();
  }

  // What a weighted node reads, with the pad that it took over taken off.
  Shape InputShape(size_t i) const {
    const ParsedNode& parsed = plans_[i];
    if (parsed.kind == NodeKind::kMatMul) return Shape({parsed.rows, parsed.depth});
    const WindowGeometry& window = parsed.window;
    if (parsed.kind == NodeKind::kTransposedConvolution) {
      return Shape({window.batch, window.y.output, window.x.output, window.input_channels});
    }
    return Shape({window.batch, window.y.input, window.x.input, window.input_channels});
  }

  // What a weighted node computes with, unless oneDNN has no such primitive.
  Precision PrecisionOf(size_t i) const {
    if (IsNarrow(plans_[i])) return Precision::kF32;
    if (precisions_[i] != Precision::kInt8) return precisions_[i];
    const int data = plans_[i].kind == NodeKind::kTransposedConvolution ? 2 : 0;
    const int input = input_of_[i] != kNone ? input_of_[i] : Input(i, data);
    const bool has_eight_bits = eight_bits_[input].IsInt8() && plans_[i].kind != NodeKind::kTransposedConvolution;
    return has_eight_bits ? Precision::kInt8 : Precision::kBf16;
  }

  // What it then reads.
  StorageType InputType(Precision precision, int storage) const {
    switch (precision) {
      case Precision::kF32:
        return {};
      case Precision::kBf16:
        return {Element::kBf16};
      case Precision::kInt8:
        return eight_bits_[storage];
      case Precision::kBf16x3:
        return types_.Of(storage);
    }
    return {};
  }

  void FindStatistics() {
    statistics_.assign(fused_.storage.size(), nullptr);
    const auto note = [&](int tensor, absl::string_view name) {
      const TensorStatistics*& known = statistics_[fused_.storage[tensor]];
      if (known == nullptr) known = plan_.StatisticsOf(name);
    };
    for (const DelegateNode& node : partition_.nodes) {
      for (size_t j = 0; j < node.inputs.size(); ++j) {
        const TensorRef from = node.node->input(static_cast<int>(j));
        if (from.port == 0) note(node.inputs[j], from.node->name());
      }
      note(node.outputs[0], node.node->name());
    }
  }

  // Nodes that only move numbers of eight bits need the same scale before and after, so those that they join share one.
  void FindEightBits() {
    std::vector<int> group(fused_.storage.size());
    std::iota(group.begin(), group.end(), 0);
    const auto find = [&](int storage) {
      while (group[storage] != storage) storage = group[storage] = group[group[storage]];
      return storage;
    };
    for (size_t i = 0; i < plans_.size(); ++i) {
      if (is_taken_[i] || precisions_[i] != Precision::kInt8 || !MovesNumbers(plans_[i].kind)) continue;
      const int num_values = plans_[i].kind == NodeKind::kConcat ? plans_[i].num_values : 1;
      for (int j = 0; j < num_values; ++j) group[find(Input(i, j))] = find(Output(i));
    }
    std::vector<TensorStatistics> joined(group.size());
    std::vector<bool> is_known(group.size(), false);
    for (size_t s = 0; s < group.size(); ++s) {
      if (statistics_[s] == nullptr) continue;
      const auto root = static_cast<size_t>(find(static_cast<int>(s)));
      joined[root].least = std::min(joined[root].least, statistics_[s]->least);
      joined[root].bound = std::max(joined[root].bound, statistics_[s]->bound);
      is_known[root] = true;
    }
    eight_bits_.assign(group.size(), {});
    for (size_t s = 0; s < group.size(); ++s) {
      const auto root = static_cast<size_t>(find(static_cast<int>(s)));
      if (statistics_[s] != nullptr && is_known[root]) eight_bits_[s] = EightBitType(joined[root]);
    }
  }

  static bool MovesNumbers(NodeKind kind) {
    return kind == NodeKind::kPool || kind == NodeKind::kConcat || kind == NodeKind::kPad;
  }

  // What each storage holds: as few bits as all who read it compute with and who writes it can write. Those that are
  // read by what is kept in floats hold floats.
  void AssignTypes() {
    types_.types.assign(fused_.storage.size(), {});
    FindStatistics();
    FindEightBits();
    if (std::all_of(precisions_.begin(), precisions_.end(), [](Precision p) { return p == Precision::kF32; })) return;
    // Who writes a storage: the narrowest numbers that it can write. A chain writes its last result.
    std::vector<Precision> narrowest(fused_.storage.size(), Precision::kF32);
    std::vector<std::pair<int, int>> order;  // Position, storage.
    std::vector<bool> is_ordered(fused_.storage.size(), false);
    const auto write = [&](int storage, int position, Precision precision) {
      narrowest[storage] = precision;
      if (!is_ordered[storage]) order.emplace_back(position, storage);
      is_ordered[storage] = true;
    };
    for (size_t i = 0; i < steps_.size(); ++i) {
      if (!is_chained_[i] && !steps_[i].is_dropped) {
        write(steps_[i].result, steps_[i].position, precisions_[static_cast<size_t>(steps_[i].node)]);
      }
    }
    for (size_t i = 0; i < plans_.size(); ++i) {
      if (IsWeighted(plans_[i].kind)) {
        const std::vector<int>& steps = chains_[i].steps;
        // Ours write any type.
        const bool is_ours = PrecisionOf(i) == Precision::kBf16x3 ||
                             (PrecisionOf(i) == Precision::kBf16 && IsOwnDepthwise(plans_[i], Element::kBf16));
        const Precision written = is_ours ? Precision::kInt8 : PrecisionOf(i);
        write(steps.empty() ? Output(i) : steps_[steps.back()].result, EndOf(i), written);
      } else if (MovesNumbers(plans_[i].kind) && !is_taken_[i]) {
        write(Output(i), static_cast<int>(i), precisions_[i]);
      }
    }
    std::sort(order.begin(), order.end());
    std::vector<size_t> root_of_step(steps_.size(), plans_.size());
    for (size_t i = 0; i < chains_.size(); ++i) {
      for (const int step : chains_[i].steps) root_of_step[static_cast<size_t>(step)] = i;
    }
    for (auto next = order.rbegin(); next != order.rend(); ++next) {
      const int s = next->second;
      if (is_output_[s] || fused_.storage[s] != s || narrowest[s] == Precision::kF32) continue;
      bool wants_floats = false, wants_bf16 = false, wants_int8 = false, is_read_by_steps = false;
      for (const int step : readers_[s].steps) {
        const size_t root = root_of_step[static_cast<size_t>(step)];
        const size_t node = root < plans_.size() ? root : static_cast<size_t>(steps_[step].node);
        is_read_by_steps = true;
        (IsOfFloats(precisions_[node]) ? wants_floats : wants_bf16) = true;
      }
      for (const int reader : node_readers_[s]) {
        const auto i = static_cast<size_t>(reader);
        if (IsWeighted(plans_[i].kind)) {
          const Precision precision = PrecisionOf(i);
          if (IsOfFloats(precision) && !IsNarrow(plans_[i])) wants_floats = true;
          wants_bf16 = wants_bf16 || precision == Precision::kBf16;
          wants_int8 = wants_int8 || precision == Precision::kInt8;
        } else if (MovesNumbers(plans_[i].kind) && !is_taken_[i]) {
          const StorageType type = types_.Of(Output(i));
          wants_bf16 = wants_bf16 || type.IsBf16();
          wants_int8 = wants_int8 || type.IsInt8();
          if (precisions_[i] == Precision::kF32) wants_floats = true;
        } else if (is_taken_[i]) {
          // The convolution that does the node's work reads in its place.
          const auto by = static_cast<size_t>(node_readers_[Output(i)][0]);
          const Precision precision = PrecisionOf(by);
          wants_floats = wants_floats || IsOfFloats(precision);
          wants_bf16 = wants_bf16 || precision == Precision::kBf16;
          wants_int8 = wants_int8 || precision == Precision::kInt8;
        }
      }
      if (wants_floats) continue;
      // Sums of many numbers of eight bits would lose what they add up to.
      if (wants_int8 && narrowest[s] == Precision::kInt8 && !is_read_by_steps && eight_bits_[s].IsInt8()) {
        SetType(s, eight_bits_[s]);
      } else if (wants_bf16 || wants_int8) {
        SetType(s, {Element::kBf16});
      }
    }
  }

  // REQUIRES: it holds floats.
  void SetType(int storage, StorageType type) {
    if (static_cast<size_t>(storage) >= types_.types.size()) types_.types.resize(static_cast<size_t>(storage) + 1);
    types_.types[storage] = type;
    fused_.bytes[storage] = fused_.bytes[storage] / 4 * type.bytes();
  }

  // For the node of that name.
  void Convert(int from, int to, const Shape& shape, const std::string& name, int position) {
    PlainOp op;
    op.inputs.emplace_back(from, shape);
    op.output = {to, shape};
    op.num_threads = NextThreads();
    op.name = name;
    made_.push_back({position, MakeConversion(op, types_.Of(from), types_.Of(to))});
  }

  // The storage, or a copy of the wanted type, made before what runs at `position` for the node of that name.
  int As(int storage, StorageType type, const Shape& shape, const std::string& name, int position) {
    if (types_.Of(storage) == type) return storage;
    const std::pair<int, int> key(storage, static_cast<int>(type.element));
    const auto found = converted_.find(key);
    if (found != converted_.end() && found->second.first <= position && types_.Of(found->second.second) == type) {
      return found->second.second;
    }
    const int copy = NewStorage(shape.num_elements());
    SetType(copy, type);
    Convert(storage, copy, shape, name, position);
    converted_[key] = {position, copy};
    return copy;
  }

  // The same for all inputs of a piece that works with one type.
  PlainOp InOneType(PlainOp op, StorageType type, int position) {
    op.type = type;
    for (auto& [storage, shape] : op.inputs) storage = As(storage, type, shape, op.name, position);
    op.num_threads = NextThreads();
    return op;
  }

  // Joins what is left of the steps. A group runs where its last step stands, so nobody before that may read its
  // results.
  void GroupSteps() {
    // Where the readers of a storage run, once chains have moved them.
    std::vector<int> position_of_step(steps_.size());
    for (size_t i = 0; i < steps_.size(); ++i) position_of_step[i] = steps_[i].position;
    for (size_t i = 0; i < chains_.size(); ++i) {
      for (const int step : chains_[i].steps) position_of_step[step] = EndOf(i);
    }
    group_of_.assign(steps_.size(), kNone);
    std::vector<int> maker(fused_.storage.size(), kNone);  // By storage: the step.
    for (size_t i = 0; i < steps_.size(); ++i) {
      if (!steps_[i].is_dropped && !is_chained_[i]) maker[steps_[i].result] = static_cast<int>(i);
    }
    const auto may_join = [&](const std::vector<int>& group, size_t joining) {
      const Step& step = steps_[joining];
      const Step& first = steps_[group[0]];
      if (step.rows.rows != first.rows.rows || step.rows.channels != first.rows.channels ||
          step.images != first.images) {
        return false;
      }
      if (group.size() >= 24) return false;
      for (const int member : group) {
        const Readers& readers = readers_[steps_[member].result];
        for (const int reader : readers.steps) {
          if (reader == static_cast<int>(joining) || group_of_[reader] == group_of_[member]) continue;
          if (position_of_step[reader] <= step.position) return false;
        }
        for (const int reader : node_readers_[steps_[member].result]) {
          if (EndOf(static_cast<size_t>(reader)) <= step.position) return false;
        }
      }
      return true;
    };
    for (size_t i = 0; i < steps_.size(); ++i) {
      if (steps_[i].is_dropped || is_chained_[i]) continue;
      for (const int tensor : {steps_[i].value, steps_[i].other}) {
        if (tensor < 0 || maker[tensor] == kNone || group_of_[maker[tensor]] == kNone) continue;
        // Another way to meet would need all of the values before the first block is done.
        if (tensor == steps_[i].other && steps_[i].meeting != Meeting::kSame) continue;
        const int group = group_of_[maker[tensor]];
        if (!may_join(groups_[group], i)) continue;
        // The other operand must not come from the group under another meeting, nor be made after it.
        if (steps_[i].other >= 0 && steps_[i].meeting != Meeting::kSame && maker[steps_[i].other] != kNone &&
            group_of_[maker[steps_[i].other]] == group) {
          continue;
        }
        group_of_[i] = group;
        break;
      }
      if (group_of_[i] == kNone) {
        group_of_[i] = static_cast<int>(groups_.size());
        groups_.emplace_back();
      }
      groups_[group_of_[i]].push_back(static_cast<int>(i));
    }
  }

  void MakeLoopNests() {
    for (const std::vector<int>& group : groups_) {
      std::vector<const Step*> steps;
      std::vector<int> results;
      for (const int member : group) {
        const Step& step = steps_[member];
        steps.push_back(&step);
        const Readers& readers = readers_[step.result];
        const bool is_read_outside =
            readers.others > 0 || std::any_of(readers.steps.begin(), readers.steps.end(),
                                              [&](int reader) { return group_of_[reader] != group_of_[member]; });
        if (is_read_outside) results.push_back(step.result);
      }
      if (results.empty()) continue;  // Nobody asks.
      const Step& last = *steps.back();
      made_.push_back({last.position, MakeLoopNest(steps, results, types_, NameOfNode(last.node), NextThreads())});
    }
  }

  PlainOp Plain(size_t i, int num_inputs) const {
    PlainOp op;
    op.parsed = plans_[i];
    for (int j = 0; j < num_inputs; ++j) op.inputs.emplace_back(Input(i, j), TensorOf(i, j).shape);
    op.output = {Output(i), OutputShape(i)};
    op.name = NameOfNode(i);
    return op;
  }

  absl::Status MakePieces() {
    for (size_t i = 0; i < plans_.size(); ++i) {
      if (is_taken_[i]) continue;
      const auto add = [&](std::unique_ptr<Piece> piece) { made_.push_back({static_cast<int>(i), std::move(piece)}); };
      const auto typed = [&](int num_inputs, StorageType type) {
        return InOneType(Plain(i, num_inputs), type, static_cast<int>(i));
      };
      switch (plans_[i].kind) {
        case NodeKind::kElementwise:
        case NodeKind::kBatchNorm:
          break;
        case NodeKind::kAlias:
          if (is_copied_[i]) add(MakeCopy(typed(1, {})));
          break;
        case NodeKind::kConvolution:
        case NodeKind::kTransposedConvolution:
        case NodeKind::kMatMul:
          PF_RETURN_IF_ERROR(MakeWeightedPiece(i));
          break;
        case NodeKind::kPool: {
          PF_ASSIGN_OR_RETURN(std::unique_ptr<Piece> piece, MakePool(typed(1, types_.Of(Output(i)))));
          add(std::move(piece));
          break;
        }
        case NodeKind::kMean:
          add(MakeMean(typed(1, {})));
          break;
        case NodeKind::kConcat:
          add(MakeConcat(typed(plans_[i].num_values, types_.Of(Output(i)))));
          break;
        case NodeKind::kPad:
          add(MakePad(typed(1, types_.Of(Output(i)))));
          break;
        case NodeKind::kResize:
          add(MakeResize(typed(1, {})));
          break;
        case NodeKind::kSoftmax:
          add(MakeSoftmax(typed(1, {})));
          break;
      }
    }
    MakeLoopNests();
    return absl::OkStatus();
  }

  const Partition& partition_;
  const PrecisionPlan& plan_;
  const int num_threads_;
  PackedWeights* const packed_;
  const std::vector<bool>& is_beside_;
  std::vector<Precision> precisions_;  // By node.
  StorageTypes types_;
  std::vector<const TensorStatistics*> statistics_;  // By storage, null where unknown.
  std::vector<StorageType> eight_bits_;  // By storage: its type if it had eight bits; floats where it can not.
  // By storage and type: position and storage of the conversion.
  std::map<std::pair<int, int>, std::pair<int, int>> converted_;
  Fused fused_;
  std::vector<ParsedNode> plans_;  // By node.
  std::vector<bool> is_output_;    // By tensor and storage.
  std::vector<bool> is_copied_;    // By node: an alias that cannot share memory.
  std::vector<Step> steps_;
  std::vector<Readers> readers_;                // By storage.
  std::vector<std::vector<int>> node_readers_;  // By storage: the nodes that are no steps.
  std::vector<bool> is_taken_;                  // By node: another does its work.
  std::vector<int> input_of_;                   // By node: what a convolution reads instead, or kNone.
  std::vector<Chain> chains_;                   // By node.
  std::vector<bool> is_chained_;                // By step.
  std::vector<int> group_of_;                   // By step.
  std::vector<std::vector<int>> groups_;
  std::vector<Made> made_;
};

}  // namespace

absl::StatusOr<Fused> Fuse(const Partition& partition, const PrecisionPlan& plan, int num_threads,
                           PackedWeights* packed, const std::vector<bool>& is_beside) {
  return Fuser(partition, plan, num_threads, packed, is_beside).Run();
}

}  // namespace onednn
}  // namespace permafrost
