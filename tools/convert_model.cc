// Reads a model, splits fused ops if requested, and writes it.
#include "tools/convert_model.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "graph/base/status.h"
#include "io/model_file.h"
#include "tools/command_line/json.h"
#include "transforms/pipeline/pipeline.h"

namespace permafrost {
namespace {

constexpr absl::string_view kCompressedExtension = ".zst";

std::string FormatNames() {
  std::vector<std::string> names;
  for (const ModelFormat* format : ModelFormats()) {
    if (format->write != nullptr) names.push_back(absl::StrCat(format->name, " (", format->title, ")"));
  }
  return absl::StrJoin(names, ", ");
}

void DefineFlags(ConvertModelOptions* options, FlagTable* flags) {
  flags->Add("in", &options->in, "FILE",
             "Model to read, in any format that is read (detected from its content). '-' is standard input.");
  flags->Add("out", &options->out, "FILE",
             "File to write, atomically. It may be the input file; '-' is standard output. A name that ends in .zst is "
             "compressed.");
  flags->Add("to", &options->to, "FORMAT",
             absl::StrCat("Format to write: ", FormatNames(), ". Default: the format of the extension of --out."));
  flags->Add("defuse", &options->defuse,
             "Split fused convolutions and matrix products into ops that all versions of TensorFlow have (the pass "
             "defuse_ops).");
  flags->Add("json", &options->json, "Print one JSON object instead of text.");
  AddReadFlags(&options->read, flags);
  AddWriteFlags(&options->write, flags);
  flags->MarkCommon({"in", "out", "to", "defuse", "compress", "json"});
  flags->AcceptAsArguments({"in", "out"});
  flags->MarkOutputs({"out"});
}

// Returns the format with the extension of the path; the first of the table if several formats have it.
absl::StatusOr<absl::string_view> FormatOfPath(absl::string_view path) {
  std::vector<std::string> known;
  for (const ModelFormat* format : ModelFormats()) {
    if (format->write == nullptr) continue;
    if (absl::EndsWith(path, format->extension)) return format->name;
    known.push_back(absl::StrCat(format->extension, " (", format->name, ")"));
  }
  return absl::InvalidArgumentError(absl::StrCat("the extension of '", path, "' names no format, expected one of ",
                                                 absl::StrJoin(known, ", "), ", or --to"));
}

absl::StatusOr<SaveOptions> OutputOptions(const ConvertModelOptions& options, FileSystem& files,
                                          const Console& console) {
  absl::string_view path = options.out;
  WriteFlags write = options.write;
  if (absl::ConsumeSuffix(&path, kCompressedExtension) && write.compress.empty()) write.compress = "zstd";
  absl::string_view format = options.to;
  if (format.empty()) {
    PF_ASSIGN_OR_RETURN(format, FormatOfPath(path));
  }
  return MakeSaveOptions(write, format, files, &console);
}

absl::StatusOr<int64_t> Defuse(std::unique_ptr<Graph>* graph) {
  PassContext context;
  PF_ASSIGN_OR_RETURN(const std::vector<PassReport> reports,
                      RunPipeline(graph, {PassCall{"defuse_ops", {}}}, &context));
  return reports.back().rewrites;
}

std::vector<std::string> Names(const std::vector<Endpoint>& endpoints) {
  std::vector<std::string> names;
  for (const Endpoint& endpoint : endpoints) names.push_back(endpoint.text);
  return names;
}

}  // namespace

absl::Status ConvertModel(const ConvertModelOptions& options, FileSystem& files, Console& console) {
  if (options.in.empty()) return absl::InvalidArgumentError("--in is missing, expected the model to read");
  if (options.out.empty()) return absl::InvalidArgumentError("--out is missing, expected where to write");
  PF_ASSIGN_OR_RETURN(const SaveOptions save, OutputOptions(options, files, console));
  console.Progress(absl::StrCat("reading ", options.in));
  PF_ASSIGN_OR_RETURN(std::unique_ptr<Graph> graph, OpenModelFile(files, options.in, options.read, console));
  int64_t defused = 0;
  if (options.defuse) {
    PF_ASSIGN_OR_RETURN(defused, Defuse(&graph));
  }
  console.Progress(absl::StrCat("writing ", options.out));
  PF_RETURN_IF_ERROR(SaveModel(files, *graph, options.out, save));
  PF_ASSIGN_OR_RETURN(const FileStat stat, files.Stat(options.out));
  console.Progress("");
  const std::vector<std::string> inputs = Names(graph->inputs()), outputs = Names(graph->outputs());
  if (options.json) {
    JsonWriter json(console.out);
    json.BeginObject();
    json.Key("out").Text(options.out);
    json.Key("format").Text(save.format);
    json.Key("bytes").Count(stat.size);
    json.Key("nodes").Count(graph->num_nodes());
    json.Key("defused").Integer(defused);
    json.Key("inputs").Texts(inputs);
    json.Key("outputs").Texts(outputs);
    json.End();
    return absl::OkStatus();
  }
  std::string text = absl::StrCat("Wrote ", options.out, ": ", save.format, ", ", FormatCount(graph->num_nodes()),
                                  " nodes, ", FormatBytesExactly(stat.size), "\n");
  if (options.defuse) absl::StrAppend(&text, "Took ", defused, " fused ops apart\n");
  if (!inputs.empty()) absl::StrAppend(&text, "Inputs: ", absl::StrJoin(inputs, ","), "\n");
  if (!outputs.empty()) absl::StrAppend(&text, "Outputs: ", absl::StrJoin(outputs, ","), "\n");
  console.out << Printable(text);
  return absl::OkStatus();
}

Tool ConvertModelTool() {
  return DefineTool<ConvertModelOptions>(
      "convert_model", "converts a model from any format that is read to one that is written",
      {{"Convert a TensorFlow.js model, with unfused convolutions.", "model.json model.pb --defuse"},
       {"Write as text.", "model.pb model.pbtxt"},
       {"Write a graph for Graphviz: dot -Tsvg model.dot > model.svg", "model.pb model.dot"},
       {"Compress for a download.", "model.pb model.pb.zst --compress=zstd:19"}},
      &DefineFlags, &ConvertModel);
}

}  // namespace permafrost
