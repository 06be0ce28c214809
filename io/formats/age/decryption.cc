// Implements decryption: finds the file key and decrypts chunks on access.
#include <sys/resource.h>

#include <algorithm>
#include <cstring>
#include <list>
#include <mutex>
#include <new>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "graph/base/status.h"
#include "io/formats/age/age.h"
#include "io/formats/age/armor.h"
#include "io/formats/age/crypto.h"

namespace permafrost {
namespace {

using age::ChunkLayout;
using age::FileKey;
using age::Header;
using age::kChunkBytes;
using age::Key;

// Returns a summary of the recipients: "1 recipient (X25519)".
std::string Recipients(const Header& header) {
  constexpr size_t kShown = 4;
  std::vector<absl::string_view> types;
  for (const age::Stanza& stanza : header.stanzas) {
    if (types.size() == kShown) break;
    if (std::find(types.begin(), types.end(), stanza.arguments[0]) == types.end()) types.push_back(stanza.arguments[0]);
  }
  const size_t count = header.stanzas.size();
  return absl::StrCat(count, count == 1 ? " recipient (" : " recipients (", absl::StrJoin(types, ", "), ")");
}

std::string Origins(const std::vector<GivenSecret>& secrets) {
  const auto name = [](std::string* out, const GivenSecret& secret) { absl::StrAppend(out, secret.origin); };
  return absl::StrJoin(secrets, ", ", name);
}

absl::StatusOr<FileKey> OpenWithPassphrase(const Header& header, KeySource* keys) {
  std::vector<GivenSecret> passphrases;
  if (keys != nullptr) {
    PF_ASSIGN_OR_RETURN(passphrases, keys->Passphrases());
  }
  if (passphrases.empty()) {
    return absl::FailedPreconditionError(
        "it is encrypted with a passphrase, and none is given, expected --passphrase_env=NAME or --passphrase_fd=N");
  }
  for (const GivenSecret& passphrase : passphrases) {
    PF_ASSIGN_OR_RETURN(const std::optional<FileKey> file_key,
                        age::UnwrapWithPassphrase(header.stanzas[0], passphrase.text->bytes()));
    if (file_key.has_value()) return *file_key;
  }
  return absl::PermissionDeniedError(
      absl::StrCat("the passphrase of ", Origins(passphrases), " does not open it, expected another passphrase"));
}

absl::StatusOr<FileKey> OpenWithIdentity(const Header& header, KeySource* keys) {
  std::vector<GivenSecret> texts;
  if (keys != nullptr) {
    PF_ASSIGN_OR_RETURN(texts, keys->Identities());
  }
  if (texts.empty()) {
    return absl::FailedPreconditionError(
        absl::StrCat("it is encrypted for ", Recipients(header),
                     ", and no private key is given, expected --identity=FILE, --identity_fd=N or "
                     "--identity_env=NAME"));
  }
  size_t tried = 0;
  for (const GivenSecret& text : texts) {
    const absl::StatusOr<std::vector<age::Identity>> identities = age::ParseIdentities(text.text->bytes());
    if (!identities.ok()) return Annotate(identities.status(), text.origin);
    for (const age::Identity& identity : *identities) {
      for (const age::Stanza& stanza : header.stanzas) {
        PF_ASSIGN_OR_RETURN(const std::optional<FileKey> file_key, age::Unwrap(stanza, identity));
        if (file_key.has_value()) return *file_key;
      }
      ++tried;
    }
  }
  return absl::PermissionDeniedError(absl::StrCat("none of the ", tried, " private keys of ", Origins(texts),
                                                  " opens it, expected a key of ", Recipients(header)));
}

// The key of the payload, kept while chunks are read.
class LockedKey {
 public:
  static absl::StatusOr<LockedKey> Make(const Key& key) {
    LockedKey locked;
    PF_ASSIGN_OR_RETURN(locked.memory_, LockedMemory::Allocate(sizeof(Key)));
    locked.key_ = new (locked.memory_.data()) Key(key);
    return locked;
  }
  const Key& operator*() const { return *key_; }

 private:
  LockedMemory memory_;  // Moving it does not change the address of its bytes.
  const Key* key_ = nullptr;
};

// The content of an encrypted file.
class Decrypted : public ByteSource {
 public:
  Decrypted(std::shared_ptr<const ByteSource> sealed, const ChunkLayout& layout, LockedKey key,
            const OpenOptions& options)
      : sealed_(std::move(sealed)),
        layout_(layout),
        key_(std::move(key)),
        require_locked_(options.require_locked_memory),
        tell_(options.tell) {}

  uint64_t size() const override { return layout_.plain_bytes; }
  bool is_secret() const override { return true; }

  absl::StatusOr<FileView> Read(uint64_t offset, uint64_t length) const override {
    PF_RETURN_IF_ERROR(CheckRange(offset, length));
    if (length == 0) return FileView{};
    const uint64_t end = offset + length;
    uint64_t first = offset / kChunkBytes;
    uint64_t last = (end - 1) / kChunkBytes;
    if (first == last) {
      PF_ASSIGN_OR_RETURN(const Chunk chunk, ReadChunk(first));
      return FileView{chunk->bytes().substr(offset % kChunkBytes, length), chunk};
    }
    PF_ASSIGN_OR_RETURN(LockedMemory memory, Allocate(length));
    // Partial chunks at both ends are decrypted separately and copied; whole chunks are decrypted in place.
    if (offset % kChunkBytes != 0) {
      PF_ASSIGN_OR_RETURN(const Chunk chunk, ReadChunk(first));
      const absl::string_view piece = chunk->bytes().substr(offset % kChunkBytes);
      memcpy(memory.data(), piece.data(), piece.size());
      ++first;
    }
    if (end % kChunkBytes != 0 && end != size()) {
      PF_ASSIGN_OR_RETURN(const Chunk chunk, ReadChunk(last));
      const absl::string_view piece = chunk->bytes().substr(0, end % kChunkBytes);
      memcpy(memory.data() + (length - piece.size()), piece.data(), piece.size());
      --last;
    }
    if (first <= last) PF_RETURN_IF_ERROR(ReadChunks(first, last, memory.data() + (first * kChunkBytes - offset)));
    auto kept = std::make_shared<const LockedMemory>(std::move(memory));
    return FileView{kept->bytes(), kept};
  }

  // Decrypts one chunk, unless a decrypted copy exists.
  absl::Status CheckChunk(uint64_t chunk) const { return ReadChunk(chunk).status(); }

 private:
  using Chunk = std::shared_ptr<const LockedMemory>;

  // The most recent chunks are kept, because reading a file's structure takes many small reads.
  static constexpr size_t kRecentChunks = 8;

  absl::StatusOr<LockedMemory> Allocate(uint64_t size) const {
    PF_ASSIGN_OR_RETURN(LockedMemory memory, LockedMemory::Allocate(size));
    if (memory.is_locked()) return memory;
    rlimit limit;
    const std::string allowed =
        getrlimit(RLIMIT_MEMLOCK, &limit) == 0 ? absl::StrCat(limit.rlim_cur) : std::string("no");
    const std::string text =
        absl::StrCat(size,
                     " bytes of the decrypted model cannot be locked in memory and may be swapped: the system "
                     "allows ",
                     allowed, " bytes (ulimit -l)");
    if (require_locked_) return absl::ResourceExhaustedError(text);
    if (tell_ != nullptr) std::call_once(told_, [&] { tell_(text); });
    return memory;
  }

  // Returns the encrypted bytes of a range of chunks; a view if the file is mapped.
  absl::StatusOr<FileView> Sealed(uint64_t first, uint64_t last) const {
    const uint64_t offset = layout_.offset(first);
    return sealed_->Read(offset, layout_.offset(last) + layout_.plain_size(last) + age::kTagBytes - offset);
  }

  bool OpenFrom(absl::string_view sealed, uint64_t first, uint64_t chunk, char* plain) const {
    const absl::string_view piece =
        sealed.substr((chunk - first) * age::kSealedChunkBytes, layout_.plain_size(chunk) + age::kTagBytes);
    return age::OpenChunk(*key_, chunk, layout_.is_last(chunk), piece, plain);
  }

  absl::Status NotAuthentic(uint64_t chunk) const {
    return absl::DataLossError(absl::StrCat("chunk ", chunk + 1, " of ", layout_.chunks, ", byte ",
                                            layout_.offset(chunk),
                                            ": found bytes that are not authentic: the file was changed, truncated or "
                                            "combined from other files"));
  }

  absl::StatusOr<Chunk> ReadChunk(uint64_t number) const {
    const std::lock_guard<std::mutex> lock(mutex_);
    std::weak_ptr<const LockedMemory>& entry = chunks_[number];
    Chunk chunk = entry.lock();
    if (chunk != nullptr) return chunk;
    PF_ASSIGN_OR_RETURN(const FileView sealed, Sealed(number, number));
    PF_ASSIGN_OR_RETURN(LockedMemory memory, Allocate(layout_.plain_size(number)));
    if (!OpenFrom(sealed.bytes, number, number, memory.data())) return NotAuthentic(number);
    chunk = std::make_shared<const LockedMemory>(std::move(memory));
    entry = chunk;
    recent_.push_back(chunk);
    if (recent_.size() > kRecentChunks) recent_.pop_front();
    return chunk;
  }

  absl::Status ReadChunks(uint64_t first, uint64_t last, char* plain) const {
    PF_ASSIGN_OR_RETURN(const FileView sealed, Sealed(first, last));
    const auto open = [&](uint64_t i) { return OpenFrom(sealed.bytes, first, first + i, plain + i * kChunkBytes); };
    if (age::ForEachChunk(last - first + 1, open)) return absl::OkStatus();
    // The thread that found a bad chunk is arbitrary, so the first bad chunk is determined for the message.
    for (uint64_t chunk = first; chunk < last; ++chunk) {
      if (!open(chunk - first)) return NotAuthentic(chunk);
    }
    return NotAuthentic(last);
  }

  const std::shared_ptr<const ByteSource> sealed_;
  const ChunkLayout layout_;
  const LockedKey key_;
  const bool require_locked_;
  const std::function<void(absl::string_view)> tell_;
  mutable std::once_flag told_;
  mutable std::mutex mutex_;
  // Guarded by mutex_. Chunks are shared while views of them exist, so that small views of the whole file never take
  // more memory than the file.
  mutable std::unordered_map<uint64_t, std::weak_ptr<const LockedMemory>> chunks_;
  mutable std::list<Chunk> recent_;
};

absl::StatusOr<std::shared_ptr<const ByteSource>> Unwrap(const ModelSource& source, const OpenOptions& options) {
  PF_ASSIGN_OR_RETURN(AgeFile file, InspectAge(source.bytes));
  return DecryptAge(std::move(file), options);
}

}  // namespace

const ModelWrapping kAgeWrapping{"age", [](const ModelSource& source) { return IsAge(source.head.bytes); }, Unwrap};

bool IsAge(absl::string_view beginning) {
  return absl::StartsWith(beginning, age::kMagic) || age::IsArmored(beginning);
}

absl::StatusOr<AgeFile> InspectAge(std::shared_ptr<const ByteSource> source) {
  AgeFile file;
  file.bytes = std::move(source);
  PF_ASSIGN_OR_RETURN(FileView head, file.bytes->Read(0, std::min<uint64_t>(file.bytes->size(), age::kMaxHeaderBytes)));
  file.is_armored = age::IsArmored(head.bytes);
  if (file.is_armored) {
    PF_ASSIGN_OR_RETURN(const FileView text, ReadAll(*file.bytes));
    PF_ASSIGN_OR_RETURN(std::string binary, age::Dearmor(text.bytes));
    auto kept = std::make_shared<const std::string>(std::move(binary));
    file.bytes = MemorySource(FileView{*kept, kept});
    head = FileView{absl::string_view(*kept).substr(0, age::kMaxHeaderBytes), kept};
  }
  PF_ASSIGN_OR_RETURN(file.header, age::ParseHeader(head.bytes));
  PF_RETURN_IF_ERROR(age::CheckStanzas(file.header.stanzas));
  PF_ASSIGN_OR_RETURN(file.layout, age::LayoutOf(file.bytes->size(), file.header.size));
  return file;
}

absl::StatusOr<std::shared_ptr<const ByteSource>> DecryptAge(AgeFile file, const OpenOptions& options) {
  PF_RETURN_IF_ERROR(age::PrepareCrypto());
  PF_ASSIGN_OR_RETURN(const FileKey file_key, age::IsForPassphrase(file.header.stanzas[0])
                                                  ? OpenWithPassphrase(file.header, options.keys.get())
                                                  : OpenWithIdentity(file.header, options.keys.get()));
  PF_ASSIGN_OR_RETURN(const FileView header, file.bytes->Read(0, file.header.authenticated));
  const std::string mac = age::Hmac(age::Hkdf(file_key.bytes(), "", "header").bytes(), header.bytes);
  if (!age::IsEqual(mac, file.header.mac)) {
    return absl::DataLossError(
        absl::StrCat("header, byte ", file.header.authenticated, ": found a wrong checksum: the header was modified"));
  }
  PF_ASSIGN_OR_RETURN(const FileView nonce, file.bytes->Read(file.header.size, age::kPayloadNonceBytes));
  PF_ASSIGN_OR_RETURN(LockedKey key, LockedKey::Make(age::PayloadKey(file_key, nonce.bytes)));
  auto source = std::make_shared<const Decrypted>(std::move(file.bytes), file.layout, std::move(key), options);
  PF_RETURN_IF_ERROR(source->CheckChunk(file.layout.chunks - 1));
  return source;
}

}  // namespace permafrost
