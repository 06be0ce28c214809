// Freezes the graph that the flags name.
#include "tools/freeze_graph.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "graph/base/status.h"
#include "io/formats/graphdef.h"
#include "io/formats/tflite/tflite.h"
#include "io/model_file.h"
#include "runtime_check/checking/evaluate.h"
#include "tools/command_line/json.h"
#include "tools/model/frozen_model.h"
#include "tools/model/model_location.h"

namespace permafrost {
namespace {

std::vector<std::string> FormatNames() {
  std::vector<std::string> names;
  for (const ModelFormat* format : ModelFormats()) {
    // TensorFlow Lite models are written with a comparison of outputs: convert_model reads SavedModels, too.
    if (format->write != nullptr && format != &kTfliteFormat) names.emplace_back(format->name);
  }
  return names;
}

void DefineFlags(FreezeGraphOptions* options, FlagTable* flags) {
  flags->Add("input_saved_model_dir", &options->input_saved_model_dir, "FOLDER",
             "SavedModel of TensorFlow 1 or 2. Replaces all other inputs.");
  flags->Add("output_graph", &options->output_graph, "FILE",
             "File to write the frozen graph to, atomically. '-' is standard output.");
  flags->Add("output_node_names", &options->output_node_names, "NAMES",
             "Outputs, separated by commas: nodes, or keys of the signature. Default: all outputs of the signature; "
             "inputs and outputs are then named by its keys.");
  flags->Add("input_meta_graph", &options->input_meta_graph, "FILE",
             "MetaGraph (model.ckpt.meta), binary or text, instead of --input_graph.");
  flags->Add("input_graph", &options->input_graph, "FILE", "GraphDef with variables, binary or text.");
  flags->Add("input_checkpoint", &options->input_checkpoint, "PREFIX",
             "Checkpoint with the values of the variables: the common prefix of its files, or one of them.");
  flags->Group("variables and functions");
  flags->Add("clear_devices", &options->clear_devices, "Remove the devices of nodes.");
  flags->Add("initializer_nodes", &options->initializer_nodes, "NAMES",
             "Nodes whose assignments replace the values of the checkpoint, separated by commas.");
  flags->Add("variable_names_whitelist", &options->variable_names_whitelist, "NAMES",
             "Variables to freeze, separated by commas; the others stay variables. Default: all.");
  flags->Add("variable_names_blacklist", &options->variable_names_blacklist, "NAMES",
             "Variables not to freeze, separated by commas.");
  flags->Add("variable_names_denylist", &options->variable_names_blacklist, "NAMES",
             "Same as --variable_names_blacklist.");
  flags->Add("moving_averages", &options->moving_averages,
             "Use the moving average of a variable as its value, if the checkpoint has one.");
  flags->Add("moving_average_suffix", &options->moving_average_suffix, "TEXT",
             "Suffix of the names of moving averages.");
  flags->Add("inline_functions", &options->inline_functions,
             "Inline the bodies of called functions. Otherwise calls stay, with the values as arguments.");
  flags->Add("drop_assignments", &options->drop_assignments,
             "Make variables constant that the graph changes: assignments are dropped, and every read gives the saved "
             "value. Otherwise they stay variables.");
  flags->Add("input_saver", &options->input_saver, "FILE",
             "SaverDef, binary or text, with the name of the node that restores the variables.");
  flags->Add("restore_op_name", &options->restore_op_name, "NAME",
             "Node that restores the variables, if neither MetaGraph nor saver names it.");
  flags->Group("output");
  flags->AddChoice("output_format", &options->output_format, FormatNames(), "Format of the frozen graph.");
  flags->Add("max_time", &options->max_time, "SECONDS",
             "Maximum time of computing initial values, after which nothing is written.");
  flags->Add("dry_run", &options->dry_run, "Freeze, print the report, and write nothing.");
  flags->Add("json", &options->json, "Print one JSON object instead of text.");
  flags->Group("flags of TensorFlow's tool without effect");
  flags->Add("filename_tensor_name", &options->filename_tensor_name, "NAME", "No effect, as in TensorFlow's tool.");
  flags->Add("input_binary", &options->input_binary, "No effect: the content shows whether a file is binary or text.");
  flags->Add("checkpoint_version", &options->checkpoint_version, "N",
             "1 or 2. No effect: the version is detected from the content.");
  flags->Group("");
  AddReadFlags(&options->read, flags);
  AddWriteFlags(&options->write, flags);
  flags->MarkCommon({"input_saved_model_dir", "output_graph", "output_node_names", "input_meta_graph", "input_graph",
                     "input_checkpoint", "output_format", "signature", "saved_model_tags", "dry_run", "json"});
  flags->AcceptAsArguments({"input_saved_model_dir", "output_graph"});
  flags->MarkOutputs({"output_graph"});
}

absl::Status CheckOptions(const FreezeGraphOptions& options) {
  if (options.input_saved_model_dir.empty() && options.input_meta_graph.empty() && options.input_graph.empty()) {
    return absl::InvalidArgumentError(
        "what to freeze is missing: --input_saved_model_dir, --input_meta_graph or --input_graph");
  }
  if (options.output_graph.empty() && !options.dry_run) return absl::InvalidArgumentError("--output_graph is missing");
  if (options.checkpoint_version != 1 && options.checkpoint_version != 2) {
    return absl::InvalidArgumentError(
        absl::StrCat("--checkpoint_version: found ", options.checkpoint_version, ", expected 1 or 2"));
  }
  return absl::OkStatus();
}

absl::StatusOr<FrozenModelRequest> MakeRequest(const FreezeGraphOptions& options, FileSystem& files) {
  FrozenModelRequest request;
  // A part of a SavedModel or of a checkpoint stands for the whole.
  const ModelLocation location = LocateModel(files, options.input_saved_model_dir);
  if (location.has_no_graph() && options.input_graph.empty() && options.input_meta_graph.empty()) {
    return NoGraphError(options.input_saved_model_dir, location);
  }
  request.saved_model = location.is_whole() ? options.input_saved_model_dir : location.saved_model;
  request.meta_graph = location.meta_graph.empty() ? options.input_meta_graph : location.meta_graph;
  request.graph = options.input_graph;
  request.checkpoint = location.checkpoint.empty() ? options.input_checkpoint : location.checkpoint;
  const std::string prefix = CheckpointPrefix(request.checkpoint);
  if (prefix != request.checkpoint && files.Exists(absl::StrCat(prefix, ".index"))) request.checkpoint = prefix;
  request.saver = options.input_saver;
  request.restore_op = options.restore_op_name;
  request.tags = SplitList(options.read.saved_model_tags);
  request.signature = options.read.signature;
  request.outputs = SplitList(options.output_node_names);
  FreezeOptions& freeze = request.options;
  if (options.moving_averages) freeze.naming.average_suffix = options.moving_average_suffix;
  freeze.clear_devices = options.clear_devices;
  freeze.inline_calls = options.inline_functions;
  freeze.drop_assignments = options.drop_assignments;
  freeze.only_variables = SplitList(options.variable_names_whitelist);
  freeze.except_variables = SplitList(options.variable_names_blacklist);
  freeze.initializers = SplitList(options.initializer_nodes);
  return request;
}

uint64_t TotalBytes(const FreezeReport& report) {
  uint64_t bytes = 0;
  for (const FrozenVariable& variable : report.variables) bytes += variable.bytes;
  return bytes;
}

std::vector<std::string> Texts(const std::vector<Endpoint>& endpoints) {
  std::vector<std::string> texts;
  for (const Endpoint& endpoint : endpoints) texts.push_back(endpoint.text);
  return texts;
}

void PrintEndpoints(absl::string_view kind, const std::vector<Endpoint>& endpoints,
                    const std::vector<SignatureTensor>* tensors, const Console& console) {
  for (const Endpoint& endpoint : endpoints) {
    std::string line = absl::StrCat(kind, " ", endpoint.text);
    for (size_t i = 0; tensors != nullptr && i < tensors->size(); ++i) {
      const SignatureTensor& tensor = (*tensors)[i];
      if (tensor.name != endpoint.text) continue;
      if (tensor.key != endpoint.text) absl::StrAppend(&line, "  '", tensor.key, "'");
      absl::StrAppend(&line, "  ", DTypeName(tensor.dtype), tensor.shape.ToString());
    }
    console.out << Printable(line) << "\n";
  }
}

void PrintText(const FrozenModel& model, uint64_t size, const FreezeGraphOptions& options, const Console& console) {
  const FreezeReport& report = model.report;
  const Graph& graph = *model.graph;
  console.out << "Froze " << FormatCount(report.variables.size())
              << (report.variables.size() == 1 ? " variable, " : " variables, ") << FormatBytes(TotalBytes(report))
              << "; " << FormatCount(graph.num_nodes()) << " nodes, before " << FormatCount(report.nodes_before)
              << "\n";
  if (options.moving_averages) {
    size_t averages = 0;
    for (const FrozenVariable& variable : report.variables) averages += variable.is_average ? 1 : 0;
    console.out << FormatCount(averages) << " of the variables have the value of their moving average\n";
  }
  if (model.signature.has_value()) {
    console.out << "Signature '" << Printable(model.signature->name) << "'\n";
  }
  const bool has_signature = model.signature.has_value();
  PrintEndpoints("  input ", graph.inputs(), has_signature ? &model.signature->inputs : nullptr, console);
  PrintEndpoints("  output", graph.outputs(), has_signature ? &model.signature->outputs : nullptr, console);
  if (options.dry_run) {
    console.out << "Would write " << FormatBytesExactly(size) << "\n";
  } else {
    console.out << "Wrote " << Printable(options.output_graph) << ", " << FormatBytesExactly(size) << "\n";
  }
  for (const std::string& note : report.notes) console.err << "note: " << Printable(note) << "\n";
}

void WriteJson(const FrozenModel& model, uint64_t size, const FreezeGraphOptions& options, std::ostream& out) {
  JsonWriter json(out);
  json.BeginObject();
  json.Key("output_graph").Text(options.dry_run ? "" : options.output_graph);
  json.Key("file_bytes").Count(size);
  json.Key("nodes_before").Count(model.report.nodes_before);
  json.Key("nodes").Count(model.graph->num_nodes());
  json.Key("signature").Text(model.signature.has_value() ? model.signature->name : "");
  json.Key("inputs").Texts(Texts(model.graph->inputs()));
  json.Key("outputs").Texts(Texts(model.graph->outputs()));
  json.Key("variable_bytes").Count(TotalBytes(model.report));
  json.Key("variables").BeginArray();
  for (const FrozenVariable& variable : model.report.variables) {
    json.BeginObject();
    json.Key("node").Text(variable.node);
    json.Key("key").Text(variable.key);
    json.Key("type").Text(DTypeName(variable.dtype));
    json.Key("shape").Dimensions(variable.shape);
    json.Key("bytes").Count(variable.bytes);
    json.Key("is_moving_average").Bool(variable.is_average);
    json.End();
  }
  json.End();
  json.Key("stateful_variables").Texts(model.report.stateful);
  json.Key("notes").Texts(model.report.notes);
  json.End();
}

// Returns the error for a file where the folder of a SavedModel is expected: that of reading the file, which names
// other formats with the command that exports them, or that it holds a graph.
absl::Status CheckSavedModel(FileSystem& files, const std::string& path, const ModelOpener& opener) {
  const absl::StatusOr<FileStat> stat = files.Stat(path);
  if (path.empty() || !stat.ok() || !stat->is_regular) return absl::OkStatus();
  PF_RETURN_IF_ERROR(OpenModel(files, path, opener.OptionsFor(path)).status());
  return absl::InvalidArgumentError(
      absl::StrCat("found the graph '", path,
                   "', expected the folder of a SavedModel; a graph with variables is frozen with --input_graph and "
                   "--input_checkpoint, and one without is frozen already"));
}

}  // namespace

absl::Status FreezeGraph(const FreezeGraphOptions& options, FileSystem& files, Console& console) {
  PF_RETURN_IF_ERROR(CheckOptions(options));
  PF_ASSIGN_OR_RETURN(const SaveOptions save, MakeSaveOptions(options.write, options.output_format, files, &console));
  PF_RETURN_IF_ERROR(CheckMaxTime(options.max_time));
  KernelEvaluator evaluator;
  evaluator.LimitTime(options.max_time);
  console.Progress("reading the model");
  PF_ASSIGN_OR_RETURN(FrozenModelRequest request, MakeRequest(options, files));
  const ModelOpener opener(files, options.read, console);
  PF_RETURN_IF_ERROR(CheckSavedModel(files, request.saved_model, opener));
  request.open = opener.OptionsFor(request.graph);
  request.options.evaluator = &evaluator;
  const absl::StatusOr<FrozenModel> opened = OpenFrozenModel(files, request);
  PF_RETURN_IF_ERROR(CheckFoldingTime(evaluator, options.max_time));
  PF_RETURN_IF_ERROR(opened.status());
  const FrozenModel& model = *opened;
  PF_ASSIGN_OR_RETURN(const uint64_t size, EncodedSize(*model.graph, save));
  if (options.output_format == "pb" && size > kMaxGraphDefBytes) {
    return absl::FailedPreconditionError(
        absl::StrCat("the frozen graph needs ", size, " bytes, but a GraphDef has at most ", kMaxGraphDefBytes,
                     "; write a memory-mapped package instead (--output_format=package)"));
  }
  if (!options.dry_run) {
    console.Progress("writing the frozen graph");
    PF_RETURN_IF_ERROR(SaveModel(files, *model.graph, options.output_graph, save));
  }
  console.Progress("");
  if (options.json) {
    WriteJson(model, size, options, console.out);
  } else {
    PrintText(model, size, options, console);
  }
  return absl::OkStatus();
}

Tool FreezeGraphTool() {
  return DefineTool<FreezeGraphOptions>(
      "freeze_graph", "converts a model with variables to a frozen graph",
      {{"Freeze a SavedModel; its signature names inputs and outputs.", "model_folder frozen.pb"},
       {"Freeze a graph and a checkpoint of TensorFlow 1.",
        "--input_graph=graph.pbtxt --input_checkpoint=model.ckpt-1000 --output_node_names=softmax "
        "--output_graph=frozen.pb"},
       {"Freeze moving averages of the variables.",
        "--input_meta_graph=model.ckpt.meta --input_checkpoint=model.ckpt --output_node_names=softmax "
        "--moving_averages --output_graph=frozen.pb"}},
      &DefineFlags, &FreezeGraph);
}

}  // namespace permafrost
