// Comma-separated values (RFC 4180).
#ifndef PERMAFROST_TOOLS_COMMAND_LINE_CSV_H_
#define PERMAFROST_TOOLS_COMMAND_LINE_CSV_H_

#include <string>

#include "absl/strings/string_view.h"

namespace permafrost {

// Returns the text as one field, quoted if it contains a separator of fields or lines. A spreadsheet computes a field
// that starts with one of "=+-@", a tab or a carriage return: such a text gets an apostrophe in front. For texts, not
// for numbers.
std::string CsvField(absl::string_view text);

}  // namespace permafrost

#endif  // PERMAFROST_TOOLS_COMMAND_LINE_CSV_H_
