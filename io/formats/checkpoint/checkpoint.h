// Opens a training checkpoint of either version as a source of variables.
#ifndef PERMAFROST_IO_FORMATS_CHECKPOINT_CHECKPOINT_H_
#define PERMAFROST_IO_FORMATS_CHECKPOINT_CHECKPOINT_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "graph/variable_source.h"
#include "io/file_system.h"
#include "io/model_format.h"

namespace permafrost {

// Opens the checkpoint at `path`, which may be the prefix of its files ("model.ckpt-1000"), one of its files, the
// folder of checkpoints (the latest is opened), the folder of a SavedModel, or its folder "variables". `files` must
// outlive the call only; mapped files stay valid.
//
// The whole index is read and verified, and each value is checked to be inside its file without overlapping another.
// Values are verified when they are read. Values of version 2 are views of the mapped files, except for strings,
// booleans other than 0 and 1, variables saved in slices, and big-endian values.
//
// Returns NotFound, with the nearest names, if there is no checkpoint or one of its files is missing; DataLoss if it is
// damaged; FailedPrecondition if a newer version wrote it. Errors name the file.
absl::StatusOr<std::unique_ptr<VariableSource>> OpenCheckpoint(FileSystem& files, const std::string& path,
                                                               const OpenOptions& options = {});

}  // namespace permafrost

#endif  // PERMAFROST_IO_FORMATS_CHECKPOINT_CHECKPOINT_H_
