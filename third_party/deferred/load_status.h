// The status of loading a shared library on demand.
#ifndef PERMAFROST_THIRD_PARTY_DEFERRED_LOAD_STATUS_H_
#define PERMAFROST_THIRD_PARTY_DEFERRED_LOAD_STATUS_H_

#include <string>

#include "absl/status/status.h"
#include "third_party/deferred/deferred_library.h"

namespace permafrost::deferred {

// Loads the library if it is not loaded. Returns NotFound if it is not installed, and FailedPrecondition if it is
// damaged, of another version, or needs a library that is not installed. Thread-safe.
inline absl::Status LoadStatus(Library& library) {
  const std::string& problem = library.Load();
  if (problem.empty()) return absl::OkStatus();
  return library.is_missing() ? absl::NotFoundError(problem) : absl::FailedPreconditionError(problem);
}

}  // namespace permafrost::deferred

#endif  // PERMAFROST_THIRD_PARTY_DEFERRED_LOAD_STATUS_H_
