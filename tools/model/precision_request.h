// Request for a precision that is chosen by measurement.
#ifndef PERMAFROST_TOOLS_MODEL_PRECISION_REQUEST_H_
#define PERMAFROST_TOOLS_MODEL_PRECISION_REQUEST_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "runtime_check/precision/precision_choice.h"

namespace permafrost {

// Selects the fastest of all precisions of a delegate.
inline constexpr absl::string_view kAutoPrecision = "auto";

// Runs ChoosePrecision on all precisions of the delegate, or on `precision` alone. All samples calibrate. Only the
// first 8 measure accuracy: more would slow the choice down and hardly improve it. The delegate in `session_options` is
// ignored; `switches` has the switches of the delegate that is tried.
absl::StatusOr<PrecisionChoice> ChooseOnSamples(const Graph& graph, absl::Span<const Endpoint> inputs,
                                                absl::Span<const Endpoint> outputs,
                                                absl::Span<const std::vector<Tensor>> samples,
                                                const std::string& delegate, const std::string& precision,
                                                RangeMethod calibration, SessionOptions session_options,
                                                const DelegateOptions& switches = {});

}  // namespace permafrost

#endif  // PERMAFROST_TOOLS_MODEL_PRECISION_REQUEST_H_
