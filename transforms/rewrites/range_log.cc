// Parses logged ranges.
#include "transforms/rewrites/range_log.h"

#include <cmath>
#include <optional>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace permafrost {
namespace {

constexpr absl::string_view kTag = "__requant_min_max:";
constexpr absl::string_view kNameSuffix = "__print__";
constexpr absl::string_view kMark = "__print__;__requant_min_max:";
// Number of bytes of a malformed line that a note shows.
constexpr size_t kShownLength = 80;

struct Record {
  std::string node;
  float min = 0;
  float max = 0;
};

// Returns the number before the only "]" of `text`.
std::optional<float> NumberInBrackets(absl::string_view text) {
  const std::vector<absl::string_view> parts = absl::StrSplit(text, ']');
  float value = 0;
  if (parts.size() != 2 || !absl::SimpleAtof(parts[0], &value)) return std::nullopt;
  return value;
}

std::optional<Record> ParseRecord(absl::string_view line) {
  const std::vector<absl::string_view> pieces = absl::StrSplit(line, ';');
  size_t last = 0;
  for (size_t i = 1; i < pieces.size(); ++i) {
    if (absl::StartsWith(pieces[i], kTag)) last = i;
  }
  if (last == 0) return std::nullopt;
  Record record;
  absl::string_view name = pieces[last - 1];
  if (!absl::ConsumeSuffix(&name, kNameSuffix)) return std::nullopt;
  record.node = std::string(name);
  const std::vector<absl::string_view> numbers = absl::StrSplit(pieces[last], '[');
  if (numbers.size() != 3 || numbers[0] != kTag) return std::nullopt;
  const std::optional<float> min = NumberInBrackets(numbers[1]);
  const std::optional<float> max = NumberInBrackets(numbers[2]);
  if (!min.has_value() || !max.has_value()) return std::nullopt;
  record.min = *min;
  record.max = *max;
  return record;
}

void Remember(int64_t number, absl::string_view line, int64_t* count, std::string* first) {
  if (++*count > 1) return;
  *first = absl::StrCat("line ", number, ": ", line.substr(0, kShownLength), line.size() > kShownLength ? "..." : "");
}

}  // namespace

RangeLog ParseRangeLog(absl::string_view text) {
  RangeLog log;
  int64_t number = 0;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    ++number;
    if (!absl::StrContains(line, kMark)) continue;
    const std::optional<Record> record = ParseRecord(line);
    if (!record.has_value()) {
      Remember(number, line, &log.num_malformed, &log.first_malformed);
    } else if (!std::isfinite(record->min) || !std::isfinite(record->max) || record->min > record->max) {
      Remember(number, line, &log.num_unusable, &log.first_unusable);
    } else {
      RangeRecords& records = log.nodes[record->node];
      records.mins.push_back(record->min);
      records.maxes.push_back(record->max);
      ++log.num_records;
    }
  }
  return log;
}

}  // namespace permafrost
