// Reads the table of sorted keys and values that LevelDB made: the index of a checkpoint, or all of an old one.
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

// Every block's checksum is verified each time it is read, and no length is believed before it was compared with what
// is there. Thread-safe. Errors are DataLoss with the offset in the file (ResourceExhausted for what would take too
// much memory, Unimplemented for an unknown compression) and do not name it.
class SortedTable {
 public:
  // Whether the file ends as a table does.
  static bool Is(absl::string_view file);

  // Reads the list of blocks.
  static absl::StatusOr<SortedTable> Open(FileView file);

  // Calls visit(key, value), which returns a Status, for each entry in order of the keys, and stops at an error. The
  // value may be kept: its owner holds the file or the block.
  absl::Status ForEach(absl::FunctionRef<absl::Status(const std::string& key, const FileView& value)> visit) const;

  // The value of `key`; NotFound.
  absl::StatusOr<FileView> Find(absl::string_view key) const;

 private:
  // Where a block lies, without its type and checksum.
  struct BlockHandle {
    uint64_t offset = 0;
    uint64_t size = 0;
  };
  struct Block {
    std::string last_key;  // Not smaller than any key in the block.
    BlockHandle handle;
  };

  explicit SortedTable(FileView file) : file_(std::move(file)) {}
  absl::Status ReadBlockList(const BlockHandle& handle);
  absl::StatusOr<BlockHandle> ParseHandle(absl::string_view* bytes) const;
  // The contents, checked and uncompressed.
  absl::StatusOr<FileView> ReadBlock(const BlockHandle& handle) const;

  FileView file_;
  std::vector<Block> blocks_;
};

}  // namespace permafrost

#endif  // PERMAFROST_IO_FORMATS_CHECKPOINT_SORTED_TABLE_H_
