// Prepares the nodes of a program in order, and computes those whose inputs are known. memory_layout.cc then assigns
// the memory.
#include "runtime_check/planning/plan.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "graph/base/selection.h"
#include "graph/base/status.h"
#include "runtime_check/kernels/variable.h"
#include "runtime_check/packing/packed_weights.h"
#include "runtime_check/planning/cluster.h"
#include "runtime_check/planning/clustering.h"
#include "runtime_check/planning/delegation.h"
#include "runtime_check/planning/planning_state.h"

namespace permafrost {
namespace {

// A larger result is computed in each run instead, in the arena.
constexpr int64_t kMostFoldedBytes = int64_t{256} << 20;

constexpr size_t kAllConstants = std::numeric_limits<size_t>::max();
// A value that describes shapes is small; a larger one is a weight.
constexpr size_t kMostShapeBytes = 1024;

// Selects whether the plan may rely on the current shapes of variables.
enum class Assumptions : uint8_t { kAllowed, kNone };

class Preparer {
 public:
  // `delegate` may be null.
  Preparer(const Program& program, const Environment* environment, const Delegate* delegate, Assumptions assumptions,
           PlanState* state)
      : program_(program),
        environment_(environment),
        delegate_(delegate),
        budget_(environment->budget),
        assumptions_(assumptions),
        state_(*state) {}

  absl::Status Run(absl::Span<const Shape> feed_shapes) {
    state_.tensors.resize(program_.tensors.size());
    state_.nodes.resize(program_.nodes.size());
    for (size_t i = 0; i < program_.feeds.size(); ++i) {
      TensorState& fed = state_.tensors[program_.feeds[i].tensor];
      fed.kind = TensorState::Kind::kStatic;
      fed.shape = feed_shapes[i];
    }
    for (const int tensor : program_.inputs) ++state_.tensors[tensor].readers_left;
    for (const int tensor : program_.fetches) {
      ++state_.tensors[tensor].readers_left;
      state_.tensors[tensor].is_fetched = true;
    }
    for (size_t i = 0; i < program_.nodes.size(); ++i) {
      const ProgramNode& node = program_.nodes[i];
      PF_RETURN_IF_ERROR(Prepare(node, &state_.nodes[i]));
      for (const int tensor : program_.InputsOf(node)) {
        --state_.tensors[tensor].readers_left;
        DropIfUnread(&state_.tensors[tensor]);
      }
    }
    return absl::OkStatus();
  }

  // Prepares a candidate that the delegate did not compile for its reference kernel.
  absl::Status PrepareAfterAll(int position) {
    const ProgramNode& node = program_.nodes[position];
    std::vector<PrepareInput> inputs;
    for (const int number : program_.InputsOf(node)) {
      inputs.push_back({program_.tensors[number].dtype, state_.tensors[number].shape});
    }
    std::vector<DType> output_types;
    for (int i = 0; i < node.num_outputs; ++i) {
      output_types.push_back(program_.tensors[node.first_output + i].dtype);
    }
    auto prepared = std::make_unique<PreparedNode>();
    PF_RETURN_IF_ERROR(PrepareFor(node, inputs, output_types, kAllConstants, prepared.get()));
    return KeepInputs(node, std::move(prepared), &state_.nodes[position]);
  }

  // Returns whether the program keeps the shapes of variables on which the preparation relies. A called function may
  // assign to any variable.
  bool KeepsAssumedShapes() const {
    if (!kHoldsVariables || state_.variables == nullptr || state_.variables->assumed.empty()) return true;
    if (std::any_of(program_.calls.begin(), program_.calls.end(),
                    [](const FunctionCall& call) { return call.cluster == nullptr; })) {
      return false;
    }
    return std::all_of(program_.nodes.begin(), program_.nodes.end(),
                       [&](const ProgramNode& node) { return KeepsAssumedShapes(node); });
  }

  // Keeps the constants that dynamic nodes read, which MakeDynamic left to this function.
  absl::Status KeepForDynamic() {
    for (size_t i = 0; i < program_.nodes.size(); ++i) {
      if (state_.nodes[i].kind != NodeState::Kind::kDynamic) continue;
      for (const int number : program_.InputsOf(program_.nodes[i])) PF_RETURN_IF_ERROR(Keep(number));
    }
    return absl::OkStatus();
  }

 private:
  using Kind = TensorState::Kind;

  bool HasDelegate() const { return selection::kHoldsDelegates && delegate_ != nullptr; }

  void DropIfUnread(TensorState* tensor) {
    if (tensor->kind != Kind::kConstant || tensor->readers_left > 0 || tensor->is_kept) return;
    tensor->DropMemory();
  }

  absl::Status Prepare(const ProgramNode& node, NodeState* result) {
    if (node.kernel == nullptr) {
      result->kind = NodeState::Kind::kFolded;
      if (kKeepsPackedWeights) state_.tensors[node.first_output].is_of_model = true;
      return SetConstant(node.first_output, program_.constants[node.constant], Reservation());
    }
    if (node.role != FlowRole::kNone) return PrepareFlow(node, result);
    if (node.call >= 0) return MakeDynamic(node, nullptr, result);
    if (kHoldsVariables && MayReferEarly(node)) return ReferToVariable(node, result);
    const absl::Span<const int> inputs = program_.InputsOf(node);
    for (int i = 0; i < node.num_outputs; ++i) {
      if (HoldsObjects(program_.tensors[node.first_output + i].dtype)) return MakeDynamic(node, nullptr, result);
    }
    std::vector<PrepareInput> prepare_inputs;
    bool all_constant = true;
    for (const int number : inputs) {
      const TensorState& tensor = state_.tensors[number];
      if (tensor.kind == Kind::kDynamic) return MakeDynamic(node, nullptr, result);
      all_constant &= tensor.kind == Kind::kConstant;
      prepare_inputs.push_back({program_.tensors[number].dtype, tensor.shape});
    }
    std::vector<DType> output_types;
    for (int i = 0; i < node.num_outputs; ++i) {
      output_types.push_back(program_.tensors[node.first_output + i].dtype);
    }
    if (HasDelegate() && !all_constant) {
      PF_RETURN_IF_ERROR(Offer(node, prepare_inputs, output_types, result));
      if (result->is_candidate) return absl::OkStatus();
    }
    auto prepared = std::make_unique<PreparedNode>();
    PF_RETURN_IF_ERROR(PrepareFor(node, prepare_inputs, output_types, kAllConstants, prepared.get()));
    if (prepared->needs_value_of >= 0) {
      if (state_.tensors[inputs[prepared->needs_value_of]].kind == Kind::kConstant) {
        return absl::InternalError(absl::StrCat(node.node->Describe(), ": the kernel asks for the value of input ",
                                                prepared->needs_value_of, ", which is known"));
      }
      return MakeDynamic(node, nullptr, result);
    }
    if (kHoldsVariables) AssumeShape(node, prepared.get());
    if (node.kernel->is_alias() && state_.tensors[inputs[0]].kind == Kind::kConstant) {
      return FoldAlias(node, *prepared, result);
    }
    if (node.is_pure && (all_constant || node.kernel->reads_shapes_only()) && IsSmall(*prepared)) {
      return Fold(node, *prepared, result);
    }
    if (node.may_be_dead) return MakeDynamic(node, std::move(prepared), result);
    for (int i = 0; i < node.num_outputs; ++i) {
      if (prepared->outputs[i].depends_on_values) return MakeDynamic(node, std::move(prepared), result);
    }
    for (int i = 0; i < node.num_outputs; ++i) {
      TensorState& tensor = state_.tensors[node.first_output + i];
      tensor.kind = Kind::kStatic;
      tensor.shape = prepared->outputs[i].shape;
    }
    return KeepInputs(node, std::move(prepared), result);
  }

  absl::Status KeepInputs(const ProgramNode& node, std::unique_ptr<PreparedNode> prepared, NodeState* result) {
    const absl::Span<const int> inputs = program_.InputsOf(node);
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (!prepared->released[i]) PF_RETURN_IF_ERROR(Keep(inputs[i]));
    }
    if (HasDelegate() && result->refusal.empty()) result->refusal = "reads constants only";
    result->kind = NodeState::Kind::kStatic;
    result->prepared = std::move(prepared);
    return absl::OkStatus();
  }

  // Returns whether the node refers to a variable that can be looked up before the run. Variables are never replaced.
  bool MayReferEarly(const ProgramNode& node) const {
    return node.node->op() == ops::kVarHandleOp && environment_->resources != nullptr && !node.may_be_dead &&
           node.num_inputs == 0 && node.num_outputs == 1 && !state_.tensors[node.first_output].is_fetched;
  }

  absl::Status ReferToVariable(const ProgramNode& node, NodeState* result) {
    PreparedNode prepared;
    PF_RETURN_IF_ERROR(PrepareFor(node, {}, {program_.tensors[node.first_output].dtype}, kAllConstants, &prepared));
    Value value;
    PF_ASSIGN_OR_RETURN(std::vector<HeapOutput> made, ComputeNode(*node.node, prepared, {}, &value, *environment_));
    if (made[0].objects == nullptr) {
      return absl::InternalError(absl::StrCat(node.node->Describe(), ": the kernel makes no reference"));
    }
    TensorState& tensor = state_.tensors[node.first_output];
    tensor.kind = Kind::kStatic;
    tensor.shape = value.shape;
    if (state_.variables == nullptr) state_.variables = std::make_shared<PlannedVariables>();
    state_.variables->references.push_back(std::move(made[0].objects));
    tensor.objects = state_.variables->references.back().get();
    result->kind = NodeState::Kind::kFolded;
    return absl::OkStatus();
  }

  // Returns the variable to which a node's first input refers; null if it is not known.
  const Variable* VariableOf(const ProgramNode& node) const {
    if (node.num_inputs == 0) return nullptr;
    const TensorState& handle = state_.tensors[program_.InputsOf(node)[0]];
    return handle.objects == nullptr ? nullptr : ObjectAs<Variable>(handle.objects->front()).value_or(nullptr).get();
  }

  // Sets the shape that a node reads from a variable to the current one, if no other shape is declared.
  void AssumeShape(const ProgramNode& node, PreparedNode* prepared) {
    if (assumptions_ == Assumptions::kNone || node.node->op() != ops::kReadVariableOp || node.may_be_dead ||
        prepared->outputs.size() != 1 || !prepared->outputs[0].depends_on_values || !program_.calls.empty()) {
      return;
    }
    const Variable* variable = VariableOf(node);
    if (variable == nullptr || !variable->is_initialized()) return;
    const ObjectRef& object = state_.tensors[program_.InputsOf(node)[0]].objects->front();
    state_.variables->assumed.push_back({std::shared_ptr<const Variable>(object, variable), variable->value.shape()});
    prepared->outputs[0].shape = variable->value.shape();
    prepared->outputs[0].depends_on_values = false;
  }

  bool KeepsAssumedShapes(const ProgramNode& node) const {
    const Op op = node.node->op();
    if (op == ops::kAssignVariableOp) {
      // Without a known variable, it may be any.
      const Variable* variable = VariableOf(node);
      if (variable == nullptr || node.num_inputs != 2) return false;
      const TensorState& value = state_.tensors[program_.InputsOf(node)[1]];
      return std::all_of(
          state_.variables->assumed.begin(), state_.variables->assumed.end(), [&](const AssumedShape& assumed) {
            return assumed.variable.get() != variable || (value.kind != Kind::kDynamic && value.shape == assumed.shape);
          });
    }
    if (op == ops::kReadVariableOp || op == ops::kVarIsInitializedOp || op == ops::kVariableShape ||
        op == ops::kAssignAddVariableOp || op == ops::kAssignSubVariableOp || op == ops::kResourceGather) {
      return true;
    }
    const Variable* variable = VariableOf(node);
    return std::none_of(state_.variables->assumed.begin(), state_.variables->assumed.end(),
                        [&](const AssumedShape& assumed) { return assumed.variable.get() == variable; });
  }

  // Prepares a node of control flow. A constant stays constant behind Switch, Enter and Exit. The output of a Merge,
  // and values from the previous iteration, are known only during the run.
  absl::Status PrepareFlow(const ProgramNode& node, NodeState* result) {
    result->kind = NodeState::Kind::kFlow;
    if (HasDelegate()) result->refusal = "decides in V1 control flow what runs next";
    const absl::Span<const int> inputs = program_.InputsOf(node);
    const bool keeps_constants =
        node.role == FlowRole::kSwitch || node.role == FlowRole::kEnter || node.role == FlowRole::kExit;
    const bool is_constant = keeps_constants && state_.tensors[inputs[0]].kind == Kind::kConstant;
    for (size_t i = is_constant ? 1 : 0; i < inputs.size(); ++i) PF_RETURN_IF_ERROR(Keep(inputs[i]));
    for (int i = 0; i < node.num_outputs; ++i) {
      if (is_constant) {
        if (kKeepsPackedWeights) {
          state_.tensors[node.first_output + i].is_of_model = state_.tensors[inputs[0]].is_of_model;
        }
        PF_RETURN_IF_ERROR(SetConstant(node.first_output + i, *state_.tensors[inputs[0]].value, Reservation()));
      } else {
        state_.tensors[node.first_output + i].kind = Kind::kDynamic;
      }
    }
    return absl::OkStatus();
  }

  // Prepares the node. Constants larger than `most_bytes` count as unknown, so that weights are not packed.
  absl::Status PrepareFor(const ProgramNode& node, absl::Span<const PrepareInput> inputs,
                          absl::Span<const DType> output_types, size_t most_bytes, PreparedNode* prepared) {
    const absl::Span<const int> numbers = program_.InputsOf(node);
    const auto value = [&](int i) -> absl::StatusOr<const Tensor*> {
      TensorState& tensor = state_.tensors[numbers[i]];
      if (tensor.kind != Kind::kConstant) return nullptr;
      if (most_bytes != kAllConstants && tensor.value->bytes().size() > most_bytes) return nullptr;
      PF_RETURN_IF_ERROR(tensor.Align(budget_));
      return tensor.aligned.get();
    };
    const auto prepare = [&](const PackedInputs* packed) {
      return PrepareNode(*node.node, *node.kernel, inputs, output_types, environment_->threads->num_threads(), value,
                         prepared, packed);
    };
    if (!kKeepsPackedWeights || environment_->packed == nullptr || most_bytes != kAllConstants) return prepare(nullptr);
    const auto name = [&](int i) { return ValueName(program_, state_, numbers[i]); };
    const PackedInputs packed = {environment_->packed, name};
    return prepare(&packed);
  }

  // Returns the reason that no delegate may run the node; empty if there is none.
  absl::string_view ReasonToKeep(const ProgramNode& node) const {
    if (node.may_be_dead || node.frame != 0) {
      return "lies behind a branch or in a loop of V1 control flow, which only the reference kernels follow";
    }
    if (!node.is_pure || node.kernel->uses_state()) return "does more than its outputs show";
    if (node.kernel->reads_shapes_only()) return "reads shapes only";
    for (const int number : program_.InputsOf(node)) {
      if (program_.tensors[number].dtype == DType::kString) return "reads strings";
    }
    for (int i = 0; i < node.num_outputs; ++i) {
      if (program_.tensors[node.first_output + i].dtype == DType::kString) return "makes strings";
    }
    return "";
  }

  // Offers a node to the delegate: makes it a candidate, or records the reason why not. A node that is not a candidate
  // must be prepared for its reference kernel.
  absl::Status Offer(const ProgramNode& node, absl::Span<const PrepareInput> inputs,
                     absl::Span<const DType> output_types, NodeState* result) {
    result->refusal = std::string(ReasonToKeep(node));
    if (!result->refusal.empty()) return absl::OkStatus();
    PreparedNode prepared;
    const size_t most_bytes = node.kernel->data() == nullptr ? kMostShapeBytes : kAllConstants;
    PF_RETURN_IF_ERROR(PrepareFor(node, inputs, output_types, most_bytes, &prepared));
    if (prepared.needs_value_of < 0 && IsOfCustomKernel(*node.kernel, prepared)) {
      result->refusal = "a kernel of the user's computes it";
      return absl::OkStatus();
    }
    if (prepared.needs_value_of >= 0) {
      result->refusal = absl::StrCat("its shape follows from the value of input ", prepared.needs_value_of);
      return absl::OkStatus();
    }
    for (int i = 0; i < node.num_outputs; ++i) {
      if (prepared.outputs[i].depends_on_values) {
        result->refusal = absl::StrCat("the shape of output ", i, " depends on values");
        return absl::OkStatus();
      }
      state_.tensors[node.first_output + i].shape = prepared.outputs[i].shape;
    }
    const auto position = static_cast<int>(&node - program_.nodes.data());
    const Partition single = PartitionOf(program_, state_, position);
    if (const DelegateChoice* choice = delegate_->choice(); choice != nullptr) {
      if (!OfferToAll(single, *choice, result)) return absl::OkStatus();
    } else if (const absl::Status supported = delegate_->Supports(single); !supported.ok()) {
      result->refusal = std::string(supported.message());
      return absl::OkStatus();
    }
    for (int i = 0; i < node.num_outputs; ++i) state_.tensors[node.first_output + i].kind = Kind::kStatic;
    for (const int number : program_.InputsOf(node)) state_.tensors[number].is_kept = true;
    result->kind = NodeState::Kind::kStatic;
    result->is_candidate = true;
    return absl::OkStatus();
  }

  // Offers a node to several delegates. Returns false, with their reasons, if none supports it.
  static bool OfferToAll(const Partition& single, const DelegateChoice& choice, NodeState* result) {
    std::string reasons;
    for (size_t i = 0; i < choice.members.size(); ++i) {
      const Delegate& member = *choice.members[i];
      const absl::Status supported = member.Supports(single);
      result->estimated_ns.push_back(supported.ok() ? member.EstimateNanoseconds(single) : -1);
      if (supported.ok()) {
        result->supporters |= uint32_t{1} << i;
      } else {
        absl::StrAppend(&reasons, reasons.empty() ? "" : "; ", member.name(), ": ", supported.message());
      }
    }
    result->refusal = std::move(reasons);
    return result->supporters != 0;
  }

  absl::Status Keep(int number) {
    TensorState& tensor = state_.tensors[number];
    if (tensor.kind != Kind::kConstant) return absl::OkStatus();
    tensor.is_kept = true;
    return tensor.Align(budget_);
  }

  absl::Status MakeDynamic(const ProgramNode& node, std::unique_ptr<PreparedNode> prepared, NodeState* result) {
    result->kind = NodeState::Kind::kDynamic;
    result->prepared = std::move(prepared);
    if (HasDelegate() && result->refusal.empty()) {
      result->refusal = node.call >= 0 ? "calls a function, whose body is planned by itself"
                        : !node.is_pure || node.kernel->uses_state() ? "does more than its outputs show"
                        : node.kernel->is_alias()                    ? "passes its input on"
                                                                     : "its shapes are known only during the run";
    }
    for (const int number : program_.InputsOf(node)) {
      // A delegate reads weights where they are in the file, so they are copied only once the node is in no cluster.
      if (HasDelegate()) {
        state_.tensors[number].is_kept = true;
      } else {
        PF_RETURN_IF_ERROR(Keep(number));
      }
    }
    for (int i = 0; i < node.num_outputs; ++i) state_.tensors[node.first_output + i].kind = Kind::kDynamic;
    return absl::OkStatus();
  }

  absl::Status SetConstant(int number, Tensor value, Reservation reservation) {
    TensorState& tensor = state_.tensors[number];
    tensor.kind = Kind::kConstant;
    tensor.shape = value.shape();
    tensor.value = std::move(value);
    tensor.value_bytes = std::move(reservation);
    DropIfUnread(&tensor);
    return absl::OkStatus();
  }

  absl::Status FoldAlias(const ProgramNode& node, const PreparedNode& prepared, NodeState* result) {
    const Tensor& input = *state_.tensors[program_.InputsOf(node)[0]].value;
    const OutputSpec& output = prepared.outputs[0];
    absl::StatusOr<Tensor> value = output.dtype == input.dtype()
                                       ? input.Reshaped(output.shape)
                                       : Tensor::FromBytes(output.dtype, output.shape, input.bytes(), input.owner());
    PF_RETURN_IF_ERROR(Annotate(value.status(), node.node->Describe()));
    result->kind = NodeState::Kind::kFolded;
    PassOn(node);
    return SetConstant(node.first_output, *std::move(value), Reservation());
  }

  // Marks the outputs as depending on the model alone if all inputs do. Called before the outputs are set.
  void PassOn(const ProgramNode& node) {
    if (!kKeepsPackedWeights || node.kernel->reads_shapes_only()) return;
    for (const int number : program_.InputsOf(node)) {
      if (!state_.tensors[number].is_of_model) return;
    }
    for (int i = 0; i < node.num_outputs; ++i) state_.tensors[node.first_output + i].is_of_model = true;
  }

  static bool IsSmall(const PreparedNode& prepared) {
    int64_t bytes = 0;
    for (const OutputSpec& output : prepared.outputs) {
      if (output.depends_on_values) continue;
      if (__builtin_add_overflow(bytes, ValueBytes(output.dtype, output.shape).value_or(0), &bytes)) return false;
    }
    return bytes <= kMostFoldedBytes;
  }

  absl::Status Fold(const ProgramNode& node, const PreparedNode& prepared, NodeState* result) {
    std::vector<Value> values;
    for (const int number : program_.InputsOf(node)) {
      TensorState& tensor = state_.tensors[number];
      if (tensor.kind == Kind::kConstant) {
        PF_RETURN_IF_ERROR(Annotate(tensor.Align(budget_), node.node->Describe()));
        values.push_back(ViewOf(*tensor.aligned));
      } else {
        values.push_back({program_.tensors[number].dtype, tensor.shape, nullptr, nullptr});
      }
    }
    std::vector<const Value*> inputs;
    for (const Value& value : values) inputs.push_back(&value);
    std::vector<Value> outputs(static_cast<size_t>(node.num_outputs));
    PF_ASSIGN_OR_RETURN(std::vector<HeapOutput> made,
                        ComputeNode(*node.node, prepared, inputs, outputs.data(), *environment_));
    for (int i = 0; i < node.num_outputs; ++i) {
      Tensor value = made[i].strings == nullptr ? std::move(made[i].tensor)
                                                : Tensor::FromStrings(outputs[i].shape, std::move(*made[i].strings));
      PF_RETURN_IF_ERROR(SetConstant(node.first_output + i, std::move(value), std::move(made[i].reservation)));
    }
    PassOn(node);
    result->kind = NodeState::Kind::kFolded;
    ++state_.num_folded;
    return absl::OkStatus();
  }

  const Program& program_;
  const Environment* environment_;
  const Delegate* delegate_;
  MemoryBudget* budget_;
  Assumptions assumptions_;
  PlanState& state_;
};

// Builds the plan of a prepared program whose candidates the delegate runs.
absl::StatusOr<std::unique_ptr<Plan>> BuildDelegated(const Program& program, Preparer* preparer, PlanState* state,
                                                     const Environment* environment) {
  PF_RETURN_IF_ERROR(preparer->KeepForDynamic());
  const auto prepare = [&](int position) { return preparer->PrepareAfterAll(position); };
  PF_ASSIGN_OR_RETURN(std::unique_ptr<Delegated> delegated,
                      DelegatePartitions(program, state, *environment->delegate, *environment, prepare));
  if (delegated == nullptr) return LayOut(program, std::move(*state), environment);
  PF_ASSIGN_OR_RETURN(std::unique_ptr<Plan> plan,
                      LayOut(delegated->lowered->program, std::move(delegated->state), environment));
  plan->lowered = std::move(delegated->lowered);
  return plan;
}

absl::StatusOr<std::unique_ptr<Plan>> BuildPlan(const Program& program, absl::Span<const Shape> feed_shapes,
                                                const Environment* environment, const Delegate* delegate,
                                                Assumptions assumptions) {
  PlanState state;
  Preparer preparer(program, environment, delegate, assumptions, &state);
  PF_RETURN_IF_ERROR(preparer.Run(feed_shapes));
  if (kHoldsVariables && !preparer.KeepsAssumedShapes()) {
    return BuildPlan(program, feed_shapes, environment, delegate, Assumptions::kNone);
  }
  if (!selection::kHoldsDelegates || delegate == nullptr) return LayOut(program, std::move(state), environment);
  std::shared_ptr<ClusteredProgram> clustered;
  PF_ASSIGN_OR_RETURN(clustered, FormClusters(program, &state));
  if (clustered == nullptr) return BuildDelegated(program, &preparer, &state, environment);
  Preparer rest(clustered->program, environment, delegate, assumptions, &state);
  PF_ASSIGN_OR_RETURN(std::unique_ptr<Plan> plan, BuildDelegated(clustered->program, &rest, &state, environment));
  plan->clustered = std::move(clustered);
  return plan;
}

}  // namespace

std::string ValueName(const Program& program, const PlanState& state, int tensor) {
  const TensorRef& ref = program.tensors[tensor].ref;
  if (!state.tensors[tensor].is_of_model || ref.node == nullptr) return "";
  // The library may have instances of the function with other attributes.
  if (program.function != nullptr && !program.function->attrs.empty()) return "";
  return absl::StrCat(program.function == nullptr ? "" : program.function->name, "/", ref.node->name(), ":", ref.port);
}

absl::Status TensorState::Align(MemoryBudget* budget) {
  if (aligned != nullptr) return absl::OkStatus();
  if (value->dtype() != DType::kString && !value->IsAligned()) {
    PF_ASSIGN_OR_RETURN(aligned_bytes, Reservation::Take(budget, static_cast<int64_t>(value->bytes().size()),
                                                         "an aligned copy of a constant"));
  }
  PF_ASSIGN_OR_RETURN(Tensor copy, value->Aligned());
  aligned = std::make_shared<const Tensor>(std::move(copy));
  return absl::OkStatus();
}

void TensorState::DropMemory() {
  aligned.reset();
  aligned_bytes.Release();
  value.reset();
  value_bytes.Release();
}

absl::StatusOr<std::unique_ptr<Plan>> BuildPlan(const Program& program, absl::Span<const Shape> feed_shapes,
                                                const Environment* environment, Delegation delegation) {
  const Delegate* delegate = delegation == Delegation::kAllowed ? environment->delegate : nullptr;
  return BuildPlan(program, feed_shapes, environment, delegate, Assumptions::kAllowed);
}

bool Plan::VariablesFit() const {
  return std::all_of(variables->assumed.begin(), variables->assumed.end(),
                     [](const AssumedShape& each) { return each.variable->value.shape() == each.shape; });
}

absl::Status Plan::failure() const {
  if (lowered != nullptr && !lowered->failure.ok()) return lowered->failure;
  return selection::kHoldsDelegates && clustered != nullptr ? clustered->failure : absl::OkStatus();
}

}  // namespace permafrost
