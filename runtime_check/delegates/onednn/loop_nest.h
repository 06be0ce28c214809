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

// Makes a loop nest of steps. All results must have the same number of elements and of channels, and each step must
// follow the steps whose results it reads. `results` are the tensors with readers outside the loop nest.
std::unique_ptr<Piece> MakeLoopNest(absl::Span<const Step* const> steps, absl::Span<const int> results,
                                    const StorageTypes& types, std::string name, int num_threads);

// Makes a loop nest of steps that follow each other, from a storage to the same storage.
std::unique_ptr<Piece> MakeStepsInPlace(std::vector<Step> steps, int storage, const StorageTypes& types,
                                        std::string name, int num_threads);

}  // namespace onednn
}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_DELEGATES_ONEDNN_LOOP_NEST_H_
