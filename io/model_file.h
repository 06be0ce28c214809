// Opens and saves models: the entry point of io/.
#ifndef PERMAFROST_IO_MODEL_FILE_H_
#define PERMAFROST_IO_MODEL_FILE_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "graph/graph.h"
#include "io/file_system.h"

namespace permafrost {

enum class ModelFormat {
  kBinary,  // A serialised GraphDef, .pb
  kText,    // The same in protobuf's text format, .pbtxt
};

// Reads the model at `path`, whatever its name: the content tells the format. Weights of a binary file stay views of
// the mapped file, which the graph keeps mapped; it may be replaced meanwhile, by SaveModel for instance. Every error
// names the path. InvalidArgument and DataLoss say what is wrong with the content, and name a format that is known but
// not a frozen graph.
absl::StatusOr<std::unique_ptr<Graph>> OpenModel(FileSystem& files, const std::string& path);

// As OpenModel, for bytes that are at hand already. Errors do not name a path.
absl::StatusOr<std::unique_ptr<Graph>> ReadModel(FileView file);

// Replaces or makes the file at `path`, in one step and durably: on any error an existing file is untouched, save that a
// disk which fails while the folder is synced, after the step, is a DataLoss that says so.
absl::Status SaveModel(FileSystem& files, const Graph& graph, const std::string& path, ModelFormat format);

// Bytes that SaveModel would write.
absl::StatusOr<uint64_t> EncodedSize(const Graph& graph, ModelFormat format = ModelFormat::kBinary);

}  // namespace permafrost

#endif  // PERMAFROST_IO_MODEL_FILE_H_
