// Download sizes of a model: unchanged, and after the passes that make weights smaller.
#ifndef PERMAFROST_TOOLS_SUMMARY_COMPRESSED_SIZES_H_
#define PERMAFROST_TOOLS_SUMMARY_COMPRESSED_SIZES_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "graph/graph.h"
#include "tools/command_line/console.h"
#include "tools/command_line/json.h"

namespace permafrost {

struct CompressedSizes {
  std::string form;                        // "as it is", or the transform string.
  uint64_t plain = 0, gzip = 0, zstd = 0;  // Bytes of the binary GraphDef; gzip at level 6, zstd at level 3.
  absl::Status status;                     // The error if the passes did not run; the sizes are then 0.
};

// Returns the sizes unchanged, with round_weights and with quantize_weights, each with its defaults. Calls `progress`
// before each.
absl::StatusOr<std::vector<CompressedSizes>> MeasureCompressedSizes(
    const Graph& graph, const std::function<void(const std::string& form)>& progress);

void PrintCompressedSizes(const std::vector<CompressedSizes>& sizes, const Console& console);
// Writes the value of one key.
void WriteCompressedSizes(const std::vector<CompressedSizes>& sizes, JsonWriter* json);

}  // namespace permafrost

#endif  // PERMAFROST_TOOLS_SUMMARY_COMPRESSED_SIZES_H_
