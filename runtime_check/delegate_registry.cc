// The table of delegates: one row each.
#include "runtime_check/delegate_registry.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "graph/nearest.h"
#include "graph/status.h"
#include "runtime_check/delegates/onednn/onednn_delegate.h"
#include "runtime_check/delegates/xnnpack/xnnpack_delegate.h"

namespace permafrost {
namespace {

struct Row {
  DelegateInfo info;
  absl::StatusOr<std::shared_ptr<const Delegate>> (*make)(const DelegateOptions& options);
};

const std::vector<Row>& Rows() {
  static const auto* const rows = new std::vector<Row>{
      {{"reference", "the built-in kernels: the truth that all others are compared with", {"f32"}},
       [](const DelegateOptions&) -> absl::StatusOr<std::shared_ptr<const Delegate>> { return nullptr; }},
      {{"onednn", "oneDNN and fused loops on all vector units: the fastest", {"f32", "bf16"}},
       [](const DelegateOptions& options) -> absl::StatusOr<std::shared_ptr<const Delegate>> {
         return MakeOneDnnDelegate(options.precision == "bf16" ? OneDnnPrecision::kBf16 : OneDnnPrecision::kF32);
       }},
      {{"xnnpack", "XNNPACK: small; for finite numbers, of which it says so", {"f32"}},
       [](const DelegateOptions&) -> absl::StatusOr<std::shared_ptr<const Delegate>> { return MakeXnnpackDelegate(); }},
  };
  return *rows;
}

}  // namespace

std::vector<DelegateInfo> KnownDelegates() {
  std::vector<DelegateInfo> infos;
  for (const Row& row : Rows()) infos.push_back(row.info);
  return infos;
}

absl::StatusOr<std::shared_ptr<const Delegate>> MakeDelegate(absl::string_view name, const DelegateOptions& options) {
  std::vector<absl::string_view> names;
  for (const Row& row : Rows()) {
    const DelegateInfo& info = row.info;
    names.push_back(info.name);
    if (info.name != name) continue;
    if (std::find(info.precisions.begin(), info.precisions.end(), options.precision) != info.precisions.end()) {
      absl::StatusOr<std::shared_ptr<const Delegate>> made = row.make(options);
      PF_RETURN_IF_ERROR(Annotate(made.status(), absl::StrCat("delegate '", name, "'")));
      return made;
    }
    return absl::InvalidArgumentError(absl::StrCat("delegate '", name, "': found precision '", options.precision,
                                                   "', expected ", absl::StrJoin(info.precisions, ", ")));
  }
  return absl::InvalidArgumentError(
      absl::StrCat("no delegate '", name, "'; there are ", absl::StrJoin(names, ", "), DidYouMean(name, names)));
}

}  // namespace permafrost
