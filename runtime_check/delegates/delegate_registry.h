// The delegates that a user may name, with their capabilities.
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

// A delegate and what it is capable of. Code that treats delegates differently asks for a capability, not for a name.
struct DelegateInfo {
  std::string name;
  std::string description;              // One line.
  std::vector<std::string> precisions;  // Those that need no plan; the first is the default.
  // Those that need a plan for the model, which is made from sample inputs.
  std::vector<std::string> planned_precisions = {};
  // The built-in kernels, which all other delegates are compared with. MakeDelegate returns null for it.
  bool is_reference = false;
  // Whether precision "auto" may choose among its precisions.
  bool supports_auto = false;
  // Whether it refuses runs that are fed NaN or infinity, because its kernels would not propagate them.
  bool is_finite_only = false;

  // All precisions, those that need a plan last.
  std::vector<std::string> AllPrecisions() const;
  // Whether the precision is one of planned_precisions.
  bool NeedsPlan(absl::string_view precision) const;
};

// All delegates, the reference first.
const std::vector<DelegateInfo>& KnownDelegates();

// The delegate of that name, or null.
const DelegateInfo* FindDelegateInfo(absl::string_view name);

// The properties that the layout of packed weights depends on besides model, precision and plan: library, version and
// instruction set. Empty for a delegate that keeps no packed weights, and for an unknown name.
std::string PackingIdentity(absl::string_view name);

// Null for the reference, which is what runs without a delegate. InvalidArgument for an unknown name or precision, with
// the known ones, and for a precision that needs a plan without one.
absl::StatusOr<std::shared_ptr<const Delegate>> MakeDelegate(absl::string_view name, const DelegateOptions& options);

}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_DELEGATES_DELEGATE_REGISTRY_H_
