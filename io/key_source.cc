// Implements reading of keys from files, file descriptors and the environment into memory that is wiped.
#include "io/key_source.h"

#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "graph/base/status.h"

namespace permafrost {
namespace {

// A private key has 75 bytes, and its comment about as many, so this allows hundreds of keys.
constexpr size_t kMaxBytes = 64 << 10;

absl::StatusOr<GivenSecret> MakeSecret(std::string origin, absl::string_view text) {
  if (text.empty()) return absl::InvalidArgumentError(absl::StrCat(origin, " is empty, expected a key or passphrase"));
  if (text.size() > kMaxBytes) {
    return absl::InvalidArgumentError(absl::StrCat(origin, " holds more than ", kMaxBytes, " bytes, expected keys"));
  }
  PF_ASSIGN_OR_RETURN(LockedMemory memory, LockedMemory::CopyOf(text));
  return GivenSecret{std::move(origin), std::make_shared<const LockedMemory>(std::move(memory))};
}

absl::StatusOr<GivenSecret> PassphraseOfDescriptor(int descriptor) {
  PF_ASSIGN_OR_RETURN(const GivenSecret line, SecretOfDescriptor(descriptor));
  absl::string_view text = line.text->bytes();
  if (absl::EndsWith(text, "\n")) text.remove_suffix(1);
  return MakeSecret(line.origin, text);
}

class PlacedKeys : public KeySource {
 public:
  PlacedKeys(FileSystem& files, KeyPlaces places) : files_(files), places_(std::move(places)) {}

  absl::StatusOr<std::vector<GivenSecret>> Identities() override {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!identities_.has_value()) identities_ = ReadIdentities();
    return *identities_;
  }

  absl::StatusOr<std::vector<GivenSecret>> Passphrases() override {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!passphrases_.has_value()) passphrases_ = ReadPassphrases();
    return *passphrases_;
  }

 private:
  using Secrets = absl::StatusOr<std::vector<GivenSecret>>;

  Secrets ReadIdentities() const {
    std::vector<GivenSecret> secrets;
    for (const std::string& path : places_.identity_files) {
      PF_ASSIGN_OR_RETURN(secrets.emplace_back(), SecretOfFile(files_, path));
    }
    for (const int descriptor : places_.identity_descriptors) {
      PF_ASSIGN_OR_RETURN(secrets.emplace_back(), SecretOfDescriptor(descriptor));
    }
    for (const std::string& name : places_.identity_variables) {
      PF_ASSIGN_OR_RETURN(secrets.emplace_back(), SecretOfVariable(name));
    }
    return secrets;
  }

  Secrets ReadPassphrases() const {
    std::vector<GivenSecret> secrets;
    for (const int descriptor : places_.passphrase_descriptors) {
      PF_ASSIGN_OR_RETURN(secrets.emplace_back(), PassphraseOfDescriptor(descriptor));
    }
    for (const std::string& name : places_.passphrase_variables) {
      PF_ASSIGN_OR_RETURN(secrets.emplace_back(), SecretOfVariable(name));
    }
    return secrets;
  }

  FileSystem& files_;
  const KeyPlaces places_;
  std::mutex mutex_;
  std::optional<Secrets> identities_, passphrases_;  // Guarded by mutex_.
};

}  // namespace

absl::StatusOr<GivenSecret> SecretOfVariable(const std::string& name) {
  const char* const value = getenv(name.c_str());
  if (value == nullptr) {
    return absl::NotFoundError(absl::StrCat("the environment variable '", name, "' is not set"));
  }
  return MakeSecret(absl::StrCat("$", name), value);
}

absl::StatusOr<GivenSecret> SecretOfDescriptor(int descriptor) {
  const std::string origin = absl::StrCat("file descriptor ", descriptor);
  PF_ASSIGN_OR_RETURN(LockedMemory buffer, LockedMemory::Allocate(kMaxBytes + 1));
  size_t size = 0;
  while (size < buffer.size()) {
    const ssize_t count = read(descriptor, buffer.data() + size, buffer.size() - size);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) {
      char reason[128];
      return absl::InvalidArgumentError(
          absl::StrCat("cannot read ", origin, ": ", strerror_r(errno, reason, sizeof(reason))));
    }
    if (count == 0) break;
    size += static_cast<size_t>(count);
  }
  return MakeSecret(origin, buffer.bytes().substr(0, size));
}

absl::StatusOr<GivenSecret> SecretOfFile(FileSystem& files, const std::string& path) {
  PF_ASSIGN_OR_RETURN(std::string text, files.ReadFile(path));
  absl::StatusOr<GivenSecret> secret = MakeSecret(absl::StrCat("'", path, "'"), text);
  Wipe(text.data(), text.size());
  return secret;
}

std::shared_ptr<KeySource> KeysAt(FileSystem& files, KeyPlaces places) {
  return std::make_shared<PlacedKeys>(files, std::move(places));
}

}  // namespace permafrost
