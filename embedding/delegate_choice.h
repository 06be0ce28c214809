// Selects a delegate of the build. Which delegates it contains depends on the linked implementation of this header.
#ifndef PERMAFROST_EMBEDDING_DELEGATE_CHOICE_H_
#define PERMAFROST_EMBEDDING_DELEGATE_CHOICE_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "runtime_check/delegate.h"
#include "runtime_check/delegates/delegate_options.h"

namespace permafrost {

// Returns the delegate with this name, or null for "reference". Returns InvalidArgument for an unknown name, with all
// known names.
absl::StatusOr<std::shared_ptr<const Delegate>> ChooseDelegate(const std::string& name, const DelegateOptions& options);

// Returns the identity that packed weights must have for this delegate to read them; same as PackingIdentity
// (runtime_check/delegates/delegate_registry.h).
std::string PackingIdentityOf(const std::string& name);

}  // namespace permafrost

#endif  // PERMAFROST_EMBEDDING_DELEGATE_CHOICE_H_
