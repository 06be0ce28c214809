// Converts messages in protobuf's text format to binary form.
#ifndef PERMAFROST_IO_FORMATS_TEXT_MESSAGE_H_
#define PERMAFROST_IO_FORMATS_TEXT_MESSAGE_H_

#include <google/protobuf/message.h>

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace permafrost {

// Longer texts are rejected (InvalidArgument), because parsing takes many times their size in memory.
inline constexpr uint64_t kMaxTextBytes = uint64_t{1} << 30;

struct TextOptions {
  // Skip unknown fields instead of reporting them as errors.
  bool skips_unknown_fields = false;
};

// Returns the binary form of a text message, with map entries sorted by key. *message determines the type and is used
// for parsing. Returns InvalidArgument, with line and column, for malformed text and for messages above protobuf's size
// limit.
absl::StatusOr<std::string> TextToBinary(absl::string_view text, const TextOptions& options,
                                         google::protobuf::Message* message);

}  // namespace permafrost

#endif  // PERMAFROST_IO_FORMATS_TEXT_MESSAGE_H_
