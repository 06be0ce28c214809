// The specification beside a recorded model: the names of its inputs and outputs.
#ifndef PERMAFROST_TESTS_MODEL_SPEC_H_
#define PERMAFROST_TESTS_MODEL_SPEC_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace permafrost {

struct ModelSpec {
  std::vector<std::string> inputs, outputs;
};

// Reads `folder`/spec.json: {"inputs": [{"name": ...}, ...], "outputs": [...]}. Returns errors of the file and of
// ParseJson, and errors for members that are missing or of another type.
absl::StatusOr<ModelSpec> ReadModelSpec(const std::string& folder);

}  // namespace permafrost

#endif  // PERMAFROST_TESTS_MODEL_SPEC_H_
