// Files of --cache_dir with what delegates compile.
#ifndef PERMAFROST_TOOLS_MODEL_BLOB_FILES_H_
#define PERMAFROST_TOOLS_MODEL_BLOB_FILES_H_

#include <memory>
#include <string>

#include "io/file_system.h"
#include "runtime_check/delegates/delegate_blobs.h"

namespace permafrost {

// Returns a storage with one file for each key in `folder`, which is created with the first blob. A file
// contains the key, which distinguishes keys with equal hashes, and a hash of its bytes. Damaged files count as absent
// and are replaced. Files are complete when they appear (CheckedFiles), so concurrent processes do not disturb each
// other. `files` must outlive the result.
std::shared_ptr<DelegateBlobs> BlobFiles(FileSystem& files, const std::string& folder);

}  // namespace permafrost

#endif  // PERMAFROST_TOOLS_MODEL_BLOB_FILES_H_
