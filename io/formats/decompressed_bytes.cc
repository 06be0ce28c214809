// Implements the buffer for decompressed models.
#include "io/formats/decompressed_bytes.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "graph/base/status.h"

namespace permafrost {
namespace {

absl::Status TooLarge(absl::string_view verb, uint64_t bytes, uint64_t most) {
  return absl::ResourceExhaustedError(
      absl::StrCat("the model ", verb, " ", bytes, " bytes, expected at most ", most, " (max_model_bytes)"));
}

uint64_t MostBytes(uint64_t compressed_size, const OpenOptions& options) {
  if (options.max_model_bytes != OpenOptions().max_model_bytes) return options.max_model_bytes;
  if (compressed_size > options.max_model_bytes / DecompressedBytes::kMostExpansion) return options.max_model_bytes;
  return std::max(DecompressedBytes::kFreeBytes, DecompressedBytes::kMostExpansion * compressed_size);
}

}  // namespace

DecompressedBytes::DecompressedBytes(bool is_secret, uint64_t compressed_size, const OpenOptions& options)
    : is_secret_(is_secret), options_(options), most_(MostBytes(compressed_size, options)) {}

DecompressedBytes::~DecompressedBytes() { std::free(open_); }

absl::Status DecompressedBytes::CheckDeclared(uint64_t declared) const {
  if (declared <= most_ - size_) return absl::OkStatus();
  const uint64_t countable = std::numeric_limits<uint64_t>::max() - size_;
  return TooLarge("declares", size_ + std::min<uint64_t>(declared, countable), most_);
}

absl::Status DecompressedBytes::Reserve(uint64_t capacity) {
  if (capacity <= capacity_) return absl::OkStatus();
  if (is_secret_) {
    PF_ASSIGN_OR_RETURN(LockedMemory grown, LockedMemory::Allocate(static_cast<size_t>(capacity)));
    if (size_ > 0) std::memcpy(grown.data(), data_, size_);
    locked_ = std::move(grown);
    data_ = locked_.data();
  } else {
    void* grown = std::realloc(open_, static_cast<size_t>(capacity));
    if (grown == nullptr) {
      return absl::ResourceExhaustedError(
          absl::StrCat("no memory for the ", capacity, " bytes that it decompresses to"));
    }
    open_ = data_ = static_cast<char*>(grown);
  }
  capacity_ = static_cast<size_t>(capacity);
  return absl::OkStatus();
}

absl::Status DecompressedBytes::MakeRoom() {
  constexpr uint64_t kFirst = uint64_t{1} << 20;
  if (size_ < capacity_) return absl::OkStatus();
  const uint64_t wanted = std::max(kFirst, 2 * static_cast<uint64_t>(capacity_));
  // One byte above the limit distinguishes a model of exactly that size from a larger one.
  const uint64_t limit = most_ == std::numeric_limits<uint64_t>::max() ? most_ : most_ + 1;
  return Reserve(std::min(wanted, limit));
}

absl::Status DecompressedBytes::Grow(size_t bytes) {
  size_ += bytes;
  return size_ <= most_ ? absl::OkStatus() : TooLarge("has more than", most_, most_);
}

absl::Status DecompressedBytes::CheckLocked() const {
  if (locked_.is_locked()) return absl::OkStatus();
  const std::string text =
      absl::StrCat("the ", size_,
                   " decompressed bytes of the encrypted model cannot be locked in memory and may be swapped: the "
                   "system allows less (ulimit -l)");
  if (options_.require_locked_memory) return absl::ResourceExhaustedError(text);
  if (options_.tell != nullptr) options_.tell(text);
  return absl::OkStatus();
}

absl::StatusOr<FileView> DecompressedBytes::Release() {
  PF_RETURN_IF_ERROR(CheckLocked());
  if (data_ == nullptr) return FileView();
  if (is_secret_) {
    auto kept = std::make_shared<const LockedMemory>(std::move(locked_));
    return FileView{kept->bytes().substr(0, size_), kept};
  }
  if (void* trimmed = std::realloc(open_, std::max<size_t>(size_, 1)); trimmed != nullptr) {
    open_ = static_cast<char*>(trimmed);
  }
  std::shared_ptr<const void> owner(open_, [](const void* data) { std::free(const_cast<void*>(data)); });
  const absl::string_view bytes(open_, size_);
  open_ = nullptr;
  return FileView{bytes, std::move(owner)};
}

}  // namespace permafrost
