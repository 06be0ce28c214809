// Implements parsing of the text file that names the latest checkpoint of a folder.
#include <algorithm>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "io/formats/checkpoint/checkpoint_files.h"

namespace permafrost {
namespace {

// Parses a sequence of `name: value`. A value is a number or one or more quoted strings, which are concatenated.
class StateParser {
 public:
  explicit StateParser(absl::string_view text) : rest_(text) {}

  absl::StatusOr<std::string> Parse() {
    std::string path;
    bool has_path = false;
    while (SkipSpace(), !rest_.empty()) {
      const absl::string_view name = TakeWord();
      SkipSpace();
      if (name.empty() || !TakeChar(':')) return Malformed("expected 'name: value'");
      SkipSpace();
      std::string value;
      if (!rest_.empty() && IsQuote(rest_[0])) {
        PF_ASSIGN_OR_RETURN(value, TakeStrings());
      } else if (TakeWord().empty()) {
        return Malformed("expected a string in quotes or a number");
      }
      if (!TakeChar(',')) TakeChar(';');
      if (name == "model_checkpoint_path") {
        path = std::move(value);
        has_path = true;
      }
    }
    if (!has_path || path.empty()) {
      return absl::DataLossError("found no 'model_checkpoint_path', expected the name of the latest checkpoint");
    }
    return path;
  }

 private:
  static bool IsQuote(char c) { return c == '"' || c == '\''; }

  absl::Status Malformed(absl::string_view what) const {
    return absl::DataLossError(absl::StrCat("line ", line_, ": ", what));
  }

  void Advance(size_t count) {
    for (const char c : rest_.substr(0, count)) line_ += c == '\n';
    rest_.remove_prefix(count);
  }

  // Skips white space and comments, which extend from # to the end of the line.
  void SkipSpace() {
    for (;;) {
      size_t count = 0;
      while (count < rest_.size() && absl::ascii_isspace(static_cast<unsigned char>(rest_[count]))) ++count;
      Advance(count);
      if (rest_.empty() || rest_[0] != '#') return;
      Advance(std::min(rest_.find('\n'), rest_.size()));
    }
  }

  bool TakeChar(char c) {
    SkipSpace();
    if (rest_.empty() || rest_[0] != c) return false;
    Advance(1);
    return true;
  }

  absl::string_view TakeWord() {
    size_t count = 0;
    const auto is_part = [](char c) {
      return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.' || c == '-' || c == '+';
    };
    while (count < rest_.size() && is_part(rest_[count])) ++count;
    const absl::string_view word = rest_.substr(0, count);
    Advance(count);
    return word;
  }

  absl::StatusOr<std::string> TakeStrings() {
    std::string value;
    while (!rest_.empty() && IsQuote(rest_[0])) {
      const char quote = rest_[0];
      size_t end = 1;
      while (end < rest_.size() && rest_[end] != quote && rest_[end] != '\n') end += rest_[end] == '\\' ? 2 : 1;
      if (end >= rest_.size() || rest_[end] != quote) return Malformed("a quoted string has no end");
      std::string piece;
      if (!absl::CUnescape(rest_.substr(1, end - 1), &piece)) return Malformed("found an unknown escape in a string");
      value += piece;
      Advance(end + 1);
      SkipSpace();
    }
    return value;
  }

  absl::string_view rest_;
  int line_ = 1;
};

}  // namespace

absl::StatusOr<std::string> ParseCheckpointState(absl::string_view text) { return StateParser(text).Parse(); }

}  // namespace permafrost
