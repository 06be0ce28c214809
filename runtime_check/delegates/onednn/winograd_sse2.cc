// The transforms of Winograd convolutions for SSE2, and for processors without a set of their own.
#include <cstdint>

#include "absl/types/span.h"
#include "runtime_check/delegates/onednn/winograd_loops.h"
#include "runtime_check/delegates/onednn/winograd_points.h"

namespace permafrost {
namespace onednn {
namespace winograd_sse2 {
namespace {

#define PERMAFROST_VECTOR_FLOATS 4
#include "runtime_check/delegates/onednn/winograd_body.h"

}  // namespace

extern const absl::Span<const WinogradLoops> kForms;
const absl::Span<const WinogradLoops> kForms = kLoops;

}  // namespace winograd_sse2
}  // namespace onednn
}  // namespace permafrost
