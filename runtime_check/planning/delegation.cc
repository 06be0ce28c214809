// Groups the nodes that a delegate supports, compiles the groups and writes the lowered program.
#include "runtime_check/planning/delegation.h"

#include <algorithm>
#include <cstdio>
#include <functional>
#include <map>
#include <queue>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "graph/base/status.h"
#include "runtime_check/kernel.h"
#include "runtime_check/planning/placement.h"
#include "runtime_check/profiling/profiler.h"

namespace permafrost {
namespace {

constexpr int kNone = -1;

// Placements that are tried after a delegate failed to compile its part; then the built-in kernels run it.
constexpr int kMostPlacements = 4;

std::string TimeText(double ns) {
  char text[32];  // Selective builds have no absl::StrFormat.
  std::snprintf(text, sizeof(text), "%.3g %s", ns < 1e6 ? ns / 1e3 : ns / 1e6, ns < 1e6 ? "us" : "ms");
  return text;
}

// Kernel state of the node of a partition.
struct PartitionState final : public KernelState {
  std::unique_ptr<CompiledPartition> compiled;
  Reservation constant_bytes;
  PieceCallback on_piece;
  mutable int64_t piece_start_ns = 0;  // Start of the piece that on_piece reports next.
  Profiler* profiler = nullptr;
  mutable PieceTickets tickets;
  LoweredProgram* lowered = nullptr;
  mutable std::vector<const char*> inputs;
  mutable std::vector<char*> outputs;
};

absl::Status RunPartition(ComputeContext* context) {
  const auto& state = context->state<PartitionState>();
  for (int i = 0; i < context->num_inputs(); ++i) state.inputs[i] = context->input_at(i).data;
  for (int i = 0; i < context->num_outputs(); ++i) state.outputs[i] = context->output_at(i).data;
  const bool is_recording = state.profiler != nullptr && state.profiler->is_recording();
  if (is_recording) state.profiler->EnterPartition(context->node(), &state.tickets);
  const absl::Status status = state.compiled->Run(state.inputs, absl::MakeSpan(state.outputs), context->scratch(),
                                                  is_recording ? state.profiler->on_piece() : state.on_piece);
  // A run that was cancelled is not repeated without the delegate.
  if (!status.ok() && !absl::IsCancelled(status)) state.lowered->failure = Annotate(status, context->node().Describe());
  return status;
}

// Builds a partition, and numbers its tensors.
class PartitionBuilder {
 public:
  PartitionBuilder(const Program& program, const PlanState& state) : program_(program), state_(state) {}

  void Add(int position) {
    const ProgramNode& from = program_.nodes[position];
    DelegateNode node;
    node.node = from.node;
    for (const int tensor : program_.InputsOf(from)) node.inputs.push_back(Number(tensor));
    for (int i = 0; i < from.num_outputs; ++i) {
      node.outputs.push_back(Number(from.first_output + i));
      is_made_[node.outputs.back()] = true;
    }
    partition_.nodes.push_back(std::move(node));
  }

  // Returns the partition. `is_read(tensor)` returns whether the program's tensor has a reader outside the partition.
  Partition Finish(absl::FunctionRef<bool(int tensor)> is_read) {
    for (size_t i = 0; i < partition_.tensors.size(); ++i) {
      if (is_made_[i]) {
        if (is_read(origin_[i])) partition_.outputs.push_back(static_cast<int>(i));
      } else if (!partition_.tensors[i].constant.has_value()) {
        partition_.inputs.push_back(static_cast<int>(i));
      }
    }
    return std::move(partition_);
  }

  int origin(int number) const { return origin_[number]; }

 private:
  int Number(int tensor) {
    const auto [entry, is_new] = numbers_.emplace(tensor, static_cast<int>(origin_.size()));
    if (!is_new) return entry->second;
    origin_.push_back(tensor);
    is_made_.push_back(false);
    const TensorState& state = state_.tensors[tensor];
    DelegateTensor& copy = partition_.tensors.emplace_back();
    copy.dtype = program_.tensors[tensor].dtype;
    copy.shape = state.shape;
    if (state.kind == TensorState::Kind::kConstant) copy.constant = state.value;
    copy.value_name = ValueName(program_, state_, tensor);
    return entry->second;
  }

  const Program& program_;
  const PlanState& state_;
  Partition partition_;
  // Tensor of the program to tensor of the partition. Abseil's maps are left invalid if their growth throws
  // std::bad_alloc.
  std::unordered_map<int, int> numbers_;
  std::vector<int> origin_;  // The inverse mapping.
  std::vector<bool> is_made_;
};

class Splitter {
 public:
  Splitter(const Program& program, PlanState* state, const Delegate& delegate, const Environment& environment,
           absl::FunctionRef<absl::Status(int position)> prepare)
      : program_(program),
        state_(*state),
        delegate_(delegate),
        choice_(delegate.choice()),
        environment_(environment),
        prepare_(prepare) {}

  absl::StatusOr<std::unique_ptr<Delegated>> Run() {
    PF_RETURN_IF_ERROR(FindRunners());
    FindReaders();
    result_ = std::make_unique<Delegated>();
    result_->lowered = std::make_unique<LoweredProgram>();
    std::vector<NodeGroup> groups;
    std::vector<std::unique_ptr<Compiled>> compiled;
    if (choice_ == nullptr) {
      owners_.assign(program_.nodes.size(), 1);
      groups = GroupByOwner(program_, runners_, owners_);
      PF_RETURN_IF_ERROR(CompileAll(groups, &compiled).status());
    } else {
      PF_ASSIGN_OR_RETURN(groups, PlaceAndCompile(&compiled));
    }
    if (std::all_of(compiled.begin(), compiled.end(), [](const auto& each) { return each == nullptr; })) {
      for (const NodeGroup& group : groups) {
        for (const int position : group.positions) NoteRefusal(position, &state_.delegation);
      }
      return nullptr;
    }
    BeginProgram();
    for (size_t i = 0; i < groups.size(); ++i) {
      if (compiled[i] != nullptr) {
        PF_RETURN_IF_ERROR(AddPartition(std::move(compiled[i])));
      } else {
        for (const int position : groups[i].positions) AddNode(position);
      }
    }
    FinishProgram();
    return std::move(result_);
  }

 private:
  // A partition that was compiled.
  struct Compiled {
    std::unique_ptr<PartitionState> state;
    std::vector<int> inputs, outputs;  // Tensors of the original program.
    DelegationReport::Taken taken;
    std::string delegate;
  };

  DelegationReport& report() { return result_->state.delegation; }

  void NoteRefusal(int position, DelegationReport* to) const {
    const std::string& refusal = state_.nodes[position].refusal;
    if (refusal.empty()) return;
    const Node& node = *program_.nodes[position].node;
    to->left.push_back({std::string(node.name()), std::string(node.op().name()), refusal, ""});
  }

  absl::Status FindRunners() {
    const NodeLiveness liveness = FindLive(program_, state_);
    const std::vector<bool> is_flow = FindFlow();
    for (size_t i = 0; i < program_.nodes.size(); ++i) {
      NodeState& state = state_.nodes[i];
      if (is_flow[i]) {
        if (state.is_candidate) {
          state.is_candidate = false;
          state.refusal = "it waits for a node of V1 control flow";
          PF_RETURN_IF_ERROR(prepare_(static_cast<int>(i)));
        }
        // Constants of a loop or branch keep their nodes, which determine whether they are dead.
        const bool is_kept = liveness.live[i] || liveness.guarded[i] || state.kind == NodeState::Kind::kFolded;
        runners_.push_back(is_kept ? Runner::kFlow : Runner::kNone);
        continue;
      }
      runners_.push_back(!liveness.live[i] ? Runner::kNone : state.is_candidate ? Runner::kDelegate : Runner::kKernel);
    }
    return absl::OkStatus();
  }

  // Returns, by node, whether it is part of V1 control flow or depends on such a node. All other nodes may run first.
  std::vector<bool> FindFlow() const {
    std::vector<bool> is_flow(program_.nodes.size(), false);
    if (!program_.has_control_flow()) return is_flow;
    std::vector<bool> from_flow(program_.tensors.size(), false);
    absl::flat_hash_set<const Node*> flow_nodes;
    for (size_t i = 0; i < program_.nodes.size(); ++i) {
      const ProgramNode& node = program_.nodes[i];
      bool found = node.role != FlowRole::kNone || node.frame != 0 || node.may_be_dead;
      for (const int tensor : program_.InputsOf(node)) found = found || from_flow[tensor];
      for (int j = node.node->num_data_inputs(); j < node.node->num_inputs() && !found; ++j) {
        found = flow_nodes.contains(node.node->input(j).node);
      }
      if (!found) continue;
      is_flow[i] = true;
      flow_nodes.insert(node.node);
      for (int j = 0; j < node.num_outputs; ++j) from_flow[node.first_output + j] = true;
    }
    return is_flow;
  }

  // Counts, by tensor, its reads by nodes that run and by fetches.
  void FindReaders() {
    readers_.assign(program_.tensors.size(), 0);
    for (size_t i = 0; i < program_.nodes.size(); ++i) {
      if (runners_[i] == Runner::kNone || state_.nodes[i].kind == NodeState::Kind::kFolded) continue;
      for (const int tensor : program_.InputsOf(program_.nodes[i])) ++readers_[tensor];
    }
    for (const int tensor : program_.fetches) ++readers_[tensor];
  }

  // Compiles the groups of delegates. Null stands for a group that the reference kernels have to run; its nodes are
  // prepared for these, unless another delegate supports them. Returns whether each group was compiled.
  absl::StatusOr<bool> CompileAll(const std::vector<NodeGroup>& groups,
                                  std::vector<std::unique_ptr<Compiled>>* compiled, bool is_last = true) {
    bool is_complete = true;
    compiled->resize(groups.size());
    for (size_t i = 0; i < groups.size(); ++i) {
      const NodeGroup& group = groups[i];
      if (group.owner == 0) continue;
      PF_ASSIGN_OR_RETURN((*compiled)[i], Compile(group));
      if ((*compiled)[i] != nullptr) continue;
      is_complete = false;
      for (const int position : group.positions) {
        NodeState& node = state_.nodes[position];
        node.supporters &= ~(uint32_t{1} << (group.owner - 1));
        if (node.supporters == 0 || is_last) PF_RETURN_IF_ERROR(LeaveToKernels(position));
      }
    }
    return is_complete;
  }

  absl::Status LeaveToKernels(int position) {
    state_.nodes[position].is_candidate = false;
    runners_[position] = Runner::kKernel;
    return prepare_(position);
  }

  // Places the nodes on the members of the choice, and compiles. What a member fails to compile is placed again.
  absl::StatusOr<std::vector<NodeGroup>> PlaceAndCompile(std::vector<std::unique_ptr<Compiled>>* compiled) {
    for (int round = 1;; ++round) {
      const Placement placement = PlaceNodes(program_, state_, runners_, *choice_, environment_.threads->num_threads());
      for (size_t i = 0; i < runners_.size(); ++i) {
        if (runners_[i] != Runner::kDelegate || placement.owners[i] != 0) continue;
        state_.nodes[i].refusal = ReasonForKernels(placement, i);
        PF_RETURN_IF_ERROR(LeaveToKernels(static_cast<int>(i)));
      }
      owners_ = placement.owners;
      std::vector<NodeGroup> groups = GroupByOwner(program_, runners_, owners_);
      // Partitions that are as before need no compilation.
      std::map<std::pair<int, std::vector<int>>, std::unique_ptr<Compiled>> known;
      known.swap(known_);
      for (const NodeGroup& group : groups) {
        const auto found = known.find({group.owner, group.positions});
        if (found != known.end()) known_.insert(known.extract(found));
      }
      known.clear();
      compiled->clear();
      PF_ASSIGN_OR_RETURN(const bool is_complete, CompileAll(groups, compiled, round == kMostPlacements));
      if (is_complete || round == kMostPlacements) {
        Explain(placement, groups, compiled);
        return groups;
      }
      for (size_t i = 0; i < groups.size(); ++i) {
        if ((*compiled)[i] != nullptr) {
          known_[{groups[i].owner, std::move(groups[i].positions)}] = std::move((*compiled)[i]);
        }
      }
    }
  }

  // The estimate of a set of nodes for an owner; infinite if it does not support one of them.
  static double EstimateOf(const Placement& placement, const std::vector<int>& positions, int owner) {
    double sum = 0;
    for (const int position : positions) sum += placement.estimated_ns[position][static_cast<size_t>(owner)];
    return sum;
  }

  std::string ReasonForKernels(const Placement& placement, size_t position) const {
    const std::vector<double>& estimates = placement.estimated_ns[position];
    std::vector<std::string> others;
    for (size_t owner = 1; owner < estimates.size(); ++owner) {
      if (estimates[owner] > 1e300) continue;
      others.push_back(absl::StrCat(TimeText(estimates[owner]), " by ", choice_->members[owner - 1]->name()));
    }
    return absl::StrCat("placed there by the estimate: ", TimeText(estimates[0]), ", and ", absl::StrJoin(others, ", "),
                        " before entries and transfers");
  }

  // Adds lines about the placement in front of the pieces of each partition.
  void Explain(const Placement& placement, const std::vector<NodeGroup>& groups,
               std::vector<std::unique_ptr<Compiled>>* compiled) const {
    bool is_first = true;
    for (size_t i = 0; i < groups.size(); ++i) {
      if ((*compiled)[i] == nullptr) continue;
      const NodeGroup& group = groups[i];
      Compiled& each = *(*compiled)[i];
      std::vector<std::string> lines;
      if (is_first) {
        std::vector<std::string> alone;
        for (const auto& [name, ns] : placement.alone) alone.push_back(absl::StrCat(name, " ", TimeText(ns)));
        lines.push_back(absl::StrCat("placement: estimated ", TimeText(placement.total_ns),
                                     " for a run; alone: ", absl::StrJoin(alone, ", ")));
      }
      is_first = false;
      std::vector<std::string> elsewhere;
      for (int owner = 0; owner <= static_cast<int>(choice_->members.size()); ++owner) {
        const double ns = EstimateOf(placement, group.positions, owner);
        if (owner == group.owner || ns > 1e300) continue;
        elsewhere.push_back(absl::StrCat(TimeText(ns), " by ",
                                         owner == 0 ? "the built-in kernels" : choice_->members[owner - 1]->name()));
      }
      const auto bytes_of = [&](const std::vector<int>& tensors) {
        int64_t sum = 0;
        for (const int tensor : tensors) {
          sum += ValueBytes(program_.tensors[tensor].dtype, state_.tensors[tensor].shape).value_or(0);
        }
        return sum;
      };
      const bool copies =
          choice_->members[group.owner - 1]->Speed(environment_.threads->num_threads()).transfer_bytes_per_ns > 0;
      lines.push_back(
          absl::StrCat("placed here by the estimate: ", TimeText(EstimateOf(placement, group.positions, group.owner)),
                       elsewhere.empty() ? "" : ", and ", absl::StrJoin(elsewhere, ", "), "; ", bytes_of(each.inputs),
                       " bytes enter, ", bytes_of(each.outputs), " leave, ",
                       copies ? "copied to the device and back" : "in the memory of the host"));
      each.taken.pieces.insert(each.taken.pieces.begin(), lines.begin(), lines.end());
    }
  }

  // Compiles a group. Returns null if the reference kernels have to run it.
  absl::StatusOr<std::unique_ptr<Compiled>> Compile(const NodeGroup& node_group) {
    if (const auto found = known_.find({node_group.owner, node_group.positions}); found != known_.end()) {
      return std::move(found->second);
    }
    const std::vector<int>& group = node_group.positions;
    const Delegate& delegate = choice_ == nullptr ? delegate_ : *choice_->members[node_group.owner - 1];
    PartitionBuilder builder(program_, state_);
    absl::flat_hash_map<int, int> inside;
    for (const int position : group) {
      builder.Add(position);
      for (const int tensor : program_.InputsOf(program_.nodes[position])) ++inside[tensor];
    }
    const Partition partition = builder.Finish([&](int tensor) {
      const auto found = inside.find(tensor);
      return readers_[tensor] > (found == inside.end() ? 0 : found->second);
    });
    std::string reason = "its partition is too small to be worth entering";
    if (delegate.IsWorthwhile(partition)) {
      absl::StatusOr<std::unique_ptr<CompiledPartition>> made =
          environment_.num_lanes < 2
              ? delegate.Compile(partition, environment_.threads->num_threads())
              : delegate.CompileInLanes(partition, environment_.threads->num_threads(), environment_.num_lanes);
      if (made.ok()) return Accept(delegate, group, builder, partition, *std::move(made));
      reason = absl::StrCat(kFailedToCompile, ": ", made.status().message());
    }
    for (const int position : group) {
      std::string& refusal = state_.nodes[position].refusal;
      if (choice_ == nullptr) {
        refusal = reason;
      } else {
        absl::StrAppend(&refusal, refusal.empty() ? "" : "; ", delegate.name(), ": ", reason);
      }
    }
    return nullptr;
  }

  absl::StatusOr<std::unique_ptr<Compiled>> Accept(const Delegate& delegate, const std::vector<int>& group,
                                                   const PartitionBuilder& builder, const Partition& partition,
                                                   std::unique_ptr<CompiledPartition> compiled) {
    auto accepted = std::make_unique<Compiled>();
    accepted->delegate = std::string(delegate.name());
    accepted->state = std::make_unique<PartitionState>();
    PartitionState* state = accepted->state.get();
    PF_ASSIGN_OR_RETURN(state->constant_bytes,
                        Reservation::Take(environment_.budget, std::max<int64_t>(0, compiled->constant_bytes()),
                                          absl::StrCat("what ", delegate.name(), " keeps for a partition")));
    for (const int input : partition.inputs) accepted->inputs.push_back(builder.origin(input));
    for (const int output : partition.outputs) accepted->outputs.push_back(builder.origin(output));
    DelegationReport::Taken& taken = accepted->taken;
    taken.delegate = accepted->delegate;
    for (const int position : group) taken.nodes.emplace_back(program_.nodes[position].node->name());
    taken.pieces = compiled->Describe();
    taken.constant_bytes = compiled->constant_bytes();
    taken.scratch_bytes = compiled->scratch_bytes();
    state->lowered = result_->lowered.get();
    state->inputs.resize(partition.inputs.size());
    state->outputs.resize(partition.outputs.size());
    state->compiled = std::move(compiled);
    if (environment_.on_piece != nullptr) {
      state->on_piece = [state, told = *environment_.on_piece](absl::string_view name, absl::Duration duration) {
        const int64_t end_ns = Profiler::NowNanoseconds();
        told(name, duration != SinceTheOneBefore() ? duration : absl::Nanoseconds(end_ns - state->piece_start_ns));
        state->piece_start_ns = Profiler::NowNanoseconds();
      };
    }
    state->profiler = environment_.profiler;
    return accepted;
  }

  void BeginProgram() {
    new_number_.assign(program_.tensors.size(), kNone);
    new_position_.assign(program_.nodes.size(), kNone);
    Program& to = result_->lowered->program;
    to.constants = program_.constants;
    to.calls = program_.calls;
    to.fetch_names = program_.fetch_names;
    result_->state.num_folded = state_.num_folded;
    result_->state.variables = state_.variables;
    for (const ProgramFeed& feed : program_.feeds) {
      ProgramFeed& copy = to.feeds.emplace_back(feed);
      copy.tensor = AddTensor(feed.tensor);
    }
    // Constants precede all nodes that run, independently of their groups.
    for (size_t i = 0; i < program_.nodes.size(); ++i) {
      if (state_.nodes[i].kind == NodeState::Kind::kFolded && runners_[i] != Runner::kFlow)
        AddNode(static_cast<int>(i));
    }
  }

  int AddTensor(int tensor) {
    std::vector<ProgramTensor>& tensors = result_->lowered->program.tensors;
    const auto number = static_cast<int>(tensors.size());
    tensors.push_back(program_.tensors[tensor]);
    result_->state.tensors.push_back(std::move(state_.tensors[tensor]));
    if (new_number_[tensor] == kNone) new_number_[tensor] = number;
    return number;
  }

  void AddNode(int position) {
    Program& to = result_->lowered->program;
    ProgramNode node = program_.nodes[position];
    const absl::Span<const int> inputs = program_.InputsOf(node);
    node.first_input = static_cast<int>(to.inputs.size());
    if (state_.nodes[position].kind == NodeState::Kind::kFolded) {
      // The inputs of a folded node may be inside a partition. Inputs from control flow are kept, because they
      // determine whether the node is dead.
      node.num_inputs = 0;
      for (const int tensor : inputs) {
        if (runners_[position] != Runner::kFlow || new_number_[tensor] == kNone) continue;
        to.inputs.push_back(new_number_[tensor]);
        ++node.num_inputs;
      }
    } else {
      for (const int tensor : inputs) {
        // The input of a Merge that comes from NextIteration is numbered later.
        if (new_number_[tensor] == kNone) late_inputs_.emplace_back(to.inputs.size(), tensor);
        to.inputs.push_back(new_number_[tensor]);
      }
      NoteRefusal(position, &report());
    }
    const int first_output = node.first_output;
    node.first_output = static_cast<int>(to.tensors.size());
    for (int i = 0; i < node.num_outputs; ++i) AddTensor(first_output + i);
    new_position_[position] = static_cast<int>(to.nodes.size());
    to.nodes.push_back(node);
    result_->state.nodes.push_back(std::move(state_.nodes[position]));
  }

  absl::Status AddPartition(std::unique_ptr<Compiled> compiled) {
    const Compiled& ends = *compiled;
    std::unique_ptr<PartitionState> partition = std::move(compiled->state);
    Program& to = result_->lowered->program;
    const size_t number = result_->lowered->kernels.size();
    result_->lowered->kernels.push_back(std::make_unique<Kernel>(
        Kernel(absl::StrCat("a partition that ", ends.delegate, " runs")).Compute(&RunPartition)));
    const DelegationReport::Taken& taken = report().partitions.emplace_back(std::move(compiled->taken));
    PF_ASSIGN_OR_RETURN(Node * stand_in, result_->lowered->nodes.AddNode(
                                             absl::StrCat(taken.nodes.front(), "...", taken.nodes.back(), "#", number),
                                             Op::Named(ends.delegate)));
    auto prepared = std::make_unique<PreparedNode>();
    prepared->compute = &RunPartition;
    prepared->scratch_bytes = std::max<int64_t>(0, partition->compiled->scratch_bytes());
    prepared->released.assign(ends.inputs.size(), false);
    ProgramNode node;
    node.node = stand_in;
    node.kernel = result_->lowered->kernels.back().get();
    node.first_input = static_cast<int>(to.inputs.size());
    node.num_inputs = static_cast<int>(ends.inputs.size());
    node.first_output = static_cast<int>(to.tensors.size());
    node.num_outputs = static_cast<int>(ends.outputs.size());
    for (const int tensor : ends.inputs) to.inputs.push_back(new_number_[tensor]);
    for (const int tensor : ends.outputs) {
      prepared->outputs.push_back({program_.tensors[tensor].dtype, state_.tensors[tensor].shape, false});
      AddTensor(tensor);
    }
    to.nodes.push_back(node);
    prepared->state = std::move(partition);
    NodeState& state = result_->state.nodes.emplace_back();
    state.kind = NodeState::Kind::kStatic;
    state.prepared = std::move(prepared);
    return absl::OkStatus();
  }

  void FinishProgram() {
    Program& to = result_->lowered->program;
    for (const int tensor : program_.fetches) to.fetches.push_back(new_number_[tensor]);
    for (const auto& [index, tensor] : late_inputs_) to.inputs[index] = new_number_[tensor];
    if (!program_.has_control_flow()) return;
    // The order of control-flow nodes is unchanged, so each frame is still contiguous.
    for (ProgramNode& node : to.nodes) {
      const absl::Span<const int> controls = program_.ControlsOf(node);
      node.first_control = static_cast<int>(to.controls.size());
      for (const int position : controls) {
        if (new_position_[position] != kNone) to.controls.push_back(new_position_[position]);
      }
      node.num_controls = static_cast<int>(to.controls.size()) - node.first_control;
    }
    to.frames = program_.frames;
    to.frames[0].begin = 0;
    to.frames[0].end = static_cast<int>(to.nodes.size());
    for (size_t i = 1; i < to.frames.size(); ++i) {
      Frame& frame = to.frames[i];
      int begin = 0, end = 0;
      for (int position = frame.begin; position < frame.end; ++position) {
        const int now = new_position_[position];
        if (now == kNone) continue;
        if (end == 0) begin = now;
        end = now + 1;
      }
      frame.begin = begin;
      frame.end = end;
    }
  }

  const Program& program_;
  PlanState& state_;
  const Delegate& delegate_;
  const DelegateChoice* choice_;  // Null: delegate_ is a single one.
  const Environment& environment_;
  absl::FunctionRef<absl::Status(int position)> prepare_;
  std::vector<Runner> runners_;  // By node.
  std::vector<int> readers_;     // By tensor.
  std::vector<int> owners_;      // By node.
  // Partitions of an earlier placement, by owner and nodes.
  std::map<std::pair<int, std::vector<int>>, std::unique_ptr<Compiled>> known_;
  std::vector<int> new_number_;    // By tensor; kNone inside partitions and for nodes that do not run.
  std::vector<int> new_position_;  // By node; kNone in partitions and for nodes that do not run.
  std::vector<std::pair<size_t, int>> late_inputs_;  // Positions in the new inputs, and the original tensors.
  std::unique_ptr<Delegated> result_;
};

}  // namespace

Partition PartitionOf(const Program& program, const PlanState& state, int position) {
  PartitionBuilder builder(program, state);
  builder.Add(position);
  return builder.Finish([&](int tensor) { return state.tensors[tensor].readers_left > 0; });
}

std::vector<std::vector<int>> GroupNodes(const Program& program, const std::vector<Runner>& runners) {
  std::vector<std::vector<int>> positions;
  for (NodeGroup& group : GroupByOwner(program, runners, std::vector<int>(program.nodes.size(), 1))) {
    positions.push_back(std::move(group.positions));
  }
  return positions;
}

std::vector<NodeGroup> GroupByOwner(const Program& program, const std::vector<Runner>& runners,
                                    const std::vector<int>& owners) {
  const size_t count = program.nodes.size();
  std::vector<int> producer(program.tensors.size(), kNone);
  absl::flat_hash_map<const Node*, int> positions;
  for (size_t i = 0; i < count; ++i) {
    const ProgramNode& node = program.nodes[i];
    positions.emplace(node.node, static_cast<int>(i));
    for (int j = 0; j < node.num_outputs; ++j) producer[node.first_output + j] = static_cast<int>(i);
  }
  std::vector<std::vector<int>> readers(count);
  std::vector<int> pending(count, 0);
  const auto depend = [&](size_t reader, int on) {
    readers[on].push_back(static_cast<int>(reader));
    ++pending[reader];
  };
  for (size_t i = 0; i < count; ++i) {
    const ProgramNode& node = program.nodes[i];
    if (runners[i] == Runner::kFlow) continue;
    if (runners[i] != Runner::kNone) {
      for (const int tensor : program.InputsOf(node)) {
        if (producer[tensor] != kNone) depend(i, producer[tensor]);
      }
    }
    for (int j = node.node->num_data_inputs(); j < node.node->num_inputs(); ++j) {
      const auto found = positions.find(node.node->input(j).node);
      if (found != positions.end()) depend(i, found->second);
    }
  }
  // Nodes of Runner::kNone are skipped immediately.
  using Ready = std::priority_queue<int, std::vector<int>, std::greater<int>>;
  std::vector<int> passed;
  const int num_owners = owners.empty() ? 1 : std::max(0, *std::max_element(owners.begin(), owners.end())) + 1;
  std::vector<Ready> ready(static_cast<size_t>(num_owners));
  const auto settle = [&](int position) {
    if (runners[position] == Runner::kNone) {
      passed.push_back(position);
    } else {
      ready[runners[position] == Runner::kDelegate ? static_cast<size_t>(owners[position]) : 0].push(position);
    }
  };
  const auto release = [&](int position) {
    for (const int reader : readers[position]) {
      if (--pending[reader] == 0) settle(reader);
    }
  };
  const auto pass = [&] {
    while (!passed.empty()) {
      const int position = passed.back();
      passed.pop_back();
      release(position);
    }
  };
  for (size_t i = 0; i < count; ++i) {
    if (pending[i] == 0 && runners[i] != Runner::kFlow) settle(static_cast<int>(i));
  }
  pass();
  std::vector<NodeGroup> groups;
  const auto has_ready = [&] {
    return std::any_of(ready.begin(), ready.end(), [](const Ready& each) { return !each.empty(); });
  };
  for (size_t owner = 0; has_ready();) {
    NodeGroup& group = groups.emplace_back();
    group.owner = static_cast<int>(owner);
    while (!ready[owner].empty()) {
      const int position = ready[owner].top();
      ready[owner].pop();
      group.positions.push_back(position);
      release(position);
      pass();
    }
    for (size_t other = 0; other < ready.size(); ++other) {
      if (ready[other].size() > ready[owner].size()) owner = other;
    }
  }
  std::vector<int> flow;
  for (size_t i = 0; i < count; ++i) {
    if (runners[i] == Runner::kFlow) flow.push_back(static_cast<int>(i));
  }
  if (flow.empty()) return groups;
  if (groups.empty() || groups.back().owner != 0) groups.emplace_back();
  groups.back().positions.insert(groups.back().positions.end(), flow.begin(), flow.end());
  return groups;
}

absl::StatusOr<std::unique_ptr<Delegated>> DelegatePartitions(const Program& program, PlanState* state,
                                                              const Delegate& delegate, const Environment& environment,
                                                              absl::FunctionRef<absl::Status(int position)> prepare) {
  return Splitter(program, state, delegate, environment, prepare).Run();
}

}  // namespace permafrost
