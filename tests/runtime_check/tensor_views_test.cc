// Tests of a kernel that requests a view that does not match the tensor: it gets valid memory, and the node gets an
// error, in all builds.
#include <complex>
#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime_check/kernel.h"
#include "runtime_check/planning/prepared_node.h"
#include "runtime_check/session.h"
#include "tests/runtime_check/small_graph.h"

namespace permafrost {
namespace {

using testing::HasSubstr;

// Larger than the memory beside a tensor of as many floats.
constexpr int64_t kCount = 1 << 16;

absl::Status Prepare(PrepareContext* context) {
  context->SetOutputShape(0, context->input_shape(0));
  return absl::OkStatus();
}

void Check(bool is_true) {
  if (!is_true) std::abort();  // A kernel has no other way to fail a test.
}

// Writes the whole output through a view of another type.
template <typename T>
absl::Status WriteAs(ComputeContext* context) {
  T* output = context->output<T>(0);
  Check(reinterpret_cast<uintptr_t>(output) % 64 == 0);
  for (int64_t i = 0; i < context->output_shape(0).num_elements(); ++i) output[i] = T(1);
  return absl::OkStatus();
}

template <typename T>
absl::Status ReadAs(ComputeContext* context) {
  const T* input = context->input<T>(0);
  T sum = 0;
  for (int64_t i = 0; i < context->input_shape(0).num_elements(); ++i) sum += input[i];
  Check(sum == T(0));  // Zeros, not the memory after the tensor.
  return absl::OkStatus();
}

absl::Status ReadBits(ComputeContext* context) {
  Check(context->input_bits<uint64_t>(0)[kCount - 1] == 0);
  return absl::OkStatus();
}

absl::Status ReadStrings(ComputeContext* context) {
  Check(context->input_strings(0).size() == kCount && context->input_strings(0)[kCount - 1].empty());
  return absl::OkStatus();
}

absl::Status WriteStrings(ComputeContext* context) {
  context->output_strings(0)[kCount - 1] = "x";
  return absl::OkStatus();
}

absl::Status ReadObjects(ComputeContext* context) {
  Check(context->input_objects(0)[0] == nullptr);
  return absl::OkStatus();
}

// Runs on several threads at the same time.
absl::Status ReadOnThreads(ComputeContext* context) {
  context->threads().ParallelFor(kCount, 1, [&](int64_t begin, int64_t end) {
    const double* input = context->input<double>(0);
    for (int64_t i = begin; i < end; ++i) Check(input[i] == 0);
  });
  return absl::OkStatus();
}

// Uses all views that match.
absl::Status Fits(ComputeContext* context) {
  std::memcpy(context->output_bytes(0), context->input_bytes(0), kCount * sizeof(float));
  std::memcpy(context->output_bits<int32_t>(0), context->input<float>(0), kCount * sizeof(float));
  return absl::OkStatus();
}

ComputeFunction under_test = nullptr;

const Kernel* Lookup(Op op) {
  static const auto* const kKernel = new Kernel(
      Kernel("anything").Prepare(Prepare).Compute([](ComputeContext* context) { return under_test(context); }));
  return op == ops::kRelu ? kKernel : FindKernel(op);
}

// Returns the status of a run of the node. `is_dynamic`: the node is prepared during the run.
absl::Status RunNode(ComputeFunction compute, bool is_dynamic) {
  under_test = compute;
  SmallGraph small;
  small.Placeholder("x", DType::kFloat, {kCount});
  small.Add("choice", "Placeholder", {}, {{"dtype", AttrValue::Type(DType::kBool)}, {"shape", AttrValue::OfShape({})}});
  small.Float("switch", "Switch", {"x", "choice"});
  small.Add("merge", "Merge", {"switch", "switch:1"},
            {{"T", AttrValue::Type(DType::kFloat)}, {"N", AttrValue::Int(2)}});
  small.Float("node", "Relu", {is_dynamic ? "merge" : "x"});
  SessionOptions options;
  options.kernel_lookup = Lookup;
  options.num_threads = 3;
  std::vector<std::string> feeds = {"x"};
  std::vector<Tensor> fed = {Floats({kCount}, std::vector<float>(kCount, 1))};
  if (is_dynamic) {
    feeds.push_back("choice");
    char* data = nullptr;
    fed.push_back(*Tensor::Allocate(DType::kBool, Shape(), &data));
    *data = 1;
  }
  const auto session = Session::Create(small.graph(), feeds, {"node"}, options);
  EXPECT_TRUE(session.ok()) << session.status();
  if (!session.ok()) return session.status();
  const absl::Status first = (*session)->Run(fed).status();
  EXPECT_EQ((*session)->Run(fed).status(), first) << "the same at each run";
  return first;
}

TEST(TensorViewsTest, ViewsThatDoNotFitAreErrors) {
  const std::string holds = absl::StrCat("which holds float [", kCount, "] in ", 4 * kCount, " bytes, for ");
  for (const bool is_dynamic : {false, true}) {
    for (const auto& [compute, message] : {
             std::pair<ComputeFunction, std::string>{WriteAs<double>, "output 0, " + holds + "double"},
             {WriteAs<std::complex<double>>, "output 0, " + holds + "complex128"},
             {WriteAs<int8_t>, "output 0, " + holds + "int8"},
             {ReadAs<double>, "input 0, " + holds + "double"},
             {ReadAs<int32_t>, "input 0, " + holds + "int32"},
             {ReadBits, "input 0, " + holds + "elements of 8 bytes"},
             {ReadStrings, "input 0, " + holds + "string"},
             {WriteStrings, "output 0, " + holds + "string"},
             {ReadObjects, "input 0, " + holds + "references to objects"},
             {ReadOnThreads, "input 0, " + holds + "double"},
         }) {
      const absl::Status status = RunNode(compute, is_dynamic);
      EXPECT_EQ(status.code(), absl::StatusCode::kInternal) << status;
      EXPECT_THAT(std::string(status.message()), HasSubstr("node 'node' (Relu): the kernel takes " + message));
    }
    EXPECT_EQ(RunNode(Fits, is_dynamic), absl::OkStatus());
  }
}

// A tensor whose memory is smaller than its shape requires.
TEST(TensorViewsTest, MemoryThatIsTooSmallIsNotViewed) {
  SmallGraph small;
  const Node* node = small.Float("node", "Relu", {});
  alignas(64) float memory[16] = {};
  Value input = {DType::kFloat, {17}, reinterpret_cast<char*>(memory)};
  input.bytes = sizeof(memory);
  const Value* inputs[] = {&input};
  const Environment environment;
  NodeContext context(node, inputs, nullptr, 0, nullptr, nullptr, &environment);
  const absl::Status status = RunKernel(
      [](ComputeContext* context) -> absl::Status {
        Check(context->input<float>(0)[16] == 0);
        return absl::OkStatus();
      },
      &context);
  EXPECT_EQ(status.message(), "the kernel takes input 0, which holds float [17] in 64 bytes, for float");
  input.shape = Shape({16});
  EXPECT_EQ(RunKernel(
                [](ComputeContext* context) {
                  return context->input<float>(0) != nullptr ? absl::OkStatus() : absl::InternalError("null");
                },
                &context),
            absl::OkStatus());
}

}  // namespace
}  // namespace permafrost
