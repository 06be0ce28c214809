// Runs tools from a command line.
#include "tools/command_line/cli.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <new>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "graph/base/nearest.h"
#include "tools/command_line/typography.h"

namespace permafrost {
namespace {

constexpr size_t kHelpWidth = 100;
constexpr size_t kHelpColumn = 6;

// Wraps `text` at kHelpWidth, each line indented.
std::string Wrapped(absl::string_view text, size_t indent) {
  std::string out;
  std::string line(indent, ' ');
  for (const absl::string_view word : absl::StrSplit(text, ' ')) {
    if (line.size() > indent && line.size() + 1 + word.size() > kHelpWidth) {
      absl::StrAppend(&out, line, "\n");
      line.assign(indent, ' ');
    }
    absl::StrAppend(&line, line.size() > indent ? " " : "", word);
  }
  return absl::StrCat(out, line, "\n");
}

std::string FlagHelp(const FlagSpec& flag) {
  std::string usage = absl::StrCat("--", flag.name);
  if (!flag.is_bool()) absl::StrAppend(&usage, "=", flag.value_name);
  if (!flag.default_value.empty()) absl::StrAppend(&usage, "   (default ", flag.default_value, ")");
  return absl::StrCat("  ", usage, "\n", Wrapped(flag.help, kHelpColumn));
}

int Fail(const std::string& name, const absl::Status& status, const Console& console) {
  console.Progress("");
  console.err << name << ": " << Printable(status.message()) << "\n" << std::flush;
  return ExitCode(status);
}

// Flushes the buffers, so that write errors are detected.
int Finish(const std::string& name, const absl::Status& status, const Console& console) {
  console.out.flush();
  if (!console.out.good()) return Fail(name, absl::UnavailableError("cannot write to standard output"), console);
  return status.ok() ? 0 : Fail(name, status, console);
}

// Returns the status of the tool. Exceptions become errors: libraries throw them if memory or threads run out.
absl::Status Outcome(const Tool& tool, absl::Span<const std::string> arguments, FileSystem& files, Console& console) {
  try {
    return tool.run(arguments, files, console);
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError("there is not enough memory");
  } catch (const std::exception& exception) {
    return absl::InternalError(exception.what());
  }
}

std::string Overview(const std::vector<Tool>& tools) {
  std::string text =
      "permafrost: makes frozen TensorFlow graphs smaller and faster, and proves that they still answer the same\n\n"
      "usage: permafrost TOOL [flags]\n\ntools:\n";
  for (const Tool& tool : tools) absl::StrAppend(&text, "  ", tool.name, "\n", Wrapped(tool.summary, kHelpColumn));
  return absl::StrCat(text, "\n'permafrost TOOL --help' explains one; 'permafrost --version' prints the version.\n");
}

Console ProcessConsole() {
  const char* no_color = std::getenv("NO_COLOR");
  const char* term = std::getenv("TERM");
  const bool is_dumb = term == nullptr || absl::string_view(term) == "dumb";
  const bool wants_color = (no_color == nullptr || *no_color == '\0') && !is_dumb;
  return {std::cout, std::cerr, wants_color && isatty(STDOUT_FILENO) == 1, !is_dumb && isatty(STDERR_FILENO) == 1};
}

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

std::string HelpText(const Tool& tool) {
  std::string text = absl::StrCat(tool.name, ": ", tool.summary, "\n\nusage: ", tool.name);
  tool.with_flags([&](const FlagTable& table) {
    absl::StrAppend(&text, table.flags().empty() ? "" : " [flags]");
    for (const PositionalSpec& positional : table.positionals()) absl::StrAppend(&text, " ", positional.value_name);
    absl::StrAppend(&text, "\n\n");
    for (const PositionalSpec& positional : table.positionals()) {
      absl::StrAppend(&text, "  ", positional.value_name, "\n", Wrapped(positional.help, kHelpColumn));
    }
    for (const FlagSpec& flag : table.flags()) absl::StrAppend(&text, FlagHelp(flag));
  });
  absl::StrAppend(&text, "  --help, --version\n", Wrapped("Prints this text, or the version.", kHelpColumn));
  absl::StrAppend(&text, "\nexamples:\n");
  for (const Example& example : tool.examples) {
    absl::StrAppend(&text, Wrapped(absl::StrCat("# ", example.says), 2), "  ", tool.name, " ", example.arguments, "\n");
  }
  absl::StrAppend(&text, "\nexit status: 0 done; 1 the answer is no (graphs differ, outputs beyond the tolerance);\n",
                  "255 an error; an existing output is as it was, unless only the report could not be printed\n");
  return text;
}

int RunTool(const Tool& tool, absl::Span<const std::string> arguments, FileSystem& files, Console& console) {
  for (const std::string& argument : arguments) {
    if (argument == "--") break;
    if (argument == "--help" || argument == "-h") {
      console.out << HelpText(tool);
      return Finish(tool.name, absl::OkStatus(), console);
    }
    if (argument == "--version") {
      console.out << tool.name << " " << kVersion << "\n";
      return Finish(tool.name, absl::OkStatus(), console);
    }
  }
  return Finish(tool.name, Outcome(tool, arguments, files, console), console);
}

int RunSubcommand(const std::vector<Tool>& tools, absl::Span<const std::string> arguments, FileSystem& files,
                  Console& console) {
  const std::string kName = "permafrost";
  const std::string first = arguments.empty() ? "help" : arguments[0];
  const auto find = [&](absl::string_view name) {
    return std::find_if(tools.begin(), tools.end(), [&](const Tool& tool) { return tool.name == name; });
  };
  if (first == "--version") {
    console.out << kName << " " << kVersion << "\n";
    return Finish(kName, absl::OkStatus(), console);
  }
  std::string wanted = first;
  const bool is_help = first == "help" || first == "--help" || first == "-h";
  if (is_help && arguments.size() < 2) {
    console.out << Overview(tools);
    return Finish(kName, absl::OkStatus(), console);
  }
  if (is_help) wanted = arguments[1];
  const auto tool = find(wanted);
  if (tool == tools.end()) {
    absl::Status status = CheckTypography(wanted);
    std::vector<absl::string_view> names;
    for (const Tool& candidate : tools) names.push_back(candidate.name);
    if (status.ok()) {
      const std::string suggestion = DidYouMean(wanted, names);
      status = absl::InvalidArgumentError(absl::StrCat(
          "there is no tool '", wanted, "'", suggestion.empty() ? "; 'permafrost help' lists them" : suggestion));
    }
    return Fail(kName, status, console);
  }
  if (is_help) return RunTool(*tool, {"--help"}, files, console);
  return RunTool(*tool, arguments.subspan(1), files, console);
}

int ToolMain(const Tool& tool, int argc, char** argv) {
  Console console = ProcessConsole();
  return RunTool(tool, Arguments(argc, argv), RealFileSystem(), console);
}

int SubcommandMain(const std::vector<Tool>& tools, int argc, char** argv) {
  Console console = ProcessConsole();
  return RunSubcommand(tools, Arguments(argc, argv), RealFileSystem(), console);
}

}  // namespace permafrost
