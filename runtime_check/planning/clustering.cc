// Groups dynamic nodes by their conditions, and writes the program of the clusters.
#include "runtime_check/planning/clustering.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <queue>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "graph/analysis/node_flops.h"
#include "graph/base/status.h"
#include "runtime_check/kernel.h"
#include "runtime_check/planning/flow_conditions.h"

namespace permafrost {
namespace {

constexpr int kNone = -1;
// A cluster that contains a shape which depends on values contains another cluster behind it. The limit bounds the
// stack; nodes that are nested deeper run one at a time.
constexpr int kMostNested = 4;

// Returns whether delegates may compute with the type. Indices and conditions are not worth entering a delegate.
bool IsComputedWith(DType dtype) {
  switch (dtype) {
    case DType::kBool:
    case DType::kInt16:
    case DType::kInt32:
    case DType::kInt64:
    case DType::kUint16:
    case DType::kUint32:
    case DType::kUint64:
      return false;
    default:
      return true;
  }
}

class Clusterer {
 public:
  Clusterer(const Program& program, PlanState* state) : program_(program), state_(*state), conditions_(program) {}

  absl::StatusOr<std::shared_ptr<ClusteredProgram>> Run() {
    FindMembers();
    if (std::find(may_join_.begin(), may_join_.end(), true) == may_join_.end()) return nullptr;
    FindOrder();
    if (groups_.empty()) return nullptr;
    result_ = std::make_shared<ClusteredProgram>();
    PF_RETURN_IF_ERROR(Write());
    state_ = std::move(new_state_);
    return std::move(result_);
  }

 private:
  using Kind = NodeState::Kind;
  // An entry of the order of a frame: a node, a frame inside it, or a group.
  struct Entry {
    enum class Kind : uint8_t { kNode, kFrame, kGroup };
    Kind kind = Kind::kNode;
    int index = 0;
  };

  bool IsAlias(int position) const { return program_.nodes[position].kernel->is_alias(); }

  void FindMembers() {
    const NodeLiveness liveness = FindLive(program_, state_);
    const size_t count = program_.nodes.size();
    producer_.assign(program_.tensors.size(), kNone);
    may_join_.assign(count, false);
    is_kept_.assign(count, false);
    is_guarded_ = liveness.guarded;
    for (size_t i = 0; i < count; ++i) {
      const ProgramNode& node = program_.nodes[i];
      positions_.emplace(node.node, static_cast<int>(i));
      for (int j = 0; j < node.num_outputs; ++j) producer_[node.first_output + j] = static_cast<int>(i);
      is_kept_[i] = liveness.live[i] || liveness.guarded[i] || state_.nodes[i].kind == Kind::kFolded;
      may_join_[i] = liveness.live[i] && MayJoin(static_cast<int>(i));
    }
  }

  bool MayJoin(int position) const {
    const ProgramNode& node = program_.nodes[position];
    const NodeState& state = state_.nodes[position];
    if (state.kind != Kind::kDynamic || node.role != FlowRole::kNone || node.call >= 0 || !node.is_pure ||
        node.kernel->uses_state() || node.kernel->data() != nullptr || node.num_outputs == 0) {
      return false;
    }
    bool is_dynamic = false;
    const auto is_plain = [&](int tensor) {
      const DType dtype = program_.tensors[tensor].dtype;
      return dtype != DType::kString && !HoldsObjects(dtype);
    };
    for (const int tensor : program_.InputsOf(node)) {
      if (!is_plain(tensor)) return false;
      is_dynamic = is_dynamic || state_.tensors[tensor].kind == TensorState::Kind::kDynamic;
    }
    for (int i = 0; i < node.num_outputs; ++i) {
      if (!is_plain(node.first_output + i)) return false;
    }
    // A node whose input shapes are known is dynamic because it needs values, or because it may be dead.
    if (!is_dynamic && (state.prepared == nullptr || DependsOnValues(*state.prepared))) return false;
    // A node that waits for an effect stays in place.
    for (int i = node.node->num_data_inputs(); i < node.node->num_inputs(); ++i) {
      const auto found = positions_.find(node.node->input(i).node);
      if (found != positions_.end() && HasEffect(program_.nodes[found->second])) return false;
    }
    return true;
  }

  static bool DependsOnValues(const PreparedNode& prepared) {
    return prepared.needs_value_of >= 0 ||
           std::any_of(prepared.outputs.begin(), prepared.outputs.end(),
                       [](const OutputSpec& output) { return output.depends_on_values; });
  }

  static bool HasEffect(const ProgramNode& node) {
    return node.role == FlowRole::kNone && (!node.is_pure || (node.kernel != nullptr && node.kernel->uses_state()));
  }

  // --- Order --------------------------------------------------------------------------------------------------------
  // The blocks to order: nodes by position, then frames as blocks of their parents.

  int BlockOfFrame(int frame) const { return static_cast<int>(program_.nodes.size()) + frame; }
  int FrameOfBlock(int block) const { return block - static_cast<int>(program_.nodes.size()); }
  bool IsFrame(int block) const { return block >= static_cast<int>(program_.nodes.size()); }
  int PlaceOf(int block) const { return IsFrame(block) ? program_.frames[FrameOfBlock(block)].begin : block; }
  int DepthOf(int frame) const { return program_.has_control_flow() ? program_.frames[frame].depth : 0; }

  // Adds the dependency of a node on another one, between the blocks that contain them in their innermost common frame.
  void Depend(int position, int on) {
    int block = position, frame = program_.nodes[position].frame;
    int before = on, frame_before = program_.nodes[on].frame;
    while (frame != frame_before) {
      if (DepthOf(frame) >= DepthOf(frame_before)) {
        block = BlockOfFrame(frame);
        frame = program_.frames[frame].parent;
      } else {
        before = BlockOfFrame(frame_before);
        frame_before = program_.frames[frame_before].parent;
      }
    }
    if (block != before) Wait(block, before);
  }

  void Wait(int block, int before) {
    after_[before].push_back(block);
    ++pending_[block];
  }

  void FindOrder() {
    const size_t num_frames = std::max<size_t>(1, program_.frames.size());
    const size_t num_blocks = program_.nodes.size() + num_frames;
    after_.resize(num_blocks);
    pending_.assign(num_blocks, 0);
    group_of_.assign(program_.nodes.size(), kNone);
    std::vector<std::vector<int>> blocks(num_frames);  // By frame, in order of their places.
    std::vector<std::vector<int>> begins(program_.nodes.size() + 1);
    for (size_t i = 1; i < program_.frames.size(); ++i) {
      begins[program_.frames[i].begin].push_back(static_cast<int>(i));
    }
    for (size_t i = 0; i < program_.nodes.size(); ++i) {
      for (const int frame : begins[i]) blocks[program_.frames[frame].parent].push_back(BlockOfFrame(frame));
      const auto position = static_cast<int>(i);
      const ProgramNode& node = program_.nodes[i];
      blocks[node.frame].push_back(position);
      const auto depend = [&](int on) {
        // A value from the iteration before does not order the nodes of this one.
        if (on != kNone && on < position && program_.nodes[on].role != FlowRole::kNextIteration) Depend(position, on);
      };
      for (const int tensor : program_.InputsOf(node)) depend(producer_[tensor]);
      for (int j = node.node->num_data_inputs(); j < node.node->num_inputs(); ++j) {
        const auto found = positions_.find(node.node->input(j).node);
        if (found != positions_.end()) depend(found->second);
      }
    }
    for (const std::vector<int>& in_frame : blocks) {
      // Effects keep their order.
      int last = kNone;
      for (const int block : in_frame) {
        if (!IsFrame(block) && !HasEffect(program_.nodes[block]) && program_.nodes[block].call < 0) continue;
        if (last != kNone) Wait(block, last);
        last = block;
      }
    }
    orders_.resize(num_frames);
    for (size_t i = 0; i < num_frames; ++i) OrderFrame(blocks[i], &orders_[i]);
  }

  using Heap = std::priority_queue<int, std::vector<int>, std::greater<int>>;

  // Orders the blocks of a frame: by turns all blocks that are ready and in no cluster, and all that are ready for one
  // cluster.
  void OrderFrame(const std::vector<int>& blocks, std::vector<Entry>* order) {
    using Place = std::pair<int, int>;  // Place and block.
    std::priority_queue<Place, std::vector<Place>, std::greater<Place>> others;
    absl::flat_hash_map<int, Heap> members;  // By condition; none is empty.
    // Places and conditions of members, some of which are no longer in `members`.
    std::priority_queue<Place, std::vector<Place>, std::greater<Place>> turns;
    int turn = kNone;  // The condition of the cluster that is being formed.
    absl::flat_hash_set<int> group;
    const auto settle = [&](int block) {
      if (IsFrame(block) || !may_join_[block]) {
        others.push({PlaceOf(block), block});
        return;
      }
      // An alias joins the cluster of its input only, so that no result shares memory with an argument.
      const int condition = conditions_.OfNode(block);
      if (IsAlias(block) &&
          (condition != turn || !group.contains(producer_[program_.InputsOf(program_.nodes[block])[0]]))) {
        others.push({PlaceOf(block), block});
        return;
      }
      members[condition].push(block);
      turns.push({block, condition});
    };
    const auto release = [&](int block) {
      for (const int next : after_[block]) {
        if (--pending_[next] == 0) settle(next);
      }
    };
    for (const int block : blocks) {
      if (pending_[block] == 0) settle(block);
    }
    while (!others.empty() || !members.empty()) {
      while (!others.empty()) {
        const int block = others.top().second;
        others.pop();
        order->push_back(IsFrame(block) ? Entry{Entry::Kind::kFrame, FrameOfBlock(block)}
                                        : Entry{Entry::Kind::kNode, block});
        release(block);
      }
      if (members.empty()) break;
      const auto [place, condition] = turns.top();
      turns.pop();
      const auto first = members.find(condition);
      if (first == members.end() || first->second.top() != place) continue;
      turn = condition;
      std::vector<int> positions;
      while (!members[turn].empty()) {
        const int position = members[turn].top();
        members[turn].pop();
        positions.push_back(position);
        group.insert(position);
        release(position);
      }
      members.erase(turn);
      turn = kNone;
      group.clear();
      AddGroup(positions, order);
    }
  }

  void AddGroup(const std::vector<int>& positions, std::vector<Entry>* order) {
    if (!IsWorthwhile(positions) || !DecidesWhetherDead(positions)) {
      for (const int position : positions) order->push_back({Entry::Kind::kNode, position});
      return;
    }
    const auto number = static_cast<int>(groups_.size());
    for (const int position : positions) group_of_[position] = number;
    groups_.push_back(positions);
    order->push_back({Entry::Kind::kGroup, number});
  }

  bool IsWorthwhile(const std::vector<int>& positions) const {
    int num_steps = 0;
    bool has_product = false, computes = false;
    const auto unknown = [](int) { return Shape::UnknownRank(); };
    for (const int position : positions) {
      if (IsAlias(position)) continue;
      const ProgramNode& node = program_.nodes[position];
      ++num_steps;
      computes = computes || IsComputedWith(program_.tensors[node.first_output].dtype);
      std::optional<uint64_t> flops;
      has_product = has_product || CountNodeFlops(*node.node, unknown, Shape::UnknownRank(), &flops);
    }
    return computes && (num_steps >= 2 || has_product);
  }

  // Returns whether the inputs of the cluster are all alive where its nodes are. False if an input that decides is a
  // constant, which is no argument.
  bool DecidesWhetherDead(const std::vector<int>& positions) {
    const absl::flat_hash_set<int> inside(positions.begin(), positions.end());
    int condition = FlowConditions::kAlways;
    for (const int position : positions) {
      const ProgramNode& node = program_.nodes[position];
      for (const int tensor : program_.InputsOf(node)) {
        if (IsArgument(tensor, inside)) condition = conditions_.Both(condition, conditions_.OfTensor(tensor));
      }
      for (const int control : program_.ControlsOf(node)) {
        if (!inside.contains(control)) condition = conditions_.Both(condition, conditions_.OfNode(control));
      }
    }
    return condition == conditions_.OfNode(positions.front());
  }

  bool IsArgument(int tensor, const absl::flat_hash_set<int>& inside) const {
    return state_.tensors[tensor].kind != TensorState::Kind::kConstant && !inside.contains(producer_[tensor]);
  }

  // --- The new program ----------------------------------------------------------------------------------------------

  absl::Status Write() {
    Program& to = result_->program;
    to.function = program_.function;
    to.constants = program_.constants;
    to.calls = program_.calls;
    to.fetch_names = program_.fetch_names;
    to.cluster_depth = program_.cluster_depth;
    new_state_.num_folded = state_.num_folded;
    new_state_.variables = state_.variables;
    new_number_.assign(program_.tensors.size(), kNone);
    new_position_.assign(program_.nodes.size(), kNone);
    FindResults();
    // The programs of the clusters share the constants, so they are made before the tensors move.
    for (const std::vector<int>& group : groups_) MakeCluster(group);
    for (const ProgramFeed& feed : program_.feeds) {
      to.feeds.push_back(feed);
      to.feeds.back().tensor = AddTensor(feed.tensor);
    }
    std::vector<std::pair<int, size_t>> open = {{0, 0}};  // A frame, and the index of its next entry.
    while (!open.empty()) {
      const int frame = open.back().first;
      if (open.back().second == orders_[frame].size()) {
        open.pop_back();
        continue;
      }
      const Entry entry = orders_[frame][open.back().second++];
      if (entry.kind == Entry::Kind::kFrame) {
        open.push_back({entry.index, 0});
      } else if (entry.kind == Entry::Kind::kGroup) {
        PF_RETURN_IF_ERROR(AddCluster(entry.index));
      } else if (is_kept_[entry.index]) {
        AddNode(entry.index);
      }
    }
    Finish();
    return absl::OkStatus();
  }

  // Finds the tensors that nodes outside of their cluster read.
  void FindResults() {
    is_result_.assign(program_.tensors.size(), false);
    for (const int tensor : program_.fetches) is_result_[tensor] = true;
    for (size_t i = 0; i < program_.nodes.size(); ++i) {
      if (!is_kept_[i]) continue;
      for (const int tensor : program_.InputsOf(program_.nodes[i])) {
        const int producer = producer_[tensor];
        if (producer != kNone && (group_of_[i] == kNone || group_of_[producer] != group_of_[i])) {
          is_result_[tensor] = true;
        }
      }
    }
  }

  void MakeCluster(const std::vector<int>& group) {
    const absl::flat_hash_set<int> inside(group.begin(), group.end());
    Program made;
    made.function = program_.function;
    made.cluster_depth = program_.cluster_depth + 1;
    absl::flat_hash_map<int, int> numbers;
    const auto number = [&](int tensor) {
      const auto [found, is_new] = numbers.emplace(tensor, static_cast<int>(made.tensors.size()));
      if (is_new) made.tensors.push_back(program_.tensors[tensor]);
      return found->second;
    };
    std::vector<int>& arguments = arguments_.emplace_back();
    for (const int position : group) {
      for (const int tensor : program_.InputsOf(program_.nodes[position])) {
        if (!IsArgument(tensor, inside) || numbers.contains(tensor)) continue;
        arguments.push_back(tensor);
        made.feeds.push_back({program_.tensors[tensor].ref.ToString(), number(tensor), Shape::UnknownRank()});
      }
    }
    for (const int position : group) {
      for (const int tensor : program_.InputsOf(program_.nodes[position])) {
        if (state_.tensors[tensor].kind != TensorState::Kind::kConstant || numbers.contains(tensor)) continue;
        ProgramNode& constant = made.nodes.emplace_back();
        constant.node = program_.tensors[tensor].ref.node;
        constant.constant = static_cast<int>(made.constants.size());
        constant.first_output = number(tensor);
        constant.num_outputs = 1;
        if (!state_.tensors[tensor].is_of_model) made.tensors[constant.first_output].ref = {};
        made.constants.push_back(*state_.tensors[tensor].value);
        Hold(tensor);
      }
    }
    for (const int position : group) {
      ProgramNode node = program_.nodes[position];
      const absl::Span<const int> inputs = program_.InputsOf(node);
      node.first_input = static_cast<int>(made.inputs.size());
      for (const int tensor : inputs) made.inputs.push_back(number(tensor));
      const int first_output = node.first_output;
      node.first_output = static_cast<int>(made.tensors.size());
      for (int i = 0; i < node.num_outputs; ++i) {
        number(first_output + i);
        if (!is_result_[first_output + i]) continue;
        made.fetches.push_back(node.first_output + i);
        made.fetch_names.push_back(program_.tensors[first_output + i].ref.ToString());
      }
      node.frame = 0;
      node.may_be_dead = false;
      node.first_control = node.num_controls = 0;
      made.nodes.push_back(node);
    }
    result_->clusters.push_back(std::make_unique<Cluster>(std::move(made)));
  }

  // Keeps the memory of a folded constant counted while a cluster reads it.
  void Hold(int tensor) {
    TensorState& state = state_.tensors[tensor];
    if (state.value_bytes.bytes() > 0) result_->reservations.push_back(std::move(state.value_bytes));
  }

  int AddTensor(int tensor) {
    std::vector<ProgramTensor>& tensors = result_->program.tensors;
    const auto number = static_cast<int>(tensors.size());
    tensors.push_back(program_.tensors[tensor]);
    new_state_.tensors.push_back(std::move(state_.tensors[tensor]));
    // A fed output of a node has the number of the feed.
    if (new_number_[tensor] == kNone) new_number_[tensor] = number;
    return number;
  }

  void AddInput(int tensor) {
    std::vector<int>& inputs = result_->program.inputs;
    // The input of a Merge that comes from NextIteration is numbered later.
    if (new_number_[tensor] == kNone) late_inputs_.emplace_back(inputs.size(), tensor);
    inputs.push_back(new_number_[tensor]);
  }

  void AddNode(int position) {
    Program& to = result_->program;
    ProgramNode node = program_.nodes[position];
    const absl::Span<const int> inputs = program_.InputsOf(node);
    node.first_input = static_cast<int>(to.inputs.size());
    node.num_inputs = 0;
    // The inputs of a folded node matter only for whether it is dead.
    if (state_.nodes[position].kind != Kind::kFolded || is_guarded_[position]) {
      for (const int tensor : inputs) AddInput(tensor);
      node.num_inputs = static_cast<int>(inputs.size());
    }
    const int first_output = node.first_output;
    node.first_output = static_cast<int>(to.tensors.size());
    for (int i = 0; i < node.num_outputs; ++i) AddTensor(first_output + i);
    new_position_[position] = static_cast<int>(to.nodes.size());
    controls_.emplace_back(program_.ControlsOf(node).begin(), program_.ControlsOf(node).end());
    to.nodes.push_back(node);
    new_state_.nodes.push_back(std::move(state_.nodes[position]));
  }

  absl::Status AddCluster(int number) {
    Program& to = result_->program;
    const std::vector<int>& group = groups_[number];
    const auto name = [&](int position) { return program_.nodes[position].node->name(); };
    ProgramNode node;
    PF_ASSIGN_OR_RETURN(
        node.node, result_->nodes.AddNode(absl::StrCat(name(group.front()), "...", name(group.back()), "#", number),
                                          Op::Named("cluster")));
    node.kernel = &result_->kernel;
    node.call = static_cast<int>(to.calls.size());
    FunctionCall& call = to.calls.emplace_back();
    call.cluster = result_->clusters[number].get();
    node.first_input = static_cast<int>(to.inputs.size());
    for (const int tensor : arguments_[number]) AddInput(tensor);
    node.num_inputs = static_cast<int>(arguments_[number].size());
    node.first_output = static_cast<int>(to.tensors.size());
    std::vector<int>& controls = controls_.emplace_back();
    node.frame = program_.nodes[group.front()].frame;
    for (const int position : group) {
      const ProgramNode& member = program_.nodes[position];
      for (int i = 0; i < member.num_outputs; ++i) {
        if (!is_result_[member.first_output + i]) continue;
        AddTensor(member.first_output + i);
        ++node.num_outputs;
      }
      node.may_be_dead = node.may_be_dead || member.may_be_dead;
      for (const int control : program_.ControlsOf(member)) {
        if (group_of_[control] != number) controls.push_back(control);
      }
      new_position_[position] = static_cast<int>(to.nodes.size());
    }
    to.nodes.push_back(node);
    new_state_.nodes.emplace_back().kind = Kind::kDynamic;
    return absl::OkStatus();
  }

  void Finish() {
    Program& to = result_->program;
    for (const int tensor : program_.fetches) to.fetches.push_back(new_number_[tensor]);
    for (const auto& [index, tensor] : late_inputs_) to.inputs[index] = new_number_[tensor];
    for (size_t i = 0; i < to.nodes.size(); ++i) {
      to.nodes[i].first_control = static_cast<int>(to.controls.size());
      for (const int control : controls_[i]) {
        if (new_position_[control] != kNone) to.controls.push_back(new_position_[control]);
      }
      to.nodes[i].num_controls = static_cast<int>(to.controls.size()) - to.nodes[i].first_control;
    }
    if (!program_.has_control_flow()) return;
    to.frames = program_.frames;
    to.frames[0].end = static_cast<int>(to.nodes.size());
    for (size_t i = 1; i < to.frames.size(); ++i) {
      Frame& frame = to.frames[i];
      int begin = 0, end = 0;
      for (int position = frame.begin; position < frame.end; ++position) {
        const int now = new_position_[position];
        if (now == kNone) continue;
        begin = end == 0 ? now : std::min(begin, now);
        end = std::max(end, now + 1);
      }
      frame.begin = begin;
      frame.end = end;
    }
  }

  const Program& program_;
  PlanState& state_;
  FlowConditions conditions_;
  std::vector<int> producer_;                        // By tensor: a position; kNone for a feed.
  absl::flat_hash_map<const Node*, int> positions_;  // Of nodes that were visited.
  std::vector<bool> may_join_;                       // By node.
  std::vector<bool> is_kept_;                        // By node.
  std::vector<bool> is_guarded_;                     // By node.
  std::vector<std::vector<int>> after_;              // By block: the blocks that wait for it.
  std::vector<int> pending_;                         // By block: the number of blocks that it waits for.
  std::vector<std::vector<Entry>> orders_;           // By frame.
  std::vector<std::vector<int>> groups_;             // Positions, in order.
  std::vector<int> group_of_;                        // By node.
  std::vector<std::vector<int>> arguments_;          // By group: tensors.
  std::vector<bool> is_result_;                      // By tensor.
  PlanState new_state_;
  std::vector<int> new_number_;                      // By tensor.
  std::vector<int> new_position_;                    // By node; that of its cluster for a member.
  std::vector<std::vector<int>> controls_;           // By new node: the original positions.
  std::vector<std::pair<size_t, int>> late_inputs_;  // Positions in the new inputs, and the original tensors.
  std::shared_ptr<ClusteredProgram> result_;
};

}  // namespace

absl::StatusOr<std::shared_ptr<ClusteredProgram>> FormClusters(const Program& program, PlanState* state) {
  if (program.cluster_depth >= kMostNested) return nullptr;
  return Clusterer(program, state).Run();
}

}  // namespace permafrost
