// Judges the quality of an output after its model was changed.
#ifndef PERMAFROST_RUNTIME_CHECK_CHECKING_OUTPUT_QUALITY_H_
#define PERMAFROST_RUNTIME_CHECK_CHECKING_OUTPUT_QUALITY_H_

#include "absl/strings/string_view.h"
#include "runtime_check/checking/compare.h"

namespace permafrost {

enum class OutputQuality {
  kFine,     // The noise is of the order of good 8-bit arithmetic.
  kVisible,  // Applications may notice; measure on labelled data.
  kRuined,   // The output no longer represents the result of the original model.
};

// Thresholds of the judgement. docs/guide/transform_graph.md explains them for users.
struct QualityBounds {
  // 30 dB is an rms error of 3.2 % of the output, the order of AccuracyBudget::relative_rms, below which the delegates'
  // 8-bit plans count as equal to the model. 15 dB is an rms error of 18 %. An output of a pose network at 12.9 dB has
  // its largest element at another position in a third of its rows. Outputs that quantisation with one range per tensor
  // destroys are at 6 dB or less (docs/differences.md, quantize_weights).
  double fine_sqnr_db = 30;
  double ruined_sqnr_db = 15;
  // An output that differs mostly by its scale has a cosine near 1 and still ranks classes as before, so it is not
  // ruined.
  double ruined_cosine = 0.98;
  // Agreement of classes. MLPerf Inference requires 99 % of the original accuracy from a quantised model. A model that
  // gives another class in one row of four is not equivalent.
  double fine_agreement = 0.99;
  double ruined_agreement = 0.75;
  // With fewer rows, one changed class exceeds the share that is judged.
  int64_t min_rows = 100;
};

// Judges by SQNR and cosine, and by the agreement of classes if there are enough rows. Outputs with exact values are
// judged by the share of equal elements if that is better. An output whose error is within `scale_floor` is fine.
OutputQuality JudgeQuality(const OutputDifference& difference, const QualityBounds& bounds = {});

// Returns "fine", "visible" or "ruined".
absl::string_view QualityName(OutputQuality quality);

}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_CHECKING_OUTPUT_QUALITY_H_
