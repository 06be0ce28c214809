// Finds the counter of a loop, its step and its limit, and traces the limit to constants and sizes.
#include "tools/summary/loop_bounds.h"

#include <cstdint>
#include <initializer_list>
#include <limits>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "graph/ops/op_schema.h"

namespace permafrost {
namespace {

bool HasOp(const Node& node, std::initializer_list<absl::string_view> names) {
  for (const absl::string_view name : names) {
    if (node.op().name() == name) return true;
  }
  return false;
}

bool IsCopy(const Node& node) { return HasOp(node, {"Identity", "StopGradient", "PreventGradient", "Snapshot"}); }

bool IsSize(const Node& node) { return HasOp(node, {"Shape", "ShapeN", "Size", "Rank", "VariableShape"}); }

// Returns the tensor of which `tensor` is a copy. An invalid graph may have a cycle of copies, so their number is
// bounded.
TensorRef SkipCopies(TensorRef tensor) {
  constexpr int kMostCopies = 100;
  for (int i = 0; i < kMostCopies && IsCopy(*tensor.node) && tensor.node->num_data_inputs() == 1; ++i) {
    tensor = tensor.node->input(0);
  }
  return tensor;
}

// Returns the value of a scalar integer constant.
std::optional<int64_t> IntegerOf(TensorRef tensor) {
  if (tensor.node->op() != ops::kConst) return std::nullopt;
  const absl::StatusOr<Tensor> value = ConstValue(*tensor.node);
  if (!value.ok() || value->num_elements() != 1) return std::nullopt;
  if (value->dtype() != DType::kInt32 && value->dtype() != DType::kInt64) return std::nullopt;
  const absl::StatusOr<std::vector<int64_t>> elements = IntegerValues(*value);
  return elements.ok() ? std::optional<int64_t>((*elements)[0]) : std::nullopt;
}

// The largest number of the type of a constant, for which IntegerOf has a value.
int64_t LargestOf(TensorRef constant) {
  const absl::StatusOr<Tensor> value = ConstValue(*constant.node);
  return value.ok() && value->dtype() == DType::kInt64 ? std::numeric_limits<int64_t>::max()
                                                       : std::numeric_limits<int32_t>::max();
}

// Returns whether a tensor follows from constants, and from sizes of tensors if `with_sizes`, alone.
bool IsOfConstants(TensorRef tensor, bool with_sizes) {
  absl::flat_hash_set<const Node*> seen;
  std::vector<const Node*> waiting = {tensor.node};
  while (!waiting.empty()) {
    const Node* node = waiting.back();
    waiting.pop_back();
    if (!seen.insert(node).second || node->op() == ops::kConst || (with_sizes && IsSize(*node))) continue;
    const OpSchema* schema = FindSchema(node->op());
    // A node without inputs that is no constant is an argument, or is fed.
    if (schema == nullptr || schema->traits != kPure || node->num_data_inputs() == 0) return false;
    for (int i = 0; i < node->num_data_inputs(); ++i) waiting.push_back(node->input(i).node);
  }
  return true;
}

// A loop in the terms of the proof: variables, by number, and the graphs that compute their next values and the
// condition.
class Loop {
 public:
  virtual ~Loop() = default;
  // The condition, in the graph that computes it.
  virtual TensorRef condition() const = 0;
  // Returns the number of the variable that the tensor holds within the loop, or -1.
  virtual int VariableOf(TensorRef tensor) const = 0;
  // Returns the value of a variable after an iteration.
  virtual TensorRef Next(int variable) const = 0;
  // Returns the tensor outside of the loop that a tensor inside stands for, which does not change; a null node for
  // others.
  virtual TensorRef Outside(TensorRef tensor) const = 0;
};

// A loop that calls functions for its condition and its body.
class FunctionLoop : public Loop {
 public:
  FunctionLoop(const Node& node, std::unique_ptr<Graph> condition, std::unique_ptr<Graph> body)
      : node_(node), condition_(std::move(condition)), body_(std::move(body)) {
    condition_args_ = ArgsOf(*condition_);
    body_args_ = ArgsOf(*body_);
    returns_ = RetvalsOf(*body_);
  }

  TensorRef condition() const override { return RetvalsOf(*condition_)[0]->input(0); }

  int VariableOf(TensorRef tensor) const override {
    const std::vector<Node*>& args = &tensor.node->graph() == body_.get() ? body_args_ : condition_args_;
    for (size_t i = 0; i < args.size(); ++i) {
      if (args[i] == tensor.node) return static_cast<int>(i);
    }
    return -1;
  }

  TensorRef Next(int variable) const override { return returns_[static_cast<size_t>(variable)]->input(0); }

  TensorRef Outside(TensorRef tensor) const override {
    const int variable = VariableOf(tensor);
    if (variable < 0 || variable >= node_.num_data_inputs()) return {};
    return VariableOf(SkipCopies(Next(variable))) == variable ? node_.input(variable) : TensorRef();
  }

  bool IsSound() const {
    const std::vector<Node*> conditions = RetvalsOf(*condition_);
    bool has_values = conditions.size() == 1 && conditions[0]->num_data_inputs() == 1;
    for (const Node* result : returns_) has_values = has_values && result->num_data_inputs() == 1;
    return has_values && returns_.size() == body_args_.size() && body_args_.size() == condition_args_.size();
  }

 private:
  const Node& node_;
  std::unique_ptr<Graph> condition_, body_;
  std::vector<Node*> condition_args_, body_args_, returns_;
};

// A loop of V1 control flow. Its variables are the Merge nodes; the number of one is its id.
class FrameLoop : public Loop {
 public:
  explicit FrameLoop(const Node& loop_cond) : loop_cond_(loop_cond) {}

  TensorRef condition() const override { return loop_cond_.input(0); }

  int VariableOf(TensorRef tensor) const override {
    const Node* node = tensor.node;
    if (node->op() == ops::kSwitch && tensor.port == 1 && node->num_data_inputs() == 2 &&
        node->input(1).node == &loop_cond_) {
      tensor = node->input(0);
      node = tensor.node;
    }
    if (node->op() != ops::kMerge || tensor.port != 0 || NextOf(*node) == nullptr) return -1;
    const int variable = static_cast<int>(node->id());
    merges_[variable] = node;
    return variable;
  }

  TensorRef Next(int variable) const override { return NextOf(*merges_.at(variable))->input(0); }

  TensorRef Outside(TensorRef tensor) const override {
    if (const int variable = VariableOf(tensor); variable >= 0) {
      if (VariableOf(SkipCopies(Next(variable))) != variable) return {};
      return EnteredValue(*merges_.at(variable)->input(0).node);
    }
    const AttrValue* constant = tensor.node->FindAttr("is_constant");
    const bool is_constant = constant != nullptr && constant->AsBool().value_or(false);
    return is_constant ? EnteredValue(*tensor.node) : TensorRef();
  }

 private:
  // Returns the value that enters the loop at a node; a null node if it does not enter there.
  static TensorRef EnteredValue(const Node& node) {
    return node.op() == ops::kEnter && node.num_data_inputs() == 1 ? node.input(0) : TensorRef();
  }

  // Returns the NextIteration that a Merge reads, or null.
  static const Node* NextOf(const Node& merge) {
    for (int i = 0; i < merge.num_data_inputs(); ++i) {
      const Node* input = merge.input(i).node;
      if (input->op() == ops::kNextIteration && input->num_data_inputs() == 1) return input;
    }
    return nullptr;
  }

  const Node& loop_cond_;
  mutable absl::flat_hash_map<int, const Node*> merges_;  // The Merge nodes that VariableOf has found.
};

// Returns by how much every iteration changes a variable, or nothing if it is not a constant.
std::optional<int64_t> StepOf(const Loop& loop, int variable) {
  const TensorRef next = SkipCopies(loop.Next(variable));
  if (next.node == nullptr || next.node->num_data_inputs() != 2) return std::nullopt;
  const TensorRef a = SkipCopies(next.node->input(0));
  const TensorRef b = SkipCopies(next.node->input(1));
  const bool is_sum = HasOp(*next.node, {"Add", "AddV2"});
  if (!is_sum && next.node->op() != ops::kSub) return std::nullopt;
  if (loop.VariableOf(a) == variable) {
    const std::optional<int64_t> step = IntegerOf(b);
    if (!step.has_value() || *step == std::numeric_limits<int64_t>::min()) return std::nullopt;
    return is_sum ? *step : -*step;
  }
  return is_sum && loop.VariableOf(b) == variable ? IntegerOf(a) : std::nullopt;
}

// Why a comparison does not bound the loop; empty if it does. The loop goes on while `counter` is below `limit`, or
// above it, if `up` is false.
std::string WhyNoBound(const Loop& loop, TensorRef counter, TensorRef limit, bool up, bool with_equal) {
  const int variable = loop.VariableOf(counter);
  if (variable < 0) return "the condition compares no loop variable";
  const std::optional<int64_t> step = StepOf(loop, variable);
  if (!step.has_value()) return "the compared variable does not change by a constant integer";
  if (up ? *step <= 0 : *step >= 0) return "the compared variable does not move towards its limit";
  // A step beyond the limit must not overflow, which would start over from the other end of the type.
  if (const std::optional<int64_t> value = IntegerOf(limit); value.has_value()) {
    const int64_t largest = LargestOf(limit);
    const bool fits = up ? *value <= largest - *step : *value >= -largest - *step;
    return fits ? "" : "the counter overflows before it reaches the limit";
  }
  const TensorRef outside = loop.Outside(limit);
  const TensorRef source = outside.node != nullptr ? SkipCopies(outside) : limit;
  if (const std::optional<int64_t> value = IntegerOf(source); value.has_value()) {
    const int64_t largest = LargestOf(source);
    const bool fits = up ? *value <= largest - *step : *value >= -largest - *step;
    return fits ? "" : "the counter overflows before it reaches the limit";
  }
  // Tensors inside of the loop may grow from iteration to iteration, so their sizes are no limit.
  if (!IsOfConstants(source, /*with_sizes=*/outside.node != nullptr))
    return "the limit is a value that is computed at run time";
  // A step of one reaches every number below the limit before the limit itself.
  if (with_equal || (*step != 1 && *step != -1)) return "the counter may overflow before it reaches the limit";
  return "";
}

std::string WhyConditionIsUnbounded(const Loop& loop) {
  // A conjunction ends the loop as soon as one of its terms does.
  std::string why;
  absl::flat_hash_set<const Node*> seen;
  std::vector<TensorRef> terms = {loop.condition()};
  while (!terms.empty()) {
    const TensorRef term = SkipCopies(terms.back());
    terms.pop_back();
    if (!seen.insert(term.node).second) continue;
    const bool has_two = term.node->num_data_inputs() == 2;
    if (has_two && term.node->op() == ops::kLogicalAnd) {
      terms.push_back(term.node->input(0));
      terms.push_back(term.node->input(1));
      continue;
    }
    const bool is_less = HasOp(*term.node, {"Less", "LessEqual"});
    if (!has_two || (!is_less && !HasOp(*term.node, {"Greater", "GreaterEqual"}))) continue;
    const bool with_equal = HasOp(*term.node, {"LessEqual", "GreaterEqual"});
    const TensorRef a = SkipCopies(term.node->input(0));
    const TensorRef b = SkipCopies(term.node->input(1));
    const std::string first = WhyNoBound(loop, a, b, is_less, with_equal);
    if (first.empty()) return "";
    const std::string second = WhyNoBound(loop, b, a, !is_less, with_equal);
    if (second.empty()) return "";
    why = loop.VariableOf(a) >= 0 ? first : second;
  }
  return why.empty() ? "the condition compares no counter with a limit" : why;
}

absl::StatusOr<std::unique_ptr<Graph>> BodyOf(const Node& node, const char* attr, const FunctionLibrary& library) {
  const AttrValue* value = node.FindAttr(attr);
  if (value == nullptr) return absl::NotFoundError(absl::StrCat("has no attribute '", attr, "'"));
  const absl::StatusOr<FunctionRef> call = value->AsFunction();
  if (!call.ok()) return call.status();
  return library.Instantiate(*call);
}

}  // namespace

bool IsLoopOp(absl::string_view op) {
  for (const char* loop : {"While", "StatelessWhile", "_While", "RiscWhile", "XlaWhile", "For", "LoopCond"}) {
    if (op == loop) return true;
  }
  return false;
}

std::string WhyUnbounded(const Node& node, const FunctionLibrary& library) {
  if (node.op() == ops::kLoopCond) {
    if (node.num_data_inputs() != 1) return "the loop has no condition";
    return WhyConditionIsUnbounded(FrameLoop(node));
  }
  if (node.op().name() == "For") {
    for (int i = 0; i < 3; ++i) {
      if (i >= node.num_data_inputs() || !IsOfConstants(node.input(i), /*with_sizes=*/true)) {
        return "the limit is a value that is computed at run time";
      }
    }
    return "";
  }
  absl::StatusOr<std::unique_ptr<Graph>> condition = BodyOf(node, "cond", library);
  absl::StatusOr<std::unique_ptr<Graph>> body = BodyOf(node, "body", library);
  for (const absl::Status& status : {condition.status(), body.status()}) {
    if (!status.ok()) return absl::StrCat("its functions are not known: ", status.message());
  }
  const FunctionLoop loop(node, *std::move(condition), *std::move(body));
  return loop.IsSound() ? WhyConditionIsUnbounded(loop) : "its functions do not fit";
}

}  // namespace permafrost
