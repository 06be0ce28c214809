// Builds valid and invalid age files piece by piece with a fixed key, and opens files with it.
#ifndef PERMAFROST_TESTS_FORMATS_AGE_FILE_BUILDER_H_
#define PERMAFROST_TESTS_FORMATS_AGE_FILE_BUILDER_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "io/byte_source.h"
#include "io/formats/age/age.h"
#include "io/model_format.h"

namespace permafrost::age {

// The identity in the specification's example, and another one.
inline constexpr char kTestIdentity[] = "AGE-SECRET-KEY-1GFPYYSJZGFPYYSJZGFPYYSJZGFPYYSJZGFPYYSJZGFPYYSJZGFPQ4EGAEX";
inline constexpr char kTestRecipient[] = "age1zvkyg2lqzraa2lnjvqej32nkuu0ues2s82hzrye869xeexvn73equnujwj";
Identity TestIdentity();
Identity OtherIdentity();

// Returns a key of sixteen letters.
FileKey TestFileKey();

// Returns the lines of a stanza for the test file key.
std::string StanzaText(const Stanza& stanza);
std::string X25519Text(const Recipient& recipient = TestIdentity().recipient);
// Returns `stanzas` between the version line and a correct MAC. Adds "---", but nothing else.
std::string HeaderText(absl::string_view stanzas);

struct ChunkToSeal {
  std::string plain;
  uint64_t number;
  bool is_last;
};
// Returns a nonce and these chunks.
std::string PayloadText(const std::vector<ChunkToSeal>& chunks);
// Returns a valid payload.
std::string PayloadOf(absl::string_view plain);

// Returns a valid file for the test identity.
std::string FileOf(absl::string_view plain);

// Returns the file in armoured form, with lines of 64 columns.
std::string Armored(absl::string_view file);

// Returns a source of keys in memory. Either text may be empty.
std::shared_ptr<KeySource> KeysInMemory(absl::string_view identities, absl::string_view passphrase = "");

// Returns a source of the bytes of `file`.
std::shared_ptr<const ByteSource> SourceOf(std::string file);
// Opens a file with the test identity, or with `keys`.
absl::StatusOr<std::shared_ptr<const ByteSource>> Open(std::string file, std::shared_ptr<KeySource> keys = nullptr);
// Returns the whole content of a file.
absl::StatusOr<std::string> Decrypt(std::string file, std::shared_ptr<KeySource> keys = nullptr);

// Encrypts `plain` with EncryptInto, in pieces of `piece` bytes.
absl::StatusOr<std::string> Encrypt(const AgeRecipients& recipients, absl::string_view plain, size_t piece = 1 << 20);

// Returns `size` bytes without a pattern.
std::string Noise(size_t size);

}  // namespace permafrost::age

#endif  // PERMAFROST_TESTS_FORMATS_AGE_FILE_BUILDER_H_
