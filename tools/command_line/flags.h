// Flags of a tool: one table holds their names, types, defaults and help. Parsing, --help and the documentation use it.
#ifndef PERMAFROST_TOOLS_COMMAND_LINE_FLAGS_H_
#define PERMAFROST_TOOLS_COMMAND_LINE_FLAGS_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
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
  // Sets the value. InvalidArgument (expected ...) without the name of the flag, which the parser adds.
  std::function<absl::Status(const std::string& value)> set;

  bool is_bool() const { return value_name.empty(); }
};

// An argument without dashes, by position. All positional arguments are required.
struct PositionalSpec {
  std::string value_name;
  std::string help;
  std::string* value;
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
  // Adds a flag whose value is one of `choices`.
  void AddChoice(std::string name, std::string* value, std::vector<std::string> choices, std::string help);
  void AddPositional(std::string value_name, std::string* value, std::string help);

  const std::vector<FlagSpec>& flags() const { return flags_; }
  const std::vector<PositionalSpec>& positionals() const { return positionals_; }

  // Sets the variables from the arguments (without the program's name). Accepts `--flag=value` and `--flag value`; `--`
  // ends the flags. InvalidArgument: an unknown flag (with the nearest names), a value that is missing or does not
  // parse, missing or excess arguments, and typographic dashes or quotes, which the message names.
  absl::Status Parse(absl::Span<const std::string> arguments) const;

 private:
  FlagSpec& AddSpec(std::string name, std::string value_name, std::string default_value, std::string help);
  absl::Status Unknown(absl::string_view argument) const;

  std::vector<FlagSpec> flags_;
  std::vector<PositionalSpec> positionals_;
};

// Splits a list at commas, strips blanks round the pieces, and drops empty ones.
std::vector<std::string> SplitList(absl::string_view text);

}  // namespace permafrost

#endif  // PERMAFROST_TOOLS_COMMAND_LINE_FLAGS_H_
