// Access to the packed weights in the package of a model.
#ifndef PERMAFROST_EMBEDDING_PACKED_PACKAGE_H_
#define PERMAFROST_EMBEDDING_PACKED_PACKAGE_H_

#include <memory>
#include <string>
#include <type_traits>

#include "absl/status/status.h"
#include "embedding/permafrost_runtime.h"
#include "io/model_format.h"
#include "runtime_check/delegates/delegate_options.h"
#include "runtime_check/packing/packed_weights.h"

namespace permafrost {

class WeightCache;  // runtime_check/packing/weight_cache.h

// The packed weights that a session uses.
struct PackedUse {
  std::shared_ptr<WeightCache> cache;  // Null if there are none.
  std::string failure;                 // Reason why existing packed weights are not used; otherwise empty.
};

// Replacement in builds that do not read packed weights.
struct NothingPacked {};
using ModelPackage = std::conditional_t<kKeepsPackedWeights, std::shared_ptr<const Package>, NothingPacked>;
using SessionPackedUse = std::conditional_t<kKeepsPackedWeights, PackedUse, NothingPacked>;

// Makes opening set *package; null if the model is not a package.
inline void AskFor(std::shared_ptr<const Package>* package, OpenOptions* options) { options->package = package; }
inline void AskFor(NothingPacked*, OpenOptions*) {}

// Configures a session to use the weights that the package, which may be null, holds for the delegate `name` and
// options->precision: sets *options and *use. Weights that do not fit are ignored, with the reason in *use. Returns
// DataLoss or InvalidArgument if their precision plan is damaged.
absl::Status UsePacked(const std::shared_ptr<const Package>& package, const std::string& name, DelegateOptions* options,
                       PackedUse* use);
inline absl::Status UsePacked(NothingPacked, const std::string&, DelegateOptions*, NothingPacked*) {
  return absl::OkStatus();
}

// Sets the members of the report that concern packed weights.
void Report(const PackedUse& use, pf_report* report);
inline void Report(NothingPacked, pf_report*) {}

}  // namespace permafrost

#endif  // PERMAFROST_EMBEDDING_PACKED_PACKAGE_H_
