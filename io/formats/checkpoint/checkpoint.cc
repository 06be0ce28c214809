// Implements OpenCheckpoint by dispatching on the version.
#include "io/formats/checkpoint/checkpoint.h"

#include "graph/base/status.h"
#include "io/formats/checkpoint/bundle.h"
#include "io/formats/checkpoint/checkpoint_files.h"
#include "io/formats/checkpoint/slice_tables.h"

namespace permafrost {

absl::StatusOr<std::unique_ptr<VariableSource>> OpenCheckpoint(FileSystem& files, const std::string& path,
                                                               const OpenOptions& options) {
  PF_ASSIGN_OR_RETURN(const CheckpointFiles found, FindCheckpointFiles(files, path));
  if (found.tables.empty()) return OpenBundle(files, found.prefix, options);
  return OpenSliceTables(files, found);
}

}  // namespace permafrost
