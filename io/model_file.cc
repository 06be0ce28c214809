// The formats of a model file, and how one is chosen.
#include "io/model_file.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "graph/status.h"
#include "graph/wire.h"
#include "io/foreign_format.h"
#include "io/formats/graphdef.h"
#include "io/formats/graphdef_text.h"

namespace permafrost {
namespace {

struct Format {
  ModelFormat format;
  absl::string_view name;
  // Whether the beginning of a file could be of this format: decides whose error a broken file gets.
  bool (*may_be)(absl::string_view bytes);
  absl::StatusOr<std::unique_ptr<Graph>> (*read)(const FileView& file);
  absl::Status (*write)(const Graph& graph, ByteSink* sink);
  // Zero where only writing tells.
  uint64_t (*size)(const Graph& graph);
};

bool LooksLikeText(absl::string_view bytes) {
  constexpr size_t kLooked = 4096;
  return std::none_of(bytes.begin(), bytes.begin() + std::min(bytes.size(), kLooked), [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return (byte < 0x20 && c != '\n' && c != '\r' && c != '\t' && c != '\f' && c != '\v') || byte == 0x7f;
  });
}

// In the order in which they are tried.
constexpr Format kFormats[] = {
    {ModelFormat::kBinary, "GraphDef", [](absl::string_view bytes) { return !LooksLikeText(bytes); },
     [](const FileView& file) { return ReadGraphDef(file.bytes, file.owner); }, WriteGraphDef, GraphDefSize},
    {ModelFormat::kText, "text GraphDef", LooksLikeText,
     [](const FileView& file) { return ReadGraphDefText(file.bytes); }, WriteGraphDefText,
     [](const Graph&) { return uint64_t{0}; }},
};

const Format& FormatOf(ModelFormat format) {
  return *std::find_if(std::begin(kFormats), std::end(kFormats), [&](const Format& f) { return f.format == format; });
}

class CountingSink : public ByteSink {
 public:
  absl::Status Append(absl::string_view bytes) override {
    size_ += bytes.size();
    return absl::OkStatus();
  }
  uint64_t size() const { return size_; }

 private:
  uint64_t size_ = 0;
};

// Any bytes with valid tags are a GraphDef of unknown fields only, or nearly so: without nodes, a file that begins like
// another format is of that format.
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

}  // namespace

absl::StatusOr<std::unique_ptr<Graph>> ReadModel(FileView file) {
  if (file.bytes.empty()) return absl::InvalidArgumentError("the file is empty, expected a frozen graph");
  absl::Status error;
  for (const Format& format : kFormats) {
    const bool is_likely = format.may_be(file.bytes);
    // Binary is tried on everything, since a graph with printable bytes only is possible.
    if (!is_likely && format.format != ModelFormat::kBinary) continue;
    absl::StatusOr<std::unique_ptr<Graph>> graph = format.read(file);
    const absl::string_view foreign = ForeignFormat(file.bytes);
    if (graph.ok() && IsConvincing(**graph, foreign)) return graph;
    if (!foreign.empty()) return absl::InvalidArgumentError(absl::StrCat("the file ", foreign));
    if (!is_likely) continue;
    error = graph.ok() ? absl::InvalidArgumentError("the file holds no nodes, expected a frozen graph")
                       : Annotate(graph.status(), absl::StrCat("cannot be read as a ", format.name));
  }
  return error;
}

absl::StatusOr<std::unique_ptr<Graph>> OpenModel(FileSystem& files, const std::string& path) {
  const absl::StatusOr<FileStat> stat = files.Stat(path);
  if (stat.ok() && stat->is_directory) return DirectoryError(files, path);
  PF_ASSIGN_OR_RETURN(FileView file, files.MapFile(path));
  absl::StatusOr<std::unique_ptr<Graph>> graph = ReadModel(std::move(file));
  if (!graph.ok()) return Annotate(graph.status(), absl::StrCat("'", path, "'"));
  return graph;
}

absl::Status SaveModel(FileSystem& files, const Graph& graph, const std::string& path, ModelFormat format) {
  const Format& chosen = FormatOf(format);
  PF_ASSIGN_OR_RETURN(std::unique_ptr<FileWriter> writer, files.NewWriter(path, chosen.size(graph)));
  PF_RETURN_IF_ERROR(chosen.write(graph, writer.get()));
  return writer->Commit();
}

absl::StatusOr<uint64_t> EncodedSize(const Graph& graph, ModelFormat format) {
  const Format& chosen = FormatOf(format);
  const uint64_t size = chosen.size(graph);
  if (size > 0) return size;
  CountingSink sink;
  PF_RETURN_IF_ERROR(chosen.write(graph, &sink));
  return sink.size();
}

}  // namespace permafrost
