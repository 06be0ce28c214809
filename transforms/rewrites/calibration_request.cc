// Writes and parses the paths of requests, and reads calibrations.
#include "transforms/rewrites/calibration_request.h"

#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace permafrost {
namespace {

constexpr absl::string_view kPrefix = "<calibration> ";
constexpr char kChannels[] = "channels";

}  // namespace

std::string CalibrationRequest::Path() const {
  if (kind == Kind::kChannelRanges) return absl::StrCat(kPrefix, kChannels);
  return absl::StrCat(kPrefix, bits, " ", block, " ", rounding);
}

std::optional<CalibrationRequest> CalibrationRequest::OfPath(absl::string_view path) {
  if (!absl::ConsumePrefix(&path, kPrefix)) return std::nullopt;
  CalibrationRequest request;
  if (path == kChannels) {
    request.kind = Kind::kChannelRanges;
    return request;
  }
  const std::vector<absl::string_view> words = absl::StrSplit(path, ' ');
  if (words.size() != 3 || !absl::SimpleAtoi(words[0], &request.bits) || !absl::SimpleAtoi(words[1], &request.block)) {
    return std::nullopt;
  }
  request.rounding = std::string(words[2]);
  return request;
}

absl::StatusOr<std::string> ReadCalibration(const std::string& path, const CalibrationRequest& request,
                                            absl::string_view consequence, PassContext* context) {
  if (!path.empty()) {
    if (context->read_file == nullptr) return absl::FailedPreconditionError("no files can be read here");
    return context->read_file(path);
  }
  absl::StatusOr<std::string> text = absl::FailedPreconditionError("there are no inputs here");
  if (context->read_file != nullptr) {
    text = context->read_file(request.Path());
    // Tools without inputs look for a file.
    if (absl::IsNotFound(text.status()) || absl::IsInvalidArgument(text.status())) {
      text = absl::FailedPreconditionError("there are no inputs here");
    }
  }
  if (absl::IsCancelled(text.status())) return text.status();
  if (text.ok()) return text;
  context->Note(absl::StrCat(consequence, ": ", text.status().message()));
  return std::string();
}

}  // namespace permafrost
