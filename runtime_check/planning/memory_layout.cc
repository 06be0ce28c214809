// Memory layout, the second half of planning: chooses the nodes that run, places their values and builds the steps.
#include <algorithm>
#include <utility>

#include "graph/base/selection.h"
#include "graph/base/status.h"
#include "runtime_check/planning/buffer_placement.h"
#include "runtime_check/planning/planning_state.h"
#include "runtime_check/planning/step_cost.h"
#include "runtime_check/threads/thread_lane.h"

namespace permafrost {
namespace {

using TensorKind = TensorState::Kind;
using NodeKind = NodeState::Kind;

// Memory that several tensors share, through aliases or in-place computation.
struct Region {
  Buffer buffer;
  bool is_feed = false;     // The caller's memory.
  bool is_strings = false;  // Strings are not in the arena.
  bool is_bound = false;    // The memory of a fetch.
};

// Steps that run at the same time, and the positions of the first and the last.
struct StretchOfNodes {
  Stretch tasks;
  int first = 0;
  int last = 0;
  int64_t scratch_bytes = 0;  // The largest request of any step.
};

class Layout {
 public:
  Layout(const Program& program, PlanState* state, const Environment* environment)
      : program_(program), state_(*state), environment_(environment), plan_(std::make_unique<Plan>(program)) {}

  absl::StatusOr<std::unique_ptr<Plan>> Run() {
    NodeLiveness liveness = FindLive(program_, state_);
    live_ = std::move(liveness.live);
    guarded_ = std::move(liveness.guarded);
    FindLastUses();
    if (kHasThreads && environment_->num_lanes > 1 && !program_.has_control_flow()) ChooseStretches();
    PF_RETURN_IF_ERROR(AssignRegions());
    BindFetches();
    PF_RETURN_IF_ERROR(PlaceRegions());
    KeepConstants();
    SetValues();
    BuildSteps();
    ReleaseDynamic();
    if (selection::kHoldsControlFlow && program_.has_control_flow()) BuildFlow();
    return std::move(plan_);
  }

 private:
  static constexpr int kNone = -1;

  bool IsLive(size_t position) const { return live_[position]; }
  bool IsAlias(size_t position) const { return program_.nodes[position].kernel->is_alias(); }
  // Returns whether the node is Switch, Merge or the like, which has an instruction instead of a step.
  bool IsFlow(size_t position) const { return state_.nodes[position].kind == NodeKind::kFlow; }
  // Returns whether the node is static and has a step of its own.
  bool IsStaticStep(size_t position) const {
    return IsLive(position) && state_.nodes[position].kind == NodeKind::kStatic && !IsAlias(position) &&
           program_.nodes[position].kernel->compute() != nullptr;
  }

  // Returns whether other nodes may run at the same time: the node only reads its inputs and writes its outputs, at
  // known addresses. Partitions are excluded: they have no Prepare, and their delegate has its own threads.
  bool MayBeBeside(size_t position) const {
    const ProgramNode& node = program_.nodes[position];
    return IsStaticStep(position) && node.is_pure && !node.kernel->uses_state() && node.kernel->prepare() != nullptr;
  }

  // Returns the estimated time on one thread. REQUIRES: MayBeBeside(the node's position).
  double OneThreadNs(const ProgramNode& node) const {
    std::vector<TypedShape> inputs, outputs;
    const auto shape_of = [&](int tensor) {
      return TypedShape{program_.tensors[tensor].dtype, state_.tensors[tensor].shape};
    };
    for (const int tensor : program_.InputsOf(node)) inputs.push_back(shape_of(tensor));
    for (int i = 0; i < node.num_outputs; ++i) outputs.push_back(shape_of(node.first_output + i));
    return EstimateOnOneThread(*node.node, inputs, outputs);
  }

  // Chooses the stretches, with one task for each step, in the order of the steps.
  void ChooseStretches() {
    const int num_threads = environment_->threads->num_threads();
    std::vector<int> position_of;                            // By task.
    std::vector<int> maker(program_.tensors.size(), kNone);  // By tensor: the task that computes it.
    task_of_.assign(program_.nodes.size(), kNone);
    for (size_t i = 0; i < program_.nodes.size(); ++i) {
      if (!IsLive(i)) continue;
      const ProgramNode& node = program_.nodes[i];
      const absl::Span<const int> inputs = program_.InputsOf(node);
      const bool is_static = state_.nodes[i].kind == NodeKind::kStatic;
      if (is_static && !IsStaticStep(i)) {
        if (IsAlias(i)) maker[node.first_output] = maker[inputs[0]];
        continue;
      }
      task_of_[i] = static_cast<int>(tasks_.size());
      Task& task = tasks_.emplace_back();
      task.may_be_beside = MayBeBeside(i);
      for (const int tensor : inputs) {
        if (maker[tensor] != kNone) task.after.push_back(maker[tensor]);
      }
      if (task.may_be_beside) {
        task.beside_ns = OneThreadNs(node);
        task.alone_ns = EstimateOnThreads(task.beside_ns, num_threads);
      }
      for (int j = 0; j < node.num_outputs; ++j) maker[node.first_output + j] = task_of_[i];
      position_of.push_back(static_cast<int>(i));
    }
    for (const Stretch& tasks : FindStretches(tasks_, environment_->num_lanes)) {
      stretches_.push_back({tasks, position_of[tasks.begin], position_of[tasks.end - 1]});
    }
    stretch_at_.assign(program_.nodes.size() + 1, kNone);
    for (size_t i = 0; i < stretches_.size(); ++i) {
      std::fill(stretch_at_.begin() + stretches_[i].first, stretch_at_.begin() + stretches_[i].last + 1,
                static_cast<int>(i));
    }
  }

  // A compile-time constant in a build without threads, which then contains no code for stretches.
  bool HasStretches() const { return kHasThreads && !stretches_.empty(); }
  int StretchAt(int position) const { return HasStretches() ? stretch_at_[position] : kNone; }

  // Extends the lifetime of a buffer to the whole stretches that it touches, because the order inside a stretch is not
  // fixed.
  Buffer Widened(Buffer buffer) const {
    if (StretchAt(buffer.first) != kNone) buffer.first = stretches_[StretchAt(buffer.first)].first;
    if (StretchAt(buffer.last) != kNone) buffer.last = stretches_[StretchAt(buffer.last)].last;
    return buffer;
  }

  // Records that the step reads or writes the region. A step that overwrites it in place waits for all its earlier
  // users.
  void Use(int region, int position, bool overwrites) {
    if (StretchAt(position) == kNone || region == kNone) return;
    users_.resize(regions_.size());
    std::vector<int>& users = users_[region];
    const int task = task_of_[position];
    if (overwrites) {
      const Stretch& stretch = stretches_[StretchAt(position)].tasks;
      for (const int user : users) {
        if (user >= stretch.begin && user != task) tasks_[task].after.push_back(user);
      }
      users.clear();
    }
    if (users.empty() || users.back() != task) users.push_back(task);
  }

  void FindLastUses() {
    last_use_.assign(program_.tensors.size(), kNone);
    for (size_t i = 0; i < program_.nodes.size(); ++i) {
      const ProgramNode& node = program_.nodes[i];
      if (!IsLive(i)) continue;
      for (int j = 0; j < node.num_outputs; ++j) last_use_[node.first_output + j] = static_cast<int>(i);
      for (const int tensor : program_.InputsOf(node)) last_use_[tensor] = static_cast<int>(i);
    }
    for (const int tensor : program_.fetches) last_use_[tensor] = static_cast<int>(program_.nodes.size());
  }

  // Returns the size of the tensor. REQUIRES: the tensor is static.
  int64_t BytesOf(int tensor) const {
    return ValueBytes(program_.tensors[tensor].dtype, state_.tensors[tensor].shape).value_or(0);
  }

  int AddRegion(int tensor, int first) {
    Region region;
    region.buffer = {BytesOf(tensor), first, std::max(first, last_use_[tensor]), 0};
    region.is_strings = program_.tensors[tensor].dtype == DType::kString;
    regions_.push_back(region);
    return static_cast<int>(regions_.size()) - 1;
  }

  void Join(int tensor, int region) {
    region_of_[tensor] = region;
    if (region != kNone) regions_[region].buffer.last = std::max(regions_[region].buffer.last, last_use_[tensor]);
  }

  // Returns the region of an input whose memory output 0 may reuse, or kNone.
  int RegionInPlace(const ProgramNode& node, int position) const {
    const absl::Span<const int> inputs = program_.InputsOf(node);
    for (const int i : node.kernel->in_place()) {
      if (i >= node.num_inputs || state_.tensors[inputs[i]].kind != TensorKind::kStatic) continue;
      const int region = region_of_[inputs[i]];
      if (region == kNone) continue;
      const Region& candidate = regions_[region];
      if (candidate.is_feed || candidate.is_strings || candidate.buffer.last != position ||
          candidate.buffer.bytes != BytesOf(node.first_output)) {
        continue;
      }
      // The kernel may read another input in the same memory after it has written there.
      const auto readers =
          std::count_if(inputs.begin(), inputs.end(), [&](int tensor) { return region_of_[tensor] == region; });
      if (readers == 1) return region;
    }
    return kNone;
  }

  absl::Status AssignRegions() {
    region_of_.assign(program_.tensors.size(), kNone);
    for (const ProgramFeed& feed : program_.feeds) {
      region_of_[feed.tensor] = AddRegion(feed.tensor, 0);
      regions_.back().is_feed = true;
    }
    for (size_t i = 0; i < program_.nodes.size(); ++i) {
      if (!IsLive(i)) continue;
      const ProgramNode& node = program_.nodes[i];
      const auto position = static_cast<int>(i);
      if (IsFlow(i)) continue;
      int next = 0;
      if (IsAlias(i)) {
        Join(node.first_output, region_of_[program_.InputsOf(node)[0]]);
        next = 1;
      }
      if (state_.nodes[i].kind == NodeKind::kDynamic) continue;
      if (!IsAlias(i)) {
        for (const int tensor : program_.InputsOf(node)) Use(region_of_[tensor], position, false);
      }
      for (int j = next; j < node.num_outputs; ++j) {
        const int tensor = node.first_output + j;
        const int shared =
            j == 0 && program_.tensors[tensor].dtype != DType::kString ? RegionInPlace(node, position) : kNone;
        Join(tensor, shared != kNone ? shared : AddRegion(tensor, position));
        Use(region_of_[tensor], position, shared != kNone);
      }
    }
    return absl::OkStatus();
  }

  void BindFetches() {
    for (const int tensor : program_.fetches) {
      FetchBinding& fetch = plan_->fetches.emplace_back();
      TensorState& state = state_.tensors[tensor];
      if (state.kind == TensorKind::kConstant) {
        fetch.constant = state.value;
      } else if (state.kind == TensorKind::kDynamic) {
        fetch.is_dynamic = true;
      } else {
        Region& region = regions_[region_of_[tensor]];
        if (region.is_feed || region.is_strings || region.is_bound) continue;
        region.is_bound = true;
        region_fetch_.resize(regions_.size(), kNone);
        region_fetch_[region_of_[tensor]] = static_cast<int>(plan_->fetches.size()) - 1;
      }
    }
    region_fetch_.resize(regions_.size(), kNone);
  }

  absl::Status PlaceRegions() {
    PF_RETURN_IF_ERROR(ReserveStrings());
    absl::Status status = TryToPlace();
    if (!HasStretches() || !absl::IsResourceExhausted(status)) return status;
    stretches_.clear();  // Running one step at a time needs less memory.
    return TryToPlace();
  }

  // Strings are allocated apart from the arena, and count against the same limit. Their contents do not.
  absl::Status ReserveStrings() {
    int64_t bytes = 0;
    for (const Region& region : regions_) {
      if (!region.is_strings || region.is_feed) continue;
      if (__builtin_add_overflow(bytes, region.buffer.bytes, &bytes)) bytes = INT64_MAX;
    }
    PF_ASSIGN_OR_RETURN(Reservation reservation, Reservation::Take(environment_->budget, bytes, "memory for strings"));
    plan_->reservations.push_back(std::move(reservation));
    return absl::OkStatus();
  }

  absl::Status TryToPlace() {
    std::vector<Buffer> buffers;
    std::vector<int> buffer_of(regions_.size(), kNone);
    for (size_t i = 0; i < regions_.size(); ++i) {
      const Region& region = regions_[i];
      if (region.is_feed || region.is_strings || region.is_bound) continue;
      buffer_of[i] = static_cast<int>(buffers.size());
      buffers.push_back(Widened(region.buffer));
    }
    const size_t first_scratch = buffers.size();
    for (size_t i = 0; i < program_.nodes.size(); ++i) {
      if (!IsStaticStep(i)) continue;
      const int64_t bytes = state_.nodes[i].prepared->scratch_bytes;
      const auto position = static_cast<int>(i);
      if (StretchAt(position) != kNone) {
        int64_t& most = stretches_[StretchAt(position)].scratch_bytes;
        most = std::max(most, bytes);
      } else if (bytes > 0) {
        buffers.push_back({bytes, position, position, 0});
      }
    }
    const size_t first_of_lanes = buffers.size();
    if (HasStretches()) {
      for (const StretchOfNodes& stretch : stretches_) {
        const Buffer buffer = {stretch.scratch_bytes, stretch.first, stretch.last, 0};
        buffers.insert(buffers.end(), static_cast<size_t>(environment_->num_lanes), buffer);
      }
    }
    PF_ASSIGN_OR_RETURN(plan_->report.arena_bytes, PlaceBuffers(&buffers));
    PF_ASSIGN_OR_RETURN(Reservation reservation, Reservation::Take(environment_->budget, plan_->report.arena_bytes,
                                                                   "the memory of the activations"));
    plan_->reservations.push_back(std::move(reservation));
    const Shape whole({Tensor::InHugePages(plan_->report.arena_bytes)});
    PF_ASSIGN_OR_RETURN(plan_->arena, Tensor::Allocate(DType::kInt8, whole, &arena_));
    for (size_t i = 0; i < regions_.size(); ++i) {
      if (buffer_of[i] != kNone) regions_[i].buffer.offset = buffers[buffer_of[i]].offset;
    }
    for (size_t i = first_scratch; i < first_of_lanes; ++i) scratch_offsets_.push_back(buffers[i].offset);
    if (HasStretches()) PlanStretches(absl::MakeConstSpan(buffers).subspan(first_of_lanes));
    return absl::OkStatus();
  }

  // Adds the stretches to the plan. `buffers` are the scratch memory of the lanes, stretch by stretch.
  void PlanStretches(absl::Span<const Buffer> buffers) {
    auto next = buffers.begin();
    for (const StretchOfNodes& stretch : stretches_) {
      PlannedStretch& planned = plan_->stretches.emplace_back();
      planned.steps = stretch.tasks;
      planned.runner.reset(new StretchRunner(tasks_, stretch.tasks));
      for (int lane = 0; lane < environment_->num_lanes; ++lane) {
        planned.scratch.push_back(arena_ + (next++)->offset);
      }
      plan_->report.num_beside += stretch.tasks.end - stretch.tasks.begin;
    }
    plan_->report.num_stretches = static_cast<int64_t>(stretches_.size());
  }

  // Keeps the constants that steps read; nodes without readers do not keep theirs.
  void KeepConstants() {
    for (TensorState& tensor : state_.tensors) tensor.is_kept = false;
    for (size_t i = 0; i < program_.nodes.size(); ++i) {
      if (!IsLive(i) || (state_.nodes[i].kind == NodeKind::kStatic && IsAlias(i))) continue;
      const absl::Span<const int> inputs = program_.InputsOf(program_.nodes[i]);
      for (size_t j = 0; j < inputs.size(); ++j) {
        const bool released = state_.nodes[i].kind == NodeKind::kStatic && state_.nodes[i].prepared->released[j];
        if (!released) state_.tensors[inputs[j]].is_kept = true;
      }
    }
    constant_of_.assign(program_.tensors.size(), kNone);
    for (size_t i = 0; i < state_.tensors.size(); ++i) {
      TensorState& tensor = state_.tensors[i];
      if (tensor.kind != TensorKind::kConstant) continue;
      if (tensor.is_kept && tensor.aligned != nullptr) {
        constant_of_[i] = static_cast<int>(plan_->constants.size());
        plan_->constants.push_back(tensor.aligned);
        plan_->report.constant_bytes += tensor.value_bytes.bytes() + tensor.aligned_bytes.bytes();
        plan_->reservations.push_back(std::move(tensor.value_bytes));
        plan_->reservations.push_back(std::move(tensor.aligned_bytes));
      } else if (tensor.is_fetched) {
        plan_->report.constant_bytes += tensor.value_bytes.bytes();
        plan_->reservations.push_back(std::move(tensor.value_bytes));
      }
    }
  }

  void SetValues() {
    plan_->variables = state_.variables;
    plan_->values.resize(program_.tensors.size());
    plan_->feed_values.resize(program_.feeds.size());
    for (size_t i = 0; i < program_.tensors.size(); ++i) {
      const TensorState& tensor = state_.tensors[i];
      Value& value = plan_->values[i];
      value.dtype = program_.tensors[i].dtype;
      if (tensor.kind == TensorKind::kDynamic) continue;
      value.shape = tensor.shape;
      if (tensor.kind == TensorKind::kConstant) {
        if (constant_of_[i] != kNone) value = ViewOf(*plan_->constants[constant_of_[i]]);
        continue;
      }
      if (kHoldsVariables && tensor.objects != nullptr) {
        value.objects = tensor.objects;
        continue;
      }
      const int region_number = region_of_[i];
      if (region_number == kNone) continue;  // Output of a node that is not live.
      const Region& region = regions_[region_number];
      if (!region.is_feed && !region.is_strings) value.bytes = region.buffer.bytes;
      if (region.is_feed) {
        plan_->feed_values[region_number].push_back(static_cast<int>(i));  // The regions of the feeds come first.
      } else if (region.is_bound) {
        plan_->fetches[region_fetch_[region_number]].bound_values.push_back(static_cast<int>(i));
      } else if (region.is_strings) {
        value.strings = StringsOf(region_number, tensor.shape);
      } else {
        value.data = arena_ + region.buffer.offset;
      }
    }
  }

  std::vector<std::string>* StringsOf(int region, const Shape& shape) {
    region_strings_.resize(regions_.size(), nullptr);
    if (region_strings_[region] == nullptr) {
      const auto count = static_cast<size_t>(shape.num_elements());
      plan_->strings.push_back(std::make_unique<std::vector<std::string>>(count));
      region_strings_[region] = plan_->strings.back().get();
    }
    return region_strings_[region];
  }

  void BuildSteps() {
    size_t num_pointers = 0;
    for (const ProgramNode& node : program_.nodes) num_pointers += static_cast<size_t>(node.num_inputs);
    plan_->step_inputs.reserve(num_pointers);  // Reserved because the steps point into it.
    dynamic_at_.assign(program_.nodes.size(), nullptr);
    step_at_.assign(program_.nodes.size(), kNone);
    size_t next_scratch = 0;
    for (size_t i = 0; i < program_.nodes.size(); ++i) {
      if (!IsLive(i) || IsFlow(i)) continue;
      const ProgramNode& node = program_.nodes[i];
      NodeState& state = state_.nodes[i];
      const bool is_static = state.kind == NodeKind::kStatic;
      if (is_static && !IsStaticStep(i)) continue;
      const size_t first_pointer = plan_->step_inputs.size();
      for (const int tensor : program_.InputsOf(node)) plan_->step_inputs.push_back(&plan_->values[tensor]);
      const absl::Span<const Value* const> inputs =
          absl::MakeConstSpan(plan_->step_inputs.data() + first_pointer, static_cast<size_t>(node.num_inputs));
      char* scratch = nullptr;
      const KernelState* kernel_state = nullptr;
      if (state.prepared != nullptr && IsOfCustomKernel(*node.kernel, *state.prepared)) {
        plan_->report.custom.push_back(
            {std::string(node.node->name()), std::string(node.node->op().name()), node.kernel->formula(), ""});
      }
      if (is_static) {
        const int stretch = StretchAt(static_cast<int>(i));
        if (stretch != kNone) {
          scratch = plan_->stretches[stretch].scratch[0];
        } else if (state.prepared->scratch_bytes > 0) {
          scratch = arena_ + scratch_offsets_[next_scratch++];
        }
        kernel_state = state.prepared->state.get();
        if (kernel_state != nullptr) plan_->states.push_back(std::move(state.prepared->state));
      } else {
        dynamic_at_[i] = AddDynamic(node, &state);
      }
      step_at_[i] = static_cast<int>(plan_->steps.size());
      plan_->steps.push_back({is_static ? state.prepared->compute : nullptr,
                              NodeContext(node.node, inputs, plan_->values.data() + node.first_output, node.num_outputs,
                                          scratch, kernel_state, environment_),
                              dynamic_at_[i],
                              {}});
    }
    plan_->report.num_steps = static_cast<int64_t>(plan_->steps.size());
    plan_->report.num_dynamic = static_cast<int64_t>(plan_->dynamic_nodes.size());
    plan_->report.num_folded = state_.num_folded;
    plan_->report.num_lanes = environment_->num_lanes;
    plan_->report.delegation = std::move(state_.delegation);
  }

  DynamicNode* AddDynamic(const ProgramNode& node, NodeState* state) {
    auto dynamic = std::make_unique<DynamicNode>();
    dynamic->node = &node;
    for (const int tensor : program_.InputsOf(node)) {
      const int constant = constant_of_[tensor];
      dynamic->constants.push_back(constant == kNone ? nullptr : plan_->constants[constant].get());
      dynamic->inputs.push_back({program_.tensors[tensor].dtype, state_.tensors[tensor].shape});
    }
    dynamic->granted.resize(dynamic->inputs.size());
    if (state->prepared != nullptr) {
      dynamic->prepared = std::move(*state->prepared);
      dynamic->is_prepared = true;
    }
    plan_->dynamic_nodes.push_back(std::move(dynamic));
    return plan_->dynamic_nodes.back().get();
  }

  // Schedules the release of dynamic tensors. Every reader of a dynamic tensor is dynamic itself, or has an
  // instruction.
  void ReleaseDynamic() {
    if (plan_->dynamic_nodes.empty() && !program_.has_control_flow()) return;
    plan_->held.resize(program_.tensors.size());
    for (const int region : region_of_) {
      plan_->is_overwritten.push_back(region != kNone && !regions_[region].is_feed);
    }
    release_at_.resize(program_.nodes.size());
    for (size_t i = 0; i < program_.tensors.size(); ++i) {
      if (state_.tensors[i].kind != TensorKind::kDynamic || last_use_[i] == kNone) continue;
      const auto last = static_cast<size_t>(last_use_[i]);
      if (last >= release_at_.size()) continue;  // Fetched tensors are not released.
      release_at_[last].push_back(static_cast<int>(i));
    }
    if (program_.has_control_flow()) return;  // The instructions release them.
    for (size_t i = 0; i < release_at_.size(); ++i) {
      if (!release_at_[i].empty()) dynamic_at_[i]->release_after = std::move(release_at_[i]);
    }
  }

  void BuildFlow() {
    for (size_t i = 0; i < program_.nodes.size(); ++i) plan_->report.num_steps += IsLive(i) && IsFlow(i) ? 1 : 0;
    FlowFacts facts = {std::move(live_), std::move(guarded_), std::move(step_at_), std::move(release_at_)};
    plan_->flow = BuildFlowInstructions(program_, std::move(facts));
    FlowInstructions& flow = *plan_->flow;
    for (size_t i = 0; i < program_.tensors.size(); ++i) {
      flow.is_constant.push_back(state_.tensors[i].kind == TensorKind::kConstant);
    }
  }

  const Program& program_;
  PlanState& state_;
  const Environment* environment_;
  std::unique_ptr<Plan> plan_;
  std::vector<bool> live_;      // By node.
  std::vector<bool> guarded_;   // By node: folded, and its dead state is needed.
  std::vector<int> last_use_;   // By tensor: a position; kNone if the producer does not run.
  std::vector<int> region_of_;  // By tensor.
  std::vector<Region> regions_;
  std::vector<int> region_fetch_;
  std::vector<std::vector<std::string>*> region_strings_;
  std::vector<int> constant_of_;  // By tensor: index into Plan::constants.
  std::vector<int64_t> scratch_offsets_;
  // Filled only if nodes run at the same time.
  std::vector<Task> tasks_;   // One for each step.
  std::vector<int> task_of_;  // By node.
  std::vector<StretchOfNodes> stretches_;
  std::vector<int> stretch_at_;               // By position.
  std::vector<std::vector<int>> users_;       // By region: the tasks of stretches that use it.
  std::vector<DynamicNode*> dynamic_at_;      // By node; null unless it is dynamic.
  std::vector<int> step_at_;                  // By node: index into Plan::steps.
  std::vector<std::vector<int>> release_at_;  // By node: the dynamic tensors whose last reader it is.
  char* arena_ = nullptr;
};

}  // namespace

NodeLiveness FindLive(const Program& program, const PlanState& state) {
  NodeLiveness result;
  result.live.assign(program.nodes.size(), false);
  result.guarded.assign(program.nodes.size(), false);
  std::vector<bool> read(program.tensors.size(), false);
  std::vector<bool> awaited(program.nodes.size(), false);
  for (const int tensor : program.fetches) read[tensor] = true;
  for (size_t i = program.nodes.size(); i-- > 0;) {
    const ProgramNode& node = program.nodes[i];
    const bool is_folded = state.nodes[i].kind == NodeKind::kFolded;
    if (is_folded && !node.may_be_dead) continue;
    bool live = awaited[i] || (!node.is_pure && !is_folded);
    for (int j = 0; j < node.num_outputs; ++j) live = live || read[node.first_output + j];
    if (!live) continue;
    (is_folded ? result.guarded : result.live)[i] = true;
    for (const int tensor : program.InputsOf(node)) read[tensor] = true;
    for (const int control : program.ControlsOf(node)) awaited[control] = true;
  }
  return result;
}

absl::StatusOr<std::unique_ptr<Plan>> LayOut(const Program& program, PlanState state, const Environment* environment) {
  return Layout(program, &state, environment).Run();
}

}  // namespace permafrost
