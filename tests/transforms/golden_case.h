// Golden cases: a graph in a text file, whose first lines say what to run over it, and beside it the graph that is
// expected.
//
//   tests/golden/<pass>/<case>.pbtxt            the graph
//   tests/golden/<pass>/<case>.expected.pbtxt   what comes out, unless nothing changes or an error is expected
//
// The comment at the top of the graph has one directive a line, and lines for people between them:
//
//   # RUN: remove_nodes(op=Identity)      the transform string; in it, the folder's pass
//   # INPUTS: x, y:1                      declared inputs; without the line, every Placeholder
//   # OUTPUTS: z                          declared outputs; without the line, every node that nothing uses
//   # EXPECT: unchanged                   no rewrite; there is no expected file then
//   # EXPECT_ERROR: "part of the message"
//   # EXPECT_NOTE: "part of a note"       may be repeated
//   # EXPECT_MISS: "part of a miss"       may be repeated
//   # SHAPES: x=1,4; y=2                  what to feed where a placeholder does not tell
//   # CHANGES_NUMBERS: reason             outputs differ by more than the pass declares, and that is the caller's wish
//   # WITHIN: 0.05                        where the pass declares that numbers change: by no more than this, relative
//                                         to the scale of the output
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
  std::string pass;  // The folder.
  std::string name;  // The file, without ".pbtxt".
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
  double within = -1;  // Negative: no limit but the pass's own.
  std::string not_run;

  std::string text;  // The whole file.
};

// All cases under `folder`, sorted. InvalidArgument names the file whose directives are wrong.
absl::StatusOr<std::vector<GoldenCase>> FindGoldenCases(const std::string& folder);

// The graph with the case's interface declared.
absl::StatusOr<std::unique_ptr<Graph>> ReadGraphOf(const GoldenCase& golden);

absl::StatusOr<std::string> ReadWhole(const std::string& path);

}  // namespace permafrost

#endif  // PERMAFROST_TESTS_TRANSFORMS_GOLDEN_CASE_H_
