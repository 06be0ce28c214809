// Recognises files that are no frozen graph but are often taken for one, so that an error can say what to do.
#ifndef PERMAFROST_IO_FOREIGN_FORMAT_H_
#define PERMAFROST_IO_FOREIGN_FORMAT_H_

#include "absl/strings/string_view.h"

namespace permafrost {

// What a file with this beginning and this end is and what to do about it ("is a zip archive; unpack it first"), or an
// empty string.
absl::string_view ForeignFormat(absl::string_view head, absl::string_view tail);

}  // namespace permafrost

#endif  // PERMAFROST_IO_FOREIGN_FORMAT_H_
