// Implements joining, splitting, number conversion and escaping of texts.
#include <cmath>
#include <cstdarg>
#include <cstring>
#include <limits>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace absl {
inline namespace selective {
namespace {

constexpr char kHexDigits[] = "0123456789abcdef";

// Writes the number so that it ends at `end`, and returns its start.
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

namespace internal {
namespace {

void AppendNumber(uint64_t value, bool is_negative, unsigned base, std::string* to) {
  char digits[24];
  char* const end = digits + sizeof digits;
  char* begin = WriteNumber(is_negative ? 0 - value : value, base, end);
  if (is_negative) *--begin = '-';
  to->append(begin, static_cast<size_t>(end - begin));
}

// Writes a number like %g, except that the last of the six digits may differ if the value is within 1e-13 of a tie.
// printf's floating-point code would take 6 KB.
void AppendDouble(double value, std::string* to) {
  constexpr int kDigits = 6;
  constexpr uint64_t kLeast = 100000;  // The smallest number with this many digits.
  if (std::signbit(value)) {
    *to += '-';
    value = -value;
  }
  if (!(value <= std::numeric_limits<double>::max())) {
    to->append(value > 0 ? "inf" : "nan");
    return;
  }
  int exponent = 0;  // Of the first digit.
  uint64_t number = 0;
  if (value > 0) {
    exponent = kDigits - 1;
    for (; value >= 10 * static_cast<double>(kLeast); ++exponent) value /= 10;
    for (; value < static_cast<double>(kLeast); --exponent) value *= 10;
    number = static_cast<uint64_t>(value + 0.5);
    if (number == 10 * kLeast) {
      number = kLeast;
      ++exponent;
    }
  }
  char digits[kDigits + 1];
  for (int i = kDigits; i-- > 0; number /= 10) digits[i] = static_cast<char>('0' + number % 10);
  int count = kDigits;
  while (count > 1 && digits[count - 1] == '0') --count;
  const bool is_scientific = exponent < -4 || exponent >= kDigits;
  const int before_point = is_scientific ? 1 : exponent + 1;
  if (before_point <= 0) to->append("0.").append(static_cast<size_t>(-before_point), '0');
  for (int i = 0; i < count || i < before_point; ++i) {
    if (i == before_point && i > 0) *to += '.';
    *to += i < count ? digits[i] : '0';
  }
  if (!is_scientific) return;
  to->append(exponent < 0 ? "e-" : "e+");
  const int size = exponent < 0 ? -exponent : exponent;
  if (size < 10) *to += '0';
  AppendNumber(static_cast<uint64_t>(size), false, 10, to);
}

void AppendPiecesOf(std::string* to, const char* kinds, va_list pieces) {
  for (; *kinds != '\0'; ++kinds) {
    switch (static_cast<PieceKind>(*kinds)) {
      case kCText:
        if (const char* const text = va_arg(pieces, const char*); text != nullptr) to->append(text);
        break;
      case kString:
        to->append(*va_arg(pieces, const std::string*));
        break;
      case kView:
        to->append(*va_arg(pieces, const std::string_view*));
        break;
      case kSigned: {
        const int64_t number = va_arg(pieces, int64_t);
        AppendNumber(static_cast<uint64_t>(number), number < 0, 10, to);
        break;
      }
      case kUnsigned:
        AppendNumber(va_arg(pieces, uint64_t), false, 10, to);
        break;
      case kHex: {
        const Hex& hex = *va_arg(pieces, const Hex*);
        const size_t begin = to->size();
        AppendNumber(hex.value, false, 16, to);
        const auto width = static_cast<size_t>(hex.width);
        if (to->size() - begin < width) to->insert(begin, width - (to->size() - begin), '0');
        break;
      }
      case kDouble:
        AppendDouble(*va_arg(pieces, const double*), to);
        break;
    }
  }
}

}  // namespace

void AppendPieces(std::string* to, const char* kinds, ...) {
  va_list pieces;
  va_start(pieces, kinds);
  AppendPiecesOf(to, kinds, pieces);
  va_end(pieces);
}

std::string CatPieces(const char* kinds, ...) {
  std::string joined;
  va_list pieces;
  va_start(pieces, kinds);
  AppendPiecesOf(&joined, kinds, pieces);
  va_end(pieces);
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
  int64_t number = 0;  // Counts down for a negative number, because the range of negative numbers is larger by one.
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
  int num_digits = 0;  // Without leading zeros.
  bool has_point = false, has_digits = false;
  size_t i = 0;
  for (; i < text.size(); ++i) {
    if (text[i] == '.' && !has_point) {
      has_point = true;
      continue;
    }
    if (!ascii_isdigit(static_cast<unsigned char>(text[i]))) break;
    has_digits = true;
    if ((digits != 0 || text[i] != '0') && ++num_digits > kMostDigits) return false;
    digits = 10 * digits + (text[i] - '0');
    if (has_point) --exponent;
  }
  if (!has_digits) return false;
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
