// Finds what a graph's inputs and outputs are when nobody says, and gives the reasons.
#ifndef PERMAFROST_GRAPH_ANALYSIS_INTERFACE_FINDER_H_
#define PERMAFROST_GRAPH_ANALYSIS_INTERFACE_FINDER_H_

#include <string>
#include <vector>

#include "graph/graph.h"

namespace permafrost {

struct FoundEndpoint {
  Node* node;
  bool is_chosen;
  std::string reason;  // Why it was chosen or left out: completes "'x' (Softmax): ...".
};

struct FoundInterface {
  std::vector<FoundEndpoint> inputs;   // Every node that could be fed, in file order.
  std::vector<FoundEndpoint> outputs;  // Every node that nobody reads and that gives something, in file order.
  // Empty when the choice is clear; else why it is not.
  std::string inputs_doubt;
  std::string outputs_doubt;
};

// The outputs are the nodes that no node reads, save for what training left behind: losses, gradients, what reads
// labels, summaries, whatever only has side effects. The inputs are the placeholders that the outputs need. Where some
// outputs need inputs that others do not, the choice is in doubt. `outputs` replaces the search for outputs, `inputs`
// that for inputs; either may be null. O(nodes + edges) for up to 64 outputs.
FoundInterface FindInterface(const Graph& graph, const std::vector<Node*>* inputs = nullptr,
                             const std::vector<Node*>* outputs = nullptr);

// The nodes that were chosen, in the same order.
std::vector<Node*> ChosenNodes(const std::vector<FoundEndpoint>& endpoints);

}  // namespace permafrost

#endif  // PERMAFROST_GRAPH_ANALYSIS_INTERFACE_FINDER_H_
