// Shrinks a model and its inputs to a small one that still shows a failure.
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "graph/base/status.h"
#include "io/model_file.h"
#include "tools/command_line/cli.h"
#include "tools/command_line/interruption.h"
#include "tools/command_line/json.h"
#include "tools/model/interface_declaration.h"
#include "tools/model/model_flags.h"
#include "tools/model/model_inputs.h"
#include "tools/reduction/failure_test.h"
#include "tools/reduction/reducer.h"

namespace permafrost {
namespace {

using Clock = std::chrono::steady_clock;

struct ReduceModelOptions {
  std::string in_model;
  std::string out_model;
  std::string out_inputs;
  std::string command;
  std::string text;
  std::optional<double> max_error;
  std::vector<std::string> inputs;
  std::optional<std::string> outputs;
  std::string time = "2m";
  std::string trial_time = "20s";
  int32_t seed = 1;
  bool keep_weights = false;
  bool keep_names = false;
  bool json = false;
  RunFlags run;
  ReadFlags read;
};

void DefineFlags(ReduceModelOptions* options, FlagTable* flags) {
  flags->Add("in_model", &options->in_model, "FILE", "Model that shows the failure.");
  flags->Add("out_model", &options->out_model, "FILE",
             "Smallest model found so far, written whenever a smaller one is found (.pb, or .pbtxt for text).");
  flags->Add(
      "command", &options->command, "COMMAND",
      "Command line that fails with the model. {} stands for the path of a model (default: at the end), {inputs} "
      "for its inputs as INPUT=FILE, separated by commas. The failure is its exit status, unless --text is given.");
  flags->Add("text", &options->text, "TEXT", "Text in the output of the command that is the failure.");
  flags->Add(
      "max_error", &options->max_error, "X",
      "Failure without a command: an output that differs by more than X of its scale between the built-in kernels "
      "and --delegate, --precision and --custom_ops, or a crash or an error of those.");
  flags->Add("inputs", &options->inputs, "FILES",
             "Inputs that show the failure: NPY files, INPUT=FILE for each of several. Default: random numbers.");
  flags->Add("outputs", &options->outputs, "NAMES", "Outputs of the model, separated by commas. Default: detected.");
  flags->Add("out_inputs", &options->out_inputs, "FOLDER", "Folder for the inputs of the result, as NPY files.");
  flags->Add("time", &options->time, "TIME", "Time limit of the whole reduction, such as 90s or 10m.");
  flags->Add("trial_time", &options->trial_time, "TIME", "Time limit of one trial, each of which is a process.");
  flags->Add("keep_weights", &options->keep_weights, "Keep the values of weights and inputs instead of seeded noise.");
  flags->Add("keep_names", &options->keep_names, "Keep the names of nodes instead of n0, n1, ...");
  flags->Add("seed", &options->seed, "N", "Seed of the noise and of random inputs.");
  flags->Add("json", &options->json, "Print one JSON object instead of text.");
  AddRunFlags(&options->run, flags);
  AddReadFlags(&options->read, flags);
  flags->MarkCommon({"in_model", "out_model", "command", "text", "max_error", "inputs", "outputs", "out_inputs",
                     "delegate", "precision", "custom_ops", "time", "trial_time", "keep_weights", "keep_names", "seed",
                     "json"});
  flags->AcceptAsArguments({"in_model", "out_model"});
  flags->MarkOutputs({"out_model"});
  flags->MarkWritten({"out_inputs"});
  flags->DeclareProcesses();
}

absl::StatusOr<double> SecondsOf(absl::string_view flag, const std::string& text) {
  absl::Duration duration;
  if (absl::ParseDuration(text, &duration) && duration > absl::ZeroDuration() && duration < absl::Hours(24 * 365)) {
    return absl::ToDoubleSeconds(duration);
  }
  return absl::InvalidArgumentError(
      absl::StrCat("--", flag, ": found '", text, "', expected a time such as 90s or 10m"));
}

absl::Status CheckOptions(const ReduceModelOptions& options) {
  if (options.in_model.empty()) return absl::InvalidArgumentError("--in_model is missing");
  if (options.out_model.empty()) return absl::InvalidArgumentError("--out_model is missing");
  if (options.command.empty() == !options.max_error.has_value()) {
    return absl::InvalidArgumentError("expected either --command or --max_error, which say what the failure is");
  }
  if (!options.text.empty() && options.command.empty()) return absl::InvalidArgumentError("--text needs --command");
  if (options.max_error.has_value() && !(*options.max_error >= 0)) {
    return absl::InvalidArgumentError("--max_error: expected at least 0");
  }
  return absl::OkStatus();
}

struct Result {
  std::string failure;
  size_t nodes_before = 0;
  size_t nodes_after = 0;
  double seconds = 0;
  ReductionReport report;
};

void PrintResult(const ReduceModelOptions& options, const Result& result, const Console& console) {
  console.out << "failure: " << Printable(result.failure) << "\n"
              << "nodes: " << FormatCount(result.nodes_before) << " -> " << FormatCount(result.nodes_after) << "\n"
              << "trials: " << result.report.trials << " in " << FormatSeconds(result.seconds)
              << (result.report.was_stopped ? ", stopped early: weights and names may be those of the model" : "")
              << "\n";
  const auto list = [&](absl::string_view title, const std::vector<std::string>& names) {
    if (!names.empty()) console.out << title << Printable(absl::StrJoin(names, ", ")) << "\n";
  };
  list("values that the failure needs: ", result.report.real_constants);
  list("names that the failure needs: ", result.report.real_names);
  console.out << "wrote '" << Printable(options.out_model) << "'\n";
}

void WriteJson(const ReduceModelOptions& options, const Result& result, std::ostream& out) {
  JsonWriter json(out);
  json.BeginObject();
  json.Key("in_model").Text(options.in_model);
  json.Key("out_model").Text(options.out_model);
  json.Key("failure").Text(result.failure);
  json.Key("nodes_before").Count(result.nodes_before);
  json.Key("nodes_after").Count(result.nodes_after);
  json.Key("trials").Integer(result.report.trials);
  json.Key("seconds").Number(result.seconds);
  json.Key("was_stopped").Bool(result.report.was_stopped);
  json.Key("real_values").Texts(result.report.real_constants);
  json.Key("real_names").Texts(result.report.real_names);
  json.End();
}

absl::Status ReduceModel(const ReduceModelOptions& options, FileSystem& files, Console& console) {
  PF_RETURN_IF_ERROR(CheckOptions(options));
  PF_ASSIGN_OR_RETURN(const double most_seconds, SecondsOf("time", options.time));
  FailureSettings failure;
  failure.command = options.command;
  failure.text = options.text;
  failure.max_error = options.max_error.value_or(0);
  failure.run = options.run;
  PF_ASSIGN_OR_RETURN(failure.trial_seconds, SecondsOf("trial_time", options.trial_time));
  // An unwritable path is an error before any work.
  PF_RETURN_IF_ERROR(files.NewWriter(options.out_model).status());
  const Clock::time_point start = Clock::now();
  const auto elapsed = [&] { return std::chrono::duration<double>(Clock::now() - start).count(); };

  console.Progress("reading the model");
  ReducibleModel model;
  PF_ASSIGN_OR_RETURN(model.graph, OpenModelFile(files, options.in_model, options.read, console, /*reads_all=*/true));
  std::vector<std::string> pieces, notes, names;
  for (const std::string& list : options.inputs) {
    for (std::string& piece : SplitList(list)) pieces.push_back(std::move(piece));
  }
  for (const std::string& piece : pieces) {
    if (absl::StrContains(piece, '=')) names.push_back(piece.substr(0, piece.find('=')));
  }
  const std::optional<std::string> named = names.empty() ? std::nullopt : std::make_optional(absl::StrJoin(names, ","));
  PF_RETURN_IF_ERROR(DeclareOrFindInterface(named, options.outputs, model.graph.get(), &notes));
  PF_ASSIGN_OR_RETURN(const std::unique_ptr<FailureTest> test, FailureTest::Create(std::move(failure), files));
  const bool needs_inputs = test->NeedsInputs() || !options.out_inputs.empty();
  model.inputs.resize(model.graph->inputs().size());
  if (!pieces.empty()) {
    PF_ASSIGN_OR_RETURN(const std::vector<InputSet> sets, ReadInputSets(files, pieces, *model.graph));
    if (sets.size() != 1) {
      return absl::InvalidArgumentError(absl::StrCat("--inputs: found ", sets.size(), " sets of inputs, expected one"));
    }
    model.inputs = sets[0];
  } else if (needs_inputs) {
    PF_ASSIGN_OR_RETURN(std::vector<InputSet> sets,
                        SeededInputSets(*model.graph, model.graph->inputs(), static_cast<uint64_t>(options.seed), 1));
    model.inputs = std::move(sets[0]);
  }
  Result result;
  result.nodes_before = model.graph->num_nodes();
  const Interruption interruption;
  console.Progress("running the whole model");
  PF_ASSIGN_OR_RETURN(result.failure, test->Establish(model));

  const auto save = [&](const ReducibleModel& smaller) -> absl::Status {
    SaveOptions save;
    if (absl::EndsWith(options.out_model, ".pbtxt")) save.format = "pbtxt";
    PF_RETURN_IF_ERROR(SaveModel(files, *smaller.graph, options.out_model, save));
    if (options.out_inputs.empty()) return absl::OkStatus();
    PF_RETURN_IF_ERROR(files.MakeDirectory(options.out_inputs));
    return WriteInputs(smaller, options.out_inputs, files).status();
  };
  ReductionSettings settings;
  settings.shows_failure = [&](const ReducibleModel& candidate) { return test->IsShownBy(candidate); };
  if (needs_inputs) {
    settings.compute = [&](const ReducibleModel& whole, const std::vector<std::string>& fetches) {
      return test->Compute(whole, fetches);
    };
  }
  settings.must_stop = [&] { return elapsed() > most_seconds || Interruption::IsRequested(); };
  settings.keep = save;
  settings.progress = [&](const std::string& line) { console.Progress(line); };
  settings.seed = static_cast<uint64_t>(options.seed);
  settings.keep_weights = options.keep_weights;
  settings.keep_names = options.keep_names;
  PF_RETURN_IF_ERROR(save(model));
  PF_ASSIGN_OR_RETURN(result.report, Reduce(settings, &model));
  console.Progress("");
  PF_RETURN_IF_ERROR(save(model));
  result.nodes_after = model.graph->num_nodes();
  result.seconds = elapsed();
  options.json ? WriteJson(options, result, console.out) : PrintResult(options, result, console);
  return absl::OkStatus();
}

}  // namespace

Tool ReduceModelTool() {
  return DefineTool<ReduceModelOptions>(
      "reduce_model", "shrinks a model to the smallest one that still shows a given failure, without its weights",
      {{"Find the part of a model that a converter rejects.",
        "model.pb small.pb --command='convert {}' --text='unsupported attribute'"},
       {"Find the part that a delegate computes wrong.", "model.pb small.pb --delegate=xnnpack --max_error=0.01"}},
      &DefineFlags, &ReduceModel);
}

}  // namespace permafrost
