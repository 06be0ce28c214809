// Implements the requests of passes.
#include "tools/transform/calibration.h"

#include <algorithm>
#include <cmath>
#include <memory>

#include "graph/base/status.h"
#include "graph/shapes/shape_inference.h"
#include "tools/transform/visited_values.h"
#include "tools/transform/weight_rounding.h"
#include "transforms/rewrites/channel_ranges.h"

namespace permafrost {
namespace {

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
  std::vector<ChannelRange> ranges(tensors.size());
  PF_RETURN_IF_ERROR(VisitValues(graph, shapes, tensors, inputs, options,
                                 [&](size_t i, size_t set, const Tensor& value) { Add(value, set == 0, &ranges[i]); }));
  std::string text;
  for (size_t i = 0; i < tensors.size(); ++i) {
    // Tensors without values have no range.
    const bool has_values = !ranges[i].low.empty() && std::isfinite(ranges[i].low[0]);
    if (has_values) text += ChannelRangeLine(tensors[i].ToString(), ranges[i]);
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
