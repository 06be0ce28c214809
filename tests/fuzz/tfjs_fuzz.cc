// Fuzz target: text as the model.json of a TensorFlow.js model, in which every shard has the same 64 bytes. No file
// outside the folder may be opened, and a resulting graph must survive writing and reading.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "graph/graph.h"
#include "io/formats/graphdef.h"
#include "io/formats/tfjs.h"

namespace permafrost {
namespace {

void Fail(absl::string_view what, absl::string_view input) {
  std::fprintf(stderr, "%s\ninput: \"%s\"\n", std::string(what).c_str(), absl::CHexEscape(input).c_str());
  std::abort();
}

// A folder "/m/" in which every name exists as a file.
class FolderOfShards : public FileSystem {
 public:
  absl::StatusOr<FileView> MapFile(const std::string& path) override {
    bool leads_out = !absl::StartsWith(path, "/m/");
    for (const absl::string_view piece : absl::StrSplit(path, '/')) leads_out = leads_out || piece == "..";
    if (leads_out) outside = path;
    return FileView{shard_, nullptr};
  }
  absl::StatusOr<std::string> ReadFile(const std::string& /*path*/) override { return shard_; }
  absl::StatusOr<std::unique_ptr<FileWriter>> NewWriter(const std::string& path, uint64_t /*size*/) override {
    outside = path;
    return absl::PermissionDeniedError("");
  }
  absl::Status WritePrivateFile(const std::string& path, absl::string_view /*bytes*/) override {
    outside = path;
    return absl::OkStatus();
  }
  absl::StatusOr<FileStat> Stat(const std::string& /*path*/) override { return FileStat{shard_.size(), false, true}; }
  bool Exists(const std::string& /*path*/) override { return true; }
  bool IsSameFile(const std::string& a, const std::string& b) override { return a == b; }
  absl::StatusOr<std::vector<std::string>> ListDirectory(const std::string& /*path*/) override {
    return std::vector<std::string>();
  }
  absl::Status MakeDirectory(const std::string& path) override {
    outside = path;
    return absl::OkStatus();
  }

  std::string outside;  // A path outside the folder that was opened.

 private:
  const std::string shard_ = std::string("\x02\0\0\0ab\0\0\x80\x3f\x01\0\0\0\xff", 15) + std::string(49, '\1');
};

}  // namespace
}  // namespace permafrost

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace permafrost;
  const absl::string_view bytes(reinterpret_cast<const char*>(data), size);
  FolderOfShards files;
  ModelSource source;
  source.bytes = MemorySource({bytes, nullptr});
  source.head = {bytes.substr(0, ModelSource::kEndBytes), nullptr};
  source.files = &files;
  source.path = "/m/model.json";
  OpenOptions options;
  options.max_model_bytes = 1 << 20;
  const absl::StatusOr<std::unique_ptr<Graph>> graph = kTfjsFormat.read(source, options);
  if (!files.outside.empty()) Fail(absl::StrCat("a path leads out: ", files.outside), bytes);
  if (!graph.ok()) {
    if (absl::StrContains(graph.status().message(), '\n')) Fail("the message has several lines", bytes);
    return 0;
  }
  StringSink written;
  if (!WriteGraphDef(**graph, &written).ok()) Fail("an accepted graph cannot be written", bytes);
  const absl::StatusOr<std::unique_ptr<Graph>> again = ReadGraphDef(written.text(), nullptr);
  if (!again.ok()) Fail(again.status().message(), bytes);
  if ((*again)->num_nodes() != (*graph)->num_nodes()) Fail("nodes are lost", bytes);
  return 0;
}
