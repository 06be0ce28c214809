// The state of random streams, which random ops keep between runs.
#include "runtime_check/kernels/philox.h"

#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "graph/base/status.h"

namespace permafrost {
namespace {

// The number of blocks that the runs of a session have used.
class RandomStream : public RuntimeObject {
 public:
  static constexpr const char* kKind = "stream of random numbers";
  absl::string_view kind() const override { return kKind; }

  uint64_t taken = 0;
};

}  // namespace

uint64_t SeedOfName(absl::string_view name) {
  uint64_t hash = 0xcbf29ce484222325;
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return hash;
}

absl::StatusOr<uint64_t> TakeBlocks(ComputeContext* context, uint64_t numbers) {
  if (context->resources() == nullptr) return 0;
  // Nodes of different functions may share a name, but not an address.
  const std::string name = absl::StrCat("random numbers of ", reinterpret_cast<uintptr_t>(&context->node()));
  if (context->resources()->Find(name) == nullptr) {
    context->resources()->Add(name, std::make_shared<RandomStream>());
  }
  PF_ASSIGN_OR_RETURN(const auto stream, ObjectAs<RandomStream>(context->resources()->Find(name)));
  const uint64_t first = stream->taken;
  stream->taken += kBlocksPerNumber * numbers;
  return first;
}

}  // namespace permafrost
