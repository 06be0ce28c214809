// Reads the required numbers from JSON.
#include "tools/measuring/benchmark_baseline.h"

#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "io/formats/json_value.h"

namespace permafrost {
namespace {

absl::StatusOr<double> PositiveMember(const JsonValue& object, absl::string_view key) {
  const JsonValue* member = object.Find(key);
  if (member == nullptr || member->kind != JsonValue::Kind::kNumber || !(member->number > 0)) {
    return absl::InvalidArgumentError(absl::StrCat("expected a number above 0 under '", key, "'"));
  }
  return member->number;
}

absl::StatusOr<Baseline> ParseBaseline(absl::string_view text) {
  PF_ASSIGN_OR_RETURN(const JsonValue json, ParseJson(text));
  const JsonValue* runs = json.Find("runs");
  if (runs == nullptr) {
    return absl::InvalidArgumentError("found no 'runs', expected what benchmark_model --json prints");
  }
  Baseline baseline;
  PF_ASSIGN_OR_RETURN(baseline.median_seconds, PositiveMember(*runs, "median_seconds"));
  PF_ASSIGN_OR_RETURN(baseline.median.low, PositiveMember(*runs, "median_low_seconds"));
  PF_ASSIGN_OR_RETURN(baseline.median.high, PositiveMember(*runs, "median_high_seconds"));
  PF_ASSIGN_OR_RETURN(baseline.model, TextMember(json, "model"));
  PF_ASSIGN_OR_RETURN(baseline.delegate, TextMember(json, "delegate"));
  PF_ASSIGN_OR_RETURN(baseline.precision, TextMember(json, "precision"));
  PF_ASSIGN_OR_RETURN(const double threads, PositiveMember(json, "threads"));
  baseline.threads = threads < 1e6 ? static_cast<int>(threads) : 0;
  return baseline;
}

}  // namespace

absl::StatusOr<Baseline> ReadBaseline(FileSystem& files, const std::string& path) {
  PF_ASSIGN_OR_RETURN(const std::string text, files.ReadFile(path));
  absl::StatusOr<Baseline> baseline = ParseBaseline(text);
  PF_RETURN_IF_ERROR(Annotate(baseline.status(), absl::StrCat("'", path, "'")));
  return baseline;
}

BaselineVerdict CompareWithBaseline(const Baseline& baseline, const Sample& now, double allowed) {
  BaselineVerdict verdict;
  const Interval interval = now.MedianInterval();
  verdict.ratio = now.median() / baseline.median_seconds;
  verdict.interval = {interval.low / baseline.median.high, interval.high / baseline.median.low};
  verdict.is_regression = verdict.ratio > 1 + allowed && verdict.interval.low > 1;
  return verdict;
}

}  // namespace permafrost
