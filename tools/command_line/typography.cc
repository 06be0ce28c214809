// Detects typographic dashes and quotes in commands pasted from a web page or a word processor.
#include "tools/command_line/typography.h"

#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "graph/base/typographic_characters.h"

namespace permafrost {
namespace {

using Kind = TypographicCharacter::Kind;

// Strips quotes from both ends. Returns the first one found, or null.
const TypographicCharacter* StripQuotes(absl::string_view* text) {
  const TypographicCharacter* found = nullptr;
  for (const TypographicCharacter& character : TypographicCharacters()) {
    if (character.kind != Kind::kQuote) continue;
    const bool at_start = absl::ConsumePrefix(text, character.bytes);
    const bool at_end = absl::ConsumeSuffix(text, character.bytes);
    if ((at_start || at_end) && found == nullptr) found = &character;
  }
  return found;
}

}  // namespace

absl::Status CheckTypography(absl::string_view argument) {
  absl::string_view rest = argument;
  const TypographicCharacter* found_dash = nullptr;
  while (!rest.empty()) {
    const TypographicCharacter* dash = LeadingTypographicCharacter(rest);
    if (dash != nullptr && dash->kind != Kind::kDash) dash = nullptr;
    if (dash == nullptr && rest[0] != '-') break;
    if (dash != nullptr && found_dash == nullptr) found_dash = dash;
    rest.remove_prefix(dash == nullptr ? 1 : dash->bytes.size());
  }
  if (found_dash != nullptr && !rest.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", argument, "' starts with ", found_dash->name, ", ", found_dash->code_point,
                     ", as text copied from a web page often does; type it as '--", rest, "'"));
  }
  const size_t equals = argument.find('=');
  const bool has_value = absl::StartsWith(argument, "--") && equals != absl::string_view::npos;
  const absl::string_view before = has_value ? argument.substr(0, equals + 1) : "";
  absl::string_view value = argument.substr(before.size());
  if (const TypographicCharacter* quote = StripQuotes(&value)) {
    return absl::InvalidArgumentError(absl::StrCat("'", argument, "' holds ", quote->name, ", ", quote->code_point,
                                                   ", as text copied from a web page often does; type it as ", before,
                                                   "'", value, "' with straight quotes"));
  }
  return absl::OkStatus();
}

}  // namespace permafrost
