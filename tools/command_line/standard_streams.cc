// Implements "-" as standard input and standard output.
#include "tools/command_line/standard_streams.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "graph/base/status.h"

namespace permafrost {
namespace {

// The name by which the kernel opens standard input again.
constexpr char kStandardInput[] = "/dev/stdin";

class StandardOutputWriter : public FileWriter {
 public:
  explicit StandardOutputWriter(std::ostream& out) : out_(out) {}

  absl::Status Append(absl::string_view bytes) override {
    absl::StrAppend(&bytes_, bytes);
    return absl::OkStatus();
  }

  absl::Status Commit() override {
    out_ << bytes_ << std::flush;
    return out_.good() ? absl::OkStatus() : absl::UnavailableError("cannot write to standard output");
  }

 private:
  std::ostream& out_;
  std::string bytes_;
};

}  // namespace

absl::StatusOr<FileView> StandardStreamFiles::MapFile(const std::string& path) {
  if (path != kStandardStream) {
    const absl::StatusOr<FileStat> about = files_.Stat(path);
    if (!about.ok() || about->is_regular || about->is_directory) return files_.MapFile(path);
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto known = pipes_.find(path);
    if (known != pipes_.end()) return known->second;
    PF_ASSIGN_OR_RETURN(FileView view, files_.MapFile(path));
    return pipes_.emplace(path, std::move(view)).first->second;
  }
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!input_.has_value()) {
    PF_ASSIGN_OR_RETURN(input_, files_.MapFile(kStandardInput));
  }
  return *input_;
}

absl::StatusOr<FileView> StandardStreamFiles::MapFileIn(const std::string& folder, const std::string& name) {
  return permafrost::MapFileIn(files_, folder, name);
}

absl::StatusOr<FileView> StandardStreamFiles::MapOwnFile(const std::string& path) {
  return permafrost::MapOwnFile(files_, path);
}

absl::StatusOr<std::string> StandardStreamFiles::ReadFile(const std::string& path) {
  if (path != kStandardStream) return files_.ReadFile(path);
  PF_ASSIGN_OR_RETURN(const FileView input, MapFile(path));
  return std::string(input.bytes);
}

absl::StatusOr<std::unique_ptr<FileWriter>> StandardStreamFiles::NewWriter(const std::string& path,
                                                                           uint64_t expected_size) {
  if (path != kStandardStream) return files_.NewWriter(path, expected_size);
  return std::make_unique<StandardOutputWriter>(out_);
}

absl::StatusOr<std::unique_ptr<FileWriter>> StandardStreamFiles::NewOwnWriter(const std::string& path,
                                                                              uint64_t expected_size) {
  return permafrost::NewOwnWriter(files_, path, expected_size);
}

absl::Status StandardStreamFiles::WritePrivateFile(const std::string& path, absl::string_view bytes) {
  if (path != kStandardStream) return files_.WritePrivateFile(path, bytes);
  return absl::InvalidArgumentError("cannot write a private file to standard output, expected the path of a new file");
}

absl::StatusOr<FileStat> StandardStreamFiles::Stat(const std::string& path) {
  if (path != kStandardStream) return files_.Stat(path);
  const std::lock_guard<std::mutex> lock(mutex_);
  FileStat stat;
  if (input_.has_value()) stat.size = input_->bytes.size();
  return stat;
}

bool StandardStreamFiles::Exists(const std::string& path) { return path == kStandardStream || files_.Exists(path); }

bool StandardStreamFiles::IsSameFile(const std::string& a, const std::string& b) {
  return a != kStandardStream && b != kStandardStream && files_.IsSameFile(a, b);
}

absl::StatusOr<std::vector<std::string>> StandardStreamFiles::ListDirectory(const std::string& path) {
  return files_.ListDirectory(path);
}

absl::Status StandardStreamFiles::MakeDirectory(const std::string& path) { return files_.MakeDirectory(path); }

}  // namespace permafrost
