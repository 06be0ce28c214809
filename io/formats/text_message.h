// Protobuf's text format, of any message, to its binary form.
#ifndef PERMAFROST_IO_FORMATS_TEXT_MESSAGE_H_
#define PERMAFROST_IO_FORMATS_TEXT_MESSAGE_H_

#include <google/protobuf/message.h>

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace permafrost {

// A longer text is refused (InvalidArgument): parsing needs many times its size in memory.
inline constexpr uint64_t kMaxTextBytes = uint64_t{1} << 30;

struct TextOptions {
  // Fields that the message does not have are skipped. Otherwise they are errors.
  bool skips_unknown_fields = false;
};

// The binary form, map entries in the order of their keys, of the text of a message of the type of *message, which is
// used to parse it. InvalidArgument with line and column for anything else, and for more than a protobuf can hold.
absl::StatusOr<std::string> TextToBinary(absl::string_view text, const TextOptions& options,
                                         google::protobuf::Message* message);

}  // namespace permafrost

#endif  // PERMAFROST_IO_FORMATS_TEXT_MESSAGE_H_
