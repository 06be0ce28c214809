// Implements Status and StatusOr.
#include "absl/status/status.h"

#include <cstdlib>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"

namespace absl {
inline namespace selective {
namespace {

constexpr const char* kCodeNames[] = {
    "OK",        "CANCELLED",      "UNKNOWN",           "INVALID_ARGUMENT",   "DEADLINE_EXCEEDED",
    "NOT_FOUND", "ALREADY_EXISTS", "PERMISSION_DENIED", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION",
    "ABORTED",   "OUT_OF_RANGE",   "UNIMPLEMENTED",     "INTERNAL",           "UNAVAILABLE",
    "DATA_LOSS", "UNAUTHENTICATED"};

}  // namespace

Status::Status(StatusCode code, std::string_view message)
    : content_(code == StatusCode::kOk ? nullptr : new Content{code, std::string(message), {}}) {}

void Status::Release(Content* content) {
  if (content->references.fetch_sub(1, std::memory_order_acq_rel) == 1) delete content;
}

std::string Status::ToString() const {
  return ok() ? "OK" : StrCat(kCodeNames[static_cast<int>(content_->code)], ": ", content_->message);
}

optional<Cord> Status::GetPayload(std::string_view type) const {
  if (ok()) return nullopt;
  for (const auto& [name, payload] : content_->payloads) {
    if (name == type) return payload;
  }
  return nullopt;
}

void Status::SetPayload(std::string_view type, Cord payload) {
  if (ok()) return;
  if (content_->references.load(std::memory_order_acquire) > 1) {
    auto* const own = new Content{content_->code, content_->message, content_->payloads};
    Release(std::exchange(content_, own));
  }
  for (auto& [name, present] : content_->payloads) {
    if (name == type) {
      present = std::move(payload);
      return;
    }
  }
  content_->payloads.emplace_back(type, std::move(payload));
}

void Status::ForEachPayload(FunctionRef<void(std::string_view, const Cord&)> visit) const {
  if (ok()) return;
  for (const auto& [name, payload] : content_->payloads) visit(name, payload);
}

namespace internal {

Status MakeStatus(StatusCode code, std::string_view message) { return Status(code, message); }
Status MakeStatus(StatusCode code, const std::string& message) { return Status(code, message); }
Status MakeStatus(StatusCode code, const char* message) { return Status(code, message); }

void MisusedStatusOr() { std::abort(); }

}  // namespace internal
}  // namespace selective
}  // namespace absl
