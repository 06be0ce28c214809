// Decides which nodes and partitions the delegate takes.
#include "runtime_check/delegates/xnnpack/xnnpack_delegate.h"

#include <algorithm>
#include <utility>

#include "graph/base/processor.h"
#include "graph/base/status.h"
#include "runtime_check/delegates/xnnpack/compiled.h"
#include "runtime_check/delegates/xnnpack/library.h"
#include "runtime_check/delegates/xnnpack/operator.h"
#include "runtime_check/delegates/xnnpack/translate.h"
#include "third_party/deferred/deferred_library.h"

namespace permafrost {
namespace xnnpack {
namespace {

// The minimum number of multiplications, or of steps of a pool, in a partition. They take about 10 us. Entering a
// partition and checking its inputs costs a small part of that.
constexpr int64_t kLeastCost = 100'000;

class XnnpackDelegate final : public Delegate {
 public:
  absl::string_view name() const override { return "xnnpack"; }

  absl::Status Supports(const Partition& single) const override {
    PF_ASSIGN_OR_RETURN(const Operation operation, Translate(single, single.nodes[0]));
    // An operator without packed weights is cheap to create, so the library decides whether it supports the operation.
    if (!operation.is_library() || operation.filter.has_value()) return absl::OkStatus();
    return MakeOperator(operation).status();
  }

  bool IsWorthwhile(const Partition& partition) const override {
    int64_t cost = 0;
    for (const DelegateNode& node : partition.nodes) {
      const absl::StatusOr<Operation> operation = Translate(partition, node);
      if (operation.ok()) cost += operation->cost();
      if (cost >= kLeastCost) return true;
    }
    return false;
  }

  // Relative to onednn as measured on the recorded models.
  DelegateSpeed Speed(int num_threads) const override {
    const InstructionSets sets = SupportedInstructionSets();
    DelegateSpeed speed;
    speed.flops_per_ns = (sets.avx512 ? 65 : sets.avx2_fma ? 35 : 12) * num_threads;
    speed.bytes_per_ns = 8 * std::min(num_threads, 4);
    speed.node_ns = 200;
    speed.entry_ns = 1000;
    speed.fuses_steps = true;
    return speed;
  }

  absl::StatusOr<std::unique_ptr<CompiledPartition>> Compile(const Partition& partition,
                                                             int num_threads) const override {
    return xnnpack::Compile(partition, num_threads);
  }
};

}  // namespace
}  // namespace xnnpack

std::string XnnpackLibraryPath() { return deferred::Xnnpack().Path(); }

absl::StatusOr<std::shared_ptr<const Delegate>> MakeXnnpackDelegate() {
  PF_RETURN_IF_ERROR(xnnpack::InitializeLibrary());
  return std::make_shared<const xnnpack::XnnpackDelegate>();
}

}  // namespace permafrost
