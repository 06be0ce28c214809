// Reads program files alone, for the smallest builds.
#include <utility>

#include "embedding/model_reading.h"

namespace permafrost {

absl::StatusOr<std::unique_ptr<EmbeddedModel>> ReadModelBytes(FileView bytes, const OpenOptions& /*options*/) {
  return ProgramFile::Read(bytes.bytes, std::move(bytes.owner));
}

}  // namespace permafrost
