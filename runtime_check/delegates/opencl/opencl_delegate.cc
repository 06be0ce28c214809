// Decides which nodes and partitions the delegate takes.
#include "runtime_check/delegates/opencl/opencl_delegate.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "runtime_check/delegates/onednn/node_kinds.h"
#include "runtime_check/delegates/opencl/compiled_partition.h"
#include "runtime_check/delegates/opencl/device.h"
#include "runtime_check/delegates/opencl/lowering.h"
#include "runtime_check/delegates/opencl/self_check.h"
#include "runtime_check/delegates/opencl/weights.h"

namespace permafrost {
namespace {

// The minimum work of a partition, in multiplications and elements. Entering one takes about 50 us: buffers are made,
// and the device is waited for. A processor does this work in that time.
constexpr int64_t kLeastWork = 500'000;

int64_t WorkOf(const onednn::ParsedNode& parsed, const Shape& shape) {
  const int64_t elements = shape.num_elements();
  switch (parsed.kind) {
    case onednn::NodeKind::kConvolution:
      return elements * parsed.window.y.taps * parsed.window.x.taps * parsed.window.input_channels /
             parsed.window.groups;
    case onednn::NodeKind::kTransposedConvolution:
      return parsed.window.batch * parsed.window.y.output * parsed.window.x.output * parsed.window.y.taps *
             parsed.window.x.taps * parsed.window.input_channels * parsed.window.output_channels;
    case onednn::NodeKind::kMatMul:
      return parsed.rows * parsed.depth * parsed.columns;
    case onednn::NodeKind::kProduct:
      return parsed.product.multiplications();
    case onednn::NodeKind::kAlias:
      return 0;
    default:
      return elements;
  }
}

// Identifies the kernels of a node. They may be the same for different texts.
std::string KindOf(const onednn::ParsedNode& parsed, const Partition& single) {
  const bool is_weighted = parsed.kind == onednn::NodeKind::kConvolution ||
                           parsed.kind == onednn::NodeKind::kTransposedConvolution ||
                           parsed.kind == onednn::NodeKind::kMatMul;
  std::string types;
  for (const int input : single.nodes[0].inputs) {
    const DelegateTensor& tensor = single.tensors[input];
    absl::StrAppend(&types, " ", DTypeName(tensor.dtype), tensor.constant.has_value() ? " constant" : "");
  }
  return absl::StrCat(single.nodes[0].node->op().name(), types, " ", static_cast<int>(parsed.kind), " ",
                      static_cast<int>(parsed.loop), " ", static_cast<int>(parsed.meeting), " ",
                      static_cast<int>(parsed.activation), " ", is_weighted ? opencl::KernelOf(parsed, 1).name : "",
                      " ", parsed.is_channels_first);
}

class OpenClDelegate final : public Delegate {
 public:
  explicit OpenClDelegate(std::shared_ptr<opencl::Device> device) : device_(std::move(device)) {}

  absl::string_view name() const override { return "opencl"; }

  // The kernels of a node are checked the first time that a node of its kind is offered.
  absl::Status Supports(const Partition& single) const override {
    PF_ASSIGN_OR_RETURN(const onednn::ParsedNode parsed, onednn::ParseNode(single, single.nodes[0]));
    const std::string key = KindOf(parsed, single);
    if (const std::optional<absl::Status> known = device_->Verdict(key); known.has_value()) return *known;
    PF_ASSIGN_OR_RETURN(const opencl::LoweredPartition lowered, opencl::Lower(single));
    const absl::Status status = opencl::CheckLaunches(lowered, device_.get());
    // Memory may be available next time.
    if (!absl::IsResourceExhausted(status)) device_->SetVerdict(key, status);
    return status;
  }

  bool IsWorthwhile(const Partition& partition) const override {
    int64_t work = 0;
    for (const DelegateNode& node : partition.nodes) {
      const absl::StatusOr<onednn::ParsedNode> parsed = onednn::ParseNode(partition, node);
      if (parsed.ok()) work += WorkOf(*parsed, partition.tensors[node.outputs[0]].shape);
      if (work >= kLeastWork) return true;
    }
    return false;
  }

  // A processor was measured: mobilenet_v2 takes 20 ms with PoCL on two units. A unit of a GPU has 64 to 128 lanes, of
  // which kernels without local memory are assumed to use a third.
  DelegateSpeed Speed(int /*num_threads*/) const override {
    const opencl::DeviceInfo& info = device_->info();
    const double cycles_per_ns = std::max(info.megahertz, 500.0) / 1000, units = std::max(info.compute_units, 1.0);
    DelegateSpeed speed;
    speed.flops_per_ns = (info.is_processor ? 5 : 64) * units * cycles_per_ns;
    speed.bytes_per_ns = info.is_processor ? 2 * std::min(units, 4.0) : 4 * units;
    speed.node_ns = 5000;    // A launch.
    speed.entry_ns = 50000;  // See kLeastWork.
    speed.fuses_steps = true;
    if (!info.has_host_memory) speed.transfer_bytes_per_ns = 6;  // Half of 16 lanes of PCI Express 3.
    return speed;
  }

  absl::StatusOr<std::unique_ptr<CompiledPartition>> Compile(const Partition& partition,
                                                             int /*num_threads*/) const override {
    return opencl::CompilePartition(device_, partition);
  }

 private:
  const std::shared_ptr<opencl::Device> device_;
};

}  // namespace

absl::StatusOr<std::shared_ptr<const Delegate>> MakeOpenClDelegate(const OpenClOptions& options) {
  PF_ASSIGN_OR_RETURN(std::shared_ptr<opencl::Device> device, opencl::Device::Open(options));
  return std::make_shared<const OpenClDelegate>(std::move(device));
}

std::string OpenClLibraryPath() { return opencl::LoadedLibraryPath(); }

}  // namespace permafrost
