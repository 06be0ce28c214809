// Definition of a tool, and the driver that runs tools from a command line: flags, help, errors and exit codes.
#ifndef PERMAFROST_TOOLS_COMMAND_LINE_CLI_H_
#define PERMAFROST_TOOLS_COMMAND_LINE_CLI_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "io/file_system.h"
#include "tools/command_line/console.h"
#include "tools/command_line/flags.h"
#include "tools/command_line/memory_limit.h"

namespace permafrost {

inline constexpr absl::string_view kVersion = "0.1.0";

// The purpose of the tools, and the meaning of their exit codes (ExitCode), as help texts and manual pages state them.
inline constexpr absl::string_view kPurpose =
    "makes frozen TensorFlow graphs smaller and faster, and verifies that their outputs stay the same";
inline constexpr absl::string_view kExitCodes =
    "0 if the tool succeeded; 1 if a check failed (graphs differ, outputs exceed the tolerance); 255 after an error, "
    "which leaves existing output files unchanged unless only the report could not be printed";

// A command line shown in the help as a starting point.
struct Example {
  std::string says;
  std::string arguments;  // Without the tool's name.
};

// A finished definition, without the type of the options.
struct Tool {
  std::string name;
  std::string summary;  // One line.
  std::vector<Example> examples;
  // Calls `use` with the table of flags, bound to a new options object.
  std::function<void(const std::function<void(const FlagTable&)>& use)> with_flags;
  // Parses the arguments and runs.
  std::function<absl::Status(absl::Span<const std::string> arguments, FileSystem& files, Console& console)> run;
};

// Runs `run` after parsing: prints the notes of `outcome`, and redirects printed results to `err` if the tool writes a
// file to standard output.
absl::Status RunParsed(const ParseOutcome& outcome, Console& console,
                       const std::function<absl::Status(Console& console)>& run);

// Limits of a process, which every tool has as flags.
struct LimitFlags {
  uint64_t max_memory = 0;
  std::optional<bool> sandbox;
};

// Adds --max_memory and --sandbox. REQUIRES: `flags` has all other flags, on which the default of --sandbox depends.
void AddLimitFlags(LimitFlags* limits, FlagTable* flags);

// Defines a tool. `define` binds flags to the members of Options, which carry the defaults. `run` is the function of
// the tool, also called by other callers.
template <typename Options>
Tool DefineTool(std::string name, std::string summary, std::vector<Example> examples,
                void (*define)(Options*, FlagTable*),
                absl::Status (*run)(const Options&, FileSystem& files, Console& console)) {
  Tool tool{std::move(name), std::move(summary), std::move(examples), nullptr, nullptr};
  tool.with_flags = [define](const std::function<void(const FlagTable&)>& use) {
    Options options;
    LimitFlags limits;
    FlagTable flags;
    define(&options, &flags);
    AddLimitFlags(&limits, &flags);
    use(flags);
  };
  tool.run = [define, run](absl::Span<const std::string> arguments, FileSystem& files, Console& console) {
    Options options;
    LimitFlags limits;
    FlagTable flags;
    define(&options, &flags);
    AddLimitFlags(&limits, &flags);
    ParseOutcome outcome;
    if (absl::Status status = flags.Parse(arguments, &outcome); !status.ok()) return status;
    const MemoryLimit limit(limits.max_memory);
    return RunParsed(outcome, console, [&](Console& chosen) { return run(options, files, chosen); });
  };
  return tool;
}

// Returns the exit code of a status:
//     0  success, and every check passed
//     1  the tool worked and the answer is no: graphs that differ, outputs beyond the tolerance (Aborted)
//   255  an error (any other status; TensorFlow's tools use it for all failures). The output file is unchanged, unless
//   only
//        the report could not be printed.
int ExitCode(const absl::Status& status);
// Returns the status for the answer "no", exit code 1.
inline absl::Status AnswerIsNo(absl::string_view message) { return absl::AbortedError(message); }

// Returns the name of a tool as a subcommand of permafrost: without "_graph", "_graphs" or "_model" at its end.
absl::string_view ShortName(const Tool& tool);

// The flags of one section of a help text.
struct FlagSection {
  std::string title;  // Empty for flags that belong to no group.
  std::vector<const FlagSpec*> flags;
};
// Returns the flags that are not common, by group, in the order of their first flags.
std::vector<FlagSection> FurtherFlags(const FlagTable& table);

// Which flags --help describes.
enum class HelpScope { kCommon, kAll };
// Returns the text of --help or --help=all, derived from the definition, at most `width` columns wide, except for flags
// and examples that are longer.
std::string HelpText(const Tool& tool, HelpScope scope, size_t width);

// Whether a tool may restrict the process for the rest of its life (--sandbox).
enum class Process { kShared, kOwn };

// Runs a tool as the shell would: handles --help, --help=all and --version, parses the flags, runs the tool, and prints
// an error as one line on `err`. Failing to write to `out` is an error. Returns the exit code.
int RunTool(const Tool& tool, absl::Span<const std::string> arguments, FileSystem& files, Console& console,
            Process process = Process::kShared);
// Like RunTool, for a set of tools; the first argument is the name of the tool, or its short name.
int RunSubcommand(const std::vector<Tool>& tools, absl::Span<const std::string> arguments, FileSystem& files,
                  Console& console, Process process = Process::kShared);

// Returns the result of main(). Uses the real file system and the process's streams.
int ToolMain(const Tool& tool, int argc, char** argv);
int SubcommandMain(const std::vector<Tool>& tools, int argc, char** argv);

}  // namespace permafrost

#endif  // PERMAFROST_TOOLS_COMMAND_LINE_CLI_H_
