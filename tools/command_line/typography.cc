// Notices what a web page or a word processor makes of dashes and quotes in a pasted command.
#include "tools/command_line/typography.h"

#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace permafrost {
namespace {

struct Character {
  absl::string_view bytes;  // UTF-8.
  absl::string_view name;
};

constexpr Character kDashes[] = {
    {"\xE2\x80\x90", "a hyphen, U+2010"},      {"\xE2\x80\x91", "a non-breaking hyphen, U+2011"},
    {"\xE2\x80\x92", "a figure dash, U+2012"}, {"\xE2\x80\x93", "an en dash, U+2013"},
    {"\xE2\x80\x94", "an em dash, U+2014"},    {"\xE2\x80\x95", "a horizontal bar, U+2015"},
    {"\xE2\x88\x92", "a minus sign, U+2212"},
};

constexpr Character kQuotes[] = {
    {"\xE2\x80\x98", "a left single quotation mark, U+2018"},
    {"\xE2\x80\x99", "a right single quotation mark, U+2019"},
    {"\xE2\x80\x9A", "a low single quotation mark, U+201A"},
    {"\xE2\x80\x9C", "a left double quotation mark, U+201C"},
    {"\xE2\x80\x9D", "a right double quotation mark, U+201D"},
    {"\xE2\x80\x9E", "a low double quotation mark, U+201E"},
    {"\xC2\xAB", "a left guillemet, U+00AB"},
    {"\xC2\xBB", "a right guillemet, U+00BB"},
};

const Character* LeadingDash(absl::string_view text) {
  for (const Character& dash : kDashes) {
    if (absl::StartsWith(text, dash.bytes)) return &dash;
  }
  return nullptr;
}

// Takes quotes off both ends; the first one found, or null.
const Character* StripQuotes(absl::string_view* text) {
  const Character* found = nullptr;
  for (const Character& quote : kQuotes) {
    const bool at_start = absl::ConsumePrefix(text, quote.bytes);
    const bool at_end = absl::ConsumeSuffix(text, quote.bytes);
    if ((at_start || at_end) && found == nullptr) found = &quote;
  }
  return found;
}

}  // namespace

absl::Status CheckTypography(absl::string_view argument) {
  absl::string_view rest = argument;
  const Character* found_dash = nullptr;
  while (!rest.empty()) {
    const Character* dash = LeadingDash(rest);
    if (dash == nullptr && rest[0] != '-') break;
    if (dash != nullptr && found_dash == nullptr) found_dash = dash;
    rest.remove_prefix(dash == nullptr ? 1 : dash->bytes.size());
  }
  if (found_dash != nullptr && !rest.empty()) {
    return absl::InvalidArgumentError(absl::StrCat("'", argument, "' starts with ", found_dash->name,
                                                   ", as text copied from a web page often does; type it as '--", rest,
                                                   "'"));
  }
  const size_t equals = argument.find('=');
  const bool has_value = absl::StartsWith(argument, "--") && equals != absl::string_view::npos;
  const absl::string_view before = has_value ? argument.substr(0, equals + 1) : "";
  absl::string_view value = argument.substr(before.size());
  if (const Character* quote = StripQuotes(&value)) {
    return absl::InvalidArgumentError(absl::StrCat("'", argument, "' holds ", quote->name,
                                                   ", as text copied from a web page often does; type it as ", before,
                                                   "'", value, "' with straight quotes"));
  }
  return absl::OkStatus();
}

}  // namespace permafrost
