// Implements Session: checks feeds, plans when shapes change, and binds the caller's memory to the plan.
#include "runtime_check/session.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <optional>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"
#include "graph/base/selection.h"
#include "graph/base/status.h"
#include "runtime_check/delegate.h"
#include "runtime_check/execution/executor.h"
#include "runtime_check/kernel.h"
#include "runtime_check/planning/cluster.h"
#include "runtime_check/planning/plan.h"
#include "runtime_check/planning/plan_cache.h"
#include "runtime_check/planning/prepared_node.h"
#include "runtime_check/profiling/profiler.h"
#include "runtime_check/program/functions.h"
#include "runtime_check/program/fused_loop.h"
#include "runtime_check/program/initializers.h"
#include "runtime_check/program/program.h"
#include "runtime_check/resources/memory_budget.h"
#include "runtime_check/resources/run_log.h"
#include "runtime_check/resources/runtime_object.h"
#include "runtime_check/threads/cancellation.h"
#include "runtime_check/threads/processors.h"
#include "runtime_check/threads/thread_lane.h"
#include "runtime_check/threads/thread_pool.h"

namespace permafrost {
namespace {

bool IsAligned(const void* memory) { return reinterpret_cast<uintptr_t>(memory) % 64 == 0; }

}  // namespace

// State of a session. Contains pointers into itself, so it is neither copied nor moved.
class Session::Impl {
 public:
  explicit Impl(SessionOptions options);
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  // Builds the program and fills the tables and variables that it reads. Called once, before all other functions.
  absl::Status Build(const Graph& graph, absl::Span<const std::string> feeds, absl::Span<const std::string> fetches);

  // These implement the functions of Session with the same names.
  std::vector<TensorSpec> Inputs() const;
  absl::StatusOr<std::vector<TensorSpec>> Plan(absl::Span<const Shape> input_shapes);
  absl::StatusOr<std::vector<Tensor>> Run(absl::Span<const Tensor> feeds);
  absl::Status RunInto(absl::Span<const Tensor> feeds, absl::Span<const absl::Span<char>> outputs);
  const PlanReport& report() const { return entry_ == nullptr ? no_report_ : entry_->plan->report; }
  PlanReport FullReport() const;
  int num_threads() const { return threads_.num_threads(); }

 private:
  // Compiles the functions that the program and the initialisers of its resources call, then runs the initialisers,
  // which fill the tables and variables in `resources_`.
  absl::Status Initialize(const Graph& graph, const ProgramContext& context);
  // Returns Unimplemented for feeds and fetches of resources and variants.
  absl::Status CheckInterface() const;
  absl::Status CheckFeed(size_t i, DType dtype, const Shape& shape) const;
  absl::Status PlanFor(std::vector<Shape> shapes);
  permafrost::Plan& plan() const { return *entry_->plan; }
  // Returns whether the current plan was made for such feeds, which are aligned.
  bool FitPlan(absl::Span<const Tensor> feeds) const;
  // Checks the feeds, makes the plan for them if there is none, and returns them aligned: the feeds themselves, or
  // *copies.
  absl::StatusOr<absl::Span<const Tensor>> Accept(absl::Span<const Tensor> feeds, std::vector<Tensor>* copies);
  // These implement Run and RunInto with the current plan.
  absl::StatusOr<std::vector<Tensor>> RunPlan(absl::Span<const Tensor> aligned);
  absl::Status RunPlanInto(absl::Span<const Tensor> aligned, absl::Span<const absl::Span<char>> outputs);
  // Returns, after a failed run, whether another run may succeed because the plan was replaced or memory was freed.
  // `num_refused` is the number of requests that the budget had refused before the run.
  bool MayRunAgain(int64_t num_refused);
  absl::Status Execute(absl::Span<const Tensor> feeds, absl::Span<char* const> memory);
  absl::StatusOr<Tensor> Fetched(size_t i) const;
  // InvalidArgument unless all fetches have a value after a run.
  absl::Status CheckAlive() const;

  SessionOptions options_;
  MemoryBudget budget_;
  ThreadPool threads_;
  std::unique_ptr<ThreadPool> own_lanes_;  // Null unless more nodes may run at the same time than threads_ has threads.
  ResourceStore resources_;
  RunLog log_;
  int call_depth_ = 0;
  Environment environment_;                   // Points to the members above.
  std::unique_ptr<FunctionTable> functions_;  // Null when the graph has no library.
  Program program_;
  PlanCache plans_;
  PlanCache::Entry* entry_ = nullptr;  // The current plan; null where there is none.
  std::vector<Value> fed_;             // The feeds of the current run. A member, so that its memory is reused.
  PlanReport no_report_;
};

Session::Impl::Impl(SessionOptions options)
    : options_(std::move(options)),
      budget_(options_.memory_limit),
      threads_(options_.num_threads),
      log_(options_.print),
      plans_(static_cast<size_t>(std::max(1, options_.most_plans))) {
  if (options_.kernel_lookup == nullptr) options_.kernel_lookup = &FindKernel;
  environment_.threads = &threads_;
  environment_.budget = &budget_;
  environment_.resources = &resources_;
  environment_.limits = &options_.loop_limits;
  environment_.call_depth = &call_depth_;
  environment_.log = &log_;
  environment_.delegate = options_.delegate.get();
  environment_.on_piece = options_.on_piece == nullptr ? nullptr : &options_.on_piece;
  environment_.profiler = options_.profiler;
  environment_.packed = options_.packed.get();
  environment_.fuse_loops = options_.fuse_loops;
  const int num_lanes = std::min(options_.inter_op_threads, ThreadPool::kMostThreads);
  if (!kHasThreads || num_lanes < 2) return;
  if (num_lanes > threads_.num_threads()) own_lanes_ = std::make_unique<ThreadPool>(num_lanes);
  environment_.lanes = own_lanes_ == nullptr ? &threads_ : own_lanes_.get();
  environment_.num_lanes = std::min(num_lanes, environment_.lanes->num_threads());
}

absl::Status Session::Impl::Build(const Graph& graph, absl::Span<const std::string> feeds,
                                  absl::Span<const std::string> fetches) {
  if (!graph.library().empty()) {
    if (!selection::kHoldsFunctions) {
      return absl::UnimplementedError(absl::StrCat("the graph has functions", selection::kHint));
    }
    PF_ASSIGN_OR_RETURN(functions_, FunctionTable::For(graph));
  }
  const ProgramContext context = {options_.kernel_lookup, &budget_, functions_.get(), options_.region_reader};
  const CancellationScope scope(&options_.loop_limits.is_cancelled);
  PF_ASSIGN_OR_RETURN(program_, BuildProgram(graph, {feeds, fetches, options_.targets}, context));
  PF_RETURN_IF_ERROR(Initialize(graph, context));
  return CheckInterface();
}

std::vector<TensorSpec> Session::Impl::Inputs() const {
  std::vector<TensorSpec> inputs;
  for (const ProgramFeed& feed : program_.feeds) {
    inputs.push_back({feed.name, program_.tensors[feed.tensor].dtype, feed.declared});
  }
  return inputs;
}

PlanReport Session::Impl::FullReport() const {
  PlanReport full = report();
  if (selection::kHoldsDelegates && entry_ != nullptr && plan().clustered != nullptr) {
    plan().clustered->AddReports("", &full);
  }
  AddLoopReports(program_, "", &full);
  if (selection::kHoldsFunctions && functions_ != nullptr) functions_->AddReports(&full);
  return full;
}

absl::Status Session::Impl::Initialize(const Graph& graph, const ProgramContext& context) {
  const std::vector<std::string> initializers = InitializersOf(graph, program_);
  Program program;
  if (kHoldsResources && !initializers.empty()) {
    absl::StatusOr<Program> built = BuildProgram(graph, {{}, {}, initializers}, context);
    PF_RETURN_IF_ERROR(Annotate(built.status(), "the initialisers of tables and variables"));
    program = *std::move(built);
  }
  if (selection::kHoldsFunctions && functions_ != nullptr) PF_RETURN_IF_ERROR(functions_->CompileAll(context));
  if (!kHoldsResources || initializers.empty()) return absl::OkStatus();
  PF_ASSIGN_OR_RETURN(const std::unique_ptr<permafrost::Plan> plan,
                      BuildPlan(program, {}, &environment_, Delegation::kNone));
  return Annotate(ExecutePlan(plan.get(), {}, {}, &environment_, nullptr), "the initialisers of tables and variables");
}

absl::Status Session::Impl::CheckInterface() const {
  const auto check = [&](absl::string_view role, const std::string& name, int tensor) -> absl::Status {
    const DType dtype = program_.tensors[tensor].dtype;
    if (!HoldsObjects(dtype)) return absl::OkStatus();
    return absl::UnimplementedError(
        absl::StrCat(role, " '", name, "' is of type ", DTypeName(dtype), ", whose values live in the session alone"));
  };
  for (const ProgramFeed& feed : program_.feeds) PF_RETURN_IF_ERROR(check("input", feed.name, feed.tensor));
  for (size_t i = 0; i < program_.fetches.size(); ++i) {
    PF_RETURN_IF_ERROR(check("output", program_.fetch_names[i], program_.fetches[i]));
  }
  return absl::OkStatus();
}

absl::Status Session::Impl::CheckFeed(size_t i, DType dtype, const Shape& shape) const {
  const ProgramFeed& feed = program_.feeds[i];
  const DType expected = program_.tensors[feed.tensor].dtype;
  if (expected != DType::kInvalid && dtype != expected) {
    return absl::InvalidArgumentError(
        absl::StrCat("input '", feed.name, "': found type ", DTypeName(dtype), ", expected ", DTypeName(expected)));
  }
  if (!shape.IsFullyKnown() || !feed.declared.IsCompatibleWith(shape)) {
    return absl::InvalidArgumentError(absl::StrCat("input '", feed.name, "': found shape ", shape.ToString(),
                                                   ", expected ", feed.declared.ToString()));
  }
  return absl::OkStatus();
}

absl::Status Session::Impl::PlanFor(std::vector<Shape> shapes) {
  if (entry_ != nullptr && shapes == entry_->shapes && plan().IsCurrent()) return absl::OkStatus();
  const CancellationScope scope(&options_.loop_limits.is_cancelled);
  entry_ = nullptr;
  PF_ASSIGN_OR_RETURN(entry_, plans_.Acquire(program_, std::move(shapes), environment_));
  return absl::OkStatus();
}

absl::StatusOr<std::vector<TensorSpec>> Session::Impl::Plan(absl::Span<const Shape> input_shapes) {
  ProcessorBinding binding;
  PF_RETURN_IF_ERROR(binding.Bind(options_.processors));
  if (input_shapes.size() != program_.feeds.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("found ", input_shapes.size(), " input shapes, expected ", program_.feeds.size()));
  }
  for (size_t i = 0; i < input_shapes.size(); ++i) {
    PF_RETURN_IF_ERROR(CheckFeed(i, program_.tensors[program_.feeds[i].tensor].dtype, input_shapes[i]));
  }
  PF_RETURN_IF_ERROR(PlanFor({input_shapes.begin(), input_shapes.end()}));
  std::vector<TensorSpec> outputs;
  for (size_t i = 0; i < program_.fetches.size(); ++i) {
    const Value& value = plan().values[plan().program().fetches[i]];
    outputs.push_back(
        {program_.fetch_names[i], value.dtype, plan().fetches[i].is_dynamic ? Shape::UnknownRank() : value.shape});
  }
  return outputs;
}

bool Session::Impl::FitPlan(absl::Span<const Tensor> feeds) const {
  if (entry_ == nullptr || feeds.size() != entry_->shapes.size() || !plan().IsCurrent()) return false;
  for (size_t i = 0; i < feeds.size(); ++i) {
    const DType expected = program_.tensors[program_.feeds[i].tensor].dtype;
    if (feeds[i].dtype() != expected || expected == DType::kString || !feeds[i].IsAligned() ||
        feeds[i].shape() != entry_->shapes[i]) {
      return false;
    }
  }
  return true;
}

absl::StatusOr<absl::Span<const Tensor>> Session::Impl::Accept(absl::Span<const Tensor> feeds,
                                                               std::vector<Tensor>* copies) {
  if (FitPlan(feeds)) return feeds;
  if (feeds.size() != program_.feeds.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("found ", feeds.size(), " inputs, expected ", program_.feeds.size()));
  }
  std::vector<Shape> shapes;
  for (size_t i = 0; i < feeds.size(); ++i) {
    PF_RETURN_IF_ERROR(CheckFeed(i, feeds[i].dtype(), feeds[i].shape()));
    PF_ASSIGN_OR_RETURN(copies->emplace_back(), feeds[i].Aligned());
    shapes.push_back(feeds[i].shape());
  }
  PF_RETURN_IF_ERROR(PlanFor(std::move(shapes)));
  return *copies;
}

absl::Status Session::Impl::Execute(absl::Span<const Tensor> feeds, absl::Span<char* const> memory) {
  const CancellationScope scope(&options_.loop_limits.is_cancelled);
  fed_.clear();
  for (const Tensor& feed : feeds) fed_.push_back(ViewOf(feed));
  Profiler* profiler = options_.profiler != nullptr && options_.profiler->is_recording() ? options_.profiler : nullptr;
  if (profiler != nullptr) profiler->BeginRun();
  PF_RETURN_IF_ERROR(ExecutePlan(entry_->plan.get(), fed_, memory, &environment_, options_.on_node));
  if (profiler != nullptr) profiler->EndRun();
  return CheckAlive();
}

absl::Status Session::Impl::CheckAlive() const {
  if (plan().flow == nullptr) return absl::OkStatus();
  for (size_t i = 0; i < program_.fetches.size(); ++i) {
    if (!plan().flow->dead_tensors[plan().program().fetches[i]]) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("output '", program_.fetch_names[i], "' has no value: it lies on a branch that was not taken"));
  }
  return absl::OkStatus();
}

absl::StatusOr<Tensor> Session::Impl::Fetched(size_t i) const {
  const FetchBinding& fetch = plan().fetches[i];
  if (fetch.constant.has_value()) return *fetch.constant;
  const int tensor = plan().program().fetches[i];
  if (fetch.is_dynamic && plan().held[tensor] != nullptr && plan().held[tensor]->tensor.dtype() != DType::kInvalid) {
    return TensorOver(plan().values[tensor], plan().held[tensor]->tensor.owner());
  }
  return CopyOf(plan().values[tensor]);
}

bool Session::Impl::MayRunAgain(int64_t num_refused) {
  if (!plan().HasFailed()) return budget_.num_refused() > num_refused && plans_.DropOthers(entry_) > 0;
  const bool has_plan = plans_.FallBack(program_, entry_, environment_);
  if (!has_plan) entry_ = nullptr;
  return has_plan;
}

absl::StatusOr<std::vector<Tensor>> Session::Impl::Run(absl::Span<const Tensor> feeds) {
  ProcessorBinding binding;
  PF_RETURN_IF_ERROR(binding.Bind(options_.processors));
  std::vector<Tensor> copies;
  PF_ASSIGN_OR_RETURN(const absl::Span<const Tensor> aligned, Accept(feeds, &copies));
  while (true) {
    const int64_t num_refused = budget_.num_refused();
    absl::StatusOr<std::vector<Tensor>> outputs = RunPlan(aligned);
    if (outputs.ok() || !MayRunAgain(num_refused)) return outputs;
  }
}

absl::StatusOr<std::vector<Tensor>> Session::Impl::RunPlan(absl::Span<const Tensor> aligned) {
  const size_t count = program_.fetches.size();
  std::vector<Tensor> outputs(count);
  std::vector<char*> memory(count, nullptr);
  // The outputs count against the budget during the run, and belong to the caller after it.
  struct CountedBytes {
    ~CountedBytes() { budget->GiveBack(bytes); }
    MemoryBudget* budget;
    int64_t bytes = 0;
  } counted{&budget_};
  for (size_t i = 0; i < count; ++i) {
    if (plan().fetches[i].bound_values.empty()) continue;
    const Value& value = plan().values[plan().program().fetches[i]];
    PF_ASSIGN_OR_RETURN(const int64_t bytes, ValueBytes(value.dtype, value.shape));
    if (const absl::Status status = budget_.Take(bytes, "its memory"); !status.ok()) {
      return Annotate(status, absl::StrCat("output '", program_.fetch_names[i], "'"));
    }
    counted.bytes += bytes;
    PF_ASSIGN_OR_RETURN(outputs[i], Tensor::Allocate(value.dtype, value.shape, &memory[i]));
  }
  PF_RETURN_IF_ERROR(Execute(aligned, memory));
  for (size_t i = 0; i < count; ++i) {
    if (memory[i] != nullptr) continue;
    PF_ASSIGN_OR_RETURN(outputs[i], Fetched(i));
  }
  return outputs;
}

absl::Status Session::Impl::RunInto(absl::Span<const Tensor> feeds, absl::Span<const absl::Span<char>> outputs) {
  ProcessorBinding binding;
  PF_RETURN_IF_ERROR(binding.Bind(options_.processors));
  std::vector<Tensor> copies;
  PF_ASSIGN_OR_RETURN(const absl::Span<const Tensor> aligned, Accept(feeds, &copies));
  if (outputs.size() != program_.fetches.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("found memory for ", outputs.size(), " outputs, expected ", program_.fetches.size()));
  }
  while (true) {
    const int64_t num_refused = budget_.num_refused();
    const absl::Status status = RunPlanInto(aligned, outputs);
    if (status.ok() || !MayRunAgain(num_refused)) return status;
  }
}

absl::Status Session::Impl::RunPlanInto(absl::Span<const Tensor> aligned, absl::Span<const absl::Span<char>> outputs) {
  const size_t count = program_.fetches.size();
  const auto check = [&](size_t i) -> absl::Status {
    const Value& value = plan().values[plan().program().fetches[i]];
    if (value.dtype == DType::kString) {
      return absl::InvalidArgumentError(absl::StrCat("output '", program_.fetch_names[i], "' holds strings"));
    }
    PF_ASSIGN_OR_RETURN(const int64_t bytes, ValueBytes(value.dtype, value.shape));
    if (static_cast<uint64_t>(bytes) == outputs[i].size()) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat("output '", program_.fetch_names[i], "': found memory of ",
                                                   outputs[i].size(), " bytes, expected ", bytes));
  };
  std::vector<Tensor> staged;  // Memory for outputs that are not aligned.
  absl::InlinedVector<char*, 8> memory(count, nullptr);
  for (size_t i = 0; i < count; ++i) {
    if (plan().fetches[i].is_dynamic) continue;
    PF_RETURN_IF_ERROR(check(i));
    if (plan().fetches[i].bound_values.empty()) continue;
    memory[i] = outputs[i].data();
    if (IsAligned(memory[i])) continue;
    const Value& value = plan().values[plan().program().fetches[i]];
    PF_ASSIGN_OR_RETURN(staged.emplace_back(), Tensor::Allocate(value.dtype, value.shape, &memory[i]));
  }
  PF_RETURN_IF_ERROR(Execute(aligned, memory));
  for (size_t i = 0; i < count; ++i) {
    if (memory[i] == outputs[i].data() && memory[i] != nullptr) continue;
    if (plan().fetches[i].is_dynamic) PF_RETURN_IF_ERROR(check(i));
    const char* from = memory[i];
    if (from == nullptr) {
      const FetchBinding& fetch = plan().fetches[i];
      from =
          fetch.constant.has_value() ? fetch.constant->bytes().data() : plan().values[plan().program().fetches[i]].data;
    }
    if (!outputs[i].empty()) std::memcpy(outputs[i].data(), from, outputs[i].size());
  }
  return absl::OkStatus();
}

// The public interface.

Session::Session(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

Session::~Session() = default;

absl::StatusOr<std::unique_ptr<Session>> Session::Create(const Graph& graph, absl::Span<const std::string> feeds,
                                                         absl::Span<const std::string> fetches,
                                                         SessionOptions options) {
  if (!selection::kHoldsDelegates && options.delegate != nullptr) {
    return absl::UnimplementedError("a delegate is given, and this build holds none");
  }
  ProcessorBinding binding;  // The session's threads inherit the binding.
  PF_RETURN_IF_ERROR(binding.Bind(options.processors));
  auto impl = std::make_unique<Impl>(std::move(options));
  PF_RETURN_IF_ERROR(impl->Build(graph, feeds, fetches));
  return std::unique_ptr<Session>(new Session(std::move(impl)));
}

std::vector<TensorSpec> Session::Inputs() const { return impl_->Inputs(); }

absl::StatusOr<std::vector<TensorSpec>> Session::Plan(absl::Span<const Shape> input_shapes) {
  return impl_->Plan(input_shapes);
}

absl::StatusOr<std::vector<Tensor>> Session::Run(absl::Span<const Tensor> feeds) { return impl_->Run(feeds); }

absl::Status Session::RunInto(absl::Span<const Tensor> feeds, absl::Span<const absl::Span<char>> outputs) {
  return impl_->RunInto(feeds, outputs);
}

const PlanReport& Session::report() const { return impl_->report(); }

PlanReport Session::FullReport() const { return impl_->FullReport(); }

int Session::num_threads() const { return impl_->num_threads(); }

}  // namespace permafrost
