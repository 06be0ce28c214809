// Compares every kernel with the outputs of TensorFlow, in all cases of all files in vectors/ (described in
// make_vectors.py).
//
// Each case runs four times: with inputs that are known beforehand and with inputs known only during the run (except
// those that the kernel needs to prepare), each with one thread and with three.
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "graph/graph.h"
#include "graph/ops/op_schema.h"
#include "gtest/gtest.h"
#include "runtime_check/kernel.h"
#include "runtime_check/planning/prepared_node.h"
#include "runtime_check/threads/thread_pool.h"
#include "tests/kernels/recorded_cases.h"

namespace permafrost {
namespace {

constexpr int64_t kMemory = int64_t{1} << 30;

absl::Status RunCase(const RecordedCase& recorded, bool values_are_known, int num_threads) {
  const Node& node = *recorded.node;
  const std::vector<Tensor>& inputs = recorded.inputs;
  const Kernel* kernel = FindKernel(node.op());
  if (kernel == nullptr) return absl::UnimplementedError("no kernel");
  PF_RETURN_IF_ERROR(CheckKernel(node));
  std::vector<Value> views;
  std::vector<PrepareInput> shapes;
  for (const Tensor& tensor : inputs) {
    shapes.push_back({tensor.dtype(), tensor.shape()});
    views.push_back(ViewOf(tensor));
  }
  PF_ASSIGN_OR_RETURN(const std::vector<DType> types, OutputTypes(node));

  std::vector<bool> known(inputs.size(), values_are_known);
  PreparedNode prepared;
  for (size_t round = 0; round <= inputs.size(); ++round) {
    prepared = PreparedNode();
    const auto value = [&](int i) -> absl::StatusOr<const Tensor*> { return known[i] ? &inputs[i] : nullptr; };
    PF_RETURN_IF_ERROR(PrepareNode(node, *kernel, shapes, types, num_threads, value, &prepared));
    if (prepared.needs_value_of < 0) break;
    known[prepared.needs_value_of] = true;
  }
  if (prepared.needs_value_of >= 0) return absl::InternalError("Prepare asks for a value that it has");
  std::vector<const Value*> pointers;
  for (size_t i = 0; i < views.size(); ++i) {
    if (i < prepared.released.size() && prepared.released[i]) views[i].data = nullptr;
    pointers.push_back(&views[i]);
  }
  MemoryBudget budget(kMemory);
  ThreadPool threads(num_threads);
  std::vector<Value> outputs(types.size());
  std::vector<HeapOutput> results;
  if (kernel->is_alias()) {
    outputs[0] = views[0];  // The session shares the memory, and nothing is computed.
    outputs[0].dtype = prepared.outputs[0].dtype;
    outputs[0].shape = prepared.outputs[0].shape;
  } else {
    PF_ASSIGN_OR_RETURN(results, ComputeNode(node, prepared, pointers, outputs.data(), {&threads, &budget}));
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (!recorded.expected[i].has_value()) continue;
    PF_ASSIGN_OR_RETURN(const Tensor actual, TensorOver(outputs[i], nullptr));
    PF_RETURN_IF_ERROR(Annotate(CompareWithRecorded(actual, *recorded.expected[i]), absl::StrCat("output ", i)));
  }
  return absl::OkStatus();
}

class VectorsTest : public testing::TestWithParam<std::string> {};

TEST_P(VectorsTest, KernelsComputeWhatTensorFlowComputes) {
  const absl::StatusOr<std::unique_ptr<Graph>> graph = ReadRecordedFamily(GetParam());
  ASSERT_TRUE(graph.ok()) << graph.status();
  int cases = 0;
  for (const Node* node : RecordedNodes(**graph)) {
    ++cases;
    const absl::StatusOr<RecordedCase> recorded = ReadRecordedCase(**graph, *node);
    ASSERT_TRUE(recorded.ok()) << node->Describe() << ": " << recorded.status();
    EXPECT_TRUE(recorded->expected[0].has_value()) << node->name();
    for (const bool values_are_known : {true, false}) {
      for (const int num_threads : {1, 3}) {
        const absl::Status status = RunCase(*recorded, values_are_known, num_threads);
        EXPECT_TRUE(status.ok()) << node->Describe() << ", values " << (values_are_known ? "" : "not ") << "known, "
                                 << num_threads << " threads: " << status;
        if (!status.ok()) break;
      }
    }
  }
  EXPECT_GT(cases, 0);
}

INSTANTIATE_TEST_SUITE_P(Families, VectorsTest, testing::ValuesIn(RecordedFamilies()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace permafrost
