// Runs tools from a command line.
#include "tools/command_line/cli.h"

#include <signal.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <new>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "graph/base/nearest.h"
#include "graph/base/printable.h"
#include "tools/command_line/sandbox.h"
#include "tools/command_line/standard_streams.h"
#include "tools/command_line/typography.h"

namespace permafrost {
namespace {

constexpr size_t kHelpColumn = 6;
// Limits of the width taken from a terminal: narrower text is hard to read, and so are longer lines.
constexpr size_t kNarrowestHelp = 40;
constexpr size_t kWidestHelp = 120;

// Wraps `text` at `width`, each line indented.
std::string Wrapped(absl::string_view text, size_t indent, size_t width) {
  std::string out;
  std::string line(indent, ' ');
  for (const absl::string_view word : absl::StrSplit(text, ' ')) {
    if (line.size() > indent && line.size() + 1 + word.size() > width) {
      absl::StrAppend(&out, line, "\n");
      line.assign(indent, ' ');
    }
    absl::StrAppend(&line, line.size() > indent ? " " : "", word);
  }
  return absl::StrCat(out, line, "\n");
}

std::string FlagHelp(const FlagSpec& flag, size_t width) {
  std::string usage = absl::StrCat("--", flag.name);
  if (!flag.is_bool()) absl::StrAppend(&usage, "=", flag.value_name);
  if (!flag.default_value.empty()) absl::StrAppend(&usage, "   (default ", flag.default_value, ")");
  return absl::StrCat("  ", usage, "\n", Wrapped(flag.help, kHelpColumn, width));
}

// Returns the section with the texts of its flags, or with their names alone.
std::string SectionHelp(const FlagSection& section, HelpScope scope, size_t width) {
  const std::string title = section.title.empty() ? "other" : section.title;
  if (scope == HelpScope::kAll) {
    std::string text = absl::StrCat("\n", title, ":\n");
    for (const FlagSpec* flag : section.flags) absl::StrAppend(&text, FlagHelp(*flag, width));
    return text;
  }
  const auto name = [](std::string* out, const FlagSpec* flag) { absl::StrAppend(out, "--", flag->name); };
  return absl::StrCat("  ", title, "\n", Wrapped(absl::StrJoin(section.flags, " ", name), kHelpColumn, width));
}

constexpr absl::string_view kLiftsSandbox =
    "; the sandbox allows only files that flags name, and --sandbox=false lifts it";

int Fail(const std::string& name, const absl::Status& status, const Console& console) {
  console.Progress("");
  // The runtime has limits of a caller; in the tools, they come from a flag.
  const absl::string_view message = status.message();
  const bool names_limit = absl::IsResourceExhausted(status) && !absl::StrContains(message, "--max_memory") &&
                           (absl::StrContains(message, kOfALimit) || absl::StrContains(message, "memory"));
  const bool names_sandbox = absl::IsPermissionDenied(status) && AreFilesRestricted();
  console.err << name << ": " << PrintableLines(message) << (names_limit ? kRaisesLimit : "")
              << (names_sandbox ? kLiftsSandbox : "") << "\n"
              << std::flush;
  return ExitCode(status);
}

// Flushes the buffers, so that write errors are detected.
int Finish(const std::string& name, const absl::Status& status, const Console& console) {
  console.out.flush();
  if (!console.out.good()) return Fail(name, absl::UnavailableError("cannot write to standard output"), console);
  return status.ok() ? 0 : Fail(name, status, console);
}

constexpr char kSandboxFlag[] = "sandbox";

// A plug-in may need files and devices that no flag names, and trials are processes. Tools without either lose nothing.
bool IsSandboxedByDefault(const FlagTable& table) {
  return !table.Has("custom_ops") && !table.Has("delegates") && !table.starts_processes();
}

// Restricts the process as --sandbox and the other flags say. Leaves errors of the command line to the tool.
absl::Status EnterSandboxOf(const Tool& tool, absl::Span<const std::string> arguments) {
  SandboxPlan plan;
  bool is_wanted = false, is_explicit = false;
  tool.with_flags([&](const FlagTable& table) {
    ParseOutcome outcome;
    if (!table.Parse(arguments, &outcome).ok()) return;
    is_wanted = IsSandboxedByDefault(table);
    plan.may_fork = table.starts_processes();
    for (const PositionalSpec& positional : table.positionals()) {
      positional.is_written ? AddWritable(*positional.value, &plan)
                            : AddReadable(*positional.value, NamedFiles::kModel, &plan);
    }
    for (const GivenFlag& given : outcome.given) {
      if (given.flag->name == kSandboxFlag) {
        is_explicit = is_wanted = absl::EqualsIgnoreCase(given.value, "true");
      } else if (given.flag->is_output || given.flag->is_written) {
        if (given.value != kStandardStream) AddWritable(given.value, &plan);
      } else if (given.flag->is_path() || absl::StrContains(given.value, ".so")) {
        const bool is_list = absl::StrContains(given.flag->value_name, "FILES");
        AddReadable(given.value, is_list ? NamedFiles::kData : NamedFiles::kModel, &plan);
      } else if (given.flag->value_name == "PASSES") {
        AddReadableOfText(given.value, &plan);
      }
    }
  });
  if (!is_wanted) return absl::OkStatus();
  const SandboxGaps gaps = EnterSandbox(plan);
  if (!is_explicit || gaps.empty()) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("--sandbox: ", gaps.files.empty() ? gaps.system_calls : gaps.files,
                   "; without the flag, the tool runs with the restrictions that there are"));
}

// Returns the status of the tool. Exceptions become errors: libraries throw them if memory or threads run out.
absl::Status Outcome(const Tool& tool, absl::Span<const std::string> arguments, FileSystem& files, Console& console,
                     Process process) {
  try {
    if (process == Process::kOwn) {
      if (absl::Status status = EnterSandboxOf(tool, arguments); !status.ok()) return status;
    }
    return tool.run(arguments, files, console);
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError(absl::StrCat("there is not enough memory", kRaisesLimit));
  } catch (const std::exception& exception) {
    return absl::InternalError(exception.what());
  }
}

std::string Overview(const std::vector<Tool>& tools, size_t width) {
  std::string text = absl::StrCat("permafrost: ", kPurpose, "\n\nusage: permafrost TOOL [files and flags]\n\ntools:\n");
  for (const Tool& tool : tools) {
    const absl::string_view name = ShortName(tool);
    absl::StrAppend(&text, "  ", name, name == tool.name ? "" : absl::StrCat("   (or ", tool.name, ")"), "\n",
                    Wrapped(tool.summary, kHelpColumn, width));
  }
  return absl::StrCat(text,
                      "\n'permafrost TOOL --help' describes a tool; 'permafrost --version' prints the version.\n");
}

// Returns the columns of a help text.
size_t HelpWidth() {
  winsize size = {};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return Console{std::cout, std::cerr}.width;
  return std::clamp<size_t>(size.ws_col, kNarrowestHelp, kWidestHelp);
}

Console ProcessConsole() {
  const char* no_color = std::getenv("NO_COLOR");
  const char* term = std::getenv("TERM");
  const bool is_dumb = term == nullptr || absl::string_view(term) == "dumb";
  const bool wants_color = (no_color == nullptr || *no_color == '\0') && !is_dumb;
  const bool is_terminal = isatty(STDOUT_FILENO) == 1;
  return {std::cout,   std::cerr,  wants_color && is_terminal, !is_dumb && isatty(STDERR_FILENO) == 1,
          is_terminal, HelpWidth()};
}

// Makes a write beyond the limit of file sizes (ulimit -f) an error, which the tool reports, instead of a signal.
void IgnoreFileSizeSignal() { signal(SIGXFSZ, SIG_IGN); }

std::vector<std::string> Arguments(int argc, char** argv) {
  return argc > 1 ? std::vector<std::string>(argv + 1, argv + argc) : std::vector<std::string>();
}

}  // namespace

int ExitCode(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kOk:
      return 0;
    case absl::StatusCode::kAborted:
      return 1;
    default:
      return 255;
  }
}

void AddLimitFlags(LimitFlags* limits, FlagTable* flags) {
  flags->Group("limits");
  flags->Add("max_memory", &limits->max_memory, "BYTES",
             "Maximum memory to allocate, besides the mapped model. 0: half of the available memory.");
  flags->Add(
      kSandboxFlag, &limits->sandbox, IsSandboxedByDefault(*flags) ? "true" : "",
      "Deny files that no flag names, new programs and the network (docs/security.md). Given as a flag, it is an "
      "error if the kernel lacks landlock or seccomp.");
  flags->Group("");
}

absl::Status RunParsed(const ParseOutcome& outcome, Console& console,
                       const std::function<absl::Status(Console& console)>& run) {
  for (const std::string& note : outcome.notes) console.err << "note: " << Printable(note) << "\n";
  if (!outcome.writes_to_standard_output) return run(console);
  Console redirected{console.err, console.err, false, console.progress, false, console.width};
  return run(redirected);
}

absl::string_view ShortName(const Tool& tool) {
  absl::string_view name = tool.name;
  for (const absl::string_view object : {"_graph", "_graphs", "_model"}) {
    if (absl::ConsumeSuffix(&name, object)) break;
  }
  // A program of its own has a name that no other package uses: `permafrost_doctor` is `permafrost doctor`.
  absl::ConsumePrefix(&name, "permafrost_");
  return name;
}

std::vector<FlagSection> FurtherFlags(const FlagTable& table) {
  std::vector<FlagSection> sections;
  const std::vector<const FlagSpec*> common = table.CommonFlags();
  for (const FlagSpec& flag : table.flags()) {
    if (std::find(common.begin(), common.end(), &flag) != common.end()) continue;
    auto section = std::find_if(sections.begin(), sections.end(),
                                [&](const FlagSection& candidate) { return candidate.title == flag.group; });
    if (section == sections.end()) section = sections.insert(section, {flag.group, {}});
    section->flags.push_back(&flag);
  }
  return sections;
}

std::string HelpText(const Tool& tool, HelpScope scope, size_t width) {
  std::string text = absl::StrCat(tool.name, ": ", tool.summary, "\n\nusage: ", tool.name);
  tool.with_flags([&](const FlagTable& table) {
    absl::StrAppend(&text, table.flags().empty() ? "" : " [flags]");
    for (const PositionalSpec& positional : table.positionals()) absl::StrAppend(&text, " ", positional.value_name);
    for (const FlagSpec* flag : table.ArgumentFlags()) absl::StrAppend(&text, " [", flag->name, "]");
    absl::StrAppend(&text, "\n\n");
    for (const PositionalSpec& positional : table.positionals()) {
      absl::StrAppend(&text, "  ", positional.value_name, "\n", Wrapped(positional.help, kHelpColumn, width));
    }
    for (const FlagSpec* flag : table.CommonFlags()) absl::StrAppend(&text, FlagHelp(*flag, width));
    absl::StrAppend(&text, "  --help, --help=all, --version\n",
                    Wrapped("Print this text, the text with all flags, or the version.", kHelpColumn, width));
    const std::vector<FlagSection> sections = FurtherFlags(table);
    if (scope == HelpScope::kCommon && !sections.empty()) absl::StrAppend(&text, "\nfurther flags (--help=all):\n");
    for (const FlagSection& section : sections) absl::StrAppend(&text, SectionHelp(section, scope, width));
  });
  absl::StrAppend(&text, "\nexamples:\n");
  for (const Example& example : tool.examples) {
    absl::StrAppend(&text, Wrapped(absl::StrCat("# ", example.says), 2, width), "  ", tool.name, " ", example.arguments,
                    "\n");
  }
  absl::StrAppend(&text, "\n", Wrapped(absl::StrCat("exit status: ", kExitCodes), 0, width));
  return text;
}

int RunTool(const Tool& tool, absl::Span<const std::string> arguments, FileSystem& files, Console& console,
            Process process) {
  for (const std::string& argument : arguments) {
    if (argument == "--") break;
    if (argument == "--help" || argument == "-h" || argument == "--help=all") {
      const HelpScope scope = argument == "--help=all" ? HelpScope::kAll : HelpScope::kCommon;
      console.out << HelpText(tool, scope, console.width);
      return Finish(tool.name, absl::OkStatus(), console);
    }
    if (argument == "--version") {
      console.out << tool.name << " " << kVersion << "\n";
      return Finish(tool.name, absl::OkStatus(), console);
    }
  }
  return Finish(tool.name, Outcome(tool, arguments, files, console, process), console);
}

int RunSubcommand(const std::vector<Tool>& tools, absl::Span<const std::string> arguments, FileSystem& files,
                  Console& console, Process process) {
  const std::string kName = "permafrost";
  const std::string first = arguments.empty() ? "help" : arguments[0];
  const auto find = [&](absl::string_view name) {
    return std::find_if(tools.begin(), tools.end(),
                        [&](const Tool& tool) { return tool.name == name || ShortName(tool) == name; });
  };
  if (first == "--version") {
    console.out << kName << " " << kVersion << "\n";
    return Finish(kName, absl::OkStatus(), console);
  }
  std::string wanted = first;
  const bool is_help = first == "help" || first == "--help" || first == "-h";
  if (is_help && arguments.size() < 2) {
    console.out << Overview(tools, console.width);
    return Finish(kName, absl::OkStatus(), console);
  }
  if (is_help) wanted = arguments[1];
  const auto tool = find(wanted);
  if (tool == tools.end()) {
    absl::Status status = CheckTypography(wanted);
    std::vector<absl::string_view> names;
    for (const Tool& candidate : tools) {
      names.push_back(ShortName(candidate));
      if (ShortName(candidate) != candidate.name) names.push_back(candidate.name);
    }
    if (status.ok()) {
      const std::string suggestion = DidYouMean(wanted, names);
      status = absl::InvalidArgumentError(absl::StrCat(
          "there is no tool '", wanted, "'", suggestion.empty() ? "; 'permafrost help' lists them" : suggestion));
    }
    return Fail(kName, status, console);
  }
  if (is_help) {
    return RunTool(*tool, {arguments.back() == "--help=all" || arguments.back() == "all" ? "--help=all" : "--help"},
                   files, console);
  }
  return RunTool(*tool, arguments.subspan(1), files, console, process);
}

int ToolMain(const Tool& tool, int argc, char** argv) {
  IgnoreFileSizeSignal();
  Console console = ProcessConsole();
  StandardStreamFiles files(RealFileSystem(), std::cout);
  return RunTool(tool, Arguments(argc, argv), files, console, Process::kOwn);
}

int SubcommandMain(const std::vector<Tool>& tools, int argc, char** argv) {
  IgnoreFileSizeSignal();
  Console console = ProcessConsole();
  StandardStreamFiles files(RealFileSystem(), std::cout);
  return RunSubcommand(tools, Arguments(argc, argv), files, console, Process::kOwn);
}

}  // namespace permafrost
