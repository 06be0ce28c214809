// Packed weights stored beside the graph in a memory-mapped package.
#ifndef PERMAFROST_RUNTIME_CHECK_PACKING_PACKED_REGION_H_
#define PERMAFROST_RUNTIME_CHECK_PACKING_PACKED_REGION_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "io/formats/memmapped_package.h"
#include "io/formats/packed_weights.h"
#include "runtime_check/delegates/delegate_options.h"
#include "runtime_check/packing/weight_cache.h"

namespace permafrost {

// Returns the name of the region for this delegate and precision.
std::string PackedRegionName(absl::string_view delegate, absl::string_view precision);

// Returns that region; null if there is none. Returns an error, with the reason, if it is damaged or was packed for
// another `identity` (PackingIdentity).
absl::StatusOr<std::shared_ptr<const PackedWeightsFile>> FindPackedRegion(const Package& package,
                                                                          absl::string_view delegate,
                                                                          absl::string_view precision,
                                                                          absl::string_view identity);

// Returns a cache that reads from the region.
std::shared_ptr<WeightCache> CacheOf(std::shared_ptr<const PackedWeightsFile> region);

// Returns the options of a delegate that runs a model with the packed weights of its package: precision, plan and
// weights. DataLoss or InvalidArgument if the plan is damaged or is not a plan.
absl::StatusOr<DelegateOptions> AsPacked(std::shared_ptr<WeightCache> cache);

}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_PACKING_PACKED_REGION_H_
