// Numbers for op names: a fixed table for the known ones, a growing one for the rest.
#include "graph/op.h"

#include <deque>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/synchronization/mutex.h"

namespace permafrost {
namespace {

constexpr absl::string_view kKnownNames[] = {
#define OP(name, signature, attributes, traits, shape) #name,
#include "graph/ops.def"
#undef OP
};

const absl::flat_hash_map<absl::string_view, uint32_t>& KnownOps() {
  static const auto* known = [] {
    auto* map = new absl::flat_hash_map<absl::string_view, uint32_t>;
    for (uint32_t id = 0; id < ops::kNumKnownOps; ++id) map->emplace(kKnownNames[id], id);
    return map;
  }();
  return *known;
}

// Names outside the table. Their ids start after kNumKnownOps, which is the op of no name.
struct OtherOps {
  absl::Mutex mutex;
  std::deque<std::string> names ABSL_GUARDED_BY(mutex);
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
  others.names.emplace_back(name);
  const uint32_t id = ops::kNumKnownOps + static_cast<uint32_t>(others.names.size());
  others.ids.emplace(others.names.back(), id);
  return Op(id);
}

absl::string_view Op::name() const {
  if (id_ < ops::kNumKnownOps) return kKnownNames[id_];
  if (id_ == ops::kNumKnownOps) return "";
  OtherOps& others = Others();
  absl::MutexLock lock(&others.mutex);
  return others.names[id_ - ops::kNumKnownOps - 1];
}

}  // namespace permafrost
