// Implements the matching of batches: recorded tensors are cut into rows, from which larger or smaller ones are built.
#include "tools/transform/batch_matching.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "graph/base/status.h"

namespace permafrost {

std::vector<int64_t> DeclaredBatches(const Graph& graph) {
  std::vector<int64_t> batches;
  for (const Endpoint& input : graph.inputs()) {
    int64_t& batch = batches.emplace_back(kUnknownDim);
    if (input.node == nullptr || input.node->op() != ops::kPlaceholder) continue;
    const Shape shape = ShapeAttr(*input.node, "shape").value_or(Shape::UnknownRank());
    if (shape.has_rank() && shape.rank() > 0) batch = shape.dim(0);
  }
  return batches;
}

absl::StatusOr<std::optional<BatchMatching>> BatchMatching::Find(const std::vector<int64_t>& before, const Graph& after,
                                                                 const std::vector<InputSet>& inputs,
                                                                 uint64_t max_bytes) {
  const std::vector<int64_t> batches = DeclaredBatches(after);
  if (inputs.empty() || before.size() != batches.size()) return std::nullopt;
  BatchMatching match;
  match.inputs_ = &inputs;
  match.follows_.assign(inputs[0].size(), false);
  int64_t to = 0;
  bool is_opened = false;
  for (size_t i = 0; i < batches.size() && i < inputs[0].size(); ++i) {
    const Shape& shape = inputs[0][i].shape();
    if (shape.rank() == 0 || shape.dim(0) <= 0) continue;
    const bool opens = batches[i] == kUnknownDim && before[i] != kUnknownDim;
    if (!opens && (batches[i] == kUnknownDim || batches[i] == shape.dim(0))) continue;
    const int64_t wanted = opens ? 2 * shape.dim(0) : batches[i];
    // Inputs that change in different ways are no batch.
    if (to != 0 && (wanted != to || shape.dim(0) != match.from_ || opens != is_opened)) return std::nullopt;
    is_opened = opens;
    to = wanted;
    match.from_ = shape.dim(0);
    match.follows_[i] = true;
  }
  if (to <= 0) return std::nullopt;

  // Sets of other shapes do not join.
  match.takes_turns_ = std::all_of(match.follows_.begin(), match.follows_.end(), [](bool follows) { return follows; });
  for (const InputSet& set : inputs) {
    for (size_t i = 0; i < set.size(); ++i) {
      if (!match.follows_[i]) continue;
      match.takes_turns_ &= set[i].shape() == inputs[0][i].shape();
      if (set[i].shape().rank() == 0 || set[i].shape().dim(0) != match.from_) return std::nullopt;
    }
  }
  if (is_opened) {
    for (size_t set = 0; set < inputs.size(); ++set) match.feeds_.push_back({set, match.from_});
    match.feeds_.push_back({0, to});
  } else {
    for (size_t set = 0; set < inputs.size(); ++set) match.feeds_.push_back({set, to});
  }

  double bytes = 0;
  for (const Feed& feed : match.feeds_) {
    for (const Tensor& tensor : inputs[feed.set]) {
      bytes += static_cast<double>(tensor.bytes().size()) / static_cast<double>(match.from_) *
               static_cast<double>(feed.batch);
    }
  }
  if (bytes > static_cast<double>(max_bytes)) {
    return absl::ResourceExhaustedError(
        absl::StrCat("inputs with the batch ", to, " take ", bytes, " bytes, expected at most ", max_bytes));
  }
  return match;
}

absl::StatusOr<Tensor> BatchMatching::Rows(const std::vector<const Tensor*>& tensors, const Feed& feed) const {
  const Tensor& first = *tensors[feed.set];
  const auto source = [&](int64_t row) -> const Tensor& {
    const size_t ahead = takes_turns_ ? static_cast<size_t>(row / from_) % tensors.size() : 0;
    return *tensors[(feed.set + ahead) % tensors.size()];
  };
  Shape shape = first.shape();
  shape.set_dim(0, shape.dim(0) / from_ * feed.batch);
  if (first.dtype() == DType::kString) {
    std::vector<std::string> strings;
    const auto row_size = static_cast<std::ptrdiff_t>(first.strings().size() / static_cast<size_t>(from_));
    for (int64_t row = 0; row < feed.batch; ++row) {
      const auto begin = source(row).strings().begin() + (row % from_) * row_size;
      strings.insert(strings.end(), begin, begin + row_size);
    }
    return Tensor::FromStrings(std::move(shape), std::move(strings));
  }
  auto bytes = std::make_shared<std::string>();
  const size_t row_size = first.bytes().size() / static_cast<size_t>(from_);
  bytes->reserve(row_size * static_cast<size_t>(feed.batch));
  for (int64_t row = 0; row < feed.batch; ++row) {
    bytes->append(source(row).bytes().data() + static_cast<size_t>(row % from_) * row_size, row_size);
  }
  const absl::string_view view = *bytes;
  return Tensor::FromBytes(first.dtype(), std::move(shape), view, std::move(bytes));
}

absl::StatusOr<std::vector<InputSet>> BatchMatching::Inputs() const {
  std::vector<InputSet> sets;
  for (const Feed& feed : feeds_) {
    InputSet& set = sets.emplace_back();
    for (size_t i = 0; i < (*inputs_)[feed.set].size(); ++i) {
      if (!follows_[i] || feed.batch == from_) {
        set.push_back((*inputs_)[feed.set][i]);
        continue;
      }
      std::vector<const Tensor*> tensors;
      for (const InputSet& recorded : *inputs_) tensors.push_back(&recorded[i]);
      PF_ASSIGN_OR_RETURN(set.emplace_back(), Rows(tensors, feed));
    }
  }
  return sets;
}

absl::StatusOr<Tensor> BatchMatching::Expected(const std::vector<std::vector<Tensor>>& expected, size_t set,
                                               size_t output, const Tensor& actual) const {
  const Feed& feed = feeds_[set];
  const Tensor& recorded = expected[feed.set][output];
  const Shape& shape = recorded.shape();
  const bool follows = shape.rank() > 0 && shape.dim(0) > 0 && shape.dim(0) % from_ == 0 &&
                       actual.shape().rank() == shape.rank() && actual.shape().dim(0) % feed.batch == 0 &&
                       actual.shape().dim(0) / feed.batch == shape.dim(0) / from_;
  if (feed.batch == from_ || !follows) return recorded;
  std::vector<const Tensor*> tensors;
  for (const std::vector<Tensor>& outputs : expected) {
    if (outputs[output].shape() != shape || outputs[output].dtype() != recorded.dtype()) return recorded;
    tensors.push_back(&outputs[output]);
  }
  return Rows(tensors, feed);
}

}  // namespace permafrost
