// Checkpoints of version 2: an index `PREFIX.index`, and shards with the values, `PREFIX.data-00000-of-00002`.
#ifndef PERMAFROST_IO_FORMATS_CHECKPOINT_BUNDLE_H_
#define PERMAFROST_IO_FORMATS_CHECKPOINT_BUNDLE_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "graph/variable_source.h"
#include "io/file_system.h"
#include "io/model_format.h"

namespace permafrost {

// Same as OpenCheckpoint, for the files with this prefix.
absl::StatusOr<std::unique_ptr<VariableSource>> OpenBundle(FileSystem& files, const std::string& prefix,
                                                           const OpenOptions& options);

}  // namespace permafrost

#endif  // PERMAFROST_IO_FORMATS_CHECKPOINT_BUNDLE_H_
