// Recipients, identities and passphrases, and the wrapping of the file key for each of them.
#ifndef PERMAFROST_IO_FORMATS_AGE_KEYS_H_
#define PERMAFROST_IO_FORMATS_AGE_KEYS_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "io/formats/age/crypto.h"
#include "io/formats/age/header.h"

namespace permafrost::age {

// A public key.
struct Recipient {
  std::string point;  // kPointBytes bytes.
};

// A private key and its public key.
struct Identity {
  Key secret;
  Recipient recipient;
};

Identity NewIdentity();

// Parses "age1...". Returns InvalidArgument if it is not a public key or of an unsupported kind.
absl::StatusOr<Recipient> ParseRecipient(absl::string_view text);
std::string RecipientText(const Recipient& recipient);

// Parse lines of keys. Empty lines and lines that start with '#' are ignored. InvalidArgument errors name the line and
// never show the content of a line with a private key.
absl::StatusOr<std::vector<Recipient>> ParseRecipients(absl::string_view text);
absl::StatusOr<std::vector<Identity>> ParseIdentities(absl::string_view text);
// Returns "AGE-SECRET-KEY-1..." in locked memory.
absl::StatusOr<LockedMemory> IdentityText(const Identity& identity);

// Work factor 2^18, the default of the age tool: takes about a second and 256 MiB.
inline constexpr int kScryptWork = 18;
// Largest accepted work factor: 1 GiB. Without a limit, a file could demand any amount of time and memory.
inline constexpr int kMaxScryptWork = 20;

// Wrap the file key for a recipient or a passphrase. Return InvalidArgument for a public key that gives no shared
// secret.
absl::StatusOr<Stanza> WrapFor(const Recipient& recipient, const FileKey& file_key);
absl::StatusOr<Stanza> WrapWithPassphrase(absl::string_view passphrase, int log_work, const FileKey& file_key);

// Checks that all stanzas of known types are well-formed, and that a passphrase is the only recipient. Returns DataLoss
// if they are not, ResourceExhausted for a passphrase whose work factor exceeds the limit.
absl::Status CheckStanzas(const std::vector<Stanza>& stanzas);
bool IsForPassphrase(const Stanza& stanza);

// Return the file key, or nothing if the stanza is of another type or for another recipient. Return DataLoss for a
// share that gives no shared secret. REQUIRES: CheckStanzas returned OK.
absl::StatusOr<std::optional<FileKey>> Unwrap(const Stanza& stanza, const Identity& identity);
absl::StatusOr<std::optional<FileKey>> UnwrapWithPassphrase(const Stanza& stanza, absl::string_view passphrase);

}  // namespace permafrost::age

#endif  // PERMAFROST_IO_FORMATS_AGE_KEYS_H_
