// Packs a model's weights for a delegate ahead of its runs.
#ifndef PERMAFROST_TOOLS_MODEL_WEIGHT_PACKING_H_
#define PERMAFROST_TOOLS_MODEL_WEIGHT_PACKING_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "graph/graph.h"
#include "graph/tensor.h"
#include "runtime_check/packing/weight_cache.h"
#include "runtime_check/session.h"
#include "tools/command_line/console.h"

namespace permafrost {

// For example "onednn:bf16". Without a precision: the delegate's first.
struct PackRequest {
  std::string delegate, precision;
  bool wants_samples = false;  // The precision needs calibration inputs.
};

// Parses a request. InvalidArgument for a delegate that packs no weights, and for a precision that it does not have.
absl::StatusOr<PackRequest> ParsePackRequest(absl::string_view text);

// Plans the model once for the shapes of each sample, and collects the weights that the delegate packs. A precision
// that needs a precision plan is calibrated with `calibration`, or with the samples if that is empty. The maker of the
// result names no model. FailedPrecondition if the delegate takes no part of the model that has weights;
// ResourceExhausted if it failed to compile a part of the model, so that weights would be missing; errors of
// ChoosePrecision and of the session.
absl::StatusOr<std::shared_ptr<const WeightCache>> PackWeights(const Graph& graph, const PackRequest& request,
                                                               absl::Span<const std::vector<Tensor>> samples,
                                                               absl::Span<const std::vector<Tensor>> calibration,
                                                               const SessionOptions& options, Console& console);

}  // namespace permafrost

#endif  // PERMAFROST_TOOLS_MODEL_WEIGHT_PACKING_H_
