// How a tool asks for a precision that measuring settles.
#ifndef PERMAFROST_TOOLS_MODEL_PRECISION_REQUEST_H_
#define PERMAFROST_TOOLS_MODEL_PRECISION_REQUEST_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "runtime_check/precision/precision_choice.h"

namespace permafrost {

// The fastest of all that a delegate has.
inline constexpr absl::string_view kAutoPrecision = "auto";

// ChoosePrecision between all precisions of the delegate, or of `precision` alone. All samples calibrate, the first 8
// judge: more would make the choice slow and hardly better. The delegate of `session_options` is left out.
absl::StatusOr<PrecisionChoice> ChooseOnSamples(const Graph& graph, absl::Span<const Endpoint> inputs,
                                                absl::Span<const Endpoint> outputs,
                                                absl::Span<const std::vector<Tensor>> samples,
                                                const std::string& delegate, const std::string& precision,
                                                RangeMethod calibration, SessionOptions session_options);

}  // namespace permafrost

#endif  // PERMAFROST_TOOLS_MODEL_PRECISION_REQUEST_H_
