// Puts age files together piece by piece, right or wrong, with a fixed key; and opens files with it.
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

// The example of the specification, and another one.
inline constexpr char kTestIdentity[] = "AGE-SECRET-KEY-1GFPYYSJZGFPYYSJZGFPYYSJZGFPYYSJZGFPYYSJZGFPYYSJZGFPQ4EGAEX";
inline constexpr char kTestRecipient[] = "age1zvkyg2lqzraa2lnjvqej32nkuu0ues2s82hzrye869xeexvn73equnujwj";
Identity TestIdentity();
Identity OtherIdentity();

// Sixteen letters.
FileKey TestFileKey();

// The lines of stanzas for the test file key.
std::string StanzaText(const Stanza& stanza);
std::string X25519Text(const Recipient& recipient = TestIdentity().recipient);
// `stanzas` between the version and a right MAC, with "---" but nothing else added.
std::string HeaderText(absl::string_view stanzas);

struct ChunkToSeal {
  std::string plain;
  uint64_t number;
  bool is_last;
};
// A nonce and these chunks.
std::string PayloadText(const std::vector<ChunkToSeal>& chunks);
// A payload as it should be.
std::string PayloadOf(absl::string_view plain);

// A whole file for the test identity.
std::string FileOf(absl::string_view plain);

// Text with armour round it, by columns of 64.
std::string Armored(absl::string_view file);

// Keys in memory. Either may be empty.
std::shared_ptr<KeySource> KeysInMemory(absl::string_view identities, absl::string_view passphrase = "");

// A source of the bytes of `file`.
std::shared_ptr<const ByteSource> SourceOf(std::string file);
// What a file holds, opened with the test identity, or with `keys`.
absl::StatusOr<std::shared_ptr<const ByteSource>> Open(std::string file, std::shared_ptr<KeySource> keys = nullptr);
// All of it.
absl::StatusOr<std::string> Decrypt(std::string file, std::shared_ptr<KeySource> keys = nullptr);

// `plain` as EncryptInto writes it, given to it in pieces of `piece` bytes.
absl::StatusOr<std::string> Encrypt(const AgeRecipients& recipients, absl::string_view plain, size_t piece = 1 << 20);

// `size` bytes without a pattern.
std::string Noise(size_t size);

}  // namespace permafrost::age

#endif  // PERMAFROST_TESTS_FORMATS_AGE_FILE_BUILDER_H_
