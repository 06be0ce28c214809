// Links every format, including compressed and encrypted models.
#include <utility>

#include "embedding/model_reading.h"
#include "io/model_file.h"

namespace permafrost {

absl::StatusOr<std::unique_ptr<Graph>> ReadModelFile(const std::string& path, const OpenOptions& options) {
  return OpenModel(RealFileSystem(), path, options);
}

absl::StatusOr<std::unique_ptr<Graph>> ReadModelBytes(FileView bytes, const OpenOptions& options) {
  return ReadModel(std::move(bytes), options);
}

}  // namespace permafrost
