// What transform_graph tells of a run, as text and as JSON.
#ifndef PERMAFROST_TOOLS_TRANSFORM_TRANSFORM_REPORT_H_
#define PERMAFROST_TOOLS_TRANSFORM_TRANSFORM_REPORT_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "tools/command_line/console.h"
#include "tools/transform/verification.h"
#include "transforms/pipeline/pipeline.h"

namespace permafrost {

struct TransformReport {
  std::string in_graph;
  std::string out_graph;  // Empty when nothing was to be written.
  bool is_written = false;
  bool is_text = false;
  bool is_encrypted = false;
  std::vector<std::string> inputs;
  std::vector<std::string> outputs;
  std::vector<std::string> interface_notes;  // How inputs and outputs were found; empty when they were given.
  size_t nodes_before = 0;
  size_t nodes_after = 0;
  uint64_t bytes_before = 0;
  uint64_t bytes_after = 0;    // As a binary file, like bytes_before.
  uint64_t bytes_written = 0;  // More than bytes_after when it is text; 0 when nothing was written.
  std::vector<PassReport> passes;
  Allowance allowance;
  std::optional<Verdict> verdict;  // Absent with --verify=off.
  std::string failed_pass;         // With --verify=each, the first pass after which the outputs were too far off.
  uint64_t seed = 0;
  bool has_real_inputs = false;
  std::string way_out;  // What to do where an output is ruined: WayOutOfRuin.
};

// What to do where these passes ruin an output.
std::string WayOutOfRuin(absl::Span<const PassCall> calls);

// Prints on `err` that the result is not verified, or that outputs of it are ruined; nothing where all is well.
void WarnOfVerdict(const TransformReport& report, const Console& console);

// The part before the verdict: files, interface, and a table of the passes with their notes.
void PrintPasses(const TransformReport& report, const Console& console);
// The verdict, and what was written.
void PrintVerdict(const TransformReport& report, const Console& console);
// All of it as one object; docs/guide/transform_graph.md describes it.
void WriteJson(const TransformReport& report, std::ostream& out);

}  // namespace permafrost

#endif  // PERMAFROST_TOOLS_TRANSFORM_TRANSFORM_REPORT_H_
