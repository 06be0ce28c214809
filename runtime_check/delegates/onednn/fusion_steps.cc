// The stages of fusion for elementwise work: steps, pads, chains after weighted nodes, groups.
#include <cstddef>
#include <utility>
#include <vector>

#include "runtime_check/delegates/onednn/depthwise_convolution.h"
#include "runtime_check/delegates/onednn/fusion_stages.h"
#include "runtime_check/delegates/onednn/weighted.h"

namespace permafrost {
namespace onednn {
namespace {

// Bounds the working set of a loop nest, which has a block of 1024 floats for each step: 96 KB, which fits in an L2
// cache.
constexpr size_t kMostStepsInGroup = 24;

Step NewStep(const ParsedPartition& parsed, size_t node) {
  Step step(parsed.OutputShape(node));
  step.position = static_cast<int>(node);
  step.node = static_cast<int>(node);
  return step;
}

Step ElementwiseStep(const ParsedPartition& parsed, const Storages& storages, size_t i) {
  const ParsedNode& node = parsed.nodes[i];
  Step step = NewStep(parsed, i);
  step.op = node.loop;
  step.alpha = node.alpha;
  step.beta = node.beta;
  step.value = storages.Input(i, node.left);
  step.result = storages.Output(i);
  step.meeting = node.meeting;
  if (node.channels > 0) {
    step.rows.rows = step.rows.elements() / node.channels;
    step.rows.channels = node.channels;
  }
  if (node.right < 0) return step;
  const DelegateTensor& right = parsed.Input(i, node.right);
  if (right.constant.has_value()) {
    step.constants = FloatsOf(*right.constant);
  } else {
    step.other = storages.Input(i, node.right);
  }
  return step;
}

// Adds a batch norm as two steps: a product and a sum.
void AddBatchNorm(const ParsedPartition& parsed, size_t i, Storages* storages, std::vector<Step>* steps) {
  Step scale = NewStep(parsed, i);
  scale.op = LoopOp::kMul;
  scale.value = storages->Input(i, 0);
  scale.constants = parsed.nodes[i].factor;
  scale.meeting = Meeting::kPerChannel;
  scale.result = storages->Add(scale.rows.elements());
  Step shift = NewStep(parsed, i);
  shift.op = LoopOp::kAdd;
  shift.value = scale.result;
  shift.constants = parsed.nodes[i].offset;
  shift.meeting = Meeting::kPerChannel;
  shift.result = storages->Output(i);
  steps->push_back(std::move(scale));
  steps->push_back(std::move(shift));
}

void FindReaders(const ParsedPartition& parsed, const Storages& storages, StepGraph* graph) {
  graph->readers.resize(storages.storage.size());
  graph->node_readers.resize(storages.storage.size());
  for (size_t i = 0; i < graph->steps.size(); ++i) {
    const Step& step = graph->steps[i];
    graph->readers[step.value].steps.push_back(static_cast<int>(i));
    if (step.other >= 0) graph->readers[step.other].steps.push_back(static_cast<int>(i));
  }
  for (size_t i = 0; i < parsed.nodes.size(); ++i) {
    if (parsed.IsStep(i) || (parsed.nodes[i].kind == NodeKind::kAlias && !storages.is_copied[i])) continue;
    for (size_t j = 0; j < parsed.Source(i).inputs.size(); ++j) {
      const int storage = storages.Input(i, static_cast<int>(j));
      ++graph->readers[storage].others;
      graph->node_readers[storage].push_back(static_cast<int>(i));
    }
  }
  for (size_t i = 0; i < storages.is_output.size(); ++i) {
    if (storages.is_output[i]) ++graph->readers[storages.storage[i]].others;
  }
}

// Returns the steps that continue the value of `storage`: each is the only reader of the previous one.
std::vector<int> ChainFrom(int storage, const Rows& rows, const Storages& storages, const std::vector<bool>& is_chained,
                           StepGraph* graph) {
  std::vector<int> chain;
  while (!storages.is_output[storage] && graph->readers[storage].others == 0) {
    const std::vector<int>& readers = graph->readers[storage].steps;
    if (readers.size() != 1 || is_chained[readers[0]]) break;
    Step& step = graph->steps[readers[0]];
    if (step.value != storage) {
      // Commutative steps may have their operands swapped.
      if (step.meeting != Meeting::kSame || step.other != storage || step.op == LoopOp::kSub ||
          step.op == LoopOp::kDiv || step.op == LoopOp::kPrelu) {
        break;
      }
      std::swap(step.value, step.other);
    }
    // A step without broadcasting works on the elements under any shape.
    const bool is_flat = !step.has_other() || step.meeting == Meeting::kSame || step.meeting == Meeting::kScalar;
    if (is_flat && step.rows.elements() == rows.elements()) step.rows = rows;
    if (step.rows.channels != rows.channels || step.rows.rows != rows.rows) break;
    chain.push_back(readers[0]);
    storage = step.result;
  }
  return chain;
}

// Returns true if the step is affine per channel, with constants.
bool IsAffine(const Step& step) {
  if (step.op == LoopOp::kAffine) return true;
  if (step.constants.empty() || (step.meeting != Meeting::kPerChannel && step.meeting != Meeting::kScalar)) {
    return false;
  }
  return step.op == LoopOp::kAdd || step.op == LoopOp::kSub || step.op == LoopOp::kMul || step.op == LoopOp::kDiv;
}

// Sets the step to the activation of a _Fused op. Returns false if it has none.
bool ActivationStep(const ParsedNode& node, Step* step) {
  switch (node.activation) {
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
      step->alpha = node.activation_alpha;
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

// Returns the element type that a convolution of that precision reads if calibration has found the range of its input.
Element SourceOf(Precision precision) {
  return precision == Precision::kInt8 ? Element::kU8 : ReadsFloats(precision) ? Element::kFloat : Element::kBf16;
}

Chain ChainOf(const ParsedPartition& parsed, const Storages& storages, size_t i, const std::vector<bool>& is_chained,
              PostSteps supported, StepGraph* graph) {
  Chain chain;
  const ParsedNode& node = parsed.nodes[i];
  Rows rows(parsed.OutputShape(i));
  rows.rows = rows.elements() / OutputChannels(node);
  rows.channels = OutputChannels(node);
  chain.steps = ChainFrom(storages.Output(i), rows, storages, is_chained, graph);
  const auto step = [&](size_t k) -> const Step& { return graph->steps[chain.steps[k]]; };
  // Affine steps are folded into weights and bias, unless an activation precedes them.
  if (supported == PostSteps::kOfPrimitives && parsed.nodes[i].activation == PostActivation::kNone) {
    while (chain.num_folded < chain.steps.size() && IsAffine(step(chain.num_folded))) ++chain.num_folded;
  }
  Step activation = NewStep(parsed, i);
  activation.rows = rows;
  if (ActivationStep(parsed.nodes[i], &activation)) chain.post_steps.push_back(activation);
  if (supported == PostSteps::kAny) {
    for (size_t k = 0; k < chain.steps.size(); ++k) chain.post_steps.push_back(step(k));
    return chain;
  }
  size_t count = chain.num_folded;
  const bool takes_slopes = IsOwnDepthwise(parsed.nodes[i], SourceOf(parsed.precisions[i]));
  while (count < chain.steps.size() && AppendPostStep(step(count), takes_slopes, &chain.post_steps)) ++count;
  chain.steps.resize(count);
  return chain;
}

class Grouping {
 public:
  Grouping(const Storages& storages, const StepGraph& graph, const Chains& chains)
      : graph_(graph), chains_(chains), maker_(storages.storage.size(), kNone) {
    for (const Step& step : graph.steps) position_.push_back(step.position);
    for (size_t i = 0; i < chains.chains.size(); ++i) {
      for (const int step : chains.chains[i].steps) position_[step] = chains.end[i];
    }
    for (size_t i = 0; i < graph.steps.size(); ++i) {
      if (IsLeft(i)) maker_[graph.steps[i].result] = static_cast<int>(i);
    }
    result_.group_of.assign(graph.steps.size(), kNone);
  }

  StepGroups Run() {
    for (size_t i = 0; i < graph_.steps.size(); ++i) {
      if (!IsLeft(i)) continue;
      int group = GroupFor(i);
      if (group == kNone) {
        group = static_cast<int>(result_.groups.size());
        result_.groups.emplace_back();
      }
      result_.group_of[i] = group;
      result_.groups[group].push_back(static_cast<int>(i));
    }
    return std::move(result_);
  }

 private:
  bool IsLeft(size_t step) const { return !graph_.steps[step].is_dropped && !chains_.is_chained[step]; }

  // Returns the group of the step that produces the storage, or kNone.
  int GroupMaking(int storage) const {
    return storage < 0 || maker_[storage] == kNone ? kNone : result_.group_of[maker_[storage]];
  }

  // Returns a group that the step may join, or kNone.
  int GroupFor(size_t i) const {
    const Step& step = graph_.steps[i];
    for (const int operand : {step.value, step.other}) {
      const int group = GroupMaking(operand);
      if (group == kNone) continue;
      // The first block would need all values of a broadcast operand, so the group must not produce it.
      if (operand == step.other && step.meeting != Meeting::kSame) continue;
      if (!MayJoin(result_.groups[group], i)) continue;
      // The rule also applies if the group produces the first operand of the step.
      if (step.meeting != Meeting::kSame && GroupMaking(step.other) == group) continue;
      return group;
    }
    return kNone;
  }

  // Returns true if the step may join the group. A group runs at the position of its last step, so its results must
  // have no readers before that position.
  bool MayJoin(const std::vector<int>& group, size_t joining) const {
    const Step& step = graph_.steps[joining];
    const Step& first = graph_.steps[group[0]];
    if (step.rows.rows != first.rows.rows || step.rows.channels != first.rows.channels || step.images != first.images) {
      return false;
    }
    if (group.size() >= kMostStepsInGroup) return false;
    for (const int member : group) {
      const int result = graph_.steps[member].result;
      for (const int reader : graph_.readers[result].steps) {
        if (reader == static_cast<int>(joining) || result_.group_of[reader] == result_.group_of[member]) continue;
        if (position_[reader] <= step.position) return false;
      }
      for (const int reader : graph_.node_readers[result]) {
        if (chains_.end[reader] <= step.position) return false;
      }
    }
    return true;
  }

  const StepGraph& graph_;
  const Chains& chains_;
  std::vector<int> maker_;     // By storage: the remaining step that produces it.
  std::vector<int> position_;  // By step: the position where it runs, at the end of its chain if it has one.
  StepGroups result_;
};

}  // namespace

StepGraph MakeSteps(const ParsedPartition& parsed, Storages* storages) {
  StepGraph graph;
  for (size_t i = 0; i < parsed.nodes.size(); ++i) {
    if (parsed.nodes[i].kind == NodeKind::kElementwise) {
      graph.steps.push_back(ElementwiseStep(parsed, *storages, i));
    } else if (parsed.nodes[i].kind == NodeKind::kBatchNorm) {
      AddBatchNorm(parsed, i, storages, &graph.steps);
    }
  }
  FindReaders(parsed, *storages, &graph);
  Simplify(&graph.steps, &graph.readers);
  return graph;
}

FusedPads FusePads(const Storages& storages, const StepGraph& graph, ParsedPartition* parsed) {
  FusedPads pads;
  pads.is_fused.assign(parsed->nodes.size(), false);
  pads.input_of.assign(parsed->nodes.size(), kNone);
  for (size_t i = 0; i < parsed->nodes.size(); ++i) {
    const ParsedNode& pad = parsed->nodes[i];
    if (pad.kind != NodeKind::kPad) continue;
    const int padded = storages.Output(i);
    const std::vector<int>& readers = graph.node_readers[padded];
    if (storages.is_output[padded] || !graph.readers[padded].steps.empty() || readers.size() != 1) continue;
    const auto reader = static_cast<size_t>(readers[0]);
    ParsedNode& convolution = parsed->nodes[reader];
    if (convolution.kind != NodeKind::kConvolution) continue;
    const Shape& image = parsed->Input(i, 0).shape;
    convolution.window.y.input = image.dim(1);
    convolution.window.x.input = image.dim(2);
    convolution.window.y.pad_before += pad.pad_top;
    convolution.window.x.pad_before += pad.pad_left;
    pads.input_of[reader] = storages.Input(i, 0);
    pads.is_fused[i] = true;
  }
  return pads;
}

Chains ChainSteps(const ParsedPartition& parsed, const Storages& storages, StepGraph* graph, PostSteps supported) {
  Chains result;
  result.chains.resize(parsed.nodes.size());
  result.is_chained.assign(graph->steps.size(), false);
  for (size_t i = 0; i < parsed.nodes.size(); ++i) {
    Chain& chain = result.chains[i];
    if (IsWeighted(parsed.nodes[i].kind)) chain = ChainOf(parsed, storages, i, result.is_chained, supported, graph);
    for (const int step : chain.steps) result.is_chained[step] = true;
    result.end.push_back(chain.steps.empty() ? static_cast<int>(i) : graph->steps[chain.steps.back()].position);
  }
  return result;
}

StepGroups GroupSteps(const Storages& storages, const StepGraph& graph, const Chains& chains) {
  return Grouping(storages, graph, chains).Run();
}

}  // namespace onednn
}  // namespace permafrost
