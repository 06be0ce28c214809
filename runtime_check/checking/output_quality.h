// Judges how much of an output is left when its model has been changed.
#ifndef PERMAFROST_RUNTIME_CHECK_CHECKING_OUTPUT_QUALITY_H_
#define PERMAFROST_RUNTIME_CHECK_CHECKING_OUTPUT_QUALITY_H_

#include "absl/strings/string_view.h"
#include "runtime_check/checking/compare.h"

namespace permafrost {

enum class OutputQuality {
  kFine,     // The noise is of the order of that of good eight-bit arithmetic.
  kVisible,  // Applications may notice; measure on labelled data.
  kRuined,   // The output no longer carries the answer of the original model.
};

// The bounds of the judgement. docs/guide/transform_graph.md gives the reasons for the user.
struct QualityBounds {
  // 30 dB is an rms error of 3.2 % of the output, the order of AccuracyBudget::relative_rms, below which the delegates'
  // eight-bit plans count as equal to the model. 15 dB is an rms error of 18 %. An output of a pose network at 12.9 dB
  // has its largest element elsewhere in a third of its rows; outputs that a range for a whole tensor destroys are at 6
  // dB or less (docs/differences.md, quantize_weights).
  double fine_sqnr_db = 30;
  double ruined_sqnr_db = 15;
  // An output whose noise is mostly another scale has a cosine near 1 and still ranks classes as before: it is not
  // ruined.
  double ruined_cosine = 0.98;
  // Agreement of classes: MLPerf Inference asks a quantised model for 99 % of the accuracy of the original one. A model
  // that answers otherwise in one row of four is another model.
  double fine_agreement = 0.99;
  double ruined_agreement = 0.75;
  // With fewer rows one class that changes is more than the share that is judged.
  int64_t min_rows = 100;
};

// Judges by SQNR and cosine, and by the agreement of classes where there are enough rows. Outputs with exact values are
// judged by the share of equal elements where that is better. An output that is within `scale_floor` is fine.
OutputQuality JudgeQuality(const OutputDifference& difference, const QualityBounds& bounds = {});

// "fine", "visible", "ruined".
absl::string_view QualityName(OutputQuality quality);

}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_CHECKING_OUTPUT_QUALITY_H_
