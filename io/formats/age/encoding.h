// Text encodings of age: base64 in headers, bech32 in keys.
#ifndef PERMAFROST_IO_FORMATS_AGE_ENCODING_H_
#define PERMAFROST_IO_FORMATS_AGE_ENCODING_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace permafrost::age {

// Encodes as standard base64 without padding. Decoding accepts only the canonical form: unused bits must be zero.
std::string Base64(absl::string_view bytes);
// Decodes base64. Errors are InvalidArgument and describe the problem without its position.
absl::StatusOr<std::string> FromBase64(absl::string_view text);

// Encodes as bech32 (BIP 173) without a limit on the length. `prefix` must be in lower case, as is the result.
std::string Bech32(absl::string_view prefix, absl::string_view bytes);

struct Bech32Text {
  std::string prefix;  // In lower case.
  std::string bytes;
};
// Decodes text that is entirely in lower or upper case. Neither time nor memory accesses depend on the data characters,
// because private keys have this form. InvalidArgument errors do not repeat any part of the text.
absl::StatusOr<Bech32Text> FromBech32(absl::string_view text);

}  // namespace permafrost::age

#endif  // PERMAFROST_IO_FORMATS_AGE_ENCODING_H_
