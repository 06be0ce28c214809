// Layered graph layout: places nodes in layers, from producers to consumers, with few crossings.
#ifndef PERMAFROST_TOOLS_REPORT_GRAPH_LAYOUT_H_
#define PERMAFROST_TOOLS_REPORT_GRAPH_LAYOUT_H_

#include <cstdint>
#include <utility>
#include <vector>

namespace permafrost {

struct Point {
  float x = 0, y = 0;
};

// Positions of nodes and bends of edges.
struct GraphLayout {
  std::vector<Point> nodes;  // The centres of the nodes.
  std::vector<std::vector<Point>>
      bends;  // By edge: the points where it passes between other nodes, from top to bottom.
  float width = 0, height = 0;
};

// Sizes, in the units of the result.
inline constexpr float kDrawnNodeWidth = 140, kDrawnNodeHeight = 36;

// Computes the layout. `edges` are pairs (from, to) of numbers below `num_nodes`; loops and cycles are allowed, and
// some of their edges point upwards. Layers are those of the longest paths. Barycentres improve the order within a
// layer (Sugiyama, Tagawa, Toda 1981). Isotonic regression places nodes near their neighbours without overlap. Edges
// over very many layers are drawn straight. O((nodes + edges) log(nodes)) for a fixed number of sweeps.
GraphLayout LayOut(int32_t num_nodes, const std::vector<std::pair<int32_t, int32_t>>& edges);

}  // namespace permafrost

#endif  // PERMAFROST_TOOLS_REPORT_GRAPH_LAYOUT_H_
