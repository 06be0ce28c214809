// Writes definitions of passes as Markdown.
#include "transforms/pass_docs.h"

#include <vector>

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

// Columns of docs/pass_figures.tsv, which tests/bench/pass_figures.py writes.
enum Column {
  kPass,
  kGraph,
  kCall,
  kBefore,
  kNodesBefore,
  kNodesAfter,
  kBytesBefore,
  kBytesAfter,
  kRewrites,
  kColumns
};
constexpr absl::string_view kFigures =
#include "transforms/pass_figures.inc"
    ;

// Returns the number with digits grouped, as in "95,691,732".
std::string Grouped(absl::string_view number) {
  std::string grouped;
  for (size_t i = 0; i < number.size(); ++i) {
    if (i > 0 && (number.size() - i) % 3 == 0) grouped += ',';
    grouped += number[i];
  }
  return grouped;
}

std::string Change(absl::string_view before, absl::string_view after, absl::string_view unit) {
  if (before == after) return absl::StrCat(Grouped(before), " ", unit, " as before");
  return absl::StrCat(Grouped(before), " ", unit, " become ", Grouped(after));
}

// Returns a command line and its result; empty for a pass that was not measured.
std::string ExampleOf(absl::string_view pass) {
  for (const absl::string_view line : absl::StrSplit(kFigures, '\n')) {
    const std::vector<absl::string_view> cells = absl::StrSplit(line, '\t');
    if (cells.size() != kColumns || cells[kPass] != pass) continue;
    const bool is_golden = absl::EndsWith(cells[kGraph], ".pbtxt");
    const std::string graph = is_golden ? std::string(cells[kGraph]) : absl::StrCat(cells[kGraph], ".pb");
    const std::string transforms = absl::StrCat(cells[kBefore], cells[kBefore].empty() ? "" : " ", cells[kCall]);
    return absl::StrCat("\nExample:\n\n    transform_graph --in_graph=", graph, " --out_graph=out.pb --transforms='",
                        transforms, "'\n\n",
                        cells[kBefore].empty() ? "" : "Effect of this pass: ", Grouped(cells[kRewrites]),
                        cells[kRewrites] == "1" ? " rewrite; " : " rewrites; ",
                        Change(cells[kNodesBefore], cells[kNodesAfter], "nodes"), ", ",
                        Change(cells[kBytesBefore], cells[kBytesAfter], "bytes"), ".\n");
  }
  return "";
}

}  // namespace

std::string PassDoc(const PassDefinition& pass) {
  std::string doc = absl::StrCat("## ", pass.name, "\n\n", pass.summary, " ", pass.why, "\n\n");
  // Copies the paragraphs of the comment; indented lines are before => after.
  for (const absl::string_view line : absl::StrSplit(pass.description, '\n')) {
    absl::StrAppend(&doc, absl::StartsWith(line, "  ") ? "  " : "", line, "\n");
  }
  if (!pass.params.empty()) {
    absl::StrAppend(&doc, "\n| parameter | type | default | meaning |\n|---|---|---|---|\n");
    for (const ParamSpec& param : pass.params) absl::StrAppend(&doc, ParamRow(param));
  }
  absl::StrAppend(&doc, "\nNumerics: ", pass.numerics.ToString(), ".");
  if (pass.is_idempotent) absl::StrAppend(&doc, " The pass is idempotent.");
  if (!pass.interface_change.empty()) absl::StrAppend(&doc, " Interface: ", pass.interface_change, ".");
  if (!pass.aliases.empty()) absl::StrAppend(&doc, " Also known as `", absl::StrJoin(pass.aliases, "`, `"), "`.");
  return absl::StrCat(doc, "\n", ExampleOf(pass.name));
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
      "Passes and presets that `--transforms` accepts, in the form `name(parameter=value) next_name`; quote values\n"
      "that contain blanks. Every pass also accepts `ignore_errors=true`: if the pass fails, the graph stays as it\n"
      "was before the pass. Presets, which expand to several passes, follow the passes. Each entry gives the purpose\n"
      "of the pass, the graph before and after, the conditions under which it leaves nodes unchanged, its\n"
      "parameters, its guarantee about the outputs, and its effect on a real model.\n"
      "`transform_graph --explain` reports near misses of a pass and their remedies.\n"
      "[Interoperability](interoperability.md) lists the programs that read the results.\n\n"
      "Generated from the definitions in `transforms/passes/` and `transforms/pipeline/presets.cc`; the figures are\n"
      "measured by `tests/bench/pass_figures.py`.\n";
  for (const PassDefinition& pass : AllPasses()) absl::StrAppend(&page, "\n", PassDoc(pass));
  absl::StrAppend(
      &page,
      "\n# Presets\n\n"
      "Names for lists of passes. A preset can be used like a pass, alone or among passes, and accepts\n"
      "`ignore_errors=true`, which applies to each of its passes. To modify a preset, write out its transforms.\n");
  for (const Preset& preset : AllPresets()) absl::StrAppend(&page, "\n", PresetDoc(preset));
  return page;
}

}  // namespace permafrost
