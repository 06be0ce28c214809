// Zstandard (docs/formats/zstd.md): models that are compressed, and how small one would get.
#ifndef PERMAFROST_IO_FORMATS_ZSTD_H_
#define PERMAFROST_IO_FORMATS_ZSTD_H_

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "graph/base/wire.h"
#include "graph/graph.h"
#include "io/model_format.h"

namespace permafrost {

inline constexpr int kFastestZstdLevel = 1;
inline constexpr int kDefaultZstdLevel = 3;    // The zstd tool's own default.
inline constexpr int kSmallestZstdLevel = 19;  // Beyond it zstd needs most of a gigabyte, and so may who reads it.

// Reading: all frames of the file, decompressed into memory. DataLoss, with the byte where the frame begins: a broken
// or truncated frame, a checksum that is wrong. ResourceExhausted: more than OpenOptions::max_model_bytes, declared or
// found, or no memory. InvalidArgument: a dictionary or window that we do not have.
extern const ModelWrapping kZstdWrapping;

// Compresses what passes through into one frame with a checksum. No dictionary is needed to read it, and no more memory
// than every decoder grants: a window of at most 128 MiB.
class ZstdSink : public FilterSink {
 public:
  // Does not own `out`. `level` is 1 (fast) to 19 (small); others are brought into that range. `size` is how many bytes
  // will be appended, 0 when not known.
  ZstdSink(ByteSink* out, int level, uint64_t size);
  ~ZstdSink() override;

  absl::Status Append(absl::string_view bytes) override;
  // Internal when other than `size` bytes were appended.
  absl::Status Finish() override;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// To save models through.
MakeFilter ZstdFilter(int level);

// Bytes of the graph as a binary GraphDef compressed by ZstdSink, in memory that does not depend on the graph.
absl::StatusOr<uint64_t> CompressedSize(const Graph& graph, int level = kDefaultZstdLevel);

}  // namespace permafrost

#endif  // PERMAFROST_IO_FORMATS_ZSTD_H_
