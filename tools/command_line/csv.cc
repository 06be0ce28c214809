// Quotes fields of CSV.
#include "tools/command_line/csv.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"

namespace permafrost {

std::string CsvField(absl::string_view text) {
  constexpr absl::string_view kFormulas = "=+-@\t\r";
  const bool may_be_formula = !text.empty() && kFormulas.find(text[0]) != absl::string_view::npos;
  const absl::string_view guard = may_be_formula ? "'" : "";
  if (text.find_first_of(",\"\r\n") == absl::string_view::npos) return absl::StrCat(guard, text);
  return absl::StrCat("\"", guard, absl::StrReplaceAll(text, {{"\"", "\"\""}}), "\"");
}

}  // namespace permafrost
