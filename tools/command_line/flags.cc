// Parser of command lines.
#include "tools/command_line/flags.h"

#include <cmath>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "graph/base/nearest.h"
#include "graph/base/status.h"
#include "tools/command_line/typography.h"

namespace permafrost {
namespace {

absl::Status Expected(absl::string_view what) { return absl::InvalidArgumentError(absl::StrCat("expected ", what)); }

template <typename T>
std::function<absl::Status(const std::string&)> SetInteger(T* value, absl::string_view what) {
  return [value, what](const std::string& text) {
    T parsed;
    if (!absl::SimpleAtoi(text, &parsed)) return Expected(what);
    *value = parsed;
    return absl::OkStatus();
  };
}

template <typename T>
std::function<absl::Status(const std::string&)> SetNumber(T* value) {
  return [value](const std::string& text) {
    double parsed;
    if (!absl::SimpleAtod(text, &parsed) || !std::isfinite(parsed)) return Expected("a number");
    *value = parsed;
    return absl::OkStatus();
  };
}

template <typename T>
std::function<absl::Status(const std::string&)> SetText(T* value) {
  return [value](const std::string& text) {
    *value = text;
    return absl::OkStatus();
  };
}

}  // namespace

FlagSpec& FlagTable::AddSpec(std::string name, std::string value_name, std::string default_value, std::string help) {
  flags_.push_back({std::move(name), std::move(value_name), std::move(default_value), std::move(help), {}, nullptr});
  return flags_.back();
}

void FlagTable::Add(std::string name, std::string* value, std::string value_name, std::string help) {
  AddSpec(std::move(name), std::move(value_name), *value, std::move(help)).set = SetText(value);
}

void FlagTable::Add(std::string name, std::optional<std::string>* value, std::string value_name, std::string help) {
  AddSpec(std::move(name), std::move(value_name), "", std::move(help)).set = SetText(value);
}

void FlagTable::Add(std::string name, std::vector<std::string>* values, std::string value_name, std::string help) {
  AddSpec(std::move(name), std::move(value_name), "", std::move(help)).set = [values](const std::string& text) {
    values->push_back(text);
    return absl::OkStatus();
  };
}

void FlagTable::Add(std::string name, int32_t* value, std::string value_name, std::string help) {
  AddSpec(std::move(name), std::move(value_name), absl::StrCat(*value), std::move(help)).set =
      SetInteger(value, "a whole number");
}

void FlagTable::Add(std::string name, std::optional<int32_t>* value, std::string value_name, std::string help) {
  AddSpec(std::move(name), std::move(value_name), "", std::move(help)).set = [value](const std::string& text) {
    int32_t parsed;
    if (!absl::SimpleAtoi(text, &parsed)) return Expected("a whole number");
    *value = parsed;
    return absl::OkStatus();
  };
}

void FlagTable::Add(std::string name, uint64_t* value, std::string value_name, std::string help) {
  AddSpec(std::move(name), std::move(value_name), absl::StrCat(*value), std::move(help)).set =
      SetInteger(value, "a whole number of at least 0");
}

void FlagTable::Add(std::string name, double* value, std::string value_name, std::string help) {
  AddSpec(std::move(name), std::move(value_name), absl::StrCat(*value), std::move(help)).set = SetNumber(value);
}

void FlagTable::Add(std::string name, std::optional<double>* value, std::string value_name, std::string help) {
  AddSpec(std::move(name), std::move(value_name), "", std::move(help)).set = SetNumber(value);
}

void FlagTable::Add(std::string name, bool* value, std::string help) {
  AddSpec(std::move(name), "", *value ? "true" : "", std::move(help)).set = [value](const std::string& text) {
    const std::string lower = absl::AsciiStrToLower(text);  // Python scripts write True and False.
    if (lower != "true" && lower != "false") return Expected("true or false");
    *value = lower == "true";
    return absl::OkStatus();
  };
}

void FlagTable::AddChoice(std::string name, std::string* value, std::vector<std::string> choices, std::string help) {
  FlagSpec& spec = AddSpec(std::move(name), absl::StrJoin(choices, "|"), *value, std::move(help));
  spec.choices = std::move(choices);
  spec.set = SetText(value);
}

void FlagTable::AddPositional(std::string value_name, std::string* value, std::string help) {
  positionals_.push_back({std::move(value_name), std::move(help), value});
}

absl::Status FlagTable::Unknown(absl::string_view argument) const {
  std::vector<std::string> names;
  for (const FlagSpec& flag : flags_) names.push_back(absl::StrCat("--", flag.name));
  const std::vector<absl::string_view> candidates(names.begin(), names.end());
  const absl::string_view name = argument.substr(0, argument.find('='));
  const size_t first = name.find_first_not_of('-');
  const std::string dashed = absl::StrCat("--", first == absl::string_view::npos ? "" : name.substr(first));
  const std::string suggestion = absl::StartsWith(argument, "-") ? DidYouMean(dashed, candidates) : "";
  return absl::InvalidArgumentError(
      absl::StrCat("Unknown argument ", argument, suggestion.empty() ? "." : "", suggestion));
}

absl::Status FlagTable::Parse(absl::Span<const std::string> arguments) const {
  std::vector<std::string> loose;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string& argument = arguments[i];
    PF_RETURN_IF_ERROR(CheckTypography(argument));
    if (argument == "--") {
      loose.insert(loose.end(), arguments.begin() + i + 1, arguments.end());
      break;
    }
    if (!absl::StartsWith(argument, "-") || argument == "-") {
      if (loose.size() >= positionals_.size()) return Unknown(argument);
      loose.push_back(argument);
      continue;
    }
    const size_t equals = argument.find('=');
    const std::string name = argument.substr(0, equals);
    const FlagSpec* flag = nullptr;
    for (const FlagSpec& candidate : flags_) {
      if (name == absl::StrCat("--", candidate.name)) flag = &candidate;
    }
    if (flag == nullptr) return Unknown(argument);
    std::string value = "true";
    if (equals != std::string::npos) {
      value = argument.substr(equals + 1);
    } else if (!flag->is_bool()) {
      if (i + 1 == arguments.size() || absl::StartsWith(arguments[i + 1], "--")) {
        return absl::InvalidArgumentError(
            absl::StrCat("--", flag->name, " has no value, expected --", flag->name, "=", flag->value_name));
      }
      value = arguments[++i];
      PF_RETURN_IF_ERROR(CheckTypography(value));
    }
    absl::Status status;
    if (!flag->choices.empty()) {
      bool known = false;
      for (const std::string& choice : flag->choices) known = known || choice == value;
      if (!known) status = Expected(absl::StrJoin(flag->choices, " or "));
    }
    if (status.ok()) status = flag->set(value);
    if (!status.ok()) {
      return absl::InvalidArgumentError(absl::StrCat("--", flag->name, " is '", value, "', ", status.message()));
    }
  }
  if (loose.size() > positionals_.size()) return Unknown(loose[positionals_.size()]);
  if (loose.size() < positionals_.size()) {
    const auto name = [](std::string* out, const PositionalSpec& spec) { absl::StrAppend(out, spec.value_name); };
    return absl::InvalidArgumentError(absl::StrCat("found ", loose.size(), " of ", positionals_.size(),
                                                   " arguments, expected ", absl::StrJoin(positionals_, " ", name)));
  }
  for (size_t i = 0; i < loose.size(); ++i) *positionals_[i].value = loose[i];
  return absl::OkStatus();
}

std::vector<std::string> SplitList(absl::string_view text) {
  std::vector<std::string> pieces;
  for (absl::string_view piece : absl::StrSplit(text, ',')) {
    piece = absl::StripAsciiWhitespace(piece);
    if (!piece.empty()) pieces.emplace_back(piece);
  }
  return pieces;
}

}  // namespace permafrost
