// compare_graphs: reports whether two graphs are equal, and if not, the differences.
#ifndef PERMAFROST_TOOLS_COMPARE_GRAPHS_H_
#define PERMAFROST_TOOLS_COMPARE_GRAPHS_H_

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "io/file_system.h"
#include "tools/command_line/cli.h"
#include "tools/command_line/console.h"
#include "tools/model/model_flags.h"

namespace permafrost {

struct CompareGraphsOptions {
  std::string actual;
  std::string expected;
  std::optional<double> tolerance;
  bool strict = false;
  std::string lineage;  // A file that transform_graph wrote; empty: nodes are paired by name.
  bool json = false;
  ReadFlags read;
};

// Prints "Graphs are equal.", or prints one line per difference and returns Aborted.
absl::Status CompareGraphFiles(const CompareGraphsOptions& options, FileSystem& files, Console& console);

Tool CompareGraphsTool();

}  // namespace permafrost

#endif  // PERMAFROST_TOOLS_COMPARE_GRAPHS_H_
