// Prints the summary of a graph.
#include "tools/summarize_graph.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "graph/analysis/order.h"
#include "graph/base/status.h"
#include "io/formats/tflite/metadata.h"
#include "io/formats/zstd.h"
#include "io/model_file.h"
#include "tools/certificate/certificate.h"
#include "tools/certificate/embedded_certificate.h"
#include "tools/command_line/certificate_path.h"
#include "tools/command_line/json.h"
#include "tools/summary/accelerators.h"
#include "tools/summary/compressed_sizes.h"
#include "tools/summary/effects.h"
#include "tools/summary/graph_summary.h"
#include "tools/summary/summary_format.h"
#include "tools/summary/tflite_facts.h"

namespace permafrost {
namespace {

std::string ShapeText(const Node& node) {
  const AttrValue* value = node.FindAttr("shape");
  if (value == nullptr) return "None";
  const absl::StatusOr<Shape> shape = value->AsShape();
  return shape.ok() ? shape->ToString() : std::string(shape.status().message());
}

DType TypeOf(const Node& node) {
  const AttrValue* value = node.FindAttr("dtype");
  if (value == nullptr) return DType::kInvalid;
  return value->AsType().value_or(DType::kInvalid);
}

std::string TypeText(DType dtype) { return dtype == DType::kInvalid ? "INVALID" : DTypeName(dtype); }

// Returns "(name=x, type=float(1), shape=[?,8]) " for each node.
std::string FeedItems(const std::vector<const Node*>& nodes) {
  std::string text;
  for (const Node* node : nodes) {
    absl::StrAppend(&text, "(name=", node->name(), ", type=", TypeText(TypeOf(*node)), "(",
                    static_cast<int32_t>(TypeOf(*node)), "), shape=", ShapeText(*node), ") ");
  }
  return text;
}

// Returns the dimensions, with -1 for unknown ones; nothing if TensorFlow's tool prints nothing.
std::string BenchmarkShape(const Node& node) {
  const AttrValue* value = node.FindAttr("shape");
  const absl::StatusOr<Shape> shape = value == nullptr ? absl::NotFoundError("") : value->AsShape();
  return shape.ok() && shape->has_rank() ? absl::StrJoin(shape->dims(), ",") : "";
}

// Returns the text as one word for a shell.
std::string ShellWord(absl::string_view text) {
  const bool is_plain = std::all_of(text.begin(), text.end(), [](char c) {
    return absl::ascii_isalnum(c) || absl::string_view("/._-,:=+@").find(c) != absl::string_view::npos;
  });
  if (is_plain && !text.empty()) return std::string(text);
  return absl::StrCat("'", absl::StrReplaceAll(text, {{"'", "'\\''"}}), "'");
}

// Returns the command that measures the graph. Inputs, outputs and shapes that are in doubt are left to the user.
std::string BenchmarkCommand(const GraphSummary& summary, const std::string& path) {
  std::string command = absl::StrCat("benchmark_model ", ShellWord(path), " --delegate=onednn");
  if (!summary.interface.inputs_doubt.empty()) absl::StrAppend(&command, " --input_layer=NAMES");
  if (!summary.interface.outputs_doubt.empty()) absl::StrAppend(&command, " --output_layer=NAMES");
  return command;
}

// Returns the command that the original tool suggests.
std::string OriginalBenchmarkCommand(const GraphSummary& summary, const std::string& path) {
  std::vector<const Node*> feeds = summary.placeholders;
  feeds.insert(feeds.end(), summary.variables.begin(), summary.variables.end());
  const auto name = [](std::string* out, const Node* node) { absl::StrAppend(out, node->name()); };
  return absl::StrCat(
      "bazel run tensorflow/tools/benchmark:benchmark_model -- --graph=", path,
      " --show_flops --input_layer=", absl::StrJoin(feeds, ",", name), " --input_layer_type=",
      absl::StrJoin(feeds, ",",
                    [](std::string* out, const Node* node) { absl::StrAppend(out, TypeText(TypeOf(*node))); }),
      " --input_layer_shape=",
      absl::StrJoin(feeds, ":",
                    [](std::string* out, const Node* node) { absl::StrAppend(out, BenchmarkShape(*node)); }),
      " --output_layer=", absl::StrJoin(summary.unread, ",", name));
}

void PrintOriginalLines(const GraphSummary& summary, const std::string& path, std::ostream& out) {
  std::string text;
  if (summary.placeholders.empty()) {
    absl::StrAppend(&text, "No inputs spotted.\n");
  } else {
    absl::StrAppend(&text, "Found ", summary.placeholders.size(),
                    " possible inputs: ", Printable(FeedItems(summary.placeholders)), "\n");
  }
  if (summary.variables.empty()) {
    absl::StrAppend(&text, "No variables spotted.\n");
  } else {
    absl::StrAppend(&text, "Found ", summary.variables.size(), " variables: ", Printable(FeedItems(summary.variables)),
                    "\n");
  }
  if (summary.unread.empty()) {
    absl::StrAppend(&text, "No outputs spotted.\n");
  } else {
    absl::StrAppend(&text, "Found ", summary.unread.size(), " possible outputs: ");
    for (const Node* node : summary.unread) {
      absl::StrAppend(&text, "(name=", Printable(node->name()), ", op=", Printable(node->op().name()), ") ");
    }
    absl::StrAppend(&text, "\n");
  }
  // TensorFlow's tool looks for values in variables, which hold none: always 0.
  absl::StrAppend(&text, "Found ", summary.const_parameters, " (", HumanCount(summary.const_parameters),
                  ") const parameters, 0 (0) variable parameters, and ", summary.control_edges, " control_edges\n");
  for (const auto& [device, count] : summary.devices) {
    absl::StrAppend(&text, count, " nodes assigned to device '", Printable(device), "'\n");
  }
  absl::StrAppend(&text, "Op types used: ",
                  absl::StrJoin(summary.ops, ", ",
                                [](std::string* out, const auto& op) {
                                  absl::StrAppend(out, op.second, " ", Printable(op.first));
                                }),
                  "\n", "To use with tensorflow/tools/benchmark:benchmark_model try these arguments:\n",
                  Printable(OriginalBenchmarkCommand(summary, path)), "\n");
  out << text;
}

absl::Status PrintStructure(const Graph& graph, std::ostream& out) {
  PF_ASSIGN_OR_RETURN(const std::vector<Node*> order, StackTopologicalOrder(graph));
  for (const Node* node : order) {
    std::string line = absl::StrCat(node->name(), " (", node->op().name(), "): [");
    for (int i = 0; i < node->num_inputs(); ++i) {
      const std::string spelled = node->input_spells_zero(i) ? ":0" : "";
      absl::StrAppend(&line, i == 0 ? "" : ", ", node->input(i).ToString(), spelled);
    }
    absl::StrAppend(&line, "]");
    if (node->op() == ops::kConst) {
      const absl::StatusOr<Tensor> value = ConstValue(*node);
      if (value.ok()) absl::StrAppend(&line, ", value=", TensorText(*value));
    }
    out << Printable(line) << "\n";
  }
  return absl::OkStatus();
}

void PrintFound(absl::string_view kind, const std::vector<FoundEndpoint>& endpoints, const std::string& doubt,
                const Console& console) {
  for (const FoundEndpoint& endpoint : endpoints) {
    console.out << "  " << (endpoint.is_chosen ? "" : "not an ") << kind << " '" << Printable(endpoint.name()) << "' ("
                << Printable(endpoint.node->op().name()) << "): " << endpoint.reason << "\n";
  }
  if (!doubt.empty()) console.out << "  the " << kind << "s are in doubt: " << Printable(doubt) << "\n";
}

void PrintIssues(absl::string_view title, const std::vector<OpIssue>& issues, const Console& console) {
  if (issues.empty()) return;
  console.out << "\n" << title << "\n";
  Table table({{"op"}, {"nodes", true}, {"why"}});
  for (const OpIssue& issue : issues) table.AddRow({issue.op, FormatCount(issue.count), issue.reason});
  table.Print(console, "  ");
}

// Bytes of the file, and of the graph as a binary GraphDef compressed with zstd at its default level.
struct ModelSize {
  uint64_t file = 0;
  uint64_t compressed = 0;
};

void PrintAdditions(const GraphSummary& summary, const Graph& graph, const std::string& path, const ModelSize& size,
                    const Console& console) {
  console.out << "\n"
              << console.Styled(Style::kBold, "More about this graph") << "\n"
              << "File: " << FormatBytesExactly(size.file) << ", compressed with zstd " << FormatBytes(size.compressed)
              << ", " << FormatCount(graph.num_nodes()) << " nodes\n";
  console.out << "\nInputs and outputs, as transform_graph takes them when none are named\n";
  PrintFound("input", summary.interface.inputs, summary.interface.inputs_doubt, console);
  PrintFound("output", summary.interface.outputs, summary.interface.outputs_doubt, console);
  console.out << "\nMemory of constants by type\n";
  Table types({{"type"}, {"tensors", true}, {"elements", true}, {"bytes", true}});
  for (const auto& [type, use] : summary.weights_by_type) {
    types.AddRow({type, FormatCount(use.num_tensors), FormatCount(static_cast<uint64_t>(use.num_elements)),
                  type == "string" ? "" : FormatCount(use.bytes)});
  }
  types.Print(console, "  ");
  if (summary.num_functions > 0) {
    console.out << "  of these in the bodies of " << FormatCount(summary.num_functions)
                << (summary.num_functions == 1 ? " function: " : " functions: ")
                << FormatCount(static_cast<uint64_t>(summary.function_parameters)) << " parameters\n";
  }
  console.out << "\nLargest constants\n";
  Table largest({{"name"}, {"type"}, {"shape"}, {"bytes", true}});
  for (const ConstantInfo& info : summary.largest) {
    const std::string place = info.function.empty() ? "" : absl::StrCat(" (function ", info.function, ")");
    largest.AddRow({absl::StrCat(info.node->name(), place), DTypeName(info.dtype), info.shape.ToString(),
                    info.dtype == DType::kString ? "" : FormatCount(info.bytes)});
  }
  largest.Print(console, "  ");
  console.out << "\nArithmetic of one inference, batch of one, a multiplication and an addition counted as two\n";
  if (!summary.flops.status.ok()) {
    console.out << "  not known: " << Printable(summary.flops.status.message()) << "\n";
  } else {
    Table flops({{"op"}, {"FLOPs", true}, {"", true}});
    for (const auto& [op, count] : summary.flops.by_op) {
      flops.AddRow({op, FormatCount(count), HumanCount(static_cast<int64_t>(count))});
    }
    flops.AddRow({"all", FormatCount(summary.flops.total), HumanCount(static_cast<int64_t>(summary.flops.total))});
    flops.Print(console, "  ");
    if (summary.flops.num_unknown > 0) {
      console.out << "  and " << summary.flops.num_unknown << " nodes whose shapes are not known\n";
    }
  }
  console.out << "\nLatency on this machine\n  " << Printable(BenchmarkCommand(summary, path)) << "\n";
  PrintIssues("Ops that are not known; they are carried through untouched", summary.unknown_ops, console);
  PrintIssues("Ops that the reference runtime cannot run", summary.without_kernel, console);
}

void WriteFound(const std::vector<FoundEndpoint>& endpoints, JsonWriter* json) {
  json->BeginArray();
  for (const FoundEndpoint& endpoint : endpoints) {
    json->BeginObject();
    json->Key("name").Text(endpoint.name());
    json->Key("op").Text(endpoint.node->op().name());
    json->Key("is_chosen").Bool(endpoint.is_chosen);
    json->Key("reason").Text(endpoint.reason);
    if (endpoint.node->HasAttr("dtype")) json->Key("type").Text(TypeText(TypeOf(*endpoint.node)));
    if (endpoint.node->HasAttr("shape")) {
      json->Key("shape").Dimensions(ShapeAttr(*endpoint.node, "shape").value_or(Shape::UnknownRank()));
    }
    json->End();
  }
  json->End();
}

void WriteIssues(absl::string_view key, const std::vector<OpIssue>& issues, JsonWriter* json) {
  json->Key(key).BeginArray();
  for (const OpIssue& issue : issues) {
    json->BeginObject();
    json->Key("op").Text(issue.op);
    json->Key("nodes").Count(issue.count);
    json->Key("reason").Text(issue.reason);
    json->End();
  }
  json->End();
}

void WriteJson(const GraphSummary& summary, const Graph& graph, const std::string& path, const ModelSize& size,
               const std::vector<CompressedSizes>& downloads, const std::optional<TfliteFacts>& facts,
               std::ostream& out) {
  JsonWriter json(out);
  json.BeginObject();
  json.Key("graph").Text(path);
  json.Key("file_bytes").Count(size.file);
  json.Key("compressed_bytes").Count(size.compressed);
  json.Key("nodes").Count(graph.num_nodes());
  json.Key("inputs");
  WriteFound(summary.interface.inputs, &json);
  json.Key("inputs_doubt").Text(summary.interface.inputs_doubt);
  json.Key("outputs");
  WriteFound(summary.interface.outputs, &json);
  json.Key("outputs_doubt").Text(summary.interface.outputs_doubt);
  json.Key("variables").Count(summary.variables.size());
  json.Key("const_parameters").Integer(summary.const_parameters);
  json.Key("functions").Count(summary.num_functions);
  json.Key("function_parameters").Integer(summary.function_parameters);
  json.Key("control_edges").Integer(summary.control_edges);
  json.Key("devices").BeginObject();
  for (const auto& [device, count] : summary.devices) json.Key(device).Integer(count);
  json.End();
  json.Key("ops").BeginObject();
  for (const auto& [op, count] : summary.ops) json.Key(op).Integer(count);
  json.End();
  json.Key("constants_by_type").BeginObject();
  for (const auto& [type, use] : summary.weights_by_type) {
    json.Key(type).BeginObject();
    json.Key("tensors").Count(use.num_tensors);
    json.Key("elements").Integer(use.num_elements);
    json.Key("bytes").Count(use.bytes);
    json.End();
  }
  json.End();
  json.Key("largest_constants").BeginArray();
  for (const ConstantInfo& info : summary.largest) {
    json.BeginObject();
    json.Key("name").Text(info.node->name());
    json.Key("function").Text(info.function);
    json.Key("type").Text(DTypeName(info.dtype));
    json.Key("shape").Dimensions(info.shape);
    json.Key("bytes").Count(info.bytes);
    json.End();
  }
  json.End();
  json.Key("flops").BeginObject();
  json.Key("total").Count(summary.flops.total);
  json.Key("by_op").BeginObject();
  for (const auto& [op, count] : summary.flops.by_op) json.Key(op).Count(count);
  json.End();
  json.Key("nodes_with_unknown_shapes").Count(summary.flops.num_unknown);
  json.Key("error").Text(summary.flops.status.message());
  json.End();
  WriteIssues("unknown_ops", summary.unknown_ops, &json);
  WriteIssues("ops_without_kernel", summary.without_kernel, &json);
  if (!downloads.empty()) {
    json.Key("compressed_sizes");
    WriteCompressedSizes(downloads, &json);
  }
  if (facts.has_value()) {
    json.Key("tflite");
    WriteTfliteFacts(*facts, &json);
  }
  json.Key("benchmark_command").Text(BenchmarkCommand(summary, path));
  json.End();
}

// Returns "node 'a' (Print)", with the function that contains it.
std::string SourceText(const EffectSource& source) {
  if (source.node.empty() && source.function.empty()) return source.reason;
  std::string text = source.node.empty() ? "" : absl::StrCat("node '", source.node, "' (", source.op, ")");
  if (!source.function.empty()) {
    absl::StrAppend(&text, text.empty() ? "" : " of ", "function '", source.function, "'");
  }
  if (!source.reason.empty()) absl::StrAppend(&text, ": ", source.reason);
  return text;
}

void PrintEffects(const std::vector<FoundEffect>& effects, const absl::flat_hash_set<std::string>& forbidden,
                  const Console& console) {
  constexpr size_t kMostShown = 5;  // Sources of an effect, as far as they fit a screen; --json has all.
  if (effects.empty()) console.out << "This graph only computes its outputs.\n";
  for (const FoundEffect& effect : effects) {
    const bool is_forbidden = forbidden.contains(effect.kind->name);
    std::string line =
        absl::StrCat(effect.kind->description, " (", effect.kind->name, "), ", FormatCount(effect.sources.size()),
                     effect.sources.size() == 1 ? " place: " : " places: ");
    for (size_t i = 0; i < effect.sources.size() && i < kMostShown; ++i) {
      absl::StrAppend(&line, i == 0 ? "" : "; ", SourceText(effect.sources[i]));
    }
    if (effect.sources.size() > kMostShown) {
      absl::StrAppend(&line, "; and ", FormatCount(effect.sources.size() - kMostShown), " more");
    }
    console.out << (is_forbidden ? console.Styled(Style::kBad, "forbidden: ") : "") << Printable(line) << "\n";
  }
}

void WriteEffects(const std::vector<FoundEffect>& effects, const absl::flat_hash_set<std::string>& forbidden,
                  const std::string& path, std::ostream& out) {
  JsonWriter json(out);
  json.BeginObject();
  json.Key("graph").Text(path);
  json.Key("only_computes").Bool(effects.empty());
  json.Key("effects").BeginArray();
  for (const FoundEffect& effect : effects) {
    json.BeginObject();
    json.Key("effect").Text(effect.kind->name);
    json.Key("description").Text(effect.kind->description);
    json.Key("is_forbidden").Bool(forbidden.contains(effect.kind->name));
    json.Key("sources").BeginArray();
    for (const EffectSource& source : effect.sources) {
      json.BeginObject();
      json.Key("node").Text(source.node);
      json.Key("op").Text(source.op);
      json.Key("function").Text(source.function);
      json.Key("reason").Text(source.reason);
      json.End();
    }
    json.End();
    json.End();
  }
  json.End();
  json.End();
}

// Returns the ops that --allow_ops names: those in the file, if there is one of that name, else the listed ones.
absl::StatusOr<absl::flat_hash_set<std::string>> AllowedOps(const std::string& value, FileSystem& files) {
  if (files.Stat(value).ok()) {
    PF_ASSIGN_OR_RETURN(const std::string text, files.ReadFile(value));
    return ParseOpList(text);
  }
  const absl::flat_hash_set<std::string> ops = ParseOpList(value);
  for (const std::string& op : ops) {
    // Names of ops have neither dots nor slashes, names of files mostly do.
    if (op.find_first_of("./") == std::string::npos) continue;
    return absl::NotFoundError(absl::StrCat("--allow_ops: there is no file '", value, "', and '", op, "' names no op"));
  }
  return ops;
}

absl::Status ReportEffects(const SummarizeGraphOptions& options, const Graph& graph, FileSystem& files,
                           const Console& console) {
  PF_ASSIGN_OR_RETURN(absl::flat_hash_set<std::string> forbidden, ParseForbiddenEffects(options.forbid));
  absl::flat_hash_set<std::string> allowed;
  if (!options.allow_ops.empty()) {
    PF_ASSIGN_OR_RETURN(allowed, AllowedOps(options.allow_ops, files));
    forbidden.insert("other_ops");
  }
  PF_ASSIGN_OR_RETURN(const std::vector<FoundEffect> effects,
                      FindEffects(graph, options.allow_ops.empty() ? nullptr : &allowed));
  console.Progress("");
  if (options.json) {
    WriteEffects(effects, forbidden, options.in_graph, console.out);
  } else {
    PrintEffects(effects, forbidden, console);
  }
  std::vector<std::string> found;
  for (const FoundEffect& effect : effects) {
    if (!forbidden.contains(effect.kind->name)) continue;
    found.push_back(
        absl::StrCat(effect.kind->description, " (", effect.kind->name, "): ", SourceText(effect.sources[0])));
  }
  if (found.empty()) return absl::OkStatus();
  return AnswerIsNo(
      absl::StrCat(options.in_graph, ": the graph has forbidden effects; it ", absl::StrJoin(found, "; it ")));
}

// Prints one line for each group, with the first results of its operators.
void PrintGroups(absl::string_view title, const std::vector<OperatorGroup>& groups, const Console& console) {
  if (groups.empty()) return;
  console.out << title << "\n";
  constexpr size_t kMostNames = 3;
  for (const OperatorGroup& group : groups) {
    std::vector<std::string> names;
    for (size_t i = 0; i < std::min(kMostNames, group.results.size()); ++i) {
      names.push_back(absl::StrCat("'", Printable(group.results[i]), "'"));
    }
    console.out << "  " << group.results.size() << " x " << Printable(group.op);
    if (!group.reason.empty()) console.out << ": " << Printable(group.reason);
    console.out << " (" << absl::StrJoin(names, ", ");
    if (group.results.size() > kMostNames) console.out << " and " << group.results.size() - kMostNames << " more";
    console.out << ")\n";
  }
}

void WriteGroups(absl::string_view key, const std::vector<OperatorGroup>& groups, JsonWriter* json) {
  json->Key(key).BeginArray();
  for (const OperatorGroup& group : groups) {
    json->BeginObject();
    json->Key("op").Text(group.op);
    if (!group.reason.empty()) json->Key("reason").Text(group.reason);
    json->Key("results").BeginArray();
    for (const std::string& result : group.results) json->Text(result);
    json->End().End();
  }
  json->End();
}

// Prints what an accelerator would leave to the CPU.
absl::Status ReportAccelerator(const SummarizeGraphOptions& options, FileSystem& files, const Console& console) {
  PF_ASSIGN_OR_RETURN(const Accelerator accelerator, FindAccelerator(options.target, files));
  PF_ASSIGN_OR_RETURN(const FileView file, files.MapFile(options.in_graph));
  const absl::StatusOr<AcceleratorReport> checked = CheckAccelerator(accelerator, file);
  PF_RETURN_IF_ERROR(Annotate(checked.status(), absl::StrCat("--target: '", options.in_graph, "'")));
  const AcceleratorReport& report = *checked;
  int64_t fallbacks = 0;
  for (const OperatorGroup& group : report.fallbacks) fallbacks += static_cast<int64_t>(group.results.size());
  if (options.json) {
    JsonWriter json(console.out);
    json.BeginObject();
    json.Key("graph").Text(options.in_graph);
    json.Key("target").Text(accelerator.name);
    json.Key("title").Text(accelerator.title);
    json.Key("source").Text(accelerator.source);
    json.Key("date").Text(accelerator.date);
    json.Key("operators").Integer(report.operators);
    json.Key("falls_back").Integer(fallbacks);
    WriteGroups("fallbacks", report.fallbacks, &json);
    WriteGroups("conditions", report.conditions, &json);
    WriteGroups("unchecked_rows", report.unchecked, &json);
    json.End();
    return absl::OkStatus();
  }
  console.out << "Target: " << Printable(accelerator.name) << ", " << Printable(accelerator.title) << "\n"
              << "Source of the table: " << Printable(accelerator.source) << " (read: " << Printable(accelerator.date)
              << ")\n"
              << report.operators - fallbacks << " of " << report.operators << " operators are in the table; "
              << fallbacks << " would fall back to the CPU.\n";
  PrintGroups("Fall back:", report.fallbacks, console);
  PrintGroups("Computed under a condition that is not evaluated here:", report.conditions, console);
  PrintGroups("Computed by rows that were not checked against their source:", report.unchecked, console);
  return absl::OkStatus();
}

// Prints the certificate in the model or beside it, if there is one.
void PrintCertificate(const std::string& model, FileSystem& files, const Console& console) {
  if (model == "-") return;
  std::string embedded;
  const absl::StatusOr<CertifiedFile> file = CertifyModel(files, model, &embedded);
  const std::string path = embedded.empty() ? CertificatePath(model) : model;
  if (embedded.empty() && !files.Exists(path)) return;
  console.out << "\nCertificate " << (embedded.empty() ? "'" : "in '") << Printable(path) << "'\n";
  const absl::StatusOr<std::string> text = embedded.empty() ? files.ReadFile(path) : embedded;
  const absl::StatusOr<Certificate> certificate = text.ok() ? ParseCertificate(*text) : text.status();
  if (!certificate.ok()) {
    console.out << "  not valid: " << Printable(certificate.status().message()) << "\n";
    return;
  }
  const bool is_model = file.ok() && file->sha256 == certificate->model.sha256;
  console.out << "  " << Printable(certificate->tool) << ", " << Printable(certificate->date) << ", "
              << Printable(certificate->machine) << "\n"
              << "  " << (is_model ? "of this file" : "of another file: this one was altered") << "; original "
              << Printable(certificate->original.sha256) << "\n";
  for (const CertifiedMeasure& measure : certificate->measures) {
    console.out << "  " << Printable(measure.inputs) << " inputs: rms error "
                << FormatNumber(100 * measure.relative_rms) << " %";
    if (measure.labelled_rows > 0) {
      console.out << ", " << measure.right << " of " << measure.labelled_rows << " right (original "
                  << measure.reference_right << ")";
    }
    console.out << "\n";
  }
}

void DefineFlags(SummarizeGraphOptions* options, FlagTable* flags) {
  flags->Add("in_graph", &options->in_graph, "FILE",
             "Model to read, in any format that is read (detected from its content). '-' is standard input.");
  flags->Add("print_structure", &options->print_structure,
             "Also print each node with its inputs, and the first elements of constants, in topological order.");
  flags->Add("compressed_sizes", &options->compressed_sizes,
             "Also print the sizes compressed with gzip and zstd: of the graph as it is, and after round_weights and "
             "quantize_weights.");
  flags->Add(
      "effects", &options->effects,
      "Print what running the graph can do besides computing its outputs (files, printing, random numbers, state, "
      "endless loops, code from libraries, network) instead of the summary.");
  flags->Add(
      "forbid", &options->forbid, "EFFECTS",
      "Print effects, and fail with exit status 1 if the graph has one of these: read_files, write_files, files, "
      "network, code, print, random, state, loop, wait, fail, environment, device, all. Separated by commas.");
  flags->Add("allow_ops", &options->allow_ops, "FILE|OPS",
             "Print effects, and fail with exit status 1 if the graph has an op outside of this list: a file, or names "
             "separated by commas.");
  flags->Add(
      "target", &options->target, "NAME|FILE",
      "Print which operators of a .tflite an accelerator would leave to the CPU: gpu, edgetpu, hexagon, ethos-u, "
      "nnapi, or a file with a table of operators.");
  flags->Add("json", &options->json, "Print one JSON object instead of text.");
  AddReadFlags(&options->read, flags);
  flags->MarkCommon(
      {"in_graph", "print_structure", "compressed_sizes", "effects", "forbid", "allow_ops", "target", "json"});
  flags->AcceptAsArguments({"in_graph"});
}

}  // namespace

absl::Status SummarizeGraph(const SummarizeGraphOptions& options, FileSystem& files, Console& console) {
  if (options.in_graph.empty()) return absl::InvalidArgumentError("in_graph graph can't be empty.");
  if (!options.target.empty()) return ReportAccelerator(options, files, console);
  console.Progress(absl::StrCat("reading ", options.in_graph));
  PF_ASSIGN_OR_RETURN(const std::unique_ptr<Graph> graph,
                      OpenModelFile(files, options.in_graph, options.read, console));
  if (options.effects || !options.forbid.empty() || !options.allow_ops.empty()) {
    return ReportEffects(options, *graph, files, console);
  }
  PF_ASSIGN_OR_RETURN(const FileStat stat, files.Stat(options.in_graph));
  PF_ASSIGN_OR_RETURN(const GraphSummary summary, Summarize(*graph));
  console.Progress(absl::StrCat("compressing ", options.in_graph));
  ModelSize size;
  size.file = stat.size;
  PF_ASSIGN_OR_RETURN(size.compressed, CompressedSize(*graph));
  std::vector<CompressedSizes> downloads;
  if (options.compressed_sizes) {
    const auto progress = [&](const std::string& form) { console.Progress(absl::StrCat("compressing ", form)); };
    PF_ASSIGN_OR_RETURN(downloads, MeasureCompressedSizes(*graph, progress));
  }
  std::optional<TfliteFacts> facts;
  if (const std::shared_ptr<const TfliteSource> source = TfliteSourceOf(*graph); source != nullptr) {
    PF_ASSIGN_OR_RETURN(facts, ReadTfliteFacts(*source));
  }
  console.Progress("");
  if (options.json) {
    WriteJson(summary, *graph, options.in_graph, size, downloads, facts, console.out);
    return absl::OkStatus();
  }
  PrintOriginalLines(summary, options.in_graph, console.out);
  if (options.print_structure) PF_RETURN_IF_ERROR(PrintStructure(*graph, console.out));
  PrintAdditions(summary, *graph, options.in_graph, size, console);
  if (facts.has_value()) PrintTfliteFacts(*facts, console);
  if (!downloads.empty()) PrintCompressedSizes(downloads, console);
  PrintCertificate(options.in_graph, files, console);
  return absl::OkStatus();
}

Tool SummarizeGraphTool() {
  return DefineTool<SummarizeGraphOptions>(
      "summarize_graph", "prints the contents of a frozen graph: inputs, outputs, ops, weights, FLOPs",
      {{"Print the lines of TensorFlow's tool, then further facts.", "model.pb"},
       {"Print sizes for downloads.", "model.pb --compressed_sizes"},
       {"Fail if running the model could do more than compute.", "model.pb --forbid=files,network,code,loop"},
       {"Print JSON.", "model.pb --json"}},
      &DefineFlags, &SummarizeGraph);
}

}  // namespace permafrost
