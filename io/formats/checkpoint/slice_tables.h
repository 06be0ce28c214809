// Checkpoints of version 1: tables that hold both index and values, each variable in one or more slices.
#ifndef PERMAFROST_IO_FORMATS_CHECKPOINT_SLICE_TABLES_H_
#define PERMAFROST_IO_FORMATS_CHECKPOINT_SLICE_TABLES_H_

#include <memory>

#include "absl/status/statusor.h"
#include "graph/variable_source.h"
#include "io/file_system.h"
#include "io/formats/checkpoint/checkpoint_files.h"

namespace permafrost {

// Same as OpenCheckpoint. Values are copied when they are read.
absl::StatusOr<std::unique_ptr<VariableSource>> OpenSliceTables(FileSystem& files, const CheckpointFiles& found);

}  // namespace permafrost

#endif  // PERMAFROST_IO_FORMATS_CHECKPOINT_SLICE_TABLES_H_
