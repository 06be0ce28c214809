// Implements budgets and reservations.
#include "runtime_check/resources/memory_budget.h"

#include "absl/strings/str_cat.h"
#include "graph/base/status.h"

namespace permafrost {

absl::Status MemoryBudget::Take(int64_t bytes, absl::string_view what) {
  if (bytes > limit_ - used_) {
    ++num_refused_;
    return absl::ResourceExhaustedError(
        absl::StrCat(what, " takes ", bytes, " bytes, where ", used_, " of a limit of ", limit_, " are in use"));
  }
  used_ += bytes;
  return absl::OkStatus();
}

absl::StatusOr<Reservation> Reservation::Take(MemoryBudget* budget, int64_t bytes, absl::string_view what) {
  PF_RETURN_IF_ERROR(budget->Take(bytes, what));
  Reservation reservation;
  reservation.budget_ = budget;
  reservation.bytes_ = bytes;
  return reservation;
}

}  // namespace permafrost
