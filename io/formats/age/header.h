// The header of an age file: to whom it is encrypted, as text. docs/formats/encryption.md has the layout.
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

// What a header may take: one for ten thousand people. Each recipient costs a multiplication on the curve.
inline constexpr size_t kMaxHeaderBytes = size_t{1} << 20;

// The file's key, encrypted for one recipient.
struct Stanza {
  std::vector<std::string> arguments;  // The first is the type: "X25519".
  std::string body;                    // Decoded.
};

struct Header {
  std::vector<Stanza> stanzas;  // At least one.
  std::string mac;              // kMacBytes bytes.
  size_t authenticated = 0;     // Bytes that the MAC is about, from the beginning up to "---".
  size_t size = 0;              // Bytes, up to and including the line feed after the MAC.
};

// Reads the header at the beginning of `file`, which may be cut off after kMaxHeaderBytes. Takes one spelling of each
// header only. DataLoss names the byte; Unimplemented for a version of the format that is not 1.
absl::StatusOr<Header> ParseHeader(absl::string_view file);

// The bytes that the MAC is about. REQUIRES: arguments of printable characters, none of them empty.
std::string AuthenticatedText(absl::Span<const Stanza> stanzas);
// The last line, which follows them.
std::string MacLine(absl::string_view mac);

}  // namespace permafrost::age

#endif  // PERMAFROST_IO_FORMATS_AGE_HEADER_H_
