// Report of a transform_graph run, as text and as JSON.
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

// All facts that transform_graph reports about a run.
struct TransformReport {
  std::string in_graph;
  std::string out_graph;  // Empty if no file is written.
  bool is_written = false;
  bool is_text = false;
  bool is_encrypted = false;
  std::vector<std::string> inputs;
  std::vector<std::string> outputs;
  std::vector<std::string> interface_notes;  // How inputs and outputs were detected; empty if they were given.
  size_t nodes_before = 0;
  size_t nodes_after = 0;
  uint64_t bytes_before = 0;
  uint64_t bytes_after = 0;  // Size as a binary file, like bytes_before.
  // Sizes as a binary file compressed with zstd; absent unless a pass ran that only makes files compress better.
  std::optional<uint64_t> compressed_before, compressed_after;
  uint64_t bytes_written = 0;  // Larger than bytes_after for text; 0 if nothing was written.
  std::vector<PassReport> passes;
  Allowance allowance;
  std::optional<Verdict> verdict;  // Absent with --verify=off.
  std::string failed_pass;         // With --verify=each, the first pass after which the outputs exceed the tolerance.
  uint64_t seed = 0;
  bool has_real_inputs = false;
  std::string way_out;  // Advice for a ruined output: WayOutOfRuin.
};

// Returns advice for outputs ruined by these passes.
std::string WayOutOfRuin(absl::Span<const PassCall> calls);

// Prints on `err` that the result is not verified, or which outputs are ruined; nothing otherwise.
void WarnOfVerdict(const TransformReport& report, const Console& console);

// Prints the part before the verdict: files, interface, and a table of the passes with their notes.
void PrintPasses(const TransformReport& report, const Console& console);
// Prints the verdict and the written file.
void PrintVerdict(const TransformReport& report, const Console& console);
// Writes the whole report as one object; docs/guide/transform_graph.md describes it.
void WriteJson(const TransformReport& report, std::ostream& out);

}  // namespace permafrost

#endif  // PERMAFROST_TOOLS_TRANSFORM_TRANSFORM_REPORT_H_
