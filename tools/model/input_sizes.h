// Chooses sizes for unknown input dimensions of a graph.
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

// Shapes by the text of an input.
using InputShapes = absl::flat_hash_map<std::string, Shape>;

// Returns up to `count` choices of shapes for `inputs`, at least one. An unknown dimension 0 is 1 if the graph accepts
// that. Other unknown dimensions, and unknown ranks, take sizes that shape inference accepts: usual sizes of images and
// sequences, then the sizes of constants near the input (weights of a MatMul, filters, targets of a Reshape). A second
// choice has other sizes if the graph leaves them open. A choice with an unknown dimension other than the first is run
// once before it is returned. InvalidArgument, which names --verify_inputs, if no choice runs. The effort is bounded by
// some hundred shape inferences and a few runs.
absl::StatusOr<std::vector<InputShapes>> ChooseInputShapes(const Graph& graph, absl::Span<const Endpoint> inputs,
                                                           int count);

}  // namespace permafrost

#endif  // PERMAFROST_TOOLS_MODEL_INPUT_SIZES_H_
