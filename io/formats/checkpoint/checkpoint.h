// Opens a training checkpoint, of either version, as a source of variables.
#ifndef PERMAFROST_IO_FORMATS_CHECKPOINT_CHECKPOINT_H_
#define PERMAFROST_IO_FORMATS_CHECKPOINT_CHECKPOINT_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "graph/variable_source.h"
#include "io/file_system.h"
#include "io/model_format.h"

namespace permafrost {

// `path` is what there is at hand: the prefix that the files share ("model.ckpt-1000"); one of the files; the folder of
// checkpoints, of which the latest is taken; the folder of a SavedModel, or its "variables". `files` must outlive the
// call only: what was mapped stays as it is.
//
// All of the index is read and verified, and every place that it names is checked to be inside its file and no other's;
// the values are verified as they are read. Those of version 2 are views of the mapped files, except strings, booleans
// that are not 0 or 1, variables that were saved in parts, and what a big-endian machine wrote.
//
// NotFound, with the nearest names, when there is no checkpoint or one of its files is missing; DataLoss for a damaged
// one; FailedPrecondition for one that is from the future. Errors name the file.
absl::StatusOr<std::unique_ptr<VariableSource>> OpenCheckpoint(FileSystem& files, const std::string& path,
                                                               const OpenOptions& options = {});

}  // namespace permafrost

#endif  // PERMAFROST_IO_FORMATS_CHECKPOINT_CHECKPOINT_H_
