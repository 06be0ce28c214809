// Implements decoding and encoding of the armoured text form.
#include "io/formats/age/armor.h"

#include <algorithm>
#include <cstddef>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "graph/base/status.h"
#include "io/formats/age/encoding.h"

namespace permafrost::age {
namespace {

using absl::string_view;

constexpr string_view kBegin = "-----BEGIN AGE ENCRYPTED FILE-----";
constexpr string_view kEnd = "-----END AGE ENCRYPTED FILE-----";
constexpr size_t kColumns = 64;

absl::Status Bad(size_t line, string_view what) {
  return absl::DataLossError(absl::StrCat("armour, line ", line, ": ", what));
}

class Armoring : public FilterSink {
 public:
  explicit Armoring(ByteSink* out) : text_(absl::StrCat(kBegin, "\n")), out_(out) {}

  absl::Status Append(string_view bytes) override {
    while (!bytes.empty()) {
      const size_t taken = std::min(kLineBytes - held_.size(), bytes.size());
      held_.append(bytes.data(), taken);
      bytes.remove_prefix(taken);
      if (held_.size() < kLineBytes) return absl::OkStatus();
      EndLine();
      if (text_.size() >= kPiece) PF_RETURN_IF_ERROR(PassOn());
    }
    return absl::OkStatus();
  }

  absl::Status Finish() override {
    if (!held_.empty()) EndLine();
    absl::StrAppend(&text_, kEnd, "\n");
    return PassOn();
  }

 private:
  static constexpr size_t kLineBytes = kColumns / 4 * 3;
  static constexpr size_t kPiece = size_t{1} << 20;

  void EndLine() {
    const std::string line = Base64(held_);
    absl::StrAppend(&text_, line, string_view("===").substr(0, (4 - line.size() % 4) % 4), "\n");
    held_.clear();
  }

  absl::Status PassOn() {
    PF_RETURN_IF_ERROR(out_->Append(text_));
    text_.clear();
    return absl::OkStatus();
  }

  std::string held_;  // The incomplete line.
  std::string text_;
  ByteSink* const out_;
};

}  // namespace

std::unique_ptr<FilterSink> ArmorInto(ByteSink* out) { return std::make_unique<Armoring>(out); }

bool IsArmored(string_view beginning) { return absl::StartsWith(absl::StripLeadingAsciiWhitespace(beginning), kBegin); }

absl::StatusOr<std::string> Dearmor(string_view text) {
  const string_view rest = absl::StripLeadingAsciiWhitespace(text);
  size_t number = 1 + static_cast<size_t>(std::count(text.begin(), rest.begin(), '\n'));
  text = absl::StripTrailingAsciiWhitespace(rest);
  std::string bytes;
  bytes.reserve(text.size() / 4 * 3);
  bool is_short = false;  // The last line was shorter than the others; only the end may follow.
  for (bool is_first = true;; is_first = false, ++number) {
    if (text == kEnd) break;
    const size_t end = text.find('\n');
    string_view line = absl::StripSuffix(text.substr(0, end), "\r");
    if (end == string_view::npos) return Bad(number, absl::StrCat("the text has no '", kEnd, "'"));
    text.remove_prefix(end + 1);
    if (is_first) {
      if (line != kBegin) return Bad(number, absl::StrCat("found text after '", kBegin, "'"));
      continue;
    }
    if (is_short) return Bad(number, absl::StrCat("found a line after a short one, expected '", kEnd, "'"));
    if (line.empty() || line.size() > kColumns || line.size() % 4 != 0) {
      return Bad(number, absl::StrCat("found a line of ", line.size(), " columns, expected ", kColumns));
    }
    is_short = line.size() < kColumns;
    if (absl::EndsWith(line, "=")) {
      is_short = true;
      line = absl::StripSuffix(absl::StripSuffix(line, "="), "=");
    }
    const absl::StatusOr<std::string> decoded = FromBase64(line);
    if (!decoded.ok()) return Bad(number, decoded.status().message());
    bytes.append(*decoded);
  }
  if (bytes.empty()) return Bad(number, "found no content before the end");
  return bytes;
}

}  // namespace permafrost::age
