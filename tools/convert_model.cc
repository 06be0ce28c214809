// Reads a model, splits fused ops if requested, and writes it.
#include "tools/convert_model.h"

#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "graph/base/status.h"
#include "io/formats/tflite/metadata.h"
#include "io/formats/tflite/tflite.h"
#include "io/model_file.h"
#include "runtime_check/threads/processors.h"
#include "tools/command_line/json.h"
#include "tools/model/interface_declaration.h"
#include "tools/selective/program_output.h"
#include "transforms/pipeline/pipeline.h"

namespace permafrost {
namespace {

constexpr absl::string_view kCompressedExtension = ".zst";

std::string FormatNames() {
  std::vector<std::string> names;
  for (const ModelFormat* format : ModelFormats()) {
    if (format->write != nullptr) names.push_back(absl::StrCat(format->name, " (", format->title, ")"));
  }
  names.push_back(absl::StrCat(kProgramFormat, " (program file of a selective runtime)"));
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
  flags->Group("writing TensorFlow Lite models");
  flags->Add("inputs", &options->inputs, "NAMES",
             "Nodes that are fed, separated by commas. Default: those of the signature, or else detected.");
  flags->Add("outputs", &options->outputs, "NAMES",
             "Nodes that are fetched, separated by commas. Default: those of the signature, or else detected.");
  flags->Add("allow_flex", &options->tflite.allow_flex,
             "Write nodes without an operator in TensorFlow Lite as TensorFlow's ops (Flex), which only runtimes with "
             "TensorFlow's kernels run. Default: such nodes are an error.");
  flags->AddChoice("verify", &options->tflite.verify, {"required", "auto", "off"},
                   "Comparison of the written model, read back, with the original on the same inputs. required: write "
                   "nothing if they differ or the original cannot be run. auto: write a model that cannot be run. off: "
                   "no check.");
  flags->Add(
      "verify_inputs", &options->tflite.verify_inputs, "FILES",
      "Inputs for verification: NPY files separated by commas, or INPUT=FILE for each of several inputs. Default: "
      "random numbers.");
  flags->Add(
      "tolerance", &options->tflite.tolerance, "X",
      "Maximum difference of an output, relative to its scale. Default: 0.0001, and no limit for reduced precision.");
  flags->Add("max_time", &options->tflite.max_time, "SECONDS",
             "Maximum time of the runs that verify, after which the model counts as one that cannot be run, and of "
             "folding constants, after which nothing is written.");
  flags->Add(
      "metadata", &options->metadata, "LABELS,MEAN,STD",
      "Metadata to add to the model: a text file with a label of the first output on each line, and the mean and "
      "standard deviation that normalise the first input. Parts may be empty.");
  flags->Group("reading TensorFlow Lite models");
  flags->Add("extract_labels", &options->extract_labels, "FILE",
             "Also write the labels that follow the model to this file. --out may be omitted.");
  flags->Group("quantising TensorFlow Lite models");
  AddTfliteQuantizationFlags(&options->tflite, flags);
  AddImageFlags(&options->tflite.image, flags);
  AddReadFlags(&options->read, flags);
  AddWriteFlags(&options->write, flags);
  flags->MarkCommon({"in", "out", "to", "inputs", "outputs", "quantize", "calibration_inputs", "verify", "defuse",
                     "compress", "json"});
  flags->AcceptAsArguments({"in", "out"});
  flags->MarkOutputs({"out", "extract_labels", "write_calibration"});
}

// Returns the format with the extension of the path; the first of the table if several formats have it.
absl::StatusOr<absl::string_view> FormatOfPath(absl::string_view path) {
  std::vector<std::string> known;
  for (const ModelFormat* format : ModelFormats()) {
    if (format->write == nullptr) continue;
    if (absl::EndsWith(path, format->extension)) return format->name;
    known.push_back(absl::StrCat(format->extension, " (", format->name, ")"));
  }
  known.push_back(absl::StrCat(kProgramExtension, " (", kProgramFormat, ")"));
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

// Reads the value of --metadata.
absl::StatusOr<NewTfliteMetadata> ReadNewMetadata(const std::string& flag, FileSystem& files) {
  NewTfliteMetadata metadata;
  const std::vector<std::string> parts = absl::StrSplit(flag, ',');
  const auto wrong = [&flag](absl::string_view expected) {
    return absl::InvalidArgumentError(absl::StrCat("--metadata: found '", flag, "', expected ", expected));
  };
  if (parts.size() > 3) return wrong("LABELS,MEAN,STD");
  if (!parts[0].empty()) {
    metadata.labels_name = parts[0].substr(parts[0].rfind('/') + 1);
    PF_ASSIGN_OR_RETURN(metadata.labels, files.ReadFile(parts[0]));
  }
  if (parts.size() == 1) return metadata;
  float mean = 0, deviation = 0;
  if (parts.size() == 2 || !absl::SimpleAtof(parts[1], &mean) || !absl::SimpleAtof(parts[2], &deviation) ||
      !std::isfinite(mean) || !std::isfinite(deviation) || deviation <= 0) {
    return wrong("a finite mean and a positive standard deviation");
  }
  metadata.mean = {mean};
  metadata.std = {deviation};
  return metadata;
}

// Writes the labels of a TensorFlow Lite model.
absl::Status ExtractLabels(const ConvertModelOptions& options, const Graph& graph, FileSystem& files) {
  const std::shared_ptr<const TfliteSource> source = TfliteSourceOf(graph);
  if (source == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat("--extract_labels: '", options.in, "' is no ", kTfliteFormat.title));
  }
  absl::StatusOr<std::string> labels = ReadLabels(*source, options.read.max_model_bytes);
  PF_RETURN_IF_ERROR(Annotate(labels.status(), absl::StrCat("'", options.in, "'")));
  return SaveThrough(files, options.extract_labels, {}, labels->size(),
                     [&](ByteSink* sink) { return sink->Append(*labels); });
}

// Returns whether --to or --out asks for a program file.
bool IsProgram(const ConvertModelOptions& options) {
  return options.to.empty() ? absl::EndsWith(options.out, kProgramExtension) : options.to == kProgramFormat;
}

// Writes a program file that was proved. Returns one line about the proof.
absl::StatusOr<std::string> WriteProgram(const ConvertModelOptions& options, Graph* graph, FileSystem& files,
                                         Console& console) {
  std::vector<std::string> notes;
  PF_RETURN_IF_ERROR(DeclareOrFindInterface(options.inputs, options.outputs, graph, &notes));
  for (const std::string& note : notes) console.err << Printable(note) << "\n";
  PF_ASSIGN_OR_RETURN(const std::string bytes, EncodeProgram(*graph, options.tflite.seed));
  PF_RETURN_IF_ERROR(
      SaveThrough(files, options.out, {}, bytes.size(), [&](ByteSink* sink) { return sink->Append(bytes); }));
  return "the outputs equal those of the graph for 2 inputs, bit for bit";
}

// Writes a TensorFlow Lite model that was proved. Returns one line about the proof.
absl::StatusOr<std::string> WriteTfliteModel(const ConvertModelOptions& options, const SaveOptions& save, Graph* graph,
                                             FileSystem& files, Console& console) {
  std::vector<std::string> notes;
  PF_RETURN_IF_ERROR(CheckMaxTime(options.tflite.max_time));
  PF_RETURN_IF_ERROR(DeclareOrFindInterface(options.inputs, options.outputs, graph, &notes));
  for (const std::string& note : notes) console.err << Printable(note) << "\n";
  PF_ASSIGN_OR_RETURN(TfliteOutput output, EncodeTflite(*graph, options.tflite, AvailableProcessors(), files));
  if (!options.metadata.empty()) {
    PF_ASSIGN_OR_RETURN(const NewTfliteMetadata metadata, ReadNewMetadata(options.metadata, files));
    PF_ASSIGN_OR_RETURN(output.bytes, WithMetadata(output.bytes, metadata));
  }
  PF_RETURN_IF_ERROR(SaveThrough(files, options.out, save.filters, output.bytes.size(),
                                 [&](ByteSink* sink) { return sink->Append(output.bytes); }));
  (options.json ? console.err : console.out) << QuantizationText(output);
  return ProofText(output.verdict);
}

}  // namespace

absl::Status ConvertModel(const ConvertModelOptions& options, FileSystem& files, Console& console) {
  if (options.in.empty()) return absl::InvalidArgumentError("--in is missing, expected the model to read");
  if (options.out.empty() && !options.extract_labels.empty()) {
    PF_ASSIGN_OR_RETURN(const std::unique_ptr<Graph> graph, OpenModelFile(files, options.in, options.read, console));
    return ExtractLabels(options, *graph, files);
  }
  if (options.out.empty()) return absl::InvalidArgumentError("--out is missing, expected where to write");
  if (options.tflite.tolerance.value_or(0) < 0) return absl::InvalidArgumentError("--tolerance is negative");
  const bool is_program = IsProgram(options);
  SaveOptions save;
  if (is_program) {
    if (!options.write.compress.empty()) {
      return absl::InvalidArgumentError("--compress: a selective runtime reads no compressed program file");
    }
    save.format = kProgramFormat;
  } else {
    PF_ASSIGN_OR_RETURN(save, OutputOptions(options, files, console));
  }
  if (options.tflite.quantize != "none" && save.format != kTfliteFormat.name) {
    return absl::InvalidArgumentError(absl::StrCat("--quantize=", options.tflite.quantize, " is for the format ",
                                                   kTfliteFormat.name, ", found ", save.format));
  }
  if (!options.metadata.empty() && save.format != kTfliteFormat.name) {
    return absl::InvalidArgumentError(
        absl::StrCat("--metadata is for the format ", kTfliteFormat.name, ", found ", save.format));
  }
  console.Progress(absl::StrCat("reading ", options.in));
  PF_ASSIGN_OR_RETURN(std::unique_ptr<Graph> graph, OpenModelFile(files, options.in, options.read, console));
  if (!options.extract_labels.empty()) PF_RETURN_IF_ERROR(ExtractLabels(options, *graph, files));
  int64_t defused = 0;
  if (options.defuse) {
    PF_ASSIGN_OR_RETURN(defused, Defuse(&graph));
  }
  console.Progress(absl::StrCat("writing ", options.out));
  std::string proof;
  if (save.format == kTfliteFormat.name) {
    PF_ASSIGN_OR_RETURN(proof, WriteTfliteModel(options, save, graph.get(), files, console));
  } else if (is_program) {
    PF_ASSIGN_OR_RETURN(proof, WriteProgram(options, graph.get(), files, console));
  } else {
    PF_RETURN_IF_ERROR(SaveModel(files, *graph, options.out, save));
  }
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
    if (!proof.empty()) json.Key("proof").Text(proof);
    json.End();
    return absl::OkStatus();
  }
  std::string text = absl::StrCat("Wrote ", Printable(options.out), ": ", save.format, ", ",
                                  FormatCount(graph->num_nodes()), " nodes, ", FormatBytesExactly(stat.size), "\n");
  if (options.defuse) absl::StrAppend(&text, "Took ", defused, " fused ops apart\n");
  if (!inputs.empty()) absl::StrAppend(&text, "Inputs: ", Printable(absl::StrJoin(inputs, ",")), "\n");
  if (!outputs.empty()) absl::StrAppend(&text, "Outputs: ", Printable(absl::StrJoin(outputs, ",")), "\n");
  if (!proof.empty()) absl::StrAppend(&text, "Proof: ", Printable(proof), "\n");
  console.out << text;
  return absl::OkStatus();
}

Tool ConvertModelTool() {
  return DefineTool<ConvertModelOptions>(
      "convert_model", "converts a model from any format that is read to one that is written",
      {{"Write a TensorFlow Lite model in eight bits, with ranges from a folder of pictures.",
        "model.pb model.tflite --quantize=int8 --calibration_inputs=pictures"},
       {"Convert a TensorFlow.js model, with unfused convolutions.", "model.json model.pb --defuse"},
       {"Write a TensorFlow Lite model, and compare its outputs with those of the original.", "model.pb model.tflite"},
       {"Write as text.", "model.pb model.pbtxt"},
       {"Plan a model for a selective runtime.", "model.tflite model.program"},
       {"Write a graph for Graphviz: dot -Tsvg model.dot > model.svg", "model.pb model.dot"},
       {"Compress for a download.", "model.pb model.pb.zst --compress=zstd:19"}},
      &DefineFlags, &ConvertModel);
}

}  // namespace permafrost
