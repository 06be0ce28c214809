// Fuzz target: bytes as the model passed to transform_graph. The passes and the validation of their results must
// succeed or return an error of the caller; an internal error is a finding.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "io/file_system.h"
#include "tools/transform_graph.h"

namespace permafrost {
namespace {

constexpr char kTransforms[] =
    "strip_unused_nodes remove_nodes(op=Identity, op=CheckNumerics) fold_constants fold_batch_norms "
    "fold_old_batch_norms merge_duplicate_nodes round_weights quantize_weights(minimum_size=1) "
    "sort_by_execution_order obfuscate_names";

// A file system with one file, whatever its name. Read-only.
class OneFile : public FileSystem {
 public:
  explicit OneFile(absl::string_view bytes) : bytes_(bytes) {}

  absl::StatusOr<FileView> MapFile(const std::string&) override { return FileView{bytes_, nullptr}; }
  absl::StatusOr<std::string> ReadFile(const std::string&) override { return std::string(bytes_); }
  absl::StatusOr<std::unique_ptr<FileWriter>> NewWriter(const std::string& path, uint64_t) override {
    return absl::PermissionDeniedError(path);
  }
  absl::StatusOr<FileStat> Stat(const std::string&) override { return FileStat{bytes_.size(), false, true}; }
  bool Exists(const std::string&) override { return true; }
  bool IsSameFile(const std::string&, const std::string&) override { return true; }
  absl::StatusOr<std::vector<std::string>> ListDirectory(const std::string& path) override {
    return absl::InvalidArgumentError(path);
  }
  absl::Status MakeDirectory(const std::string& path) override { return absl::PermissionDeniedError(path); }
  absl::Status WritePrivateFile(const std::string& path, absl::string_view) override {
    return absl::PermissionDeniedError(path);
  }

 private:
  absl::string_view bytes_;
};

absl::Status Transform(absl::string_view model, const std::string& verify) {
  TransformGraphOptions options;
  options.verify = verify;
  options.in_graph = "model.pb";
  options.transforms = kTransforms;
  options.dry_run = true;
  options.threads = 1;
  OneFile files(model);
  std::ostringstream out, err;
  Console console{out, err};
  return TransformGraph(options, files, console);
}

}  // namespace
}  // namespace permafrost

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view model(reinterpret_cast<const char*>(data), size);
  // An invalid graph is not run, but passes still accept it.
  for (const char* verify : {"auto", "off"}) {
    const absl::Status status = permafrost::Transform(model, verify);
    if (absl::IsInternal(status) || absl::IsUnknown(status)) {
      std::fprintf(stderr, "--verify=%s: %s\ninput: \"%s\"\n", verify, status.ToString().c_str(),
                   absl::CHexEscape(model).c_str());
      std::abort();
    }
    if (status.ok()) break;
  }
  return 0;
}
