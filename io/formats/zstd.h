// Zstandard compression of models (docs/formats/zstd.md), and the compressed size of a model.
#ifndef PERMAFROST_IO_FORMATS_ZSTD_H_
#define PERMAFROST_IO_FORMATS_ZSTD_H_

#include <cstdint>
#include <functional>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "graph/base/wire.h"
#include "graph/graph.h"
#include "io/model_format.h"

namespace permafrost {

inline constexpr int kFastestZstdLevel = 1;
inline constexpr int kDefaultZstdLevel = 3;    // The default of the zstd tool.
inline constexpr int kSmallestZstdLevel = 19;  // Higher levels need most of a gigabyte, possibly also for reading.

// Reads all frames of the file, decompressed into memory. Returns DataLoss, with the offset of the frame, for a damaged
// or truncated frame or a wrong checksum; ResourceExhausted if the declared or actual size exceeds
// OpenOptions::max_model_bytes or memory is insufficient; InvalidArgument if a dictionary or a larger window is
// required.
extern const ModelWrapping kZstdWrapping;

struct ZstdOptions {
  ZstdOptions(int level = kDefaultZstdLevel) : level(level) {}

  int level;  // 1 (fast) to 19 (small); other values are clamped.
  // Number of threads that compress, at most kMostZstdThreads; 0 for the caller's own. The output is the same for any
  // number from 1 on, and slightly larger than for 0.
  int num_threads = 0;
  // Called from time to time with the number of bytes compressed so far, of `size`. May be null.
  std::function<void(uint64_t done, uint64_t size)> progress;
};

// Each thread needs about 100 MB at level 19, for its tables and its job.
inline constexpr int kMostZstdThreads = 8;

// Compresses into one frame with a checksum. Reading needs no dictionary and no more memory than every decoder accepts:
// the window has at most 128 MiB.
class ZstdSink : public FilterSink {
 public:
  // Does not own `out`. `size` is the number of bytes that will be appended, or 0 if unknown.
  ZstdSink(ByteSink* out, const ZstdOptions& options, uint64_t size);
  ~ZstdSink() override;

  absl::Status Append(absl::string_view bytes) override;
  // Returns Internal if the number of bytes appended differs from `size`.
  absl::Status Finish() override;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Returns a filter for SaveModel.
MakeFilter ZstdFilter(const ZstdOptions& options);

// Returns the size of the graph as a binary GraphDef compressed by ZstdSink. Memory use does not depend on the graph.
absl::StatusOr<uint64_t> CompressedSize(const Graph& graph, int level = kDefaultZstdLevel);

}  // namespace permafrost

#endif  // PERMAFROST_IO_FORMATS_ZSTD_H_
