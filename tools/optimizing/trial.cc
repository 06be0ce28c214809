// Writes and reads the measurements of trials.
#include "tools/optimizing/trial.h"

#include <cmath>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "io/formats/json_value.h"

namespace permafrost {
namespace {

absl::Status Malformed(absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("a trial lacks a valid '", what, "'"));
}

// Infinity is null in JSON.
absl::StatusOr<double> NumberMember(const JsonValue& object, absl::string_view key) {
  const JsonValue* value = object.Find(key);
  if (value == nullptr) return Malformed(key);
  if (value->kind == JsonValue::Kind::kNull) return std::numeric_limits<double>::infinity();
  if (value->kind != JsonValue::Kind::kNumber) return Malformed(key);
  return value->number;
}

// Counts are at most 2^53, so that a double holds them exactly.
absl::StatusOr<int64_t> CountMember(const JsonValue& object, absl::string_view key) {
  PF_ASSIGN_OR_RETURN(const double number, NumberMember(object, key));
  if (!(number >= 0) || number > 9007199254740992.0 || number != std::floor(number)) return Malformed(key);
  return static_cast<int64_t>(number);
}

}  // namespace

std::string RunChoice::Flags() const {
  return absl::StrCat("--delegate=", delegate, " --precision=", precision, " --threads=", threads);
}

absl::string_view NameOf(TrialInputs inputs) {
  switch (inputs) {
    case TrialInputs::kFew:
      return "few";
    case TrialInputs::kSearch:
      return "search";
    case TrialInputs::kHeldBack:
      return "held back";
    case TrialInputs::kSeeded:
      break;
  }
  return "seeded";
}

std::string TrialRequest::Key() const { return absl::StrCat(NameOf(inputs), " | ", run.Flags(), " | ", transforms); }

void WriteTrialResult(const TrialResult& result, JsonWriter* json) {
  json->BeginObject();
  json->Key("failure").Text(result.failure);
  json->Key("bytes").Count(result.bytes);
  json->Key("compressed_bytes").Count(result.compressed_bytes);
  json->Key("memory_bytes").Integer(result.memory_bytes);
  json->Key("nodes").Integer(result.nodes);
  json->Key("outputs").BeginArray();
  for (const OutputMeasure& output : result.accuracy.outputs) {
    json->BeginObject();
    json->Key("name").Text(output.name);
    json->Key("relative_rms").Number(output.relative_rms);
    json->Key("rms").Number(output.rms);
    json->Key("class_rows").Integer(output.class_rows);
    json->Key("other_classes").Integer(output.other_classes);
    json->End();
  }
  json->End();
  json->Key("labelled_rows").Integer(result.accuracy.labels.rows);
  json->Key("right").Integer(result.accuracy.labels.right);
  json->Key("reference_right").Integer(result.accuracy.labels.reference_right);
  json->End();
}

absl::StatusOr<TrialResult> ParseTrialResult(absl::string_view text) {
  PF_ASSIGN_OR_RETURN(const JsonValue value, ParseJson(text));
  TrialResult result;
  PF_ASSIGN_OR_RETURN(result.failure, TextMember(value, "failure"));
  const std::pair<absl::string_view, int64_t*> counts[] = {
      {"memory_bytes", &result.memory_bytes},
      {"nodes", &result.nodes},
      {"labelled_rows", &result.accuracy.labels.rows},
      {"right", &result.accuracy.labels.right},
      {"reference_right", &result.accuracy.labels.reference_right},
  };
  for (const auto& [key, count] : counts) {
    PF_ASSIGN_OR_RETURN(*count, CountMember(value, key));
  }
  PF_ASSIGN_OR_RETURN(const int64_t bytes, CountMember(value, "bytes"));
  PF_ASSIGN_OR_RETURN(const int64_t compressed_bytes, CountMember(value, "compressed_bytes"));
  result.bytes = static_cast<uint64_t>(bytes);
  result.compressed_bytes = static_cast<uint64_t>(compressed_bytes);
  const JsonValue* outputs = value.Find("outputs");
  if (outputs == nullptr || outputs->kind != JsonValue::Kind::kArray) return Malformed("outputs");
  for (const JsonValue& item : outputs->items) {
    OutputMeasure& output = result.accuracy.outputs.emplace_back();
    PF_ASSIGN_OR_RETURN(output.name, TextMember(item, "name"));
    PF_ASSIGN_OR_RETURN(output.relative_rms, NumberMember(item, "relative_rms"));
    PF_ASSIGN_OR_RETURN(output.rms, NumberMember(item, "rms"));
    PF_ASSIGN_OR_RETURN(output.class_rows, CountMember(item, "class_rows"));
    PF_ASSIGN_OR_RETURN(output.other_classes, CountMember(item, "other_classes"));
  }
  return result;
}

void WriteTimes(const std::vector<TimedTrial>& times, JsonWriter* json) {
  json->BeginArray();
  for (const TimedTrial& time : times) {
    json->BeginObject();
    json->Key("failure").Text(time.failure);
    json->Key("median_seconds").Number(time.median_seconds);
    json->Key("low_seconds").Number(time.low_seconds);
    json->Key("high_seconds").Number(time.high_seconds);
    json->Key("ratio").Number(time.ratio);
    json->Key("low_ratio").Number(time.low_ratio);
    json->Key("high_ratio").Number(time.high_ratio);
    json->Key("rounds").Integer(time.rounds);
    json->End();
  }
  json->End();
}

absl::StatusOr<std::vector<TimedTrial>> ParseTimes(absl::string_view text, const std::vector<TrialRequest>& requests) {
  PF_ASSIGN_OR_RETURN(const JsonValue value, ParseJson(text));
  if (value.kind != JsonValue::Kind::kArray || value.items.size() != requests.size()) return Malformed("times");
  std::vector<TimedTrial> times;
  for (size_t i = 0; i < requests.size(); ++i) {
    const JsonValue& item = value.items[i];
    TimedTrial& time = times.emplace_back();
    time.request = requests[i];
    PF_ASSIGN_OR_RETURN(time.failure, TextMember(item, "failure"));
    const std::pair<absl::string_view, double*> numbers[] = {
        {"median_seconds", &time.median_seconds}, {"low_seconds", &time.low_seconds},
        {"high_seconds", &time.high_seconds},     {"ratio", &time.ratio},
        {"low_ratio", &time.low_ratio},           {"high_ratio", &time.high_ratio},
    };
    for (const auto& [key, number] : numbers) {
      PF_ASSIGN_OR_RETURN(*number, NumberMember(item, key));
    }
    PF_ASSIGN_OR_RETURN(time.rounds, CountMember(item, "rounds"));
  }
  return times;
}

}  // namespace permafrost
