// Encrypted models in the age v1 format (docs/formats/encryption.md).
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

// True if a file with this beginning is encrypted with age, in binary or text form.
bool IsAge(absl::string_view beginning);

// Properties of an encrypted file that are readable without a key. They are not authenticated.
struct AgeFile {
  std::shared_ptr<const ByteSource> bytes;  // The binary form, without armour.
  bool is_armored = false;
  age::Header header;
  age::ChunkLayout layout;
};

// Parses an encrypted file without decrypting it. Returns DataLoss for a malformed or recognisably truncated file,
// ResourceExhausted for a passphrase whose work factor exceeds the limit.
absl::StatusOr<AgeFile> InspectAge(std::shared_ptr<const ByteSource> file);

// Returns the decrypted content. Chunks are decrypted into locked memory when they are read. The last chunk is
// decrypted immediately, so that a truncated file does not open. Errors:
//   - FailedPrecondition: a key is needed, and options.keys has none of this kind.
//   - PermissionDenied: none of the keys opens the file.
//   - DataLoss, here and from Read: the file was modified, truncated, reordered or extended.
absl::StatusOr<std::shared_ptr<const ByteSource>> DecryptAge(AgeFile file, const OpenOptions& options);

// Recipients of an encrypted file: either the owners of private keys or those who know a passphrase, not both.
struct AgeRecipients {
  std::vector<age::Recipient> recipients = {};
  std::shared_ptr<const LockedMemory> passphrase = nullptr;
  int log_work = age::kScryptWork;  // Work factor of the passphrase.
};

// Returns a filter that encrypts into `out`, which it does not own. Returns InvalidArgument without recipients, and for
// recipients together with a passphrase.
absl::StatusOr<std::unique_ptr<FilterSink>> EncryptInto(const AgeRecipients& recipients, ByteSink* out);

}  // namespace permafrost

#endif  // PERMAFROST_IO_FORMATS_AGE_AGE_H_
