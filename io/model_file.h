// Opens and saves models: the entry point of io/.
#ifndef PERMAFROST_IO_MODEL_FILE_H_
#define PERMAFROST_IO_MODEL_FILE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "graph/graph.h"
#include "io/byte_source.h"
#include "io/file_system.h"
#include "io/model_format.h"

namespace permafrost {

// Returns every format, in the order in which they are tried.
absl::Span<const ModelFormat* const> ModelFormats();

// Reads the model at `path`. Format, compression and encryption are detected from the content, not from the name.
// Weights of a binary file are views of the mapped file, which the graph keeps mapped; the file may be replaced
// meanwhile, for example by SaveModel. Every error names the path. InvalidArgument and DataLoss describe the problem in
// the content, and name the format of files that are known not to be frozen graphs.
absl::StatusOr<std::unique_ptr<Graph>> OpenModel(FileSystem& files, const std::string& path,
                                                 const OpenOptions& options = {});

// Same as OpenModel, for bytes in memory. Errors do not name a path.
absl::StatusOr<std::unique_ptr<Graph>> ReadModel(FileView file, const OpenOptions& options = {});

// Returns the bytes of the model at `path` after decompression and decryption, for reading parts of it. Encrypted
// models are decrypted on access. Same errors as OpenModel.
absl::StatusOr<std::shared_ptr<const ByteSource>> OpenModelBytes(FileSystem& files, const std::string& path,
                                                                 const OpenOptions& options = {});

// Options of SaveModel.
struct SaveOptions {
  absl::string_view format = "pb";  // A name in ModelFormats().
  // Filters applied to the encoded model, in this order. Compression must come before encryption.
  std::vector<MakeFilter> filters = {};
};

// Writes the file at `path`, replacing an existing one atomically and durably. On any error an existing file is
// unchanged, with one exception: if the disk fails while the directory is synced after the replacement, DataLoss says
// so. Returns InvalidArgument for an unknown or read-only format.
absl::Status SaveModel(FileSystem& files, const Graph& graph, const std::string& path, const SaveOptions& options = {});

// Same, into a file that was opened before, and closes it. Opening early detects early that the file cannot be written,
// and allows FileWriter::ReserveAhead to allocate space meanwhile.
absl::Status SaveModel(std::unique_ptr<FileWriter> file, const Graph& graph, const SaveOptions& options = {});

// Same, for the bytes that `write` appends to its sink: `size` bytes, or 0 if the size is known only after writing.
absl::Status SaveThrough(FileSystem& files, const std::string& path, absl::Span<const MakeFilter> filters,
                         uint64_t size, const std::function<absl::Status(ByteSink*)>& write);

// Returns the number of bytes that SaveModel would write.
absl::StatusOr<uint64_t> EncodedSize(const Graph& graph, const SaveOptions& options = {});

}  // namespace permafrost

#endif  // PERMAFROST_IO_MODEL_FILE_H_
