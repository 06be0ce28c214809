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

// Every format, in the order in which they are tried.
absl::Span<const ModelFormat* const> ModelFormats();

// Reads the model at `path`, whatever its name: the content tells the format, and what it is wrapped in. Weights of a
// binary file stay views of the mapped file, which the graph keeps mapped; it may be replaced meanwhile, by SaveModel
// for instance. Every error names the path. InvalidArgument and DataLoss say what is wrong with the content, and name a
// format that is known but not a frozen graph.
absl::StatusOr<std::unique_ptr<Graph>> OpenModel(FileSystem& files, const std::string& path,
                                                 const OpenOptions& options = {});

// As OpenModel, for bytes that are at hand already. Errors do not name a path.
absl::StatusOr<std::unique_ptr<Graph>> ReadModel(FileView file, const OpenOptions& options = {});

// The bytes of the model at `path` inside of whatever it is compressed or encrypted in, for those who read parts of it:
// what is encrypted is decrypted as it is read. Errors as of OpenModel.
absl::StatusOr<std::shared_ptr<const ByteSource>> OpenModelBytes(FileSystem& files, const std::string& path,
                                                                 const OpenOptions& options = {});

// How a model is saved.
struct SaveOptions {
  absl::string_view format = "pb";  // A name of ModelFormats().
  // What the model passes through on its way into the file, in this order: compression comes before encryption.
  std::vector<MakeFilter> filters = {};
};

// Replaces or makes the file at `path`, in one step and durably: on any error an existing file is untouched, save that
// a disk which fails while the folder is synced, after the step, is a DataLoss that says so. InvalidArgument for a
// format that does not exist or is only read.
absl::Status SaveModel(FileSystem& files, const Graph& graph, const std::string& path, const SaveOptions& options = {});

// The same into a file that was opened before, which ends with this call: who opens it first learns early that it
// cannot be written, and may have its space made meanwhile (FileWriter::ReserveAhead).
absl::Status SaveModel(std::unique_ptr<FileWriter> file, const Graph& graph, const SaveOptions& options = {});

// The same for what `write` appends to the sink that it is given, whatever it is: `size` bytes, or 0 where only writing
// tells.
absl::Status SaveThrough(FileSystem& files, const std::string& path, absl::Span<const MakeFilter> filters,
                         uint64_t size, const std::function<absl::Status(ByteSink*)>& write);

// Bytes that SaveModel would write.
absl::StatusOr<uint64_t> EncodedSize(const Graph& graph, const SaveOptions& options = {});

}  // namespace permafrost

#endif  // PERMAFROST_IO_MODEL_FILE_H_
