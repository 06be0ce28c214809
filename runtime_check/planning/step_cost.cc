// The cost model: two speeds and two fixed costs.
#include "runtime_check/planning/step_cost.h"

#include <algorithm>
#include <cstdint>
#include <optional>

#include "graph/analysis/node_flops.h"
#include "runtime_check/planning/prepared_node.h"

namespace permafrost {
namespace {

// Measured on the models of the project's tests.
constexpr double kFlopsPerNs = 40;
constexpr double kBytesPerNs = 5;
constexpr double kCallNs = 300;
// Cost of dividing a loop among threads and waiting for them. A kernel does not divide less than kShareFromNs.
constexpr double kShareNs = 3000;
constexpr double kShareFromNs = 8000;

}  // namespace

StepWork WorkOf(const Node& node, absl::Span<const TypedShape> inputs, absl::Span<const TypedShape> outputs) {
  std::optional<uint64_t> flops;
  const auto input = [&](int i) {
    return static_cast<size_t>(i) < inputs.size() ? inputs[static_cast<size_t>(i)].shape : Shape::UnknownRank();
  };
  CountNodeFlops(node, input, outputs.empty() ? Shape::UnknownRank() : outputs[0].shape, &flops);
  StepWork work;
  for (const absl::Span<const TypedShape> tensors : {inputs, outputs}) {
    for (const TypedShape& tensor : tensors) {
      work.bytes += static_cast<double>(ValueBytes(tensor.dtype, tensor.shape).value_or(0));
    }
  }
  work.flops = static_cast<double>(flops.value_or(0));
  // An operator of codes with a filter: each output has the products of one output channel of the filter.
  if (node.HasAttr("filter_scales") && inputs.size() >= 2 && !outputs.empty() && outputs[0].shape.rank() > 0) {
    const auto elements = [](const Shape& shape) { return static_cast<double>(shape.num_elements()); };
    const auto channels = static_cast<double>(outputs[0].shape.dim(outputs[0].shape.rank() - 1));
    if (channels > 0) work.flops = 2 * elements(outputs[0].shape) * elements(inputs[1].shape) / channels;
  }
  return work;
}

double EstimateOnOneThread(const Node& node, absl::Span<const TypedShape> inputs,
                           absl::Span<const TypedShape> outputs) {
  const StepWork work = WorkOf(node, inputs, outputs);
  return kCallNs + work.flops / kFlopsPerNs + work.bytes / kBytesPerNs;
}

double EstimateOnThreads(double one_thread_ns, int num_threads) {
  if (num_threads < 2 || one_thread_ns < kShareFromNs) return one_thread_ns;
  return std::min(one_thread_ns, kShareNs + one_thread_ns / num_threads);
}

}  // namespace permafrost
