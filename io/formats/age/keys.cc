// Implements the text form of keys and the wrapping of file keys.
#include "io/formats/age/keys.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "graph/base/status.h"
#include "io/formats/age/encoding.h"

namespace permafrost::age {
namespace {

using absl::string_view;

constexpr string_view kRecipientPrefix = "age";
constexpr string_view kIdentityPrefix = "age-secret-key-";
constexpr string_view kX25519 = "X25519";
constexpr string_view kX25519Info = "age-encryption.org/v1/X25519";
constexpr string_view kScrypt = "scrypt";
constexpr string_view kScryptSalt = "age-encryption.org/v1/scrypt";
constexpr size_t kScryptSaltBytes = 16;
constexpr size_t kFileKeyBytes = 16;
constexpr size_t kWrappedBytes = kFileKeyBytes + kTagBytes;
constexpr Nonce kZeroNonce{};  // Each wrapping key is used once.

absl::Status Bad(string_view what) { return absl::InvalidArgumentError(what); }

std::string WrapWith(const Key& key, const FileKey& file_key) {
  std::string body(kWrappedBytes, '\0');
  Seal(key, kZeroNonce, file_key.bytes(), body.data());
  return body;
}

std::optional<FileKey> UnwrapWith(const Key& key, string_view body) {
  FileKey file_key;
  if (!Open(key, kZeroNonce, body, reinterpret_cast<char*>(file_key.data()))) return std::nullopt;
  return file_key;
}

// Calls f(line) for each line that is neither empty nor a comment.
template <typename F>
absl::Status ForEachKey(string_view text, F f) {
  for (size_t number = 1; !text.empty(); ++number) {
    const size_t end = std::min(text.find('\n'), text.size());
    string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    line = absl::StripSuffix(line, "\r");
    if (line.empty() || line[0] == '#') continue;
    PF_RETURN_IF_ERROR(Annotate(f(line), absl::StrCat("line ", number)));
  }
  return absl::OkStatus();
}

absl::StatusOr<Identity> ParseIdentity(string_view text) {
  if (absl::StartsWith(text, kMagic) || absl::StartsWith(text, "-----BEGIN AGE")) {
    return Bad("found an encrypted identity file, expected it decrypted (age -d)");
  }
  if (absl::StartsWith(text, "-----BEGIN OPENSSH")) return Bad("found an SSH key, expected a key of age-keygen");
  if (absl::StartsWith(text, "AGE-PLUGIN-")) return Bad("found an identity of a plugin, which is not supported");
  if (absl::StartsWith(text, "age1")) return Bad("found a public key, expected a private one: AGE-SECRET-KEY-1...");
  if (!absl::StartsWith(text, "AGE-SECRET-KEY-")) {
    return Bad("found neither a comment nor a key, expected AGE-SECRET-KEY-1...");
  }
  if (absl::StartsWith(text, "AGE-SECRET-KEY-PQ-")) return Bad("found a post-quantum key, which is not supported");
  PF_ASSIGN_OR_RETURN(Bech32Text decoded, FromBech32(text));
  Identity identity;
  const bool fits = decoded.prefix == kIdentityPrefix && decoded.bytes.size() == kPointBytes;
  if (fits) memcpy(identity.secret.data(), decoded.bytes.data(), kPointBytes);
  Wipe(decoded.bytes.data(), decoded.bytes.size());
  if (!fits) return Bad("found another kind of key, expected AGE-SECRET-KEY-1...");
  identity.recipient.point = PublicKey(identity.secret);
  return identity;
}

// Returns the work factor in the canonical form of age, or 0.
int WorkFactor(string_view text) {
  int value = 0;
  const bool is_plain = !text.empty() && text[0] != '0' &&
                        std::all_of(text.begin(), text.end(), [](unsigned char c) { return absl::ascii_isdigit(c); });
  if (!is_plain) return 0;
  constexpr int kBeyond = 1 << 30;  // Larger than any number without too many digits.
  return absl::SimpleAtoi(text, &value) ? value : kBeyond;
}

absl::Status CheckArguments(const Stanza& stanza, size_t expected, size_t share_bytes) {
  const std::string& type = stanza.arguments[0];
  if (stanza.arguments.size() != expected) {
    return absl::DataLossError(
        absl::StrCat(type, " recipient: found ", stanza.arguments.size() - 1, " arguments, expected ", expected - 1));
  }
  const absl::StatusOr<std::string> share = FromBase64(stanza.arguments[1]);
  if (!share.ok()) return absl::DataLossError(absl::StrCat(type, " recipient: ", share.status().message()));
  if (share->size() != share_bytes) {
    return absl::DataLossError(
        absl::StrCat(type, " recipient: found ", share->size(), " bytes, expected ", share_bytes));
  }
  // A longer body could be crafted to decrypt under several keys, which would leak information about them.
  if (stanza.body.size() != kWrappedBytes) {
    return absl::DataLossError(
        absl::StrCat(type, " recipient: found a body of ", stanza.body.size(), " bytes, expected ", kWrappedBytes));
  }
  return absl::OkStatus();
}

Key AgreementKey(const Key& shared, string_view share, string_view point) {
  return Hkdf(shared.bytes(), absl::StrCat(share, point), kX25519Info);
}

}  // namespace

Identity NewIdentity() {
  Identity identity;
  FillRandom(identity.secret.data(), kPointBytes);
  identity.recipient.point = PublicKey(identity.secret);
  return identity;
}

absl::StatusOr<Recipient> ParseRecipient(string_view text) {
  if (absl::StartsWithIgnoreCase(text, "AGE-SECRET-KEY-")) {
    return Bad("found a private key, expected a public one: age1...");
  }
  if (absl::StartsWith(text, "ssh-")) return Bad("found an SSH key, expected a public key of age-keygen: age1...");
  absl::StatusOr<Bech32Text> decoded = FromBech32(text);
  if (!decoded.ok()) return Annotate(decoded.status(), absl::StrCat("public key '", text, "'"));
  if (decoded->prefix != kRecipientPrefix || decoded->bytes.size() != kPointBytes || absl::ascii_isupper(text[0])) {
    return Bad(absl::StrCat("public key '", text, "': found a kind that is not supported, expected age1..."));
  }
  return Recipient{std::move(decoded->bytes)};
}

std::string RecipientText(const Recipient& recipient) { return Bech32(kRecipientPrefix, recipient.point); }

absl::StatusOr<std::vector<Recipient>> ParseRecipients(string_view text) {
  std::vector<Recipient> recipients;
  PF_RETURN_IF_ERROR(ForEachKey(text, [&](string_view line) -> absl::Status {
    PF_ASSIGN_OR_RETURN(recipients.emplace_back(), ParseRecipient(line));
    return absl::OkStatus();
  }));
  if (recipients.empty()) return Bad("found no public key, expected age1...");
  return recipients;
}

absl::StatusOr<std::vector<Identity>> ParseIdentities(string_view text) {
  std::vector<Identity> identities;
  PF_RETURN_IF_ERROR(ForEachKey(text, [&](string_view line) -> absl::Status {
    PF_ASSIGN_OR_RETURN(identities.emplace_back(), ParseIdentity(line));
    return absl::OkStatus();
  }));
  if (identities.empty()) return Bad("found no private key, expected AGE-SECRET-KEY-1...");
  return identities;
}

absl::StatusOr<LockedMemory> IdentityText(const Identity& identity) {
  std::string text = Bech32(kIdentityPrefix, identity.secret.bytes());
  absl::StatusOr<LockedMemory> upper = LockedMemory::CopyOf(text);
  Wipe(text.data(), text.size());
  if (upper.ok()) std::transform(upper->data(), upper->data() + upper->size(), upper->data(), absl::ascii_toupper);
  return upper;
}

absl::StatusOr<Stanza> WrapFor(const Recipient& recipient, const FileKey& file_key) {
  const Identity once = NewIdentity();
  const std::string& share = once.recipient.point;
  Key shared;
  if (!Agree(once.secret, recipient.point, &shared)) {
    return Bad(absl::StrCat("public key '", RecipientText(recipient),
                            "': it is of low order and gives no "
                            "shared secret"));
  }
  return Stanza{{std::string(kX25519), Base64(share)},
                WrapWith(AgreementKey(shared, share, recipient.point), file_key)};
}

absl::StatusOr<Stanza> WrapWithPassphrase(string_view passphrase, int log_work, const FileKey& file_key) {
  std::string salt(kScryptSaltBytes, '\0');
  FillRandom(reinterpret_cast<uint8_t*>(salt.data()), salt.size());
  PF_ASSIGN_OR_RETURN(const Key key, Scrypt(passphrase, absl::StrCat(kScryptSalt, salt), log_work));
  return Stanza{{std::string(kScrypt), Base64(salt), absl::StrCat(log_work)}, WrapWith(key, file_key)};
}

absl::Status CheckStanzas(const std::vector<Stanza>& stanzas) {
  for (const Stanza& stanza : stanzas) {
    if (stanza.arguments[0] == kX25519) PF_RETURN_IF_ERROR(CheckArguments(stanza, 2, kPointBytes));
    if (!IsForPassphrase(stanza)) continue;
    // Otherwise a recipient could not tell whether the sender knew the passphrase.
    if (stanzas.size() != 1) {
      return absl::DataLossError(
          absl::StrCat("found a passphrase among ", stanzas.size(), " recipients, expected it to be the only one"));
    }
    PF_RETURN_IF_ERROR(CheckArguments(stanza, 3, kScryptSaltBytes));
    const int log_work = WorkFactor(stanza.arguments[2]);
    if (log_work == 0) {
      return absl::DataLossError(
          absl::StrCat("scrypt recipient: found the work factor '", stanza.arguments[2], "', expected a number"));
    }
    if (log_work > kMaxScryptWork) {
      return absl::ResourceExhaustedError(absl::StrCat("scrypt recipient: found the work factor 2^",
                                                       stanza.arguments[2], ", expected at most 2^", kMaxScryptWork));
    }
  }
  return absl::OkStatus();
}

bool IsForPassphrase(const Stanza& stanza) { return stanza.arguments[0] == kScrypt; }

absl::StatusOr<std::optional<FileKey>> Unwrap(const Stanza& stanza, const Identity& identity) {
  if (stanza.arguments[0] != kX25519) return std::nullopt;
  const std::string share = FromBase64(stanza.arguments[1]).value_or("");
  Key shared;
  if (!Agree(identity.secret, share, &shared)) {
    return absl::DataLossError("X25519 recipient: found a share of low order, which gives no shared secret");
  }
  return UnwrapWith(AgreementKey(shared, share, identity.recipient.point), stanza.body);
}

absl::StatusOr<std::optional<FileKey>> UnwrapWithPassphrase(const Stanza& stanza, string_view passphrase) {
  if (!IsForPassphrase(stanza)) return std::nullopt;
  const std::string salt = FromBase64(stanza.arguments[1]).value_or("");
  PF_ASSIGN_OR_RETURN(const Key key,
                      Scrypt(passphrase, absl::StrCat(kScryptSalt, salt), WorkFactor(stanza.arguments[2])));
  return UnwrapWith(key, stanza.body);
}

}  // namespace permafrost::age
