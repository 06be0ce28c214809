// Reads the table op by op and chooses as TensorFlow's registry does: by device, label, attributes, then priority.
#include "tools/selective/kernel_classes.h"

#include <algorithm>
#include <cstdint>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "graph/base/status.h"
#include "graph/dtype.h"
#include "graph/wire_format/node_def.h"

namespace permafrost {
namespace {

constexpr char kTable[] =
#include "tools/selective/tensorflow_kernels.inc"
    ;

constexpr int kNumStyles = 4;
constexpr char kDevice[] = "@";
constexpr char kLabel[] = "_kernel";

absl::Status BadLine(absl::string_view line, absl::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat("table of kernels: line ", Quoted(line), " ", why));
}

std::string Literal(absl::string_view text) { return absl::StrCat("\"", absl::CEscape(text), "\""); }

bool IsNumberOrStar(absl::string_view text) {
  return text == "*" || (!text.empty() && std::all_of(text.begin(), text.end(), absl::ascii_isdigit));
}

}  // namespace

absl::StatusOr<std::string> DeviceTypeOf(absl::string_view device) {
  const absl::Status bad =
      absl::InvalidArgumentError(absl::StrCat("device ", Quoted(device), " is no name of a device"));
  absl::string_view rest = device;
  if (rest == "/") return std::string();
  std::string type;
  while (!rest.empty()) {
    if (!absl::ConsumePrefix(&rest, "/")) return bad;
    const absl::string_view part = rest.substr(0, rest.find('/'));
    rest.remove_prefix(part.size());
    std::vector<absl::string_view> words = absl::StrSplit(part, ':');
    const std::string kind(words[0]);
    if (kind == "job" && words.size() == 2 && !words[1].empty()) continue;
    if ((kind == "replica" || kind == "task") && words.size() == 2 && IsNumberOrStar(words[1])) continue;
    if (kind == "device" && (words.size() == 2 || (words.size() == 3 && IsNumberOrStar(words[2])))) {
      if (words[1].empty()) return bad;
      type = words[1] == "*" ? "" : std::string(words[1]);
    } else if ((kind == "cpu" || kind == "CPU" || kind == "gpu" || kind == "GPU") && words.size() == 2 &&
               IsNumberOrStar(words[1])) {
      type = absl::AsciiStrToUpper(kind);
    } else {
      return bad;
    }
  }
  return type;
}

absl::StatusOr<KernelClasses> KernelClasses::OfTensorFlow() { return Parse(kTable); }

absl::StatusOr<KernelClasses> KernelClasses::Parse(absl::string_view table) {
  KernelClasses classes;
  OpKernels* op = nullptr;
  for (const absl::string_view line : absl::StrSplit(table, '\n')) {
    if (line.empty() || line[0] == '#') continue;
    if (line[0] == ' ') {
      if (op == nullptr) return BadLine(line, "belongs to no op");
      op->unread.push_back(line.substr(1));
      continue;
    }
    const std::vector<absl::string_view> words = absl::StrSplit(line, ' ');
    if (words[0] == "type") {
      int number;
      if (words.size() != 3 + kNumStyles || !absl::SimpleAtoi(words[1], &number)) {
        return BadLine(line, "is not a number, a name and four spellings");
      }
      Spellings spellings;
      for (size_t i = 3; i < words.size(); ++i) {
        if (words[i] == "." && spellings.empty()) return BadLine(line, "has no first spelling");
        spellings.push_back(words[i] == "." ? spellings.back() : std::string(words[i]));
      }
      classes.spellings_.emplace(words[2], std::move(spellings));
      classes.type_names_.emplace(number, words[2]);
    } else if (words[0] == "set") {
      if (words.size() != 3) return BadLine(line, "is not a name and values");
      classes.sets_.emplace(words[1], absl::StrSplit(words[2], ','));
    } else {
      op = &classes.ops_[words[0]];
      op->defaults = absl::StripPrefix(line.substr(words[0].size()), " ");
    }
  }
  return classes;
}

absl::StatusOr<KernelClasses::Line> KernelClasses::ReadLine(absl::string_view text) const {
  Line line;
  const size_t colon = text.find(": ");
  if (colon == absl::string_view::npos) return BadLine(text, "has no class");
  line.text = text.substr(colon + 2);
  for (const absl::string_view word : absl::StrSplit(text.substr(0, colon), ' ')) {
    if (word[0] == '!') {
      if (!absl::SimpleAtoi(word.substr(1), &line.priority)) return BadLine(text, "has no number after '!'");
      continue;
    }
    const size_t equals = word.find('=');
    if (equals == absl::string_view::npos) return BadLine(text, "has a word without '='");
    const absl::string_view values = word.substr(equals + 1);
    absl::string_view attr = word.substr(0, equals);
    if (attr == kLabel) {
      line.label = std::string(values);
      continue;
    }
    Condition condition;
    condition.of_each = absl::ConsumeSuffix(&attr, "*");
    condition.attr = std::string(attr);
    const auto set = sets_.find(values);
    condition.values = set != sets_.end() ? set->second : std::vector<absl::string_view>(absl::StrSplit(values, ','));
    line.conditions.push_back(std::move(condition));
  }
  if (line.conditions.empty() || line.conditions[0].attr != kDevice) return BadLine(text, "names no device");
  return line;
}

absl::Status KernelClasses::ReadLines(absl::string_view op, OpKernels* kernels) const {
  for (const absl::string_view text : kernels->unread) {
    PF_ASSIGN_OR_RETURN(Line line, ReadLine(text));
    for (const Condition& condition : line.conditions) {
      if (condition.attr != kDevice && !absl::c_linear_search(kernels->asked, condition.attr)) {
        kernels->asked.push_back(condition.attr);
      }
    }
    kernels->lines.push_back(std::move(line));
  }
  kernels->unread.clear();
  for (const absl::string_view word : absl::StrSplit(kernels->defaults, ' ', absl::SkipEmpty())) {
    const size_t equals = word.find('=');
    if (equals == absl::string_view::npos) return BadLine(op, "has a default without '='");
    kernels->default_values.emplace_back(word.substr(0, equals), word.substr(equals + 1));
  }
  kernels->defaults = "";
  return absl::OkStatus();
}

KernelClasses::Value KernelClasses::ParseValue(absl::string_view text) const {
  Value value;
  value.is_given = true;
  value.is_list = absl::ConsumePrefix(&text, "[") && absl::ConsumeSuffix(&text, "]");
  for (const absl::string_view word : absl::StrSplit(text, ',')) {
    if (!word.empty()) value.texts.emplace_back(word);
  }
  return value;
}

KernelClasses::Value KernelClasses::ValueOf(const AttrValue& attr) const {
  const auto type_name = [this](DType dtype) {
    const auto found = type_names_.find(static_cast<int>(dtype));
    return found == type_names_.end() ? DTypeName(dtype) : found->second;
  };
  Value value;
  if (const absl::StatusOr<DType> type = attr.AsType(); type.ok()) {
    value.texts = {type_name(*type)};
  } else if (const auto types = attr.AsTypeList(); types.ok()) {
    value.is_list = true;
    for (const DType dtype : *types) value.texts.push_back(type_name(dtype));
  } else if (const auto text = attr.AsString(); text.ok()) {
    value.texts = {Literal(*text)};
  } else if (const auto number = attr.AsInt(); number.ok()) {
    value.texts = {absl::StrCat(*number)};
  } else if (const auto flag = attr.AsBool(); flag.ok()) {
    value.texts = {*flag ? "true" : "false"};
  } else {
    return value;
  }
  value.is_given = true;
  return value;
}

KernelClasses::Match KernelClasses::MatchOf(const Line& line, const Values& values) {
  for (const Condition& condition : line.conditions) {
    const auto found = values.find(condition.attr);
    if (found == values.end() || !found->second.is_given) return Match::kUnknown;
    const bool holds =
        std::all_of(found->second.texts.begin(), found->second.texts.end(), [&](const std::string& text) {
          return std::find(condition.values.begin(), condition.values.end(), text) != condition.values.end();
        });
    if (!holds) return Match::kNo;
  }
  return Match::kYes;
}

std::string KernelClasses::Spell(const Line& line, const Values& values) const {
  std::string text =
      absl::StrReplaceAll(line.text, {{"{@}", values.at(kDevice).texts[0] == "gpu" ? "GPUDevice" : "CPUDevice"}});
  for (const Condition& condition : line.conditions) {
    const Value& value = values.at(condition.attr);
    if (condition.attr == kDevice || value.texts.empty()) continue;
    const auto spellings = spellings_.find(value.texts[0]);
    if (spellings == spellings_.end()) continue;
    for (int style = 0; style < kNumStyles; ++style) {
      const std::string hole = absl::StrCat("{", condition.attr, style == 0 ? "" : absl::StrCat(":", style), "}");
      absl::StrReplaceAll({{hole, spellings->second[style]}}, &text);
    }
  }
  return text;
}

absl::StatusOr<std::string> KernelClasses::Choose(absl::string_view op, const OpKernels& kernels,
                                                  const std::string& device, const std::string& label,
                                                  const Values& values) const {
  // Kernels for any device are considered only if none for this device fits.
  Values asked = values;
  const std::string own = device == "CPU" ? "cpu" : device == "GPU" ? "gpu" : "";
  for (const std::string& kind : {own, std::string("any")}) {
    asked[kDevice] = {true, false, {kind}};
    const Line* best = nullptr;
    bool is_tie = false;
    for (const Line& line : kernels.lines) {
      if (line.label != label) continue;
      const Match match = MatchOf(line, asked);
      if (match == Match::kNo) continue;
      if (match == Match::kUnknown) return NothingFits(op, kernels, device, label, values);
      if (best == nullptr || line.priority > best->priority) {
        best = &line;
        is_tie = false;
      } else if (line.priority == best->priority) {
        is_tie = true;
      }
    }
    if (is_tie) return absl::NotFoundError(absl::StrCat("op ", Quoted(op), " has several kernels for this node"));
    if (best != nullptr) return Spell(*best, asked);
  }
  return NothingFits(op, kernels, device, label, values);
}

absl::Status KernelClasses::NothingFits(absl::string_view op, const OpKernels& kernels, const std::string& device,
                                        const std::string& label, const Values& values) {
  const std::string where = device == "CPU" ? "" : absl::StrCat(" on device type ", Quoted(device));
  std::vector<std::string> found;
  for (const std::string& attr : kernels.asked) {
    const Value& value = values.at(attr);
    std::vector<absl::string_view> others;
    for (const Line& line : kernels.lines) {
      if (line.label != label) continue;
      for (const Condition& condition : line.conditions) {
        if (condition.attr == attr) others.insert(others.end(), condition.values.begin(), condition.values.end());
      }
    }
    std::sort(others.begin(), others.end());
    others.erase(std::unique(others.begin(), others.end()), others.end());
    const bool is_known = value.is_given && std::all_of(value.texts.begin(), value.texts.end(), [&](const auto& text) {
                            return std::find(others.begin(), others.end(), text) != others.end();
                          });
    const std::string shown = value.is_given ? absl::StrJoin(value.texts, ",") : "not known";
    found.push_back(is_known ? absl::StrCat(attr, " = ", shown)
                             : absl::StrCat(attr, " = ", shown, " (there are ", absl::StrJoin(others, ", "), ")"));
  }
  return absl::NotFoundError(
      absl::StrCat("no kernel of op ", Quoted(op), where, found.empty() ? "" : " for ", absl::StrJoin(found, ", ")));
}

absl::StatusOr<std::string> KernelClasses::Find(absl::string_view op, absl::string_view device,
                                                absl::Span<const Attr> attrs) {
  const auto found = ops_.find(op);
  if (found == ops_.end()) return absl::NotFoundError(absl::StrCat("TensorFlow has no kernel of op ", Quoted(op)));
  OpKernels& kernels = found->second;
  PF_RETURN_IF_ERROR(ReadLines(op, &kernels));
  const absl::StatusOr<std::string> type = DeviceTypeOf(device.empty() ? "/cpu:0" : device);
  if (!type.ok()) return absl::NotFoundError(type.status().message());

  Values values;
  std::string label;
  for (const auto& [attr, text] : kernels.default_values) values[attr] = ParseValue(text);
  for (const std::string& attr : kernels.asked) values.try_emplace(attr);
  for (const Attr& attr : attrs) {
    if (attr.key == kLabel) {
      const absl::StatusOr<absl::string_view> text = attr.value.AsString();
      if (text.ok() && !text->empty()) label = Literal(*text);
    } else if (const auto value = values.find(std::string(attr.key)); value != values.end()) {
      value->second = ValueOf(attr.value);
    }
  }
  std::string key = absl::StrCat(*type, "\n", label);
  for (const std::string& attr : kernels.asked) {
    const Value& value = values.at(attr);
    absl::StrAppend(&key, "\n", value.is_given ? absl::StrJoin(value.texts, ",") : "?");
  }
  const auto answer = kernels.answers.find(key);
  if (answer != kernels.answers.end()) return answer->second;
  return kernels.answers.emplace(std::move(key), Choose(op, kernels, *type, label, values)).first->second;
}

}  // namespace permafrost
