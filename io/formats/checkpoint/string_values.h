// The strings of a variable as stored in a shard: all lengths, a checksum of the lengths, then all characters.
#ifndef PERMAFROST_IO_FORMATS_CHECKPOINT_STRING_VALUES_H_
#define PERMAFROST_IO_FORMATS_CHECKPOINT_STRING_VALUES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace permafrost {

// Decodes `count` strings, which take all of `bytes`. Sets *crc to the unmasked checksum that the entry of the variable
// must have. It is not the checksum of `bytes`, because lengths enter it as numbers of 4 or 8 bytes in the byte order
// of the writer, `is_big_endian`. Returns DataLoss with the byte offset.
absl::StatusOr<std::vector<std::string>> DecodeStringValues(absl::string_view bytes, uint64_t count, bool is_big_endian,
                                                            uint32_t* crc);

}  // namespace permafrost

#endif  // PERMAFROST_IO_FORMATS_CHECKPOINT_STRING_VALUES_H_
