// Parses budgets and judges measurements.
#include "tools/optimizing/budget.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "runtime_check/checking/output_error.h"
#include "tools/command_line/console.h"

namespace permafrost {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

absl::Status Unexpected(absl::string_view found, absl::string_view expected) {
  return absl::InvalidArgumentError(absl::StrCat("found '", found, "', expected ", expected));
}

// A number and the unit behind it.
struct Quantity {
  double number = 0;
  std::string unit;
};

absl::StatusOr<Quantity> ParseQuantity(absl::string_view text, absl::string_view expected) {
  size_t end = text.size();
  while (end > 0 && !absl::ascii_isdigit(text[end - 1]) && text[end - 1] != '.') --end;
  Quantity quantity;
  quantity.unit = std::string(absl::StripAsciiWhitespace(text.substr(end)));
  if (!absl::SimpleAtod(text.substr(0, end), &quantity.number) || !std::isfinite(quantity.number)) {
    return Unexpected(text, expected);
  }
  return quantity;
}

double ErrorShare(double max_error, const OutputMeasure& output) {
  const double share = output.relative_rms / max_error;
  if (share <= 1) return share;
  // An output of tiny numbers is judged by the absolute error, as by --precision=auto.
  return output.rms <= AccuracyBudget().absolute_rms ? 1 : share;
}

}  // namespace

double AccuracyMeasure::worst_relative_rms() const {
  double worst = 0;
  for (const OutputMeasure& output : outputs) {
    if (output.rms > AccuracyBudget().absolute_rms) worst = std::max(worst, output.relative_rms);
  }
  return worst;
}

double AccuracyMeasure::accuracy_drop() const {
  if (labels.rows > 0) {
    return static_cast<double>(labels.reference_right - labels.right) / static_cast<double>(labels.rows);
  }
  double worst = 0;
  for (const OutputMeasure& output : outputs) {
    if (output.class_rows == 0) continue;
    worst = std::max(worst, static_cast<double>(output.other_classes) / static_cast<double>(output.class_rows));
  }
  return worst;
}

double AccuracyShare(const OptimizationBudget& budget, const AccuracyMeasure& measure) {
  double share = 0;
  const bool has_default = !budget.max_error.has_value() && !budget.max_accuracy_drop.has_value();
  for (const OutputMeasure& output : measure.outputs) {
    if (!std::isfinite(output.relative_rms)) return kInfinity;
    if (!has_default && !budget.max_error.has_value()) continue;
    double of_output = ErrorShare(budget.max_error.value_or(kDefaultMaxError), output);
    if (has_default && output.class_rows > 0) {
      const bool keeps_classes = output.other_classes == 0;
      // Few rows show little: they need the small error as well.
      if (output.class_rows < kMinClassRows) {
        if (!keeps_classes) of_output = std::max(of_output, 1 + of_output);
      } else if (keeps_classes) {
        of_output = std::min(of_output, 1.0);
      }
    }
    share = std::max(share, of_output);
  }
  if (budget.max_accuracy_drop.has_value()) {
    const double drop = measure.accuracy_drop();
    const double allowed = *budget.max_accuracy_drop;
    share = std::max(share, drop <= 0 ? 0 : drop <= allowed ? drop / allowed : allowed > 0 ? drop / allowed : 1 + drop);
  }
  return share;
}

double SizeShare(const OptimizationBudget& budget, uint64_t bytes) {
  if (!budget.max_bytes.has_value()) return 0;
  return static_cast<double>(bytes) / static_cast<double>(*budget.max_bytes);
}

double LatencyShare(const OptimizationBudget& budget, double seconds, double original_seconds) {
  if (!budget.max_latency.has_value()) return 0;
  const LatencyLimit& limit = *budget.max_latency;
  return seconds / (limit.seconds > 0 ? limit.seconds : limit.ratio * original_seconds);
}

std::string AccuracyText(const OptimizationBudget& budget) {
  std::string text;
  if (budget.max_error.has_value()) {
    absl::StrAppend(&text, "rms error of each output at most ", FormatNumber(100 * *budget.max_error), " %");
  }
  if (budget.max_accuracy_drop.has_value()) {
    absl::StrAppend(&text, text.empty() ? "" : ", ", "loss of accuracy at most ",
                    FormatNumber(100 * *budget.max_accuracy_drop), " %");
  }
  if (!text.empty()) return text;
  return absl::StrCat("rms error of each output at most ", FormatNumber(100 * kDefaultMaxError),
                      " %, or the same class in ", kMinClassRows, " or more rows");
}

absl::StatusOr<double> ParseFraction(absl::string_view text) {
  constexpr absl::string_view kExpected = "a fraction or a percentage such as 0.005 or 0.5%, from 0 to 100 %";
  absl::string_view number = absl::StripAsciiWhitespace(text);
  const bool is_percentage = absl::ConsumeSuffix(&number, "%");
  double value = 0;
  if (!absl::SimpleAtod(number, &value) || !std::isfinite(value)) return Unexpected(text, kExpected);
  if (is_percentage) value /= 100;
  if (value < 0 || value > 1) return Unexpected(text, kExpected);
  return value;
}

absl::StatusOr<uint64_t> ParseByteCount(absl::string_view text) {
  constexpr absl::string_view kExpected = "a number of bytes such as 6MB, 600kB, 4MiB or 12345";
  constexpr double kMost = 1e15;
  const absl::StatusOr<Quantity> quantity = ParseQuantity(text, kExpected);
  if (!quantity.ok()) return quantity.status();
  const std::pair<absl::string_view, double> units[] = {{"", 1},
                                                        {"b", 1},
                                                        {"kb", 1e3},
                                                        {"mb", 1e6},
                                                        {"gb", 1e9},
                                                        {"k", 1e3},
                                                        {"m", 1e6},
                                                        {"g", 1e9},
                                                        {"kib", 1024},
                                                        {"mib", 1024.0 * 1024},
                                                        {"gib", 1024.0 * 1024 * 1024}};
  for (const auto& [unit, factor] : units) {
    if (absl::AsciiStrToLower(quantity->unit) != unit) continue;
    const double bytes = quantity->number * factor;
    if (!(bytes >= 1) || bytes > kMost) return Unexpected(text, kExpected);
    return static_cast<uint64_t>(bytes);
  }
  return Unexpected(text, kExpected);
}

absl::StatusOr<double> ParseDuration(absl::string_view text) {
  constexpr absl::string_view kExpected = "a duration such as 10ms, 90s, 10m or 2h";
  constexpr double kMost = 1e7;  // About four months.
  const absl::StatusOr<Quantity> quantity = ParseQuantity(text, kExpected);
  if (!quantity.ok()) return quantity.status();
  const std::pair<absl::string_view, double> units[] = {{"", 1},   {"us", 1e-6}, {"ms", 1e-3}, {"s", 1},
                                                        {"m", 60}, {"min", 60},  {"h", 3600}};
  for (const auto& [unit, factor] : units) {
    if (quantity->unit != unit) continue;
    const double seconds = quantity->number * factor;
    if (!(seconds > 0) || seconds > kMost) return Unexpected(text, kExpected);
    return seconds;
  }
  return Unexpected(text, kExpected);
}

absl::StatusOr<LatencyLimit> ParseLatencyLimit(absl::string_view text) {
  LatencyLimit limit;
  absl::string_view number = absl::StripAsciiWhitespace(text);
  if (absl::ConsumeSuffix(&number, "x")) {
    if (!absl::SimpleAtod(number, &limit.ratio) || !(limit.ratio > 0) || !std::isfinite(limit.ratio)) {
      return Unexpected(text, "a ratio greater than 0 such as 0.7x");
    }
    return limit;
  }
  const absl::StatusOr<double> seconds = ParseDuration(text);
  if (!seconds.ok()) return Unexpected(text, "a duration such as 10ms, or a ratio to the original such as 0.7x");
  limit.seconds = *seconds;
  return limit;
}

}  // namespace permafrost
