// Reads a sorted table in LevelDB's format: the index of a checkpoint, or a whole checkpoint of version 1.
#ifndef PERMAFROST_IO_FORMATS_CHECKPOINT_SORTED_TABLE_H_
#define PERMAFROST_IO_FORMATS_CHECKPOINT_SORTED_TABLE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "io/file_system.h"

namespace permafrost {

// A table of keys and values, sorted by key. The checksum of a block is verified each time the block is read, and every
// length is checked against the available bytes. Thread-safe. Errors are DataLoss with the offset in the file,
// ResourceExhausted for excessive memory, or Unimplemented for an unknown compression. They do not name the file.
class SortedTable {
 public:
  // True if the file ends like a table.
  static bool Is(absl::string_view file);

  // Opens a table and reads its list of blocks.
  static absl::StatusOr<SortedTable> Open(FileView file);

  // Calls visit(key, value), which returns a Status, for each entry in order of the keys, and stops at the first error.
  // The value may be kept: its owner keeps the file or the block alive.
  absl::Status ForEach(absl::FunctionRef<absl::Status(const std::string& key, const FileView& value)> visit) const;

  // Returns the value of `key`, or NotFound.
  absl::StatusOr<FileView> Find(absl::string_view key) const;

 private:
  // Position of a block, not counting its type and checksum.
  struct BlockHandle {
    uint64_t offset = 0;
    uint64_t size = 0;
  };
  struct Block {
    std::string last_key;  // Greater than or equal to every key in the block.
    BlockHandle handle;
  };

  explicit SortedTable(FileView file) : file_(std::move(file)) {}
  absl::Status ReadBlockList(const BlockHandle& handle);
  absl::StatusOr<BlockHandle> ParseHandle(absl::string_view* bytes) const;
  // Returns the content of a block, verified and decompressed.
  absl::StatusOr<FileView> ReadBlock(const BlockHandle& handle) const;

  FileView file_;
  std::vector<Block> blocks_;
};

}  // namespace permafrost

#endif  // PERMAFROST_IO_FORMATS_CHECKPOINT_SORTED_TABLE_H_
