// The flags that say how models are read and written: the same in every tool.
#ifndef PERMAFROST_TOOLS_MODEL_FLAGS_H_
#define PERMAFROST_TOOLS_MODEL_FLAGS_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "graph/graph.h"
#include "io/file_system.h"
#include "io/model_file.h"
#include "io/model_format.h"
#include "tools/flags.h"

namespace permafrost {

// What the user says of the models that a tool reads.
struct ReadFlags {
  uint64_t max_model_bytes = OpenOptions().max_model_bytes;
};

// --max_model_bytes.
void AddReadFlags(ReadFlags* read, FlagTable* flags);

// What the user says of the models that a tool writes.
struct WriteFlags {
  std::string compress;  // "zstd", "zstd:19"; empty: not at all.
};

// --compress.
void AddWriteFlags(WriteFlags* write, FlagTable* flags);

// For SaveModel. InvalidArgument for a compression or level that does not exist. `format` must outlive the result.
absl::StatusOr<SaveOptions> ToSaveOptions(const WriteFlags& write, absl::string_view format);

// OpenModel as the flags say.
absl::StatusOr<std::unique_ptr<Graph>> OpenModelFile(FileSystem& files, const std::string& path, const ReadFlags& read);

}  // namespace permafrost

#endif  // PERMAFROST_TOOLS_MODEL_FLAGS_H_
