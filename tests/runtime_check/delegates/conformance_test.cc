// Tests the conformance check: it accepts the reference kernels wrapped in a delegate, and detects each fault.
#include "tests/runtime_check/delegates/conformance.h"

#include <cstring>
#include <memory>
#include <utility>

#include "absl/strings/match.h"
#include "gmock/gmock.h"
#include "graph/base/status.h"
#include "graph/ops/op_schema.h"
#include "gtest/gtest.h"
#include "runtime_check/kernel.h"
#include "runtime_check/planning/prepared_node.h"
#include "tests/runtime_check/delegates/guarded_memory.h"

namespace permafrost {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;

enum class Fault { kNone, kValue, kChangingValue, kBeyondOutput, kCompile, kRun, kNoReason };

// Computes one node with its reference kernel.
class ReferencePartition final : public CompiledPartition {
 public:
  ReferencePartition(const Partition& partition, int num_threads, Fault fault)
      : partition_(partition), budget_(int64_t{1} << 30), threads_(num_threads), fault_(fault) {
    for (const DelegateTensor& tensor : partition.tensors) constants_.push_back(tensor.constant);
  }

  absl::Status Prepare() {
    const DelegateNode& node = partition_.nodes[0];
    kernel_ = FindKernel(node.node->op());
    std::vector<PrepareInput> shapes;
    for (const int input : node.inputs) {
      shapes.push_back({partition_.tensors[input].dtype, partition_.tensors[input].shape});
      if (!constants_[input].has_value()) continue;
      PF_ASSIGN_OR_RETURN(constants_[input], constants_[input]->Aligned());
    }
    PF_ASSIGN_OR_RETURN(const std::vector<DType> types, OutputTypes(*node.node));
    const auto value = [&](int i) -> absl::StatusOr<const Tensor*> {
      const std::optional<Tensor>& constant = constants_[node.inputs[i]];
      return constant.has_value() ? &*constant : nullptr;
    };
    return PrepareNode(*node.node, *kernel_, shapes, types, threads_.num_threads(), value, &prepared_);
  }

  int64_t scratch_bytes() const override { return 3; }
  int64_t constant_bytes() const override { return 0; }
  std::vector<std::string> Describe() const override { return {"the reference kernel"}; }

  absl::Status Run(absl::Span<const char* const> inputs, absl::Span<char* const> outputs, char* scratch,
                   const PieceCallback& on_piece) override {
    if (fault_ == Fault::kRun) return absl::InternalError("does not want to");
    std::memset(scratch, 1, 3);
    const DelegateNode& node = partition_.nodes[0];
    std::vector<Value> values(partition_.tensors.size());
    for (size_t i = 0; i < values.size(); ++i) {
      values[i].dtype = partition_.tensors[i].dtype;
      values[i].shape = partition_.tensors[i].shape;
      if (constants_[i].has_value()) values[i] = ViewOf(*constants_[i]);
    }
    for (size_t i = 0; i < inputs.size(); ++i) {
      Value& value = values[partition_.inputs[i]];
      value.data = const_cast<char*>(inputs[i]);
      PF_ASSIGN_OR_RETURN(value.bytes, ValueBytes(value.dtype, value.shape));
    }
    std::vector<const Value*> pointers;
    for (const int input : node.inputs) pointers.push_back(&values[input]);
    std::vector<Value> results(node.outputs.size());
    std::vector<HeapOutput> memory;
    if (kernel_->is_alias()) {
      results[0] = values[node.inputs[0]];
    } else {
      PF_ASSIGN_OR_RETURN(memory, ComputeNode(*node.node, prepared_, pointers, results.data(), {&threads_, &budget_}));
    }
    for (size_t i = 0; i < outputs.size(); ++i) {
      const DelegateTensor& tensor = partition_.tensors[partition_.outputs[i]];
      PF_ASSIGN_OR_RETURN(const int64_t bytes, ValueBytes(tensor.dtype, tensor.shape));
      if (bytes == 0) continue;
      std::memcpy(outputs[i], results[i].data, bytes);
      if (fault_ == Fault::kValue) outputs[i][bytes - 1] ^= 0x40;
      if (fault_ == Fault::kChangingValue) outputs[i][0] ^= static_cast<char>(++runs_ & 1);
      if (fault_ == Fault::kBeyondOutput && bytes % 64 != 0) outputs[i][bytes] = 0;
    }
    if (on_piece) on_piece("the reference kernel", absl::ZeroDuration());
    return absl::OkStatus();
  }

 private:
  const Partition partition_;
  MemoryBudget budget_;
  ThreadPool threads_;
  const Fault fault_;
  std::vector<std::optional<Tensor>> constants_;
  const Kernel* kernel_ = nullptr;
  PreparedNode prepared_;
  int runs_ = 0;
};

class ReferenceDelegate final : public Delegate {
 public:
  explicit ReferenceDelegate(Fault fault) : fault_(fault) {}

  absl::string_view name() const override { return "reference"; }
  absl::Status Supports(const Partition& single) const override {
    if (single.nodes[0].node->op() == ops::kElu) return absl::UnimplementedError("Elu | is not for it");
    if (fault_ == Fault::kNoReason) return absl::UnimplementedError("");
    return absl::OkStatus();
  }
  bool IsWorthwhile(const Partition&) const override { return false; }
  absl::StatusOr<std::unique_ptr<CompiledPartition>> Compile(const Partition& partition,
                                                             int num_threads) const override {
    if (fault_ == Fault::kCompile) return absl::InternalError("cannot");
    auto compiled = std::make_unique<ReferencePartition>(partition, num_threads, fault_);
    PF_RETURN_IF_ERROR(compiled->Prepare());
    return compiled;
  }

 private:
  const Fault fault_;
};

ConformanceReport ReportOf(Fault fault, const std::string& family) {
  ConformanceReport report;
  const absl::Status status = RunConformance(std::make_shared<ReferenceDelegate>(fault), family, {}, &report);
  EXPECT_TRUE(status.ok()) << status;
  return report;
}

TEST(ConformanceTest, TheReferenceKernelsPass) {
  for (const std::string family : {"activation", "convolution", "movement", "pooling", "rearrangement"}) {
    const ConformanceReport report = ReportOf(Fault::kNone, family);
    EXPECT_THAT(report.failures, IsEmpty()) << family;
    ASSERT_FALSE(report.ops.empty()) << family;
    for (const auto& [name, op] : report.ops) {
      EXPECT_EQ(op.num_run, name == "Elu" ? 0 : op.num_cases) << name;
    }
  }
}

TEST(ConformanceTest, FindsFaults) {
  EXPECT_THAT(ReportOf(Fault::kValue, "activation").failures, Contains(HasSubstr("expected")));
  EXPECT_THAT(ReportOf(Fault::kChangingValue, "activation").failures, Contains(HasSubstr("second run differs")));
#if !defined(__SANITIZE_ADDRESS__)  // AddressSanitizer detects it first and ends the process.
  EXPECT_THAT(ReportOf(Fault::kBeyondOutput, "activation").failures, Contains(HasSubstr("was written to")));
#endif
  EXPECT_THAT(ReportOf(Fault::kCompile, "activation").failures,
              Contains(AllOf(HasSubstr("failed to compile"), HasSubstr("cannot"))));
  EXPECT_THAT(ReportOf(Fault::kRun, "activation").failures, Contains(HasSubstr("does not want to")));
  EXPECT_THAT(ReportOf(Fault::kNoReason, "activation").failures, Contains(HasSubstr("without a reason")));
}

TEST(ConformanceTest, TheTableTellsWhatRunsAndWhatDoesNot) {
  ConformanceReport report;
  report.ops["Conv2D"] = {7, 5, {{"a", 2}, {"b", 1}}};
  report.ops["Elu"] = {2, 0, {{"no | such", 2}}};
  report.ops["Selu"] = {1, 0, {{"no | such", 1}}};
  EXPECT_EQ(ConformanceTable(report),
            "| op | supported cases | recorded cases | reasons for refusals (number of cases) |\n|---|---|---|---|\n"
            "| Conv2D | 5 | 7 | a (2); b (1) |\n"
            "\nOps without a supported case:\n\n| reasons | ops |\n|---|---|\n"
            "| no \\| such | Elu Selu |\n");
}

TEST(GuardedMemoryDeathTest, EndsTheProcessOutside) {
  GuardedMemory memory(4096 + 4, 4);
  const volatile char* const last = memory.data() + 4096 + 3;
  EXPECT_EQ(*last, *last);
  EXPECT_DEATH(static_cast<void>(last[1]), "");
  memory.MakeReadOnly();
  EXPECT_DEATH(memory.data()[0] = 1, "");
}

TEST(GuardedMemoryTest, NoticesWritesAround) {
  GuardedMemory memory(100, 64);
  memory.Fill(std::string(100, 'x'));
  EXPECT_TRUE(memory.CheckSurroundings().ok());
  EXPECT_EQ(memory.bytes(), std::string(100, 'x'));
  memory.data()[100] ^= 1;
  EXPECT_THAT(memory.CheckSurroundings().ToString(), HasSubstr("offset 100 of 100"));
  memory.data()[100] ^= 1;
  memory.data()[-1] ^= 1;
  EXPECT_THAT(memory.CheckSurroundings().ToString(), HasSubstr("offset -1 of 100"));
}

}  // namespace
}  // namespace permafrost
