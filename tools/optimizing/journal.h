// The journal of a search: a file that holds the result of every trial, so that an interrupted search can be resumed.
#ifndef PERMAFROST_TOOLS_OPTIMIZING_JOURNAL_H_
#define PERMAFROST_TOOLS_OPTIMIZING_JOURNAL_H_

#include <memory>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "io/file_system.h"

namespace permafrost {

// The conditions under which results of a journal may be used again.
struct JournalHeader {
  std::string model;   // Fingerprint of the original model and of its interface.
  std::string inputs;  // Fingerprint of all inputs and labels.
  std::string machine;
};

// A file with a JSON object per line: the header, then a record per trial. Each addition replaces the whole file
// atomically, so that a killed search leaves a valid journal. Not thread-safe.
class Journal {
 public:
  // Opens the journal at `path`, or begins one if there is no such file; an empty path keeps records in memory only. A
  // last line that is cut off is dropped. InvalidArgument for a file that is not a journal; FailedPrecondition, with
  // found and expected, for a journal of another model, other inputs or another machine. `files` must outlive the
  // journal.
  static absl::StatusOr<Journal> Open(FileSystem& files, const std::string& path, const JournalHeader& header);

  // Returns the JSON text of the record with that key, or null.
  const std::string* Find(absl::string_view key) const;
  // Adds a record. `json` is one JSON value. Writes the file; on an error the record is kept in memory.
  absl::Status Add(const std::string& key, const std::string& json);

  size_t size() const { return records_.size(); }

 private:
  Journal(FileSystem& files, std::string path) : files_(&files), path_(std::move(path)) {}
  absl::Status Write() const;

  FileSystem* files_;
  std::string path_;
  std::string text_;  // Content of the file.
  absl::flat_hash_map<std::string, std::string> records_;
};

}  // namespace permafrost

#endif  // PERMAFROST_TOOLS_OPTIMIZING_JOURNAL_H_
