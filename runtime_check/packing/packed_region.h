// Weights that lie packed beside the graph in a memory-mapped package.
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

// The name of the region for this delegate and precision.
std::string PackedRegionName(absl::string_view delegate, absl::string_view precision);

// That region. Null where there is none; an error, which says why, for one that is damaged or was packed for another
// `identity` (PackingIdentity).
absl::StatusOr<std::shared_ptr<const PackedWeightsFile>> FindPackedRegion(const Package& package,
                                                                          absl::string_view delegate,
                                                                          absl::string_view precision,
                                                                          absl::string_view identity);

// What reads from the region.
std::shared_ptr<WeightCache> CacheOf(std::shared_ptr<const PackedWeightsFile> region);

// What the delegate is made with that runs a model as its package has it packed: the precision, its plan, and the
// weights. DataLoss, InvalidArgument: the plan is damaged, or none.
absl::StatusOr<DelegateOptions> AsPacked(std::shared_ptr<WeightCache> cache);

}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_PACKING_PACKED_REGION_H_
