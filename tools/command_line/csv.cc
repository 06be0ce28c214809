// Quotes fields of CSV.
#include "tools/command_line/csv.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"

namespace permafrost {

std::string CsvField(absl::string_view text) {
  if (text.find_first_of(",\"\r\n") == absl::string_view::npos) return std::string(text);
  return absl::StrCat("\"", absl::StrReplaceAll(text, {{"\"", "\"\""}}), "\"");
}

}  // namespace permafrost
