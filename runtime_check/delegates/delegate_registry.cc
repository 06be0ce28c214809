// The table of delegates: one row each.
#include "runtime_check/delegates/delegate_registry.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "graph/base/nearest.h"
#include "graph/base/selection.h"
#include "graph/base/status.h"
#include "runtime_check/delegates/onednn/onednn_delegate.h"
#include "runtime_check/delegates/xnnpack/xnnpack_delegate.h"
#include "runtime_check/kernels/packed_input.h"

namespace permafrost {
namespace {

struct Row {
  DelegateInfo info;
  absl::StatusOr<std::shared_ptr<const Delegate>> (*make)(const DelegateOptions& options);
  std::string (*packing_identity)() = nullptr;  // Null for one that keeps no packed weights.
};

const std::vector<Row>& Rows() {
  static const auto* const rows = [] {
    auto* made = new std::vector<Row>{
        {{"reference", "the built-in kernels: the truth that all others are compared with", {"f32"}, {}},
         [](const DelegateOptions&) -> absl::StatusOr<std::shared_ptr<const Delegate>> { return nullptr; },
         &ReferencePackingIdentity}};
    if constexpr (selection::HoldsDelegate("onednn")) {
      made->push_back({{"onednn",
                        "oneDNN and fused loops on all vector units: the fastest",
                        {"f32", "bf16x3", "bf16"},
                        {"int8", "mixed"}},
                       [](const DelegateOptions& options) -> absl::StatusOr<std::shared_ptr<const Delegate>> {
                         PrecisionPlan plan = options.plan == nullptr ? PrecisionPlan() : *options.plan;
                         if (options.plan == nullptr) plan.precision = *PrecisionNamed(options.precision);
                         return MakeOneDnnDelegate(std::move(plan), options.packed);
                       },
                       &OneDnnPackingIdentity});
    }
    if constexpr (selection::HoldsDelegate("xnnpack")) {
      made->push_back({{"xnnpack", "XNNPACK: small; for finite numbers, of which it says so", {"f32"}, {}},
                       [](const DelegateOptions&) -> absl::StatusOr<std::shared_ptr<const Delegate>> {
                         return MakeXnnpackDelegate();
                       }});
    }
    return made;
  }();
  return *rows;
}

}  // namespace

std::vector<DelegateInfo> KnownDelegates() {
  std::vector<DelegateInfo> infos;
  for (const Row& row : Rows()) infos.push_back(row.info);
  return infos;
}

std::string PackingIdentity(absl::string_view name) {
  for (const Row& row : Rows()) {
    if (row.info.name == name && row.packing_identity != nullptr) return row.packing_identity();
  }
  return "";
}

absl::StatusOr<std::shared_ptr<const Delegate>> MakeDelegate(absl::string_view name, const DelegateOptions& options) {
  std::vector<absl::string_view> names;
  for (const Row& row : Rows()) {
    const DelegateInfo& info = row.info;
    names.push_back(info.name);
    if (info.name != name) continue;
    const auto is_among = [&](const std::vector<std::string>& precisions) {
      return std::find(precisions.begin(), precisions.end(), options.precision) != precisions.end();
    };
    if (is_among(info.planned_precisions) && options.plan == nullptr) {
      return absl::InvalidArgumentError(absl::StrCat("delegate '", name, "': precision '", options.precision,
                                                     "' wants a plan for the model, which is made from sample inputs"));
    }
    if (is_among(info.precisions) || is_among(info.planned_precisions)) {
      absl::StatusOr<std::shared_ptr<const Delegate>> made = row.make(options);
      PF_RETURN_IF_ERROR(Annotate(made.status(), absl::StrCat("delegate '", name, "'")));
      return made;
    }
    return absl::InvalidArgumentError(absl::StrCat("delegate '", name, "': found precision '", options.precision,
                                                   "', expected ", absl::StrJoin(info.precisions, ", "),
                                                   info.planned_precisions.empty() ? "" : ", ",
                                                   absl::StrJoin(info.planned_precisions, ", ")));
  }
  return absl::InvalidArgumentError(
      absl::StrCat("no delegate '", name, "'; there are ", absl::StrJoin(names, ", "), DidYouMean(name, names)));
}

}  // namespace permafrost
