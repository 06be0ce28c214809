// Recognises files that are often mistaken for a frozen graph, so that the error can say what to do.
#ifndef PERMAFROST_IO_FOREIGN_FORMAT_H_
#define PERMAFROST_IO_FOREIGN_FORMAT_H_

#include "absl/strings/string_view.h"

namespace permafrost {

// Returns a description of a file with this beginning and end, and what to do ("is a zip archive; unpack it first").
// Returns an empty string for an unknown format.
absl::string_view ForeignFormat(absl::string_view head, absl::string_view tail);

}  // namespace permafrost

#endif  // PERMAFROST_IO_FOREIGN_FORMAT_H_
