// Replacement for Abseil's StatusOr: a value, or the error that prevented it.
#ifndef PERMAFROST_SELECTIVE_ABSL_STATUS_STATUSOR_H_
#define PERMAFROST_SELECTIVE_ABSL_STATUS_STATUSOR_H_

#include <memory>
#include <new>
#include <type_traits>
#include <utility>

#include "absl/status/status.h"

namespace absl {
inline namespace selective {

template <typename T>
class StatusOr;

namespace internal {
template <typename T>
inline constexpr bool kIsStatusOr = false;
template <typename T>
inline constexpr bool kIsStatusOr<StatusOr<T>> = true;
// Reports a program error: a StatusOr made from an OK status, or access to a missing value.
[[noreturn]] void MisusedStatusOr();
}  // namespace internal

template <typename T>
class [[nodiscard]] StatusOr {
 public:
  using value_type = T;

  StatusOr() : status_(StatusCode::kUnknown, "") {}
  StatusOr(const Status& status) : status_(status) { CheckNotOk(); }  // NOLINT: implicit, as all that follow.
  StatusOr(Status&& status) : status_(std::move(status)) { CheckNotOk(); }
  template <typename U = T,
            typename = std::enable_if_t<std::is_convertible_v<U&&, T> && !std::is_same_v<std::decay_t<U>, Status> &&
                                        !internal::kIsStatusOr<std::decay_t<U>>>>
  StatusOr(U&& value) : value_(std::forward<U>(value)) {}
  template <typename U, typename = std::enable_if_t<!std::is_same_v<T, U> && std::is_convertible_v<U&&, T>>>
  StatusOr(StatusOr<U>&& other) : status_(other.status()) {
    if (ok()) Construct(*std::move(other));
  }
  StatusOr(const StatusOr& other) : status_(other.status_) {
    if (ok()) Construct(other.value_);
  }
  StatusOr(StatusOr&& other) noexcept : status_(other.status_) {
    if (ok()) Construct(std::move(other.value_));
  }
  StatusOr& operator=(StatusOr other) noexcept {
    Clear();
    status_ = other.status_;
    if (ok()) Construct(std::move(other.value_));
    return *this;
  }
  ~StatusOr() { Clear(); }

  bool ok() const { return status_.ok(); }
  const Status& status() const& { return status_; }
  // Returns a copy, so that the object continues to report that there is no value.
  Status status() && { return status_; }

  const T& value() const& {
    if (!ok()) internal::MisusedStatusOr();
    return value_;
  }
  T& value() & {
    if (!ok()) internal::MisusedStatusOr();
    return value_;
  }
  T&& value() && {
    if (!ok()) internal::MisusedStatusOr();
    return std::move(value_);
  }
  const T& operator*() const& { return value(); }
  T& operator*() & { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  const T* operator->() const { return &value(); }
  T* operator->() { return &value(); }
  template <typename U>
  T value_or(U&& other) const& {
    return ok() ? value_ : static_cast<T>(std::forward<U>(other));
  }
  template <typename U>
  T value_or(U&& other) && {
    return ok() ? std::move(value_) : static_cast<T>(std::forward<U>(other));
  }

 private:
  void CheckNotOk() {
    if (status_.ok()) internal::MisusedStatusOr();
  }

  template <typename U>
  void Construct(U&& value) {
    new (static_cast<void*>(std::addressof(value_))) T(std::forward<U>(value));
  }
  void Clear() {
    if constexpr (!std::is_trivially_destructible_v<T>) {
      if (ok()) value_.~T();
    }
  }

  Status status_;
  union {
    std::remove_const_t<T> value_;  // Valid if status_ is OK.
  };
};

}  // namespace selective
}  // namespace absl

#endif  // PERMAFROST_SELECTIVE_ABSL_STATUS_STATUSOR_H_
