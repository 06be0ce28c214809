// The two spellings of bytes as text in age: base64 in headers, bech32 in keys.
#ifndef PERMAFROST_IO_FORMATS_AGE_ENCODING_H_
#define PERMAFROST_IO_FORMATS_AGE_ENCODING_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace permafrost::age {

// Standard base64 without '=' at the end. Decoding takes one spelling of each value only: unused bits must be zero.
std::string Base64(absl::string_view bytes);
// InvalidArgument says what is wrong, without a place.
absl::StatusOr<std::string> FromBase64(absl::string_view text);

// Bech32 (BIP 173) without a limit on its length. `prefix` is in lower case; the text comes out so.
std::string Bech32(absl::string_view prefix, absl::string_view bytes);

struct Bech32Text {
  std::string prefix;  // In lower case.
  std::string bytes;
};
// Takes text that is all in lower or all in upper case. Neither time nor memory accesses depend on the data characters,
// since private keys are spelt so. InvalidArgument does not repeat any of the text.
absl::StatusOr<Bech32Text> FromBech32(absl::string_view text);

}  // namespace permafrost::age

#endif  // PERMAFROST_IO_FORMATS_AGE_ENCODING_H_
