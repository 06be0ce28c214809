// Regular expressions: parses a pattern to a tree, compiles the tree to a program, and runs the program.
#include "runtime_check/kernels/regular_expression.h"

#include <algorithm>
#include <array>
#include <memory>
#include <optional>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "runtime_check/kernels/unicode_category.h"

namespace permafrost {

std::pair<int32_t, size_t> CodePointAt(absl::string_view text, size_t at) {
  constexpr std::pair<int32_t, size_t> kNone = {-1, 1};
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  const uint8_t lead = byte(at);
  if (lead < 0x80) return {lead, 1};
  const size_t length = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (lead < 0xc2 || lead > 0xf4 || text.size() - at < length) return kNone;
  int32_t code_point = lead & (0x7f >> length);
  for (size_t i = 1; i < length; ++i) {
    if ((byte(at + i) & 0xc0) != 0x80) return kNone;
    code_point = code_point << 6 | (byte(at + i) & 0x3f);
  }
  constexpr int32_t kSmallest[] = {0, 0, 0x80, 0x800, 0x10000};
  const bool is_surrogate = code_point >= 0xd800 && code_point <= 0xdfff;
  if (code_point < kSmallest[length] || code_point > 0x10ffff || is_surrogate) return kNone;
  return {code_point, length};
}

void AppendCodePoint(uint32_t code_point, std::string* text) {
  const auto put = [&](uint32_t byte) { text->push_back(static_cast<char>(byte)); };
  if (code_point < 0x80) return put(code_point);
  if (code_point < 0x800) {
    put(0xc0 | code_point >> 6);
  } else {
    if (code_point < 0x10000) {
      put(0xe0 | code_point >> 12);
    } else {
      put(0xf0 | code_point >> 18);
      put(0x80 | (code_point >> 12 & 0x3f));
    }
    put(0x80 | (code_point >> 6 & 0x3f));
  }
  put(0x80 | (code_point & 0x3f));
}

namespace {

constexpr uint32_t kLastCodePoint = 0x10ffff;
// Limits of RE2: the count of repetitions, and the nesting depth of groups.
constexpr int kMostRepetitions = 1000;
constexpr int kMostDepth = 1000;
// Limits on the program. RE2's default is about 5 MB, at 16 bytes per instruction and several instructions per code
// point.
constexpr size_t kMostInstructions = size_t{1} << 16;
constexpr size_t kMostRanges = size_t{1} << 18;

bool IsWordByte(absl::string_view text, size_t at) {
  return at < text.size() && (absl::ascii_isalnum(static_cast<unsigned char>(text[at])) || text[at] == '_');
}

}  // namespace

// Parses by recursive descent into a tree. The tree is compiled afterwards, since a repetition compiles its part
// several times.
class RegularExpressionCompiler {
 public:
  using Range = RegularExpression::Range;
  using Code = RegularExpression::Code;
  using Place = RegularExpression::Place;
  using Instruction = RegularExpression::Instruction;

  explicit RegularExpressionCompiler(absl::string_view pattern) : pattern_(pattern) {}

  absl::StatusOr<RegularExpression> Run() {
    PF_ASSIGN_OR_RETURN(const Tree tree, Alternation(0));
    if (!AtEnd()) return Bad("an unexpected ')'");
    PF_RETURN_IF_ERROR(Emit({Code::kSave, Place(), 0, 0}));
    PF_RETURN_IF_ERROR(Compile(*tree));
    PF_RETURN_IF_ERROR(Emit({Code::kSave, Place(), 1, 0}));
    PF_RETURN_IF_ERROR(Emit({Code::kMatch}));
    result_.num_groups_ = num_groups_;
    return std::move(result_);
  }

 private:
  enum class Kind { kEmpty, kRanges, kAssert, kSequence, kChoice, kRepeat, kGroup };
  struct TreeNode;
  using Tree = std::unique_ptr<TreeNode>;
  struct TreeNode {
    Kind kind = Kind::kEmpty;
    std::vector<Range> ranges;
    std::vector<Tree> parts;
    Place place = Place::kTextStart;
    int least = 0, most = 0;  // Only for kRepeat; most is -1 for any number.
    bool is_greedy = true;
    int group = 0;
  };
  struct Flags {
    bool ignores_case = false, has_lines = false, dot_takes_newline = false, is_lazy = false;
  };

  static Tree Make(Kind kind) {
    auto tree = std::make_unique<TreeNode>();
    tree->kind = kind;
    return tree;
  }

  bool AtEnd() const { return at_ >= pattern_.size(); }
  bool Sees(absl::string_view text) const { return pattern_.substr(at_, text.size()) == text; }
  bool Take(absl::string_view text) {
    if (!Sees(text)) return false;
    at_ += text.size();
    return true;
  }
  absl::Status Bad(absl::string_view problem) const {
    return absl::InvalidArgumentError(absl::StrCat("pattern '", pattern_, "': found ", problem, " at byte ", at_));
  }

  absl::StatusOr<Tree> Alternation(int depth) {
    if (depth > kMostDepth) return absl::ResourceExhaustedError("the pattern has too many groups in groups");
    std::vector<Tree> choices;
    do {
      PF_ASSIGN_OR_RETURN(Tree sequence, Sequence(depth));
      choices.push_back(std::move(sequence));
    } while (Take("|"));
    if (choices.size() == 1) return std::move(choices[0]);
    Tree choice = Make(Kind::kChoice);
    choice->parts = std::move(choices);
    return choice;
  }

  absl::StatusOr<Tree> Sequence(int depth) {
    Tree sequence = Make(Kind::kSequence);
    bool is_quoted = false;
    while (!AtEnd() && !Sees("|") && !Sees(")")) {
      if (Take("\\Q")) {
        while (!AtEnd() && !Sees("\\E")) {
          PF_ASSIGN_OR_RETURN(const uint32_t code_point, TakeCodePoint());
          PF_ASSIGN_OR_RETURN(Tree literal, Literal(code_point));
          sequence->parts.push_back(std::move(literal));
          is_quoted = true;
        }
        continue;
      }
      if (Take("\\E")) {
        // A repetition after a quotation applies to its last character.
        if (is_quoted) {
          PF_ASSIGN_OR_RETURN(sequence->parts.back(), Repeated(std::move(sequence->parts.back())));
        }
        is_quoted = false;
        continue;
      }
      PF_ASSIGN_OR_RETURN(Tree atom, Atom(depth));
      if (atom == nullptr) continue;  // Flags for the following atoms.
      PF_ASSIGN_OR_RETURN(atom, Repeated(std::move(atom)));
      sequence->parts.push_back(std::move(atom));
    }
    return sequence;
  }

  absl::StatusOr<uint32_t> TakeCodePoint() {
    const auto [code_point, length] = CodePointAt(pattern_, at_);
    if (code_point < 0) return Bad("bytes that are not UTF-8");
    at_ += length;
    return static_cast<uint32_t>(code_point);
  }

  // Parses the repetition operators after `atom`.
  absl::StatusOr<Tree> Repeated(Tree atom) {
    bool is_repeated = false;
    while (!AtEnd()) {
      int least = 0, most = -1;
      const size_t start = at_;
      if (Take("*")) {
      } else if (Take("+")) {
        least = 1;
      } else if (Take("?")) {
        most = 1;
      } else if (!Sees("{") || !TakeCounts(&least, &most)) {
        return atom;  // A brace without counts is a literal.
      }
      if (least > kMostRepetitions || most > kMostRepetitions || (most >= 0 && most < least)) {
        at_ = start;
        return Bad("an invalid number of repetitions");
      }
      if (is_repeated) {
        at_ = start;
        return Bad("a repetition of a repetition");
      }
      is_repeated = true;
      Tree repeat = Make(Kind::kRepeat);
      repeat->least = least;
      repeat->most = most;
      repeat->is_greedy = Take("?") == flags_.is_lazy;
      repeat->parts.push_back(std::move(atom));
      atom = std::move(repeat);
    }
    return atom;
  }

  // Parses {n}, {n,} or {n,m}. Returns false, without consuming input, for anything else.
  bool TakeCounts(int* least, int* most) {
    size_t at = at_ + 1;
    const auto number = [&]() -> std::optional<int> {
      const size_t start = at;
      int value = 0;
      while (at < pattern_.size() && absl::ascii_isdigit(static_cast<unsigned char>(pattern_[at]))) {
        value = std::min(value * 10 + (pattern_[at++] - '0'), kMostRepetitions + 1);
      }
      return at == start ? std::nullopt : std::optional<int>(value);
    };
    const std::optional<int> first = number();
    if (!first) return false;
    std::optional<int> second = first;
    if (at < pattern_.size() && pattern_[at] == ',') {
      ++at;
      second = number();
    }
    if (at >= pattern_.size() || pattern_[at] != '}') return false;
    at_ = at + 1;
    *least = *first;
    *most = second.value_or(-1);
    return true;
  }

  Tree Assertion(Place place) {
    Tree tree = Make(Kind::kAssert);
    tree->place = place;
    return tree;
  }

  absl::StatusOr<Tree> Atom(int depth) {
    if (Take("(")) return Group(depth);
    if (Sees("[")) return Class();
    if (Take(".")) {
      std::vector<Range> ranges;
      if (flags_.dot_takes_newline) {
        ranges = {{0, kLastCodePoint}};
      } else {
        ranges = {{0, '\n' - 1}, {'\n' + 1, kLastCodePoint}};
      }
      return RangesNode(std::move(ranges));
    }
    if (Take("^")) return Assertion(flags_.has_lines ? Place::kLineStart : Place::kTextStart);
    if (Take("$")) return Assertion(flags_.has_lines ? Place::kLineEnd : Place::kTextEnd);
    if (Take("\\A")) return Assertion(Place::kTextStart);
    if (Take("\\z")) return Assertion(Place::kTextEnd);
    if (Take("\\b")) return Assertion(Place::kWordEdge);
    if (Take("\\B")) return Assertion(Place::kNoWordEdge);
    if (Sees("\\")) {
      std::vector<Range> ranges;
      PF_ASSIGN_OR_RETURN(const bool is_class, TakeEscapedClass(&ranges));
      if (is_class) return RangesNode(Sorted(std::move(ranges)));
      PF_ASSIGN_OR_RETURN(const uint32_t code_point, TakeEscape());
      return Literal(code_point);
    }
    if (Sees("*") || Sees("+") || Sees("?")) return Bad("a repetition of nothing");
    PF_ASSIGN_OR_RETURN(const uint32_t code_point, TakeCodePoint());
    return Literal(code_point);
  }

  // Parses a group after "(". Returns null for "(?flags)".
  absl::StatusOr<Tree> Group(int depth) {
    const Flags outer = flags_;
    int group = 0;
    if (Take("?P<") || Take("?<")) {
      const size_t start = at_;
      while (IsWordByte(pattern_, at_)) ++at_;
      if (at_ == start || !Take(">")) return Bad("a group without a name");
      group = ++num_groups_;
    } else if (Take("?")) {
      bool is_on = true, has_sign = false;
      while (true) {
        if (AtEnd()) return Bad("the end of the pattern in a group");
        const char c = pattern_[at_++];
        if (c == 'i') {
          flags_.ignores_case = is_on;
        } else if (c == 'm') {
          flags_.has_lines = is_on;
        } else if (c == 's') {
          flags_.dot_takes_newline = is_on;
        } else if (c == 'U') {
          flags_.is_lazy = is_on;
        } else if (c == '-' && !has_sign) {
          is_on = false;
          has_sign = true;
        } else if (c == ')') {
          return Tree(nullptr);
        } else if (c == ':') {
          break;
        } else {
          --at_;
          return Bad("an unknown flag");
        }
      }
    } else {
      group = ++num_groups_;
    }
    PF_ASSIGN_OR_RETURN(Tree inner, Alternation(depth + 1));
    if (!Take(")")) return Bad("no ')' for a '('");
    flags_ = outer;
    if (group == 0) return inner;
    Tree tree = Make(Kind::kGroup);
    tree->group = group;
    tree->parts.push_back(std::move(inner));
    return tree;
  }

  static Tree RangesNode(std::vector<Range> ranges) {
    Tree tree = Make(Kind::kRanges);
    tree->ranges = std::move(ranges);
    return tree;
  }

  absl::StatusOr<Tree> Literal(uint32_t code_point) {
    std::vector<Range> ranges;
    PF_RETURN_IF_ERROR(AddRange({code_point, code_point}, &ranges));
    return RangesNode(Sorted(std::move(ranges)));
  }

  // Adds the range and, if case is ignored, the other cases of its characters.
  absl::Status AddRange(Range range, std::vector<Range>* ranges) const {
    ranges->push_back(range);
    if (!flags_.ignores_case) return absl::OkStatus();
    for (uint32_t c = 'a'; c <= 'z'; ++c) {
      const uint32_t upper = c - 'a' + 'A';
      // Non-ASCII characters whose lower case is k or s: the Kelvin sign and the long s.
      const uint32_t sign = c == 'k' ? 0x212a : c == 's' ? 0x17f : c;
      const auto holds = [&](uint32_t x) { return range.first <= x && x <= range.last; };
      if (holds(c) || holds(upper) || holds(sign)) {
        for (const uint32_t x : {c, upper, sign}) ranges->push_back({x, x});
      }
    }
    if (range.last < 0x80 || (range.first <= 0x80 && range.last == kLastCodePoint)) return absl::OkStatus();
    for (const absl::string_view cased : {"Lu", "Ll", "Lt"}) {
      std::vector<Range> letters;
      AddCategory(cased, &letters);
      for (const Range& letter : letters) {
        if (letter.last < 0x80 || letter.last < range.first || letter.first > range.last) continue;
        return absl::UnimplementedError(
            absl::StrCat("pattern '", pattern_, "': ignores the case of letters beyond ASCII"));
      }
    }
    return absl::OkStatus();
  }

  static std::vector<Range> Sorted(std::vector<Range> ranges) {
    std::sort(ranges.begin(), ranges.end(), [](const Range& a, const Range& b) { return a.first < b.first; });
    std::vector<Range> merged;
    for (const Range& range : ranges) {
      if (!merged.empty() && range.first <= merged.back().last + 1) {
        merged.back().last = std::max(merged.back().last, range.last);
      } else {
        merged.push_back(range);
      }
    }
    return merged;
  }

  static std::vector<Range> Negated(std::vector<Range> ranges) {
    std::vector<Range> result;
    uint32_t next = 0;
    for (const Range& range : Sorted(std::move(ranges))) {
      if (range.first > next) result.push_back({next, range.first - 1});
      next = range.last + 1;
    }
    if (next <= kLastCodePoint) result.push_back({next, kLastCodePoint});
    return result;
  }

  static void Append(std::vector<Range> from, bool is_negated, std::vector<Range>* ranges) {
    if (is_negated) from = Negated(std::move(from));
    ranges->insert(ranges->end(), from.begin(), from.end());
  }

  // Adds a category, or all categories that start with one letter. Returns false for an unknown name.
  static bool AddCategory(absl::string_view name, std::vector<Range>* ranges) {
    const absl::Span<const absl::string_view> names = UnicodeCategoryNames();
    const absl::Span<const uint32_t> starts = UnicodeCategoryStarts();
    std::array<bool, size_t{1} << kUnicodeCategoryBits> is_wanted = {};
    bool is_known = false;
    for (size_t i = 0; i < names.size(); ++i) {
      // RE2 excludes unassigned code points from C.
      is_wanted[i] = names[i] != "Cn" && names[i].substr(0, name.size()) == name;
      is_known |= is_wanted[i];
    }
    for (size_t i = 0; i < starts.size(); ++i) {
      if (!is_wanted[starts[i] & ((1u << kUnicodeCategoryBits) - 1)]) continue;
      const uint32_t last = i + 1 < starts.size() ? (starts[i + 1] >> kUnicodeCategoryBits) - 1 : kLastCodePoint;
      ranges->push_back({starts[i] >> kUnicodeCategoryBits, last});
    }
    return is_known;
  }

  // Parses \d, \s, \w, \p and their negations. Returns false, without consuming input, for another escape.
  absl::StatusOr<bool> TakeEscapedClass(std::vector<Range>* ranges) {
    if (at_ + 1 >= pattern_.size()) return Bad("a backslash at the end");
    const char c = pattern_[at_ + 1];
    const bool is_negated = absl::ascii_isupper(static_cast<unsigned char>(c));
    std::vector<Range> named;
    switch (absl::ascii_tolower(static_cast<unsigned char>(c))) {
      case 'd':
        named = {{'0', '9'}};
        break;
      case 's':
        named = {{'\t', '\n'}, {'\f', '\r'}, {' ', ' '}};
        break;
      case 'w':
        named = {{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}};
        if (flags_.ignores_case) named.insert(named.end(), {{0x17f, 0x17f}, {0x212a, 0x212a}});
        break;
      case 'p': {
        at_ += 2;
        return TakeCategory(is_negated, ranges);
      }
      default:
        return false;
    }
    at_ += 2;
    Append(std::move(named), is_negated, ranges);
    return true;
  }

  absl::StatusOr<bool> TakeCategory(bool is_negated, std::vector<Range>* ranges) {
    absl::string_view name = pattern_.substr(at_, 1);
    if (Take("{")) {
      const size_t end = pattern_.find('}', at_);
      if (end == absl::string_view::npos) return Bad("no '}' for a '{'");
      name = pattern_.substr(at_, end - at_);
      at_ = end + 1;
    } else {
      at_ = std::min(at_ + 1, pattern_.size());
    }
    if (!name.empty() && name[0] == '^') {
      is_negated = !is_negated;
      name.remove_prefix(1);
    }
    std::vector<Range> named;
    if (name == "Any") {
      named = {{0, kLastCodePoint}};
    } else if (name.empty() || name.size() > 2 || !AddCategory(name, &named)) {
      return absl::UnimplementedError(
          absl::StrCat("pattern '", pattern_, "': found \\p{", name, "}, expected a general category such as \\p{Lu}"));
    }
    if (flags_.ignores_case && name.size() == 2 && name[0] == 'L') {
      return absl::UnimplementedError(absl::StrCat("pattern '", pattern_, "': ignores the case of \\p{", name, "}"));
    }
    Append(std::move(named), is_negated, ranges);
    return true;
  }

  // Parses one escaped code point. REQUIRES: a backslash, and one more byte.
  absl::StatusOr<uint32_t> TakeEscape() {
    const size_t start = at_;
    ++at_;
    if (AtEnd()) return Bad("a backslash at the end");
    const char c = pattern_[at_++];
    const auto is_octal = [&](size_t i) { return i < pattern_.size() && pattern_[i] >= '0' && pattern_[i] <= '7'; };
    if (c == '0' || (c >= '1' && c <= '7' && is_octal(at_))) {
      uint32_t value = static_cast<uint32_t>(c - '0');
      for (int i = 0; i < 2 && is_octal(at_); ++i) value = value * 8 + static_cast<uint32_t>(pattern_[at_++] - '0');
      return value;
    }
    constexpr absl::string_view kNames = "afnrtv", kValues = "\a\f\n\r\t\v";
    if (const size_t i = kNames.find(c); i != absl::string_view::npos) return static_cast<uint32_t>(kValues[i]);
    if (c == 'x') {
      const bool is_braced = Take("{");
      uint32_t value = 0;
      size_t digits = 0;
      while (!AtEnd() && absl::ascii_isxdigit(static_cast<unsigned char>(pattern_[at_])) && (is_braced || digits < 2)) {
        const char digit = absl::ascii_tolower(static_cast<unsigned char>(pattern_[at_++]));
        value = std::min(value * 16 + static_cast<uint32_t>(digit <= '9' ? digit - '0' : digit - 'a' + 10),
                         kLastCodePoint + 1);
        ++digits;
      }
      if (digits == 0 || (!is_braced && digits < 2) || (is_braced && !Take("}")) || value > kLastCodePoint) {
        at_ = start;
        return Bad("an invalid number of a character");
      }
      return value;
    }
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x80 && !absl::ascii_isalnum(byte) && c != '_') return byte;
    at_ = start;
    return Bad("an unknown escape");
  }

  absl::StatusOr<bool> TakeNamedClass(std::vector<Range>* ranges) {
    struct Named {
      absl::string_view name;
      std::vector<Range> ranges;
    };
    static const auto* const kClasses = new std::vector<Named>{
        {"alnum", {{'0', '9'}, {'A', 'Z'}, {'a', 'z'}}},
        {"alpha", {{'A', 'Z'}, {'a', 'z'}}},
        {"ascii", {{0, 0x7f}}},
        {"blank", {{'\t', '\t'}, {' ', ' '}}},
        {"cntrl", {{0, 0x1f}, {0x7f, 0x7f}}},
        {"digit", {{'0', '9'}}},
        {"graph", {{'!', '~'}}},
        {"lower", {{'a', 'z'}}},
        {"print", {{' ', '~'}}},
        {"punct", {{'!', '/'}, {':', '@'}, {'[', '`'}, {'{', '~'}}},
        {"space", {{'\t', '\r'}, {' ', ' '}}},
        {"upper", {{'A', 'Z'}}},
        {"word", {{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}}},
        {"xdigit", {{'0', '9'}, {'A', 'F'}, {'a', 'f'}}},
    };
    const size_t end = pattern_.find(":]", at_);
    if (!Sees("[:") || end == absl::string_view::npos) return false;
    absl::string_view name = pattern_.substr(at_ + 2, end - at_ - 2);
    const bool is_negated = !name.empty() && name[0] == '^';
    if (is_negated) name.remove_prefix(1);
    for (const Named& named : *kClasses) {
      if (named.name != name) continue;
      at_ = end + 2;
      std::vector<Range> folded;
      for (const Range& range : named.ranges) PF_RETURN_IF_ERROR(AddRange(range, &folded));
      Append(std::move(folded), is_negated, ranges);
      return true;
    }
    return Bad("an unknown class");
  }

  absl::StatusOr<uint32_t> TakeInClass() {
    if (AtEnd()) return Bad("no ']' for a '['");
    return Sees("\\") ? TakeEscape() : TakeCodePoint();
  }

  absl::StatusOr<Tree> Class() {
    const size_t start = at_;
    ++at_;
    const bool is_negated = Take("^");
    std::vector<Range> ranges;
    for (bool is_first = true; is_first || !Take("]"); is_first = false) {
      if (AtEnd()) {
        at_ = start;
        return Bad("no ']' for a '['");
      }
      PF_ASSIGN_OR_RETURN(bool is_class, TakeNamedClass(&ranges));
      if (!is_class && Sees("\\")) {
        PF_ASSIGN_OR_RETURN(is_class, TakeEscapedClass(&ranges));
      }
      if (is_class) continue;
      Range range;
      PF_ASSIGN_OR_RETURN(range.first, TakeInClass());
      range.last = range.first;
      if (Sees("-") && at_ + 1 < pattern_.size() && pattern_[at_ + 1] != ']') {
        ++at_;
        PF_ASSIGN_OR_RETURN(range.last, TakeInClass());
        if (range.last < range.first) return Bad("a range of characters that ends before it begins");
      }
      PF_RETURN_IF_ERROR(AddRange(range, &ranges));
    }
    return RangesNode(is_negated ? Negated(std::move(ranges)) : Sorted(std::move(ranges)));
  }

  // --- The program.

  absl::Status Emit(Instruction instruction) {
    if (result_.program_.size() >= kMostInstructions) {
      return absl::ResourceExhaustedError(absl::StrCat("the pattern needs more than ", kMostInstructions, " steps"));
    }
    result_.program_.push_back(instruction);
    return absl::OkStatus();
  }
  int32_t Here() const { return static_cast<int32_t>(result_.program_.size()); }
  // Sets the targets of a split: a greedy one tries `inside` first, others try it second.
  void Point(int32_t split, bool is_greedy, int32_t inside, int32_t beyond) {
    result_.program_[static_cast<size_t>(split)].first = is_greedy ? inside : beyond;
    result_.program_[static_cast<size_t>(split)].second = is_greedy ? beyond : inside;
  }

  absl::Status Compile(const TreeNode& tree) {
    switch (tree.kind) {
      case Kind::kEmpty:
        return absl::OkStatus();
      case Kind::kRanges: {
        const auto first = static_cast<int32_t>(result_.ranges_.size());
        if (result_.ranges_.size() + tree.ranges.size() > kMostRanges) {
          return absl::ResourceExhaustedError("the pattern has too many ranges of characters");
        }
        result_.ranges_.insert(result_.ranges_.end(), tree.ranges.begin(), tree.ranges.end());
        return Emit({Code::kRanges, Place(), first, static_cast<int32_t>(result_.ranges_.size())});
      }
      case Kind::kAssert:
        return Emit({Code::kAssert, tree.place});
      case Kind::kSequence:
        for (const Tree& part : tree.parts) PF_RETURN_IF_ERROR(Compile(*part));
        return absl::OkStatus();
      case Kind::kGroup:
        PF_RETURN_IF_ERROR(Emit({Code::kSave, Place(), 2 * tree.group}));
        PF_RETURN_IF_ERROR(Compile(*tree.parts[0]));
        return Emit({Code::kSave, Place(), 2 * tree.group + 1});
      case Kind::kChoice: {
        std::vector<int32_t> jumps;
        for (size_t i = 0; i + 1 < tree.parts.size(); ++i) {
          const int32_t split = Here();
          PF_RETURN_IF_ERROR(Emit({Code::kSplit}));
          PF_RETURN_IF_ERROR(Compile(*tree.parts[i]));
          jumps.push_back(Here());
          PF_RETURN_IF_ERROR(Emit({Code::kJump}));
          Point(split, true, split + 1, Here());
        }
        PF_RETURN_IF_ERROR(Compile(*tree.parts.back()));
        for (const int32_t jump : jumps) result_.program_[static_cast<size_t>(jump)].first = Here();
        return absl::OkStatus();
      }
      case Kind::kRepeat:
        return CompileRepeat(tree);
    }
    return absl::OkStatus();
  }

  absl::Status CompileRepeat(const TreeNode& tree) {
    const TreeNode& part = *tree.parts[0];
    // x* is (x+)?, which differs if x can match the empty string; x{2,} is xx+.
    const int copies = tree.most < 0 ? std::max(tree.least - 1, 0) : tree.least;
    for (int i = 0; i < copies; ++i) PF_RETURN_IF_ERROR(Compile(part));
    std::vector<int32_t> splits;
    if (tree.most < 0) {
      if (tree.least == 0) {
        splits.push_back(Here());
        PF_RETURN_IF_ERROR(Emit({Code::kSplit}));
      }
      const int32_t start = Here();
      PF_RETURN_IF_ERROR(Compile(part));
      const int32_t split = Here();
      PF_RETURN_IF_ERROR(Emit({Code::kSplit}));
      Point(split, tree.is_greedy, start, Here());
    }
    for (int i = tree.least; i < tree.most; ++i) {
      splits.push_back(Here());
      PF_RETURN_IF_ERROR(Emit({Code::kSplit}));
      PF_RETURN_IF_ERROR(Compile(part));
    }
    for (const int32_t split : splits) Point(split, tree.is_greedy, split + 1, Here());
    return absl::OkStatus();
  }

  absl::string_view pattern_;
  size_t at_ = 0;
  Flags flags_;
  int num_groups_ = 0;
  RegularExpression result_;
};

absl::StatusOr<RegularExpression> RegularExpression::Compile(absl::string_view pattern) {
  return RegularExpressionCompiler(pattern).Run();
}

// Runs the threads of the program over the text in lockstep. Threads are ordered by preference.
class RegularExpressionMatcher {
 public:
  using Code = RegularExpression::Code;
  using Place = RegularExpression::Place;
  using Instruction = RegularExpression::Instruction;

  RegularExpressionMatcher(const RegularExpression& expression, absl::string_view text, size_t num_ends)
      : expression_(expression), text_(text), num_ends_(num_ends) {
    for (Threads* threads : {&now_, &next_}) {
      threads->added_at.assign(expression.program_.size(), 0);
      threads->ends.resize(expression.program_.size() * num_ends);
    }
    ends_.assign(num_ends, -1);
  }

  bool Run(size_t from, bool is_whole, std::vector<int64_t>* ends) {
    bool has_matched = false;
    Begin(&now_);
    for (size_t at = from;;) {
      if (!has_matched && (!is_whole || at == from)) {
        std::fill(ends_.begin(), ends_.end(), -1);
        Add(0, at, &now_);
      }
      if (now_.instructions.empty() && (has_matched || is_whole)) return has_matched;
      const bool is_end = at >= text_.size();
      const auto [code_point, length] = is_end ? std::pair<int32_t, size_t>(-1, 1) : CodePointAt(text_, at);
      Begin(&next_);
      for (size_t i = 0; i < now_.instructions.size(); ++i) {
        const int32_t pc = now_.instructions[i];
        const Instruction& instruction = expression_.program_[static_cast<size_t>(pc)];
        if (instruction.code == Code::kMatch) {
          if (is_whole && !is_end) continue;
          const auto first = now_.ends.begin() + static_cast<int64_t>(static_cast<size_t>(pc) * num_ends_);
          ends->assign(first, first + static_cast<int64_t>(num_ends_));
          has_matched = true;
          break;  // The following threads have lower preference.
        }
        if (is_end || !Takes(instruction, code_point)) continue;
        const auto first = now_.ends.begin() + static_cast<int64_t>(static_cast<size_t>(pc) * num_ends_);
        std::copy(first, first + static_cast<int64_t>(num_ends_), ends_.begin());
        Add(pc + 1, at + length, &next_);
      }
      std::swap(now_, next_);
      if (is_end) return has_matched;
      at += length;
    }
  }

 private:
  struct Threads {
    std::vector<int32_t> instructions;  // Instructions that wait for a character, or match, by preference.
    std::vector<uint64_t> added_at;     // By instruction: the step at which it was last added.
    std::vector<int64_t> ends;          // By instruction, num_ends_ each.
    uint64_t step = 0;
  };

  bool Takes(const Instruction& instruction, int32_t code_point) const {
    if (code_point < 0) return false;
    const auto value = static_cast<uint32_t>(code_point);
    const auto begin = expression_.ranges_.begin() + instruction.first;
    const auto end = expression_.ranges_.begin() + instruction.second;
    const auto found = std::upper_bound(
        begin, end, value, [](uint32_t x, const RegularExpression::Range& range) { return x < range.first; });
    return found != begin && value <= (found - 1)->last;
  }

  bool Holds(Place place, size_t at) const {
    const auto is_word = [&](size_t i) { return IsWordByte(text_, i); };
    switch (place) {
      case Place::kTextStart:
        return at == 0;
      case Place::kTextEnd:
        return at == text_.size();
      case Place::kLineStart:
        return at == 0 || text_[at - 1] == '\n';
      case Place::kLineEnd:
        return at == text_.size() || text_[at] == '\n';
      case Place::kWordEdge:
      case Place::kNoWordEdge: {
        const bool is_edge = (at > 0 && is_word(at - 1)) != is_word(at);
        return is_edge == (place == Place::kWordEdge);
      }
    }
    return false;
  }

  // Follows all instructions that consume no character, in order of preference. ends_ holds the positions saved by the
  // thread.
  void Add(int32_t start, size_t at, Threads* threads) {
    stack_.assign(1, {start, 0});
    while (!stack_.empty()) {
      auto [pc, saved] = stack_.back();
      stack_.pop_back();
      if (pc < 0) {
        ends_[static_cast<size_t>(-1 - pc)] = saved;
        continue;
      }
      const auto index = static_cast<size_t>(pc);
      if (threads->added_at[index] == threads->step) continue;
      threads->added_at[index] = threads->step;
      const Instruction& instruction = expression_.program_[index];
      switch (instruction.code) {
        case Code::kJump:
          stack_.push_back({instruction.first, 0});
          break;
        case Code::kSplit:
          stack_.push_back({instruction.second, 0});
          stack_.push_back({instruction.first, 0});
          break;
        case Code::kAssert:
          if (Holds(instruction.place, at)) stack_.push_back({pc + 1, 0});
          break;
        case Code::kSave: {
          const auto slot = static_cast<size_t>(instruction.first);
          if (slot < num_ends_) {
            stack_.push_back({-1 - instruction.first, ends_[slot]});
            ends_[slot] = static_cast<int64_t>(at);
          }
          stack_.push_back({pc + 1, 0});
          break;
        }
        case Code::kRanges:
        case Code::kMatch:
          threads->instructions.push_back(pc);
          std::copy(ends_.begin(), ends_.end(), threads->ends.begin() + static_cast<int64_t>(index * num_ends_));
          break;
      }
    }
  }

  void Begin(Threads* threads) {
    threads->instructions.clear();
    threads->step = ++steps_;
  }

  struct Pending {
    int32_t pc;  // An instruction to follow; or -1 - i, to restore ends_[i] to `saved`.
    int64_t saved;
  };

  const RegularExpression& expression_;
  absl::string_view text_;
  size_t num_ends_;
  Threads now_, next_;
  uint64_t steps_ = 0;
  std::vector<int64_t> ends_;
  std::vector<Pending> stack_;
};

bool RegularExpression::MatchesAll(absl::string_view text) const {
  std::vector<int64_t> ends;
  return RegularExpressionMatcher(*this, text, 0).Run(0, true, &ends);
}

absl::Status RegularExpression::CheckRewrite(absl::string_view rewrite) const {
  for (size_t i = 0; i < rewrite.size(); ++i) {
    if (rewrite[i] != '\\') continue;
    ++i;
    if (i < rewrite.size() && rewrite[i] == '\\') continue;
    if (i < rewrite.size() && absl::ascii_isdigit(static_cast<unsigned char>(rewrite[i]))) {
      if (rewrite[i] - '0' <= num_groups_) continue;
      return absl::InvalidArgumentError(
          absl::StrCat("'", rewrite, "' names group ", rewrite.substr(i, 1), ", the pattern has ", num_groups_));
    }
    return absl::InvalidArgumentError(
        absl::StrCat("'", rewrite, "' has a backslash that neither a digit nor a backslash follows"));
  }
  return absl::OkStatus();
}

std::string RegularExpression::Replace(absl::string_view text, absl::string_view rewrite, bool all) const {
  int last_group = 0;
  for (size_t i = 0; i + 1 < rewrite.size(); ++i) {
    if (rewrite[i] != '\\') continue;
    ++i;
    if (rewrite[i] != '\\') last_group = std::max(last_group, rewrite[i] - '0');
  }
  RegularExpressionMatcher matcher(*this, text, static_cast<size_t>(2 * (last_group + 1)));
  std::vector<int64_t> ends;
  std::string result;
  size_t at = 0;
  int64_t last_end = -1;
  while (at <= text.size() && matcher.Run(at, false, &ends)) {
    const auto begin = static_cast<size_t>(ends[0]), end = static_cast<size_t>(ends[1]);
    result.append(text.data() + at, begin - at);
    at = begin;
    if (ends[0] == last_end && begin == end) {
      // An empty match directly after a match is not allowed: one character is skipped.
      if (at == text.size()) break;
      const size_t length = CodePointAt(text, at).second;
      result.append(text.data() + at, length);
      at += length;
      continue;
    }
    for (size_t i = 0; i < rewrite.size(); ++i) {
      if (rewrite[i] != '\\' || i + 1 == rewrite.size() || rewrite[i + 1] == '\\') {
        result.push_back(rewrite[i]);
        if (rewrite[i] == '\\') ++i;
        continue;
      }
      const auto group = static_cast<size_t>(rewrite[++i] - '0');
      if (ends[2 * group] < 0) continue;
      result.append(text.data() + ends[2 * group], static_cast<size_t>(ends[2 * group + 1] - ends[2 * group]));
    }
    at = end;
    last_end = ends[1];
    if (!all) break;
  }
  if (at < text.size()) result.append(text.data() + at, text.size() - at);
  return result;
}

}  // namespace permafrost
