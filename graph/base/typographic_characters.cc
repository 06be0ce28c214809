// Implements the table of typographic characters, in the order of their code points.
#include "graph/base/typographic_characters.h"

#include "absl/strings/match.h"

namespace permafrost {
namespace {

using Kind = TypographicCharacter::Kind;

constexpr TypographicCharacter kCharacters[] = {
    {Kind::kSpace, "\u00a0", "a non-breaking space", "U+00A0"},
    {Kind::kQuote, "\u00ab", "a left guillemet", "U+00AB"},
    {Kind::kQuote, "\u00bb", "a right guillemet", "U+00BB"},
    {Kind::kDash, "\u2010", "a typographic hyphen", "U+2010"},
    {Kind::kDash, "\u2011", "a non-breaking hyphen", "U+2011"},
    {Kind::kDash, "\u2012", "a figure dash", "U+2012"},
    {Kind::kDash, "\u2013", "an en dash", "U+2013"},
    {Kind::kDash, "\u2014", "an em dash", "U+2014"},
    {Kind::kDash, "\u2015", "a horizontal bar", "U+2015"},
    {Kind::kQuote, "\u2018", "a left single quotation mark", "U+2018"},
    {Kind::kQuote, "\u2019", "a right single quotation mark", "U+2019"},
    {Kind::kQuote, "\u201a", "a low single quotation mark", "U+201A"},
    {Kind::kQuote, "\u201c", "a left double quotation mark", "U+201C"},
    {Kind::kQuote, "\u201d", "a right double quotation mark", "U+201D"},
    {Kind::kQuote, "\u201e", "a low double quotation mark", "U+201E"},
    {Kind::kDash, "\u2212", "a minus sign", "U+2212"},
};

}  // namespace

absl::Span<const TypographicCharacter> TypographicCharacters() { return kCharacters; }

const TypographicCharacter* LeadingTypographicCharacter(absl::string_view text) {
  for (const TypographicCharacter& character : kCharacters) {
    if (absl::StartsWith(text, character.bytes)) return &character;
  }
  return nullptr;
}

}  // namespace permafrost
