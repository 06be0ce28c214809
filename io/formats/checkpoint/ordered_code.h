// Order-preserving encodings, used for the keys of slices in a table.
#ifndef PERMAFROST_IO_FORMATS_CHECKPOINT_ORDERED_CODE_H_
#define PERMAFROST_IO_FORMATS_CHECKPOINT_ORDERED_CODE_H_

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

namespace permafrost {

// Appends the number of bytes, then the bytes, highest first.
void AppendOrdered(uint64_t value, std::string* out);
// Appends one to ten bytes, highest first. The number of leading ones gives the length; negative numbers are inverted.
void AppendOrdered(int64_t value, std::string* out);
// Appends the text with bytes 0 and 255 escaped, and an end mark.
void AppendOrdered(absl::string_view text, std::string* out);

}  // namespace permafrost

#endif  // PERMAFROST_IO_FORMATS_CHECKPOINT_ORDERED_CODE_H_
