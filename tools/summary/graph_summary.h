// Facts about a graph, counted once for text and JSON.
#ifndef PERMAFROST_TOOLS_SUMMARY_GRAPH_SUMMARY_H_
#define PERMAFROST_TOOLS_SUMMARY_GRAPH_SUMMARY_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "graph/graph.h"
#include "tools/model/interface_declaration.h"
#include "tools/summary/flops.h"

namespace permafrost {

struct TypeUse {
  size_t num_tensors = 0;
  int64_t num_elements = 0;
  uint64_t bytes = 0;  // Elements times the size of their type; 0 for strings.
};

struct ConstantInfo {
  const Node* node;
  std::string function;  // The function that contains it; empty for the graph itself.
  DType dtype;
  Shape shape;
  int64_t num_elements;
  uint64_t bytes;
};

// An op that is unsupported or unknown, and its number of occurrences.
struct OpIssue {
  std::string op;
  size_t count = 0;
  std::string reason;
};

// All facts that summarize_graph prints about a graph.
struct GraphSummary {
  // Counted as in TensorFlow's tool.
  std::vector<const Node*> placeholders;
  std::vector<const Node*> variables;
  std::vector<const Node*> unread;  // The "possible outputs" of TensorFlow's tool.
  int64_t const_parameters = 0;
  int64_t control_edges = 0;
  std::map<std::string, int64_t> devices;
  std::vector<std::pair<std::string, int64_t>> ops;  // Most frequent first, function bodies included.

  // Additional facts, not in TensorFlow's tool. Constants and ops in function bodies are included.
  size_t num_functions = 0;
  int64_t function_parameters = 0;  // Of constants in function bodies.
  std::map<std::string, TypeUse> weights_by_type;
  std::vector<ConstantInfo> largest;  // At most 10, largest first.
  std::vector<OpIssue> unknown_ops;   // Outside the schema table.
  std::vector<OpIssue> without_kernel;
  FlopsEstimate flops;
  FoundInterface interface;
  std::vector<std::unique_ptr<Graph>> bodies;  // The nodes with the constants of `largest`.
};

// Summarises a graph. DataLoss for a malformed function library.
absl::StatusOr<GraphSummary> Summarize(const Graph& graph);

}  // namespace permafrost

#endif  // PERMAFROST_TOOLS_SUMMARY_GRAPH_SUMMARY_H_
