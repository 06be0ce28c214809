// Implements parsing and writing of headers, line by line.
#include "io/formats/age/header.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "graph/base/status.h"
#include "io/formats/age/encoding.h"

namespace permafrost::age {
namespace {

using absl::string_view;

constexpr size_t kColumns = 64;
constexpr string_view kStanzaMark = "-> ";
constexpr string_view kMacMark = "---";

bool IsArgument(string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) { return c > 0x20 && c < 0x7f; });
}

// Returns the part of a line that messages show.
std::string Shown(string_view line) {
  constexpr size_t kShown = 40;
  return absl::StrCat("'", absl::CHexEscape(line.substr(0, kShown)), line.size() > kShown ? "..." : "", "'");
}

class Parser {
 public:
  explicit Parser(string_view file) : file_(file) {}

  absl::StatusOr<Header> Parse() {
    PF_RETURN_IF_ERROR(ParseVersion());
    for (;;) {
      const string_view mark = file_.substr(at_, kMacMark.size());
      if (mark == kMacMark) break;
      PF_RETURN_IF_ERROR(ParseStanza());
    }
    if (header_.stanzas.empty()) return Bad("found no recipient, expected a line that begins with '-> '");
    PF_RETURN_IF_ERROR(ParseMac());
    return std::move(header_);
  }

 private:
  // Returns an error about the line that was read last.
  absl::Status Bad(string_view what) const {
    return absl::DataLossError(absl::StrCat("header, byte ", line_start_, ": ", what));
  }

  absl::Status NextLine(string_view* line) {
    line_start_ = at_;
    const size_t end = file_.find('\n', at_);
    if (end == string_view::npos || end >= kMaxHeaderBytes) {
      if (file_.size() < kMaxHeaderBytes) return Bad("the file is truncated within the header");
      return Bad(absl::StrCat("the header has more than ", kMaxHeaderBytes, " bytes"));
    }
    *line = file_.substr(at_, end - at_);
    at_ = end + 1;
    return absl::OkStatus();
  }

  absl::Status ParseVersion() {
    string_view line;
    PF_RETURN_IF_ERROR(NextLine(&line));
    if (line == absl::StripSuffix(kVersionLine, "\n")) return absl::OkStatus();
    string_view version = line;
    if (absl::ConsumePrefix(&version, kMagic) && IsArgument(version)) {
      return absl::UnimplementedError(absl::StrCat("found version ", Shown(version), " of the format, expected 'v1'"));
    }
    return Bad(absl::StrCat("found ", Shown(line), ", expected 'age-encryption.org/v1'"));
  }

  absl::Status ParseStanza() {
    string_view line;
    PF_RETURN_IF_ERROR(NextLine(&line));
    if (!absl::ConsumePrefix(&line, kStanzaMark)) {
      return Bad(absl::StrCat("found ", Shown(line), ", expected a line that begins with '-> ' or '--- '"));
    }
    Stanza stanza;
    for (const string_view argument : absl::StrSplit(line, ' ')) {
      if (!IsArgument(argument)) {
        return Bad(absl::StrCat("found the argument ", Shown(argument), ", expected printable characters"));
      }
      stanza.arguments.emplace_back(argument);
    }
    do {
      PF_RETURN_IF_ERROR(NextLine(&line));
      if (line.size() > kColumns) {
        return Bad(absl::StrCat("found a line of ", line.size(), " columns, expected at most ", kColumns));
      }
      // Each line ends at a byte boundary, so lines can be decoded separately.
      absl::StatusOr<std::string> bytes = FromBase64(line);
      if (!bytes.ok()) return Bad(bytes.status().message());
      absl::StrAppend(&stanza.body, *bytes);
    } while (line.size() == kColumns);
    header_.stanzas.push_back(std::move(stanza));
    return absl::OkStatus();
  }

  absl::Status ParseMac() {
    header_.authenticated = at_ + kMacMark.size();
    string_view line;
    PF_RETURN_IF_ERROR(NextLine(&line));
    line.remove_prefix(kMacMark.size());
    if (!absl::ConsumePrefix(&line, " ")) return Bad("found no space after '---', expected '--- ' and a checksum");
    absl::StatusOr<std::string> mac = FromBase64(line);
    if (!mac.ok()) return Bad(mac.status().message());
    if (mac->size() != kMacBytes) {
      return Bad(absl::StrCat("found a checksum of ", mac->size(), " bytes, expected ", kMacBytes));
    }
    header_.mac = *std::move(mac);
    header_.size = at_;
    return absl::OkStatus();
  }

  const string_view file_;
  size_t at_ = 0;
  size_t line_start_ = 0;
  Header header_;
};

}  // namespace

absl::StatusOr<Header> ParseHeader(string_view file) { return Parser(file).Parse(); }

std::string AuthenticatedText(absl::Span<const Stanza> stanzas) {
  std::string text(kVersionLine);
  for (const Stanza& stanza : stanzas) {
    absl::StrAppend(&text, "->");
    for (const std::string& argument : stanza.arguments) absl::StrAppend(&text, " ", argument);
    absl::StrAppend(&text, "\n");
    const std::string body = Base64(stanza.body);
    // The last line is shorter than the others and may be empty, which marks the end for readers.
    for (size_t i = 0; i <= body.size(); i += kColumns) absl::StrAppend(&text, body.substr(i, kColumns), "\n");
  }
  absl::StrAppend(&text, kMacMark);
  return text;
}

std::string MacLine(string_view mac) { return absl::StrCat(" ", Base64(mac), "\n"); }

}  // namespace permafrost::age
