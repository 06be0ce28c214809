// Binds the caller's memory and runs the steps in order, except for stretches, whose steps run at the same time.
#include "runtime_check/execution/executor.h"

#include <utility>

#include "absl/time/clock.h"
#include "graph/base/selection.h"
#include "graph/base/status.h"
#include "runtime_check/execution/flow_executor.h"
#include "runtime_check/execution/step_runner.h"
#include "runtime_check/profiling/profiler.h"
#include "runtime_check/threads/thread_lane.h"

namespace permafrost {
namespace {

void Bind(absl::Span<const Value> feeds, absl::Span<char* const> memory, Plan* plan) {
  for (size_t i = 0; i < feeds.size(); ++i) {
    if (plan->feed_values[i].empty()) continue;
    const Value& fed = feeds[i];
    for (const int value : plan->feed_values[i]) {
      plan->values[value].data = fed.data;
      plan->values[value].strings = fed.strings;
      plan->values[value].objects = fed.objects;
      plan->values[value].bytes = fed.bytes;
    }
  }
  for (size_t i = 0; i < memory.size(); ++i) {
    for (const int value : plan->fetches[i].bound_values) plan->values[value].data = memory[i];
  }
}

int64_t OutputBytes(const NodeContext& context) {
  int64_t bytes = 0;
  for (int i = 0; i < context.num_outputs(); ++i) {
    const Value& output = context.made(i);
    bytes += ValueBytes(output.dtype, output.shape).value_or(0);
  }
  return bytes;
}

bool IsCluster(const Program& program, const Step& step) {
  if (!selection::kHoldsDelegates || step.dynamic == nullptr) return false;
  const int call = step.dynamic->node->call;
  return call >= 0 && program.calls[call].cluster != nullptr;
}

// Runs a step and records it.
absl::Status RunRecorded(const Plan& plan, Step* step, absl::Span<const int> release, StepRunner* runner,
                         Profiler* profiler) {
  const int64_t start = profiler->Enter();
  if (absl::Status status = runner->Run(step, release); !status.ok()) {
    profiler->Abandon();
    return status;
  }
  ProfileTicket& ticket = step->ticket;
  if (!profiler->Knows(ticket)) {
    const Node& node = step->context.node();
    profiler->Name(node, plan.lowered != nullptr && &node.graph() == &plan.lowered->nodes, &ticket);
    ticket.output_bytes = OutputBytes(step->context);
  }
  profiler->Leave(ticket, start, step->dynamic == nullptr ? ticket.output_bytes : OutputBytes(step->context));
  return absl::OkStatus();
}

// Runs a stretch, in which all steps are static.
absl::Status RunStretch(Plan* plan, PlannedStretch* stretch, const Environment& environment, StepRunner* runner) {
  stretch->runner->Begin();
  environment.lanes->ParallelFor(environment.num_lanes, 1, [&](int64_t begin, int64_t end) {
    const ThreadLane alone;
    for (int64_t lane = begin; lane < end; ++lane) {
      stretch->runner->Work([&](int step) {
        plan->steps[step].context.set_scratch(stretch->scratch[lane]);
        return runner->Run(&plan->steps[step], {});
      });
    }
  });
  return stretch->runner->status();
}

}  // namespace

absl::Status ExecutePlan(Plan* plan, absl::Span<const Value> feeds, absl::Span<char* const> memory,
                         const Environment* environment, const NodeCallback& on_node) {
  const Program& program = plan->program();
  Bind(feeds, memory, plan);
  for (std::shared_ptr<HeapOutput>& held : plan->held) held.reset();
  StepRunner runner(plan, program, environment);
  Profiler* profiler =
      environment->profiler != nullptr && environment->profiler->is_recording() ? environment->profiler : nullptr;
  const auto run = [&](Step* step, absl::Span<const int> release) -> absl::Status {
    const auto run_step = [&] {
      // The nodes of a cluster are recorded, not the cluster.
      return profiler == nullptr || IsCluster(program, *step) ? runner.Run(step, release)
                                                              : RunRecorded(*plan, step, release, &runner, profiler);
    };
    if (on_node == nullptr) return run_step();
    const absl::Time start = absl::Now();
    PF_RETURN_IF_ERROR(run_step());
    on_node(step->context.node(), absl::Now() - start);
    return absl::OkStatus();
  };
  if (selection::kHoldsControlFlow && plan->flow != nullptr) return ExecuteFlow(plan, program, environment, run);
  // Runs that are observed execute in order, on all threads.
  const bool is_watched = profiler != nullptr || on_node != nullptr;
  auto stretch = plan->stretches.begin();
  for (size_t i = 0; i < plan->steps.size();) {
    if (kHasThreads && !is_watched && stretch != plan->stretches.end() &&
        static_cast<size_t>(stretch->steps.begin) == i) {
      PF_RETURN_IF_ERROR(RunStretch(plan, &*stretch, *environment, &runner));
      i = static_cast<size_t>(stretch->steps.end);
      ++stretch;
      continue;
    }
    Step& step = plan->steps[i++];
    PF_RETURN_IF_ERROR(run(
        &step, step.dynamic == nullptr ? absl::Span<const int>() : absl::MakeConstSpan(step.dynamic->release_after)));
  }
  return absl::OkStatus();
}

}  // namespace permafrost
