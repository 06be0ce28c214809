// The delegates that a user may name.
#ifndef PERMAFROST_RUNTIME_CHECK_DELEGATES_DELEGATE_REGISTRY_H_
#define PERMAFROST_RUNTIME_CHECK_DELEGATES_DELEGATE_REGISTRY_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "runtime_check/delegate.h"
#include "runtime_check/delegates/delegate_options.h"

namespace permafrost {

struct DelegateInfo {
  std::string name;
  std::string description;              // One line.
  std::vector<std::string> precisions;  // The first is the default.
  // Those that besides want a plan for the model.
  std::vector<std::string> planned_precisions;
};

// All of them, "reference" first.
std::vector<DelegateInfo> KnownDelegates();

// What, beside model, precision and plan, the layout of the weights depends on that the delegate packs: library,
// version, instructions of this processor. Empty for one that keeps no packed weights, and for names of none.
std::string PackingIdentity(absl::string_view name);

// Null for "reference", which is what runs without a delegate. InvalidArgument for another name or precision, with the
// known ones, and for a precision that wants a plan without one.
absl::StatusOr<std::shared_ptr<const Delegate>> MakeDelegate(absl::string_view name, const DelegateOptions& options);

}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_DELEGATES_DELEGATE_REGISTRY_H_
