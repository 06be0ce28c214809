// A delegate for tests: adds, multiplies, negates and clips floats in plain loops, and fails as configured.
#ifndef PERMAFROST_TESTS_RUNTIME_CHECK_ARITHMETIC_DELEGATE_H_
#define PERMAFROST_TESTS_RUNTIME_CHECK_ARITHMETIC_DELEGATE_H_

#include <atomic>
#include <cstdint>
#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime_check/delegate.h"

namespace permafrost {

struct ArithmeticOptions {
  size_t least_nodes = 1;  // Partitions with fewer nodes are not worthwhile.
  bool fails_to_compile = false;
  int runs_before_failure = -1;  // Number of runs over all partitions before one fails; -1: none fails.
  int64_t constant_bytes = 0;
  int64_t scratch_bytes = 0;
};

// Runs the nodes of a partition in order, each into its own buffer.
class ArithmeticPartition final : public CompiledPartition {
 public:
  ArithmeticPartition(const Partition& partition, const ArithmeticOptions& options, std::atomic<int>* num_runs)
      : partition_(partition), options_(options), num_runs_(*num_runs), values_(partition.tensors.size()) {
    for (size_t i = 0; i < values_.size(); ++i) {
      const DelegateTensor& tensor = partition.tensors[i];
      values_[i].resize(static_cast<size_t>(tensor.shape.num_elements()));
      if (!tensor.constant.has_value()) continue;
      const auto elements = tensor.constant->elements<float>();
      for (size_t j = 0; j < elements.size(); ++j) values_[i][j] = elements[j];
    }
  }

  int64_t scratch_bytes() const override { return options_.scratch_bytes; }
  int64_t constant_bytes() const override { return options_.constant_bytes; }
  std::vector<std::string> Describe() const override {
    return {absl::StrCat("loops over ", partition_.nodes.size(), " nodes")};
  }
  absl::Status Run(absl::Span<const char* const> inputs, absl::Span<char* const> outputs, char* scratch,
                   const PieceCallback& on_piece) override {
    for (const char* memory : inputs) {
      if (reinterpret_cast<uintptr_t>(memory) % 64 != 0) return absl::InternalError("an input is not aligned");
    }
    if (options_.scratch_bytes > 0) std::memset(scratch, 0x7f, static_cast<size_t>(options_.scratch_bytes));
    for (size_t i = 0; i < inputs.size(); ++i) {
      std::vector<float>& value = values_[partition_.inputs[i]];
      if (!value.empty()) std::memcpy(value.data(), inputs[i], value.size() * sizeof(float));
    }
    for (const DelegateNode& node : partition_.nodes) Compute(node);
    const bool fails = options_.runs_before_failure >= 0 && num_runs_++ >= options_.runs_before_failure;
    for (size_t i = 0; i < outputs.size(); ++i) {
      const std::vector<float>& value = values_[partition_.outputs[i]];
      const size_t bytes = (fails ? value.size() / 2 : value.size()) * sizeof(float);
      if (bytes > 0) std::memcpy(outputs[i], value.data(), bytes);
    }
    if (fails) return absl::InternalError("the device is gone");
    if (on_piece != nullptr) on_piece("loops", absl::ZeroDuration());
    return absl::OkStatus();
  }

 private:
  void Compute(const DelegateNode& node) {
    const absl::string_view op = node.node->op().name();
    std::vector<float>& result = values_[node.outputs[0]];
    const std::vector<float>& a = values_[node.inputs[0]];
    const std::vector<float>& b = values_[node.inputs.back()];
    for (size_t i = 0; i < result.size(); ++i) {
      const float x = a[a.size() == 1 ? 0 : i], y = b[b.size() == 1 ? 0 : i];
      result[i] = op == "Mul" ? x * y : op == "Neg" ? -x : op == "Relu" ? (x < 0 ? 0.f : x) : x + y;
    }
  }

  Partition partition_;
  ArithmeticOptions options_;
  std::atomic<int>& num_runs_;
  std::vector<std::vector<float>> values_;
};

class ArithmeticDelegate final : public Delegate {
 public:
  explicit ArithmeticDelegate(ArithmeticOptions options = {}) : options_(options) {}

  absl::string_view name() const override { return "arithmetic"; }
  absl::Status Supports(const Partition& single) const override {
    const DelegateNode& node = single.nodes[0];
    const absl::string_view op = node.node->op().name();
    if (op != "Add" && op != "AddV2" && op != "Mul" && op != "Neg" && op != "Relu") {
      return absl::UnimplementedError(absl::StrCat("does not compute ", op));
    }
    const Shape& shape = single.tensors[node.outputs[0]].shape;
    for (const int input : node.inputs) {
      const DelegateTensor& tensor = single.tensors[input];
      if (tensor.dtype != DType::kFloat) return absl::UnimplementedError("is not float");
      if (tensor.shape.num_elements() != 1 && tensor.shape != shape) {
        return absl::UnimplementedError("broadcasts more than a scalar");
      }
    }
    return absl::OkStatus();
  }
  bool IsWorthwhile(const Partition& partition) const override {
    return partition.nodes.size() >= options_.least_nodes;
  }
  absl::StatusOr<std::unique_ptr<CompiledPartition>> Compile(const Partition& partition,
                                                             int /*num_threads*/) const override {
    if (options_.fails_to_compile) return absl::InternalError("the compiler is out of ideas");
    const std::lock_guard<std::mutex> lock(mutex_);
    compiled_.push_back(partition);
    return std::make_unique<ArithmeticPartition>(partition, options_, &num_runs_);
  }

  // All compiled partitions, in order.
  std::vector<Partition> compiled() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return compiled_;
  }

 private:
  ArithmeticOptions options_;
  mutable std::mutex mutex_;
  mutable std::vector<Partition> compiled_;
  mutable std::atomic<int> num_runs_{0};
};

}  // namespace permafrost

#endif  // PERMAFROST_TESTS_RUNTIME_CHECK_ARITHMETIC_DELEGATE_H_
