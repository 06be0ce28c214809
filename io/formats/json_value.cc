// Implements a recursive-descent JSON parser with bounded depth.
#include "io/formats/json_value.h"

#include <cstdint>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "graph/base/printable.h"
#include "graph/base/status.h"

namespace permafrost {
namespace {

constexpr int kMaxDepth = 64;

void AppendUtf8(uint32_t code, std::string* out) {
  if (code < 0x80) {
    out->push_back(static_cast<char>(code));
    return;
  }
  const int more = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
  const uint32_t lead = more == 1 ? 0xC0 : more == 2 ? 0xE0 : 0xF0;
  out->push_back(static_cast<char>(lead | (code >> (6 * more))));
  for (int i = more - 1; i >= 0; --i) out->push_back(static_cast<char>(0x80 | ((code >> (6 * i)) & 0x3F)));
}

class Parser {
 public:
  Parser(absl::string_view text, const JsonOptions& options) : text_(text), options_(options) {}

  absl::StatusOr<JsonValue> Run() {
    JsonValue value;
    PF_RETURN_IF_ERROR(Value(0, &value));
    SkipBlanks();
    if (at_ != text_.size()) return Error("expected the end of the file");
    return value;
  }

 private:
  absl::Status Error(absl::string_view what) const {
    size_t line = 1, column = 1;
    for (size_t i = 0; i < at_ && i < text_.size(); ++i) {
      column = text_[i] == '\n' ? 1 : column + 1;
      line += text_[i] == '\n' ? 1 : 0;
    }
    return absl::InvalidArgumentError(absl::StrCat("line ", line, ", column ", column, ": ", what));
  }

  void SkipBlanks() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t' || text_[at_] == '\r'))
      ++at_;
  }

  char Peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }

  bool Take(absl::string_view word) {
    if (text_.substr(at_, word.size()) != word) return false;
    at_ += word.size();
    return true;
  }

  // Parses a value. If `value` is null, the value is checked but not built.
  absl::Status Value(int depth, JsonValue* value) {
    if (depth > kMaxDepth) return Error(absl::StrCat("nests deeper than ", kMaxDepth));
    SkipBlanks();
    if (value != nullptr && ++num_values_ > options_.max_values) {
      return Error(absl::StrCat("found more than ", options_.max_values, " values"));
    }
    const size_t start = at_;
    JsonValue unused;
    JsonValue& found = value != nullptr ? *value : unused;
    switch (Peek()) {
      case '{':
      case '[': {
        JsonValue* const built = depth < options_.built_depth ? value : nullptr;
        const bool is_object = Peek() == '{';
        found.kind = is_object ? JsonValue::Kind::kObject : JsonValue::Kind::kArray;
        PF_RETURN_IF_ERROR(is_object ? Object(depth, built) : Array(depth, built));
        found.raw = text_.substr(start, at_ - start);
        return absl::OkStatus();
      }
      case '"':
        found.kind = JsonValue::Kind::kText;
        return Text(value != nullptr ? &value->text : nullptr);
      default:
        break;
    }
    if (Take("null")) return absl::OkStatus();
    found.kind = JsonValue::Kind::kBool;
    if ((found.boolean = Take("true")) || Take("false")) return absl::OkStatus();
    return Number(&found);
  }

  absl::Status Object(int depth, JsonValue* value) {
    ++at_;
    SkipBlanks();
    if (Take("}")) return absl::OkStatus();
    while (true) {
      SkipBlanks();
      if (Peek() != '"') return Error("expected a key in double quotes");
      JsonValue* member = nullptr;
      std::string* key = nullptr;
      if (value != nullptr) {
        auto& added = value->members.emplace_back();
        key = &added.first;
        member = &added.second;
      }
      PF_RETURN_IF_ERROR(Text(key));
      SkipBlanks();
      if (!Take(":")) return Error("expected ':'");
      PF_RETURN_IF_ERROR(Value(depth + 1, member));
      SkipBlanks();
      if (Take("}")) return value != nullptr ? CheckKeys(*value) : absl::OkStatus();
      if (!Take(",")) return Error("expected ',' or '}'");
    }
  }

  absl::Status CheckKeys(const JsonValue& object) const {
    absl::flat_hash_set<absl::string_view> keys;
    for (const auto& [key, value] : object.members) {
      if (!keys.insert(key).second) return Error(absl::StrCat("the object has the key '", Printable(key), "' twice"));
    }
    return absl::OkStatus();
  }

  absl::Status Array(int depth, JsonValue* value) {
    ++at_;
    SkipBlanks();
    if (Take("]")) return absl::OkStatus();
    while (true) {
      PF_RETURN_IF_ERROR(Value(depth + 1, value != nullptr ? &value->items.emplace_back() : nullptr));
      SkipBlanks();
      if (Take("]")) return absl::OkStatus();
      if (!Take(",")) return Error("expected ',' or ']'");
    }
  }

  absl::Status Number(JsonValue* value) {
    value->kind = JsonValue::Kind::kNumber;
    const size_t start = at_;
    const auto digits = [&] {
      const size_t first = at_;
      while (absl::ascii_isdigit(static_cast<unsigned char>(Peek()))) ++at_;
      return at_ - first;
    };
    Take("-");
    const size_t whole = at_;
    const size_t count = digits();
    bool is_number = count == 1 || (count > 1 && text_[whole] != '0');
    if (is_number && Take(".")) is_number = digits() > 0;
    if (is_number && (Take("e") || Take("E"))) {
      if (!Take("+")) Take("-");
      is_number = digits() > 0;
    }
    if (!is_number || !absl::SimpleAtod(text_.substr(start, at_ - start), &value->number)) {
      at_ = start;
      return Error("expected a value");
    }
    return absl::OkStatus();
  }

  bool Hex(uint32_t* code) {
    const absl::string_view digits = text_.substr(at_, 4);
    *code = 0;
    if (digits.size() < 4) return false;
    for (const char c : digits) {
      if (!absl::ascii_isxdigit(static_cast<unsigned char>(c))) return false;
      const int digit = absl::ascii_isdigit(static_cast<unsigned char>(c)) ? c - '0' : (c | 0x20) - 'a' + 10;
      *code = *code * 16 + static_cast<uint32_t>(digit);
    }
    at_ += 4;
    return true;
  }

  absl::Status Escape(std::string* out) {
    constexpr absl::string_view kLetters = "\"\\/bfnrt";
    constexpr absl::string_view kMeanings = "\"\\/\b\f\n\r\t";
    if (const size_t which = kLetters.find(Peek()); which != absl::string_view::npos && Peek() != '\0') {
      if (out != nullptr) out->push_back(kMeanings[which]);
      ++at_;
      return absl::OkStatus();
    }
    uint32_t code = 0;
    if (!Take("u") || !Hex(&code)) return Error("found an invalid escape");
    if (code >= 0xD800 && code < 0xDC00) {
      uint32_t low = 0;
      if (!Take("\\u") || !Hex(&low) || low < 0xDC00 || low > 0xDFFF) return Error("expected the second surrogate");
      code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
    } else if (code >= 0xDC00 && code < 0xE000) {
      return Error("found a second surrogate without the first");
    }
    if (out != nullptr) AppendUtf8(code, out);
    return absl::OkStatus();
  }

  // Parses a text. `out` may be null.
  absl::Status Text(std::string* out) {
    ++at_;
    while (true) {
      if (at_ == text_.size()) return Error("a text has no closing quote");
      if (Take("\"")) return absl::OkStatus();
      if (Take("\\")) {
        PF_RETURN_IF_ERROR(Escape(out));
        continue;
      }
      if (static_cast<unsigned char>(Peek()) < 0x20) return Error("a control character must be escaped");
      const size_t length = Utf8Length(text_.substr(at_));
      if (length == 0) return Error("not UTF-8");
      if (out != nullptr) out->append(text_.data() + at_, length);
      at_ += length;
    }
  }

  absl::string_view text_;
  JsonOptions options_;
  size_t at_ = 0;
  uint64_t num_values_ = 0;
};

absl::Status WrongMember(absl::string_view key, absl::string_view expected) {
  return absl::InvalidArgumentError(absl::StrCat("member '", key, "': expected ", expected));
}

}  // namespace

std::string JsonQuoted(absl::string_view text) {
  std::string out = "\"";
  while (!text.empty()) {
    const size_t length = Utf8Length(text);
    const unsigned char byte = static_cast<unsigned char>(text[0]);
    if (length == 0) {
      out += "\xEF\xBF\xBD";
    } else if (byte == '"' || byte == '\\') {
      out += '\\';
      out += text[0];
    } else if (byte == '\n') {
      out += "\\n";
    } else if (byte < 0x20) {
      absl::StrAppendFormat(&out, "\\u%04x", byte);
    } else {
      absl::StrAppend(&out, text.substr(0, length));
    }
    text.remove_prefix(length == 0 ? 1 : length);
  }
  return out + "\"";
}

const JsonValue* JsonValue::Find(absl::string_view key) const {
  for (const auto& [name, value] : members) {
    if (name == key) return &value;
  }
  return nullptr;
}

absl::StatusOr<JsonValue> ParseJson(absl::string_view text, const JsonOptions& options) {
  return Parser(text, options).Run();
}

absl::StatusOr<std::string> TextMember(const JsonValue& object, absl::string_view key) {
  const JsonValue* value = object.Find(key);
  if (value == nullptr || value->kind != JsonValue::Kind::kText) return WrongMember(key, "a text");
  return value->text;
}

absl::StatusOr<std::vector<std::string>> TextsMember(const JsonValue& object, absl::string_view key) {
  const JsonValue* value = object.Find(key);
  if (value == nullptr || value->kind != JsonValue::Kind::kArray) return WrongMember(key, "an array of texts");
  std::vector<std::string> texts;
  for (const JsonValue& item : value->items) {
    if (item.kind != JsonValue::Kind::kText) return WrongMember(key, "an array of texts");
    texts.push_back(item.text);
  }
  return texts;
}

}  // namespace permafrost
