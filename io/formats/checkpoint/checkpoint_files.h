// Which files a checkpoint consists of, from whatever name of it is at hand.
#ifndef PERMAFROST_IO_FORMATS_CHECKPOINT_CHECKPOINT_FILES_H_
#define PERMAFROST_IO_FORMATS_CHECKPOINT_CHECKPOINT_FILES_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "io/file_system.h"

namespace permafrost {

struct CheckpointFiles {
  // What their names begin with: `<prefix>.index` is there for a checkpoint of version 2.
  std::string prefix;
  // Those of a checkpoint of version 1, in order; empty for version 2.
  std::vector<std::string> tables;
};

// Takes what OpenCheckpoint takes, with its errors. Files are looked for, and opened only to tell what they are.
absl::StatusOr<CheckpointFiles> FindCheckpointFiles(FileSystem& files, const std::string& path);

// The entry model_checkpoint_path of a CheckpointState in protobuf's text form, which the file `checkpoint` in a folder
// holds. DataLoss with the line.
absl::StatusOr<std::string> ParseCheckpointState(absl::string_view text);

}  // namespace permafrost

#endif  // PERMAFROST_IO_FORMATS_CHECKPOINT_CHECKPOINT_FILES_H_
