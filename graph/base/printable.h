// Escapes text from files for terminals and logs: the only definition of what is printed as it is.
#ifndef PERMAFROST_GRAPH_BASE_PRINTABLE_H_
#define PERMAFROST_GRAPH_BASE_PRINTABLE_H_

#include <cstddef>
#include <string>

#include "absl/strings/string_view.h"

namespace permafrost {

// Returns the size of the well-formed UTF-8 sequence at the start of `text` in bytes, or 0 if there is none.
size_t Utf8Length(absl::string_view text);

// Returns `text` as one line, with each control character and each byte that is not UTF-8 as "\xNN". A name from a file
// can then neither send escape sequences to a terminal nor add lines to the output.
std::string Printable(absl::string_view text);

// Same, for text of several lines: line feeds stay, and every line after the first starts with two blanks or more. A
// name inside can then not form a line that looks like one of the tool's own.
std::string PrintableLines(absl::string_view text);

}  // namespace permafrost

#endif  // PERMAFROST_GRAPH_BASE_PRINTABLE_H_
