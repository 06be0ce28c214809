// Finds constant nodes, computes them in order, and frees values after their last use.
#include "transforms/rewrites/constant_evaluation.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "graph/analysis/uniform_quantization.h"
#include "graph/base/status.h"
#include "graph/ops/op_schema.h"

namespace permafrost {
namespace {

// A constant with more control inputs than this is left unchanged, since each of its users would get them too.
constexpr size_t kMaxControls = 64;

constexpr absl::string_view kWayToMoreBytes = "raise max_constant_size_in_bytes";

bool IsShapeLike(Op op) { return op == ops::kShape || op == ops::kShapeN || op == ops::kRank || op == ops::kSize; }

// Ops whose output 0 is input 0, unchanged. A placeholder with a default that is not fed has the value of its default.
bool PassesThrough(Op op) {
  return op == ops::kIdentity || op == ops::kStopGradient || op == ops::kPreventGradient || op == ops::kSnapshot ||
         op == ops::kPlaceholderWithDefault;
}

// Appends the numbers as a tensor of `type`; returns false if one does not fit.
bool MakeIntegers(DType type, Shape shape, const std::vector<int64_t>& numbers, std::vector<Tensor>* outputs) {
  if (type == DType::kInt64) {
    outputs->push_back(Tensor::FromVector(std::move(shape), numbers));
    return true;
  }
  if (type != DType::kInt32) return false;
  std::vector<int32_t> narrow;
  for (const int64_t number : numbers) {
    if (number > std::numeric_limits<int32_t>::max() || number < std::numeric_limits<int32_t>::min()) return false;
    narrow.push_back(static_cast<int32_t>(number));
  }
  outputs->push_back(Tensor::FromVector(std::move(shape), std::move(narrow)));
  return true;
}

}  // namespace

ConstantEvaluation::ConstantEvaluation(Graph* graph, const EvaluationLimits& limits, const ShapesAndIntegers* known,
                                       FunctionEvaluation* functions, PassContext* context)
    : graph_(graph),
      limits_(limits),
      shapes_(known == nullptr ? nullptr : &known->shapes),
      integers_(known == nullptr ? nullptr : known->integers.get()),
      functions_(functions),
      context_(context),
      values_(graph->id_limit()),
      num_waiting_(graph->id_limit(), 0) {
  for (const Node* node = graph->first(); node != nullptr && !has_control_flow_; node = node->next()) {
    const OpSchema* schema = FindSchema(node->op());
    has_control_flow_ = schema != nullptr && schema->Is(kControlFlow);
  }
}

absl::Status ConstantEvaluation::Run(const std::vector<Node*>& order, const std::vector<bool>& is_needed) {
  if (context_->evaluator == nullptr) {
    return absl::FailedPreconditionError("nothing was given that could compute nodes");
  }
  for (const Node* node : order) {
    if (!is_needed[node->id()]) continue;
    for (int i = 0; i < node->num_data_inputs(); ++i) ++num_waiting_[node->input(i).node->id()];
  }
  for (Node* node : order) {
    if (!is_needed[node->id()]) continue;
    Value* value = &values_[node->id()];
    value->is_constant = Decide(node, value);
    const bool stays = !value->is_constant || (graph_->IsOutput(node) && !CanBecomeConst(*node));
    if (graph_->IsOutput(node)) value->is_read = true;
    for (int i = 0; i < node->num_data_inputs(); ++i) {
      Value* input = &values_[node->input(i).node->id()];
      input->is_read |= stays;
      if (--num_waiting_[node->input(i).node->id()] == 0 && !input->is_read) {
        input->outputs.clear();
        input->outputs.shrink_to_fit();
      }
    }
  }
  return absl::OkStatus();
}

bool ConstantEvaluation::CanBecomeConst(const Node& node) const {
  const Value& value = values_[node.id()];
  return value.is_constant && value.root == nullptr && value.outputs.size() == 1;
}

bool ConstantEvaluation::Decide(Node* node, Value* value) {
  if (graph_->IsInput(node) || node->op() == ops::k_Retval) return false;
  if (node->op() == ops::kConst) {
    const absl::StatusOr<DType> type = TypeAttr(*node, "dtype");
    if (!type.ok() || *type == DType::kResource || *type == DType::kVariant) return false;
    if (!GatherControls(*node, /*with_data=*/false, value)) return false;
    value->root = node;
    return true;
  }
  if (IsShapeLike(node->op()) ? FoldShape(*node, value) : FoldIntegers(*node, value)) return true;
  for (int i = 0; i < node->num_data_inputs(); ++i) {
    if (!values_[node->input(i).node->id()].is_constant) return false;
  }
  if (!MayRun(*node)) return false;
  if (!GatherControls(*node, /*with_data=*/true, value)) return false;
  if (PassesThrough(node->op()) && node->num_data_inputs() == 1) {
    const Value& input = values_[node->input(0).node->id()];
    const int port = node->input(0).port;
    if (port == 0 && input.root != nullptr) {
      value->root = input.root;
      return true;
    }
    if (port < static_cast<int>(input.outputs.size())) {
      value->outputs.push_back(input.outputs[port]);
      return true;
    }
  }
  return Compute(*node, value);
}

// The outputs of these ops follow from shapes, even if their input is not constant.
bool ConstantEvaluation::FoldShape(const Node& node, Value* value) {
  if (shapes_ == nullptr || node.num_data_inputs() == 0) return false;
  const absl::StatusOr<DType> type =
      node.op() == ops::kRank ? absl::StatusOr<DType>(DType::kInt32) : TypeAttr(node, "out_type");
  if (!type.ok()) return false;
  std::vector<Tensor> outputs;
  for (int i = 0; i < node.num_data_inputs(); ++i) {
    const Shape shape = shapes_->Of(node.input(i));
    if (!shape.has_rank() || (node.op() != ops::kRank && !shape.IsFullyKnown())) return false;
    bool fits;
    if (node.op() == ops::kRank) {
      fits = MakeIntegers(*type, Shape(), {shape.rank()}, &outputs);
    } else if (node.op() == ops::kSize) {
      const absl::StatusOr<int64_t> count = shape.CheckedNumElements();
      fits = count.ok() && MakeIntegers(*type, Shape(), {*count}, &outputs);
    } else {
      fits = MakeIntegers(*type, Shape({shape.rank()}), {shape.dims().begin(), shape.dims().end()}, &outputs);
    }
    if (!fits) return false;
  }
  if (!GatherControls(node, /*with_data=*/has_control_flow_, value)) return false;
  num_known_shapes_ += static_cast<int64_t>(outputs.size());
  value->outputs = std::move(outputs);
  ++num_evaluated_;
  return true;
}

// Arithmetic on shapes may have known elements although its inputs are not constant: a known dimension next to an
// unknown one.
bool ConstantEvaluation::FoldIntegers(const Node& node, Value* value) {
  if (integers_ == nullptr || node.num_data_inputs() == 0) return false;
  if (integers_->Integers({const_cast<Node*>(&node), 0}) == nullptr) return false;
  bool is_constant = true;
  for (int i = 0; i < node.num_data_inputs(); ++i) is_constant &= values_[node.input(i).node->id()].is_constant;
  if (is_constant) return false;  // Computed as any other node.
  if (limits_.exclude_ops.contains(node.op().name()) || limits_.exclude_nodes.contains(node.name())) return false;
  const absl::StatusOr<std::vector<DType>> types = OutputTypes(node);
  if (!types.ok()) return false;
  std::vector<Tensor> outputs;
  for (size_t port = 0; port < types->size(); ++port) {
    const KnownIntegers* known = integers_->Integers({const_cast<Node*>(&node), static_cast<int>(port)});
    if (known == nullptr || !known->AllKnown()) return false;
    if (!MakeIntegers((*types)[port], known->shape, known->elements, &outputs)) return false;
  }
  if (!GatherControls(node, /*with_data=*/has_control_flow_, value)) return false;
  num_known_shapes_ += static_cast<int64_t>(outputs.size());
  value->outputs = std::move(outputs);
  ++num_evaluated_;
  return true;
}

// Collects the nodes that must run before a constant that replaces the node. With V1 control flow these include the
// former data producers, which determine the frame and whether the value exists.
bool ConstantEvaluation::GatherControls(const Node& node, bool with_data, Value* value) {
  std::shared_ptr<const std::vector<Node*>> single;
  std::vector<Node*> all;
  int sources = 0;
  for (int i = with_data ? 0 : node.num_data_inputs(); i < node.num_inputs(); ++i) {
    Node* producer = node.input(i).node;
    const Value& input = values_[producer->id()];
    if (!input.is_constant) {
      all.push_back(producer);
      ++sources;
    } else if (input.controls != nullptr && input.controls != single) {
      all.insert(all.end(), input.controls->begin(), input.controls->end());
      single = input.controls;
      ++sources;
    }
  }
  if (sources == 1 && single != nullptr) {
    value->controls = std::move(single);
    return true;
  }
  if (all.empty()) return true;
  std::sort(all.begin(), all.end(), [](const Node* a, const Node* b) { return a->id() < b->id(); });
  all.erase(std::unique(all.begin(), all.end()), all.end());
  if (all.size() > kMaxControls) return Refuse(node, absl::StrCat("must wait for ", all.size(), " other nodes"));
  value->controls = std::make_shared<const std::vector<Node*>>(std::move(all));
  return true;
}

bool ConstantEvaluation::Refuse(const Node& node, absl::string_view reason, absl::string_view way_out) {
  ++num_refused_;
  context_->MissIfWanted(node, WayOut{way_out}, reason);
  return false;
}

// Returns true if a node with constant inputs may be computed ahead of time.
bool ConstantEvaluation::MayRun(const Node& node) {
  if (node.op() == ops::kPlaceholder || node.op() == ops::kPlaceholderV2) {
    context_->Note(absl::StrCat("placeholder '", node.name(),
                                "' is not among the inputs; nodes that depend on it are not folded"));
    return false;
  }
  const OpSchema* schema = FindSchema(node.op());
  if (schema == nullptr) return Refuse(node, "is of an op that is not known");
  if (FunctionEvaluation::IsCall(node)) {
    if (functions_ == nullptr) return Refuse(node, "calls functions");
  } else if (schema->Is(kStateful)) {
    return Refuse(node, "has state");
  }
  if (schema->Is(kRandom)) return Refuse(node, "is random");
  if (schema->Is(kHasSideEffect)) return Refuse(node, "has side effects");
  if (schema->Is(kControlFlow)) return Refuse(node, "is control flow");
  // Weights stay codes: they are smaller, and integer kernels read them.
  if (node.op() == UniformDequantizeOp()) return Refuse(node, "reads codes that integer kernels need");
  if (limits_.exclude_ops.contains(node.op().name())) return Refuse(node, "is excluded by exclude_op", "drop it there");
  if (limits_.exclude_nodes.contains(node.name())) return Refuse(node, "is excluded by exclude_node", "drop it there");
  const absl::StatusOr<int> outputs = NumOutputs(node);
  if (!outputs.ok() || *outputs == 0) return false;
  return PassesThrough(node.op()) || FitsStatically(node);
}

bool ConstantEvaluation::FitsStatically(const Node& node) {
  const absl::StatusOr<std::vector<DType>> types = OutputTypes(node);
  if (!types.ok()) return Refuse(node, types.status().message());
  const auto shapes = shapes_ == nullptr ? absl::Span<const Shape>() : shapes_->OutputsOf(node);
  for (size_t port = 0; port < types->size(); ++port) {
    if (port >= shapes.size() || !shapes[port].IsFullyKnown()) continue;
    const Shape& shape = shapes[port];
    const absl::StatusOr<int64_t> count = shape.CheckedNumElements();
    int64_t bytes = 0;
    if (!count.ok() || __builtin_mul_overflow(*count, static_cast<int64_t>(SizeOf((*types)[port])), &bytes) ||
        bytes > limits_.max_bytes) {
      return Refuse(node,
                    absl::StrCat("gives ", DTypeName((*types)[port]), " ", shape.ToString(), ", more than the ",
                                 limits_.max_bytes, " bytes of max_constant_size_in_bytes"),
                    kWayToMoreBytes);
    }
  }
  return true;
}

bool ConstantEvaluation::Compute(const Node& node, Value* value) {
  const bool is_call = FunctionEvaluation::IsCall(node);
  if (const absl::Status supported = is_call ? absl::OkStatus() : context_->evaluator->Supports(node);
      !supported.ok()) {
    return Refuse(node, supported.message());
  }
  std::vector<Tensor> inputs;
  for (int i = 0; i < node.num_data_inputs(); ++i) {
    const TensorRef ref = node.input(i);
    const Value& input = values_[ref.node->id()];
    if (input.root != nullptr) {
      absl::StatusOr<Tensor> tensor = ConstValue(*input.root);
      if (!tensor.ok()) return Refuse(node, tensor.status().message());
      inputs.push_back(*std::move(tensor));
    } else if (ref.port < static_cast<int>(input.outputs.size())) {
      inputs.push_back(input.outputs[ref.port]);
    } else {
      return Refuse(node, absl::StrCat("reads output ", ref.port, " of ", ref.node->Describe(), ", which has none"));
    }
  }
  absl::StatusOr<std::vector<Tensor>> outputs =
      is_call ? functions_->Evaluate(node, inputs) : context_->evaluator->Evaluate(node, inputs);
  if (!outputs.ok()) return Refuse(node, outputs.status().message());
  for (const Tensor& output : *outputs) {
    if (static_cast<int64_t>(output.bytes().size()) <= limits_.max_bytes) continue;
    return Refuse(node,
                  absl::StrCat("gives ", output.bytes().size(), " bytes, more than the ", limits_.max_bytes,
                               " of max_constant_size_in_bytes"),
                  kWayToMoreBytes);
  }
  value->outputs = *std::move(outputs);
  ++num_evaluated_;
  return true;
}

}  // namespace permafrost
