// Measures the accuracy of two models against labels.
#ifndef PERMAFROST_TOOLS_VALIDATION_SCORING_H_
#define PERMAFROST_TOOLS_VALIDATION_SCORING_H_

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "graph/tensor.h"
#include "tools/validation/significance.h"

namespace permafrost {

// The labels: for each row either a class or some numbers.
struct Labels {
  std::vector<int64_t> classes;
  std::vector<double> numbers;  // Row by row; empty if the labels are classes.
  int64_t numbers_per_row = 0;

  int64_t num_rows() const;
};

// The accuracy of one model on one output.
struct ModelScore {
  // Rows whose largest element (the first of equal ones) is at the label's index.
  int64_t right = 0;
  // Rows with the label's index among the five largest elements.
  int64_t right_in_five = 0;
  // Rows with NaN, which count as wrong.
  int64_t rows_with_nan = 0;
  // Number of rows by label and by index of the largest element; -1 if NaN prevented a result.
  std::map<std::pair<int64_t, int64_t>, int64_t> answers;
  // Errors of outputs that are numbers; pairs with a non-finite element are counted separately.
  double sum_error = 0, sum_error_squared = 0;
  int64_t num_finite = 0, num_not_finite = 0;
};

// The accuracy of both models on one output.
struct OutputScore {
  enum class Kind {
    kNone,     // The shape of the output does not fit the labels.
    kClasses,  // [rows, classes]
    kNumbers,  // The number of elements per row equals the count of numbers in a label.
  };
  Kind kind = Kind::kNone;
  int64_t rows = 0;
  int64_t classes = 0;
  ModelScore reference, candidate;
  PairedCounts paired;  // The first is the reference.

  bool has_five() const { return kind == Kind::kClasses && classes > 5; }
  double Share(int64_t right) const { return rows == 0 ? 0 : static_cast<double>(right) / static_cast<double>(rows); }
};

// Return the mean absolute error, and the root mean square error; 0 without numbers.
double MeanError(const ModelScore& score);
double RootMeanSquareError(const ModelScore& score);

// Returns the kind of `answer`, the output for `rows` rows. Dimensions of 1 are ignored, except the first. An output of
// classes must have room for the largest label. An output with one element per row fits classes too, as numbers.
OutputScore::Kind KindOfAnswers(const Tensor& answer, int64_t rows, const Labels& labels);

// Scores the rows from `first_row` on. Both tensors have the shape from which `score->kind`, which is not kNone, was
// determined.
void AddAnswers(const Tensor& reference, const Tensor& candidate, int64_t first_row, int64_t rows, const Labels& labels,
                OutputScore* score);

}  // namespace permafrost

#endif  // PERMAFROST_TOOLS_VALIDATION_SCORING_H_
