// The limit on the memory that the runtime allocates for one graph, and reservations of parts of it.
#ifndef PERMAFROST_RUNTIME_CHECK_RESOURCES_MEMORY_BUDGET_H_
#define PERMAFROST_RUNTIME_CHECK_RESOURCES_MEMORY_BUDGET_H_

#include <cstdint>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace permafrost {

// Counts the bytes that the runtime may still allocate for one graph. Not thread-safe.
class MemoryBudget {
 public:
  explicit MemoryBudget(int64_t limit) : limit_(limit) {}

  // Reserves `bytes` (0 or more). Returns ResourceExhausted, without changes, if that would exceed the limit; `what`
  // names the purpose in the error.
  absl::Status Take(int64_t bytes, absl::string_view what);
  void GiveBack(int64_t bytes) { used_ -= bytes; }
  int64_t used() const { return used_; }
  // Returns the number of calls of Take that failed.
  int64_t num_refused() const { return num_refused_; }

 private:
  int64_t limit_;
  int64_t used_ = 0;
  int64_t num_refused_ = 0;
};

// A reservation of bytes from a budget, which must outlive it. Returns them when it is destroyed.
class Reservation {
 public:
  Reservation() = default;
  static absl::StatusOr<Reservation> Take(MemoryBudget* budget, int64_t bytes, absl::string_view what);
  ~Reservation() { Release(); }
  Reservation(Reservation&& other) noexcept
      : budget_(std::exchange(other.budget_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
  Reservation& operator=(Reservation&& other) noexcept {
    std::swap(budget_, other.budget_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }

  int64_t bytes() const { return bytes_; }
  void Release() {
    if (budget_ != nullptr) budget_->GiveBack(bytes_);
    budget_ = nullptr;
    bytes_ = 0;
  }

 private:
  MemoryBudget* budget_ = nullptr;
  int64_t bytes_ = 0;
};

}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_RESOURCES_MEMORY_BUDGET_H_
