// Implements the requests of passes.
#include "tools/transform/calibration.h"

#include <algorithm>
#include <cmath>
#include <memory>

#include "graph/base/status.h"
#include "graph/shapes/shape_inference.h"
#include "runtime_check/session.h"
#include "tools/transform/weight_rounding.h"
#include "transforms/rewrites/channel_ranges.h"

namespace permafrost {
namespace {

// Bytes of tensors that are fetched by one run.
constexpr int64_t kMostFetchedBytes = int64_t{512} << 20;

// Adds values to a range. Empties the range, which marks it as unusable, if the channels differ or a value is not
// finite. `is_first` is true for the first values.
void Add(const Tensor& values, bool is_first, ChannelRange* range) {
  const Shape& shape = values.shape();
  const auto channels = static_cast<size_t>(shape.rank() > 0 ? shape.dim(shape.rank() - 1) : 0);
  if (is_first) {
    range->low.assign(channels, INFINITY);
    range->high.assign(channels, -INFINITY);
  }
  if (values.dtype() != DType::kFloat || channels == 0 || range->low.size() != channels) {
    *range = {};
    return;
  }
  const UnalignedSpan<float> elements = values.elements<float>();
  for (size_t i = 0; i < elements.size(); ++i) {
    const float value = elements[i];
    if (!std::isfinite(value)) {
      *range = {};
      return;
    }
    range->low[i % channels] = std::min(range->low[i % channels], value);
    range->high[i % channels] = std::max(range->high[i % channels], value);
  }
}

}  // namespace

absl::StatusOr<std::string> ChannelRangesText(const Graph& graph, absl::Span<const InputSet> inputs,
                                              const SessionOptions& options) {
  if (inputs.empty()) return absl::FailedPreconditionError("there are no inputs");
  PF_ASSIGN_OR_RETURN(const ShapeMap shapes, InferShapes(graph));
  const std::vector<TensorRef> tensors = TensorsWithChannelRanges(graph);
  std::vector<std::string> feeds;
  for (const Endpoint& input : graph.inputs()) feeds.push_back(input.text);
  std::string text;
  for (size_t begin = 0; begin < tensors.size();) {
    std::vector<std::string> fetches;
    int64_t bytes = 0;
    size_t end = begin;
    while (end < tensors.size() && (end == begin || bytes < kMostFetchedBytes)) {
      const Shape shape = shapes.Of(tensors[end]);
      int64_t elements = 1;
      for (int i = 0; shape.has_rank() && i < shape.rank(); ++i) elements *= std::max<int64_t>(1, shape.dim(i));
      bytes += elements * static_cast<int64_t>(sizeof(float));
      fetches.push_back(tensors[end++].ToString());
    }
    PF_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session, Session::Create(graph, feeds, fetches, options));
    std::vector<ChannelRange> ranges(fetches.size());
    for (size_t set = 0; set < inputs.size(); ++set) {
      PF_ASSIGN_OR_RETURN(const std::vector<Tensor> values, session->Run(inputs[set]));
      for (size_t i = 0; i < values.size(); ++i) Add(values[i], set == 0, &ranges[i]);
    }
    for (size_t i = 0; i < ranges.size(); ++i) {
      // Tensors without values have no range.
      const bool has_values = !ranges[i].low.empty() && std::isfinite(ranges[i].low[0]);
      if (has_values) text += ChannelRangeLine(fetches[i], ranges[i]);
    }
    begin = end;
  }
  return text;
}

absl::StatusOr<std::string> Calibrate(const Graph& graph, absl::Span<const InputSet> inputs,
                                      const SessionOptions& options, const CalibrationRequest& request,
                                      int num_threads) {
  if (request.kind == CalibrationRequest::Kind::kChannelRanges) return ChannelRangesText(graph, inputs, options);
  ConstantRoundingSettings settings;
  settings.bits = request.bits;
  settings.block = request.block;
  settings.num_threads = num_threads;
  PF_ASSIGN_OR_RETURN(settings.method, ParseRoundingMethod(request.rounding));
  return RoundedConstantsText(graph, inputs, options, settings);
}

}  // namespace permafrost
