// How right the answers of two models are.
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

// The right answers, for each row either a class or some numbers.
struct Labels {
  std::vector<int64_t> classes;
  std::vector<double> numbers;  // Row by row; empty where there are classes.
  int64_t numbers_per_row = 0;

  int64_t num_rows() const;
};

// Of one model on one output.
struct ModelScore {
  int64_t right = 0;          // Rows whose largest element (the first of equals) is at the label's place.
  int64_t right_in_five = 0;  // The label's place is among the five largest.
  int64_t rows_with_nan = 0;  // They count as wrong.
  // Rows by label and answer, the place of the largest element; -1 where a NaN left none.
  std::map<std::pair<int64_t, int64_t>, int64_t> answers;
  // Of answers that are numbers; pairs with something not finite are counted apart.
  double sum_error = 0, sum_error_squared = 0;
  int64_t num_finite = 0, num_not_finite = 0;
};

// Of both models on one output.
struct OutputScore {
  enum class Kind {
    kNone,     // The output does not answer what the labels ask.
    kClasses,  // [rows, classes]
    kNumbers,  // As many elements a row as the labels have numbers.
  };
  Kind kind = Kind::kNone;
  int64_t rows = 0;
  int64_t classes = 0;
  ModelScore reference, candidate;
  PairedCounts paired;  // The first is the reference.

  bool has_five() const { return kind == Kind::kClasses && classes > 5; }
  double Share(int64_t right) const { return rows == 0 ? 0 : static_cast<double>(right) / static_cast<double>(rows); }
};

// Mean of the absolute errors, and the root of the mean of their squares; 0 without numbers.
double MeanError(const ModelScore& score);
double RootMeanSquareError(const ModelScore& score);

// What `answer`, the output for `rows` rows, says to `labels`. Dimensions of 1 do not count, but the first. An output
// of classes has room for the largest label; an output of one element a row answers classes too, as numbers.
OutputScore::Kind KindOfAnswers(const Tensor& answer, int64_t rows, const Labels& labels);

// Counts the answers to the rows from `first_row` on. Both tensors have the shape that gave `score->kind`, which is not
// kNone.
void AddAnswers(const Tensor& reference, const Tensor& candidate, int64_t first_row, int64_t rows, const Labels& labels,
                OutputScore* score);

}  // namespace permafrost

#endif  // PERMAFROST_TOOLS_VALIDATION_SCORING_H_
