// Runs golden cases, and their graphs before and after, for the tests that iterate over all cases.
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

// Runs a transform string with at most `rewrite_limit` rewrites per pass.
absl::StatusOr<Outcome> RunOver(const std::string& run, std::unique_ptr<Graph> graph,
                                int64_t rewrite_limit = std::numeric_limits<int64_t>::max());
absl::StatusOr<Outcome> RunCase(const GoldenCase& golden);

// Runs both graphs on seeded inputs. Returns an error if one of them cannot be run. Sets *within if every output keeps
// the numeric guarantee of the case's passes; *worst describes the output that does not. `finished` is the result of
// the passes without a rewrite limit. It supplies the types and shapes of inputs that the passes cut.
absl::Status CompareRuns(const GoldenCase& golden, const Graph& before, const Graph& after, bool* within,
                         std::string* worst, const Graph* finished = nullptr);

}  // namespace permafrost

#endif  // PERMAFROST_TESTS_TRANSFORMS_GOLDEN_RUNS_H_
