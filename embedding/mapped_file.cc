// Reads the model in a file from the mapped file, for builds that read few formats.
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "embedding/descriptor_view.h"
#include "embedding/model_reading.h"
#include "graph/base/status.h"
#include "io/system_error.h"

namespace permafrost {

absl::StatusOr<std::unique_ptr<EmbeddedModel>> ReadModelFile(const std::string& path, const OpenOptions& options) {
  int file;
  do {
    file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  } while (file < 0 && errno == EINTR);
  if (file < 0) return SystemError("open", path, errno);
  const absl::Cleanup close_file = [file] { close(file); };
  PF_ASSIGN_OR_RETURN(FileView bytes, ViewDescriptor(file, 0, 0));
  absl::StatusOr<std::unique_ptr<EmbeddedModel>> model = ReadModelBytes(std::move(bytes), options);
  if (!model.ok()) return Annotate(model.status(), absl::StrCat("'", path, "'"));
  return model;
}

}  // namespace permafrost
