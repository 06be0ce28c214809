// Layout of a file: kMagic, then little-endian uint64: hash of everything behind it, length of the key; the key; the
// bytes.
#include "tools/model/blob_files.h"

#include <cstdint>
#include <cstring>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "graph/base/content_hash.h"
#include "graph/base/status.h"
#include "io/checked_files.h"

namespace permafrost {
namespace {

constexpr absl::string_view kMagic = "permafrost blob 1\n";
constexpr size_t kHeaderBytes = 16;
// A compiled program has at most some megabytes.
constexpr size_t kMostBytes = size_t{256} << 20;

uint64_t LoadNumber(absl::string_view bytes) {
  uint64_t number = 0;
  for (int i = 7; i >= 0; --i) number = number << 8 | static_cast<uint8_t>(bytes[static_cast<size_t>(i)]);
  return number;
}

void AppendNumber(uint64_t number, std::string* to) {
  for (int i = 0; i < 8; ++i) to->push_back(static_cast<char>(number >> (8 * i) & 0xFF));
}

class Files final : public DelegateBlobs {
 public:
  Files(FileSystem& files, std::string folder) : files_(files), folder_(std::move(folder)) {}

  std::optional<std::string> Read(const std::string& key) override {
    const absl::StatusOr<FileView> file = MapOwnFile(files_, PathOf(key));
    if (!file.ok() || file->bytes.size() > kMostBytes) return std::nullopt;
    absl::string_view bytes = file->bytes;
    if (bytes.substr(0, kMagic.size()) != kMagic || bytes.size() < kMagic.size() + kHeaderBytes) return std::nullopt;
    bytes.remove_prefix(kMagic.size());
    const uint64_t hash = LoadNumber(bytes);
    if (HashContent(bytes.substr(8)) != hash || LoadNumber(bytes.substr(8)) != key.size()) return std::nullopt;
    bytes.remove_prefix(kHeaderBytes);
    if (bytes.substr(0, key.size()) != key) return std::nullopt;
    return std::string(bytes.substr(key.size()));
  }

  void Write(const std::string& key, absl::string_view bytes) override { TryToWrite(key, bytes).IgnoreError(); }

 private:
  std::string PathOf(const std::string& key) const {
    return absl::StrFormat("%s/%016x.blob", folder_, HashContent(key));
  }

  absl::Status TryToWrite(const std::string& key, absl::string_view bytes) {
    if (bytes.size() > kMostBytes - key.size() - kMagic.size() - kHeaderBytes) {
      return absl::ResourceExhaustedError("the blob is too large");
    }
    std::string body;
    AppendNumber(key.size(), &body);
    absl::StrAppend(&body, key, bytes);
    std::string file(kMagic);
    AppendNumber(HashContent(body), &file);
    file += body;
    PF_RETURN_IF_ERROR(files_.MakeDirectory(folder_));
    PF_ASSIGN_OR_RETURN(const std::unique_ptr<FileWriter> writer, NewOwnWriter(files_, PathOf(key), file.size()));
    PF_RETURN_IF_ERROR(writer->Append(file));
    return writer->Commit();
  }

  FileSystem& files_;
  const std::string folder_;
};

}  // namespace

std::shared_ptr<DelegateBlobs> BlobFiles(FileSystem& files, const std::string& folder) {
  return std::make_shared<Files>(files, folder);
}

}  // namespace permafrost
