// Generates manual pages and completions.
#include "tools/command_line/documents.h"

#include <functional>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"

namespace permafrost {
namespace {

// Escapes text for man(7): a hyphen must not become a dash, and a line must not begin like a request.
std::string Roff(absl::string_view text) {
  std::string escaped = absl::StrReplaceAll(text, {{"\\", "\\e"}, {"-", "\\-"}, {"'", "\\(aq"}, {"\n.", "\n\\&."}});
  if (!escaped.empty() && escaped[0] == '.') escaped.insert(0, "\\&");
  return escaped;
}

std::string Heading(absl::string_view name) {
  return absl::StrCat(".TH ", absl::AsciiStrToUpper(name), " 1 \"\" \"permafrost ", kVersion, "\"\n.SH NAME\n");
}

std::string ExitStatus() { return absl::StrCat(".SH EXIT STATUS\n", Roff(kExitCodes), ".\n"); }

// Returns text in single quotes for shells.
std::string Quoted(absl::string_view text) {
  return absl::StrCat("'", absl::StrReplaceAll(text, {{"'", "'\\''"}}), "'");
}

void ForEachFlag(const Tool& tool, const std::function<void(const FlagSpec&)>& visit) {
  tool.with_flags([&](const FlagTable& table) {
    for (const FlagSpec& flag : table.flags()) visit(flag);
  });
}

// Returns, for example, "--in_graph= --json ...".
std::string FlagWords(const Tool& tool) {
  std::vector<std::string> words;
  ForEachFlag(tool,
              [&](const FlagSpec& flag) { words.push_back(absl::StrCat("--", flag.name, flag.is_bool() ? "" : "=")); });
  words.push_back("--help");
  words.push_back("--version");
  return absl::StrJoin(words, " ");
}

// Returns the names of the subcommands. Completions offer the short names alone: the long ones begin with them.
std::string SubcommandNames(absl::Span<const Tool> tools) {
  return absl::StrJoin(tools, " ", [](std::string* out, const Tool& tool) { absl::StrAppend(out, ShortName(tool)); });
}

// Returns shell code (bash and zsh) that replaces a short name in $tool by the name.
std::string LengthenTool(absl::Span<const Tool> tools, absl::string_view indent) {
  std::string text = absl::StrCat(indent, "case \"$tool\" in\n");
  for (const Tool& tool : tools) {
    if (ShortName(tool) == tool.name) continue;
    absl::StrAppend(&text, indent, "  ", ShortName(tool), ") tool=", tool.name, " ;;\n");
  }
  return absl::StrCat(text, indent, "esac\n");
}

std::string Names(absl::Span<const Tool> tools) {
  return absl::StrJoin(tools, " ", [](std::string* out, const Tool& tool) { out->append(tool.name); });
}

// Returns the entry of a flag in a manual page.
std::string FlagEntry(const FlagSpec& flag) {
  std::string text = absl::StrCat(".TP\n\\fB\\-\\-", Roff(flag.name), "\\fR");
  if (!flag.is_bool()) absl::StrAppend(&text, "=\\fI", Roff(flag.value_name), "\\fR");
  absl::StrAppend(&text, "\n", Roff(flag.help));
  if (!flag.choices.empty()) absl::StrAppend(&text, " One of: ", Roff(absl::StrJoin(flag.choices, ", ")), ".");
  if (!flag.default_value.empty()) absl::StrAppend(&text, " Default: ", Roff(flag.default_value), ".");
  return text + "\n";
}

// Returns the first sentence, since a completion is one line.
std::string Brief(absl::string_view help) {
  const size_t end = help.find_first_of(".:\n");
  return absl::StrReplaceAll(help.substr(0, end), {{"[", "("}, {"]", ")"}});
}

}  // namespace

std::string ManualPage(const Tool& tool) {
  std::string text = absl::StrCat(Heading(tool.name), Roff(tool.name), " \\- ", Roff(tool.summary),
                                  "\n.SH SYNOPSIS\n.B ", Roff(tool.name), "\n");
  tool.with_flags([&](const FlagTable& table) {
    if (!table.flags().empty()) absl::StrAppend(&text, "[flags]");
    for (const PositionalSpec& positional : table.positionals()) {
      absl::StrAppend(&text, " \\fI", Roff(positional.value_name), "\\fR");
    }
    for (const FlagSpec* flag : table.ArgumentFlags()) absl::StrAppend(&text, " [", Roff(flag->name), "]");
    absl::StrAppend(&text, "\n.SH OPTIONS\n");
    for (const PositionalSpec& positional : table.positionals()) {
      absl::StrAppend(&text, ".TP\n\\fI", Roff(positional.value_name), "\\fR\n", Roff(positional.help), "\n");
    }
    for (const FlagSpec* flag : table.CommonFlags()) absl::StrAppend(&text, FlagEntry(*flag));
    absl::StrAppend(&text,
                    ".TP\n\\fB\\-\\-help\\fR, \\fB\\-\\-help=all\\fR, \\fB\\-\\-version\\fR\nPrint the common flags, "
                    "all flags, or the version.\n");
    for (const FlagSection& section : FurtherFlags(table)) {
      absl::StrAppend(&text, ".SS ", Roff(section.title.empty() ? "other" : section.title), "\n");
      for (const FlagSpec* flag : section.flags) absl::StrAppend(&text, FlagEntry(*flag));
    }
  });
  absl::StrAppend(&text, ".SH EXAMPLES\n");
  for (const Example& example : tool.examples) {
    absl::StrAppend(&text, ".PP\n", Roff(example.says), "\n.PP\n.nf\n.RS\n", Roff(tool.name), " ",
                    Roff(example.arguments), "\n.RE\n.fi\n");
  }
  return absl::StrCat(text, ExitStatus(), ".SH SEE ALSO\n.BR permafrost (1)\n");
}

std::string ManualPage(absl::Span<const Tool> tools) {
  std::string text = absl::StrCat(Heading("permafrost"), "permafrost \\- ", Roff(kPurpose),
                                  "\n.SH SYNOPSIS\n.B permafrost\n\\fITOOL\\fR [files and flags]\n.SH TOOLS\n");
  for (const Tool& tool : tools)
    absl::StrAppend(&text, ".TP\n\\fB", Roff(ShortName(tool)), "\\fR, \\fB", Roff(tool.name), "\\fR(1)\n",
                    Roff(tool.summary), "\n");
  return absl::StrCat(text, ExitStatus());
}

std::string BashCompletion(absl::Span<const Tool> tools) {
  std::string text =
      "# Completions of bash for permafrost and its tools. Generated from their flags.\n"
      "_permafrost() {\n"
      "  local word=\"${COMP_LINE:0:COMP_POINT}\" tool=\"${1##*/}\" words=\n"
      "  word=\"${word##*[[:space:]]}\"\n"
      "  if [ \"$tool\" = permafrost ]; then\n"
      "    tool=\"${COMP_WORDS[1]}\"\n"
      "    if [ \"$COMP_CWORD\" -le 1 ]; then\n";
  absl::StrAppend(&text, "      COMPREPLY=($(compgen -W '", SubcommandNames(tools),
                  " help --help --version' -- \"$word\"))\n", "      return\n    fi\n  fi\n", LengthenTool(tools, "  "),
                  "  case \"$tool$word\" in\n");
  for (const Tool& tool : tools) {
    ForEachFlag(tool, [&](const FlagSpec& flag) {
      if (flag.choices.empty()) return;
      absl::StrAppend(&text, "    ", tool.name, "--", flag.name, "=*) COMPREPLY=($(compgen -W '",
                      absl::StrJoin(flag.choices, " "), "' -- \"${word#*=}\")); return ;;\n");
    });
  }
  absl::StrAppend(&text,
                  "    *--*=*) COMPREPLY=($(compgen -f -- \"${word#*=}\")); return ;;\n  esac\n  case \"$tool\" in\n");
  for (const Tool& tool : tools) {
    absl::StrAppend(&text, "    ", tool.name, ") words='", FlagWords(tool), "' ;;\n");
  }
  absl::StrAppend(&text,
                  "  esac\n"
                  "  case \"$word\" in\n"
                  "    -*)\n"
                  "      COMPREPLY=($(compgen -W \"$words\" -- \"$word\"))\n"
                  "      [[ ${COMPREPLY[0]} != *= ]] || compopt -o nospace\n"
                  "      ;;\n"
                  "    *) COMPREPLY=($(compgen -f -- \"$word\")) ;;\n"
                  "  esac\n"
                  "}\n"
                  "complete -o filenames -F _permafrost permafrost ",
                  Names(tools), "\n");
  return text;
}

std::string ZshCompletion(absl::Span<const Tool> tools) {
  std::string text = absl::StrCat("#compdef permafrost ", Names(tools),
                                  "\n# Completions of zsh for permafrost and its tools. Generated from their flags.\n"
                                  "local tool=${service:t}\n"
                                  "if [[ $tool == permafrost ]]; then\n"
                                  "  if (( CURRENT == 2 )); then\n"
                                  "    local -a tools=(\n");
  for (const Tool& tool : tools) {
    absl::StrAppend(&text, "      ", Quoted(absl::StrCat(ShortName(tool), ":", Brief(tool.summary))), "\n");
  }
  absl::StrAppend(
      &text,
      "    )\n    _describe tool tools\n    return\n  fi\n  tool=$words[2]\n  shift words\n  (( CURRENT-- ))\nfi\n",
      LengthenTool(tools, ""), "case $tool in\n");
  for (const Tool& tool : tools) {
    absl::StrAppend(&text, "  ", tool.name, ") _arguments '*:file:_files' \\\n");
    ForEachFlag(tool, [&](const FlagSpec& flag) {
      std::string spec = absl::StrCat("--", flag.name, flag.is_bool() ? "" : "=", "[", Brief(flag.help), "]");
      if (!flag.choices.empty()) {
        absl::StrAppend(&spec, ":value:(", absl::StrJoin(flag.choices, " "), ")");
      } else if (!flag.is_bool()) {
        absl::StrAppend(&spec, ":", absl::AsciiStrToLower(absl::StrReplaceAll(flag.value_name, {{":", " "}})),
                        ":_files");
      }
      absl::StrAppend(&text, "    ", Quoted(spec), " \\\n");
    });
    absl::StrAppend(&text, "    '--help[Print the help]' '--version[Print the version]' ;;\n");
  }
  return absl::StrCat(text, "esac\n");
}

std::string FishCompletion(absl::Span<const Tool> tools) {
  std::string text = "# Completions of fish for permafrost and its tools. Generated from their flags.\n";
  for (const Tool& tool : tools) {
    const std::string names = ShortName(tool) == tool.name ? tool.name : absl::StrCat(ShortName(tool), " ", tool.name);
    absl::StrAppend(&text, "complete -c permafrost -n __fish_use_subcommand -f -a ", ShortName(tool), " -d ",
                    Quoted(tool.summary), "\n");
    const auto complete = [&](absl::string_view rest) {
      absl::StrAppend(&text, "complete -c ", tool.name, rest, "complete -c permafrost -n '__fish_seen_subcommand_from ",
                      names, "'", rest);
    };
    ForEachFlag(tool, [&](const FlagSpec& flag) {
      std::string rest = absl::StrCat(" -l ", flag.name, flag.is_bool() ? "" : " -r");
      if (!flag.choices.empty()) absl::StrAppend(&rest, " -f -a ", Quoted(absl::StrJoin(flag.choices, " ")));
      complete(absl::StrCat(rest, " -d ", Quoted(Brief(flag.help)), "\n"));
    });
    complete(" -l help -d 'Print the help'\n");
    complete(" -l version -d 'Print the version'\n");
  }
  return text;
}

}  // namespace permafrost
