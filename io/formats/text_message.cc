// Implements parsing of text with protobuf, and error messages in the form of this project.
#include "io/formats/text_message.h"

#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/text_format.h>

#include <algorithm>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "graph/base/status.h"
#include "graph/base/typographic_characters.h"
#include "graph/base/wire.h"

namespace permafrost {
namespace {

namespace pb = google::protobuf;

// Protobuf's limit (2 GiB - 1).
constexpr uint64_t kMaxMessageBytes = 0x7fffffff;

// Records the first error. protobuf counts lines and columns from 0.
class FirstError : public pb::io::ErrorCollector {
 public:
  void AddError(int line, pb::io::ColumnNumber column, const std::string& message) override {
    if (++count_ > 1) return;
    line_ = line;
    column_ = column;
    message_ = message;
  }

  int count() const { return count_; }
  int line() const { return line_; }
  int column() const { return column_; }
  const std::string& message() const { return message_; }

 private:
  int count_ = 0;
  int line_ = 0;
  int column_ = 0;
  std::string message_;
};

absl::string_view LineOf(absl::string_view text, int line) {
  for (; line > 0; --line) {
    const size_t end = text.find('\n');
    if (end == absl::string_view::npos) return {};
    text.remove_prefix(end + 1);
  }
  return text.substr(0, text.find('\n'));
}

// Returns a hint about typographic quotes and dashes, which word processors and web pages substitute.
absl::string_view TypographyHint(absl::string_view line) {
  using Kind = TypographicCharacter::Kind;
  const auto has = [&](Kind kind) {
    return absl::c_any_of(TypographicCharacters(), [&](const TypographicCharacter& character) {
      return character.kind == kind && absl::StrContains(line, character.bytes);
    });
  };
  if (has(Kind::kQuote)) return "; the line has typographic quotes, expected plain ones (\" or ')";
  if (has(Kind::kDash)) return "; the line has a typographic dash, expected a plain one (-)";
  return "";
}

// Returns the beginning of a line in printable form.
std::string Excerpt(absl::string_view line) {
  size_t shown = std::min<size_t>(line.size(), 80);
  // Does not split a character.
  while (shown < line.size() && (static_cast<uint8_t>(line[shown]) & 0xc0) == 0x80) --shown;
  std::string text(line.substr(0, shown));
  for (char& c : text) {
    if (absl::ascii_iscntrl(static_cast<unsigned char>(c))) c = ' ';
  }
  return absl::StrCat("'", text, shown < line.size() ? "...'" : "'");
}

absl::Status ParseError(absl::string_view text, const FirstError& error) {
  const absl::string_view line = absl::StripAsciiWhitespace(LineOf(text, error.line()));
  std::string message = absl::StrReplaceAll(absl::StripSuffix(error.message(), "."), {{"permafrost.graphdef.", ""}});
  if (!message.empty()) message[0] = absl::ascii_tolower(static_cast<unsigned char>(message[0]));
  return absl::InvalidArgumentError(absl::StrCat("line ", error.line() + 1, ", column ", error.column() + 1, ": ",
                                                 message, ", in ", Excerpt(line), TypographyHint(line)));
}

}  // namespace

absl::StatusOr<std::string> TextToBinary(absl::string_view text, const TextOptions& options, pb::Message* message) {
  if (text.size() > kMaxTextBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("the text has ", text.size(), " bytes, expected at most ", kMaxTextBytes));
  }
  FirstError error;
  pb::TextFormat::Parser parser;
  parser.RecordErrorsTo(&error);
  parser.AllowUnknownField(options.skips_unknown_fields);
  parser.SetRecursionLimit(kMaxWireDepth);
  pb::io::ArrayInputStream stream(text.data(), static_cast<int>(text.size()));
  if (!parser.Parse(&stream, message)) return ParseError(text, error);
  const uint64_t size = message->ByteSizeLong();
  if (size > kMaxMessageBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("the graph needs ", size, " bytes, but a GraphDef has at most ", kMaxMessageBytes));
  }
  std::string binary;
  // protobuf would log text that is not UTF-8; ReadGraphDef reports it as a status.
  const pb::LogSilencer reader_reports;
  pb::io::StringOutputStream raw_output(&binary);
  pb::io::CodedOutputStream output(&raw_output);
  output.SetSerializationDeterministic(true);  // Map entries are sorted by key.
  message->SerializeWithCachedSizes(&output);
  output.Trim();
  return binary;
}

}  // namespace permafrost
