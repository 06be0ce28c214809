// Inputs given by the user, with which low-bit precisions are calibrated and their accuracy is measured.
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

// Maximum number of sets. More hardly change the ranges, and the reference kernels run each set.
inline constexpr size_t kMostCalibrationSets = 128;
// Maximum size of all sets together in memory.
inline constexpr uint64_t kMostCalibrationBytes = uint64_t{1} << 30;

// Reads the value of --calibration_inputs: comma separated lists of pieces "[INPUT=]PATH". PATH is an NPY file, a
// pattern as in ReadInputSets, or a folder with NPY files (all are read). For a model with one input it may also be a
// folder of pictures, or a folder with one subfolder of pictures per class. Each set has as many rows as the model
// fixes, or one. If there are more sets than the limits above allow, takes as many as allowed, evenly spaced. Empty for
// no pieces. Errors are those of ReadInputSets, FindLabelledImages, MakePictureConverter and ReadImageFile;
// InvalidArgument for a folder with both arrays and pictures or with neither, for fewer rows than the model fixes, and
// for pictures if there are several inputs.
absl::StatusOr<std::vector<InputSet>> ReadCalibrationInputs(FileSystem& files, absl::Span<const std::string> lists,
                                                            const ImageFlags& image, const ImageLimits& limits,
                                                            const Graph& model);

}  // namespace permafrost

#endif  // PERMAFROST_TOOLS_VALIDATION_CALIBRATION_INPUTS_H_
