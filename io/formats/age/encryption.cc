// Implements encryption of a stream of bytes.
#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "io/formats/age/age.h"
#include "io/formats/age/crypto.h"

namespace permafrost {
namespace {

using age::kChunkBytes;

class Encrypting : public FilterSink {
 public:
  Encrypting(const age::Key& key, LockedMemory held, ByteSink* out) : key_(key), held_(std::move(held)), out_(out) {}

  absl::Status Append(absl::string_view bytes) override {
    while (!bytes.empty()) {
      if (held_bytes_ == kChunkBytes) {
        PF_RETURN_IF_ERROR(SealChunks(held_.bytes()));
        held_bytes_ = 0;
      }
      // Encrypts chunks that are followed by more bytes. Which chunk is the last is known only at the end.
      const size_t whole = held_bytes_ > 0 ? 0 : std::min((bytes.size() - 1) / kChunkBytes, kMostChunks) * kChunkBytes;
      if (whole > 0) {
        PF_RETURN_IF_ERROR(SealChunks(bytes.substr(0, whole)));
        bytes.remove_prefix(whole);
        continue;
      }
      const size_t taken = std::min(kChunkBytes - held_bytes_, bytes.size());
      memcpy(held_.data() + held_bytes_, bytes.data(), taken);
      held_bytes_ += taken;
      bytes.remove_prefix(taken);
    }
    return absl::OkStatus();
  }

  absl::Status Finish() override {
    sealed_.resize(held_bytes_ + age::kTagBytes);
    age::SealChunk(key_, next_, /*is_last=*/true, held_.bytes().substr(0, held_bytes_), sealed_.data());
    return out_->Append(sealed_);
  }

 private:
  static constexpr size_t kMostChunks = 128;  // Chunks encrypted at once: 8 MiB.

  absl::Status SealChunks(absl::string_view plain) {
    const size_t count = plain.size() / kChunkBytes;
    sealed_.resize(count * age::kSealedChunkBytes);
    (void)age::ForEachChunk(count, [&](uint64_t i) {
      age::SealChunk(key_, next_ + i, /*is_last=*/false, plain.substr(i * kChunkBytes, kChunkBytes),
                     sealed_.data() + i * age::kSealedChunkBytes);
      return true;
    });
    next_ += count;
    return out_->Append(sealed_);
  }

  const age::Key key_;
  LockedMemory held_;  // The incomplete chunk.
  size_t held_bytes_ = 0;
  std::string sealed_;
  uint64_t next_ = 0;  // Number of the next chunk.
  ByteSink* const out_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<FilterSink>> EncryptInto(const AgeRecipients& recipients, ByteSink* out) {
  if (recipients.recipients.empty() == (recipients.passphrase == nullptr)) {
    return absl::InvalidArgumentError(recipients.passphrase == nullptr
                                          ? "found no recipients, expected public keys or a passphrase"
                                          : "found public keys and a passphrase, expected one of the two");
  }
  // A header of this many recipients fits into kMaxHeaderBytes.
  constexpr size_t kMostRecipients = 10000;
  if (recipients.recipients.size() > kMostRecipients) {
    return absl::InvalidArgumentError(
        absl::StrCat("found ", recipients.recipients.size(), " recipients, expected at most ", kMostRecipients));
  }
  PF_RETURN_IF_ERROR(age::PrepareCrypto());
  age::FileKey file_key;
  age::FillRandom(file_key.data(), file_key.bytes().size());
  std::vector<age::Stanza> stanzas;
  for (const age::Recipient& recipient : recipients.recipients) {
    PF_ASSIGN_OR_RETURN(stanzas.emplace_back(), age::WrapFor(recipient, file_key));
  }
  if (recipients.passphrase != nullptr) {
    PF_ASSIGN_OR_RETURN(stanzas.emplace_back(),
                        age::WrapWithPassphrase(recipients.passphrase->bytes(), recipients.log_work, file_key));
  }
  std::string text = age::AuthenticatedText(stanzas);
  const std::string mac = age::Hmac(age::Hkdf(file_key.bytes(), "", "header").bytes(), text);
  absl::StrAppend(&text, age::MacLine(mac));
  std::string nonce(age::kPayloadNonceBytes, '\0');
  age::FillRandom(reinterpret_cast<uint8_t*>(nonce.data()), nonce.size());
  PF_RETURN_IF_ERROR(out->Append(absl::StrCat(text, nonce)));
  PF_ASSIGN_OR_RETURN(LockedMemory held, LockedMemory::Allocate(kChunkBytes));
  return std::make_unique<Encrypting>(age::PayloadKey(file_key, nonce), std::move(held), out);
}

}  // namespace permafrost
