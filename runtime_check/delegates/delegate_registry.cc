// The table of delegates, with one row per delegate.
#include "runtime_check/delegates/delegate_registry.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "graph/base/nearest.h"
#include "graph/base/selection.h"
#include "graph/base/status.h"
#include "runtime_check/delegates/onednn/onednn_delegate.h"
#include "runtime_check/delegates/opencl/opencl_delegate.h"
#include "runtime_check/delegates/xnnpack/xnnpack_delegate.h"
#include "runtime_check/kernels/packed_input.h"

namespace permafrost {
namespace {

struct Row {
  DelegateInfo info;
  absl::StatusOr<std::shared_ptr<const Delegate>> (*make)(const DelegateOptions& options);
  std::string (*packing_identity)() = nullptr;  // Null for a delegate that does not keep packed weights.
  std::string (*library_path)() = nullptr;      // Null for a delegate without a library.
};

DelegateInfo Reference() {
  DelegateInfo info{kReferenceDelegate, "the built-in kernels, the reference for all other delegates", {"f32"}};
  info.is_reference = true;
  return info;
}

DelegateInfo OneDnn() {
  DelegateInfo info{"onednn",
                    "oneDNN and fused loops for all vector instruction sets; the fastest delegate",
                    {"f32", "bf16x3", "bf16"},
                    {"int8", "mixed"}};
  info.supports_auto = true;
  return info;
}

DelegateInfo Xnnpack() {
  DelegateInfo info{"xnnpack", "XNNPACK; small; rejects NaN and infinity where it would lose them", {"f32"}};
  info.supports_auto = true;
  info.is_finite_only = true;
  return info;
}

DelegateInfo OpenCl() {
  DelegateInfo info{"opencl", "OpenCL 1.2, for GPUs, and for processors through PoCL", {"f32"}};
  info.aliases = {"gpu"};
  info.needs_device = true;
  return info;
}

const std::vector<Row>& Rows() {
  static const auto* const rows = [] {
    auto* made = new std::vector<Row>{
        {Reference(), [](const DelegateOptions&) -> absl::StatusOr<std::shared_ptr<const Delegate>> { return nullptr; },
         &ReferencePackingIdentity}};
    if constexpr (selection::HoldsDelegate("onednn")) {
      made->push_back({OneDnn(),
                       [](const DelegateOptions& options) -> absl::StatusOr<std::shared_ptr<const Delegate>> {
                         PrecisionPlan plan = options.plan == nullptr ? PrecisionPlan() : *options.plan;
                         if (options.plan == nullptr) plan.precision = *PrecisionNamed(options.precision);
                         return MakeOneDnnDelegate(std::move(plan), options.packed, !options.no_winograd);
                       },
                       &OneDnnPackingIdentity, &OneDnnLibraryPath});
    }
    if constexpr (selection::HoldsDelegate("opencl")) {
      made->push_back({OpenCl(),
                       [](const DelegateOptions& options) -> absl::StatusOr<std::shared_ptr<const Delegate>> {
                         OpenClOptions own;
                         own.blobs = options.blobs;
                         return MakeOpenClDelegate(own);
                       },
                       nullptr, &OpenClLibraryPath});
    }
    if constexpr (selection::HoldsDelegate("xnnpack")) {
      made->push_back({Xnnpack(),
                       [](const DelegateOptions&) -> absl::StatusOr<std::shared_ptr<const Delegate>> {
                         return MakeXnnpackDelegate();
                       },
                       nullptr, &XnnpackLibraryPath});
    }
    return made;
  }();
  return *rows;
}

bool IsAmong(const std::vector<std::string>& precisions, absl::string_view precision) {
  return std::find(precisions.begin(), precisions.end(), precision) != precisions.end();
}

const Row* FindRow(absl::string_view name) {
  for (const Row& row : Rows()) {
    if (row.info.name == name || IsAmong(row.info.aliases, name)) return &row;
  }
  return nullptr;
}

}  // namespace

std::vector<std::string> DelegateInfo::AllPrecisions() const {
  std::vector<std::string> all = precisions;
  all.insert(all.end(), planned_precisions.begin(), planned_precisions.end());
  return all;
}

bool DelegateInfo::NeedsPlan(absl::string_view precision) const { return IsAmong(planned_precisions, precision); }

const std::vector<DelegateInfo>& KnownDelegates() {
  static const auto* const infos = [] {
    auto* made = new std::vector<DelegateInfo>();
    for (const Row& row : Rows()) made->push_back(row.info);
    return made;
  }();
  return *infos;
}

const DelegateInfo* FindDelegateInfo(absl::string_view name) {
  const Row* row = FindRow(name);
  return row == nullptr ? nullptr : &row->info;
}

std::string PackingIdentity(absl::string_view name) {
  const Row* row = FindRow(name);
  return row == nullptr || row->packing_identity == nullptr ? "" : row->packing_identity();
}

std::string DelegateLibraryPath(absl::string_view name) {
  const Row* row = FindRow(name);
  return row == nullptr || row->library_path == nullptr ? "" : row->library_path();
}

absl::StatusOr<std::shared_ptr<const Delegate>> MakeDelegate(absl::string_view name, const DelegateOptions& options) {
  const Row* row = FindRow(name);
  if (row == nullptr) {
    std::vector<absl::string_view> names;
    for (const Row& known : Rows()) names.push_back(known.info.name);
    return absl::InvalidArgumentError(
        absl::StrCat("no delegate '", name, "'; there are ", absl::StrJoin(names, ", "), DidYouMean(name, names)));
  }
  const std::vector<std::string> precisions = row->info.AllPrecisions();
  if (!IsAmong(precisions, options.precision)) {
    return absl::InvalidArgumentError(absl::StrCat("delegate '", name, "': found precision '", options.precision,
                                                   "', expected ", absl::StrJoin(precisions, ", ")));
  }
  if (row->info.NeedsPlan(options.precision) && options.plan == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat("delegate '", name, "': precision '", options.precision,
                     "' needs a precision plan, which calibration with sample inputs creates"));
  }
  absl::StatusOr<std::shared_ptr<const Delegate>> made = row->make(options);
  PF_RETURN_IF_ERROR(Annotate(made.status(), absl::StrCat("delegate '", name, "'")));
  return made;
}

}  // namespace permafrost
