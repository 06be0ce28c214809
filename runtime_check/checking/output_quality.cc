// Compares SQNR, cosine and agreement with the bounds.
#include "runtime_check/checking/output_quality.h"

#include <algorithm>
#include <cmath>

namespace permafrost {
namespace {

OutputQuality ByShare(double share, const QualityBounds& bounds) {
  if (share >= bounds.fine_agreement) return OutputQuality::kFine;
  return share < bounds.ruined_agreement ? OutputQuality::kRuined : OutputQuality::kVisible;
}

OutputQuality BySqnr(const OutputDifference& difference, const QualityBounds& bounds) {
  if (difference.sqnr_db >= bounds.fine_sqnr_db) return OutputQuality::kFine;
  const auto count = static_cast<double>(std::max<int64_t>(1, difference.num_finite));
  if (std::sqrt(difference.sum_error_squared / count) <= difference.scale_floor) return OutputQuality::kFine;
  const bool is_lost = difference.sqnr_db < bounds.ruined_sqnr_db && difference.cosine < bounds.ruined_cosine;
  return is_lost ? OutputQuality::kRuined : OutputQuality::kVisible;
}

}  // namespace

OutputQuality JudgeQuality(const OutputDifference& difference, const QualityBounds& bounds) {
  if (difference.is_identical()) return OutputQuality::kFine;
  if (difference.kind != OutputDifference::Kind::kComparable || difference.num_nonfinite_mismatches > 0) {
    return OutputQuality::kRuined;
  }
  const auto elements = static_cast<double>(std::max<int64_t>(1, difference.num_elements));
  const OutputQuality by_share = ByShare(1 - static_cast<double>(difference.num_different) / elements, bounds);
  if (!difference.has_numbers) return by_share;
  OutputQuality quality = BySqnr(difference, bounds);
  if (difference.has_exact_values) return std::min(quality, by_share);
  if (difference.top1_agreement.has_value() && difference.num_rows >= bounds.min_rows) {
    quality = std::max(quality, ByShare(*difference.top1_agreement, bounds));
  }
  return quality;
}

absl::string_view QualityName(OutputQuality quality) {
  switch (quality) {
    case OutputQuality::kFine:
      return "fine";
    case OutputQuality::kVisible:
      return "visible";
    case OutputQuality::kRuined:
      break;
  }
  return "ruined";
}

}  // namespace permafrost
