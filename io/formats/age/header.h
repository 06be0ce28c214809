// The header of an age file, a text that lists the recipients. docs/formats/encryption.md describes the layout.
#ifndef PERMAFROST_IO_FORMATS_AGE_HEADER_H_
#define PERMAFROST_IO_FORMATS_AGE_HEADER_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace permafrost::age {

inline constexpr absl::string_view kMagic = "age-encryption.org/";
inline constexpr absl::string_view kVersionLine = "age-encryption.org/v1\n";
inline constexpr size_t kMacBytes = 32;

// Size limit of a header: enough for ten thousand recipients. Each recipient costs a multiplication on the curve.
inline constexpr size_t kMaxHeaderBytes = size_t{1} << 20;

// The file key, encrypted for one recipient.
struct Stanza {
  std::vector<std::string> arguments;  // The first is the type: "X25519".
  std::string body;                    // Decoded.
};

struct Header {
  std::vector<Stanza> stanzas;  // At least one.
  std::string mac;              // kMacBytes bytes.
  size_t authenticated = 0;     // Size of the part that the MAC covers, from the beginning to "---".
  size_t size = 0;              // In bytes, including the line feed after the MAC.
};

// Parses the header at the beginning of `file`, which may be cut off after kMaxHeaderBytes. Accepts only canonical
// headers. Returns DataLoss with the byte offset, Unimplemented for a version other than 1.
absl::StatusOr<Header> ParseHeader(absl::string_view file);

// Returns the text that the MAC covers. REQUIRES: arguments are not empty and consist of printable characters.
std::string AuthenticatedText(absl::Span<const Stanza> stanzas);
// Returns the last line, which follows that text.
std::string MacLine(absl::string_view mac);

}  // namespace permafrost::age

#endif  // PERMAFROST_IO_FORMATS_AGE_HEADER_H_
