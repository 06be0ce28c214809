// The delegates that a user may name.
#ifndef PERMAFROST_RUNTIME_CHECK_DELEGATE_REGISTRY_H_
#define PERMAFROST_RUNTIME_CHECK_DELEGATE_REGISTRY_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "runtime_check/delegate.h"

namespace permafrost {

struct DelegateOptions {
  std::string precision = "f32";
};

struct DelegateInfo {
  std::string name;
  std::string description;              // One line.
  std::vector<std::string> precisions;  // The first is the default.
};

// All of them, "reference" first.
std::vector<DelegateInfo> KnownDelegates();

// Null for "reference", which is what runs without a delegate. InvalidArgument for another name or precision, with the
// known ones.
absl::StatusOr<std::shared_ptr<const Delegate>> MakeDelegate(absl::string_view name, const DelegateOptions& options);

}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_DELEGATE_REGISTRY_H_
