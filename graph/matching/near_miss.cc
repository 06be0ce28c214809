// Implements near misses as the payload of a status.
#include "graph/matching/near_miss.h"

#include "absl/strings/cord.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace permafrost {
namespace {

constexpr char kPayload[] = "permafrost/near_miss";
constexpr char kWayOutPayload[] = "permafrost/way_out";

}  // namespace

absl::Status NotMatched(NearMiss::Kind kind, TensorRef found, absl::string_view reason) {
  absl::Status status = absl::FailedPreconditionError(reason);
  if (found.node != nullptr) {
    status.SetPayload(kPayload,
                      absl::Cord(absl::StrCat(static_cast<int>(kind), " ", found.port, " ", found.node->name())));
  }
  return status;
}

absl::Status NotMatched(absl::string_view reason, absl::string_view way_out) {
  absl::Status status = absl::FailedPreconditionError(reason);
  status.SetPayload(kWayOutPayload, absl::Cord(way_out));
  return status;
}

NearMiss NearMissOf(const absl::Status& status, const Graph& graph) {
  NearMiss miss;
  miss.reason = std::string(status.message());
  if (const absl::optional<absl::Cord> way_out = status.GetPayload(kWayOutPayload); way_out.has_value()) {
    miss.way_out = std::string(*way_out);
  }
  const absl::optional<absl::Cord> payload = status.GetPayload(kPayload);
  if (!payload.has_value()) return miss;
  const std::string text(*payload);
  const std::vector<absl::string_view> parts = absl::StrSplit(text, absl::MaxSplits(' ', 2));
  int kind = 0;
  if (parts.size() != 3 || !absl::SimpleAtoi(parts[0], &kind) || !absl::SimpleAtoi(parts[1], &miss.found.port)) {
    return miss;
  }
  miss.kind = static_cast<NearMiss::Kind>(kind);
  miss.found.node = graph.Find(parts[2]);
  return miss;
}

}  // namespace permafrost
