// Decides which nodes and partitions the delegate takes.
#include "runtime_check/delegates/onednn/onednn_delegate.h"

#include <algorithm>
#include <utility>

#include "graph/base/processor.h"
#include "graph/base/status.h"
#include "runtime_check/delegates/onednn/compiled_partition.h"
#include "runtime_check/delegates/onednn/node_kinds.h"
#include "runtime_check/delegates/onednn/openmp.h"
#include "runtime_check/delegates/onednn/packing.h"
#include "runtime_check/delegates/onednn/primitives.h"
#include "runtime_check/delegates/onednn/split_products.h"
#include "runtime_check/delegates/onednn/weighted.h"
#include "third_party/deferred/deferred_library.h"

namespace permafrost {
namespace {

// Returns true for nodes that take about as long in the reference kernels.
bool IsCheap(onednn::NodeKind kind) {
  switch (kind) {
    case onednn::NodeKind::kElementwise:
    case onednn::NodeKind::kConcat:
    case onednn::NodeKind::kBroadcast:
    case onednn::NodeKind::kSelect:
    case onednn::NodeKind::kView:
    case onednn::NodeKind::kGather:
      return true;
    default:
      return false;
  }
}

class OneDnnDelegate final : public Delegate {
 public:
  OneDnnDelegate(PrecisionPlan plan, std::shared_ptr<PackedWeights> packed, bool uses_winograd)
      : plan_(std::move(plan)), packed_(std::move(packed)), uses_winograd_(uses_winograd) {}

  absl::string_view name() const override { return "onednn"; }

  absl::Status Supports(const Partition& single) const override {
    PF_ASSIGN_OR_RETURN(const onednn::ParsedNode parsed, onednn::ParseNode(single, single.nodes[0]));
    // The library is known to have fast implementations of most kinds; for unusual ones it is queried.
    const onednn::WindowGeometry& window = parsed.window;
    const bool is_unusual = parsed.kind == onednn::NodeKind::kTransposedConvolution || window.y.dilation != 1 ||
                            window.x.dilation != 1 ||
                            (window.groups != 1 && window.output_channels != window.input_channels);
    const bool is_convolution =
        parsed.kind == onednn::NodeKind::kConvolution || parsed.kind == onednn::NodeKind::kTransposedConvolution;
    return is_convolution && is_unusual ? onednn::CheckFast(parsed) : absl::OkStatus();
  }

  bool IsWorthwhile(const Partition& partition) const override {
    constexpr int64_t kFewElements = 1024;
    // A smaller product of computed operands takes about as long as entering a partition.
    constexpr int64_t kFewProducts = 16384;
    int64_t nodes = 0, elements = 0;
    for (const DelegateNode& node : partition.nodes) {
      const absl::StatusOr<onednn::ParsedNode> parsed = onednn::ParseNode(partition, node);
      if (!parsed.ok() || parsed->kind == onednn::NodeKind::kAlias) continue;
      const bool is_product = parsed->kind == onednn::NodeKind::kProduct;
      if (is_product ? parsed->product.multiplications() >= kFewProducts : !IsCheap(parsed->kind)) return true;
      ++nodes;
      elements += partition.tensors[node.outputs[0]].shape.num_elements();
    }
    return nodes >= 2 && elements >= kFewElements;
  }

  // Fitted to the recorded models: from 60 to 110 operations per nanosecond and thread with AVX-512. Elementwise nodes
  // are fused, so that most of their operands are in a cache.
  DelegateSpeed Speed(int num_threads) const override {
    const InstructionSets sets = SupportedInstructionSets();
    DelegateSpeed speed;
    speed.flops_per_ns = (sets.avx512 ? 80 : sets.avx2_fma ? 40 : 12) * num_threads;
    speed.bytes_per_ns = 10 * std::min(num_threads, 4);
    speed.node_ns = 100;
    speed.entry_ns = 1000;
    speed.fuses_steps = true;
    return speed;
  }

  absl::StatusOr<std::unique_ptr<CompiledPartition>> Compile(const Partition& partition,
                                                             int num_threads) const override {
    return CompileInLanes(partition, num_threads, 1);
  }
  absl::StatusOr<std::unique_ptr<CompiledPartition>> CompileInLanes(const Partition& partition, int num_threads,
                                                                    int num_lanes) const override {
    return onednn::CompilePartition(partition, plan_, {num_threads, uses_winograd_, packed_.get()}, num_lanes);
  }

 private:
  const PrecisionPlan plan_;
  const std::shared_ptr<PackedWeights> packed_;
  const bool uses_winograd_;
};

}  // namespace

absl::StatusOr<std::shared_ptr<const Delegate>> MakeOneDnnDelegate(PrecisionPlan plan,
                                                                   std::shared_ptr<PackedWeights> packed,
                                                                   bool uses_winograd) {
  PF_RETURN_IF_ERROR(onednn::InitializeLibrary());
  const auto uses = [&](Precision precision) {
    return plan.precision == precision || std::any_of(plan.nodes.begin(), plan.nodes.end(),
                                                      [&](const auto& node) { return node.second == precision; });
  };
  if (uses(Precision::kBf16) && !onednn::HasBf16()) {
    return absl::UnimplementedError("precision bf16 needs a processor with AVX-512: expected f32 on this one");
  }
  if (uses(Precision::kInt8) && !onednn::HasInt8()) {
    return absl::UnimplementedError("precision int8 needs a processor with VNNI: expected f32 or bf16 on this one");
  }
  if (uses(Precision::kBf16x3) && !onednn::HasSplitProducts()) {
    return absl::UnimplementedError("precision bf16x3 needs a processor with AMX: expected f32 or bf16 on this one");
  }
  return std::make_shared<OneDnnDelegate>(std::move(plan), std::move(packed), uses_winograd);
}

std::string OneDnnLibraryPath() { return deferred::OneDnn().Path(); }

std::string OneDnnPackingIdentity() { return onednn::InitializeLibrary().ok() ? onednn::PackingIdentity() : ""; }

}  // namespace permafrost
