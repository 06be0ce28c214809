// Implements a source of keys from texts and a function of the caller.
#include "embedding/given_secrets.h"

#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "graph/base/status.h"
#include "io/locked_memory.h"

namespace permafrost {
namespace {

using Secrets = absl::StatusOr<std::vector<GivenSecret>>;

absl::StatusOr<GivenSecret> MakeSecret(std::string origin, const void* bytes, size_t size) {
  if (bytes == nullptr || size == 0) {
    return absl::InvalidArgumentError(absl::StrCat(origin, " is empty, expected a key or passphrase"));
  }
  PF_ASSIGN_OR_RETURN(LockedMemory memory, LockedMemory::CopyOf({static_cast<const char*>(bytes), size}));
  return GivenSecret{std::move(origin), std::make_shared<const LockedMemory>(std::move(memory))};
}

// The secrets passed by the caller's function.
struct Received {
  absl::string_view origin;
  std::vector<GivenSecret> secrets;
  absl::Status status;
};

void Receive(void* to, const void* bytes, size_t size) {
  auto* received = static_cast<Received*>(to);
  absl::StatusOr<GivenSecret> secret = MakeSecret(std::string(received->origin), bytes, size);
  if (!secret.ok()) {
    received->status.Update(secret.status());
    return;
  }
  received->secrets.push_back(*std::move(secret));
}

class GivenSecrets : public KeySource {
 public:
  GivenSecrets(std::vector<GivenSecret> identities, std::vector<GivenSecret> passphrases, pf_secrets_function function,
               void* context)
      : identities_(std::move(identities)),
        passphrases_(std::move(passphrases)),
        function_(function),
        context_(context) {}

  Secrets Identities() override { return With(identities_, PF_IDENTITY, "the identity from the secrets function"); }
  Secrets Passphrases() override {
    return With(passphrases_, PF_PASSPHRASE, "the passphrase from the secrets function");
  }

 private:
  Secrets With(const std::vector<GivenSecret>& known, int32_t kind, absl::string_view origin) {
    if (function_ == nullptr) return known;
    const std::lock_guard<std::mutex> lock(mutex_);
    Received received{origin, known, absl::OkStatus()};
    const pf_status status = function_(context_, kind, &Receive, &received);
    if (status != PF_OK) {
      return absl::Status(static_cast<absl::StatusCode>(status), "the secrets function failed");
    }
    PF_RETURN_IF_ERROR(received.status);
    return std::move(received.secrets);
  }

  const std::vector<GivenSecret> identities_, passphrases_;
  const pf_secrets_function function_;
  void* const context_;
  std::mutex mutex_;  // Serialises calls of function_.
};

}  // namespace

absl::StatusOr<std::shared_ptr<KeySource>> SecretsOf(const pf_open_options& options) {
  std::vector<GivenSecret> identities, passphrases;
  if (options.identity != nullptr) {
    PF_ASSIGN_OR_RETURN(identities.emplace_back(), MakeSecret("the identity", options.identity, options.identity_size));
  }
  if (options.passphrase != nullptr) {
    PF_ASSIGN_OR_RETURN(passphrases.emplace_back(),
                        MakeSecret("the passphrase", options.passphrase, options.passphrase_size));
  }
  if (identities.empty() && passphrases.empty() && options.secrets == nullptr) return std::shared_ptr<KeySource>();
  return std::shared_ptr<KeySource>(std::make_shared<GivenSecrets>(std::move(identities), std::move(passphrases),
                                                                   options.secrets, options.secrets_context));
}

}  // namespace permafrost
