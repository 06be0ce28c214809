// Parses lists of delegates, and implements the delegate that stands for several.
#include "runtime_check/delegates/delegate_list.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "graph/base/status.h"
#include "runtime_check/delegates/delegate_registry.h"
#include "runtime_check/delegates/external/external_delegate.h"

namespace permafrost {
namespace {

constexpr size_t kMostMembers = 16;

class ChosenDelegates final : public Delegate {
 public:
  explicit ChosenDelegates(DelegateChoice choice) : choice_(std::move(choice)) {
    for (const auto& member : choice_.members) absl::StrAppend(&name_, name_.empty() ? "" : ",", member->name());
    if (choice_.includes_kernels) absl::StrAppend(&name_, ",", kReferenceDelegate);
  }

  absl::string_view name() const override { return name_; }
  const DelegateChoice* choice() const override { return &choice_; }

  absl::Status Supports(const Partition& single) const override {
    absl::Status last = absl::UnimplementedError("there is no delegate");
    for (const auto& member : choice_.members) {
      last = member->Supports(single);
      if (last.ok()) return last;
    }
    return last;
  }
  // The planner asks the members.
  bool IsWorthwhile(const Partition& /*partition*/) const override { return false; }
  absl::StatusOr<std::unique_ptr<CompiledPartition>> Compile(const Partition& /*partition*/,
                                                             int /*num_threads*/) const override {
    return absl::InternalError("several delegates compile nothing together");
  }

 private:
  const DelegateChoice choice_;
  std::string name_;
};

absl::StatusOr<std::shared_ptr<const Delegate>> MakeMember(const std::string& name, const DelegateOptions& options) {
  if (IsLibraryPath(name)) return LoadExternalDelegate(name);
  DelegateOptions own = options;
  const DelegateInfo* info = FindDelegateInfo(name);
  if (info != nullptr &&
      std::find(info->precisions.begin(), info->precisions.end(), own.precision) == info->precisions.end()) {
    own.precision = DelegateOptions().precision;
  }
  return MakeDelegate(name, own);
}

// Checks that some member has the precision.
absl::Status CheckPrecision(const std::vector<std::string>& names, const std::string& precision) {
  if (precision == DelegateOptions().precision) return absl::OkStatus();
  for (const std::string& name : names) {
    const DelegateInfo* info = FindDelegateInfo(name);
    if (info == nullptr) continue;
    if (info->NeedsPlan(precision)) {
      return absl::InvalidArgumentError(
          absl::StrCat("found precision '", precision, "' with several delegates, expected one without a plan"));
    }
    if (std::find(info->precisions.begin(), info->precisions.end(), precision) != info->precisions.end()) {
      return absl::OkStatus();
    }
  }
  return absl::InvalidArgumentError(absl::StrCat("found precision '", precision, "', which none of the delegates has"));
}

absl::Status CheckNames(const std::vector<std::string>& names) {
  if (names.size() > kMostMembers) {
    return absl::InvalidArgumentError(
        absl::StrCat("found ", names.size(), " delegates, expected at most ", kMostMembers));
  }
  std::vector<std::string> seen;
  for (const std::string& name : names) {
    if (name.empty()) return absl::InvalidArgumentError("found an empty name in the list of delegates");
    if (!seen.empty() && seen.back() == kReferenceDelegate) {
      return absl::InvalidArgumentError(
          absl::StrCat("found '", name, "' behind '", kReferenceDelegate, "', expected the built-in kernels last"));
    }
    const DelegateInfo* info = FindDelegateInfo(name);
    std::string known = info == nullptr ? name : info->name;
    if (std::find(seen.begin(), seen.end(), known) != seen.end()) {
      return absl::InvalidArgumentError(absl::StrCat("found '", name, "' twice in the list of delegates"));
    }
    seen.push_back(std::move(known));
  }
  return absl::OkStatus();
}

}  // namespace

bool IsDelegateList(absl::string_view text) { return absl::StrContains(text, ','); }

bool IsLibraryPath(absl::string_view name) { return absl::StrContains(name, '/') || absl::EndsWith(name, ".so"); }

absl::StatusOr<std::shared_ptr<const Delegate>> MakeDelegates(absl::string_view text, const DelegateOptions& options) {
  if (!IsDelegateList(text)) {
    return IsLibraryPath(text) ? LoadExternalDelegate(std::string(text)) : MakeDelegate(text, options);
  }
  const std::vector<std::string> names = absl::StrSplit(text, ',');
  PF_RETURN_IF_ERROR(CheckNames(names));
  PF_RETURN_IF_ERROR(CheckPrecision(names, options.precision));
  DelegateChoice choice;
  for (const std::string& name : names) {
    PF_ASSIGN_OR_RETURN(std::shared_ptr<const Delegate> member, MakeMember(name, options));
    if (member == nullptr) {
      choice.includes_kernels = true;
    } else {
      choice.members.push_back(std::move(member));
    }
  }
  return std::make_shared<const ChosenDelegates>(std::move(choice));
}

}  // namespace permafrost
