// Orders of work: aliases, steps, pads, chains behind convolutions, loop nests.
#include "runtime_check/delegates/onednn/fusion.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <string>
#include <utility>

#include "graph/status.h"
#include "runtime_check/delegates/onednn/image_pieces.h"
#include "runtime_check/delegates/onednn/loop_nest.h"
#include "runtime_check/delegates/onednn/narrow_convolution.h"
#include "runtime_check/delegates/onednn/node_kinds.h"
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
  Fuser(const Partition& partition, bool use_bf16, int num_threads)
      : partition_(partition), use_bf16_(use_bf16), num_threads_(num_threads) {}

  absl::StatusOr<Fused> Run() {
    for (const DelegateNode& node : partition_.nodes) {
      PF_ASSIGN_OR_RETURN(plans_.emplace_back(), PlanNode(partition_, node));
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
    std::stable_sort(made_.begin(), made_.end(), [](const Made& a, const Made& b) { return a.position < b.position; });
    for (Made& made : made_) fused_.pieces.push_back(std::move(made.piece));
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
      const NodePlan& plan = plans_[i];
      const auto position = static_cast<int>(i);
      if (plan.kind == NodeKind::kElementwise) {
        Step step = NewStep(i, position);
        step.op = plan.loop;
        step.alpha = plan.alpha;
        step.beta = plan.beta;
        step.value = Input(i, plan.left);
        step.result = Output(i);
        step.meeting = plan.meeting;
        if (plan.right >= 0) {
          const DelegateTensor& right = TensorOf(i, plan.right);
          if (right.constant.has_value()) {
            step.constants = FloatsOf(*right.constant);
          } else {
            step.other = Input(i, plan.right);
          }
        }
        steps_.push_back(std::move(step));
      } else if (plan.kind == NodeKind::kBatchNorm) {
        Step scale = NewStep(i, position);
        scale.op = LoopOp::kMul;
        scale.value = Input(i, 0);
        scale.constants = plan.factor;
        scale.meeting = Meeting::kPerChannel;
        scale.result = NewStorage(scale.rows.elements());
        Step shift = NewStep(i, position);
        shift.op = LoopOp::kAdd;
        shift.value = scale.result;
        shift.constants = plan.offset;
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
      NodePlan& convolution = plans_[reader];
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
      while (count < steps.size() && AppendPostStep(steps_[steps[count]], &chain.post_steps)) ++count;
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
  static bool ActivationStep(const NodePlan& plan, Step* step) {
    switch (plan.activation) {
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
        step->alpha = plan.activation_alpha;
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
    op.plan = plans_[i];
    op.weights = *TensorOf(i, 1).constant;
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
    op.is_bf16 = use_bf16_ && !IsNarrow(op.plan);
    op.input = As(op.input, op.is_bf16, InputShape(i), position);
    absl::StatusOr<std::unique_ptr<Piece>> piece = MakeWeighted(op, types_, num_threads_);
    if (piece.ok()) {
      made_.push_back({position, *std::move(piece)});
      return absl::OkStatus();
    }
    if (op.is_bf16 && op.post_steps.empty()) {
      // oneDNN may have it for floats alone.
      op.is_bf16 = false;
      op.input = As(op.input, false, InputShape(i), position);
      const int result = op.output;
      if (types_.IsBf16(result)) op.output = NewStorage(OutputShape(i).num_elements());
      PF_ASSIGN_OR_RETURN(std::unique_ptr<Piece> wide, MakeWeighted(op, types_, num_threads_));
      made_.push_back({position, std::move(wide)});
      if (op.output != result) Convert(op.output, result, OutputShape(i), position);
      return absl::OkStatus();
    }
    if (!absl::IsUnimplemented(piece.status()) || op.post_steps.empty()) return piece.status();
    // The steps run in a pass of their own.
    std::vector<Step> steps;
    steps.swap(op.post_steps);
    const int result = op.output;
    op.output = NewStorage(steps[0].rows.elements());
    for (size_t k = 0; k < steps.size(); ++k) {
      steps[k].value = k == 0 ? op.output : steps[k - 1].result;
      steps[k].result = k + 1 == steps.size() ? result : NewStorage(steps[k].rows.elements());
    }
    PF_ASSIGN_OR_RETURN(std::unique_ptr<Piece> bare, MakeBare(&op, i, position));
    made_.push_back({position, std::move(bare)});
    std::vector<const Step*> pointers;
    for (const Step& step : steps) pointers.push_back(&step);
    made_.push_back({position, MakeLoopNest(pointers, {result}, types_, op.name, num_threads_)});
    return absl::OkStatus();
  }

  // Without post-steps; in float when oneDNN has no other.
  absl::StatusOr<std::unique_ptr<Piece>> MakeBare(WeightedOp* op, size_t i, int position) {
    absl::StatusOr<std::unique_ptr<Piece>> bare = MakeWeighted(*op, types_, num_threads_);
    if (bare.ok() || !op->is_bf16) return bare;
    op->is_bf16 = false;
    op->input = As(op->input, false, InputShape(i), position);
    return MakeWeighted(*op, types_, num_threads_);
  }

  // What a weighted node reads, with the pad that it took over taken off.
  Shape InputShape(size_t i) const {
    const NodePlan& plan = plans_[i];
    if (plan.kind == NodeKind::kMatMul) return Shape({plan.rows, plan.depth});
    const WindowPlan& window = plan.window;
    if (plan.kind == NodeKind::kTransposedConvolution) {
      return Shape({window.batch, window.y.output, window.x.output, window.input_channels});
    }
    return Shape({window.batch, window.y.input, window.x.input, window.input_channels});
  }

  // Whether a node can read and write bfloat16 as well.
  bool TakesBf16(size_t i) const {
    switch (plans_[i].kind) {
      case NodeKind::kConvolution:
      case NodeKind::kTransposedConvolution:
        return !IsNarrow(plans_[i]);
      case NodeKind::kMatMul:
      case NodeKind::kElementwise:
      case NodeKind::kBatchNorm:
      case NodeKind::kPool:
      case NodeKind::kConcat:
      case NodeKind::kPad:
      case NodeKind::kAlias:
        return true;
      default:
        return false;
    }
  }

  // A storage inside the partition holds bfloat16 when who writes it and somebody who reads it can work with that.
  void AssignTypes() {
    types_.is_bf16.assign(fused_.storage.size(), false);
    if (!use_bf16_) return;
    std::vector<bool> may(fused_.storage.size(), false);
    for (size_t i = 0; i < plans_.size(); ++i) {
      if (plans_[i].kind != NodeKind::kAlias && TakesBf16(i)) may[Output(i)] = true;
    }
    for (const Step& step : steps_) may[step.result] = true;
    for (size_t i = 0; i < chains_.size(); ++i) {
      // A narrow convolution writes floats, whatever is fused to it.
      if (!chains_[i].steps.empty() && !TakesBf16(i)) may[steps_[chains_[i].steps.back()].result] = false;
    }
    for (size_t i = 0; i < may.size(); ++i) {
      if (!may[i] || is_output_[i] || fused_.storage[i] != static_cast<int>(i)) continue;
      bool is_wanted = !readers_[i].steps.empty();
      for (const int reader : node_readers_[i]) is_wanted = is_wanted || TakesBf16(static_cast<size_t>(reader));
      if (!is_wanted) continue;
      types_.is_bf16[i] = true;
      fused_.bytes[i] /= 2;
    }
  }

  void Convert(int from, int to, const Shape& shape, int position) {
    PlainOp op;
    op.inputs.emplace_back(from, shape);
    op.output = {to, shape};
    op.num_threads = num_threads_;
    op.name = "conversion";
    made_.push_back({position, MakeConversion(op, types_.IsBf16(to))});
  }

  // The storage, or a copy of the wanted type, made before what runs at `position`.
  int As(int storage, bool bf16, const Shape& shape, int position) {
    if (types_.IsBf16(storage) == bf16) return storage;
    const auto found = converted_.find(storage);
    if (found != converted_.end() && found->second.first <= position) return found->second.second;
    const int copy = NewStorage(shape.num_elements());
    types_.is_bf16.resize(static_cast<size_t>(copy) + 1, false);
    types_.is_bf16[copy] = bf16;
    if (bf16) fused_.bytes[copy] /= 2;
    Convert(storage, copy, shape, position);
    converted_[storage] = {position, copy};
    return copy;
  }

  // The same for all inputs of a piece that works with one type.
  PlainOp InOneType(PlainOp op, bool bf16, int position) {
    op.is_bf16 = bf16;
    for (auto& [storage, shape] : op.inputs) storage = As(storage, bf16, shape, position);
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
      made_.push_back({last.position, MakeLoopNest(steps, results, types_, NameOfNode(last.node), num_threads_)});
    }
  }

  PlainOp Plain(size_t i, int num_inputs) const {
    PlainOp op;
    op.plan = plans_[i];
    for (int j = 0; j < num_inputs; ++j) op.inputs.emplace_back(Input(i, j), TensorOf(i, j).shape);
    op.output = {Output(i), OutputShape(i)};
    op.name = NameOfNode(i);
    op.num_threads = num_threads_;
    return op;
  }

  absl::Status MakePieces() {
    for (size_t i = 0; i < plans_.size(); ++i) {
      if (is_taken_[i]) continue;
      const auto add = [&](std::unique_ptr<Piece> piece) { made_.push_back({static_cast<int>(i), std::move(piece)}); };
      const auto typed = [&](int num_inputs, bool bf16) {
        return InOneType(Plain(i, num_inputs), bf16, static_cast<int>(i));
      };
      switch (plans_[i].kind) {
        case NodeKind::kElementwise:
        case NodeKind::kBatchNorm:
          break;
        case NodeKind::kAlias:
          if (is_copied_[i]) add(MakeCopy(typed(1, false)));
          break;
        case NodeKind::kConvolution:
        case NodeKind::kTransposedConvolution:
        case NodeKind::kMatMul:
          PF_RETURN_IF_ERROR(MakeWeightedPiece(i));
          break;
        case NodeKind::kPool: {
          PF_ASSIGN_OR_RETURN(std::unique_ptr<Piece> piece, MakePool(typed(1, types_.IsBf16(Output(i)))));
          add(std::move(piece));
          break;
        }
        case NodeKind::kMean:
          add(MakeMean(typed(1, false)));
          break;
        case NodeKind::kConcat:
          add(MakeConcat(typed(plans_[i].num_values, types_.IsBf16(Output(i)))));
          break;
        case NodeKind::kPad:
          add(MakePad(typed(1, types_.IsBf16(Output(i)))));
          break;
        case NodeKind::kResize:
          add(MakeResize(typed(1, false)));
          break;
        case NodeKind::kSoftmax:
          add(MakeSoftmax(typed(1, false)));
          break;
      }
    }
    MakeLoopNests();
    return absl::OkStatus();
  }

  const Partition& partition_;
  const bool use_bf16_;
  const int num_threads_;
  StorageTypes types_;
  std::map<int, std::pair<int, int>> converted_;  // By storage: position and storage of its conversion.
  Fused fused_;
  std::vector<NodePlan> plans_;  // By node.
  std::vector<bool> is_output_;  // By tensor and storage.
  std::vector<bool> is_copied_;  // By node: an alias that cannot share memory.
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

absl::StatusOr<Fused> Fuse(const Partition& partition, bool use_bf16, int num_threads) {
  return Fuser(partition, use_bf16, num_threads).Run();
}

}  // namespace onednn
}  // namespace permafrost
