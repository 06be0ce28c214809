// The user's own inputs, by which precisions of few bits are calibrated and judged.
#ifndef PERMAFROST_TOOLS_VALIDATION_CALIBRATION_INPUTS_H_
#define PERMAFROST_TOOLS_VALIDATION_CALIBRATION_INPUTS_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "graph/graph.h"
#include "io/file_system.h"
#include "tools/images/image.h"
#include "tools/model/model_inputs.h"
#include "tools/validation/image_flags.h"

namespace permafrost {

// Ranges hardly move beyond, and each set is run by the reference kernels.
inline constexpr size_t kMostCalibrationSets = 128;
// Of all sets together, in memory.
inline constexpr uint64_t kMostCalibrationBytes = uint64_t{1} << 30;

// Reads what --calibration_inputs says: comma separated lists of pieces "[INPUT=]PATH", where PATH is an NPY file, a
// pattern as ReadInputSets takes it, a folder with NPY files (all of them), or, for a model with one input, a folder of
// pictures or with a folder of pictures for each class. Each set has as many rows as the model fixes, or one; of more
// sets than the limits above allow, as many as those allow are taken, evenly spread. Empty for no pieces. Errors as of
// ReadInputSets, FindLabelledImages, MakePictureConverter and ReadImageFile; InvalidArgument for a folder with arrays
// beside pictures or with neither, for fewer rows than the model fixes, and for pictures where there are several
// inputs.
absl::StatusOr<std::vector<InputSet>> ReadCalibrationInputs(FileSystem& files, absl::Span<const std::string> lists,
                                                            const ImageFlags& image, const ImageLimits& limits,
                                                            absl::Span<const Endpoint> inputs);

}  // namespace permafrost

#endif  // PERMAFROST_TOOLS_VALIDATION_CALIBRATION_INPUTS_H_
