// Implements the mutations.
#include "tests/fuzz/mutator.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "graph/base/wire.h"

namespace permafrost {
namespace {

// Returns the fields of a message, each with its tag, or an empty list if it is malformed.
std::vector<WireField> FieldsOf(absl::string_view message) {
  std::vector<WireField> fields;
  WireReader reader(message);
  WireField field;
  while (reader.Next(&field)) fields.push_back(field);
  if (!reader.status().ok()) fields.clear();
  return fields;
}

constexpr absl::string_view kTexts[] = {"",    "\xff", "\xed\xa0\x80", "\xc0\x80", "\xf4\x90\x80\x80", "^",
                                        "a:0", "a",    "\xc3\xa4"};
constexpr uint64_t kNumbers[] = {0, 1, 127, 128, 0x7fffffff, 0x80000000, 0xffffffff, ~uint64_t{0}};

}  // namespace

void Mutator::FlipBit(std::string* text) {
  if (!text->empty()) (*text)[Below(text->size())] ^= static_cast<char>(1 << Below(8));
}

void Mutator::SetByte(std::string* text) {
  constexpr char kBytes[] = {0, 1, 2, 10, 0x7f, static_cast<char>(0x80), static_cast<char>(0xff)};
  if (!text->empty()) (*text)[Below(text->size())] = kBytes[Below(sizeof(kBytes))];
}

void Mutator::Insert(std::string* text) {
  std::string piece;
  for (size_t i = Below(8) + 1; i > 0; --i) piece.push_back(static_cast<char>(random_()));
  text->insert(Below(text->size() + 1), piece);
}

void Mutator::Delete(std::string* text) {
  if (!text->empty()) text->erase(Below(text->size()), 1 + Below(16));
}

void Mutator::Splice(std::string* text, const std::string& other) {
  if (!other.empty()) text->insert(Below(text->size() + 1), other.substr(Below(other.size()), 1 + Below(64)));
}

void Mutator::MutateFieldList(std::vector<std::string>* fields, absl::string_view other) {
  const size_t at = Below(fields->size());
  std::string made;
  const uint32_t number = static_cast<uint32_t>(1 + Below(22));
  switch (Below(9)) {
    case 0:
      fields->push_back((*fields)[at]);
      return;
    case 1:
      fields->erase(fields->begin() + static_cast<std::ptrdiff_t>(at));
      return;
    case 2:
      std::swap((*fields)[at], fields->back());
      return;
    case 3: {  // The same content with another number or wire type.
      WireReader reader((*fields)[at]);
      WireField field;
      if (reader.Next(&field)) AppendBytesField(number, field.bytes, &made);
      break;
    }
    case 4:
      AppendBytesField(number, kTexts[Below(std::size(kTexts))], &made);
      break;
    case 5:
      AppendVarintField(number, kNumbers[Below(std::size(kNumbers))], &made);
      break;
    case 6:
      AppendFixed32Field(number, static_cast<uint32_t>(random_()), &made);
      break;
    case 7: {  // Nested groups, sometimes deep enough to reach the limit.
      const size_t depth = Below(4) == 0 ? 95 + Below(10) : 1 + Below(3);
      for (size_t i = 0; i < depth; ++i) AppendTag(number, WireType::kStartGroup, &made);
      AppendVarintField(1, 1, &made);
      for (size_t i = 0; i < depth; ++i) AppendTag(number, WireType::kEndGroup, &made);
      break;
    }
    case 8: {  // A field of the other input.
      const std::vector<WireField> others = FieldsOf(other);
      if (!others.empty()) made = std::string(others[Below(others.size())].whole);
      break;
    }
  }
  fields->insert(fields->begin() + static_cast<std::ptrdiff_t>(at), made);
}

std::string Mutator::MutateFields(absl::string_view message, absl::string_view other) {
  // Descends to a random message, and corrects the enclosing lengths on the way back.
  struct Level {
    std::vector<std::string> fields;
    size_t at;
    uint32_t number;
  };
  std::vector<Level> path;
  for (;;) {
    const std::vector<WireField> fields = FieldsOf(message);
    if (fields.empty()) break;
    Level level;
    for (const WireField& field : fields) level.fields.emplace_back(field.whole);
    level.at = Below(fields.size());
    level.number = fields[level.at].number;
    path.push_back(level);
    const WireField& down = fields[level.at];
    if (down.type != WireType::kLengthDelimited || FieldsOf(down.bytes).empty() || Below(4) == 0) break;
    message = down.bytes;
  }
  if (path.empty()) return std::string(message);
  MutateFieldList(&path.back().fields, other);
  std::string inner = absl::StrJoin(path.back().fields, "");
  for (size_t i = path.size() - 1; i > 0; --i) {
    Level& level = path[i - 1];
    level.fields[level.at].clear();
    AppendBytesField(level.number, inner, &level.fields[level.at]);
    inner = absl::StrJoin(level.fields, "");
  }
  return inner;
}

std::string Mutator::TamperLength(absl::string_view message) {
  const char* const begin = message.data();
  absl::string_view inner = message;
  for (;;) {
    const std::vector<WireField> fields = FieldsOf(inner);
    if (fields.empty()) return std::string(message);
    const WireField& field = fields[Below(fields.size())];
    if (field.type != WireType::kLengthDelimited) return std::string(message);
    if (!FieldsOf(field.bytes).empty() && Below(3) != 0) {
      inner = field.bytes;
      continue;
    }
    const size_t tag_at = static_cast<size_t>(field.whole.data() - begin);
    const size_t payload_at = static_cast<size_t>(field.bytes.data() - begin);
    std::string made;
    AppendTag(field.number, WireType::kLengthDelimited, &made);
    const uint64_t lengths[] = {field.bytes.size() + 1, field.bytes.size() - 1, field.bytes.size() * 2,
                                kNumbers[Below(std::size(kNumbers))]};
    AppendVarint(lengths[Below(std::size(lengths))], &made);
    return absl::StrCat(message.substr(0, tag_at), made, message.substr(payload_at));
  }
}

std::string Mutator::MutateOnce(const std::string& input, const std::string& other) {
  std::string text = input;
  switch (Below(10)) {
    case 0:
      FlipBit(&text);
      return text;
    case 1:
      SetByte(&text);
      return text;
    case 2:
      Insert(&text);
      return text;
    case 3:
      Delete(&text);
      return text;
    case 4:
      Splice(&text, other);
      return text;
    case 5:
    case 6:
      return TamperLength(input);
    default:
      return MutateFields(input, other);
  }
}

std::string Mutator::Mutate(const std::string& input, const std::string& other) {
  std::string text = input;
  for (size_t i = 1 + Below(4); i > 0; --i) text = MutateOnce(text, other);
  return text;
}

}  // namespace permafrost
