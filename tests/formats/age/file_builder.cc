// Implements the construction of age files.
#include "tests/formats/age/file_builder.h"

#include <random>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "io/formats/age/encoding.h"

namespace permafrost::age {
namespace {

class MemoryKeys : public KeySource {
 public:
  MemoryKeys(absl::string_view identities, absl::string_view passphrase)
      : identities_(Secrets("the test's keys", identities)),
        passphrases_(Secrets("the test's passphrase", passphrase)) {}
  absl::StatusOr<std::vector<GivenSecret>> Identities() override { return identities_; }
  absl::StatusOr<std::vector<GivenSecret>> Passphrases() override { return passphrases_; }

 private:
  static std::vector<GivenSecret> Secrets(absl::string_view origin, absl::string_view text) {
    if (text.empty()) return {};
    return {{std::string(origin), std::make_shared<const LockedMemory>(*LockedMemory::CopyOf(text))}};
  }
  const std::vector<GivenSecret> identities_, passphrases_;
};

}  // namespace

Identity TestIdentity() { return ParseIdentities(kTestIdentity)->front(); }

Identity OtherIdentity() {
  Identity identity;
  for (size_t i = 0; i < 32; ++i) identity.secret.data()[i] = static_cast<uint8_t>(i + 1);
  identity.recipient.point = PublicKey(identity.secret);
  return identity;
}

FileKey TestFileKey() {
  FileKey key;
  for (size_t i = 0; i < 16; ++i) key.data()[i] = "YELLOW SUBMARINE"[i];
  return key;
}

std::string StanzaText(const Stanza& stanza) {
  const std::string text = AuthenticatedText({stanza});
  return text.substr(kVersionLine.size(), text.size() - kVersionLine.size() - 3);
}

std::string X25519Text(const Recipient& recipient) { return StanzaText(*WrapFor(recipient, TestFileKey())); }

std::string HeaderText(absl::string_view stanzas) {
  const std::string text = absl::StrCat(kVersionLine, stanzas, "---");
  return absl::StrCat(text, MacLine(Hmac(Hkdf(TestFileKey().bytes(), "", "header").bytes(), text)));
}

std::string PayloadText(const std::vector<ChunkToSeal>& chunks) {
  std::string text(kPayloadNonceBytes, 'n');
  const Key key = PayloadKey(TestFileKey(), text);
  for (const ChunkToSeal& chunk : chunks) {
    std::string sealed(chunk.plain.size() + kTagBytes, '\0');
    SealChunk(key, chunk.number, chunk.is_last, chunk.plain, sealed.data());
    text += sealed;
  }
  return text;
}

std::string PayloadOf(absl::string_view plain) {
  std::vector<ChunkToSeal> chunks;
  do {
    const size_t size = std::min(plain.size(), kChunkBytes);
    chunks.push_back({std::string(plain.substr(0, size)), chunks.size(), size == plain.size()});
    plain.remove_prefix(size);
  } while (!plain.empty());
  return PayloadText(chunks);
}

std::string FileOf(absl::string_view plain) { return HeaderText(X25519Text()) + PayloadOf(plain); }

std::string Armored(absl::string_view file) {
  const std::string text = absl::Base64Escape(file);
  std::string lines = "-----BEGIN AGE ENCRYPTED FILE-----\n";
  for (size_t i = 0; i < text.size(); i += 64) absl::StrAppend(&lines, text.substr(i, 64), "\n");
  return lines + "-----END AGE ENCRYPTED FILE-----\n";
}

std::shared_ptr<KeySource> KeysInMemory(absl::string_view identities, absl::string_view passphrase) {
  return std::make_shared<MemoryKeys>(identities, passphrase);
}

std::shared_ptr<const ByteSource> SourceOf(std::string file) {
  auto kept = std::make_shared<const std::string>(std::move(file));
  return MemorySource(FileView{*kept, kept});
}

absl::StatusOr<std::shared_ptr<const ByteSource>> Open(std::string file, std::shared_ptr<KeySource> keys) {
  OpenOptions options;
  options.keys = keys != nullptr ? std::move(keys) : KeysInMemory(kTestIdentity);
  PF_ASSIGN_OR_RETURN(AgeFile opened, InspectAge(SourceOf(std::move(file))));
  return DecryptAge(std::move(opened), options);
}

absl::StatusOr<std::string> Decrypt(std::string file, std::shared_ptr<KeySource> keys) {
  PF_ASSIGN_OR_RETURN(const std::shared_ptr<const ByteSource> source, Open(std::move(file), std::move(keys)));
  PF_ASSIGN_OR_RETURN(const FileView view, ReadAll(*source));
  return std::string(view.bytes);
}

absl::StatusOr<std::string> Encrypt(const AgeRecipients& recipients, absl::string_view plain, size_t piece) {
  StringSink out;
  PF_ASSIGN_OR_RETURN(const std::unique_ptr<FilterSink> sink, EncryptInto(recipients, &out));
  for (; !plain.empty(); plain.remove_prefix(std::min(piece, plain.size()))) {
    PF_RETURN_IF_ERROR(sink->Append(plain.substr(0, piece)));
  }
  PF_RETURN_IF_ERROR(sink->Finish());
  return out.Release();
}

std::string Noise(size_t size) {
  std::mt19937 random(7);
  std::string noise(size, '\0');
  for (char& c : noise) c = static_cast<char>(random());
  return noise;
}

}  // namespace permafrost::age
