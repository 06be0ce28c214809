// Turns the flags into what io/ takes.
#include "tools/model_flags.h"

#include "io/model_file.h"

namespace permafrost {

void AddReadFlags(ReadFlags* read, FlagTable* flags) {
  flags->Add("max_model_bytes", &read->max_model_bytes, "N",
             "What a compressed model may grow to, in bytes; one that would be larger is refused.");
}

absl::StatusOr<std::unique_ptr<Graph>> OpenModelFile(FileSystem& files, const std::string& path,
                                                     const ReadFlags& read) {
  OpenOptions options;
  options.max_model_bytes = read.max_model_bytes;
  return OpenModel(files, path, options);
}

}  // namespace permafrost
