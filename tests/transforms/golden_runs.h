// Runs golden cases, and the graphs before and after, for the tests that go through all of them.
#ifndef PERMAFROST_TESTS_TRANSFORMS_GOLDEN_RUNS_H_
#define PERMAFROST_TESTS_TRANSFORMS_GOLDEN_RUNS_H_

#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tests/transforms/golden_case.h"
#include "transforms/pipeline/pipeline.h"

namespace permafrost {

inline constexpr char kGoldenFolder[] = "tests/golden";

struct Outcome {
  std::unique_ptr<Graph> graph;
  std::vector<PassReport> reports;
  int64_t rewrites = 0;
};

// Runs a transform string; each pass makes at most `rewrite_limit` rewrites.
absl::StatusOr<Outcome> RunOver(const std::string& run, std::unique_ptr<Graph> graph,
                                int64_t rewrite_limit = std::numeric_limits<int64_t>::max());
absl::StatusOr<Outcome> RunCase(const GoldenCase& golden);

// Runs both graphs on seeded inputs. An error: one of them cannot be run. *within: every output keeps the promise of
// the case's passes; *worst says which does not. `finished` is what the passes make when they are not stopped: there
// the inputs that they cut say of what type and shape they are.
absl::Status CompareRuns(const GoldenCase& golden, const Graph& before, const Graph& after, bool* within,
                         std::string* worst, const Graph* finished = nullptr);

}  // namespace permafrost

#endif  // PERMAFROST_TESTS_TRANSFORMS_GOLDEN_RUNS_H_
