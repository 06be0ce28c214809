// The cases that TensorFlow recorded (make_vectors.py says what they are), and how results are compared with them.
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

// Names of the files in tests/kernels/vectors, without the extension, sorted. A test that calls this lists
// //tests/kernels:vectors in its data.
std::vector<std::string> RecordedFamilies();

absl::StatusOr<std::unique_ptr<Graph>> ReadRecordedFamily(const std::string& family);

// One application of an op to constants, the inputs of `node`.
struct RecordedCase {
  const Node* node = nullptr;
  std::vector<Tensor> inputs;                   // Aligned.
  std::vector<std::optional<Tensor>> expected;  // By output; an output without a value is not compared.
};

// The nodes that are cases, in the order of the file.
std::vector<const Node*> RecordedNodes(const Graph& family);
absl::StatusOr<RecordedCase> ReadRecordedCase(const Graph& family, const Node& node);

// OK when the tensors agree: floating-point numbers within what the number of their bits allows, times `slack`, and
// everything else exactly.
absl::Status CompareWithRecorded(const Tensor& actual, const Tensor& expected, double slack = 1);

}  // namespace permafrost

#endif  // PERMAFROST_TESTS_KERNELS_RECORDED_CASES_H_
