// Collects feeds, fetches and samples for the choice of a precision.
#include "tools/model/precision_request.h"

#include <algorithm>
#include <cstddef>

namespace permafrost {

absl::StatusOr<PrecisionChoice> ChooseOnSamples(const Graph& graph, absl::Span<const Endpoint> inputs,
                                                absl::Span<const Endpoint> outputs,
                                                absl::Span<const std::vector<Tensor>> samples,
                                                const std::string& delegate, const std::string& precision,
                                                RangeMethod calibration, SessionOptions session_options,
                                                const DelegateOptions& switches) {
  std::vector<std::string> feeds, fetches;
  for (const Endpoint& input : inputs) feeds.push_back(input.text);
  for (const Endpoint& output : outputs) fetches.push_back(output.text);
  session_options.delegate = nullptr;
  ChoiceOptions options;
  options.calibration = calibration;
  options.delegate = switches;
  if (precision != kAutoPrecision) options.precisions = {precision};
  options.calibrate_on.assign(samples.begin(), samples.end());
  constexpr size_t kMostJudges = 8;
  return ChoosePrecision(graph, feeds, fetches, samples.subspan(0, std::min(kMostJudges, samples.size())), delegate,
                         session_options, options);
}

}  // namespace permafrost
