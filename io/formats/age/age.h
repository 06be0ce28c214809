// Encrypted models: the age v1 format (docs/formats/encryption.md).
#ifndef PERMAFROST_IO_FORMATS_AGE_AGE_H_
#define PERMAFROST_IO_FORMATS_AGE_AGE_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "graph/base/wire.h"
#include "io/byte_source.h"
#include "io/formats/age/header.h"
#include "io/formats/age/keys.h"
#include "io/formats/age/stream.h"
#include "io/model_format.h"

namespace permafrost {

extern const ModelWrapping kAgeWrapping;

// Whether a file that begins so is encrypted with age, in binary or as text.
bool IsAge(absl::string_view beginning);

// What can be known of a file without a key. None of it is authenticated.
struct AgeFile {
  std::shared_ptr<const ByteSource> bytes;  // Without armour.
  bool is_armored = false;
  age::Header header;
  age::ChunkLayout layout;
};

// DataLoss: not a file of the format, or one that is truncated visibly. ResourceExhausted: a passphrase that would take
// more work than is given to it.
absl::StatusOr<AgeFile> InspectAge(std::shared_ptr<const ByteSource> file);

// What the file holds. Chunks are decrypted when they are read, into locked memory; the last one at once, so that a
// file that was cut off does not open. FailedPrecondition: a key is needed, and options.keys has none of the kind;
// PermissionDenied: none of its keys opens the file; DataLoss, here and from Read: a byte was changed, the file was
// truncated, reordered or extended.
absl::StatusOr<std::shared_ptr<const ByteSource>> DecryptAge(AgeFile file, const OpenOptions& options);

// For whom to encrypt: for the holders of private keys, or for those who know a passphrase, not both.
struct AgeRecipients {
  std::vector<age::Recipient> recipients = {};
  std::shared_ptr<const LockedMemory> passphrase = nullptr;
  int log_work = age::kScryptWork;  // Of the passphrase.
};

// Encrypts what is appended into `out`, which it does not own. InvalidArgument: nobody or both to encrypt for.
absl::StatusOr<std::unique_ptr<FilterSink>> EncryptInto(const AgeRecipients& recipients, ByteSink* out);

}  // namespace permafrost

#endif  // PERMAFROST_IO_FORMATS_AGE_AGE_H_
