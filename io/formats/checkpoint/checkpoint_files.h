// Determines the files of a checkpoint from any of its names.
#ifndef PERMAFROST_IO_FORMATS_CHECKPOINT_CHECKPOINT_FILES_H_
#define PERMAFROST_IO_FORMATS_CHECKPOINT_CHECKPOINT_FILES_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "io/file_system.h"

namespace permafrost {

struct CheckpointFiles {
  // The prefix of the file names. A checkpoint of version 2 has the file `<prefix>.index`.
  std::string prefix;
  // The tables of a checkpoint of version 1, in order; empty for version 2.
  std::vector<std::string> tables;
};

// Finds the files of a checkpoint. Accepts the same paths as OpenCheckpoint, with the same errors. Files are opened
// only to determine their type.
absl::StatusOr<CheckpointFiles> FindCheckpointFiles(FileSystem& files, const std::string& path);

// Returns the entry model_checkpoint_path of a CheckpointState in protobuf's text format, the content of the file
// `checkpoint` in a folder. Returns DataLoss with the line.
absl::StatusOr<std::string> ParseCheckpointState(absl::string_view text);

}  // namespace permafrost

#endif  // PERMAFROST_IO_FORMATS_CHECKPOINT_CHECKPOINT_FILES_H_
