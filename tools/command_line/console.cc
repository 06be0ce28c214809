// Formatting of text, tables, sizes and progress.
#include "tools/command_line/console.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "graph/base/printable.h"

namespace permafrost {
namespace {

absl::string_view StyleCode(Style style) {
  switch (style) {
    case Style::kPlain:
      return "";
    case Style::kBold:
      return "\x1b[1m";
    case Style::kDim:
      return "\x1b[2m";
    case Style::kGood:
      return "\x1b[32m";
    case Style::kBad:
      return "\x1b[31m";
    case Style::kWarning:
      return "\x1b[33m";
  }
  return "";
}

// Returns the number of columns of UTF-8 text, one per code point.
size_t Width(absl::string_view text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}

}  // namespace

std::string Console::Styled(Style style, absl::string_view text) const {
  if (!color || style == Style::kPlain) return std::string(text);
  return absl::StrCat(StyleCode(style), text, "\x1b[0m");
}

void Console::Progress(absl::string_view line) const {
  if (!progress) return;
  err << "\r\x1b[K" << Printable(line) << std::flush;
}

std::string FormatCount(uint64_t count) {
  const std::string digits = absl::StrCat(count);
  std::string out;
  for (size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % 3 == 0) out.push_back(',');
    out.push_back(digits[i]);
  }
  return out;
}

std::string FormatBytes(uint64_t bytes) {
  if (bytes < 1000) return absl::StrCat(bytes, " B");
  const char* units[] = {"kB", "MB", "GB", "TB", "PB", "EB"};
  double value = static_cast<double>(bytes) / 1000;
  size_t unit = 0;
  // 999.995 would print as 1000.00.
  while (value >= 999.995) {
    value /= 1000;
    ++unit;
  }
  return absl::StrFormat("%.2f %s", value, units[unit]);
}

std::string FormatBytesExactly(uint64_t bytes) {
  if (bytes < 1000) return absl::StrCat(bytes, " bytes");
  return absl::StrCat(FormatBytes(bytes), " (", FormatCount(bytes), " bytes)");
}

std::string FormatSeconds(double seconds) {
  if (seconds < 1e-3) return absl::StrFormat("%.0f us", seconds * 1e6);
  if (seconds < 1) return absl::StrFormat("%.1f ms", seconds * 1e3);
  return absl::StrFormat("%.2f s", seconds);
}

std::string FormatNumber(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  return absl::StrFormat("%.4g", value);
}

void Table::Print(const Console& console, absl::string_view indent) const {
  std::vector<size_t> widths;
  for (size_t i = 0; i < columns_.size(); ++i) {
    size_t width = Width(columns_[i].title);
    for (const std::vector<std::string>& row : rows_) width = std::max(width, Width(Printable(row[i])));
    widths.push_back(width);
  }
  const auto line = [&](const auto& cell) {
    std::string text(indent);
    for (size_t i = 0; i < columns_.size(); ++i) {
      const std::string content = Printable(cell(i));
      const std::string padding(widths[i] - Width(content), ' ');
      absl::StrAppend(&text, i == 0 ? "" : "  ", columns_[i].is_number ? padding : "", content,
                      columns_[i].is_number ? "" : padding);
    }
    return std::string(absl::StripTrailingAsciiWhitespace(text));
  };
  console.out << console.Styled(Style::kBold, line([&](size_t i) { return columns_[i].title; })) << "\n";
  for (const std::vector<std::string>& row : rows_) console.out << line([&](size_t i) { return row[i]; }) << "\n";
}

}  // namespace permafrost
