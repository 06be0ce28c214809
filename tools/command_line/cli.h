// What a tool is, and how every tool is run from a command line: flags, help, errors and exit codes.
#ifndef PERMAFROST_TOOLS_COMMAND_LINE_CLI_H_
#define PERMAFROST_TOOLS_COMMAND_LINE_CLI_H_

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "io/file_system.h"
#include "tools/command_line/console.h"
#include "tools/command_line/flags.h"

namespace permafrost {

inline constexpr absl::string_view kVersion = "0.1.0";

// A command line that helps somebody get started.
struct Example {
  std::string says;
  std::string arguments;  // Without the tool's name.
};

// A finished definition, without the type of the options.
struct Tool {
  std::string name;
  std::string summary;  // One line.
  std::vector<Example> examples;
  // Hands the table of flags to `use`, bound to options of their own.
  std::function<void(const std::function<void(const FlagTable&)>& use)> with_flags;
  // Parses the arguments and runs.
  std::function<absl::Status(absl::Span<const std::string> arguments, FileSystem& files, Console& console)> run;
};

// `define` binds flags to the members of Options, which carry the defaults; `run` is what the tool does, the same
// function that other callers use.
template <typename Options>
Tool DefineTool(std::string name, std::string summary, std::vector<Example> examples,
                void (*define)(Options*, FlagTable*),
                absl::Status (*run)(const Options&, FileSystem& files, Console& console)) {
  Tool tool{std::move(name), std::move(summary), std::move(examples), nullptr, nullptr};
  tool.with_flags = [define](const std::function<void(const FlagTable&)>& use) {
    Options options;
    FlagTable flags;
    define(&options, &flags);
    use(flags);
  };
  tool.run = [define, run](absl::Span<const std::string> arguments, FileSystem& files, Console& console) {
    Options options;
    FlagTable flags;
    define(&options, &flags);
    if (absl::Status status = flags.Parse(arguments); !status.ok()) return status;
    return run(options, files, console);
  };
  return tool;
}

// The one table of exit codes:
//     0  done, and every check that was made holds
//     1  the tool worked and the answer is no: graphs that differ, outputs beyond the tolerance (Aborted)
//   255  an error; the output is as it was, unless only the report could not be printed (any other status; the original
//   tools' code for all failures)
int ExitCode(const absl::Status& status);
// The answer "no", for exit code 1.
inline absl::Status AnswerIsNo(absl::string_view message) { return absl::AbortedError(message); }

// The text of --help, derived from the definition, 100 columns wide.
std::string HelpText(const Tool& tool);

// Runs a tool as the shell would: --help and --version, the flags, the tool, one line on `err` for an error, and an
// error when `out` could not be written. Returns the exit code.
int RunTool(const Tool& tool, absl::Span<const std::string> arguments, FileSystem& files, Console& console);
// The same for a set of tools of which the first argument names one.
int RunSubcommand(const std::vector<Tool>& tools, absl::Span<const std::string> arguments, FileSystem& files,
                  Console& console);

// What a main() returns. Uses the real file system and the process's streams.
int ToolMain(const Tool& tool, int argc, char** argv);
int SubcommandMain(const std::vector<Tool>& tools, int argc, char** argv);

}  // namespace permafrost

#endif  // PERMAFROST_TOOLS_COMMAND_LINE_CLI_H_
