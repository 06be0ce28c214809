// The keys that the caller of the C interface gives.
#ifndef PERMAFROST_EMBEDDING_GIVEN_SECRETS_H_
#define PERMAFROST_EMBEDDING_GIVEN_SECRETS_H_

#include <memory>

#include "absl/status/statusor.h"
#include "embedding/permafrost_runtime.h"
#include "io/key_source.h"

namespace permafrost {

// Null where the options name none, or nothing that is encrypted is read anyway. The texts are copied; the function is
// asked each time, one thread at a time.
absl::StatusOr<std::shared_ptr<KeySource>> SecretsOf(const pf_open_options& options);

}  // namespace permafrost

#endif  // PERMAFROST_EMBEDDING_GIVEN_SECRETS_H_
