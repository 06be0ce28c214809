// What a format of a model is, and what one is wrapped in. Each has one definition, in io/formats/; the tables in
// io/model_file.cc list them.
#ifndef PERMAFROST_IO_MODEL_FORMAT_H_
#define PERMAFROST_IO_MODEL_FORMAT_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "graph/base/wire.h"
#include "graph/graph.h"
#include "io/byte_source.h"
#include "io/file_system.h"
#include "io/key_source.h"

namespace permafrost {

class Package;  // io/formats/memmapped_package.h

// How a model is opened.
struct OpenOptions {
  // What a compressed model may grow to, in bytes, before it is refused: a file of a few kilobytes can stand for
  // terabytes.
  uint64_t max_model_bytes = uint64_t{16} << 30;
  // What opens encrypted models; null for nothing.
  std::shared_ptr<KeySource> keys;
  // Refuse an encrypted model when the system does not let all of it be kept out of swap.
  bool require_locked_memory = false;
  // All of the model is about to be read, as it is when it is written again: another thread maps it meanwhile.
  bool reads_all = false;
  // Told, in a line, what the user should know of a model that opens all the same. Null: nobody is told.
  std::function<void(absl::string_view note)> tell;
  // Where the model is a package, this is set to it, for its other regions. Null: nobody asks.
  std::shared_ptr<const Package>* package = nullptr;
};

// A model to be read.
struct ModelSource {
  std::shared_ptr<const ByteSource> bytes;
  // The first and the last bytes, at most kEndBytes of each.
  FileView head, tail;
  // Where it lies, for formats of several files; null and empty for bytes that are in no file.
  FileSystem* files = nullptr;
  std::string path;

  static constexpr uint64_t kEndBytes = 4096;
};

// True when the first kEndBytes have none but those of printable text, as UTF-8, and white space: binary messages have
// tags in front, which are control characters.
bool LooksLikeText(absl::string_view bytes);

// True for text whose first character that is not white space is a brace.
bool LooksLikeJson(absl::string_view bytes);

struct ModelFormat {
  absl::string_view name;       // What a flag takes: "pb".
  absl::string_view title;      // What a message says: "GraphDef".
  absl::string_view extension;  // Of files that are to have this format, with its dot.

  // Whether a file could be of this format: decides whose error a broken file gets. Null for one that is only written.
  bool (*may_be)(const ModelSource& source);
  absl::StatusOr<std::unique_ptr<Graph>> (*read)(const ModelSource& source, const OpenOptions& options);
  // Null for one that is only read.
  absl::Status (*write)(const Graph& graph, ByteSink* sink);
  // Bytes that `write` will make; null, or 0, where only writing tells.
  uint64_t (*size)(const Graph& graph);
};

// What a model can be wrapped in, compressed or encrypted. Reading looks through it.
struct ModelWrapping {
  absl::string_view title;  // "zstd".
  bool (*is)(const ModelSource& source);
  absl::StatusOr<std::shared_ptr<const ByteSource>> (*open)(const ModelSource& source, const OpenOptions& options);
};

// Changes what passes through on its way into another sink.
class FilterSink : public ByteSink {
 public:
  // Passes on what is still held back. REQUIRES: called once, at the end.
  virtual absl::Status Finish() = 0;
};

// Makes a sink that changes what goes into `out`. `size` is how many bytes it will be given, 0 when that is not known.
using MakeFilter = std::function<absl::StatusOr<std::unique_ptr<FilterSink>>(ByteSink* out, uint64_t size)>;

// Keeps only how many bytes it was given.
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

}  // namespace permafrost

#endif  // PERMAFROST_IO_MODEL_FORMAT_H_
