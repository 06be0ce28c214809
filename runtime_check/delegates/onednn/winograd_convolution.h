// Convolutions of floats by Winograd's algorithm, with fewer multiplications than the direct form.
#ifndef PERMAFROST_RUNTIME_CHECK_DELEGATES_ONEDNN_WINOGRAD_CONVOLUTION_H_
#define PERMAFROST_RUNTIME_CHECK_DELEGATES_ONEDNN_WINOGRAD_CONVOLUTION_H_

#include <memory>

#include "absl/status/statusor.h"
#include "runtime_check/delegates/onednn/piece.h"
#include "runtime_check/delegates/onednn/weighted.h"
#include "runtime_check/delegates/onednn/winograd_loops.h"
#include "runtime_check/packing/packed_weights.h"

namespace permafrost {
namespace onednn {

// A form, and the estimated time with it, as a share of the time of the direct form.
struct WinogradChoice {
  WinogradForm form;
  double share = 1;
};

// Returns the form that is estimated to be the fastest for the convolution on this machine. Returns Unimplemented, with
// the reason, if the direct form is faster, and InvalidArgument for an op that has no Winograd form: one with a stride,
// a dilation, groups or 1x1 taps.
absl::StatusOr<WinogradChoice> ChooseWinograd(const ParsedNode& parsed, int num_threads);

// Returns the estimated time in the form, as a share of the time of the direct form.
double EstimateWinograd(const ParsedNode& parsed, const WinogradForm& form, int num_threads);

// Makes a convolution of floats in that form. Returns Unimplemented, with the reason, for weights with NaN or infinity,
// and if the form computes sample tiles with a greater error than floats are allowed. A run whose sums are not all
// finite is repeated in the direct form, so NaN and infinity reach the same results. Reads the transformed weights from
// `packed` and stores new ones there; null disables this cache. REQUIRES: `choice` is one of ChooseWinograd, or the
// form has the taps of the convolution; source and target hold floats.
absl::StatusOr<std::unique_ptr<Piece>> MakeWinograd(const WeightedOp& op, const WinogradChoice& choice,
                                                    const StorageTypes& types, int num_threads, PackedWeights* packed);

}  // namespace onednn
}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_DELEGATES_ONEDNN_WINOGRAD_CONVOLUTION_H_
