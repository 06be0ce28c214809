// Which delegates a build of the runtime has: decided by which of the libraries beside this header is linked.
#ifndef PERMAFROST_EMBEDDING_DELEGATE_CHOICE_H_
#define PERMAFROST_EMBEDDING_DELEGATE_CHOICE_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "runtime_check/delegate.h"
#include "runtime_check/delegates/delegate_options.h"

namespace permafrost {

// Null for "reference". InvalidArgument for one that there is not, with those that there are.
absl::StatusOr<std::shared_ptr<const Delegate>> ChooseDelegate(const std::string& name, const DelegateOptions& options);

// What packed weights must have been made for that it reads: as PackingIdentity
// (runtime_check/delegates/delegate_registry.h).
std::string PackingIdentityOf(const std::string& name);

}  // namespace permafrost

#endif  // PERMAFROST_EMBEDDING_DELEGATE_CHOICE_H_
