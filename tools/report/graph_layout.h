// Where the nodes of a drawing go: in layers, from what is read to what reads it, with few crossings.
#ifndef PERMAFROST_TOOLS_REPORT_GRAPH_LAYOUT_H_
#define PERMAFROST_TOOLS_REPORT_GRAPH_LAYOUT_H_

#include <cstdint>
#include <utility>
#include <vector>

namespace permafrost {

struct Point {
  float x = 0, y = 0;
};

struct GraphLayout {
  std::vector<Point> nodes;  // Their middles.
  std::vector<std::vector<Point>>
      bends;  // By edge: where it passes between other nodes on its way, from top to bottom.
  float width = 0, height = 0;
};

// In the units of the result.
inline constexpr float kDrawnNodeWidth = 140, kDrawnNodeHeight = 36;

// `edges` are pairs (from, to) of numbers below `num_nodes`; loops and cycles are allowed, and drawn upwards where they
// must be. The layers are those of the longest paths. Within a layer the order is improved by barycentres (Sugiyama,
// Tagawa, Toda 1981), and places are the nearest to the neighbours' that leave no overlap, by isotonic regression.
// Edges over very many layers are drawn straight. O((nodes + edges) log(nodes)) for a fixed number of sweeps.
GraphLayout LayOut(int32_t num_nodes, const std::vector<std::pair<int32_t, int32_t>>& edges);

}  // namespace permafrost

#endif  // PERMAFROST_TOOLS_REPORT_GRAPH_LAYOUT_H_
