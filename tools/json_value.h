// Reads JSON: the files that our own tools write, and what people make of them.
#ifndef PERMAFROST_TOOLS_JSON_VALUE_H_
#define PERMAFROST_TOOLS_JSON_VALUE_H_

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

  // Null when this is no object or has no such member.
  const JsonValue* Find(absl::string_view key) const;
};

// InvalidArgument with line and column for text that is not JSON (RFC 8259), holds bytes that are no UTF-8, or nests
// deeper than 64. Memory is proportional to the text.
absl::StatusOr<JsonValue> ParseJson(absl::string_view text);

// The member `key` of an object, as a text, or as an array of texts. InvalidArgument when it is missing or of another
// kind.
absl::StatusOr<std::string> TextMember(const JsonValue& object, absl::string_view key);
absl::StatusOr<std::vector<std::string>> TextsMember(const JsonValue& object, absl::string_view key);

}  // namespace permafrost

#endif  // PERMAFROST_TOOLS_JSON_VALUE_H_
