// The reference kernels alone: for small builds.
#include "absl/strings/str_cat.h"
#include "embedding/delegate_choice.h"

namespace permafrost {

absl::StatusOr<std::shared_ptr<const Delegate>> ChooseDelegate(const std::string& name, const std::string& precision) {
  if (name != "reference") {
    return absl::InvalidArgumentError(absl::StrCat("no delegate '", name, "'; this build has the reference kernels only"));
  }
  if (precision != "f32") {
    return absl::InvalidArgumentError(
        absl::StrCat("delegate 'reference': found precision '", precision, "', expected f32"));
  }
  return nullptr;
}

}  // namespace permafrost
