// Replacement for Abseil's Status: a code with a message and payloads.
#ifndef PERMAFROST_SELECTIVE_ABSL_STATUS_STATUS_H_
#define PERMAFROST_SELECTIVE_ABSL_STATUS_STATUS_H_

#include <atomic>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/cord.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"

namespace absl {
inline namespace selective {

enum class StatusCode : int {
  kOk = 0,
  kCancelled = 1,
  kUnknown = 2,
  kInvalidArgument = 3,
  kDeadlineExceeded = 4,
  kNotFound = 5,
  kAlreadyExists = 6,
  kPermissionDenied = 7,
  kResourceExhausted = 8,
  kFailedPrecondition = 9,
  kAborted = 10,
  kOutOfRange = 11,
  kUnimplemented = 12,
  kInternal = 13,
  kUnavailable = 14,
  kDataLoss = 15,
  kUnauthenticated = 16,
};

class [[nodiscard]] Status final {
 public:
  Status() = default;
  Status(StatusCode code, std::string_view message);
  Status(const Status& other) : content_(other.content_) {
    if (content_ != nullptr) content_->references.fetch_add(1, std::memory_order_relaxed);
  }
  Status(Status&& other) noexcept : content_(std::exchange(other.content_, nullptr)) {}
  Status& operator=(Status other) noexcept {
    std::swap(content_, other.content_);
    return *this;
  }
  ~Status() {
    if (content_ != nullptr) Release(content_);
  }

  bool ok() const { return content_ == nullptr; }
  StatusCode code() const { return ok() ? StatusCode::kOk : content_->code; }
  std::string_view message() const { return ok() ? std::string_view() : content_->message; }
  // Returns the name of the code and the message.
  std::string ToString() const;
  void Update(const Status& other) {
    if (ok()) *this = other;
  }
  void IgnoreError() const {}

  optional<Cord> GetPayload(std::string_view type) const;
  void SetPayload(std::string_view type, Cord payload);
  void ForEachPayload(FunctionRef<void(std::string_view, const Cord&)> visit) const;

  friend bool operator==(const Status& a, const Status& b) {
    return a.code() == b.code() && a.message() == b.message();
  }
  friend bool operator!=(const Status& a, const Status& b) { return !(a == b); }

 private:
  // Shared by copies and immutable, except that SetPayload modifies a copy of its own.
  struct Content {
    StatusCode code;
    std::string message;
    std::vector<std::pair<std::string, Cord>> payloads;
    std::atomic<int> references{1};
  };
  static void Release(Content* content);

  Content* content_ = nullptr;
};

inline Status OkStatus() { return Status(); }

namespace internal {
// Makes a status. One overload for each type of message, so that no call converts its argument: there are hundreds of
// calls.
Status MakeStatus(StatusCode code, std::string_view message);
Status MakeStatus(StatusCode code, const std::string& message);
Status MakeStatus(StatusCode code, const char* message);
}  // namespace internal

template <typename Message>
Status AlreadyExistsError(const Message& message) {
  return internal::MakeStatus(StatusCode::kAlreadyExists, message);
}
template <typename Message>
Status CancelledError(const Message& message) {
  return internal::MakeStatus(StatusCode::kCancelled, message);
}
template <typename Message>
Status DataLossError(const Message& message) {
  return internal::MakeStatus(StatusCode::kDataLoss, message);
}
template <typename Message>
Status FailedPreconditionError(const Message& message) {
  return internal::MakeStatus(StatusCode::kFailedPrecondition, message);
}
template <typename Message>
Status InternalError(const Message& message) {
  return internal::MakeStatus(StatusCode::kInternal, message);
}
template <typename Message>
Status InvalidArgumentError(const Message& message) {
  return internal::MakeStatus(StatusCode::kInvalidArgument, message);
}
template <typename Message>
Status NotFoundError(const Message& message) {
  return internal::MakeStatus(StatusCode::kNotFound, message);
}
template <typename Message>
Status OutOfRangeError(const Message& message) {
  return internal::MakeStatus(StatusCode::kOutOfRange, message);
}
template <typename Message>
Status PermissionDeniedError(const Message& message) {
  return internal::MakeStatus(StatusCode::kPermissionDenied, message);
}
template <typename Message>
Status ResourceExhaustedError(const Message& message) {
  return internal::MakeStatus(StatusCode::kResourceExhausted, message);
}
template <typename Message>
Status UnavailableError(const Message& message) {
  return internal::MakeStatus(StatusCode::kUnavailable, message);
}
template <typename Message>
Status UnimplementedError(const Message& message) {
  return internal::MakeStatus(StatusCode::kUnimplemented, message);
}

inline bool IsAlreadyExists(const Status& status) { return status.code() == StatusCode::kAlreadyExists; }
inline bool IsCancelled(const Status& status) { return status.code() == StatusCode::kCancelled; }
inline bool IsDataLoss(const Status& status) { return status.code() == StatusCode::kDataLoss; }
inline bool IsFailedPrecondition(const Status& status) { return status.code() == StatusCode::kFailedPrecondition; }
inline bool IsInternal(const Status& status) { return status.code() == StatusCode::kInternal; }
inline bool IsInvalidArgument(const Status& status) { return status.code() == StatusCode::kInvalidArgument; }
inline bool IsNotFound(const Status& status) { return status.code() == StatusCode::kNotFound; }
inline bool IsResourceExhausted(const Status& status) { return status.code() == StatusCode::kResourceExhausted; }
inline bool IsUnimplemented(const Status& status) { return status.code() == StatusCode::kUnimplemented; }

}  // namespace selective
}  // namespace absl

#endif  // PERMAFROST_SELECTIVE_ABSL_STATUS_STATUS_H_
