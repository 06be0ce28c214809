// Calibrations that passes ask for: what runs of the graph on inputs say. A pass reads it like a file; the tool that
// runs the pipeline recognises the path and answers with runs, if it has inputs. So passes stay functions of files.
#ifndef PERMAFROST_TRANSFORMS_REWRITES_CALIBRATION_REQUEST_H_
#define PERMAFROST_TRANSFORMS_REWRITES_CALIBRATION_REQUEST_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "transforms/pass.h"

namespace permafrost {

struct CalibrationRequest {
  enum class Kind {
    kRoundedConstants,  // Lines of rounded_constants.h.
    kChannelRanges,     // Lines of channel_ranges.h.
  };
  Kind kind = Kind::kRoundedConstants;
  // kRoundedConstants:
  int bits = 8;
  int64_t block = 0;
  std::string rounding;  // Name of a RoundingMethod.

  // Returns a path that hardly names a file.
  std::string Path() const;
  // Returns the request of such a path; nothing for other paths.
  static std::optional<CalibrationRequest> OfPath(absl::string_view path);
};

// Returns the text of the file `path`; if it is empty, what runs of the graph being transformed say. Without inputs, or
// if the graph cannot be run, adds a note with `consequence` and returns an empty text. Other errors are those of
// reading. REQUIRES: the graph has not been changed by the pass yet.
absl::StatusOr<std::string> ReadCalibration(const std::string& path, const CalibrationRequest& request,
                                            absl::string_view consequence, PassContext* context);

}  // namespace permafrost

#endif  // PERMAFROST_TRANSFORMS_REWRITES_CALIBRATION_REQUEST_H_
