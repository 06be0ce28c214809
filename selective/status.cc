// How things ended.
#include "absl/status/status.h"

#include <cstdlib>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"

namespace absl {
inline namespace selective {
namespace {

constexpr const char* kCodeNames[] = {
    "OK",         "CANCELLED",         "UNKNOWN",            "INVALID_ARGUMENT",    "DEADLINE_EXCEEDED", "NOT_FOUND",
    "ALREADY_EXISTS", "PERMISSION_DENIED", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION", "ABORTED",           "OUT_OF_RANGE",
    "UNIMPLEMENTED",  "INTERNAL",          "UNAVAILABLE",        "DATA_LOSS",           "UNAUTHENTICATED"};

}  // namespace

Status::Status(StatusCode code, std::string_view message)
    : content_(code == StatusCode::kOk ? nullptr : new Content{code, std::string(message), {}}) {}

Status::Content* Status::Copied(const Content& content) { return new Content(content); }

void Status::Destroy(Content* content) { delete content; }

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

Status AlreadyExistsError(std::string_view message) { return Status(StatusCode::kAlreadyExists, message); }
Status CancelledError(std::string_view message) { return Status(StatusCode::kCancelled, message); }
Status DataLossError(std::string_view message) { return Status(StatusCode::kDataLoss, message); }
Status FailedPreconditionError(std::string_view message) { return Status(StatusCode::kFailedPrecondition, message); }
Status InternalError(std::string_view message) { return Status(StatusCode::kInternal, message); }
Status InvalidArgumentError(std::string_view message) { return Status(StatusCode::kInvalidArgument, message); }
Status NotFoundError(std::string_view message) { return Status(StatusCode::kNotFound, message); }
Status OutOfRangeError(std::string_view message) { return Status(StatusCode::kOutOfRange, message); }
Status PermissionDeniedError(std::string_view message) { return Status(StatusCode::kPermissionDenied, message); }
Status ResourceExhaustedError(std::string_view message) { return Status(StatusCode::kResourceExhausted, message); }
Status UnavailableError(std::string_view message) { return Status(StatusCode::kUnavailable, message); }
Status UnimplementedError(std::string_view message) { return Status(StatusCode::kUnimplemented, message); }

namespace internal {

void MisusedStatusOr() { std::abort(); }

}  // namespace internal
}  // namespace selective
}  // namespace absl
