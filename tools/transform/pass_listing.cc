// Prints passes from their definitions.
#include "tools/transform/pass_listing.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "graph/base/status.h"
#include "tools/command_line/json.h"
#include "transforms/pass.h"
#include "transforms/pipeline/presets.h"

namespace permafrost {
namespace {

std::string ParamText(const ParamSpec& param) {
  std::string text = absl::StrCat("  ", param.name, "  (", param.type);
  if (param.is_list) absl::StrAppend(&text, ", may be repeated");
  if (!param.bounds.empty()) absl::StrAppend(&text, ", ", param.bounds);
  if (param.is_required && param.bounds.empty()) absl::StrAppend(&text, ", required");
  if (!param.default_value.empty()) absl::StrAppend(&text, ", default ", param.default_value);
  return absl::StrCat(text, ")\n      ", param.help, "\n");
}

}  // namespace

void ListPasses(const Console& console) {
  Table table({{"pass"}, {"what it does"}});
  for (const PassDefinition& pass : AllPasses()) table.AddRow({pass.name, pass.summary});
  table.Print(console);
  console.out << "\n";
  Table presets({{"preset"}, {"what it does"}});
  for (const Preset& preset : AllPresets()) presets.AddRow({std::string(preset.name), std::string(preset.summary)});
  presets.Print(console);
}

void ListPassesAsJson(std::ostream& out) {
  JsonWriter json(out);
  json.BeginArray();
  for (const PassDefinition& pass : AllPasses()) {
    json.BeginObject();
    json.Key("name").Text(pass.name);
    json.Key("aliases").BeginArray();
    for (const std::string& alias : pass.aliases) json.Text(alias);
    json.End();
    json.Key("summary").Text(pass.summary);
    json.Key("why").Text(pass.why);
    json.Key("numerics").Text(pass.numerics.ToString());
    json.Key("is_idempotent").Bool(pass.is_idempotent);
    json.Key("interface_change").Text(pass.interface_change);
    json.Key("params").BeginArray();
    for (const ParamSpec& param : pass.params) {
      json.BeginObject();
      json.Key("name").Text(param.name);
      json.Key("type").Text(param.type);
      json.Key("default").Text(param.default_value);
      json.Key("is_list").Bool(param.is_list);
      json.Key("is_required").Bool(param.is_required);
      json.Key("bounds").Text(param.bounds);
      json.Key("help").Text(param.help);
      json.End();
    }
    json.End();
    json.End();
  }
  for (const Preset& preset : AllPresets()) {
    json.BeginObject();
    json.Key("name").Text(preset.name);
    json.Key("summary").Text(preset.summary);
    json.Key("transforms").Text(TransformsOf(preset));
    json.Key("params").BeginArray();
    json.End();
    json.End();
  }
  json.End();
}

absl::Status DescribePass(absl::string_view name, const Console& console) {
  if (const Preset* preset = FindPreset(name)) {
    console.out << console.Styled(Style::kBold, preset->name) << ": " << preset->summary << "\n\n"
                << preset->description << "\n\ntransforms:\n";
    for (const absl::string_view line : absl::StrSplit(TransformsOf(*preset), '\n'))
      console.out << "  " << line << "\n";
    console.out << "\nparameters:\n  ignore_errors  (bool, default false)\n"
                << "      Goes to each of the transforms.\n";
    return absl::OkStatus();
  }
  PF_ASSIGN_OR_RETURN(const PassDefinition* pass, FindPass(name));
  console.out << console.Styled(Style::kBold, pass->name) << ": " << pass->summary << "\n"
              << pass->why << "\n\n"
              << "numbers: " << pass->numerics.ToString() << "\n";
  if (!pass->interface_change.empty()) console.out << "inputs and outputs: " << pass->interface_change << "\n";
  if (!pass->aliases.empty()) console.out << "also known as: " << absl::StrJoin(pass->aliases, ", ") << "\n";
  console.out << (pass->is_idempotent ? "a second run changes nothing more\n" : "") << "\nparameters:\n";
  for (const ParamSpec& param : pass->params) console.out << ParamText(param);
  console.out << "  ignore_errors  (bool, default false)\n"
              << "      Go on with the graph as it was when this pass fails.\n";
  return absl::OkStatus();
}

}  // namespace permafrost
