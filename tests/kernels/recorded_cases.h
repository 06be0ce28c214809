// The cases recorded from TensorFlow (described in make_vectors.py), and their comparison with results.
#ifndef PERMAFROST_TESTS_KERNELS_RECORDED_CASES_H_
#define PERMAFROST_TESTS_KERNELS_RECORDED_CASES_H_

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "graph/graph.h"
#include "graph/tensor.h"

namespace permafrost {

// Returns the names of the files in tests/kernels/vectors, without the extension, sorted. A test that calls this lists
// //tests/kernels:vectors in its data.
std::vector<std::string> RecordedFamilies();

absl::StatusOr<std::unique_ptr<Graph>> ReadRecordedFamily(const std::string& family);

// One application of an op to constants, which are the inputs of `node`.
struct RecordedCase {
  const Node* node = nullptr;
  std::vector<Tensor> inputs;                   // Aligned.
  std::vector<std::optional<Tensor>> expected;  // By output; an output without a value is not compared.
};

// Returns the nodes that are cases, in file order.
std::vector<const Node*> RecordedNodes(const Graph& family);
absl::StatusOr<RecordedCase> ReadRecordedCase(const Graph& family, const Node& node);

// Returns OK if the tensors agree: floating-point numbers within the tolerance of their type times `slack`, and other
// elements exactly.
absl::Status CompareWithRecorded(const Tensor& actual, const Tensor& expected, double slack = 1);

}  // namespace permafrost

#endif  // PERMAFROST_TESTS_KERNELS_RECORDED_CASES_H_
