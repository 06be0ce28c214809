// Runs pipelines of built-in passes and passes written in Python.
#include "python/native/transforming.h"

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "io/file_system.h"
#include "io/formats/checkpoint/checkpoint.h"
#include "io/model_file.h"
#include "python/native/errors.h"
#include "python/native/interruptible.h"
#include "python/native/model.h"
#include "python/native/python_pass.h"
#include "python/native/text.h"
#include "runtime_check/checking/evaluate.h"
#include "runtime_check/threads/processors.h"
#include "tools/model/model_inputs.h"
#include "tools/model/tool_session.h"
#include "tools/transform/verification.h"
#include "transforms/pipeline/pipeline.h"
#include "transforms/pipeline/presets.h"

namespace py = pybind11;

namespace permafrost::python {
namespace {

int NumThreads(int wanted) { return wanted > 0 ? wanted : AvailableProcessors(); }

// One run of a pipeline. Owns all objects that it uses, so that it can outlive the call that started it.
struct Run {
  std::unique_ptr<Graph> graph;
  std::vector<PassCall> calls;
  RaisedExceptions raised;  // Raised by Python passes and by `progress`.
  std::map<std::string, PassDefinition> python_passes;
  Kept progress;  // Called with index, number of passes and name; may be absent.
  bool explain = false;
  int num_threads = 1;

  std::vector<PassReport> reports;
  std::string running;  // The current or last pass.
  absl::Status callback_error;
};

absl::StatusOr<const PassDefinition*> Find(const Run& run, absl::string_view name) {
  const auto found = run.python_passes.find(std::string(name));
  return found != run.python_passes.end() ? &found->second : FindPass(name);
}

void TellProgress(Run* run, size_t index) {
  const py::gil_scoped_acquire acquire;
  try {
    py::handle(run->progress.get())(index, run->calls.size(), ToPython(run->running));
  } catch (const py::error_already_set& error) {
    run->callback_error = run->raised.Keep(error);
  }
}

absl::Status Execute(Run* run, const StopFlag& stop) {
  // Checked first, so that an error in the arguments of a pass names the pass.
  for (const PassCall& call : run->calls) {
    run->running = call.name;
    PF_ASSIGN_OR_RETURN(const PassDefinition* pass, Find(*run, call.name));
    PF_RETURN_IF_ERROR(Annotate(pass->check_arguments(call.arguments), call.name));
  }
  run->running.clear();
  const KernelEvaluator evaluator;
  FileSystem& files = RealFileSystem();
  PassContext context;
  context.evaluator = &evaluator;
  context.num_threads = run->num_threads;
  context.wants_misses = run->explain;
  context.read_file = [&files](absl::string_view path) { return files.ReadFile(std::string(path)); };
  context.open_checkpoint = [&files](absl::string_view path) { return OpenCheckpoint(files, std::string(path)); };
  std::unique_ptr<Verifier> verifier;
  if (AnyMeasuresOutputs(run->calls)) {
    SessionOptions session = ToolSessionOptions(run->num_threads, files);
    session.loop_limits.is_cancelled = [stop] { return stop->load(); };
    verifier = std::make_unique<Verifier>(*run->graph,
                                          SeededInputSets(*run->graph, run->graph->inputs(), /*seed=*/1, /*count=*/2),
                                          std::move(session), kNoTimeLimit);
    context.measure_outputs = [&verifier](const Graph& graph) { return verifier->MeasureOutputs(graph); };
  }
  const auto checked = [&]() -> absl::Status {
    if (stop->load()) return absl::CancelledError("interrupted");
    return run->callback_error;
  };
  // A definition for each call, which does not start once the run is stopped.
  std::map<std::string, PassDefinition> guarded;
  PipelineOptions options;
  options.find_pass = [&](absl::string_view name) -> absl::StatusOr<const PassDefinition*> {
    PF_ASSIGN_OR_RETURN(const PassDefinition* pass, Find(*run, name));
    PassDefinition& definition = guarded[std::string(name)];
    definition = *pass;
    definition.run = [pass, checked](Graph* graph, const std::vector<PassArgument>& arguments,
                                     PassContext* pass_context) -> absl::StatusOr<int64_t> {
      PF_RETURN_IF_ERROR(checked());
      return pass->run(graph, arguments, pass_context);
    };
    return &definition;
  };
  options.before_pass = [&](size_t index, const PassCall& call) {
    run->running = call.name;
    if (run->progress && !stop->load()) TellProgress(run, index);
  };
  options.after_pass = [&](size_t, const PassReport&, const Graph&) { return checked(); };
  PF_ASSIGN_OR_RETURN(run->reports, RunPipeline(&run->graph, run->calls, &context, options));
  return absl::OkStatus();
}

void ThrowIfFailed(const Run& run, const absl::Status& status) {
  if (status.ok()) return;
  run.raised.Rethrow(status);
  Throw(status, run.running);
}

py::list ReportsToPython(const std::vector<PassReport>& reports) {
  py::list list;
  for (const PassReport& report : reports) {
    py::dict entry;
    entry["name"] = ToPython(report.name);
    entry["call"] = ToPython(report.call);
    entry["rewrites"] = report.rewrites;
    entry["nodes_before"] = report.nodes_before;
    entry["nodes_after"] = report.nodes_after;
    entry["seconds"] = report.seconds;
    entry["ignored_error"] = ToPython(report.ignored_error);
    entry["notes"] = ToPython(absl::MakeConstSpan(report.notes));
    py::list misses;
    for (const MissedRewrite& miss : report.misses) misses.append(ToPython(miss.ToString()));
    entry["misses"] = misses;
    list.append(entry);
  }
  return list;
}

// `transforms` is a list of transform strings and of calls: pairs of a name and a list of pairs of texts.
std::vector<PassCall> CallsFromPython(const py::list& transforms) {
  std::vector<PassCall> calls;
  for (const py::handle item : transforms) {
    if (PyUnicode_Check(item.ptr())) {
      std::vector<PassCall> parsed = ValueOrThrow(ParsePipeline(item.cast<Text>().bytes));
      calls.insert(calls.end(), parsed.begin(), parsed.end());
      continue;
    }
    const auto pair = item.cast<std::tuple<Text, py::list, bool>>();
    PassCall call;
    call.name = std::get<0>(pair).bytes;
    for (const py::handle argument : std::get<1>(pair)) {
      const auto texts = argument.cast<std::pair<Text, Text>>();
      call.arguments.push_back({texts.first.bytes, texts.second.bytes});
    }
    call.ignore_errors = std::get<2>(pair);
    calls.push_back(std::move(call));
  }
  return ValueOrThrow(ExpandPresets(calls));
}

// Returns the new model and a report on each pass.
py::tuple Transform(const Model& model, const py::list& transforms, const py::dict& python_passes, py::object progress,
                    bool explain, int threads) {
  ThrowIfError(model.interface);
  const auto run = std::make_shared<Run>();
  run->calls = CallsFromPython(transforms);
  run->python_passes = PythonPasses(python_passes, &run->raised);
  if (!progress.is_none()) run->progress = Kept(progress.release().ptr());
  run->explain = explain;
  run->num_threads = NumThreads(threads);
  const absl::Status status = RunInterruptibly([run, graph = model.graph](const StopFlag& stop) -> absl::Status {
    run->graph = graph->Clone();
    return Execute(run.get(), stop);
  });
  ThrowIfFailed(*run, status);
  Model result;
  result.graph = std::move(run->graph);
  return py::make_tuple(std::move(result), ReportsToPython(run->reports));
}

// TensorFlow's TransformGraph, from bytes to bytes. `inputs` and `outputs` are declared unchanged.
py::bytes TransformBytes(py::bytes model, std::vector<Text> inputs, std::vector<Text> outputs,
                         const py::list& transforms, const py::dict& python_passes) {
  const auto run = std::make_shared<Run>();
  run->calls = CallsFromPython(transforms);
  run->python_passes = PythonPasses(python_passes, &run->raised);
  run->num_threads = NumThreads(0);
  const absl::string_view bytes(PyBytes_AS_STRING(model.ptr()), static_cast<size_t>(PyBytes_GET_SIZE(model.ptr())));
  const Kept kept(model.release().ptr());
  const std::vector<std::string> feeds = Bytes(std::move(inputs)), fetches = Bytes(std::move(outputs));
  const absl::Status status = RunInterruptibly([=](const StopFlag& stop) -> absl::Status {
    PF_ASSIGN_OR_RETURN(run->graph, ReadModel({bytes, std::make_shared<Kept>(kept)}));
    PF_RETURN_IF_ERROR(run->graph->DeclareInterface(feeds, fetches));
    return Execute(run.get(), stop);
  });
  ThrowIfFailed(*run, status);
  return GraphBytes(*run->graph);
}

}  // namespace

void BindTransforming(py::module_& m) {
  m.def("transform", &Transform);
  m.def("transform_bytes", &TransformBytes);
  m.def("is_pass", [](const Text& name) { return FindPass(name.bytes).ok() || FindPreset(name.bytes) != nullptr; });
}

}  // namespace permafrost::python
