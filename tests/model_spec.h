// What lies beside a recorded model: the names of what it is fed and of what it gives.
#ifndef PERMAFROST_TESTS_MODEL_SPEC_H_
#define PERMAFROST_TESTS_MODEL_SPEC_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace permafrost {

struct ModelSpec {
  std::vector<std::string> inputs, outputs;
};

// Reads `folder`/spec.json: {"inputs": [{"name": ...}, ...], "outputs": [...]}. Errors of the file, of ParseJson, and
// of members that are missing or of another kind.
absl::StatusOr<ModelSpec> ReadModelSpec(const std::string& folder);

}  // namespace permafrost

#endif  // PERMAFROST_TESTS_MODEL_SPEC_H_
