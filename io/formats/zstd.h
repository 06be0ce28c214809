// Zstandard: how small a model gets when it is compressed, as app stores and package managers do.
#ifndef PERMAFROST_IO_FORMATS_ZSTD_H_
#define PERMAFROST_IO_FORMATS_ZSTD_H_

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "graph/graph.h"
#include "graph/wire.h"

namespace permafrost {

inline constexpr int kDefaultZstdLevel = 3;  // The zstd tool's own default.

// Counts what the bytes given to it come to when compressed, and keeps none of them.
class CompressedSizeSink : public ByteSink {
 public:
  // `level` is 1 (fast) to 19 (small); others are brought into that range.
  explicit CompressedSizeSink(int level = kDefaultZstdLevel);
  ~CompressedSizeSink() override;

  absl::Status Append(absl::string_view bytes) override;
  // Bytes of the compressed whole. REQUIRES: called once, at the end.
  absl::StatusOr<uint64_t> Finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Bytes of the graph as a compressed binary GraphDef, in memory that does not depend on the graph.
absl::StatusOr<uint64_t> CompressedSize(const Graph& graph, int level = kDefaultZstdLevel);

}  // namespace permafrost

#endif  // PERMAFROST_IO_FORMATS_ZSTD_H_
