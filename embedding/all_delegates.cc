// Links every delegate of the project.
#include "embedding/delegate_choice.h"
#include "runtime_check/delegates/delegate_registry.h"

namespace permafrost {

absl::StatusOr<std::shared_ptr<const Delegate>> ChooseDelegate(const std::string& name,
                                                               const DelegateOptions& options) {
  return MakeDelegate(name, options);
}

std::string PackingIdentityOf(const std::string& name) { return PackingIdentity(name); }

}  // namespace permafrost
