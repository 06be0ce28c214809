// Opens a region of a package as a file of packed weights.
#include "runtime_check/packing/packed_region.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "runtime_check/packing/precision_plan_bytes.h"

namespace permafrost {

std::string PackedRegionName(absl::string_view delegate, absl::string_view precision) {
  return absl::StrCat(kPackedRegionPrefix, delegate, ".", precision);
}

absl::StatusOr<std::shared_ptr<const PackedWeightsFile>> FindPackedRegion(const Package& package,
                                                                          absl::string_view delegate,
                                                                          absl::string_view precision,
                                                                          absl::string_view identity) {
  const std::string name = PackedRegionName(delegate, precision);
  if (package.Find(name) == nullptr) return nullptr;
  PF_ASSIGN_OR_RETURN(FileView view, package.Read(name));
  PF_ASSIGN_OR_RETURN(std::shared_ptr<const PackedWeightsFile> region, OpenPackedWeights(std::move(view)));
  const PackedMaker& maker = region->maker();
  const std::string difference =
      DifferenceOf(maker, {"", std::string(delegate), std::string(identity), std::string(precision), maker.plan});
  if (!difference.empty()) return absl::FailedPreconditionError(difference);
  return region;
}

std::shared_ptr<WeightCache> CacheOf(std::shared_ptr<const PackedWeightsFile> region) {
  auto cache = std::make_shared<WeightCache>(region->maker());
  cache->Use(std::move(region), PackedTrust::kAsTheModel);
  return cache;
}

absl::StatusOr<DelegateOptions> AsPacked(std::shared_ptr<WeightCache> cache) {
  const PackedMaker& maker = cache->maker();
  DelegateOptions options;
  options.precision = maker.precision;
  if (!maker.plan.empty()) {
    absl::StatusOr<PrecisionPlanRecord> record = ParsePrecisionPlanBytes(maker.plan);
    PF_RETURN_IF_ERROR(Annotate(record.status(), "the plan that is packed in the model"));
    options.precision = record->precision;
    options.plan = record->plan;
  }
  options.packed = std::move(cache);
  return options;
}

}  // namespace permafrost
