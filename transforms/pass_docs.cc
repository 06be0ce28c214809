// Writes definitions of passes as Markdown.
#include "transforms/pass_docs.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"

namespace permafrost {
namespace {

std::string ParamRow(const ParamSpec& param) {
  std::string fallback = absl::StrCat("`", param.default_value, "`");
  if (param.default_value.empty()) fallback = "none";
  if (param.is_required) fallback = "required";
  return absl::StrCat("| `", param.name, "` | ", param.type, param.is_list ? ", repeatable" : "", " | ", fallback,
                      " | ", absl::StrReplaceAll(param.help, {{"|", "\\|"}}),
                      param.bounds.empty() ? "" : absl::StrCat(" Bounds: ", param.bounds, "."), " |\n");
}

}  // namespace

std::string PassDoc(const PassDefinition& pass) {
  std::string doc = absl::StrCat("## ", pass.name, "\n\n", pass.summary, "\n\n");
  // The comment's paragraphs; what is indented is before => after.
  for (const absl::string_view line : absl::StrSplit(pass.description, '\n')) {
    absl::StrAppend(&doc, absl::StartsWith(line, "  ") ? "  " : "", line, "\n");
  }
  if (!pass.params.empty()) {
    absl::StrAppend(&doc, "\n| parameter | type | default | meaning |\n|---|---|---|---|\n");
    for (const ParamSpec& param : pass.params) absl::StrAppend(&doc, ParamRow(param));
  }
  absl::StrAppend(&doc, "\nNumbers: ", pass.numerics.ToString(), ".");
  if (pass.is_idempotent) absl::StrAppend(&doc, " A second run changes nothing.");
  if (!pass.interface_change.empty()) absl::StrAppend(&doc, " Interface: ", pass.interface_change, ".");
  if (!pass.aliases.empty()) absl::StrAppend(&doc, " Also known as `", absl::StrJoin(pass.aliases, "`, `"), "`.");
  return absl::StrCat(doc, "\n");
}

std::string PresetDoc(const Preset& preset) {
  std::string doc = absl::StrCat("## ", preset.name, "\n\n", preset.summary, "\n\n", preset.description, "\n\n");
  for (const absl::string_view line : absl::StrSplit(TransformsOf(preset), '\n')) {
    absl::StrAppend(&doc, "    ", line, "\n");
  }
  return doc;
}

std::string PassDocs() {
  std::string page =
      "# Passes\n\n"
      "What `--transforms` may name, in the form `name(parameter=value, other=\"a value with blanks\") next_name`. "
      "Every\n"
      "pass also takes `ignore_errors=true`: if it fails, the graph stays as it was before it. Behind the passes come "
      "the\n"
      "presets, which are names for several. Generated from the definitions in `transforms/passes/` and\n"
      "`transforms/presets.cc`.\n";
  for (const PassDefinition& pass : AllPasses()) absl::StrAppend(&page, "\n", PassDoc(pass));
  absl::StrAppend(
      &page,
      "\n# Presets\n\n"
      "Names for transform strings. A preset stands where a pass may stand, alone or among passes, and takes\n"
      "`ignore_errors=true`, which goes to each of its passes. To change one, write its transforms out.\n");
  for (const Preset& preset : AllPresets()) absl::StrAppend(&page, "\n", PresetDoc(preset));
  return page;
}

}  // namespace permafrost
