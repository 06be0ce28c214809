// Delta debugging on models: finds a small model that still shows a failure.
#ifndef PERMAFROST_TOOLS_REDUCTION_REDUCER_H_
#define PERMAFROST_TOOLS_REDUCTION_REDUCER_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tools/reduction/reducible_model.h"

namespace permafrost {

struct ReductionSettings {
  // Returns whether a model shows the failure. It isolates what it runs; a model that cannot be run does not show it.
  std::function<bool(const ReducibleModel&)> shows_failure;
  // Returns values of tensors of a model, which become inputs when it is cut there. Empty: inputs have no values.
  std::function<absl::StatusOr<std::vector<Tensor>>(const ReducibleModel&, const std::vector<std::string>& fetches)>
      compute;
  std::function<bool()> must_stop;                          // Asked before each trial.
  std::function<absl::Status(const ReducibleModel&)> keep;  // Called with each smaller model that shows the failure.
  std::function<void(const std::string& line)> progress;
  uint64_t seed = 0;
  bool keep_weights = false;
  bool keep_names = false;
};

struct ReductionReport {
  int trials = 0;
  bool was_stopped = false;
  std::vector<std::string> real_constants;  // Constants whose values the failure needs, or that are not floats.
  std::vector<std::string> real_names;      // Nodes whose names the failure needs.
};

// Reduces *model in place: nodes first (cutting at tensors), then dimensions, values, attributes and names. The result
// shows the failure if the model does. Returns the error of `keep`, if any.
absl::StatusOr<ReductionReport> Reduce(const ReductionSettings& settings, ReducibleModel* model);

}  // namespace permafrost

#endif  // PERMAFROST_TOOLS_REDUCTION_REDUCER_H_
