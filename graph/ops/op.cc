// Implements the mapping of op names to numbers: a constant table for known ops and a growing one for other names.
#include "graph/ops/op.h"

#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/synchronization/mutex.h"
#include "graph/base/selection.h"

namespace permafrost {
namespace {

// The known ops of the build, by id. In a selective build, other ops of the table count as unknown.
struct KnownOp {
  uint32_t id;
  absl::string_view name;
};

constexpr auto kKnownOps = [] {
  constexpr size_t kCount =
#define OP(name, signature, attributes, traits, shape) +(selection::KnowsOp(#name) ? 1 : 0)
#include "graph/ops/ops.def"
#undef OP
      ;
  std::array<KnownOp, kCount> known = {};
  size_t i = 0;
#define OP(name, signature, attributes, traits, shape) \
  if (selection::KnowsOp(#name)) known[i++] = {ops::k##name, #name};
#include "graph/ops/ops.def"
#undef OP
  return known;
}();

const absl::flat_hash_map<absl::string_view, uint32_t>& KnownOps() {
  static const auto* known = [] {
    auto* map = new absl::flat_hash_map<absl::string_view, uint32_t>;
    for (const KnownOp& op : kKnownOps) map->emplace(op.name, op.id);
    return map;
  }();
  return *known;
}

// Names outside the table. Their ids start after kNumKnownOps, the id of the empty name.
struct OtherOps {
  absl::Mutex mutex;
  std::vector<std::unique_ptr<const std::string>> names ABSL_GUARDED_BY(mutex);
  absl::flat_hash_map<absl::string_view, uint32_t> ids ABSL_GUARDED_BY(mutex);
};

OtherOps& Others() {
  static auto* others = new OtherOps;
  return *others;
}

}  // namespace

Op Op::Named(absl::string_view name) {
  const auto known = KnownOps().find(name);
  if (known != KnownOps().end()) return Op(known->second);
  if (name.empty()) return Op();
  OtherOps& others = Others();
  absl::MutexLock lock(&others.mutex);
  const auto other = others.ids.find(name);
  if (other != others.ids.end()) return Op(other->second);
  others.names.push_back(std::make_unique<const std::string>(name));
  const uint32_t id = ops::kNumKnownOps + static_cast<uint32_t>(others.names.size());
  others.ids.emplace(*others.names.back(), id);
  return Op(id);
}

absl::string_view Op::name() const {
  if (id_ < ops::kNumKnownOps) {
    if constexpr (!selection::kIsSelective) return kKnownOps[id_].name;
    const auto known = std::lower_bound(kKnownOps.begin(), kKnownOps.end(), id_,
                                        [](const KnownOp& op, uint32_t id) { return op.id < id; });
    return known != kKnownOps.end() && known->id == id_ ? known->name : "";
  }
  if (id_ == ops::kNumKnownOps) return "";
  OtherOps& others = Others();
  absl::MutexLock lock(&others.mutex);
  return *others.names[id_ - ops::kNumKnownOps - 1];
}

}  // namespace permafrost
