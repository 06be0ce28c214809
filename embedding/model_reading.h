// Reads models. Which formats a build supports depends on the linked implementation of this header.
#ifndef PERMAFROST_EMBEDDING_MODEL_READING_H_
#define PERMAFROST_EMBEDDING_MODEL_READING_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "embedding/session_choice.h"
#include "io/file_system.h"
#include "io/model_format.h"

namespace permafrost {

// Reads the model in a file. Errors name the path.
absl::StatusOr<std::unique_ptr<EmbeddedModel>> ReadModelFile(const std::string& path, const OpenOptions& options);

// Reads a model in memory.
absl::StatusOr<std::unique_ptr<EmbeddedModel>> ReadModelBytes(FileView bytes, const OpenOptions& options);

}  // namespace permafrost

#endif  // PERMAFROST_EMBEDDING_MODEL_READING_H_
