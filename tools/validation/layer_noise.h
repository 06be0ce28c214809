// Finds the layers in which one model departs from another.
#ifndef PERMAFROST_TOOLS_VALIDATION_LAYER_NOISE_H_
#define PERMAFROST_TOOLS_VALIDATION_LAYER_NOISE_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "graph/graph.h"
#include "runtime_check/session.h"
#include "tools/command_line/console.h"
#include "tools/command_line/json.h"
#include "tools/difference/lineage_file.h"
#include "tools/validation/batch_source.h"

namespace permafrost {

// A tensor of floats that both models compute, and how far they are apart in it. Signal to noise is
// 10 log10(sum e^2 / sum (a - e)^2) in dB over all runs, with e of the reference and a of the candidate.
struct LayerNoise {
  std::string reference;  // Names of the tensors: "conv1", "split:1".
  std::string candidate;
  std::string op;  // In the reference.
  int64_t elements = 0;
  double sqnr_db = 0;  // With all that the candidate did before.
  // Of this layer alone: the candidate computes it from what the reference has computed before. Absent where that can't
  // be run, and after an interruption.
  std::optional<double> own_sqnr_db;
  int64_t nonfinite_mismatches = 0;
  std::string problem;  // Why something was not measured; empty otherwise.
};

struct LayerNoiseReport {
  // The one that adds most noise by itself first, those without own noise known after them.
  std::vector<LayerNoise> layers;
  // Pairs of one name that do not hold the same: the candidate's next layer is right with its own tensor, and wrong
  // with the reference's. Passes that move a factor from a layer to the next leave such. They are not in `layers`.
  std::vector<LayerNoise> set_aside;
  int64_t num_unpaired = 0;  // Tensors of floats of the reference that the candidate does not have.
  size_t num_runs = 0;
  bool was_interrupted = false;
};

struct LayerNoiseSettings {
  SessionOptions reference;
  SessionOptions candidate;
  const OriginsByName* origins = nullptr;  // How the candidate was made; null: tensors of one name are pairs.
  std::function<void(size_t done, size_t all)> progress;  // Counts steps; empty: nobody looks.
  std::function<bool()> is_interrupted;                   // Empty: never.
};

// Runs both graphs on the first batches of the source, at most 8, and compares all tensors of floats that the outputs
// need and that depend on the inputs. Tensors are fetched together as far as 1 GiB allows. With a delegate each tensor
// is fetched by itself, since fetching one takes apart what the delegate fuses. Errors of the source, and of a model
// that does not run at all.
absl::StatusOr<LayerNoiseReport> MeasureLayerNoise(const Graph& reference, const Graph& candidate, BatchSource& source,
                                                   const LayerNoiseSettings& settings);

void PrintLayerNoise(const LayerNoiseReport& report, const Console& console);
// As the value of a key: an object.
void WriteLayerNoise(const LayerNoiseReport& report, JsonWriter* json);

}  // namespace permafrost

#endif  // PERMAFROST_TOOLS_VALIDATION_LAYER_NOISE_H_
