// Typographic characters that web pages and word processors put in place of ASCII's quotes, dashes and spaces.
#ifndef PERMAFROST_GRAPH_BASE_TYPOGRAPHIC_CHARACTERS_H_
#define PERMAFROST_GRAPH_BASE_TYPOGRAPHIC_CHARACTERS_H_

#include <cstdint>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace permafrost {

struct TypographicCharacter {
  enum class Kind : uint8_t { kQuote, kDash, kSpace };

  Kind kind;
  absl::string_view bytes;       // UTF-8.
  absl::string_view name;        // With its article: "an en dash".
  absl::string_view code_point;  // "U+2013".
};

// Returns all of them, in the order of their code points.
absl::Span<const TypographicCharacter> TypographicCharacters();

// Returns the character that `text` starts with, or null.
const TypographicCharacter* LeadingTypographicCharacter(absl::string_view text);

}  // namespace permafrost

#endif  // PERMAFROST_GRAPH_BASE_TYPOGRAPHIC_CHARACTERS_H_
