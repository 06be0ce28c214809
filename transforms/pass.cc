// Parses the arguments of passes and builds the registry from the generated list of files.
#include "transforms/pass.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "graph/base/nearest.h"
#include "transforms/pipeline/presets.h"
#include "transforms/way_out.h"

namespace permafrost {

#define PASS(name) PassDefinition DefinePass_##name();
#include "transforms/pass_list.inc"
#undef PASS

const std::vector<PassDefinition>& AllPasses() {
  static const auto* passes = [] {
    auto* all = new std::vector<PassDefinition>;
#define PASS(id)                     \
  all->push_back(DefinePass_##id()); \
  all->back().name = #id;
#include "transforms/pass_list.inc"
#undef PASS
    for (PassDefinition& pass : *all) {
#define PASS_COMMENT(id, text) \
  if (pass.name == #id) pass.description = text;
#include "transforms/pass_comments.inc"
#undef PASS_COMMENT
    }
    return all;
  }();
  return *passes;
}

absl::StatusOr<const PassDefinition*> FindPass(absl::string_view name) {
  std::vector<absl::string_view> names;
  for (const PassDefinition& pass : AllPasses()) {
    if (pass.name == name) return &pass;
    if (std::find(pass.aliases.begin(), pass.aliases.end(), name) != pass.aliases.end()) return &pass;
    names.push_back(pass.name);
  }
  for (const Preset& preset : AllPresets()) names.push_back(preset.name);
  const std::string near = DidYouMean(name, names);
  return absl::InvalidArgumentError(
      absl::StrCat("transform '", name, "' not recognized",
                   near.empty() ? absl::StrCat(", expected one of: ", absl::StrJoin(names, ", ")) : near));
}

std::string MissedRewrite::ToString() const {
  return absl::StrCat("node '", node, "' (", op, "): ", reason, way_out.empty() ? "" : "; ", way_out);
}

void PassContext::Miss(const Node& node, absl::string_view reason, absl::string_view way_out) {
  if (!wants_misses) return;
  misses.push_back(
      {std::string(node.name()), std::string(node.op().name()), std::string(reason), std::string(way_out)});
}

void PassContext::Miss(const Node& node, const NearMiss& near_miss) {
  if (!wants_misses) return;
  Miss(node, near_miss.reason, WayOutOf(near_miss));
  misses.back().num_failures = near_miss.num_failures;
}

void PassContext::Miss(const Node& node, const absl::Status& status) {
  ++num_misses;
  if (wants_misses) Miss(node, NearMissOf(status, node.graph()));
}

bool PassContext::AllowLastRewrite(absl::Span<const Node* const> matched) {
  if (num_rewrites_asked != rewrite_limit) return false;
  last_rewrite.clear();
  for (const Node* node : matched) {
    if (node != nullptr) last_rewrite.emplace_back(node->name());
  }
  return true;
}

std::string Numerics::ToString() const {
  switch (kind) {
    case Kind::kExact:
      return "exact";
    case Kind::kWithin:
      return absl::StrCat("within ", tolerance);
    case Kind::kChanges:
      return absl::StrCat("changes outputs: ", why);
  }
  return "";
}

Bound AtLeast(double low) {
  Bound bound;
  bound.low = low;
  bound.text = absl::StrCat("at least ", low);
  return bound;
}

Bound Between(double low, double high) {
  Bound bound;
  bound.low = low;
  bound.high = high;
  bound.text = absl::StrCat(low, " to ", high);
  return bound;
}

Bound Required() {
  Bound bound;
  bound.is_required = true;
  return bound;
}

namespace pass_internal {

absl::Status ParseInto(const ParamSpec&, const std::string& text, std::string* out) {
  *out = text;
  return absl::OkStatus();
}

absl::Status ParseInto(const ParamSpec& spec, const std::string& text, bool* out) {
  if (text == "true" || text == "1") {
    *out = true;
  } else if (text == "false" || text == "0") {
    *out = false;
  } else {
    return absl::InvalidArgumentError(
        absl::StrCat("parameter '", spec.name, "': found '", text, "', expected true, false, 0 or 1"));
  }
  return absl::OkStatus();
}

namespace {

template <typename T>
absl::Status ParseInteger(const ParamSpec& spec, const std::string& text, T* out) {
  if (absl::SimpleAtoi(text, out)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("parameter '", spec.name, "': found '", text,
                                                 "', expected a whole number of ", sizeof(T) * 8, " bits"));
}

}  // namespace

absl::Status ParseInto(const ParamSpec& spec, const std::string& text, int32_t* out) {
  return ParseInteger(spec, text, out);
}
absl::Status ParseInto(const ParamSpec& spec, const std::string& text, int64_t* out) {
  return ParseInteger(spec, text, out);
}

absl::Status ParseInto(const ParamSpec& spec, const std::string& text, float* out) {
  if (absl::SimpleAtof(text, out)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("parameter '", spec.name, "': found '", text, "', expected a number"));
}

std::string TypeName(const std::string*) { return "string"; }
std::string TypeName(const bool*) { return "bool"; }
std::string TypeName(const int32_t*) { return "int32"; }
std::string TypeName(const int64_t*) { return "int64"; }
std::string TypeName(const float*) { return "float"; }

std::string DefaultText(const std::string& value) { return value; }
std::string DefaultText(bool value) { return value ? "true" : "false"; }
std::string DefaultText(int32_t value) { return absl::StrCat(value); }
std::string DefaultText(int64_t value) { return absl::StrCat(value); }
std::string DefaultText(float value) { return absl::StrCat(value); }

absl::Status CheckBound(const ParamSpec& spec, const Bound& bound, double value) {
  if (value >= bound.low && value <= bound.high) return absl::OkStatus();  // False for NaN if there is a bound.
  if (bound.text.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("parameter '", spec.name, "' is ", value, ", expected ", bound.text));
}

absl::Status UnknownArgument(const PassArgument& argument, const std::vector<ParamSpec>& params) {
  std::vector<absl::string_view> names;
  for (const ParamSpec& spec : params) names.push_back(spec.name);
  names.push_back("ignore_errors");
  std::string accepted;
  for (const absl::string_view name : names) absl::StrAppend(&accepted, accepted.empty() ? "" : ", ", name);
  return absl::InvalidArgumentError(absl::StrCat("unknown parameter '", argument.name, "'",
                                                 DidYouMean(argument.name, names), " (accepted: ", accepted, ")"));
}

absl::Status Repeated(const ParamSpec& spec, size_t times) {
  return absl::InvalidArgumentError(
      absl::StrCat("expected a single '", spec.name, "' parameter, but found ", times, " occurrences"));
}

absl::Status Missing(const ParamSpec& spec) {
  return absl::InvalidArgumentError(absl::StrCat("parameter '", spec.name, "' is missing (", spec.help, ")"));
}

}  // namespace pass_internal
}  // namespace permafrost
