// Implements the escaping of text.
#include "graph/base/printable.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace permafrost {
namespace {

void AppendEscaped(absl::string_view bytes, std::string* out) {
  constexpr char kDigits[] = "0123456789abcdef";
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    out->append({'\\', 'x', kDigits[byte >> 4], kDigits[byte & 15]});
  }
}

}  // namespace

size_t Utf8Length(absl::string_view text) {
  const auto byte = [&](size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u; };
  const auto follows = [&](size_t i) { return (byte(i) & 0xC0) == 0x80; };
  const unsigned first = byte(0);
  if (first < 0x80) return 1;
  if (first >= 0xC2 && first <= 0xDF) return follows(1) ? 2 : 0;
  if (first >= 0xE0 && first <= 0xEF) {
    if (!follows(1) || !follows(2)) return 0;
    const bool is_long = first == 0xE0 && byte(1) < 0xA0;
    const bool is_surrogate = first == 0xED && byte(1) > 0x9F;
    return is_long || is_surrogate ? 0 : 3;
  }
  if (first >= 0xF0 && first <= 0xF4) {
    if (!follows(1) || !follows(2) || !follows(3)) return 0;
    return (first == 0xF0 && byte(1) < 0x90) || (first == 0xF4 && byte(1) > 0x8F) ? 0 : 4;
  }
  return 0;
}

std::string Printable(absl::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const size_t length = Utf8Length(text);
    const absl::string_view character = text.substr(0, std::max<size_t>(length, 1));
    // U+0080 to U+009F are control characters too: one of them starts control sequences as Escape does. U+2028 and
    // U+2029 separate lines.
    const bool is_control = character.size() == 1 ? absl::ascii_iscntrl(static_cast<unsigned char>(character[0]))
                                                  : (character >= "\xC2\x80" && character <= "\xC2\x9F") ||
                                                        character == "\xE2\x80\xA8" || character == "\xE2\x80\xA9";
    if (length == 0 || is_control) {
      AppendEscaped(character, &out);
    } else {
      out.append(character.data(), character.size());
    }
    text.remove_prefix(character.size());
  }
  return out;
}

std::string PrintableLines(absl::string_view text) {
  std::string out;
  bool is_first = true;
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    const bool is_indented = line.empty() || line.substr(0, 2) == "  ";
    absl::StrAppend(&out, is_first ? "" : is_indented ? "\n" : "\n  ", Printable(line));
    is_first = false;
  }
  return out;
}

}  // namespace permafrost
