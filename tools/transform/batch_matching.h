// Matches the inputs and outputs of a verification to another batch size.
#ifndef PERMAFROST_TOOLS_TRANSFORM_BATCH_MATCHING_H_
#define PERMAFROST_TOOLS_TRANSFORM_BATCH_MATCHING_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "graph/graph.h"
#include "graph/tensor.h"
#include "tools/model/model_inputs.h"

namespace permafrost {

// Returns dimension 0 of each declared input as its Placeholder has it; kUnknownDim if it is open or if there is none.
std::vector<int64_t> DeclaredBatches(const Graph& graph);

// Feeds for a graph whose inputs have another batch size than the recorded ones. Row r of a new input is a row of one
// of the recorded sets, in turn, so that the expected outputs are rows of the recorded outputs: a graph that mixes rows
// is found, too.
class BatchMatching {
 public:
  // Compares the batches that `after` declares with those of the recorded inputs, and with `before`, the
  // DeclaredBatches() of the graph that the inputs were made for. Returns nothing if the inputs fit and no batch was
  // opened; where one was opened, the recorded sets are followed by one with twice the batch. Returns
  // ResourceExhausted if the new inputs would take more than `max_bytes`. `inputs` must outlive the object.
  static absl::StatusOr<std::optional<BatchMatching>> Find(const std::vector<int64_t>& before, const Graph& after,
                                                           const std::vector<InputSet>& inputs, uint64_t max_bytes);

  // Returns the sets to feed.
  absl::StatusOr<std::vector<InputSet>> Inputs() const;

  // Returns the expected value of output `output` in set `set` of Inputs(). `expected` has the recorded outputs, by
  // recorded set. An output whose dimension 0 does not follow the batch, as the shape of `actual` tells, is expected as
  // it was recorded.
  absl::StatusOr<Tensor> Expected(const std::vector<std::vector<Tensor>>& expected, size_t set, size_t output,
                                  const Tensor& actual) const;

 private:
  // One set of Inputs(): its first recorded set, and its batch.
  struct Feed {
    size_t set = 0;
    int64_t batch = 0;
  };

  // Returns `batch` rows of `tensors`, one of each recorded set, in turn from set `first`. A row is one of `from_`
  // equal parts of a tensor.
  absl::StatusOr<Tensor> Rows(const std::vector<const Tensor*>& tensors, const Feed& feed) const;

  const std::vector<InputSet>* inputs_ = nullptr;
  std::vector<bool> follows_;  // By input: it has the new batch.
  bool takes_turns_ = false;   // Rows come from all sets, otherwise from one.
  int64_t from_ = 0;           // The recorded batch.
  std::vector<Feed> feeds_;
};

}  // namespace permafrost

#endif  // PERMAFROST_TOOLS_TRANSFORM_BATCH_MATCHING_H_
