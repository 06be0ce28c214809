// The weights of a tfjs model: what the manifest says, and the bytes of the shards (docs/formats/tfjs.md).
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
  // Maps the shards that `manifest`, the value of "weightsManifest", names, from beside the file at `path`. What
  // weights are decoded to may have at most `most_bytes`. InvalidArgument with the place in the manifest: what it must
  // not say, a path that leads out of the folder, two weights of one name. DataLoss: shards that are shorter or longer
  // than the weights.
  static absl::StatusOr<TfjsWeights> Open(const JsonValue& manifest, FileSystem& files, const std::string& path,
                                          uint64_t most_bytes);

  bool Has(absl::string_view name) const { return weights_.contains(name); }

  // The value of a weight as elements of `dtype`: a view of its shard where that is how it is stored, and in one shard.
  // InvalidArgument: it cannot be that. ResourceExhausted: more than `most_bytes` in all. REQUIRES: Has(name).
  absl::StatusOr<Tensor> Read(absl::string_view name, DType dtype);

  // The shape that the manifest gives. REQUIRES: Has(name).
  const Shape& ShapeOf(absl::string_view name) const { return weights_.find(name)->second.shape; }

 private:
  struct Shard {
    uint64_t begin;  // In the group.
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
    uint64_t begin, size;  // Bytes in the group.
  };

  absl::Status AddGroup(const JsonValue& group, FileSystem& files, const std::string& folder);
  absl::StatusOr<Group> MapShards(const JsonValue& group, FileSystem& files, const std::string& folder);
  static absl::StatusOr<Weight> ParseWeight(const JsonValue& entry);
  // Sets where it ends.
  static absl::Status Place(const Group& group, uint64_t group_size, Weight* weight);

  absl::Status Count(uint64_t bytes);
  // Bytes that may lie in several shards.
  absl::StatusOr<FileView> Bytes(const Group& group, uint64_t begin, uint64_t size);
  absl::StatusOr<Tensor> ReadStrings(const Weight& weight);
  absl::StatusOr<Tensor> Dequantized(const Weight& weight, const Tensor& codes);

  std::deque<Group> groups_;
  absl::flat_hash_map<std::string, Weight> weights_;
  uint64_t bytes_left_ = 0;
};

// Whether a path of the manifest stays within the folder of the model.
bool StaysInFolder(absl::string_view path);

}  // namespace permafrost

#endif  // PERMAFROST_IO_FORMATS_TFJS_WEIGHTS_H_
