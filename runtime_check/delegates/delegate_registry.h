// The registry of delegates that can be selected by name, with their capabilities.
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

// A delegate and its capabilities. Code that treats delegates differently checks a capability, not the name.
struct DelegateInfo {
  std::string name;
  std::string description;              // One line of text.
  std::vector<std::string> precisions;  // Precisions that need no plan; the first is the default.
  // Precisions that need a plan for the model. A plan is made from sample inputs.
  std::vector<std::string> planned_precisions = {};
  // True for the built-in kernels, to which all other delegates are compared. MakeDelegate returns null for them.
  bool is_reference = false;
  // True if precision "auto" may choose among the precisions of the delegate.
  bool supports_auto = false;
  // Other names that select it.
  std::vector<std::string> aliases = {};
  // True if it computes on a device that may be absent, and takes seconds to compile for it. Searches for the fastest
  // delegate that the user did not ask for leave it out.
  bool needs_device = false;
  // True if a run with NaN or infinity in its inputs is rejected, because the kernels would not propagate them.
  bool is_finite_only = false;

  // Returns all precisions; those that need a plan come last.
  std::vector<std::string> AllPrecisions() const;
  // Returns true if the precision is one of planned_precisions.
  bool NeedsPlan(absl::string_view precision) const;
};

// Returns all delegates, the reference first.
const std::vector<DelegateInfo>& KnownDelegates();

// Returns the delegate with that name or alias, or null.
const DelegateInfo* FindDelegateInfo(absl::string_view name);

// Returns the properties that determine the layout of packed weights besides model, precision and plan: library,
// version and instruction set. Returns an empty string for an unknown name, and for a delegate that does not keep
// packed weights.
std::string PackingIdentity(absl::string_view name);

// Returns the path of the shared library that the delegate has loaded; empty if it has loaded none.
std::string DelegateLibraryPath(absl::string_view name);

// Creates the delegate with that name. Returns null for the reference, which runs without a delegate. Returns
// InvalidArgument, with the list of valid values, for an unknown name or precision. Returns InvalidArgument also for a
// missing plan, NotFound if the library of the delegate is not installed, FailedPrecondition if it cannot be loaded,
// Unavailable if there is no device.
absl::StatusOr<std::shared_ptr<const Delegate>> MakeDelegate(absl::string_view name, const DelegateOptions& options);

}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_DELEGATES_DELEGATE_REGISTRY_H_
