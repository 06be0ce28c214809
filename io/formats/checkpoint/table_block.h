// One block of a sorted table: entries in order of their keys. Each key is stored as its difference from the previous
// key.
#ifndef PERMAFROST_IO_FORMATS_CHECKPOINT_TABLE_BLOCK_H_
#define PERMAFROST_IO_FORMATS_CHECKPOINT_TABLE_BLOCK_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace permafrost {

// Iterates over a block from its beginning. Does not own the bytes.
class TableBlockReader {
 public:
  // Opens `contents`, a block without type and checksum. Returns DataLoss if the list of restarts at its end is
  // malformed.
  static absl::StatusOr<TableBlockReader> Open(absl::string_view contents);

  // Advances to the next entry. Returns false at the end and on an error; status() distinguishes the two.
  bool Next();
  // The current entry. The key is valid until the next call of Next, the value as long as the block.
  const std::string& key() const { return key_; }
  absl::string_view value() const { return value_; }

  // DataLoss with the byte offset in the block: an entry that ends beyond the block, shares more bytes than the
  // previous key has, or is not greater than the previous one.
  const absl::Status& status() const { return status_; }

 private:
  TableBlockReader(const char* begin, const char* end) : begin_(begin), at_(begin), end_(end) {}
  bool ReadLength(uint32_t* length);
  bool Fail(absl::string_view what);

  const char* begin_;
  const char* at_;
  const char* end_;  // End of the entries.
  std::string key_;
  absl::string_view value_;
  absl::Status status_;
};

}  // namespace permafrost

#endif  // PERMAFROST_IO_FORMATS_CHECKPOINT_TABLE_BLOCK_H_
