// Chooses sizes for input dimensions that a graph leaves open.
#ifndef PERMAFROST_TOOLS_MODEL_INPUT_SIZES_H_
#define PERMAFROST_TOOLS_MODEL_INPUT_SIZES_H_

#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "graph/graph.h"
#include "graph/shape.h"

namespace permafrost {

// By the text of an input.
using InputShapes = absl::flat_hash_map<std::string, Shape>;

// Returns up to `count` choices of shapes for `inputs`, of which at least one. A dimension 0 that is not known is 1
// where the graph takes that. Other unknown dimensions, and unknown ranks, take sizes that shape inference accepts:
// usual sizes of images and sequences, then sizes that constants near the input have (weights of a MatMul, filters,
// targets of a Reshape). A second choice has other sizes where the graph leaves them open. A choice with an unknown
// dimension other than the first is run once before it is returned. InvalidArgument, which names --verify_inputs, if no
// choice runs. The effort is bounded: some hundred shape inferences, and a few runs.
absl::StatusOr<std::vector<InputShapes>> ChooseInputShapes(const Graph& graph, absl::Span<const Endpoint> inputs,
                                                           int count);

}  // namespace permafrost

#endif  // PERMAFROST_TOOLS_MODEL_INPUT_SIZES_H_
