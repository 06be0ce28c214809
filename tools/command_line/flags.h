// Flags of a tool: one table holds their names, types, defaults and help. Parsing, --help and the documentation use it.
#ifndef PERMAFROST_TOOLS_COMMAND_LINE_FLAGS_H_
#define PERMAFROST_TOOLS_COMMAND_LINE_FLAGS_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace permafrost {

// One flag as help shows it.
struct FlagSpec {
  std::string name;           // Without dashes.
  std::string value_name;     // The value after "=" in the help: "FILE", "N". Empty for a boolean flag.
  std::string default_value;  // As written on a command line; empty for none.
  std::string help;
  // If not empty, the only valid values.
  std::vector<std::string> choices;
  std::string group;         // Title of its section in the help; empty for flags of the tool itself.
  bool is_common = false;    // Described by --help; other flags only by --help=all.
  bool is_output = false;    // The value is the path of a file to write.
  bool is_written = false;   // The value is the path of a file or folder that the tool may read and change.
  bool is_repeated = false;  // Collects the values of a repeated flag.
  // Sets the value. InvalidArgument (expected ...) without the name of the flag, which the parser adds.
  std::function<absl::Status(const std::string& value)> set;

  bool is_bool() const { return value_name.empty(); }
  // Returns whether the value is a path, or a list of paths, as the name of the value says: FILE, FILES, FOLDER, PATH,
  // PREFIX.
  bool is_path() const;
};

// An argument without dashes, by position. All positional arguments are required.
struct PositionalSpec {
  std::string value_name;
  std::string help;
  std::string* value;
  bool is_written = false;  // As FlagSpec::is_written. All positional arguments are paths.
};

// A flag that was set, in the order of the command line.
struct GivenFlag {
  const FlagSpec* flag;  // Valid as long as the table.
  std::string value;
};

// Results of parsing besides the values of flags.
struct ParseOutcome {
  std::vector<GivenFlag> given;
  std::vector<std::string> notes;          // About flags that were ignored.
  bool writes_to_standard_output = false;  // The path of an output file is "-".
};

// The flags of one tool, bound to the variables that they set.
class FlagTable {
 public:
  // Adds a flag that takes a value: std::string, int32_t, int64_t, double, an optional of these, or a vector of
  // strings. A vector collects the values of a repeated flag; for other types the last value counts.
  void Add(std::string name, std::string* value, std::string value_name, std::string help);
  void Add(std::string name, std::optional<std::string>* value, std::string value_name, std::string help);
  void Add(std::string name, std::vector<std::string>* values, std::string value_name, std::string help);
  void Add(std::string name, int32_t* value, std::string value_name, std::string help);
  void Add(std::string name, std::optional<int32_t>* value, std::string value_name, std::string help);
  void Add(std::string name, uint64_t* value, std::string value_name, std::string help);
  void Add(std::string name, double* value, std::string value_name, std::string help);
  void Add(std::string name, std::optional<double>* value, std::string value_name, std::string help);
  // Adds `--name`, `--name=true` and `--name=false`.
  void Add(std::string name, bool* value, std::string help);
  // The same, with a default that the code after parsing decides.
  void Add(std::string name, std::optional<bool>* value, std::string default_value, std::string help);
  // Adds a flag whose value is one of `choices`.
  void AddChoice(std::string name, std::string* value, std::vector<std::string> choices, std::string help);
  void AddPositional(std::string value_name, std::string* value, std::string help, bool is_written = false);

  // Starts a group: the flags added from here on belong to it. An empty title ends the group.
  void Group(std::string title) { group_ = std::move(title); }
  // Selects the flags that --help describes, in this order. REQUIRES: the names of added flags. Without this call all
  // flags are common.
  void MarkCommon(const std::vector<std::string>& names);
  // Accepts arguments without dashes as values of these flags, in this order: `tool in.pb` for `tool --in_graph=in.pb`.
  // If the last flag collects values, it takes all further arguments.
  // REQUIRES: the names of added flags, and no AddPositional.
  void AcceptAsArguments(const std::vector<std::string>& names);
  // Marks flags whose value is the path of an output file. REQUIRES: the names of added flags.
  void MarkOutputs(const std::vector<std::string>& names);

  // Marks flags whose value is the path of a file or folder that the tool reads and changes, or may create, such as a
  // cache. REQUIRES: the names of added flags.
  void MarkWritten(const std::vector<std::string>& names);
  // Declares that the tool starts processes, of itself or of other programs.
  void DeclareProcesses() { starts_processes_ = true; }
  bool starts_processes() const { return starts_processes_; }
  // Returns whether there is a flag of this name.
  bool Has(absl::string_view name) const { return Find(name) != nullptr; }

  const std::vector<FlagSpec>& flags() const { return flags_; }
  const std::vector<PositionalSpec>& positionals() const { return positionals_; }
  // Returns the common flags, in the order of MarkCommon, or all flags if none are marked.
  std::vector<const FlagSpec*> CommonFlags() const;
  // Returns the flags that arguments without dashes set, in order.
  std::vector<const FlagSpec*> ArgumentFlags() const;

  // Sets the variables from the arguments (without the program's name). Accepts `--flag=value` and `--flag value`; `--`
  // ends the flags. Ignores the logging flags of TensorFlow's tools, with a note in *outcome, which may be null.
  // InvalidArgument: an unknown flag (with the nearest names), a value that is missing or does not
  // parse, missing or excess arguments, and typographic dashes or quotes, which the message names.
  absl::Status Parse(absl::Span<const std::string> arguments, ParseOutcome* outcome = nullptr) const;

 private:
  FlagSpec& Named(absl::string_view name);
  const FlagSpec* Find(absl::string_view name) const;
  // Sets the positional arguments, and the flags of AcceptAsArguments. `given` are the names of flags that were set.
  absl::Status SetArguments(const std::vector<std::string>& arguments, const std::vector<std::string>& given,
                            ParseOutcome* outcome) const;
  absl::Status Set(const FlagSpec& flag, const std::string& value, ParseOutcome* outcome) const;
  // Returns the maximum number of arguments without dashes.
  size_t MostArguments() const;
  FlagSpec& AddSpec(std::string name, std::string value_name, std::string default_value, std::string help);
  absl::Status Unknown(absl::string_view argument) const;

  std::vector<FlagSpec> flags_;
  std::vector<PositionalSpec> positionals_;
  std::vector<std::string> common_;            // Names of flags.
  std::vector<std::string> set_by_arguments_;  // Names of flags.
  std::string group_;
  bool starts_processes_ = false;
};

// Splits a list at commas, strips blanks round the pieces, and drops empty ones.
std::vector<std::string> SplitList(absl::string_view text);

}  // namespace permafrost

#endif  // PERMAFROST_TOOLS_COMMAND_LINE_FLAGS_H_
