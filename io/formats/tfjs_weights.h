// The weights of a TensorFlow.js model: the manifest and the shards (docs/formats/tfjs.md).
#ifndef PERMAFROST_IO_FORMATS_TFJS_WEIGHTS_H_
#define PERMAFROST_IO_FORMATS_TFJS_WEIGHTS_H_

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "graph/dtype.h"
#include "graph/shape.h"
#include "graph/tensor.h"
#include "io/file_system.h"
#include "io/formats/json_value.h"

namespace permafrost {

class TfjsWeights {
 public:
  // Maps the shards that `manifest`, the value of "weightsManifest", names, relative to the folder of `path`. Decoded
  // weights may take at most `most_bytes`. Returns InvalidArgument, with the place in the manifest, for malformed
  // entries, paths that lead out of the folder, and duplicate names; DataLoss if the size of the shards does not match
  // the weights.
  static absl::StatusOr<TfjsWeights> Open(const JsonValue& manifest, FileSystem& files, const std::string& path,
                                          uint64_t most_bytes);

  bool Has(absl::string_view name) const { return weights_.contains(name); }

  // Returns a weight converted to `dtype`, as a view if it is stored in that type and in one shard. Returns
  // InvalidArgument if it cannot be converted, ResourceExhausted if the total exceeds `most_bytes`. REQUIRES:
  // Has(name).
  absl::StatusOr<Tensor> Read(absl::string_view name, DType dtype);

  // Returns the shape in the manifest. REQUIRES: Has(name).
  const Shape& ShapeOf(absl::string_view name) const { return weights_.find(name)->second.shape; }

 private:
  struct Shard {
    uint64_t begin;  // Offset in the group.
    FileView view;
  };
  using Group = std::vector<Shard>;

  struct Quantization {
    DType codes;
    double scale = 1, min = 0;
  };

  struct Weight {
    DType dtype;
    Shape shape;
    int64_t num_elements;
    std::optional<Quantization> quantization;
    const Group* group;
    uint64_t begin, size;  // In bytes, within the group.
  };

  absl::Status AddGroup(const JsonValue& group, FileSystem& files, const std::string& folder);
  absl::StatusOr<Group> MapShards(const JsonValue& group, FileSystem& files, const std::string& folder);
  static absl::StatusOr<Weight> ParseWeight(const JsonValue& entry);
  // Determines the end of a weight.
  static absl::Status Place(const Group& group, uint64_t group_size, Weight* weight);

  absl::Status Count(uint64_t bytes);
  // Returns a range of bytes, which may span several shards.
  absl::StatusOr<FileView> Bytes(const Group& group, uint64_t begin, uint64_t size);
  absl::StatusOr<Tensor> ReadStrings(const Weight& weight);
  absl::StatusOr<Tensor> Dequantized(const Weight& weight, const Tensor& codes);

  std::deque<Group> groups_;
  absl::flat_hash_map<std::string, Weight> weights_;
  uint64_t bytes_left_ = 0;
};

// True if a path of the manifest stays within the folder of the model.
bool StaysInFolder(absl::string_view path);

}  // namespace permafrost

#endif  // PERMAFROST_IO_FORMATS_TFJS_WEIGHTS_H_
