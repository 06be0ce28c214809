// Draws graphs from a grammar of ops, types and attributes, which is derived from the op schemas.
#ifndef PERMAFROST_TESTS_FUZZ_GRAPH_GRAMMAR_H_
#define PERMAFROST_TESTS_FUZZ_GRAPH_GRAMMAR_H_

#include <memory>
#include <string>
#include <vector>

#include "graph/graph.h"
#include "graph/tensor.h"
#include "tests/fuzz/choices.h"

namespace permafrost {

struct GrammarOptions {
  int most_nodes = 14;  // Besides constants and placeholders.
  // Whether some graphs may have nodes that fail, of wrong types or shapes, or without required attributes.
  bool may_be_wrong = true;
  // Whether constants and attributes may be extreme (NaN, 2^40), not only small.
  bool may_be_extreme = true;
};

// A graph with its interface declared, and values of its inputs.
struct DrawnGraph {
  std::unique_ptr<Graph> graph;
  std::vector<std::string> inputs;
  std::vector<Tensor> feeds;  // Aligned with `inputs`.
  std::vector<std::string> outputs;
};

// Draws a graph. Each node is computed with the reference kernels while it is drawn, and most nodes that fail are
// dropped, so that graphs are usually valid although neither shapes nor values are known to the grammar. The same
// choices give the same graph.
DrawnGraph DrawGraph(Choices* choices, const GrammarOptions& options = {});

}  // namespace permafrost

#endif  // PERMAFROST_TESTS_FUZZ_GRAPH_GRAMMAR_H_
