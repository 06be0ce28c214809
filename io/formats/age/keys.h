// Recipients, identities and passphrases: who can open a file, and how each gets the file's key.
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

// A private key and the public one that belongs to it.
struct Identity {
  Key secret;
  Recipient recipient;
};

Identity NewIdentity();

// "age1...". InvalidArgument: not a public key, or not one of this kind.
absl::StatusOr<Recipient> ParseRecipient(absl::string_view text);
std::string RecipientText(const Recipient& recipient);

// Lines of keys; empty lines and lines that begin with '#' count for nothing. InvalidArgument names the line and never
// shows what stands in one of a private key.
absl::StatusOr<std::vector<Recipient>> ParseRecipients(absl::string_view text);
absl::StatusOr<std::vector<Identity>> ParseIdentities(absl::string_view text);
// "AGE-SECRET-KEY-1...", in memory of its own.
absl::StatusOr<LockedMemory> IdentityText(const Identity& identity);

// 2^18, which is what the age tool uses: about a second and 256 MiB.
inline constexpr int kScryptWork = 18;
// A file may ask for any amount of time and memory; this much, 1 GiB, is given to it.
inline constexpr int kMaxScryptWork = 20;

// The file's key for a recipient or a passphrase. InvalidArgument for a public key that leads to no shared secret.
absl::StatusOr<Stanza> WrapFor(const Recipient& recipient, const FileKey& file_key);
absl::StatusOr<Stanza> WrapWithPassphrase(absl::string_view passphrase, int log_work, const FileKey& file_key);

// Whether all stanzas of the types known here are well-formed, and a passphrase is the only way in where it is one.
// DataLoss: they are not; ResourceExhausted: a passphrase that would take too much work.
absl::Status CheckStanzas(const std::vector<Stanza>& stanzas);
bool IsForPassphrase(const Stanza& stanza);

// The file's key, or nothing where the stanza is of another type or for somebody else. DataLoss: the sender meant no
// secret to be shared. REQUIRES: CheckStanzas.
absl::StatusOr<std::optional<FileKey>> Unwrap(const Stanza& stanza, const Identity& identity);
absl::StatusOr<std::optional<FileKey>> UnwrapWithPassphrase(const Stanza& stanza, absl::string_view passphrase);

}  // namespace permafrost::age

#endif  // PERMAFROST_IO_FORMATS_AGE_KEYS_H_
