// Keys that the caller of the C interface provides.
#ifndef PERMAFROST_EMBEDDING_GIVEN_SECRETS_H_
#define PERMAFROST_EMBEDDING_GIVEN_SECRETS_H_

#include <memory>

#include "absl/status/statusor.h"
#include "embedding/permafrost_runtime.h"
#include "io/key_source.h"

namespace permafrost {

// Returns a source of the keys in the options, or null if there are none or the build reads no encrypted models. Texts
// are copied. The caller's function is called for each request, by one thread at a time.
absl::StatusOr<std::shared_ptr<KeySource>> SecretsOf(const pf_open_options& options);

}  // namespace permafrost

#endif  // PERMAFROST_EMBEDDING_GIVEN_SECRETS_H_
