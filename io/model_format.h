// Definitions of model formats and of wrappings (compression, encryption). Each format is defined once, in io/formats/,
// and listed in a table in io/model_file.cc.
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

// Options of OpenModel.
struct OpenOptions {
  // Maximum size of a decompressed model in bytes. Larger models are rejected, because a file of a few kilobytes can
  // expand to terabytes.
  uint64_t max_model_bytes = uint64_t{16} << 30;
  // Keys of encrypted models; may be null.
  std::shared_ptr<KeySource> keys;
  // Reject an encrypted model if the system does not allow all of it to be locked in memory.
  bool require_locked_memory = false;
  // The whole model will be read, for example to write it again. A background thread maps its pages.
  bool reads_all = false;
  // Accept a GraphDef with inputs that name no node, for tools that only inspect it (see ReadGraphDef).
  bool allow_dangling_inputs = false;
  // Called with one-line notes about a model that opens successfully. May be null.
  std::function<void(absl::string_view note)> tell;
  // If non-null and the model is a package, set to it, for access to its other regions.
  std::shared_ptr<const Package>* package = nullptr;
};

// A model to be read.
struct ModelSource {
  std::shared_ptr<const ByteSource> bytes;
  // The first and last bytes of the file, at most kEndBytes each.
  FileView head, tail;
  // Location of the file, for formats that consist of several files. Null and empty for bytes in memory.
  FileSystem* files = nullptr;
  std::string path;

  static constexpr uint64_t kEndBytes = 4096;
};

// True if the first kEndBytes contain only printable UTF-8 text and white space. Binary messages start with tags, which
// are control characters.
bool LooksLikeText(absl::string_view bytes);

// True for text whose first character other than white space is a brace.
bool LooksLikeJson(absl::string_view bytes);

struct ModelFormat {
  absl::string_view name;       // Value of flags: "pb".
  absl::string_view title;      // Name in messages: "GraphDef".
  absl::string_view extension;  // File extension of this format, with its dot.

  // Returns whether a file could have this format, which decides whose error is reported for a broken file. Null for a
  // write-only format.
  bool (*may_be)(const ModelSource& source);
  absl::StatusOr<std::unique_ptr<Graph>> (*read)(const ModelSource& source, const OpenOptions& options);
  // Null for a read-only format.
  absl::Status (*write)(const Graph& graph, ByteSink* sink);
  // Returns the number of bytes that `write` will append. Null, or returns 0, if it is known only after writing.
  uint64_t (*size)(const Graph& graph);
};

// A compression or encryption that readers remove transparently.
struct ModelWrapping {
  absl::string_view title;  // "zstd".
  bool (*is)(const ModelSource& source);
  absl::StatusOr<std::shared_ptr<const ByteSource>> (*open)(const ModelSource& source, const OpenOptions& options);
};

// A sink that transforms bytes and appends them to another sink.
class FilterSink : public ByteSink {
 public:
  // Appends all bytes that are still buffered. REQUIRES: called once, at the end.
  virtual absl::Status Finish() = 0;
};

// Creates a filter in front of `out`. `size` is the number of bytes that will be appended to it, or 0 if unknown.
using MakeFilter = std::function<absl::StatusOr<std::unique_ptr<FilterSink>>(ByteSink* out, uint64_t size)>;

// Counts bytes and discards them.
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
