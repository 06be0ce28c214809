// Runs models, and compares their outputs.
#include "python/native/running.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <limits>
#include <memory>
#include <mutex>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "io/file_system.h"
#include "python/native/errors.h"
#include "python/native/interruptible.h"
#include "python/native/model.h"
#include "python/native/tensors.h"
#include "python/native/text.h"
#include "runtime_check/checking/output_quality.h"
#include "runtime_check/delegates/delegate_registry.h"
#include "runtime_check/session.h"
#include "runtime_check/session_settings.h"
#include "tools/command_line/console.h"
#include "tools/difference/graph_difference.h"
#include "tools/model/delegate_resolution.h"
#include "tools/model/model_inputs.h"
#include "tools/model/run_flags.h"
#include "tools/model/run_options.h"
#include "tools/model/tool_session.h"
#include "tools/transform/verification.h"

namespace py = pybind11;

namespace permafrost::python {
namespace {

using Clock = std::chrono::steady_clock;

// After a run of this length the next run gets a new thread, so that Ctrl-C ends the wait for it. A shorter run ends
// before a user could notice, and the thread might cost more than the run.
constexpr double kLongRunSeconds = 0.1;

// A session, the objects that it depends on, and facts for its user.
struct Running {
  std::shared_ptr<const Graph> graph;
  std::vector<std::string> feeds, fetches;
  std::unique_ptr<Session> session;
  std::vector<TensorSpec> inputs;                     // Specs of the session's inputs.
  std::string notes;                                  // Messages printed while the precision was resolved.
  std::mutex mutex;                                   // A session performs one run at a time.
  std::vector<Shape> planned_shapes;                  // Arguments of the last call of PlanOutputs.
  std::vector<TensorSpec> planned;                    // Its result. Both are guarded by the mutex.
  std::atomic<double> last_seconds{kLongRunSeconds};  // The first run plans, so it counts as long.
  std::shared_ptr<std::atomic<bool>> is_abandoned = std::make_shared<std::atomic<bool>>(false);
};

using RunningPointer = std::shared_ptr<Running>;

std::vector<std::string> TextsOf(const std::vector<Endpoint>& endpoints) {
  std::vector<std::string> texts;
  for (const Endpoint& endpoint : endpoints) {
    if (endpoint.node != nullptr) texts.push_back(endpoint.text);
  }
  return texts;
}

// Options of a session. Each sample has one tensor for each declared input of the model.
struct SessionRequest {
  RunFlags flags;
  std::vector<InputSet> samples;
};

absl::Status Create(const SessionRequest& request, Running* running) {
  FileSystem& files = RealFileSystem();
  PF_ASSIGN_OR_RETURN(RunOptions options, MakeRunOptions(request.flags, files));
  const Graph& graph = *running->graph;
  std::vector<Endpoint> inputs, outputs;
  for (const Endpoint& input : graph.inputs()) {
    if (input.node != nullptr) inputs.push_back(input);
  }
  std::vector<InputSet> samples = request.samples;
  if (samples.empty() && !request.flags.precision.empty() && request.flags.precision != "f32") {
    // Only precisions that are measured or calibrated use samples; they report an error if samples cannot be made.
    absl::StatusOr<std::vector<InputSet>> seeded = SeededInputSets(graph, inputs, /*seed=*/1, /*count=*/2);
    if (seeded.ok()) samples = *std::move(seeded);
  }
  std::ostringstream out, err;
  Console console{out, err};
  const ModelToRun model = {graph, inputs, graph.outputs(), /*path=*/""};
  PF_ASSIGN_OR_RETURN(const KeptWeights kept,
                      ResolveDelegate(request.flags, model, samples, files, &options.chosen, console));
  running->notes = err.str();
  options.chosen.loop_limits.is_cancelled = [flag = running->is_abandoned] { return flag->load(); };
  options.chosen.loop_limits.most_iterations = 0;
  PF_ASSIGN_OR_RETURN(running->session,
                      Session::Create(graph, running->feeds, running->fetches, std::move(options.chosen)));
  running->inputs = running->session->Inputs();
  return absl::OkStatus();
}

// Converts one input: an array, or a tuple of shape and strings. The `samples` of MakeSession are lists of such inputs.
absl::StatusOr<Tensor> FeedFromPython(py::handle object, const TensorSpec& spec) {
  if (py::isinstance<py::tuple>(object)) {
    const auto pair = py::reinterpret_borrow<py::tuple>(object);
    if (spec.dtype != DType::kString && spec.dtype != DType::kInvalid) {
      return absl::InvalidArgumentError(absl::StrCat("found strings, expected an array of ", DTypeName(spec.dtype)));
    }
    return TensorFromStrings(pair[0], pair[1]);
  }
  if (spec.dtype == DType::kString) return absl::InvalidArgumentError("found an array of numbers, expected strings");
  return spec.dtype == DType::kInvalid ? TensorFromBuffer(object) : TensorFromBuffer(object, spec.dtype);
}

RunningPointer MakeSession(const Model& model, const Text& delegate, const Text& precision, const py::dict& counts,
                           const py::dict& switches, std::vector<Text> custom_ops, py::handle fetches,
                           const py::list& samples) {
  ThrowIfError(model.interface);
  const auto running = std::make_shared<Running>();
  running->graph = model.graph;
  running->feeds = TextsOf(model.graph->inputs());
  running->fetches = fetches.is_none() ? TextsOf(model.graph->outputs()) : Bytes(fetches.cast<std::vector<Text>>());
  const auto request = std::make_shared<SessionRequest>();
  request->flags.delegate = delegate.bytes;
  request->flags.precision = precision.bytes;
#define PERMAFROST_SET(field, flag, preset, most, at_zero, help) request->flags.flag = counts[#flag].cast<int32_t>();
  PERMAFROST_SESSION_COUNTS(PERMAFROST_SET)
#undef PERMAFROST_SET
#define PERMAFROST_SET(field, flag, help) request->flags.flag = switches[#flag].cast<bool>();
  PERMAFROST_SESSION_SWITCHES(PERMAFROST_SET)
#undef PERMAFROST_SET
  request->flags.custom_ops = Bytes(std::move(custom_ops));
  for (const py::handle sample : samples) {
    InputSet set;
    for (const py::handle array : sample) set.push_back(ValueOrThrow(FeedFromPython(array, {})));
    request->samples.push_back(std::move(set));
  }
  ThrowIfError(RunInterruptibly([request, running](const StopFlag&) { return Create(*request, running.get()); }));
  return running;
}

std::vector<Tensor> FeedsOf(const Running& running, const py::list& arrays) {
  std::vector<Tensor> feeds;
  for (size_t i = 0; i < arrays.size(); ++i) {
    absl::StatusOr<Tensor> feed = FeedFromPython(arrays[i], running.inputs[i]);
    if (!feed.ok()) Throw(Annotate(feed.status(), absl::StrCat("input '", running.feeds[i], "'")));
    feeds.push_back(*std::move(feed));
  }
  return feeds;
}

// One run, with all objects that it uses.
struct OneRun {
  std::vector<Tensor> feeds;
  std::vector<WritableMemory> outputs;  // Empty: the session allocates the outputs.
  std::vector<Tensor> results;
};

absl::Status Execute(Running* running, OneRun* run) {
  const std::lock_guard<std::mutex> lock(running->mutex);
  if (running->is_abandoned->load()) {
    return absl::FailedPreconditionError("a run of the session was interrupted: make another session");
  }
  const Clock::time_point start = Clock::now();
  absl::Status status;
  if (run->outputs.empty()) {
    absl::StatusOr<std::vector<Tensor>> results = running->session->Run(run->feeds);
    status = results.status();
    if (results.ok()) run->results = *std::move(results);
  } else {
    std::vector<absl::Span<char>> memory;
    for (const WritableMemory& output : run->outputs) memory.push_back(output.bytes);
    status = running->session->RunInto(run->feeds, memory);
  }
  running->last_seconds = std::chrono::duration<double>(Clock::now() - start).count();
  return status;
}

void ExecuteAndWait(const RunningPointer& running, const std::shared_ptr<OneRun>& run) {
  absl::Status status;
  if (running->last_seconds.load() >= kLongRunSeconds && IsMainThread()) {
    try {
      status = RunInterruptibly([running, run](const StopFlag&) { return Execute(running.get(), run.get()); });
    } catch (const py::error_already_set&) {
      running->is_abandoned->store(true);
      throw;
    }
  } else {
    const py::gil_scoped_release release;
    status = Execute(running.get(), run.get());
  }
  DropReleased();
  ThrowIfError(status);
}

std::vector<Shape> ShapesOf(const std::vector<Tensor>& tensors) {
  std::vector<Shape> shapes;
  for (const Tensor& tensor : tensors) shapes.push_back(tensor.shape());
  return shapes;
}

// Returns type and shape of each output for inputs of these shapes.
std::vector<TensorSpec> PlanOutputs(const RunningPointer& running, const std::vector<Shape>& shapes) {
  absl::StatusOr<std::vector<TensorSpec>> specs;
  {
    const py::gil_scoped_release release;
    const std::lock_guard<std::mutex> lock(running->mutex);
    if (running->planned.empty() || running->planned_shapes != shapes) {
      specs = running->session->Plan(shapes);
      if (specs.ok()) {
        running->planned_shapes = shapes;
        running->planned = *specs;
      }
    } else {
      specs = running->planned;
    }
  }
  return ValueOrThrow(std::move(specs));
}

py::object Run(const RunningPointer& running, const py::list& arrays, py::handle outputs) {
  const auto run = std::make_shared<OneRun>();
  run->feeds = FeedsOf(*running, arrays);
  if (!outputs.is_none()) {
    const std::vector<TensorSpec> planned = PlanOutputs(running, ShapesOf(run->feeds));
    size_t i = 0;
    for (const py::handle output : outputs) {
      absl::StatusOr<WritableMemory> memory = OutputMemory(output, planned[i].dtype, planned[i].shape);
      if (!memory.ok()) Throw(Annotate(memory.status(), absl::StrCat("output '", running->fetches[i], "'")));
      for (const Tensor& feed : run->feeds) {
        const char *begin = memory->bytes.data(), *end = begin + memory->bytes.size();
        if (begin < feed.bytes().data() + feed.bytes().size() && feed.bytes().data() < end) {
          Throw(absl::InvalidArgumentError(
              absl::StrCat("output '", running->fetches[i], "': its memory is also that of an input")));
        }
      }
      run->outputs.push_back(*std::move(memory));
      ++i;
    }
  }
  ExecuteAndWait(running, run);
  py::list results;
  for (const Tensor& result : run->results) results.append(ToPython(result));
  return results;
}

// Returns the seconds of each of `count` runs, after `warm_up` uncounted ones.
std::vector<double> Benchmark(const RunningPointer& running, const py::list& arrays, int warm_up, int count,
                              double most_seconds) {
  const auto run = std::make_shared<OneRun>();
  run->feeds = FeedsOf(*running, arrays);
  const auto seconds = std::make_shared<std::vector<double>>();
  ThrowIfError(RunInterruptibly([=](const StopFlag& stop) -> absl::Status {
    double total = 0;
    for (int i = 0; i < warm_up + count && (total < most_seconds || seconds->empty()); ++i) {
      if (stop->load()) return absl::CancelledError("interrupted");
      PF_RETURN_IF_ERROR(Execute(running.get(), run.get()));
      run->results.clear();
      if (i < warm_up) continue;
      seconds->push_back(running->last_seconds);
      total += running->last_seconds;
    }
    return absl::OkStatus();
  }));
  return *seconds;
}

py::list SpecsToPython(const std::vector<TensorSpec>& specs) {
  py::list list;
  for (const TensorSpec& spec : specs) {
    list.append(py::make_tuple(ToPython(spec.name), spec.dtype == DType::kInvalid ? "" : DTypeName(spec.dtype),
                               ToPython(spec.shape)));
  }
  return list;
}

// Returns a report on the nodes: counts, and the reasons why nodes were not delegated.
py::dict ReportOf(const RunningPointer& running) {
  PlanReport report;
  {
    const py::gil_scoped_release release;
    const std::lock_guard<std::mutex> lock(running->mutex);
    report = running->session->FullReport();
  }
  py::list partitions, left;
  for (const DelegationReport::Taken& taken : report.delegation.partitions) {
    partitions.append(ToPython(absl::MakeConstSpan(taken.nodes)));
  }
  for (const DelegationReport::Left& node : report.delegation.left) {
    left.append(py::make_tuple(ToPython(node.node), ToPython(node.op), ToPython(node.reason)));
  }
  py::dict result;
  result["partitions"] = partitions;
  result["left"] = left;
  result["steps"] = report.num_steps;
  result["folded"] = report.num_folded;
  result["arena_bytes"] = report.arena_bytes;
  result["constant_bytes"] = report.constant_bytes;
  result["failure"] = ToPython(report.delegation.failure);
  result["notes"] = ToPython(running->notes);
  return result;
}

// --- Comparing models ------------------------------------------------------------------------------------------------

std::optional<double> Known(double value) { return std::isnan(value) ? std::nullopt : std::make_optional(value); }

py::dict DifferenceToPython(const VerifiedOutput& output) {
  const OutputDifference& difference = output.difference;
  py::dict result;
  result["name"] = ToPython(output.name);
  result["relative"] = difference.relative();
  result["max_abs"] = Known(difference.max_abs);
  result["mean_abs"] = Known(difference.mean_abs);
  result["sqnr_db"] = Known(difference.sqnr_db);
  result["cosine"] = Known(difference.cosine);
  result["top1_agreement"] = difference.top1_agreement;
  result["top5_agreement"] = difference.top5_agreement;
  result["quality"] = ToPython(QualityName(JudgeQuality(difference)));
  result["text"] = ToPython(difference.ToString());
  return result;
}

// Runs `before` and `after` on the same inputs: given ones or `count` random ones. Returns whether they were run, why
// not, the number of inputs, and a dict for each output.
py::tuple Verify(const Model& before, const Model& after, const py::list& inputs, uint64_t seed, int count,
                 int threads) {
  ThrowIfError(before.interface);
  ThrowIfError(after.interface);
  const size_t num_inputs = before.graph->inputs().size();
  std::vector<InputSet> sets;
  for (const py::handle arrays : inputs) {
    InputSet set;
    for (const py::handle array : arrays) {
      absl::StatusOr<Tensor> feed = FeedFromPython(array, {});
      if (!feed.ok()) {
        Throw(Annotate(feed.status(), absl::StrCat("input '", before.graph->inputs()[set.size()].text, "'")));
      }
      set.push_back(*std::move(feed));
    }
    if (set.size() != num_inputs) {
      Throw(absl::InvalidArgumentError(
          absl::StrCat("found ", set.size(), " arrays, expected one for each of ", num_inputs, " inputs")));
    }
    sets.push_back(std::move(set));
  }
  if (before.graph->outputs().size() != after.graph->outputs().size()) {
    Throw(
        absl::InvalidArgumentError(absl::StrCat("the models have ", before.graph->outputs().size(), " and ",
                                                after.graph->outputs().size(), " outputs, expected the same number")));
  }
  const auto verdict = std::make_shared<Verdict>();
  ThrowIfError(RunInterruptibly([=, before = before.graph, after = after.graph](const StopFlag& stop) -> absl::Status {
    SessionOptions options = ToolSessionOptions(std::max(1, threads), RealFileSystem());
    options.loop_limits.is_cancelled = [stop] { return stop->load(); };
    std::vector<InputSet> all = sets;
    if (all.empty()) {
      PF_ASSIGN_OR_RETURN(all, SeededInputSets(*before, before->inputs(), seed, count));
    }
    const Verifier verifier(*before, std::move(all), std::move(options), kNoTimeLimit);
    if (stop->load()) return absl::CancelledError("interrupted");
    PF_ASSIGN_OR_RETURN(*verdict, verifier.Check(*after));
    return absl::OkStatus();
  }));
  py::list outputs;
  for (const VerifiedOutput& output : verdict->outputs) outputs.append(DifferenceToPython(output));
  return py::make_tuple(verdict->was_run, ToPython(verdict->why_not), verdict->num_inputs, outputs);
}

py::list RandomInputs(const Model& model, uint64_t seed) {
  ThrowIfError(model.interface);
  std::vector<Endpoint> inputs;
  for (const Endpoint& input : model.graph->inputs()) {
    if (input.node != nullptr) inputs.push_back(input);
  }
  const std::vector<InputSet> sets = ValueOrThrow(SeededInputSets(*model.graph, inputs, seed, /*count=*/1));
  py::list list;
  for (size_t i = 0; i < inputs.size(); ++i) {
    list.append(py::make_tuple(ToPython(inputs[i].text), ToPython(sets[0][i])));
  }
  return list;
}

// Returns the differences of `actual` from `expected`: kind, node and text of each.
py::list Compare(const Model& actual, const Model& expected, std::optional<double> tolerance, bool strict) {
  const auto differences = std::make_shared<std::vector<GraphDifference>>();
  ThrowIfError(RunInterruptibly([=, actual = actual.graph, expected = expected.graph](const StopFlag&) {
    GraphDifferenceOptions options;
    options.tolerance = tolerance;
    options.is_strict = strict;
    *differences = CompareGraphs(*actual, *expected, options);
    return absl::OkStatus();
  }));
  py::list list;
  for (const GraphDifference& difference : *differences) {
    list.append(py::make_tuple(ToPython(difference.kind), ToPython(difference.node), ToPython(difference.text)));
  }
  return list;
}

// Returns the integer arguments of Model.session: name, default and largest value of each.
py::list SessionCounts() {
  py::list list;
#define PERMAFROST_APPEND(field, flag, preset, most, at_zero, help) list.append(py::make_tuple(#flag, preset, most));
  PERMAFROST_SESSION_COUNTS(PERMAFROST_APPEND)
#undef PERMAFROST_APPEND
  return list;
}

py::list DelegatesToPython() {
  py::list list;
  for (const DelegateInfo& info : KnownDelegates()) {
    const std::vector<std::string> precisions = info.AllPrecisions();
    list.append(py::make_tuple(info.name, info.description, ToPython(absl::MakeConstSpan(precisions))));
  }
  return list;
}

}  // namespace

void BindRunning(py::module_& m) {
  py::class_<Running, RunningPointer>(m, "Session")
      .def("run", &Run)
      .def("benchmark", &Benchmark)
      .def("inputs", [](const RunningPointer& running) { return SpecsToPython(running->inputs); })
      .def("plan",
           [](const RunningPointer& running, const py::list& shapes) {
             std::vector<Shape> dims;
             for (const py::handle shape : shapes) dims.push_back(ValueOrThrow(ShapeFromPython(shape)));
             return SpecsToPython(PlanOutputs(running, dims));
           })
      .def("report", &ReportOf)
      .def_property_readonly(
          "fetches", [](const RunningPointer& running) { return ToPython(absl::MakeConstSpan(running->fetches)); })
      .def_property_readonly("last_seconds", [](const RunningPointer& running) { return running->last_seconds.load(); })
      .def_property_readonly("num_threads",
                             [](const RunningPointer& running) { return running->session->num_threads(); });
  m.def("session", &MakeSession);
  m.def("session_counts", &SessionCounts);
  m.def("verify", &Verify);
  m.def("random_inputs", &RandomInputs);
  m.def("compare", &Compare);
  m.def("delegates", &DelegatesToPython);
}

}  // namespace permafrost::python
