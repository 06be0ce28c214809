// Parses JSON from untrusted sources.
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
  absl::string_view raw;                                   // The text of an array or object.

  // Returns null if this is not an object or has no such member.
  const JsonValue* Find(absl::string_view key) const;
};

struct JsonOptions {
  // Arrays and objects nested deeper than this are checked but not built; they only have `raw`.
  int built_depth = 64;
  // Maximum number of values built. Each takes about a hundred bytes, however short its text is.
  uint64_t max_values = std::numeric_limits<uint64_t>::max();
};

// Parses a JSON text (RFC 8259). Returns InvalidArgument, with line and column, for text that is malformed, is not
// UTF-8, has an object with duplicate keys, or is nested deeper than 64. Memory use is proportional to the text. `raw`
// views the text.
absl::StatusOr<JsonValue> ParseJson(absl::string_view text, const JsonOptions& options = {});

// Returns `text` with quotes and JSON escapes. Bytes that are not UTF-8 become U+FFFD.
std::string JsonQuoted(absl::string_view text);

// Return the member `key` of an object as a text, or as an array of texts. Return InvalidArgument if it is missing or
// of another kind.
absl::StatusOr<std::string> TextMember(const JsonValue& object, absl::string_view key);
absl::StatusOr<std::vector<std::string>> TextsMember(const JsonValue& object, absl::string_view key);

}  // namespace permafrost

#endif  // PERMAFROST_IO_FORMATS_JSON_VALUE_H_
