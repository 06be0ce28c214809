// Implements the search for packed weights in a package.
#include "embedding/packed_package.h"

#include <utility>

#include "embedding/caller_error.h"
#include "embedding/delegate_choice.h"
#include "graph/base/status.h"
#include "runtime_check/packing/packed_region.h"
#include "runtime_check/packing/weight_cache.h"

namespace permafrost {

absl::Status UsePacked(const std::shared_ptr<const Package>& package, const std::string& name, DelegateOptions* options,
                       PackedUse* use) {
  if (package == nullptr) return absl::OkStatus();
  const std::string identity = PackingIdentityOf(name);
  if (identity.empty()) return absl::OkStatus();
  absl::StatusOr<std::shared_ptr<const PackedWeightsFile>> region =
      FindPackedRegion(*package, name, options->precision, identity);
  if (!region.ok()) {
    use->failure = std::string(region.status().message());
    return absl::OkStatus();
  }
  if (*region == nullptr) return absl::OkStatus();
  use->cache = CacheOf(*std::move(region));
  PF_ASSIGN_OR_RETURN(*options, AsPacked(use->cache));
  return absl::OkStatus();
}

void Report(const PackedUse& use, pf_report* report) {
  if (use.cache != nullptr) report->packed_bytes = use.cache->found().bytes;
  CopyLine(use.failure, report->packed_failure, sizeof(report->packed_failure));
}

}  // namespace permafrost
