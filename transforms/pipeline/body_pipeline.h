// Runs passes over a graph and over the bodies of its branches and loops.
#ifndef PERMAFROST_TRANSFORMS_PIPELINE_BODY_PIPELINE_H_
#define PERMAFROST_TRANSFORMS_PIPELINE_BODY_PIPELINE_H_

#include <memory>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "graph/graph.h"
#include "transforms/pass.h"
#include "transforms/pipeline/pipeline.h"

namespace permafrost {

// Runs the passes over the graph, then over each body, callers first. A body is a graph whose inputs and outputs are
// declared, with the shapes that follow from its call; each call gets bodies of its own. Returns the first error of a
// pass, with the function it was in.
absl::Status RunPipelineOnBodies(std::unique_ptr<Graph>* graph, absl::Span<const PassCall> calls, PassContext* context);

}  // namespace permafrost

#endif  // PERMAFROST_TRANSFORMS_PIPELINE_BODY_PIPELINE_H_
