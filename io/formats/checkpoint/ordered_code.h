// Encodings whose bytes sort as the values do: the keys of slices in a table.
#ifndef PERMAFROST_IO_FORMATS_CHECKPOINT_ORDERED_CODE_H_
#define PERMAFROST_IO_FORMATS_CHECKPOINT_ORDERED_CODE_H_

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

namespace permafrost {

// The number of bytes, and the bytes, highest first.
void AppendOrdered(uint64_t value, std::string* out);
// One to ten bytes, highest first: leading ones tell how many, inverted for negative numbers.
void AppendOrdered(int64_t value, std::string* out);
// With 0 and 255 escaped, and an end mark.
void AppendOrdered(absl::string_view text, std::string* out);

}  // namespace permafrost

#endif  // PERMAFROST_IO_FORMATS_CHECKPOINT_ORDERED_CODE_H_
