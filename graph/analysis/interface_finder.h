// Determines the inputs and outputs of a graph for which none are declared, with the reason for each choice.
#ifndef PERMAFROST_GRAPH_ANALYSIS_INTERFACE_FINDER_H_
#define PERMAFROST_GRAPH_ANALYSIS_INTERFACE_FINDER_H_

#include <string>
#include <vector>

#include "graph/graph.h"

namespace permafrost {

// A node that could be fed, or an output port of a node that could be fetched.
struct FoundEndpoint {
  Node* node;
  bool is_chosen;
  std::string reason;  // Why it was chosen or not; completes "'x' (Softmax): ...".
  int port = 0;

  std::string name() const;  // "x" for port 0, otherwise "x:1".
};

// Returns the ports of `node` that are outputs if the node is one: all but those whose values exist only during a run
// (resources, variants) and the statistics of a batch normalisation, which only training reads.
std::vector<int> OutputPorts(const Node& node);

struct FoundInterface {
  std::vector<FoundEndpoint> inputs;   // Every node that could be fed, in file order.
  std::vector<FoundEndpoint> outputs;  // Every port of the nodes without consumers, in file order.
  // Empty if the choice is clear; otherwise the reason why it is not.
  std::string inputs_doubt;
  std::string outputs_doubt;
};

// Finds the inputs and outputs of `graph`. Outputs are all ports of the nodes that no other node reads, except those
// left over from training: losses, gradients, nodes that depend on labels, summaries, nodes that only have side
// effects. Inputs are the placeholders that the outputs need. The choice is in doubt if some outputs need inputs that
// others do not need. A non-null `inputs` or `outputs` replaces the search for that side. O(nodes + edges) for up to 64
// outputs.
FoundInterface FindInterface(const Graph& graph, const std::vector<Node*>* inputs = nullptr,
                             const std::vector<Node*>* outputs = nullptr);

// The interface of a graph by name, and where each side comes from.
struct InterfaceChoice {
  enum class Source { kGiven, kDeclared, kFound };

  std::vector<std::string> inputs, outputs;
  Source inputs_source = Source::kGiven;
  Source outputs_source = Source::kGiven;
  FoundInterface found;  // Empty unless a side is found. The choice is void if it has a doubt.
};

// Chooses each side: the given names if the pointer is not null, otherwise those that the graph declares if it declares
// outputs, otherwise those of FindInterface. Given names that name no node are kept, and ignored in the search.
InterfaceChoice ChooseInterface(const Graph& graph, const std::vector<std::string>* inputs,
                                const std::vector<std::string>* outputs);

// Returns the names of the chosen endpoints, in the same order.
std::vector<std::string> ChosenNames(const std::vector<FoundEndpoint>& endpoints);

// Returns their nodes, each once, in the same order.
std::vector<Node*> ChosenNodes(const std::vector<FoundEndpoint>& endpoints);

}  // namespace permafrost

#endif  // PERMAFROST_GRAPH_ANALYSIS_INTERFACE_FINDER_H_
