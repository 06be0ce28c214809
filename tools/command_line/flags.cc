// Parser of command lines.
#include "tools/command_line/flags.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <limits>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "graph/base/nearest.h"
#include "graph/base/status.h"
#include "tools/command_line/standard_streams.h"
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

// A flag of the logging libraries in TensorFlow's tools. Published command lines contain them.
struct LoggingFlag {
  absl::string_view name;
  bool needs_value;
};

// Flags of glog and of Abseil's log, which TensorFlow's tools and its Python scripts have.
constexpr LoggingFlag kLoggingFlags[] = {
    {"--logtostderr", false},
    {"--alsologtostderr", false},
    {"--colorlogtostderr", false},
    {"--log_prefix", false},
    {"--showprefixforinfo", false},
    {"--stderrthreshold", true},
    {"--v", true},
    {"--verbosity", true},
    {"--vmodule", true},
    {"--minloglevel", true},
    {"--log_dir", true},
    {"--undefok", true},
};

const LoggingFlag* FindLoggingFlag(absl::string_view name) {
  for (const LoggingFlag& flag : kLoggingFlags) {
    if (flag.name == name) return &flag;
  }
  return nullptr;
}

// Sets a bool, or an optional one.
template <typename Value>
std::function<absl::Status(const std::string&)> SetBool(Value* value) {
  return [value](const std::string& text) {
    const std::string lower = absl::AsciiStrToLower(text);  // Python scripts write True and False.
    if (lower != "true" && lower != "false") return Expected("true or false");
    *value = lower == "true";
    return absl::OkStatus();
  };
}

}  // namespace

bool FlagSpec::is_path() const {
  return absl::StrContains(value_name, "FILE") || absl::StrContains(value_name, "FOLDER") ||
         absl::StrContains(value_name, "PATH") || value_name == "PREFIX";
}

FlagSpec& FlagTable::AddSpec(std::string name, std::string value_name, std::string default_value, std::string help) {
  FlagSpec& flag = flags_.emplace_back();
  flag.name = std::move(name);
  flag.value_name = std::move(value_name);
  flag.default_value = std::move(default_value);
  flag.help = std::move(help);
  flag.group = group_;
  return flag;
}

void FlagTable::Add(std::string name, std::string* value, std::string value_name, std::string help) {
  AddSpec(std::move(name), std::move(value_name), *value, std::move(help)).set = SetText(value);
}

void FlagTable::Add(std::string name, std::optional<std::string>* value, std::string value_name, std::string help) {
  AddSpec(std::move(name), std::move(value_name), "", std::move(help)).set = SetText(value);
}

void FlagTable::Add(std::string name, std::vector<std::string>* values, std::string value_name, std::string help) {
  FlagSpec& spec = AddSpec(std::move(name), std::move(value_name), "", std::move(help));
  spec.is_repeated = true;
  spec.set = [values](const std::string& text) {
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
  AddSpec(std::move(name), "", *value ? "true" : "", std::move(help)).set = SetBool(value);
}

void FlagTable::Add(std::string name, std::optional<bool>* value, std::string default_value, std::string help) {
  AddSpec(std::move(name), "", std::move(default_value), std::move(help)).set = SetBool(value);
}

void FlagTable::AddChoice(std::string name, std::string* value, std::vector<std::string> choices, std::string help) {
  FlagSpec& spec = AddSpec(std::move(name), absl::StrJoin(choices, "|"), *value, std::move(help));
  spec.choices = std::move(choices);
  spec.set = SetText(value);
}

void FlagTable::AddPositional(std::string value_name, std::string* value, std::string help, bool is_written) {
  positionals_.push_back({std::move(value_name), std::move(help), value, is_written});
}

FlagSpec& FlagTable::Named(absl::string_view name) {
  const auto found =
      std::find_if(flags_.begin(), flags_.end(), [&](const FlagSpec& flag) { return flag.name == name; });
  assert(found != flags_.end());
  return *found;
}

const FlagSpec* FlagTable::Find(absl::string_view name) const {
  const auto found =
      std::find_if(flags_.begin(), flags_.end(), [&](const FlagSpec& flag) { return flag.name == name; });
  return found == flags_.end() ? nullptr : &*found;
}

void FlagTable::MarkCommon(const std::vector<std::string>& names) {
  common_ = names;
  for (const std::string& name : names) Named(name).is_common = true;
}

void FlagTable::AcceptAsArguments(const std::vector<std::string>& names) {
  for (const std::string& name : names) set_by_arguments_.push_back(Named(name).name);
}

void FlagTable::MarkOutputs(const std::vector<std::string>& names) {
  for (const std::string& name : names) Named(name).is_output = true;
}

void FlagTable::MarkWritten(const std::vector<std::string>& names) {
  for (const std::string& name : names) Named(name).is_written = true;
}

std::vector<const FlagSpec*> FlagTable::CommonFlags() const {
  std::vector<const FlagSpec*> common;
  for (const std::string& name : common_) common.push_back(Find(name));
  if (!common.empty()) return common;
  for (const FlagSpec& flag : flags_) common.push_back(&flag);
  return common;
}

std::vector<const FlagSpec*> FlagTable::ArgumentFlags() const {
  std::vector<const FlagSpec*> flags;
  for (const std::string& name : set_by_arguments_) flags.push_back(Find(name));
  return flags;
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

absl::Status FlagTable::Set(const FlagSpec& flag, const std::string& value, ParseOutcome* outcome) const {
  absl::Status status;
  if (!flag.choices.empty()) {
    const bool is_known = std::find(flag.choices.begin(), flag.choices.end(), value) != flag.choices.end();
    if (!is_known) status = Expected(absl::StrJoin(flag.choices, " or "));
  }
  if (status.ok()) status = flag.set(value);
  if (!status.ok()) {
    return absl::InvalidArgumentError(absl::StrCat("--", flag.name, " is '", value, "', ", status.message()));
  }
  outcome->given.push_back({&flag, value});
  if (flag.is_output && value == kStandardStream) outcome->writes_to_standard_output = true;
  return absl::OkStatus();
}

size_t FlagTable::MostArguments() const {
  if (!set_by_arguments_.empty() && Find(set_by_arguments_.back())->is_repeated) {
    return std::numeric_limits<size_t>::max();
  }
  return positionals_.size() + set_by_arguments_.size();
}

absl::Status FlagTable::SetArguments(const std::vector<std::string>& arguments, const std::vector<std::string>& given,
                                     ParseOutcome* outcome) const {
  if (arguments.size() > MostArguments()) return Unknown(arguments[MostArguments()]);
  if (arguments.size() < positionals_.size()) {
    const auto name = [](std::string* out, const PositionalSpec& spec) { absl::StrAppend(out, spec.value_name); };
    return absl::InvalidArgumentError(absl::StrCat("found ", arguments.size(), " of ", positionals_.size(),
                                                   " arguments, expected ", absl::StrJoin(positionals_, " ", name)));
  }
  for (size_t i = 0; i < positionals_.size(); ++i) *positionals_[i].value = arguments[i];
  for (size_t i = positionals_.size(); i < arguments.size(); ++i) {
    const std::string& name = set_by_arguments_[std::min(i - positionals_.size(), set_by_arguments_.size() - 1)];
    // The value may have been meant for another flag.
    if (std::find(given.begin(), given.end(), name) != given.end()) {
      return absl::InvalidArgumentError(absl::StrCat("Unknown argument ", arguments[i], ": --", name, " is given"));
    }
    PF_RETURN_IF_ERROR(Set(*Find(name), arguments[i], outcome));
  }
  return absl::OkStatus();
}

absl::Status FlagTable::Parse(absl::Span<const std::string> arguments, ParseOutcome* outcome) const {
  ParseOutcome ignored;
  if (outcome == nullptr) outcome = &ignored;
  std::vector<std::string> loose, given;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string& argument = arguments[i];
    PF_RETURN_IF_ERROR(CheckTypography(argument));
    if (argument == "--") {
      loose.insert(loose.end(), arguments.begin() + i + 1, arguments.end());
      break;
    }
    if (!absl::StartsWith(argument, "-") || argument == kStandardStream) {
      if (loose.size() >= MostArguments()) return Unknown(argument);
      loose.push_back(argument);
      continue;
    }
    const size_t equals = argument.find('=');
    const std::string name = argument.substr(0, equals);
    const FlagSpec* flag = absl::StartsWith(name, "--") ? Find(name.substr(2)) : nullptr;
    const LoggingFlag* logging = flag == nullptr ? FindLoggingFlag(name) : nullptr;
    if (flag == nullptr && logging == nullptr) return Unknown(argument);
    const bool needs_value = flag != nullptr ? !flag->is_bool() : logging->needs_value;
    std::string value = "true";
    if (equals != std::string::npos) {
      value = argument.substr(equals + 1);
    } else if (needs_value) {
      if (i + 1 == arguments.size() || absl::StartsWith(arguments[i + 1], "--")) {
        const std::string expected = absl::StrCat(name, "=", flag != nullptr ? flag->value_name : "VALUE");
        return absl::InvalidArgumentError(absl::StrCat(name, " has no value, expected ", expected));
      }
      value = arguments[++i];
      PF_RETURN_IF_ERROR(CheckTypography(value));
    }
    if (flag == nullptr) {
      outcome->notes.push_back(absl::StrCat(name, " is ignored: it controls the log of TensorFlow's tools"));
      continue;
    }
    PF_RETURN_IF_ERROR(Set(*flag, value, outcome));
    given.push_back(flag->name);
  }
  return SetArguments(loose, given, outcome);
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
