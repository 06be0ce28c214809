// Writes JSON.
#include "tools/json.h"

#include <cmath>
#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace permafrost {
namespace {

// Bytes of the well-formed UTF-8 sequence at the start of `text`, or 0.
size_t Utf8Length(absl::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  if (lead < 0x80) return 1;
  const size_t length = lead >= 0xF0 && lead < 0xF5   ? 4
                        : lead >= 0xE0 && lead < 0xF0 ? 3
                        : lead >= 0xC2 && lead < 0xE0 ? 2
                                                      : 0;
  if (length == 0 || text.size() < length) return 0;
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
  }
  // Overlong forms, surrogates, and what lies beyond U+10FFFF.
  if ((lead == 0xE0 && byte(1) < 0xA0) || (lead == 0xED && byte(1) >= 0xA0) || (lead == 0xF0 && byte(1) < 0x90) ||
      (lead == 0xF4 && byte(1) >= 0x90)) {
    return 0;
  }
  return length;
}

}  // namespace

std::string JsonQuoted(absl::string_view text) {
  std::string out = "\"";
  while (!text.empty()) {
    const size_t length = Utf8Length(text);
    const unsigned char byte = static_cast<unsigned char>(text[0]);
    if (length == 0) {
      out += "\xEF\xBF\xBD";
    } else if (byte == '"' || byte == '\\') {
      out += '\\';
      out += text[0];
    } else if (byte == '\n') {
      out += "\\n";
    } else if (byte < 0x20) {
      absl::StrAppendFormat(&out, "\\u%04x", byte);
    } else {
      absl::StrAppend(&out, text.substr(0, length));
    }
    text.remove_prefix(length == 0 ? 1 : length);
  }
  return out + "\"";
}

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

JsonWriter& JsonWriter::Texts(const std::vector<std::string>& values) {
  BeginArray();
  for (const std::string& value : values) Text(value);
  return End();
}

}  // namespace permafrost
