// Weights that lie packed in the package which a model was read from.
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

// What a session uses of them.
struct PackedUse {
  std::shared_ptr<WeightCache> cache;  // Null where there are none.
  std::string failure;                 // Why those that there are are not used; otherwise empty.
};

// Instead, in builds that look for none.
struct NothingPacked {};
using ModelPackage = std::conditional_t<kKeepsPackedWeights, std::shared_ptr<const Package>, NothingPacked>;
using SessionPackedUse = std::conditional_t<kKeepsPackedWeights, PackedUse, NothingPacked>;

// Has opening set *package, to null where the model is none.
inline void AskFor(std::shared_ptr<const Package>* package, OpenOptions* options) { options->package = package; }
inline void AskFor(NothingPacked*, OpenOptions*) {}

// Has a session use what the package, which may be null, holds for the delegate `name` and options->precision: sets
// *options and *use. Weights that do not fit are left alone, which *use says. DataLoss, InvalidArgument: the plan of
// precisions that belongs to them is damaged.
absl::Status UsePacked(const std::shared_ptr<const Package>& package, const std::string& name, DelegateOptions* options,
                       PackedUse* use);
inline absl::Status UsePacked(NothingPacked, const std::string&, DelegateOptions*, NothingPacked*) {
  return absl::OkStatus();
}

// Its members on packed weights.
void Report(const PackedUse& use, pf_report* report);
inline void Report(NothingPacked, pf_report*) {}

}  // namespace permafrost

#endif  // PERMAFROST_EMBEDDING_PACKED_PACKAGE_H_
