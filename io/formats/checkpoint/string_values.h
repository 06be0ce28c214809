// The strings of a variable as a shard stores them: all the lengths, a checksum of these, all the characters.
#ifndef PERMAFROST_IO_FORMATS_CHECKPOINT_STRING_VALUES_H_
#define PERMAFROST_IO_FORMATS_CHECKPOINT_STRING_VALUES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace permafrost {

// Decodes `count` strings, which take all of `bytes`. *crc is set to that which the entry of the variable should have,
// not masked: it is not that of the bytes, since lengths count as numbers of 4 or 8 bytes in it. `is_big_endian` is how
// the writer saw them. DataLoss with the byte.
absl::StatusOr<std::vector<std::string>> DecodeStringValues(absl::string_view bytes, uint64_t count, bool is_big_endian,
                                                            uint32_t* crc);

}  // namespace permafrost

#endif  // PERMAFROST_IO_FORMATS_CHECKPOINT_STRING_VALUES_H_
