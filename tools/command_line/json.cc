// Writes JSON.
#include "tools/command_line/json.h"

#include <cmath>
#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "io/formats/json_value.h"

namespace permafrost {

void JsonWriter::Separate() {
  if (after_key_) {
    after_key_ = false;
    return;
  }
  if (levels_.empty()) return;
  out_ << (levels_.back().is_empty ? "\n" : ",\n") << std::string(2 * levels_.size(), ' ');
  levels_.back().is_empty = false;
}

JsonWriter& JsonWriter::Begin(char start, char end) {
  Separate();
  out_ << start;
  levels_.push_back({end, true});
  return *this;
}

JsonWriter& JsonWriter::End() {
  const Level level = levels_.back();
  levels_.pop_back();
  if (!level.is_empty) out_ << "\n" << std::string(2 * levels_.size(), ' ');
  out_ << level.end;
  if (levels_.empty()) out_ << "\n";
  return *this;
}

JsonWriter& JsonWriter::Key(absl::string_view key) {
  Separate();
  out_ << JsonQuoted(key) << ": ";
  after_key_ = true;
  return *this;
}

JsonWriter& JsonWriter::Raw(absl::string_view text) {
  Separate();
  out_ << text;
  return *this;
}

JsonWriter& JsonWriter::Text(absl::string_view value) { return Raw(JsonQuoted(value)); }
JsonWriter& JsonWriter::Integer(int64_t value) { return Raw(absl::StrCat(value)); }
JsonWriter& JsonWriter::Count(uint64_t value) { return Raw(absl::StrCat(value)); }
JsonWriter& JsonWriter::Bool(bool value) { return Raw(value ? "true" : "false"); }
JsonWriter& JsonWriter::Null() { return Raw("null"); }

JsonWriter& JsonWriter::Number(double value) {
  if (!std::isfinite(value)) return Null();
  for (const int digits : {6, 15, 17}) {
    const std::string text = absl::StrFormat("%.*g", digits, value);
    if (digits == 17 || std::strtod(text.c_str(), nullptr) == value) return Raw(text);
  }
  return *this;
}

JsonWriter& JsonWriter::Dimensions(const Shape& shape) {
  // On one line, for readers.
  return shape.has_rank() ? Raw(absl::StrCat("[", absl::StrJoin(shape.dims(), ", "), "]")) : Null();
}

JsonWriter& JsonWriter::Texts(const std::vector<std::string>& values) {
  BeginArray();
  for (const std::string& value : values) Text(value);
  return End();
}

}  // namespace permafrost
