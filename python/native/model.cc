// Opens, describes and writes models.
#include "python/native/model.h"

#include <cstring>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "graph/base/huge_pages.h"
#include "graph/base/status.h"
#include "graph/ops/op_schema.h"
#include "graph/shapes/shape_inference.h"
#include "io/file_system.h"
#include "io/formats/saved_model.h"
#include "io/formats/tflite/tflite.h"
#include "io/key_source.h"
#include "io/model_file.h"
#include "io/model_writer.h"
#include "python/native/errors.h"
#include "python/native/interruptible.h"
#include "python/native/tensors.h"
#include "python/native/text.h"
#include "runtime_check/threads/processors.h"
#include "tools/model/frozen_model.h"
#include "tools/model/interface_declaration.h"
#include "tools/model/model_flags.h"
#include "tools/transform/tflite_output.h"

namespace py = pybind11;

namespace permafrost::python {
namespace {

// Keys that are already in memory.
class GivenKeys : public KeySource {
 public:
  absl::Status Add(absl::string_view text, bool is_passphrase) {
    PF_ASSIGN_OR_RETURN(LockedMemory memory, LockedMemory::CopyOf(text));
    auto kept = std::make_shared<const LockedMemory>(std::move(memory));
    (is_passphrase ? passphrases_ : identities_).push_back({is_passphrase ? "passphrase=" : "key=", std::move(kept)});
    return absl::OkStatus();
  }
  absl::StatusOr<std::vector<GivenSecret>> Identities() override { return identities_; }
  absl::StatusOr<std::vector<GivenSecret>> Passphrases() override { return passphrases_; }

 private:
  std::vector<GivenSecret> identities_, passphrases_;
};

// Arguments of load besides the model itself.
struct LoadOptions {
  std::optional<std::string> inputs, outputs;
  std::vector<std::string> tags;
  std::string signature;
  OpenOptions open;
};

absl::StatusOr<Model> Open(const std::string& path, const LoadOptions& options) {
  FileSystem& files = RealFileSystem();
  std::vector<std::string> notes;
  OpenOptions open = options.open;
  open.tell = [&notes](absl::string_view note) { notes.emplace_back(note); };
  std::unique_ptr<Graph> graph;
  if (IsSavedModel(files, path)) {
    FrozenModelRequest request;
    request.saved_model = path;
    request.tags = options.tags;
    request.signature = options.signature;
    request.open = open;
    absl::StatusOr<FrozenModel> model = OpenFrozenModel(files, request);
    PF_RETURN_IF_ERROR(Annotate(model.status(), absl::StrCat("'", path, "'")));
    notes.insert(notes.end(), model->report.notes.begin(), model->report.notes.end());
    graph = std::move(model->graph);
  } else {
    PF_ASSIGN_OR_RETURN(graph, OpenModel(files, path, open));
  }
  Model model = MakeModel(std::move(graph), options.inputs, options.outputs);
  model.notes = std::move(notes);
  return model;
}

absl::StatusOr<Model> Read(absl::string_view bytes, const Kept& owner, const LoadOptions& options) {
  std::vector<std::string> notes;
  OpenOptions open = options.open;
  open.tell = [&notes](absl::string_view note) { notes.emplace_back(note); };
  PF_ASSIGN_OR_RETURN(std::unique_ptr<Graph> graph, ReadModel({bytes, std::make_shared<Kept>(owner)}, open));
  Model model = MakeModel(std::move(graph), options.inputs, options.outputs);
  model.notes = std::move(notes);
  return model;
}

LoadOptions MakeLoadOptions(py::handle inputs, py::handle outputs, std::vector<Text> tags, const Text& signature,
                            const std::vector<Text>& identities, const std::vector<Text>& passphrases,
                            std::optional<uint64_t> max_bytes) {
  LoadOptions options;
  options.inputs = NamesFromPython(inputs);
  options.outputs = NamesFromPython(outputs);
  options.tags = Bytes(std::move(tags));
  options.signature = signature.bytes;
  const auto keys = std::make_shared<GivenKeys>();
  for (const Text& identity : identities) ThrowIfError(keys->Add(identity.bytes, false));
  for (const Text& passphrase : passphrases) ThrowIfError(keys->Add(passphrase.bytes, true));
  options.open.keys = keys;
  if (max_bytes.has_value()) options.open.max_model_bytes = *max_bytes;
  return options;
}

// `source` is a str with a path, or an object with the buffer protocol.
Model Load(py::object source, py::handle inputs, py::handle outputs, std::vector<Text> tags, const Text& signature,
           const std::vector<Text>& identities, const std::vector<Text>& passphrases,
           std::optional<uint64_t> max_bytes) {
  const auto result = std::make_shared<Model>();
  LoadOptions options =
      MakeLoadOptions(inputs, outputs, std::move(tags), signature, identities, passphrases, max_bytes);
  if (PyUnicode_Check(source.ptr())) {
    const std::string path = source.cast<Text>().bytes;
    ThrowIfError(RunInterruptibly([result, path, options](const StopFlag&) -> absl::Status {
      PF_ASSIGN_OR_RETURN(*result, Open(path, options));
      return absl::OkStatus();
    }));
    return *result;
  }
  PyObject* view = PyMemoryView_FromObject(source.ptr());
  if (view == nullptr) throw py::error_already_set();
  const Kept kept(view);
  const Py_buffer* buffer = PyMemoryView_GET_BUFFER(view);
  if (PyBuffer_IsContiguous(buffer, 'C') == 0) {
    Throw(absl::InvalidArgumentError("found a buffer that is not contiguous, expected the bytes of a model"));
  }
  const absl::string_view bytes(static_cast<const char*>(buffer->buf), static_cast<size_t>(buffer->len));
  ThrowIfError(RunInterruptibly([result, bytes, kept, options](const StopFlag&) -> absl::Status {
    PF_ASSIGN_OR_RETURN(*result, Read(bytes, kept, options));
    return absl::OkStatus();
  }));
  return *result;
}

// Options for writing a model; MakeSaveOptions keeps a view of the format.
struct Writing {
  std::string format;
  WriteFlags flags;
};

Writing MakeWriting(const Text& format, const Text& compress, std::vector<Text> encrypt_to) {
  Writing writing;
  writing.format = format.bytes;
  writing.flags.compress = compress.bytes;
  writing.flags.encrypt_to = Bytes(std::move(encrypt_to));
  return writing;
}

void Save(const Model& model, const Text& path, const Text& format, const Text& compress,
          std::vector<Text> encrypt_to) {
  const Writing writing = MakeWriting(format, compress, std::move(encrypt_to));
  ThrowIfError(RunInterruptibly([graph = model.graph, path = path.bytes, writing](const StopFlag&) -> absl::Status {
    FileSystem& files = RealFileSystem();
    PF_ASSIGN_OR_RETURN(const SaveOptions options, MakeSaveOptions(writing.flags, writing.format, files));
    return SaveModel(files, *graph, path, options);
  }));
}

// Writes a TensorFlow Lite model that was proved, as convert_model does. Returns text about the proof.
std::string SaveTflite(const Model& model, const Text& path, const Text& compress, std::vector<Text> encrypt_to,
                       const Text& quantize, const Text& io_type, std::vector<Text> calibration_inputs,
                       std::vector<Text> keep_float, std::vector<Text> tensor_ranges, double min_sqnr,
                       const Text& verify, std::vector<Text> verify_inputs, std::optional<double> tolerance) {
  ThrowIfError(model.interface);
  const Writing writing = MakeWriting(Text{std::string(kTfliteFormat.name)}, compress, std::move(encrypt_to));
  TfliteFlags flags;
  flags.quantize = quantize.bytes;
  flags.io_type = io_type.bytes;
  flags.calibration_inputs = Bytes(std::move(calibration_inputs));
  flags.keep_float = Bytes(std::move(keep_float));
  flags.tensor_ranges = Bytes(std::move(tensor_ranges));
  flags.min_sqnr_db = min_sqnr;
  flags.verify = verify.bytes;
  flags.verify_inputs = Bytes(std::move(verify_inputs));
  flags.tolerance = tolerance;
  const auto text = std::make_shared<std::string>();
  ThrowIfError(
      RunInterruptibly([graph = model.graph, path = path.bytes, writing, flags, text](const StopFlag&) -> absl::Status {
        FileSystem& files = RealFileSystem();
        PF_ASSIGN_OR_RETURN(const SaveOptions options, MakeSaveOptions(writing.flags, writing.format, files));
        PF_ASSIGN_OR_RETURN(const TfliteOutput output, EncodeTflite(*graph, flags, AvailableProcessors(), files));
        *text = absl::StrCat(QuantizationText(output), ProofText(output.verdict));
        return SaveThrough(files, path, options.filters, output.bytes.size(),
                           [&](ByteSink* sink) { return sink->Append(output.bytes); });
      }));
  return *text;
}

// A sink that fills memory of a known size.
class SpanSink : public ByteSink {
 public:
  explicit SpanSink(absl::Span<char> memory) : memory_(memory) {}
  absl::Status Append(absl::string_view bytes) override {
    if (bytes.size() > memory_.size() - used_) return absl::InternalError("the model is larger than it said");
    std::memcpy(memory_.data() + used_, bytes.data(), bytes.size());
    used_ += bytes.size();
    return absl::OkStatus();
  }
  bool is_full() const { return used_ == memory_.size(); }

 private:
  absl::Span<char> memory_;
  size_t used_ = 0;
};

// Requests huge pages for memory that is about to be filled. A model is tens of megabytes, and page faults for 4 kB
// pages take longer than the copy itself. The request is only advice and may be ignored.
void PreferLargePages(char* memory, size_t size) {
  constexpr uintptr_t kLargePage = kHugePageBytes;
  const auto address = reinterpret_cast<uintptr_t>(memory);
  const uintptr_t begin = (address + kLargePage - 1) / kLargePage * kLargePage;
  const uintptr_t end = (address + size) / kLargePage * kLargePage;
  if (begin < end) PreferHugePages(reinterpret_cast<void*>(begin), end - begin);
}

}  // namespace

py::bytes GraphBytes(const Graph& graph) {
  uint64_t size = 0;
  {
    const py::gil_scoped_release release;
    size = EncodedSize(graph).value_or(0);
  }
  PyObject* bytes = PyBytes_FromStringAndSize(nullptr, static_cast<Py_ssize_t>(size));
  if (bytes == nullptr) throw py::error_already_set();
  py::bytes result = py::reinterpret_steal<py::bytes>(bytes);
  absl::Status status;
  {
    const py::gil_scoped_release release;
    PreferLargePages(PyBytes_AS_STRING(bytes), size);
    SpanSink sink(absl::MakeSpan(PyBytes_AS_STRING(bytes), size));
    status = WriteModel(graph, {}, &sink);
    if (status.ok() && !sink.is_full()) status = absl::InternalError("the model is smaller than it said");
  }
  ThrowIfError(status);
  return result;
}

namespace {

py::bytes ToBytes(const Model& model, const Text& format, const Text& compress, std::vector<Text> encrypt_to) {
  if (format.bytes == "pb" && compress.bytes.empty() && encrypt_to.empty()) return GraphBytes(*model.graph);
  const Writing writing = MakeWriting(format, compress, std::move(encrypt_to));
  const auto sink = std::make_shared<StringSink>();
  ThrowIfError(RunInterruptibly([graph = model.graph, sink, writing](const StopFlag&) -> absl::Status {
    PF_ASSIGN_OR_RETURN(const SaveOptions options, MakeSaveOptions(writing.flags, writing.format, RealFileSystem()));
    return WriteModel(*graph, options, sink.get());
  }));
  return py::bytes(sink->text());
}

// Returns name, type and shape of each input or output, as far as the graph declares them; unknown ones are omitted.
py::list EndpointsOf(const Model& model, bool is_input) {
  ThrowIfError(model.interface);
  py::list list;
  const absl::StatusOr<ShapeMap> shapes = InferShapes(*model.graph);
  for (const Endpoint& endpoint : is_input ? model.graph->inputs() : model.graph->outputs()) {
    if (endpoint.node == nullptr) continue;
    const absl::StatusOr<std::vector<DType>> types = OutputTypes(*endpoint.node);
    const auto port = static_cast<size_t>(endpoint.port);
    const std::string type = types.ok() && port < types->size() ? DTypeName((*types)[port]) : "";
    const Shape shape = shapes.ok() ? shapes->Of({endpoint.node, endpoint.port}) : Shape::UnknownRank();
    list.append(py::make_tuple(ToPython(endpoint.text), type, ToPython(shape)));
  }
  return list;
}

// A node and the graph that contains it.
struct NodeView {
  std::shared_ptr<const Graph> graph;
  const Node* node;
};

py::object ConstantOf(const NodeView& view) { return ToPython(ValueOrThrow(ConstValue(*view.node))); }

}  // namespace

Model MakeModel(std::unique_ptr<Graph> graph, const std::optional<std::string>& inputs,
                const std::optional<std::string>& outputs) {
  Model model;
  std::vector<std::string> reasons;
  model.interface = DeclareOrFindInterface(inputs, outputs, graph.get(), &reasons);
  model.graph = std::move(graph);
  return model;
}

std::optional<std::string> NamesFromPython(py::handle names) {
  if (names.is_none()) return std::nullopt;
  std::vector<std::string> texts;
  for (const py::handle name : names) {
    std::string text = name.cast<Text>().bytes;
    if (text.empty() || absl::StrContains(text, ",")) {
      Throw(absl::InvalidArgumentError(absl::StrCat("found the name '", text, "', expected the name of a node")));
    }
    texts.push_back(std::move(text));
  }
  return absl::StrJoin(texts, ",");
}

py::tuple Describe(const Node& node) {
  py::tuple inputs(static_cast<size_t>(node.num_inputs()));
  for (int i = 0; i < node.num_inputs(); ++i) inputs[static_cast<size_t>(i)] = ToPython(node.input(i).ToString());
  return py::make_tuple(ToPython(node.name()), ToPython(node.op().name()), ToPython(node.device()), inputs);
}

py::dict AttributesOf(const Node& node) {
  py::dict attributes;
  for (const Attr& attr : node.attrs()) attributes[ToPython(attr.key)] = ToPython(attr.value);
  return attributes;
}

void BindModel(py::module_& m) {
  py::class_<NodeView>(m, "NodeView")
      .def("describe", [](const NodeView& view) { return Describe(*view.node); })
      .def("attributes", [](const NodeView& view) { return AttributesOf(*view.node); })
      .def("constant", &ConstantOf)
      .def_property_readonly("is_constant", [](const NodeView& view) { return ConstValue(*view.node).ok(); });
  py::class_<Model>(m, "Model")
      .def("save", &Save)
      .def("save_tflite", &SaveTflite)
      .def("to_bytes", &ToBytes)
      .def("inputs", [](const Model& model) { return EndpointsOf(model, true); })
      .def("outputs", [](const Model& model) { return EndpointsOf(model, false); })
      .def("nodes",
           [](const Model& model) {
             py::list nodes;
             for (const Node* node = model.graph->first(); node != nullptr; node = node->next()) {
               nodes.append(NodeView{model.graph, node});
             }
             return nodes;
           })
      .def("constants",
           [](const Model& model) {
             py::list nodes;
             for (const Node* node = model.graph->first(); node != nullptr; node = node->next()) {
               if (node->op() == ops::kConst) nodes.append(NodeView{model.graph, node});
             }
             return nodes;
           })
      .def("find",
           [](const Model& model, const Text& name) -> std::optional<NodeView> {
             const Node* node = model.graph->Find(name.bytes);
             return node == nullptr ? std::nullopt : std::make_optional(NodeView{model.graph, node});
           })
      .def_property_readonly("num_nodes", [](const Model& model) { return model.graph->num_nodes(); })
      .def_property_readonly("num_bytes", [](const Model& model) { return EncodedSize(*model.graph).value_or(0); })
      .def_property_readonly("notes", [](const Model& model) { return ToPython(absl::MakeConstSpan(model.notes)); });
  m.def("load", &Load);
}

}  // namespace permafrost::python
