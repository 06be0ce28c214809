// Golden cases: a graph in a text file whose first lines hold the test's directives, and next to it the expected graph.
//
//   tests/golden/<pass>/<case>.pbtxt            the graph
//   tests/golden/<pass>/<case>.expected.pbtxt   the result, unless nothing changes or an error is expected
//
// The comment at the top of the graph has one directive per line; other lines are free text:
//
//   # RUN: remove_nodes(op=Identity)      the transform string, which contains the folder's pass
//   # INPUTS: x, y:1                      declared inputs; default: every Placeholder
//   # OUTPUTS: z                          declared outputs; default: every unused node
//   # EXPECT: unchanged                   no rewrite; there is no expected file then
//   # EXPECT_ERROR: "part of the message"
//   # EXPECT_NOTE: "part of a note"       may be repeated
//   # EXPECT_MISS: "part of a miss"       may be repeated
//   # SHAPES: x=1,4; y=2                  shapes to feed for placeholders of unknown shape
//   # CHANGES_NUMBERS: reason             outputs differ by more than the pass declares, as requested by the arguments
//   # WITHIN: 0.05                        if the pass declares that numbers change: largest difference, relative to the
//                                         scale of the output
//   # NOT_RUN: reason                     why the runtime cannot run the graph
#ifndef PERMAFROST_TESTS_TRANSFORMS_GOLDEN_CASE_H_
#define PERMAFROST_TESTS_TRANSFORMS_GOLDEN_CASE_H_

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "graph/graph.h"

namespace permafrost {

struct GoldenCase {
  std::string pass;  // Name of the folder.
  std::string name;  // File name without ".pbtxt".
  std::string path;
  std::string expected_path;

  std::string run;
  std::optional<std::vector<std::string>> inputs;
  std::optional<std::vector<std::string>> outputs;
  bool expects_unchanged = false;
  std::string expected_error;
  std::vector<std::string> expected_notes;
  std::vector<std::string> expected_misses;
  absl::flat_hash_map<std::string, Shape> shapes;
  std::string changes_numbers;
  double within = -1;  // Negative: no limit besides the pass's own.
  std::string not_run;

  std::string text;  // Content of the file.
};

// Returns all cases under `folder`, sorted. Returns InvalidArgument with the name of a file with invalid directives.
absl::StatusOr<std::vector<GoldenCase>> FindGoldenCases(const std::string& folder);

// Returns the graph with the case's interface declared.
absl::StatusOr<std::unique_ptr<Graph>> ReadGraphOf(const GoldenCase& golden);

absl::StatusOr<std::string> ReadWhole(const std::string& path);

}  // namespace permafrost

#endif  // PERMAFROST_TESTS_TRANSFORMS_GOLDEN_CASE_H_
