// Implements opening and saving of models, with the tables of formats and wrappings.
#include "io/model_file.h"

#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "graph/base/status.h"
#include "graph/base/wire.h"
#include "io/byte_source.h"
#include "io/foreign_format.h"
#include "io/formats/age/age.h"
#include "io/formats/dot_format.h"
#include "io/formats/graphdef_format.h"
#include "io/formats/gzip.h"
#include "io/formats/json_format.h"
#include "io/formats/package_format.h"
#include "io/formats/tfjs.h"
#include "io/formats/tflite/tflite.h"
#include "io/formats/zstd.h"
#include "io/mapped_pages.h"
#include "io/model_writer.h"

namespace permafrost {
namespace {

constexpr const ModelFormat* kFormats[] = {&kPackageFormat,      &kTfliteFormat, &kGraphDefFormat,        &kTfjsFormat,
                                           &kGraphDefTextFormat, &kJsonFormat,   &kJsonWithWeightsFormat, &kDotFormat};
constexpr const ModelWrapping* kWrappings[] = {&kAgeWrapping, &kZstdWrapping, &kGzipWrapping};
// Limit on nested wrappings. More have no practical use, and each can cost memory.
constexpr int kMostWrappings = 4;

absl::StatusOr<const ModelFormat*> FormatToWrite(absl::string_view name) {
  std::vector<absl::string_view> known;
  for (const ModelFormat* format : kFormats) {
    if (format->write == nullptr) continue;
    if (format->name == name) return format;
    known.push_back(format->name);
  }
  return absl::InvalidArgumentError(
      absl::StrCat("no format '", name, "' to write, expected one of ", absl::StrJoin(known, ", ")));
}

// True if the graph shows that the file is a GraphDef. Almost any bytes with valid tags are a GraphDef of unknown
// fields, so a file without nodes that starts like another format is considered to be of that format.
bool IsConvincing(const Graph& graph, absl::string_view foreign) {
  if (graph.first() != nullptr) return true;
  return foreign.empty() && !(graph.library().empty() && graph.versions().empty());
}

absl::Status DirectoryError(FileSystem& files, const std::string& path) {
  if (files.Exists(path + "/saved_model.pb") || files.Exists(path + "/saved_model.pbtxt")) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", path, "' is a SavedModel folder, expected a frozen graph; freeze it first (freeze_graph)"));
  }
  return absl::InvalidArgumentError(absl::StrCat("'", path, "' is a folder, expected a file with a frozen graph"));
}

absl::Status SetBytes(std::shared_ptr<const ByteSource> bytes, ModelSource* source) {
  const uint64_t size = bytes->size();
  const uint64_t length = std::min(size, ModelSource::kEndBytes);
  PF_ASSIGN_OR_RETURN(source->head, bytes->Read(0, length));
  PF_ASSIGN_OR_RETURN(source->tail, bytes->Read(size - length, length));
  source->bytes = std::move(bytes);
  return absl::OkStatus();
}

absl::StatusOr<ModelSource> OpenFile(FileSystem& files, const std::string& path, const OpenOptions& options) {
  const absl::StatusOr<FileStat> stat = files.Stat(path);
  if (stat.ok() && stat->is_directory) return DirectoryError(files, path);
  PF_ASSIGN_OR_RETURN(FileView file, files.MapFile(path));
  if (options.reads_all) file = ReadAhead(std::move(file));
  ModelSource source;
  source.files = &files;
  source.path = path;
  PF_RETURN_IF_ERROR(SetBytes(MemorySource(std::move(file)), &source));
  return source;
}

// Opens all compression and encryption layers around the model.
absl::Status Unwrap(const OpenOptions& options, ModelSource* source) {
  for (int depth = 0;; ++depth) {
    const auto wrapping = std::find_if(std::begin(kWrappings), std::end(kWrappings),
                                       [&](const ModelWrapping* wrapping) { return wrapping->is(*source); });
    if (wrapping == std::end(kWrappings)) return absl::OkStatus();
    if (depth == kMostWrappings) {
      return absl::InvalidArgumentError(absl::StrCat("found more than ", kMostWrappings,
                                                     " nested layers of compression or encryption, the last is ",
                                                     (*wrapping)->title, ", expected a model"));
    }
    absl::StatusOr<std::shared_ptr<const ByteSource>> inner = (*wrapping)->open(*source, options);
    PF_RETURN_IF_ERROR(Annotate(inner.status(), (*wrapping)->title));
    PF_RETURN_IF_ERROR(SetBytes(*std::move(inner), source));
  }
}

absl::StatusOr<std::unique_ptr<Graph>> Read(ModelSource source, const OpenOptions& options) {
  PF_RETURN_IF_ERROR(Unwrap(options, &source));
  if (source.head.bytes.empty()) return absl::InvalidArgumentError("the file is empty, expected a frozen graph");
  absl::Status error;
  for (const ModelFormat* format : kFormats) {
    if (format->read == nullptr) continue;
    const bool is_likely = format->may_be(source);
    // The binary format is tried on every file, because a graph may consist of printable bytes only.
    if (!is_likely && format != &kGraphDefFormat) continue;
    absl::StatusOr<std::unique_ptr<Graph>> graph = format->read(source, options);
    const absl::string_view foreign = ForeignFormat(source.head.bytes, source.tail.bytes);
    if (graph.ok() && IsConvincing(**graph, foreign)) return graph;
    if (!foreign.empty()) return absl::InvalidArgumentError(absl::StrCat("the file ", foreign));
    if (!is_likely || !error.ok()) continue;
    error = graph.ok() ? absl::InvalidArgumentError("the file holds no nodes, expected a frozen graph")
                       : Annotate(graph.status(), absl::StrCat("cannot be read as a ", format->title));
  }
  return error;
}

// Returns the size of the graph in bytes before any filter, or 0 if it is known only after writing.
uint64_t PlainSize(const ModelFormat& format, const Graph& graph) {
  return format.size != nullptr ? format.size(graph) : 0;
}

// Writes `size` bytes through the filters. Each filter is finished before the one that receives its output.
absl::Status WriteThrough(absl::Span<const MakeFilter> filters, uint64_t size,
                          const std::function<absl::Status(ByteSink*)>& write, ByteSink* sink) {
  std::vector<std::unique_ptr<FilterSink>> made;  // The filter next to the file first.
  for (size_t i = filters.size(); i-- > 0;) {
    PF_ASSIGN_OR_RETURN(made.emplace_back(), filters[i](sink, i == 0 ? size : 0));
    sink = made.back().get();
  }
  PF_RETURN_IF_ERROR(write(sink));
  for (auto filter = made.rbegin(); filter != made.rend(); ++filter) PF_RETURN_IF_ERROR((*filter)->Finish());
  return absl::OkStatus();
}

// Writes and commits the whole file.
absl::Status SaveInto(FileWriter* file, absl::Span<const MakeFilter> filters, uint64_t size,
                      const std::function<absl::Status(ByteSink*)>& write) {
  if (filters.empty()) PF_RETURN_IF_ERROR(file->Reserve(size));
  PF_RETURN_IF_ERROR(WriteThrough(filters, size, write, file));
  return file->Commit();
}

}  // namespace

absl::Span<const ModelFormat* const> ModelFormats() { return kFormats; }

absl::StatusOr<std::unique_ptr<Graph>> ReadModel(FileView file, const OpenOptions& options) {
  ModelSource source;
  PF_RETURN_IF_ERROR(SetBytes(MemorySource(std::move(file)), &source));
  return Read(std::move(source), options);
}

absl::StatusOr<std::unique_ptr<Graph>> OpenModel(FileSystem& files, const std::string& path,
                                                 const OpenOptions& options) {
  PF_ASSIGN_OR_RETURN(ModelSource source, OpenFile(files, path, options));
  absl::StatusOr<std::unique_ptr<Graph>> graph = Read(std::move(source), options);
  if (!graph.ok()) return Annotate(graph.status(), absl::StrCat("'", path, "'"));
  return graph;
}

absl::StatusOr<std::shared_ptr<const ByteSource>> OpenModelBytes(FileSystem& files, const std::string& path,
                                                                 const OpenOptions& options) {
  PF_ASSIGN_OR_RETURN(ModelSource source, OpenFile(files, path, options));
  PF_RETURN_IF_ERROR(Annotate(Unwrap(options, &source), absl::StrCat("'", path, "'")));
  return source.bytes;
}

absl::Status SaveModel(FileSystem& files, const Graph& graph, const std::string& path, const SaveOptions& options) {
  PF_RETURN_IF_ERROR(FormatToWrite(options.format).status());
  PF_ASSIGN_OR_RETURN(std::unique_ptr<FileWriter> file, files.NewWriter(path));
  return SaveModel(std::move(file), graph, options);
}

absl::Status SaveModel(std::unique_ptr<FileWriter> file, const Graph& graph, const SaveOptions& options) {
  PF_ASSIGN_OR_RETURN(const ModelFormat* format, FormatToWrite(options.format));
  return SaveInto(file.get(), options.filters, PlainSize(*format, graph),
                  [&](ByteSink* sink) { return format->write(graph, sink); });
}

absl::Status SaveThrough(FileSystem& files, const std::string& path, absl::Span<const MakeFilter> filters,
                         uint64_t size, const std::function<absl::Status(ByteSink*)>& write) {
  PF_ASSIGN_OR_RETURN(const std::unique_ptr<FileWriter> file, files.NewWriter(path));
  return SaveInto(file.get(), filters, size, write);
}

absl::Status WriteModel(const Graph& graph, const SaveOptions& options, ByteSink* sink) {
  PF_ASSIGN_OR_RETURN(const ModelFormat* format, FormatToWrite(options.format));
  return WriteThrough(
      options.filters, PlainSize(*format, graph), [&](ByteSink* out) { return format->write(graph, out); }, sink);
}

absl::StatusOr<uint64_t> EncodedSize(const Graph& graph, const SaveOptions& options) {
  PF_ASSIGN_OR_RETURN(const ModelFormat* format, FormatToWrite(options.format));
  const uint64_t size = options.filters.empty() ? PlainSize(*format, graph) : 0;
  if (size > 0) return size;
  CountingSink sink;
  PF_RETURN_IF_ERROR(WriteModel(graph, options, &sink));
  return sink.size();
}

}  // namespace permafrost
