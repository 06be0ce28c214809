// Streams of a tool, and the formatting of text, tables, sizes and progress.
#ifndef PERMAFROST_TOOLS_COMMAND_LINE_CONSOLE_H_
#define PERMAFROST_TOOLS_COMMAND_LINE_CONSOLE_H_

#include <cstdint>
#include <ostream>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace permafrost {

enum class Style { kPlain, kBold, kDim, kGood, kBad, kWarning };

// Results go to `out`, messages and errors to `err`. Does not own the streams.
struct Console {
  std::ostream& out;
  std::ostream& err;
  bool color = false;        // `out` is a terminal, and colour is wanted.
  bool progress = false;     // `err` is a terminal that can overwrite a line.
  bool is_terminal = false;  // `out` is a terminal.
  size_t width = 100;        // Columns of help texts: the width of the terminal, if `out` is one.

  // Returns `text` in a style if `color` is set, otherwise unchanged.
  std::string Styled(Style style, absl::string_view text) const;
  // Shows one line of progress if `progress` is set. An empty line erases the last one.
  void Progress(absl::string_view line) const;
};

// Returns `text` without control characters, so that the contents of files can neither send escape sequences to the
// terminal nor add lines (graph/base/printable.h).
std::string Printable(absl::string_view text);

// Returns, for example, "1,234,567".
std::string FormatCount(uint64_t count);
// Returns, for example, "89.66 MB", in units of 1000.
std::string FormatBytes(uint64_t bytes);
// Returns, for example, "89.66 MB (89,659,224 bytes)", or "512 bytes".
std::string FormatBytesExactly(uint64_t bytes);
// Returns, for example, "12.3 ms", "1.42 s", "850 us".
std::string FormatSeconds(double seconds);
// Returns at most 4 significant digits: "0.01234", "1.2e-07", "0".
std::string FormatNumber(double value);

// A table of text. Columns are as wide as their widest cell; numbers are aligned right.
class Table {
 public:
  struct Column {
    std::string title;
    bool is_number = false;
  };
  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}

  // Adds a row. REQUIRES: as many cells as columns.
  void AddRow(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }
  bool empty() const { return rows_.empty(); }
  // Prints the table. Each line starts with `indent`; lines have no trailing blanks.
  void Print(const Console& console, absl::string_view indent = "") const;

 private:
  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace permafrost

#endif  // PERMAFROST_TOOLS_COMMAND_LINE_CONSOLE_H_
