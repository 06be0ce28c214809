// Runs a graph. Start here.
//
//   PF_ASSIGN_OR_RETURN(std::unique_ptr<Session> session, Session::Create(graph, {"image"}, {"probabilities"}));
//   PF_ASSIGN_OR_RETURN(std::vector<Tensor> outputs, session->Run({image}));
#ifndef PERMAFROST_RUNTIME_CHECK_SESSION_H_
#define PERMAFROST_RUNTIME_CHECK_SESSION_H_

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "graph/graph.h"
#include "graph/tensor.h"
#include "runtime_check/delegate.h"
#include "runtime_check/execution/executor.h"
#include "runtime_check/packing/packed_weights.h"
#include "runtime_check/planning/plan.h"
#include "runtime_check/planning/plan_cache.h"
#include "runtime_check/planning/prepared_node.h"
#include "runtime_check/profiling/profiler.h"
#include "runtime_check/program/functions.h"
#include "runtime_check/program/program.h"
#include "runtime_check/resources/run_log.h"
#include "runtime_check/threads/thread_lane.h"
#include "runtime_check/threads/thread_pool.h"

namespace permafrost {

struct SessionOptions {
  // Threads that compute, the caller's among them. Below 1 counts as 1, above ThreadPool::kMostThreads as that.
  int num_threads = 1;
  // How many nodes may run at the same time, each on one thread: where a plan finds that to be faster, and nobody
  // watches (on_node, on_piece, profiler). They run on the threads of num_threads where those are as many, else on
  // threads of their own. Results are the same bit for bit; activations may take more memory, where there is any. A
  // partition never runs beside other nodes; whether its parts run beside each other is for its delegate to say. Nor do
  // nodes whose shapes only the run tells, those with effects, and those of graphs with V1 control flow. Below 2: one
  // node at a time.
  int inter_op_threads = 1;
  // The processors that the session's threads run on, as the kernel counts them, and the calling thread while it is in
  // a call of the session. Threads that a delegate's library starts stay where the call was that started them. Empty:
  // all.
  std::vector<int> processors;
  // Bytes that activations, computed and copied constants may take together; what kernels pack is not counted. A graph
  // that wants more is refused with ResourceExhausted.
  int64_t memory_limit = int64_t{4} << 30;
  NodeCallback on_node;  // For profiling; costs two clock readings a node.
  // How many plans are kept, each for other input shapes: what was fed lately needs no new plan. At least 1 is. Fewer
  // are where the memory limit leaves no room.
  int most_plans = 4;
  KernelLookup kernel_lookup = &FindKernel;
  std::shared_ptr<const Delegate> delegate;  // Null: the reference kernels run everything.
  PieceCallback on_piece;                    // What runs inside of partitions, for profiling.
  // Where the reference kernels find the weights as they packed them before, and leave what they pack; null: nowhere.
  // Only for the model that it was made for.
  SharedPackedWeights packed;
  // Records runs while it is told to; must outlive the session. May be null.
  Profiler* profiler = nullptr;
  // Where nodes that print (Print, PrintV2) write to: by default standard error, or standard output where they say so.
  RunLog::Writer print;
  // Gives the tensor of a memory region that an ImmutableConst names. Empty: there are none.
  RegionReader region_reader;
  // Names of nodes that run besides what the fetches need; nobody gets what they give.
  std::vector<std::string> targets;
  // A graph may loop for ever.
  LoopLimits loop_limits;
};

struct TensorSpec {
  std::string name;
  DType dtype = DType::kInvalid;
  Shape shape;
};

// Computes some outputs of a graph from some inputs. Only what they need is run, control inputs included. Results are
// the same bit for bit at each run with the same number of threads.
//
// Loops and branches of V1 control flow run as TensorFlow runs them, save that the iterations of a loop never overlap.
// Functions are compiled with the session, and planned as they are called. Tables that the fetches read are filled when
// the session is created, by the nodes that do that, wherever they are in the graph.
//
// What depends on shapes alone is planned once for each set of input shapes; the last few plans are kept. One run at a
// time: a session is for one thread; any number of sessions may share a graph that nobody edits, and a delegate.
//
// When a delegate fails in the middle of a run, everything is computed again without it, nodes that print included, and
// the report says so.
class Session {
 public:
  // The names are those of nodes, "x" or "x:1"; any output of any node may be fed. `graph` must outlive the session and
  // stay as it is. Errors as BuildProgram gives them: everything that can be found without knowing the input shapes,
  // all nodes without a kernel at once. InvalidArgument, here and in each call from another thread, for a processor
  // that the calling thread may not use.
  static absl::StatusOr<std::unique_ptr<Session>> Create(const Graph& graph, absl::Span<const std::string> feeds,
                                                         absl::Span<const std::string> fetches,
                                                         SessionOptions options = {});

  // What Run takes. A dimension, or the rank, that is unknown is free; the type is kInvalid where the graph does not
  // tell.
  std::vector<TensorSpec> Inputs() const;

  // What comes out for these input shapes; a shape that only the run tells is unknown. Plans, so that the next Run with
  // these shapes does not. Errors as of Run.
  absl::StatusOr<std::vector<TensorSpec>> Plan(absl::Span<const Shape> input_shapes);

  // `feeds` in the order of Create's; they are not copied if their buffers start at a multiple of 64 bytes. Returns the
  // fetches in theirs. InvalidArgument for a feed of the wrong type or shape (found, expected) and for shapes that do
  // not fit a node, which is named, and for a fetch on a branch that was not taken; ResourceExhausted beyond the memory
  // limit; Cancelled.
  absl::StatusOr<std::vector<Tensor>> Run(absl::Span<const Tensor> feeds);

  // The same into memory of the caller, without a copy where it starts at a multiple of 64 bytes. Each output's size
  // must be exact (see Plan), and the memory of inputs and outputs must not overlap. Strings cannot be fetched this
  // way.
  absl::Status RunInto(absl::Span<const Tensor> feeds, absl::Span<const absl::Span<char>> outputs);

  // Of the plan that was made or run last, until the next one is; empty where there is none.
  const PlanReport& report() const { return entry_ == nullptr ? no_report_ : entry_->plan->report; }
  // The same, and what became of the nodes of functions when their bodies were planned last.
  PlanReport FullReport() const;
  int num_threads() const { return threads_.num_threads(); }

 private:
  Session(SessionOptions options)
      : options_(std::move(options)),
        budget_(options_.memory_limit),
        threads_(options_.num_threads),
        log_(options_.print),
        plans_(static_cast<size_t>(std::max(1, options_.most_plans))) {
    environment_ = {&threads_,
                    &budget_,
                    &resources_,
                    &options_.loop_limits,
                    &call_depth_,
                    &log_,
                    options_.delegate.get(),
                    options_.on_piece == nullptr ? nullptr : &options_.on_piece,
                    options_.profiler};
    environment_.packed = options_.packed.get();
    const int num_lanes = std::min(options_.inter_op_threads, ThreadPool::kMostThreads);
    if (!kHasThreads || num_lanes < 2) return;
    if (num_lanes > threads_.num_threads()) own_lanes_ = std::make_unique<ThreadPool>(num_lanes);
    environment_.lanes = own_lanes_ == nullptr ? &threads_ : own_lanes_.get();
    environment_.num_lanes = std::min(num_lanes, environment_.lanes->num_threads());
  }

  // Runs what fills the tables.
  absl::Status Load(const Graph& graph, const ProgramContext& context);
  // Unimplemented for resources and variants.
  absl::Status CheckInterface() const;
  absl::Status CheckFeed(size_t i, DType dtype, const Shape& shape) const;
  absl::Status PlanFor(std::vector<Shape> shapes);
  permafrost::Plan& plan() const { return *entry_->plan; }
  // Checks, plans if need be, and aligns the feeds.
  absl::StatusOr<std::vector<Tensor>> Accept(absl::Span<const Tensor> feeds);
  // With the plan as it is.
  absl::StatusOr<std::vector<Tensor>> RunPlan(absl::Span<const Tensor> aligned);
  absl::Status RunPlanInto(absl::Span<const Tensor> aligned, absl::Span<const absl::Span<char>> outputs);
  // After a run that failed: whether another may succeed, since the plan is another now or there is more memory.
  // `num_refused` is how often the budget had refused memory before.
  bool MayRunAgain(int64_t num_refused);
  absl::Status Execute(absl::Span<const Tensor> feeds, absl::Span<char* const> memory);
  absl::StatusOr<Tensor> Fetched(size_t i) const;
  // InvalidArgument unless all fetches have a value after a run.
  absl::Status CheckAlive() const;

  SessionOptions options_;
  MemoryBudget budget_;
  ThreadPool threads_;
  std::unique_ptr<ThreadPool> own_lanes_;  // Where more nodes run at the same time than threads share one.
  ResourceStore resources_;
  RunLog log_;
  int call_depth_ = 0;
  Environment environment_;
  std::unique_ptr<FunctionTable> functions_;  // Null when the graph has no library.
  Program program_;
  PlanCache plans_;
  PlanCache::Entry* entry_ = nullptr;  // The current plan; null where there is none.
  PlanReport no_report_;
};

}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_SESSION_H_
