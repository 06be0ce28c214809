// Reads JSON, whoever wrote it.
#ifndef PERMAFROST_IO_FORMATS_JSON_VALUE_H_
#define PERMAFROST_IO_FORMATS_JSON_VALUE_H_

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace permafrost {

struct JsonValue {
  enum class Kind { kNull, kBool, kNumber, kText, kArray, kObject };
  Kind kind = Kind::kNull;
  bool boolean = false;
  double number = 0;
  std::string text;
  std::vector<JsonValue> items;                            // Of an array.
  std::vector<std::pair<std::string, JsonValue>> members;  // Of an object, in the order of the file.
  absl::string_view raw;                                   // How an array or object stands in the text.

  // Null when this is no object or has no such member.
  const JsonValue* Find(absl::string_view key) const;
};

struct JsonOptions {
  // Arrays and objects inside this many others are checked but not built: they are their `raw` only.
  int built_depth = 64;
  // Values that are built, before more is refused: each takes about a hundred bytes, however short its text.
  uint64_t max_values = std::numeric_limits<uint64_t>::max();
};

// InvalidArgument with line and column for text that is not JSON (RFC 8259), holds bytes that are no UTF-8, has an
// object with a key twice, or nests deeper than 64. Memory is proportional to the text. `raw` views the text.
absl::StatusOr<JsonValue> ParseJson(absl::string_view text, const JsonOptions& options = {});

// `text` with the quotes and escapes of JSON. Bytes that are no UTF-8 become U+FFFD.
std::string JsonQuoted(absl::string_view text);

// Bytes of the well-formed UTF-8 sequence at the start of `text`; 0 when it is none.
size_t Utf8Length(absl::string_view text);

// The member `key` of an object, as a text, or as an array of texts. InvalidArgument when it is missing or of another
// kind.
absl::StatusOr<std::string> TextMember(const JsonValue& object, absl::string_view key);
absl::StatusOr<std::vector<std::string>> TextsMember(const JsonValue& object, absl::string_view key);

}  // namespace permafrost

#endif  // PERMAFROST_IO_FORMATS_JSON_VALUE_H_
