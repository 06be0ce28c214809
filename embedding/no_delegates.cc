// Provides only the reference kernels, for small builds.
#include "absl/strings/str_cat.h"
#include "embedding/delegate_choice.h"
#include "runtime_check/kernels/packed_input.h"
#include "runtime_check/packing/packed_weights.h"

namespace permafrost {

absl::StatusOr<std::shared_ptr<const Delegate>> ChooseDelegate(const std::string& name,
                                                               const DelegateOptions& options) {
  if (name != kReferenceDelegate) {
    return absl::InvalidArgumentError(
        absl::StrCat("no delegate '", name, "'; this build has the reference kernels only"));
  }
  if (options.precision != "f32") {
    return absl::InvalidArgumentError(
        absl::StrCat("delegate '", kReferenceDelegate, "': found precision '", options.precision, "', expected f32"));
  }
  return nullptr;
}

std::string PackingIdentityOf(const std::string& name) {
  return kKeepsPackedWeights && name == kReferenceDelegate ? ReferencePackingIdentity() : "";
}

}  // namespace permafrost
