// The transform-string parser. Its scanner tracks the position, so that errors can point to a character.
#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "graph/base/all_errors.h"
#include "graph/base/status.h"
#include "graph/base/typographic_characters.h"
#include "transforms/pipeline/pipeline.h"

namespace permafrost {
namespace {

bool IsNameChar(char c) { return absl::ascii_isalnum(c) || c == '_'; }
bool IsValueChar(char c) { return IsNameChar(c) || c == '-' || c == '.' || c == '/'; }

// Describes a typographic character and the one to type instead.
std::string Described(const TypographicCharacter& character) {
  switch (character.kind) {
    case TypographicCharacter::Kind::kQuote:
      return "a typographic quote (use \")";
    case TypographicCharacter::Kind::kDash:
      return absl::StrCat(character.name, " (use -)");
    case TypographicCharacter::Kind::kSpace:
      break;
  }
  return absl::StrCat(character.name, " (use a space)");
}

class Scanner {
 public:
  explicit Scanner(absl::string_view text) : text_(text) {}

  bool AtEnd() const { return at_ == text_.size(); }
  char Peek() const { return AtEnd() ? '\0' : text_[at_]; }
  size_t position() const { return at_; }
  void Advance() { ++at_; }

  // Skips white space, and a backslash that ends a line.
  void SkipBlanks() {
    while (!AtEnd()) {
      if (absl::ascii_isspace(text_[at_])) {
        ++at_;
      } else if (text_[at_] == '\\' && at_ + 1 < text_.size() && (text_[at_ + 1] == '\n' || text_[at_ + 1] == '\r')) {
        at_ += 2;
      } else if (text_[at_] == '\\' && at_ + 1 == text_.size()) {
        ++at_;
      } else {
        return;
      }
    }
  }

  absl::string_view TakeWhile(bool (*accepts)(char)) {
    const size_t start = at_;
    while (!AtEnd() && accepts(text_[at_])) ++at_;
    return text_.substr(start, at_ - start);
  }

  // Reads up to and including the closing quote. A backslash escapes the next character and stays in the value. Returns
  // false if there is no closing quote.
  bool TakeQuoted(absl::string_view* value) {
    const size_t start = at_;
    while (!AtEnd() && text_[at_] != '"') at_ += text_[at_] == '\\' && at_ + 1 < text_.size() ? 2 : 1;
    *value = text_.substr(start, at_ - start);
    if (AtEnd()) return false;
    ++at_;
    return true;
  }

  // Returns an error with the message, the line that contains `where`, and a caret under that character.
  absl::Status ErrorAt(size_t where, absl::string_view expected) const {
    const size_t line_start = where == 0 ? 0 : text_.rfind('\n', where - 1) + 1;  // npos + 1 is 0.
    const size_t line_end = std::min(text_.find('\n', where), text_.size());
    const size_t line_number = static_cast<size_t>(std::count(text_.begin(), text_.begin() + where, '\n')) + 1;
    const auto columns = [](absl::string_view bytes) {  // One column per character: continuation bytes do not count.
      return std::count_if(bytes.begin(), bytes.end(), [](char c) { return (c & 0xc0) != 0x80; });
    };
    const size_t column = static_cast<size_t>(columns(text_.substr(line_start, where - line_start))) + 1;
    std::string padding;
    for (const char c : text_.substr(line_start, where - line_start)) {
      if ((c & 0xc0) != 0x80) padding += c == '\t' ? '\t' : ' ';
    }
    return absl::InvalidArgumentError(
        absl::StrCat("line ", line_number, ", column ", column, ": found ", Found(where), ", expected ", expected,
                     "\n  ", text_.substr(line_start, line_end - line_start), "\n  ", padding, "^"));
  }

 private:
  std::string Found(size_t where) const {
    if (where >= text_.size()) return "the end";
    const absl::string_view rest = text_.substr(where);
    if (const TypographicCharacter* character = LeadingTypographicCharacter(rest)) return Described(*character);
    if (rest[0] == '\'') return "a single quote (use \")";
    if (rest[0] == '\n') return "the end of the line";
    if (absl::ascii_isprint(rest[0])) return absl::StrCat("'", rest.substr(0, 1), "'");
    return "a character outside ASCII";
  }

  absl::string_view text_;
  size_t at_ = 0;
};

absl::Status ParseIgnoreErrors(const Scanner& scanner, size_t where, const std::string& value, bool* ignore) {
  const std::string lower = absl::AsciiStrToLower(value);
  if (lower != "true" && lower != "false") {
    return Annotate(scanner.ErrorAt(where, "true or false"),
                    absl::StrCat("ignore_errors should be true or false, found ", lower));
  }
  *ignore = lower == "true";
  return absl::OkStatus();
}

// Parses everything after "(" up to and including ")".
absl::Status ParseArguments(Scanner* scanner, size_t open, PassCall* call) {
  bool has_ignore_errors = false;
  bool may_take_comma = true;  // TensorFlow's parser also accepts one comma before the first argument.
  for (;;) {
    scanner->SkipBlanks();
    if (may_take_comma && scanner->Peek() == ',') {
      scanner->Advance();
      scanner->SkipBlanks();
      if (scanner->Peek() == ')') return scanner->ErrorAt(scanner->position(), "a parameter name after the comma");
    }
    if (scanner->AtEnd()) {
      return Annotate(scanner->ErrorAt(open, "a ) that closes this parameter list"), "unterminated parameter list");
    }
    if (scanner->Peek() == ')') {
      scanner->Advance();
      return absl::OkStatus();
    }
    const size_t name_at = scanner->position();
    PassArgument argument;
    argument.name = std::string(scanner->TakeWhile(IsNameChar));
    if (argument.name.empty()) return scanner->ErrorAt(name_at, "a parameter name, ',' or ')'");
    scanner->SkipBlanks();
    if (scanner->Peek() != '=') return scanner->ErrorAt(scanner->position(), "=");
    scanner->Advance();
    scanner->SkipBlanks();
    const size_t value_at = scanner->position();
    absl::string_view value;
    if (scanner->Peek() == '"') {
      scanner->Advance();
      if (!scanner->TakeQuoted(&value)) return scanner->ErrorAt(value_at, "a quote that closes this value");
    } else {
      value = scanner->TakeWhile(IsValueChar);
      if (value.empty())
        return scanner->ErrorAt(value_at, "a value (letters, digits, _-./, or anything in double quotes)");
    }
    argument.value = std::string(value);
    // TensorFlow's parser ignores one double and one single quote after a value.
    if (scanner->Peek() == '"') scanner->Advance();
    if (scanner->Peek() == '\'') scanner->Advance();
    const char next = scanner->Peek();
    // An unquoted value ends at a blank, a comma or the closing parenthesis. Any other character must be quoted.
    if (!scanner->AtEnd() && next != ',' && next != ')' && next != '\\' && !absl::ascii_isspace(next) &&
        !IsNameChar(next)) {
      return scanner->ErrorAt(scanner->position(), "',' or ')'; a value with other characters needs double quotes");
    }
    if (argument.name == "ignore_errors") {
      // As in TensorFlow, the first one counts.
      if (!has_ignore_errors) {
        PF_RETURN_IF_ERROR(ParseIgnoreErrors(*scanner, value_at, argument.value, &call->ignore_errors));
      }
      has_ignore_errors = true;
    } else {
      call->arguments.push_back(std::move(argument));
    }
  }
}

}  // namespace

ScannedPipeline ScanPipeline(absl::string_view text) {
  Scanner scanner(text);
  ScannedPipeline scanned;
  for (;;) {
    scanner.SkipBlanks();
    if (scanner.AtEnd()) return scanned;
    PassCall call;
    const size_t name_at = scanner.position();
    call.name = std::string(scanner.TakeWhile(IsNameChar));
    if (call.name.empty()) {
      const bool is_separator = scanner.Peek() == ',' || scanner.Peek() == ';';
      scanned.errors.push_back(scanner.ErrorAt(
          name_at, is_separator ? "a blank: transforms are separated by blanks alone" : "the name of a transform"));
      if (!is_separator) return scanned;
      scanner.Advance();
      continue;
    }
    scanner.SkipBlanks();
    if (scanner.Peek() == '(') {
      const size_t open = scanner.position();
      scanner.Advance();
      if (absl::Status status = ParseArguments(&scanner, open, &call); !status.ok()) {
        scanned.errors.push_back(std::move(status));
        return scanned;
      }
    }
    scanned.calls.push_back(std::move(call));
  }
}

absl::StatusOr<std::vector<PassCall>> ParsePipeline(absl::string_view text) {
  ScannedPipeline scanned = ScanPipeline(text);
  PF_RETURN_IF_ERROR(AllErrors(scanned.errors));
  return std::move(scanned.calls);
}

}  // namespace permafrost
