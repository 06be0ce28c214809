// Holds every kernel to what TensorFlow computed: all cases of all files in vectors/ (make_vectors.py says what they
// are).
//
// Each case runs four times: with its inputs known beforehand or only when it runs (save those that the kernel cannot
// prepare without), and with one thread or three.
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "gmock/gmock.h"
#include "graph/graph.h"
#include "graph/op_schema.h"
#include "graph/status.h"
#include "gtest/gtest.h"
#include "io/formats/graphdef_text.h"
#include "runtime_check/kernel.h"
#include "runtime_check/prepared_node.h"
#include "runtime_check/thread_pool.h"

namespace permafrost {
namespace {

constexpr int64_t kMemory = int64_t{1} << 30;

// What the number of bits after the point allows, relative to max(1, |expected|).
double ToleranceOf(DType dtype) {
  if (dtype == DType::kHalf) return 1e-3;
  if (dtype == DType::kBFloat16) return 1.6e-2;  // TensorFlow rounds each step of a formula.
  if (dtype == DType::kDouble || dtype == DType::kComplex128) return 1e-12;
  return 1e-5;
}

// The elements as pairs of real and imaginary part; false for types that are not numbers.
bool Numbers(const Tensor& tensor, std::vector<double>* numbers) {
  bool is_complex = false;
  const auto read = [&](auto tag) {
    using T = typename decltype(tag)::type;
    for (int64_t i = 0; i < tensor.num_elements(); ++i) {
      const T value = tensor.elements<T>()[i];
      if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>) {
        numbers->push_back(ToFloat(value));
      } else if constexpr (std::is_same_v<T, std::complex<float>> || std::is_same_v<T, std::complex<double>>) {
        numbers->push_back(value.real());
        numbers->push_back(value.imag());
        is_complex = true;
      } else {
        numbers->push_back(value);
      }
    }
  };
  return DispatchOn<float, double, Half, BFloat16, std::complex<float>, std::complex<double>>(tensor.dtype(), read);
}

// OK when the tensors agree: floating-point numbers within the tolerance, everything else exactly.
absl::Status Compare(const Tensor& actual, const Tensor& expected) {
  if (actual.dtype() != expected.dtype()) {
    return absl::InternalError(
        absl::StrCat("type ", DTypeName(actual.dtype()), ", expected ", DTypeName(expected.dtype())));
  }
  if (actual.shape() != expected.shape()) {
    return absl::InternalError(
        absl::StrCat("shape ", actual.shape().ToString(), ", expected ", expected.shape().ToString()));
  }
  if (actual.dtype() == DType::kString) {
    return actual.strings() == expected.strings() ? absl::OkStatus() : absl::InternalError("other strings");
  }
  std::vector<double> a, e;
  if (!Numbers(actual, &a)) {
    const size_t size = SizeOf(actual.dtype());
    for (size_t i = 0; i < actual.bytes().size(); i += size) {
      if (actual.bytes().substr(i, size) != expected.bytes().substr(i, size)) {
        return absl::InternalError(
            absl::StrCat("element ", i / size, " differs (", static_cast<int>(static_cast<int8_t>(actual.bytes()[i])),
                         " and ", static_cast<int>(static_cast<int8_t>(expected.bytes()[i])), " in its first byte)"));
      }
    }
    return absl::OkStatus();
  }
  Numbers(expected, &e);
  for (size_t i = 0; i < e.size(); ++i) {
    const bool agree = std::isnan(e[i]) ? std::isnan(a[i])
                       : std::isinf(e[i])
                           ? a[i] == e[i]
                           : std::abs(a[i] - e[i]) <= ToleranceOf(expected.dtype()) * std::max(1.0, std::abs(e[i]));
    if (!agree) return absl::InternalError(absl::StrCat("element ", i, " is ", a[i], ", expected ", e[i]));
  }
  return absl::OkStatus();
}

absl::Status RunCase(const Graph& graph, const Node& node, bool values_are_known, int num_threads) {
  const Kernel* kernel = FindKernel(node.op());
  if (kernel == nullptr) return absl::UnimplementedError("no kernel");
  PF_RETURN_IF_ERROR(CheckKernel(node));
  std::vector<Tensor> inputs;
  std::vector<Value> views;
  std::vector<PrepareInput> shapes;
  for (int i = 0; i < node.num_data_inputs(); ++i) {
    PF_ASSIGN_OR_RETURN(Tensor tensor, ConstValue(*node.input(i).node));
    PF_ASSIGN_OR_RETURN(tensor, tensor.Aligned());
    shapes.push_back({tensor.dtype(), tensor.shape()});
    views.push_back(ViewOf(tensor));
    inputs.push_back(std::move(tensor));
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
    outputs[0] = views[0];  // The session shares the memory, and there is nothing to compute.
    outputs[0].dtype = prepared.outputs[0].dtype;
    outputs[0].shape = prepared.outputs[0].shape;
  } else {
    PF_ASSIGN_OR_RETURN(results, ComputeNode(node, *kernel, prepared, pointers, outputs.data(), {&threads, &budget}));
  }
  const std::string prefix(absl::StripSuffix(node.name(), "op"));
  for (size_t i = 0; i < outputs.size(); ++i) {
    const Node* expected_node = graph.Find(absl::StrCat(prefix, "expected_", i));
    if (expected_node == nullptr) continue;
    PF_ASSIGN_OR_RETURN(const Tensor expected, ConstValue(*expected_node));
    PF_ASSIGN_OR_RETURN(const Tensor actual, TensorOver(outputs[i], nullptr));
    PF_RETURN_IF_ERROR(Annotate(Compare(actual, expected), absl::StrCat("output ", i)));
  }
  return absl::OkStatus();
}

std::vector<std::string> Files() {
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator("tests/kernels/vectors")) {
    if (entry.path().extension() == ".pbtxt") files.push_back(entry.path().stem());
  }
  std::sort(files.begin(), files.end());
  return files;
}

class VectorsTest : public testing::TestWithParam<std::string> {};

TEST_P(VectorsTest, KernelsComputeWhatTensorFlowComputes) {
  std::ifstream file(absl::StrCat("tests/kernels/vectors/", GetParam(), ".pbtxt"));
  std::stringstream text;
  text << file.rdbuf();
  absl::StatusOr<std::unique_ptr<Graph>> graph = ReadGraphDefText(text.str());
  ASSERT_TRUE(graph.ok()) << graph.status();
  int cases = 0;
  for (const Node* node : (*graph)->Nodes()) {
    if (node->op() == ops::kConst) continue;
    ++cases;
    EXPECT_NE((*graph)->Find(absl::StrCat(absl::StripSuffix(node->name(), "op"), "expected_0")), nullptr)
        << node->name();
    for (const bool values_are_known : {true, false}) {
      for (const int num_threads : {1, 3}) {
        const absl::Status status = RunCase(**graph, *node, values_are_known, num_threads);
        EXPECT_TRUE(status.ok()) << node->Describe() << ", values " << (values_are_known ? "" : "not ") << "known, "
                                 << num_threads << " threads: " << status;
        if (!status.ok()) break;
      }
    }
  }
  EXPECT_GT(cases, 0);
}

INSTANTIATE_TEST_SUITE_P(Families, VectorsTest, testing::ValuesIn(Files()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace permafrost
