// Names what is fed and fetched, and takes a few samples.
#include "tools/model/precision_request.h"

#include <algorithm>
#include <cstddef>

namespace permafrost {

absl::Span<const std::vector<Tensor>> FewSamples(absl::Span<const std::vector<Tensor>> samples) {
  constexpr size_t kMostSamples = 8;
  return samples.subspan(0, std::min(kMostSamples, samples.size()));
}

absl::StatusOr<PrecisionChoice> ChooseOnSamples(const Graph& graph, absl::Span<const Endpoint> inputs,
                                                absl::Span<const Endpoint> outputs,
                                                absl::Span<const std::vector<Tensor>> samples,
                                                const std::string& delegate, const std::string& precision,
                                                RangeMethod calibration, SessionOptions session_options) {
  std::vector<std::string> feeds, fetches;
  for (const Endpoint& input : inputs) feeds.push_back(input.text);
  for (const Endpoint& output : outputs) fetches.push_back(output.text);
  session_options.delegate = nullptr;
  ChoiceOptions options;
  options.calibration = calibration;
  if (precision != kAutoPrecision) options.precisions = {precision};
  return ChoosePrecision(graph, feeds, fetches, FewSamples(samples), delegate, session_options, options);
}

}  // namespace permafrost
