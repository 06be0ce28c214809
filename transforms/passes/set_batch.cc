// Changes the size of the batch, or opens it: the shapes of inputs, and the constants in the graph that repeat the
// size.
#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "graph/analysis/order.h"
#include "graph/base/status.h"
#include "graph/matching/matcher.h"
#include "graph/ops/op_schema.h"
#include "graph/shapes/shape_inference.h"
#include "transforms/pass.h"
#include "transforms/rewrites/absorption.h"

namespace permafrost {
namespace {

// While constants are searched, the batch is multiplied by this prime: a dimension that is a multiple of it follows the
// batch, because real sizes are no multiples.
constexpr int64_t kMarker = 1000003;
// Rounds of the search: each finds the constants behind those of the round before, and infers all shapes. Models repeat
// the batch in few reshapes behind each other; the limits bound the time that a hostile graph takes, to about ten
// seconds.
constexpr size_t kFewestRounds = 8, kMostRounds = 512;
constexpr size_t kMostVisits = 1 << 23;  // Of nodes, in all rounds.

struct Params {
  std::string size = "any";
  std::vector<std::string> input;
};

absl::StatusOr<std::vector<int64_t>> IntegersOf(const Node& constant) {
  PF_ASSIGN_OR_RETURN(const Tensor value, ConstValue(constant));
  std::vector<int64_t> numbers;
  for (int64_t i = 0; i < value.num_elements(); ++i) {
    if (value.dtype() == DType::kInt32) {
      numbers.push_back(value.elements<int32_t>()[i]);
    } else if (value.dtype() == DType::kInt64) {
      numbers.push_back(value.elements<int64_t>()[i]);
    } else {
      return Blocked(constant, absl::StrCat("is ", DTypeName(value.dtype()), ", expected integers"));
    }
  }
  return numbers;
}

// A constant operand, or a mask, that repeats the size of the batch.
struct Repetition {
  enum class Kind : uint8_t { kNumber, kEndMask, kWholeSize };
  std::string node;
  Kind kind = Kind::kNumber;
  int input = 0;       // Of the constant.
  size_t element = 0;  // kNumber: its position.
  int64_t number = 0;  // kNumber: as it is.
};

class BatchChange {
 public:
  BatchChange(Graph* graph, const Params& params, PassContext* context)
      : graph_(graph), params_(params), context_(context) {}

  absl::StatusOr<int64_t> Run();

 private:
  absl::Status ReadSize();
  absl::Status FindInputs();
  absl::Status FindRepetitions();
  // Returns the repetition in a node, or nothing.
  std::optional<Repetition> RepetitionIn(const Node& node, const ShapeMap& shapes) const;
  std::optional<Repetition> RepetitionInReshape(const Node& node, const ShapeMap& shapes) const;
  bool FollowsBatch(const Shape& shape) const {
    return shape.has_rank() && shape.rank() > 0 && shape.dim(0) > 0 && shape.dim(0) % (batch_ * kMarker) == 0;
  }
  // Writes the change for a new size of the batch; `size` may be unknown.
  absl::Status Apply(const Repetition& repetition, int64_t size, const ShapeMap* shapes, Graph* graph) const;
  static absl::Status ReplaceConstant(Graph* graph, Node* node, int input, const std::vector<int64_t>& numbers);
  static void SetBatch(Node* input, int64_t size);

  Graph* graph_;
  const Params& params_;
  PassContext* context_;
  int64_t size_ = kUnknownDim;  // The new size.
  int64_t batch_ = 0;           // The present size; kUnknownDim if it is open.
  std::vector<Node*> inputs_;
  std::vector<Repetition> repetitions_;
};

absl::Status BatchChange::ReadSize() {
  if (params_.size == "any" || params_.size == "-1") return absl::OkStatus();
  if (absl::SimpleAtoi(params_.size, &size_) && size_ > 0 && size_ <= std::numeric_limits<int32_t>::max()) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("parameter 'size': found '", params_.size, "', expected any or a number of at least 1"));
}

absl::Status BatchChange::FindInputs() {
  std::vector<std::string> wanted = params_.input;
  for (const Endpoint& endpoint : graph_->inputs()) {
    if (endpoint.node == nullptr || endpoint.node->op() != ops::kPlaceholder) continue;
    const auto named = std::find(wanted.begin(), wanted.end(), endpoint.text);
    if (!params_.input.empty() && named == wanted.end()) continue;
    if (named != wanted.end()) wanted.erase(named);
    const absl::StatusOr<Shape> shape = ShapeAttr(*endpoint.node, "shape");
    if (!shape.ok() || !shape->has_rank() || shape->rank() == 0) continue;
    if (!inputs_.empty() && shape->dim(0) != batch_) {
      return absl::InvalidArgumentError(absl::StrCat("input '", endpoint.text, "' has the batch ", shape->dim(0),
                                                     " and input '", inputs_[0]->name(), "' has ", batch_,
                                                     "; select inputs with `input`"));
    }
    batch_ = shape->dim(0);
    inputs_.push_back(endpoint.node);
  }
  if (!wanted.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("parameter 'input': '", wanted[0], "' is no declared input that is a Placeholder"));
  }
  return absl::OkStatus();
}

// Reshapes keep the number of elements, so the factor must be in one of the given dimensions: the first that holds the
// batch.
std::optional<Repetition> BatchChange::RepetitionInReshape(const Node& node, const ShapeMap& shapes) const {
  const Node* target = ConstantBehind(node.input(1));
  const Shape input = shapes.Of(node.input(0));
  if (target == nullptr || !input.IsFullyKnown()) return std::nullopt;
  const absl::StatusOr<std::vector<int64_t>> numbers = IntegersOf(*target);
  if (!numbers.ok() || numbers->empty()) return std::nullopt;
  int64_t product = 1, elements = 1;
  size_t open = numbers->size();
  for (size_t i = 0; i < numbers->size(); ++i) {
    if ((*numbers)[i] == -1) open = i;
    if ((*numbers)[i] != -1 && __builtin_mul_overflow(product, (*numbers)[i], &product)) return std::nullopt;
  }
  for (int d = 0; d < input.rank(); ++d) {
    if (__builtin_mul_overflow(elements, input.dim(d), &elements)) return std::nullopt;
  }
  if (elements % kMarker != 0 || product <= 0 || product % kMarker == 0) return std::nullopt;
  // An open dimension takes the factor, unless the batch comes first.
  if (open == 0 || (open == numbers->size() && elements / kMarker != product)) return std::nullopt;
  const size_t last = open == numbers->size() ? numbers->size() : 1;
  for (size_t i = 0; i < last; ++i) {
    const int64_t number = (*numbers)[i];
    const bool holds_batch = open == numbers->size() ? number % batch_ == 0 : number == batch_;
    if (number > 0 && holds_batch) {
      return Repetition{std::string(node.name()), Repetition::Kind::kNumber, 1, i, number};
    }
  }
  return std::nullopt;
}

std::optional<Repetition> BatchChange::RepetitionIn(const Node& node, const ShapeMap& shapes) const {
  const auto numbers_at = [&](int input) -> std::vector<int64_t> {
    const Node* constant = input < node.num_data_inputs() ? ConstantBehind(node.input(input)) : nullptr;
    if (constant == nullptr) return {};
    const absl::StatusOr<std::vector<int64_t>> numbers = IntegersOf(*constant);
    return numbers.ok() ? *numbers : std::vector<int64_t>();
  };
  const auto mask = [&node](absl::string_view name) { return IntAttr(node, name).value_or(0); };
  const std::string name(node.name());
  if (node.op() == ops::kReshape && node.num_data_inputs() == 2) return RepetitionInReshape(node, shapes);
  if (node.op() == ops::kStridedSlice && node.num_data_inputs() == 4 && FollowsBatch(shapes.Of(node.input(0)))) {
    const std::vector<int64_t> begin = numbers_at(1), end = numbers_at(2), step = numbers_at(3);
    const bool reads_first = mask("ellipsis_mask") == 0 && mask("new_axis_mask") == 0 && !begin.empty() &&
                             !end.empty() && !step.empty() && (mask("shrink_axis_mask") & 1) == 0;
    if (reads_first && (begin[0] == 0 || (mask("begin_mask") & 1) != 0) && step[0] == 1 && end[0] == batch_ &&
        (mask("end_mask") & 1) == 0) {
      return Repetition{name, Repetition::Kind::kEndMask};
    }
  }
  if (node.op() == ops::kSlice && node.num_data_inputs() == 3 && FollowsBatch(shapes.Of(node.input(0)))) {
    const std::vector<int64_t> begin = numbers_at(1), size = numbers_at(2);
    if (!begin.empty() && !size.empty() && begin[0] == 0 && size[0] == batch_) {
      return Repetition{name, Repetition::Kind::kWholeSize, 2};
    }
  }
  const bool is_transposed = node.op() == ops::kConv2DBackpropInput || node.op() == ops::kConv3DBackpropInputV2;
  if (is_transposed && node.num_data_inputs() == 3 && FollowsBatch(shapes.Of(node.input(2)))) {
    const std::vector<int64_t> sizes = numbers_at(0);
    if (!sizes.empty() && sizes[0] == batch_) return Repetition{name, Repetition::Kind::kNumber, 0, 0, batch_};
  }
  if (node.op() == ops::kBroadcastTo && node.num_data_inputs() == 2 && FollowsBatch(shapes.Of(node.input(0)))) {
    const std::vector<int64_t> target = numbers_at(1);
    if (!target.empty() && target[0] == batch_ && static_cast<int>(target.size()) == shapes.Of(node.input(0)).rank()) {
      return Repetition{name, Repetition::Kind::kNumber, 1, 0, batch_};
    }
  }
  return std::nullopt;
}

void BatchChange::SetBatch(Node* input, int64_t size) {
  Shape shape = *ShapeAttr(*input, "shape");
  shape.set_dim(0, size);
  input->SetAttr("shape", AttrValue::OfShape(shape));
}

// Other nodes may read the constant as it is.
absl::Status BatchChange::ReplaceConstant(Graph* graph, Node* node, int input, const std::vector<int64_t>& numbers) {
  const Node* old = ConstantBehind(node->input(input));
  PF_ASSIGN_OR_RETURN(const Tensor value, ConstValue(*old));
  Tensor changed;
  if (value.dtype() == DType::kInt32) {
    std::vector<int32_t> elements;
    for (const int64_t number : numbers) {
      if (number > std::numeric_limits<int32_t>::max()) return Blocked(*node, "would have a size of more than 32 bits");
      elements.push_back(static_cast<int32_t>(number));
    }
    changed = Tensor::FromVector(value.shape(), std::move(elements));
  } else {
    changed = Tensor::FromVector(value.shape(), numbers);
  }
  PF_ASSIGN_OR_RETURN(Node * constant, graph->AddConst(graph->UniqueName(absl::StrCat(node->name(), "/batch")),
                                                       std::move(changed), node));
  graph->SetInput(node, input, {constant, 0});
  return absl::OkStatus();
}

absl::Status BatchChange::Apply(const Repetition& repetition, int64_t size, const ShapeMap* shapes,
                                Graph* graph) const {
  Node* node = graph->Find(repetition.node);
  if (node == nullptr) return absl::InternalError(absl::StrCat("no node '", repetition.node, "'"));
  if (repetition.kind == Repetition::Kind::kEndMask) {
    node->SetAttr("end_mask", AttrValue::Int(IntAttr(*node, "end_mask").value_or(0) | 1));
    return absl::OkStatus();
  }
  PF_ASSIGN_OR_RETURN(std::vector<int64_t> numbers, IntegersOf(*ConstantBehind(node->input(repetition.input))));
  if (repetition.kind == Repetition::Kind::kWholeSize) {
    numbers[0] = size == kUnknownDim ? -1 : size;
    return ReplaceConstant(graph, node, repetition.input, numbers);
  }
  int64_t& number = numbers[repetition.element];
  if (size != kUnknownDim) {
    number = number / batch_ * size;
    return ReplaceConstant(graph, node, repetition.input, numbers);
  }
  if (node->op() != ops::kReshape) {
    return Blocked(*node, "has the batch in a constant that cannot be open", WayOut{"give the batch a fixed size"});
  }
  // Only one size of a Reshape may be open.
  for (size_t i = 0; i < numbers.size(); ++i) {
    if (numbers[i] != -1) continue;
    const Shape result = shapes == nullptr ? Shape::UnknownRank() : shapes->Of({node, 0});
    if (!result.has_rank() || result.dim(static_cast<int>(i)) == kUnknownDim) {
      return Blocked(*node, "has another open size, whose value is not known");
    }
    numbers[i] = result.dim(static_cast<int>(i));
  }
  number = -1;
  return ReplaceConstant(graph, node, repetition.input, numbers);
}

absl::Status BatchChange::FindRepetitions() {
  const std::unique_ptr<Graph> marked = graph_->Clone();
  for (const Node* input : inputs_) SetBatch(marked->Find(input->name()), batch_ * kMarker);
  // Shapes that do not hold the marked input are an error, so the results of such ops are unknown until it is known
  // whether their shape repeats the batch.
  absl::flat_hash_map<const Node*, TensorRef> hidden;
  for (Node* node : marked->Nodes()) {
    if ((node->op() != ops::kReshape && node->op() != ops::kBroadcastTo) || node->num_data_inputs() != 2) continue;
    const Node* target = ConstantBehind(node->input(1));
    if (target == nullptr) continue;
    PF_ASSIGN_OR_RETURN(const DType dtype, TypeAttr(*target, "dtype"));
    PF_ASSIGN_OR_RETURN(Node * unknown, marked->AddNode(marked->UniqueName("unknown"), ops::kPlaceholder));
    unknown->SetAttr("dtype", AttrValue::Type(dtype));
    hidden.emplace(node, node->input(1));
    marked->SetInput(node, 1, {unknown, 0});
  }
  const auto change = [&](const Node& node, const ShapeMap& shapes) -> absl::StatusOr<bool> {
    const std::optional<Repetition> repetition = RepetitionIn(node, shapes);
    if (!repetition.has_value()) return false;
    PF_RETURN_IF_ERROR(Apply(*repetition, batch_ * kMarker, nullptr, marked.get()));
    repetitions_.push_back(*repetition);
    return true;
  };
  const size_t most_rounds = std::clamp(kMostVisits / (marked->num_nodes() + 1), kFewestRounds, kMostRounds);
  for (size_t round = 0; round < most_rounds; ++round) {
    PF_ASSIGN_OR_RETURN(const ShapeMap shapes, InferShapes(*marked));
    // A change affects the shapes behind it, so hidden constants are restored only when a round changes nothing.
    bool is_found = false;
    for (Node* node : marked->Nodes()) {
      if (marked->IsInput(node) || node->op() == ops::kReshape || node->op() == ops::kBroadcastTo) continue;
      PF_ASSIGN_OR_RETURN(const bool is_changed, change(*node, shapes));
      is_found |= is_changed;
    }
    if (is_found) continue;
    // Then the first of them: those behind others see shapes that are not right yet.
    PF_ASSIGN_OR_RETURN(const std::vector<Node*> order, StackTopologicalOrder(*marked));
    std::vector<bool> is_behind(marked->id_limit(), false);  // Reads the result of a hidden op.
    std::vector<Node*> first;
    for (Node* node : order) {
      for (int i = 0; i < node->num_data_inputs() && !is_behind[node->id()]; ++i) {
        const Node* input = node->input(i).node;
        is_behind[node->id()] = is_behind[input->id()] || hidden.contains(input);
      }
      if (!is_behind[node->id()] && hidden.contains(node)) first.push_back(node);
    }
    for (Node* node : first) {
      marked->SetInput(node, 1, hidden.at(node));
      hidden.erase(node);
      if (shapes.Of(node->input(0)).IsFullyKnown()) PF_RETURN_IF_ERROR(change(*node, shapes).status());
      is_found = true;
    }
    if (!is_found) return absl::OkStatus();
  }
  return absl::ResourceExhaustedError(
      absl::StrCat("the batch is repeated in more than ", most_rounds, " nodes behind each other"));
}

absl::StatusOr<int64_t> BatchChange::Run() {
  PF_RETURN_IF_ERROR(ReadSize());
  PF_RETURN_IF_ERROR(FindInputs());
  if (inputs_.empty()) {
    context_->NoteAbsent("no input is a Placeholder with a batch");
    return 0;
  }
  if (batch_ == size_) return 0;
  if (batch_ == 0) return absl::InvalidArgumentError("the batch is 0, so nothing tells which constants repeat it");
  // An open batch is not repeated in constants.
  if (batch_ != kUnknownDim) PF_RETURN_IF_ERROR(FindRepetitions());
  const absl::StatusOr<ShapeMap> shapes = InferShapes(*graph_);
  // A trial: a change that does not fit leaves the graph as it was.
  const std::unique_ptr<Graph> trial = graph_->Clone();
  const absl::StatusOr<ShapeMap> trial_shapes = InferShapes(*trial);
  for (const Node* input : inputs_) SetBatch(trial->Find(input->name()), size_);
  for (const Repetition& repetition : repetitions_) {
    PF_RETURN_IF_ERROR(Apply(repetition, size_, trial_shapes.ok() ? &*trial_shapes : nullptr, trial.get()));
  }
  PF_RETURN_IF_ERROR(Annotate(InferShapes(*trial).status(), absl::StrCat("with the batch ", params_.size)));
  const std::vector<const Node*> matched(inputs_.begin(), inputs_.end());
  const RewriteScope rewrite(context_, graph_, matched);
  if (!rewrite) return 0;
  for (Node* input : inputs_) SetBatch(input, size_);
  for (const Repetition& repetition : repetitions_) {
    PF_RETURN_IF_ERROR(Apply(repetition, size_, shapes.ok() ? &*shapes : nullptr, graph_));
  }
  context_->Note(absl::StrCat("changed the batch of ", inputs_.size(), inputs_.size() == 1 ? " input" : " inputs",
                              " and ", repetitions_.size(), repetitions_.size() == 1 ? " node" : " nodes"));
  return static_cast<int64_t>(inputs_.size() + repetitions_.size());
}

absl::StatusOr<int64_t> Set(Graph* graph, const Params& params, PassContext* context) {
  return BatchChange(graph, params, context).Run();
}

}  // namespace

// Changes dimension 0 of the inputs, and the constants that repeat it.
//
//   x[1,8,8,3] -> ... Reshape(y, [1, 192])   =>   x[?,8,8,3] -> ... Reshape(y, [-1, 192])
//
// Constants are found by their use: shapes of Reshape and BroadcastTo, ends of StridedSlice, sizes of Slice, output
// shapes of transposed convolutions. With size=any, a transposed convolution or BroadcastTo with a constant shape is an
// error, as is a graph that does not fit the new batch. Leaves unchanged inputs without dimensions, constants in
// functions, and variables.
DEFINE_PASS(set_batch) {
  return Pass<Params>("Changes the batch size of the inputs, or leaves it open.")
      .Why("A model is often exported with the batch 1, which constants inside of it repeat.")
      .Param("size", &Params::size, "The new batch size; any or -1 leaves it open.")
      .Param("input", &Params::input, "Declared input whose batch changes. Default: all.")
      .Numerics(Within(1e-5))  // Kernels add in another order for other sizes.
      .Idempotent()
      .ChangesInterface("dimension 0 of the inputs is the new size, and so is that of outputs that follow it")
      .Run(Set);
}

}  // namespace permafrost
