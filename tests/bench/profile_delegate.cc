// Prints where a delegate spends its time: profile_delegate MODEL INPUTS OUTPUTS THREADS DELEGATE [PRECISION [RUNS]]
// prints the partitions, the time of each piece, the time of a run and that of the reference kernels, and the largest
// difference.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "graph/base/status.h"
#include "io/file_system.h"
#include "io/model_file.h"
#include "runtime_check/checking/seeded_inputs.h"
#include "runtime_check/delegates/delegate_registry.h"
#include "runtime_check/precision/precision_choice.h"
#include "runtime_check/session.h"

namespace permafrost {
namespace {

using Clock = std::chrono::steady_clock;

double Milliseconds(Clock::duration duration) { return std::chrono::duration<double, std::milli>(duration).count(); }

struct Request {
  std::string model;
  std::vector<std::string> inputs, outputs;
  int threads = 1;
  std::string delegate;
  DelegateOptions options;
  int runs = 20;
};

struct Timed {
  double load = 0, first = 0, least = 0, median = 0;
  std::vector<Tensor> outputs;
};

absl::StatusOr<Timed> Time(const Request& request, const Graph& graph, absl::Span<const Tensor> feeds,
                           std::shared_ptr<const Delegate> delegate, int runs) {
  SessionOptions options;
  options.num_threads = request.threads;
  options.delegate = std::move(delegate);
  Timed timed;
  const auto start = Clock::now();
  PF_ASSIGN_OR_RETURN(std::unique_ptr<Session> session,
                      Session::Create(graph, request.inputs, request.outputs, options));
  std::vector<Shape> shapes;
  for (const Tensor& feed : feeds) shapes.push_back(feed.shape());
  PF_RETURN_IF_ERROR(session->Plan(shapes).status());
  timed.load = Milliseconds(Clock::now() - start);
  std::vector<double> times;
  for (int i = 0; i <= runs; ++i) {
    const auto begin = Clock::now();
    PF_ASSIGN_OR_RETURN(timed.outputs, session->Run(feeds));
    const double time = Milliseconds(Clock::now() - begin);
    if (i == 0) timed.first = time;
    if (i > 0) times.push_back(time);
  }
  std::sort(times.begin(), times.end());
  timed.least = times.front();
  timed.median = times[times.size() / 2];
  return timed;
}

absl::Status Profile(const Request& request, const Graph& graph, absl::Span<const Tensor> feeds,
                     std::shared_ptr<const Delegate> delegate) {
  struct Line {
    double total = 0, least = 1e9;
    int order = 0;
  };
  std::map<std::string, Line> lines;
  const auto note = [&](std::string name, absl::Duration duration) {
    Line& line = lines.emplace(std::move(name), Line{0, 1e9, static_cast<int>(lines.size())}).first->second;
    const double time = absl::ToDoubleMilliseconds(duration);
    line.total += time;
    line.least = std::min(line.least, time);
  };
  SessionOptions options;
  options.num_threads = request.threads;
  options.delegate = delegate;
  options.on_piece = [&](absl::string_view name, absl::Duration duration) { note(std::string(name), duration); };
  options.on_node = [&](const Node& node, absl::Duration duration) {
    if (delegate == nullptr || node.op().name() != delegate->name()) {
      note(node.Describe(), duration);
    }
  };
  PF_ASSIGN_OR_RETURN(std::unique_ptr<Session> session,
                      Session::Create(graph, request.inputs, request.outputs, options));
  for (int i = 0; i < request.runs; ++i) PF_RETURN_IF_ERROR(session->Run(feeds).status());
  std::vector<std::pair<std::string, Line>> sorted(lines.begin(), lines.end());
  std::sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) { return a.second.order < b.second.order; });
  double sum = 0;
  for (const auto& [name, line] : sorted) {
    std::printf("%9.4f ms  %s\n", line.least, name.c_str());
    sum += line.least;
  }
  std::printf("%9.4f ms  sum of %zu pieces, each at its best\n", sum, sorted.size());
  const DelegationReport& report = session->report().delegation;
  for (const DelegationReport::Taken& taken : report.partitions) {
    std::printf("partition: %zu nodes, %zu pieces, %lld kB packed, %lld kB scratch\n", taken.nodes.size(),
                taken.pieces.size(), static_cast<long long>(taken.constant_bytes / 1000),
                static_cast<long long>(taken.scratch_bytes / 1000));
  }
  for (const DelegationReport::Left& left : report.left) {
    std::printf("left: '%s' (%s): %s\n", left.node.c_str(), left.op.c_str(), left.reason.c_str());
  }
  return absl::OkStatus();
}

double LargestDifference(const Tensor& a, const Tensor& b) {
  if (a.dtype() != DType::kFloat || b.dtype() != DType::kFloat) return a == b ? 0 : INFINITY;
  double most = 0;
  const auto* x = reinterpret_cast<const float*>(a.bytes().data());
  const auto* y = reinterpret_cast<const float*>(b.bytes().data());
  for (int64_t i = 0; i < a.num_elements(); ++i) {
    const double difference = std::fabs(static_cast<double>(x[i]) - y[i]);
    if (!(difference <= most)) most = difference;
  }
  return most;
}

// Calibrates precisions that need a plan with the feeds.
absl::StatusOr<std::shared_ptr<const Delegate>> DelegateFor(const Request& request, const Graph& graph,
                                                            const std::vector<Tensor>& feeds) {
  DelegateOptions options = request.options;
  for (const DelegateInfo& info : KnownDelegates()) {
    const std::vector<std::string>& planned = info.planned_precisions;
    if (info.name != request.delegate ||
        std::find(planned.begin(), planned.end(), options.precision) == planned.end()) {
      continue;
    }
    SessionOptions session_options;
    session_options.num_threads = request.threads;
    ChoiceOptions choice_options;
    choice_options.precisions = {options.precision};
    PF_ASSIGN_OR_RETURN(const PrecisionChoice choice, ChoosePrecision(graph, request.inputs, request.outputs, {feeds},
                                                                      info.name, session_options, choice_options));
    for (const std::string& note : choice.trials[0].notes) std::printf("%s\n", note.c_str());
    options.plan = choice.plan;
  }
  return MakeDelegate(request.delegate, options);
}

absl::Status Run(const Request& request) {
  PF_ASSIGN_OR_RETURN(std::unique_ptr<Graph> graph, OpenModel(RealFileSystem(), request.model));
  PF_RETURN_IF_ERROR(graph->DeclareInterface(request.inputs, request.outputs));
  PF_ASSIGN_OR_RETURN(const std::vector<Tensor> feeds, SeededInputs(graph->inputs(), {}, /*seed=*/1));
  PF_ASSIGN_OR_RETURN(std::shared_ptr<const Delegate> delegate, DelegateFor(request, *graph, feeds));
  PF_RETURN_IF_ERROR(Profile(request, *graph, feeds, delegate));
  PF_ASSIGN_OR_RETURN(const Timed reference, Time(request, *graph, feeds, nullptr, std::min(5, request.runs)));
  PF_ASSIGN_OR_RETURN(const Timed timed, Time(request, *graph, feeds, delegate, request.runs));
  std::printf("%s: load %.3f ms, first %.3f ms, least %.3f ms, median %.3f ms; reference: least %.3f ms\n",
              request.delegate.c_str(), timed.load, timed.first, timed.least, timed.median, reference.least);
  for (size_t i = 0; i < timed.outputs.size(); ++i) {
    std::printf("output '%s': largest difference from the reference kernels %g\n", request.outputs[i].c_str(),
                LargestDifference(timed.outputs[i], reference.outputs[i]));
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace permafrost

int main(int argc, char** argv) {
  if (argc < 6) {
    std::fprintf(stderr, "usage: profile_delegate MODEL INPUTS OUTPUTS THREADS DELEGATE [PRECISION [RUNS]]\n");
    return 2;
  }
  permafrost::Request request;
  request.model = argv[1];
  request.inputs = absl::StrSplit(argv[2], ',');
  request.outputs = absl::StrSplit(argv[3], ',');
  request.threads = std::atoi(argv[4]);
  request.delegate = argv[5];
  if (argc > 6) request.options.precision = argv[6];
  if (argc > 7) request.runs = std::max(1, std::atoi(argv[7]));
  const absl::Status status = permafrost::Run(request);
  if (status.ok()) return 0;
  std::fprintf(stderr, "profile_delegate: %s\n", std::string(status.message()).c_str());
  return 1;
}
