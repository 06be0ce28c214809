// Reads the registry, and adds what is particular.
#include "tests/runtime_check/delegates/registered_delegates.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "runtime_check/delegates/delegate_registry.h"

namespace permafrost {
namespace {

// The consequences of a capability, for the page.
const char* NoteOn(const DelegateInfo& info) {
  if (!info.is_finite_only) return "";
  return " Its kernels turn NaN into a number\nwhere they clamp, so a partition that has one of these is for finite "
         "numbers: a run with NaN or infinity in what goes in is an\nerror, and nodes that make NaN of finite numbers "
         "are refused. A sum that overflows inside is not noticed.";
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
