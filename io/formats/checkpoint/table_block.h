// One block of a sorted table: entries in order of their keys, each key given as what differs from the one before.
#ifndef PERMAFROST_IO_FORMATS_CHECKPOINT_TABLE_BLOCK_H_
#define PERMAFROST_IO_FORMATS_CHECKPOINT_TABLE_BLOCK_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace permafrost {

// Walks a block from its beginning. Does not own the bytes.
class TableBlockReader {
 public:
  // `contents` without type and checksum. DataLoss when the list of restarts at its end does not fit.
  static absl::StatusOr<TableBlockReader> Open(absl::string_view contents);

  // Goes to the next entry; false at the end and on an error, which status() tells apart.
  bool Next();
  // Of the entry that Next went to. The key is valid until the next call, the value as long as the block.
  const std::string& key() const { return key_; }
  absl::string_view value() const { return value_; }

  // DataLoss with the byte of the block: an entry that ends beyond the block, that shares more than there is, or that
  // is not greater than the one before.
  const absl::Status& status() const { return status_; }

 private:
  TableBlockReader(const char* begin, const char* end) : begin_(begin), at_(begin), end_(end) {}
  bool ReadLength(uint32_t* length);
  bool Fail(absl::string_view what);

  const char* begin_;
  const char* at_;
  const char* end_;  // Of the entries.
  std::string key_;
  absl::string_view value_;
  absl::Status status_;
};

}  // namespace permafrost

#endif  // PERMAFROST_IO_FORMATS_CHECKPOINT_TABLE_BLOCK_H_
