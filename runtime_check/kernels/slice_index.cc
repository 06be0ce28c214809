// Implements rows of indices that address slices of a tensor.
#include "runtime_check/kernels/slice_index.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "runtime_check/kernels/prepare.h"

namespace permafrost {

absl::StatusOr<std::unique_ptr<SliceIndex>> ReadSliceIndex(const Node& node, const Shape& indices,
                                                           const Shape& target) {
  if (indices.rank() < 1 || indices.dim(indices.rank() - 1) > target.rank()) {
    return absl::InvalidArgumentError(absl::StrCat("'indices' has the shape ", indices.ToString(),
                                                   ", whose last dimension does not index a tensor of shape ",
                                                   target.ToString()));
  }
  // ResourceGatherNd has no such attribute.
  const std::string policy =
      node.op() == ops::kResourceGatherNd ? "" : StringAttr(node, "bad_indices_policy").value_or("");
  if (policy != "" && policy != "DEFAULT" && policy != "ERROR" && policy != "IGNORE") {
    return absl::InvalidArgumentError(
        absl::StrCat("attr 'bad_indices_policy' is '", policy, "', expected '', 'DEFAULT', 'ERROR' or 'IGNORE'"));
  }
  const int depth = static_cast<int>(indices.dim(indices.rank() - 1));
  auto index = std::make_unique<SliceIndex>();
  for (int d = 0; d < depth; ++d) index->dims.push_back(target.dim(d));
  index->num_rows = ProductOfDims(indices, 0, indices.rank() - 1);
  index->slice_elements = ProductOfDims(target, depth, target.rank());
  index->skips_bad_rows = policy == "IGNORE";
  return index;
}

Shape ShapeOfSlices(const SliceIndex& index, const Shape& indices, const Shape& target) {
  Shape shape;
  for (int d = 0; d + 1 < indices.rank(); ++d) shape.AddDim(indices.dim(d));
  for (int d = static_cast<int>(index.dims.size()); d < target.rank(); ++d) shape.AddDim(target.dim(d));
  return shape;
}

absl::Status BadRow(int64_t row) {
  return absl::InvalidArgumentError(absl::StrCat("row ", row, " of 'indices' is out of bounds"));
}

}  // namespace permafrost
