// Implements sources in memory and the range check.
#include "io/byte_source.h"

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "graph/base/status.h"

namespace permafrost {
namespace {

class Memory : public ByteSource {
 public:
  Memory(FileView view, bool is_secret) : view_(std::move(view)), is_secret_(is_secret) {}

  uint64_t size() const override { return view_.bytes.size(); }
  bool is_secret() const override { return is_secret_; }

  absl::StatusOr<FileView> Read(uint64_t offset, uint64_t length) const override {
    PF_RETURN_IF_ERROR(CheckRange(offset, length));
    return FileView{view_.bytes.substr(offset, length), view_.owner};
  }

 private:
  const FileView view_;
  const bool is_secret_;
};

}  // namespace

absl::Status ByteSource::CheckRange(uint64_t offset, uint64_t length) const {
  if (offset <= size() && length <= size() - offset) return absl::OkStatus();
  return absl::OutOfRangeError(
      absl::StrCat("found ", size(), " bytes, expected at least ", length, " from byte ", offset));
}

std::shared_ptr<const ByteSource> MemorySource(FileView view, bool is_secret) {
  return std::make_shared<Memory>(std::move(view), is_secret);
}

absl::StatusOr<FileView> ReadAll(const ByteSource& source) { return source.Read(0, source.size()); }

}  // namespace permafrost
