// For builds that read nothing that is encrypted: a program may offer its keys all the same.
#include "embedding/given_secrets.h"

namespace permafrost {

absl::StatusOr<std::shared_ptr<KeySource>> SecretsOf(const pf_open_options& /*options*/) {
  return std::shared_ptr<KeySource>();
}

}  // namespace permafrost
