// Converts between a frozen graph and a memory-mapped package, and prints a report.
#include "tools/convert_graphdef_memmapped_format.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "io/formats/graphdef.h"
#include "io/formats/graphdef_format.h"
#include "io/formats/memmapped_package.h"
#include "io/formats/package_conversion.h"
#include "io/formats/package_format.h"
#include "io/model_file.h"
#include "runtime_check/packing/packed_region.h"
#include "tools/command_line/json.h"
#include "tools/model/interface_declaration.h"
#include "tools/model/model_inputs.h"
#include "tools/model/tool_session.h"
#include "tools/model/weight_packing.h"
#include "tools/validation/calibration_inputs.h"

namespace permafrost {
namespace {

void DefineFlags(ConvertGraphdefMemmappedFormatOptions* options, FlagTable* flags) {
  flags->Add("in_graph", &options->in_graph, "FILE",
             "Frozen graph to read, in any format that is read (detected from its content). '-' is standard input.");
  flags->Add("out_graph", &options->out_graph, "FILE",
             "Package to write, atomically. It may be the input file. '-' is standard output.");
  flags->Add("min_conversion_tensor_size", &options->min_conversion_tensor_size, "N",
             "Minimum size in bytes of constants that become regions; smaller ones stay in the graph.");
  flags->Add("unpack", &options->unpack, "Convert a package back to a binary GraphDef with all constants.");
  flags->Add("page_aligned", &options->page_aligned, "Align tensors to pages (4096 bytes) instead of to 64 bytes.");
  flags->Add("dedupe", &options->dedupe, "Store constants with equal bytes once.");
  flags->Add("include_quantized", &options->include_quantized,
             "Also convert constants of quantized types, which TensorFlow's tool leaves in the graph.");
  flags->Add("verify", &options->verify, "Read the output back and compare all bytes.");
  flags->Add("dry_run", &options->dry_run, "Print the report, and write nothing.");
  flags->Add("json", &options->json, "Print one JSON object instead of text.");
  flags->Group("packed weights");
  flags->Add("pack_for", &options->pack_for, "DELEGATE:PRECISION",
             "Also store weights in the layout of this delegate on this kind of processor, so that runs map them "
             "instead of packing: reference, onednn:f32, onednn:bf16, onednn:int8, onednn:mixed, onednn:auto, "
             "separated by commas. Other processors ignore them.");
  flags->Add("inputs", &options->inputs, "FILES",
             "Inputs that define the shapes for --pack_for: NPY files separated by commas, with the wildcards * and ?, "
             "or INPUT=FILE for each of several inputs. Default: --calibration_inputs, or else random numbers.");
  flags->Add("calibration_inputs", &options->calibration_inputs, "FOLDER|FILES",
             "Inputs that calibrate int8, mixed and auto for --pack_for, at most 128: NPY files, or a folder of NPY, "
             "PNG or JPEG files (see --image_size). Default: --inputs.");
  AddImageFlags(&options->image, flags);
  flags->Group("packed weights");
  flags->Add("outputs", &options->outputs, "NAMES",
             "Outputs that are computed for --pack_for, separated by commas. Default: detected.");
  flags->Group("");
  AddReadFlags(&options->read, flags);
  AddWriteFlags(&options->write, flags);
  flags->MarkCommon({"in_graph", "out_graph", "min_conversion_tensor_size", "unpack", "pack_for", "page_aligned",
                     "dedupe", "include_quantized", "verify", "dry_run", "json"});
  flags->AcceptAsArguments({"in_graph", "out_graph"});
  flags->MarkOutputs({"out_graph"});
}

absl::Status CheckOptions(const ConvertGraphdefMemmappedFormatOptions& options) {
  // The wording of TensorFlow's tool.
  if (options.in_graph.empty()) return absl::InvalidArgumentError("in_graph graph can't be empty");
  if (options.out_graph.empty() && !options.dry_run) {
    return absl::InvalidArgumentError("out_graph graph can't be empty");
  }
  if (options.min_conversion_tensor_size <= 0) {
    return absl::InvalidArgumentError("min_conversion_tensor_size must be > 0");
  }
  if (options.verify && options.dry_run) {
    return absl::InvalidArgumentError("--verify needs what --dry_run does not write");
  }
  if (options.unpack &&
      (options.page_aligned || options.dedupe || options.include_quantized || !options.pack_for.empty())) {
    return absl::InvalidArgumentError(
        "--page_aligned, --dedupe, --include_quantized and --pack_for say how to pack, not to unpack");
  }
  if (options.pack_for.empty() &&
      (!options.inputs.empty() || !options.calibration_inputs.empty() || options.outputs.has_value())) {
    return absl::InvalidArgumentError("--inputs, --calibration_inputs and --outputs are for --pack_for");
  }
  return absl::OkStatus();
}

// A sink that compares the bytes written to it with existing ones.
class ComparingSink : public ByteSink {
 public:
  explicit ComparingSink(absl::string_view expected) : expected_(expected) {}

  absl::Status Append(absl::string_view bytes) override {
    if (bytes.size() > expected_.size() || expected_.substr(0, bytes.size()) != bytes) return Different();
    expected_.remove_prefix(bytes.size());
    return absl::OkStatus();
  }
  absl::Status Finish() const { return expected_.empty() ? absl::OkStatus() : Different(); }

 private:
  static absl::Status Different() { return absl::DataLossError("the graph that was written is another one"); }

  absl::string_view expected_;
};

absl::Status VerifyGraph(const Graph& graph, absl::string_view written) {
  ComparingSink sink(written);
  PF_RETURN_IF_ERROR(WriteGraphDef(graph, &sink));
  return sink.Finish();
}

absl::Status VerifyPackage(const PackageLayout& layout, std::shared_ptr<const ByteSource> written) {
  PF_ASSIGN_OR_RETURN(const std::shared_ptr<const Package> package, OpenPackage(std::move(written)));
  for (const PackedConstant& constant : layout.constants) {
    PF_ASSIGN_OR_RETURN(const Tensor expected, ConstValue(*constant.node));
    PF_ASSIGN_OR_RETURN(const Tensor found,
                        package->ReadTensor(layout.regions[constant.region].name, constant.dtype, constant.shape));
    if (found != expected) {
      return absl::DataLossError(absl::StrCat(constant.node->Describe(), ": its region holds another value"));
    }
  }
  for (const ExtraRegion& extra : layout.extra) {
    PF_ASSIGN_OR_RETURN(FileView region, package->Read(extra.name));
    PF_ASSIGN_OR_RETURN(const auto packed, OpenPackedWeights(std::move(region)));
    for (const PackedEntry& entry : packed->entries()) PF_RETURN_IF_ERROR(packed->Check(entry));
  }
  PF_ASSIGN_OR_RETURN(const FileView graph, package->Read(kPackageGraphName));
  return VerifyGraph(*layout.graph, graph.bytes);
}

// Contents of the report, on a package or on an unpacked graph.
struct Report {
  size_t converted = 0;           // Number of nodes.
  uint64_t largest_constant = 0;  // In bytes.
  bool was_written = false;
  bool was_verified = false;
};

uint64_t LargestConstant(const Graph& graph) {
  uint64_t largest = 0;
  for (const Node* node = graph.first(); node != nullptr; node = node->next()) {
    const AttrValue* const value = node->op() == ops::kConst ? node->FindAttr("value") : nullptr;
    DType dtype;
    Shape shape;
    if (value == nullptr || !value->CheckTensor(&dtype, &shape).ok()) continue;
    largest = std::max(largest, static_cast<uint64_t>(shape.num_elements()) * SizeOf(dtype));
  }
  return largest;
}

void PrintPackage(const ConvertGraphdefMemmappedFormatOptions& options, const PackageLayout& layout,
                  const Report& report, const Console& console) {
  console.out << "Converted " << report.converted << " nodes\n";
  uint64_t region_bytes = 0;
  for (const RegionLayout& region : layout.regions) region_bytes += region.length;
  console.out << "Regions: " << FormatCount(layout.regions.size()) << ", " << FormatBytesExactly(region_bytes)
              << ", aligned to " << layout.alignment << " bytes\n"
              << "Graph: " << FormatBytesExactly(layout.graph_bytes) << "\n"
              << "Package: " << FormatBytesExactly(layout.file_bytes)
              << (report.was_written ? "" : ", not written (--dry_run)") << (report.was_verified ? ", verified" : "")
              << "\n";
  for (const ExtraRegion& extra : layout.extra) {
    console.out << "Packed weights: " << extra.name << ", " << FormatBytesExactly(extra.bytes) << "\n";
  }
  if (layout.kept.for_shapes > 0) {
    console.out << "Kept in the graph for the shapes of other nodes: " << FormatCount(layout.kept.for_shapes) << "\n";
  }
  if (layout.kept.of_type > 0) {
    console.out << "Kept in the graph for their type: " << FormatCount(layout.kept.of_type)
                << (options.include_quantized ? " of text" : " of text or quantized (see --include_quantized)") << "\n";
  }
  if (report.converted == 0) {
    console.out << "The largest constant has " << FormatBytes(report.largest_constant)
                << "; --min_conversion_tensor_size is " << options.min_conversion_tensor_size << "\n";
  }
}

void WritePackageJson(const PackageLayout& layout, const Report& report, std::ostream& out) {
  std::vector<std::vector<std::string>> nodes(layout.regions.size());
  for (const PackedConstant& constant : layout.constants) nodes[constant.region].emplace_back(constant.node->name());
  JsonWriter json(out);
  json.BeginObject();
  json.Key("converted_nodes").Count(report.converted);
  json.Key("kept_for_shapes").Count(layout.kept.for_shapes);
  json.Key("kept_for_type").Count(layout.kept.of_type);
  json.Key("alignment").Count(layout.alignment);
  json.Key("graph_bytes").Count(layout.graph_bytes);
  json.Key("file_bytes").Count(layout.file_bytes);
  json.Key("written").Bool(report.was_written);
  json.Key("verified").Bool(report.was_verified);
  json.Key("packed_weights").BeginArray();
  for (const ExtraRegion& extra : layout.extra) {
    json.BeginObject();
    json.Key("name").Text(extra.name);
    json.Key("bytes").Count(extra.bytes);
    json.End();
  }
  json.End();
  json.Key("regions").BeginArray();
  for (size_t i = 0; i < layout.regions.size(); ++i) {
    json.BeginObject();
    json.Key("name").Text(layout.regions[i].name);
    json.Key("offset").Count(layout.regions[i].offset);
    json.Key("bytes").Count(layout.regions[i].length);
    json.Key("nodes").Texts(nodes[i]);
    json.End();
  }
  json.End();
  json.End();
}

absl::Status NotAsWritten(const ConvertGraphdefMemmappedFormatOptions& options, const absl::Status& status) {
  return Annotate(status, absl::StrCat("'", options.out_graph, "' was written, but is not verified"));
}

// Opens the written file, decompressed and decrypted. The opener must outlive the result.
absl::StatusOr<std::shared_ptr<const ByteSource>> ReadBack(const ConvertGraphdefMemmappedFormatOptions& options,
                                                           FileSystem& files, const ModelOpener& opener) {
  auto written = OpenModelBytes(files, options.out_graph, opener.OptionsFor(options.out_graph));
  if (!written.ok()) return NotAsWritten(options, written.status());
  return written;
}

// A request of --pack_for, and its result.
struct PackedFor {
  std::string name;  // Name of the region.
  std::shared_ptr<const WeightCache> weights;
};

absl::StatusOr<std::vector<PackRequest>> ParsePackFor(const ConvertGraphdefMemmappedFormatOptions& options) {
  std::vector<PackRequest> requests;
  for (const std::string& list : options.pack_for) {
    for (const std::string& item : SplitList(list)) {
      absl::StatusOr<PackRequest> request = ParsePackRequest(item);
      PF_RETURN_IF_ERROR(Annotate(request.status(), "--pack_for"));
      for (const PackRequest& before : requests) {
        if (before.delegate != request->delegate || before.precision != request->precision) continue;
        return absl::InvalidArgumentError(absl::StrCat("--pack_for: found '", item, "' twice"));
      }
      if (request->wants_samples && options.inputs.empty() && options.calibration_inputs.empty()) {
        return absl::InvalidArgumentError(absl::StrCat("--pack_for=", item,
                                                       " needs --calibration_inputs or --inputs: the precision is "
                                                       "planned with real ones"));
      }
      requests.push_back(*std::move(request));
    }
  }
  return requests;
}

absl::StatusOr<std::vector<PackedFor>> PackFor(const ConvertGraphdefMemmappedFormatOptions& options,
                                               const std::vector<PackRequest>& requests, Graph* graph,
                                               FileSystem& files, Console& console) {
  std::vector<PackedFor> packed;
  if (requests.empty()) return packed;
  std::vector<std::string> pieces, notes;
  for (const std::string& list : options.inputs) {
    for (std::string& piece : SplitList(list)) pieces.push_back(std::move(piece));
  }
  PF_RETURN_IF_ERROR(Annotate(DeclareOrFindInterface(std::nullopt, options.outputs, graph, &notes), "--pack_for"));
  PF_ASSIGN_OR_RETURN(const std::vector<InputSet> calibration,
                      ReadCalibrationInputs(files, options.calibration_inputs, options.image, {}, *graph));
  std::vector<InputSet> samples;
  if (!pieces.empty()) {
    PF_ASSIGN_OR_RETURN(samples, ReadInputSets(files, pieces, *graph));
  } else if (!calibration.empty()) {
    samples = calibration;
  } else {
    PF_ASSIGN_OR_RETURN(samples, SeededInputSets(*graph, graph->inputs(), /*seed=*/0, /*count=*/1));
  }
  // The number of threads does not affect the weights.
  const SessionOptions session_options = ToolSessionOptions(/*num_threads=*/1, files);
  for (const PackRequest& request : requests) {
    console.Progress(absl::StrCat("packing for ", request.delegate, " in ", request.precision));
    absl::StatusOr<std::shared_ptr<const WeightCache>> made =
        PackWeights(*graph, request, samples, calibration, session_options, console);
    PF_RETURN_IF_ERROR(Annotate(made.status(), absl::StrCat("--pack_for=", request.delegate, ":", request.precision)));
    packed.push_back({PackedRegionName(request.delegate, request.precision), *std::move(made)});
  }
  console.Progress("");
  return packed;
}

absl::Status Pack(const ConvertGraphdefMemmappedFormatOptions& options, Graph* graph_to_pack, const ModelOpener& opener,
                  FileSystem& files, Console& console) {
  PF_ASSIGN_OR_RETURN(const std::vector<PackRequest> requests, ParsePackFor(options));
  PF_ASSIGN_OR_RETURN(const std::vector<PackedFor> packed, PackFor(options, requests, graph_to_pack, files, console));
  const Graph& graph = *graph_to_pack;
  PackageOptions package;
  for (const PackedFor& made : packed) {
    const auto content = std::make_shared<const WeightCache::Content>(made.weights->ToWrite());
    package.extra.push_back({made.name, content->size(), [content](ByteSink* sink) { return content->Write(sink); }});
  }
  package.min_conversion_tensor_size = static_cast<uint64_t>(options.min_conversion_tensor_size);
  package.alignment = options.page_aligned ? kPageAlignment : kTensorAlignment;
  package.dedupe = options.dedupe;
  package.include_quantized = options.include_quantized;
  PF_ASSIGN_OR_RETURN(const SaveOptions save, MakeSaveOptions(options.write, kPackageFormat.name, files, &console));
  absl::StatusOr<PackageLayout> layout = LayOutPackage(graph, package);
  PF_RETURN_IF_ERROR(Annotate(layout.status(), absl::StrCat("'", options.in_graph, "'")));
  Report report;
  report.converted = layout->constants.size();
  if (report.converted == 0) report.largest_constant = LargestConstant(graph);
  if (!options.dry_run) {
    PF_RETURN_IF_ERROR(SaveThrough(files, options.out_graph, save.filters, layout->file_bytes,
                                   [&](ByteSink* sink) { return WritePackage(*layout, sink); }));
    report.was_written = true;
  }
  if (options.verify) {
    PF_ASSIGN_OR_RETURN(std::shared_ptr<const ByteSource> written, ReadBack(options, files, opener));
    PF_RETURN_IF_ERROR(NotAsWritten(options, VerifyPackage(*layout, std::move(written))));
    report.was_verified = true;
  }
  if (options.json) {
    WritePackageJson(*layout, report, console.out);
  } else {
    PrintPackage(options, *layout, report, console);
  }
  return absl::OkStatus();
}

absl::Status Unpack(const ConvertGraphdefMemmappedFormatOptions& options, const Graph& graph, const ModelOpener& opener,
                    FileSystem& files, Console& console) {
  Report report;
  // The values outside the graph are those that are not in their wire form.
  for (const Node* node = graph.first(); node != nullptr; node = node->next()) {
    const AttrValue* const value = node->op() == ops::kConst ? node->FindAttr("value") : nullptr;
    if (value != nullptr && value->held_tensor() != nullptr) ++report.converted;
  }
  const uint64_t size = GraphDefSize(graph);
  PF_ASSIGN_OR_RETURN(const SaveOptions save, MakeSaveOptions(options.write, kGraphDefFormat.name, files, &console));
  if (!options.dry_run) {
    PF_RETURN_IF_ERROR(SaveModel(files, graph, options.out_graph, save));
    report.was_written = true;
  }
  if (options.verify) {
    PF_ASSIGN_OR_RETURN(const std::shared_ptr<const ByteSource> written, ReadBack(options, files, opener));
    PF_ASSIGN_OR_RETURN(const FileView file, written->Read(0, written->size()));
    PF_RETURN_IF_ERROR(NotAsWritten(options, VerifyGraph(graph, file.bytes)));
    report.was_verified = true;
  }
  if (!options.json) {
    console.out << "Converted " << report.converted << " nodes\n"
                << "GraphDef: " << FormatBytesExactly(size) << (report.was_written ? "" : ", not written (--dry_run)")
                << (report.was_verified ? ", verified" : "") << "\n";
    return absl::OkStatus();
  }
  JsonWriter json(console.out);
  json.BeginObject();
  json.Key("converted_nodes").Count(report.converted);
  json.Key("file_bytes").Count(size);
  json.Key("written").Bool(report.was_written);
  json.Key("verified").Bool(report.was_verified);
  json.End();
  return absl::OkStatus();
}

}  // namespace

absl::Status ConvertGraphdefMemmappedFormat(const ConvertGraphdefMemmappedFormatOptions& options, FileSystem& files,
                                            Console& console) {
  PF_RETURN_IF_ERROR(CheckOptions(options));
  const ModelOpener opener(files, options.read, console);
  PF_ASSIGN_OR_RETURN(const std::unique_ptr<Graph> graph, opener.Open(options.in_graph));
  return options.unpack ? Unpack(options, *graph, opener, files, console)
                        : Pack(options, graph.get(), opener, files, console);
}

Tool ConvertGraphdefMemmappedFormatTool() {
  return DefineTool<ConvertGraphdefMemmappedFormatOptions>(
      "convert_graphdef_memmapped_format", "converts a frozen graph to a package with memory-mapped weights, and back",
      {{"Convert constants of 10000 bytes and more to regions.", "model.pb model.pbmm"},
       {"Encrypt; the runtime decrypts only the parts that it reads.", "model.pb model.pbmm.age --encrypt_to=age1..."},
       {"Pack weights for the fastest delegate of this machine, in two precisions.",
        "model.pb model.pbmm --pack_for=onednn:f32,onednn:bf16"},
       {"Convert back to a GraphDef.", "--unpack model.pbmm model.pb"}},
      DefineFlags, ConvertGraphdefMemmappedFormat);
}

}  // namespace permafrost
