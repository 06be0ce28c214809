// The file that a graph was read from, for writers that keep the parts which no pass has changed.
#ifndef PERMAFROST_GRAPH_GRAPH_SOURCE_H_
#define PERMAFROST_GRAPH_GRAPH_SOURCE_H_

#include <memory>

#include "absl/strings/string_view.h"
#include "graph/graph.h"

namespace permafrost {

// Defined by the format that read the file. Immutable; thread-safe.
class GraphSource {
 public:
  virtual ~GraphSource() = default;
  // The name of the format, which determines the class.
  virtual absl::string_view format() const = 0;
};

// Attaches a source to a graph, in place of an earlier one; null stands for none. The graph and its clones share it.
void AttachSource(Graph* graph, std::shared_ptr<const GraphSource> source);

// Returns the source that was attached last, or null if there is none. The graph may have changed since it was read.
std::shared_ptr<const GraphSource> SourceOf(const Graph& graph);

}  // namespace permafrost

#endif  // PERMAFROST_GRAPH_GRAPH_SOURCE_H_
