// Finds the layers in which the outputs of one model depart from those of another.
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

// The difference of a float tensor that both models compute. The SQNR is 10 log10(sum e^2 / sum (a - e)^2) in dB over
// all runs, with e of the reference and a of the candidate.
struct LayerNoise {
  std::string reference;  // Names of the tensors: "conv1", "split:1".
  std::string candidate;
  std::string op;  // The op in the reference.
  int64_t elements = 0;
  // Includes the error accumulated in earlier layers.
  double sqnr_db = 0;
  // The error of this layer alone: the candidate computes it from the reference's inputs to the layer. Absent if that
  // cannot be run, and after an interruption.
  std::optional<double> own_sqnr_db;
  int64_t nonfinite_mismatches = 0;
  std::string problem;  // The reason if something was not measured; empty otherwise.
};

// The result of comparing the layers of two models.
struct LayerNoiseReport {
  // Sorted by own noise, largest first; layers without known own noise come last.
  std::vector<LayerNoise> layers;
  // Pairs with one name but different contents: the candidate's next layer is correct with the candidate's tensor, and
  // wrong with the reference's. Passes that move a factor from one layer to the next cause such pairs. They are not in
  // `layers`.
  std::vector<LayerNoise> set_aside;
  int64_t num_unpaired = 0;  // Float tensors of the reference that the candidate does not have.
  size_t num_runs = 0;
  bool was_interrupted = false;
};

struct LayerNoiseSettings {
  SessionOptions reference;
  SessionOptions candidate;
  const OriginsByName* origins = nullptr;  // The lineage of the candidate; null: tensors are paired by name.
  std::function<void(size_t done, size_t all)> progress;  // Receives the number of steps; may be empty.
  std::function<bool()> is_interrupted;                   // Empty: never.
};

// Runs both graphs on the first batches of the source, at most 8, and compares all float tensors that the outputs need
// and that depend on the inputs. Fetches tensors together up to 1 GiB. With a delegate, fetches each tensor separately,
// since a fetch prevents fusion of the tensor. Errors of the source, and of a model that does not run at all.
absl::StatusOr<LayerNoiseReport> MeasureLayerNoise(const Graph& reference, const Graph& candidate, BatchSource& source,
                                                   const LayerNoiseSettings& settings);

void PrintLayerNoise(const LayerNoiseReport& report, const Console& console);
// Writes the report as the value of a key: an object.
void WriteLayerNoise(const LayerNoiseReport& report, JsonWriter* json);

}  // namespace permafrost

#endif  // PERMAFROST_TOOLS_VALIDATION_LAYER_NOISE_H_
