// Texts: joined, split, read as numbers, escaped.
#include <cstdio>
#include <cstring>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace absl {
inline namespace selective {
namespace {

constexpr char kHexDigits[] = "0123456789abcdef";

// Writes the number so that it ends at `end`, and returns where it starts.
char* WriteNumber(uint64_t value, unsigned base, char* end) {
  do {
    *--end = kHexDigits[value % base];
    value /= base;
  } while (value != 0);
  return end;
}

template <typename EscapeByte>
std::string Escaped(std::string_view text, bool keeps_utf8, EscapeByte escape) {
  std::string escaped;
  for (const char c : text) {
    const char* const named = "n\nr\rt\t\"\"''\\\\";
    const char* name = named;
    while (*name != '\0' && name[1] != c) name += 2;
    if (*name != '\0') {
      escaped += '\\';
      escaped += *name;
    } else if ((c >= ' ' && c < 127) || (keeps_utf8 && c < 0)) {
      escaped += c;
    } else {
      escape(static_cast<unsigned char>(c), &escaped);
    }
  }
  return escaped;
}

}  // namespace

AlphaNum::AlphaNum(Hex hex) {
  char* const end = digits_ + sizeof digits_;
  const char* const begin = WriteNumber(hex.value, 16, end);
  text_ = {begin, static_cast<size_t>(end - begin)};
}

void AlphaNum::SetInteger(uint64_t value, bool is_negative) {
  char* const end = digits_ + sizeof digits_;
  char* begin = WriteNumber(is_negative ? 0 - value : value, 10, end);
  if (is_negative) *--begin = '-';
  text_ = {begin, static_cast<size_t>(end - begin)};
}

void AlphaNum::SetDouble(double value) {
  const int size = std::snprintf(digits_, sizeof digits_, "%g", value);
  text_ = {digits_, static_cast<size_t>(size < 0 ? 0 : size)};
}

namespace internal {

void AppendPieces(std::string* to, std::initializer_list<std::string_view> pieces) {
  for (const std::string_view piece : pieces) to->append(piece);
}

std::string CatPieces(std::initializer_list<std::string_view> pieces) {
  std::string joined;
  AppendPieces(&joined, pieces);
  return joined;
}

bool ParseInteger(std::string_view text, int64_t least, int64_t most, int64_t* value) {
  text = StripAsciiWhitespace(text);
  bool is_negative = false;
  if (!text.empty() && (text.front() == '-' || text.front() == '+')) {
    is_negative = text.front() == '-';
    text.remove_prefix(1);
  }
  if (text.empty()) return false;
  int64_t number = 0;  // Counts down for a negative number, of which there is one more.
  for (const char c : text) {
    if (!ascii_isdigit(static_cast<unsigned char>(c))) return false;
    const int digit = c - '0';
    if (__builtin_mul_overflow(number, int64_t{10}, &number) ||
        __builtin_add_overflow(number, int64_t{is_negative ? -digit : digit}, &number)) {
      return false;
    }
  }
  *value = number;
  return number >= least && number <= most;
}

}  // namespace internal

bool SimpleAtof(std::string_view text, float* value) {
  constexpr int kMostDigits = 15;
  constexpr int64_t kMostExponent = 22;
  text = StripAsciiWhitespace(text);
  const bool is_negative = !text.empty() && text.front() == '-';
  if (is_negative) text.remove_prefix(1);
  int64_t digits = 0, exponent = 0;
  int num_digits = 0;
  bool has_point = false;
  size_t i = 0;
  for (; i < text.size(); ++i) {
    if (text[i] == '.' && !has_point) {
      has_point = true;
      continue;
    }
    if (!ascii_isdigit(static_cast<unsigned char>(text[i]))) break;
    if (++num_digits > kMostDigits) return false;
    digits = 10 * digits + (text[i] - '0');
    if (has_point) --exponent;
  }
  if (num_digits == 0) return false;
  if (i < text.size()) {
    int64_t written = 0;
    if ((text[i] != 'e' && text[i] != 'E') || !internal::ParseInteger(text.substr(i + 1), -1000, 1000, &written)) {
      return false;
    }
    exponent += written;
  }
  if (exponent > kMostExponent || exponent < -kMostExponent) return false;
  double power = 1;
  for (int64_t j = 0; j < (exponent < 0 ? -exponent : exponent); ++j) power *= 10;
  const double number = exponent < 0 ? static_cast<double>(digits) / power : static_cast<double>(digits) * power;
  *value = static_cast<float>(is_negative ? -number : number);
  return true;
}

Pieces::Pieces(std::string_view text, char separator, int most, bool skip_empty) {
  while (true) {
    const size_t at = most == 0 ? text.npos : text.find(separator);
    const std::string_view piece = text.substr(0, at);
    if (!skip_empty || !piece.empty()) push_back(piece);
    if (at == text.npos) return;
    text.remove_prefix(at + 1);
    --most;
  }
}

std::string Utf8SafeCEscape(std::string_view text) {
  return Escaped(text, true, [](unsigned char c, std::string* escaped) {
    *escaped += '\\';
    for (int shift = 6; shift >= 0; shift -= 3) *escaped += kHexDigits[c >> shift & 7];
  });
}

std::string CHexEscape(std::string_view text) {
  return Escaped(text, false, [](unsigned char c, std::string* escaped) {
    *escaped += "\\x";
    *escaped += kHexDigits[c >> 4];
    *escaped += kHexDigits[c & 15];
  });
}

}  // namespace selective
}  // namespace absl
