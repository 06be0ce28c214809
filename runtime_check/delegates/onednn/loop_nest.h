// Several elementwise steps in one pass over memory.
#ifndef PERMAFROST_RUNTIME_CHECK_DELEGATES_ONEDNN_LOOP_NEST_H_
#define PERMAFROST_RUNTIME_CHECK_DELEGATES_ONEDNN_LOOP_NEST_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "runtime_check/delegates/onednn/piece.h"
#include "runtime_check/delegates/onednn/steps.h"

namespace permafrost {
namespace onednn {

// All steps have results of the same number of elements and channels, and come after those whose results they read.
// `results` are the tensors that somebody else reads.
std::unique_ptr<Piece> MakeLoopNest(absl::Span<const Step* const> steps, absl::Span<const int> results,
                                    const StorageTypes& types, std::string name, int num_threads);

}  // namespace onednn
}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_DELEGATES_ONEDNN_LOOP_NEST_H_
