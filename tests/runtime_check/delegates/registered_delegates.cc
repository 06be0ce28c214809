// Lists the registered delegates with the options of their conformance tests.
#include "tests/runtime_check/delegates/registered_delegates.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "runtime_check/delegates/delegate_registry.h"

namespace permafrost {
namespace {

// The consequences of a capability, for the page.
const char* NoteOn(const DelegateInfo& info) {
  if (!info.is_finite_only) return "";
  return "\nIts kernels replace NaN by a number where they clamp, so a partition with such a kernel accepts only\n"
         "finite numbers: a run with NaN or infinity in an input of the partition fails with an error, and nodes\n"
         "that compute NaN from finite numbers are refused. Overflow inside the partition is not detected.";
}

}  // namespace

std::vector<std::string> RegisteredDelegates() {
  std::vector<std::string> names;
  for (const DelegateInfo& info : KnownDelegates()) {
    if (!info.is_reference) names.push_back(info.name);
  }
  return names;
}

ConformanceOptions ConformanceOptionsOf(const std::string& delegate) {
  ConformanceOptions options;
  const DelegateInfo* info = FindDelegateInfo(delegate);
  if (info != nullptr && info->is_finite_only) {
    options.may_decline = [](const absl::Status& status) {
      return absl::IsInvalidArgument(status) && absl::StrContains(status.message(), "holds NaN or infinity");
    };
  }
  return options;
}

std::vector<DocumentedDelegate> DocumentedDelegates() {
  std::vector<DocumentedDelegate> documented;
  for (const DelegateInfo& info : KnownDelegates()) {
    if (info.is_reference) continue;
    documented.push_back({info.name, absl::StrCat(info.description, ".", NoteOn(info)),
                          [name = info.name] { return MakeDelegate(name, {}); }});
  }
  return documented;
}

}  // namespace permafrost
