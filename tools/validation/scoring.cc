// Scores outputs row by row.
#include "tools/validation/scoring.h"

#include <algorithm>
#include <cmath>
#include <type_traits>

namespace permafrost {
namespace {

// Returns the elements as double; empty for types that are not numeric.
std::vector<double> Numbers(const Tensor& tensor) {
  std::vector<double> numbers;
  DispatchOn<float, double, Half, BFloat16, int8_t, uint8_t, int16_t, uint16_t, int32_t, uint32_t, int64_t, uint64_t>(
      tensor.dtype(), [&](auto tag) {
        using T = typename decltype(tag)::type;
        const UnalignedSpan<T> elements = tensor.elements<T>();
        numbers.reserve(elements.size());
        for (size_t i = 0; i < elements.size(); ++i) {
          if constexpr (std::is_arithmetic_v<T>) {
            numbers.push_back(static_cast<double>(elements[i]));
          } else {
            numbers.push_back(ToFloat(elements[i]));
          }
        }
      });
  return numbers;
}

// Returns true if the answer is correct.
bool AddClass(const double* scores, int64_t classes, int64_t label, ModelScore* score) {
  int64_t answer = 0, before = 0;
  for (int64_t i = 0; i < classes; ++i) {
    if (std::isnan(scores[i])) {
      ++score->rows_with_nan;
      ++score->answers[{label, -1}];
      return false;
    }
    if (scores[i] > scores[answer]) answer = i;
    if (scores[i] > scores[label] || (scores[i] == scores[label] && i < label)) ++before;
  }
  ++score->answers[{label, answer}];
  score->right += answer == label ? 1 : 0;
  score->right_in_five += before < 5 ? 1 : 0;
  return answer == label;
}

void AddNumbers(const double* answers, const double* expected, int64_t count, ModelScore* score) {
  bool has_nan = false;
  for (int64_t i = 0; i < count; ++i) {
    const double error = answers[i] - expected[i];
    has_nan = has_nan || std::isnan(answers[i]);
    if (!std::isfinite(error)) {
      ++score->num_not_finite;
      continue;
    }
    score->sum_error += std::abs(error);
    score->sum_error_squared += error * error;
    ++score->num_finite;
  }
  score->rows_with_nan += has_nan ? 1 : 0;
}

}  // namespace

int64_t Labels::num_rows() const {
  if (!classes.empty()) return static_cast<int64_t>(classes.size());
  return numbers_per_row == 0 ? 0 : static_cast<int64_t>(numbers.size()) / numbers_per_row;
}

double MeanError(const ModelScore& score) {
  return score.num_finite == 0 ? 0 : score.sum_error / static_cast<double>(score.num_finite);
}

double RootMeanSquareError(const ModelScore& score) {
  return score.num_finite == 0 ? 0 : std::sqrt(score.sum_error_squared / static_cast<double>(score.num_finite));
}

OutputScore::Kind KindOfAnswers(const Tensor& answer, int64_t rows, const Labels& labels) {
  using Kind = OutputScore::Kind;
  const Shape& shape = answer.shape();
  if (rows == 0 || shape.rank() == 0 || shape.dim(0) != rows || Numbers(answer).empty()) return Kind::kNone;
  const int64_t per_row = answer.num_elements() / rows;
  if (labels.classes.empty()) return per_row == labels.numbers_per_row ? Kind::kNumbers : Kind::kNone;
  if (per_row == 1) return Kind::kNumbers;
  const int64_t largest = *std::max_element(labels.classes.begin(), labels.classes.end());
  const bool is_one_axis = std::find(shape.dims().begin() + 1, shape.dims().end(), per_row) != shape.dims().end();
  return is_one_axis && per_row > largest ? Kind::kClasses : Kind::kNone;
}

void AddAnswers(const Tensor& reference, const Tensor& candidate, int64_t first_row, int64_t rows, const Labels& labels,
                OutputScore* score) {
  const std::vector<double> first = Numbers(reference), second = Numbers(candidate);
  const int64_t per_row = static_cast<int64_t>(first.size()) / rows;
  score->rows += rows;
  score->paired.rows += rows;
  for (int64_t row = 0; row < rows; ++row) {
    const double* first_row_answers = first.data() + row * per_row;
    const double* second_row_answers = second.data() + row * per_row;
    const auto place = static_cast<size_t>(first_row + row);
    if (score->kind == OutputScore::Kind::kNumbers) {
      const double as_number = labels.classes.empty() ? 0 : static_cast<double>(labels.classes[place]);
      const double* expected =
          labels.classes.empty() ? labels.numbers.data() + place * static_cast<size_t>(per_row) : &as_number;
      AddNumbers(first_row_answers, expected, per_row, &score->reference);
      AddNumbers(second_row_answers, expected, per_row, &score->candidate);
      continue;
    }
    score->classes = per_row;
    const bool first_right = AddClass(first_row_answers, per_row, labels.classes[place], &score->reference);
    const bool second_right = AddClass(second_row_answers, per_row, labels.classes[place], &score->candidate);
    if (first_right && !second_right) ++score->paired.only_first;
    if (second_right && !first_right) ++score->paired.only_second;
  }
}

}  // namespace permafrost
