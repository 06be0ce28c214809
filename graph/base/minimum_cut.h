// The minimum cut of a network between a source and a sink.
#ifndef PERMAFROST_GRAPH_BASE_MINIMUM_CUT_H_
#define PERMAFROST_GRAPH_BASE_MINIMUM_CUT_H_

#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

namespace permafrost {

class MinimumCut {
 public:
  static constexpr int kSource = 0;
  static constexpr int kSink = 1;
  static constexpr int64_t kInfinite = std::numeric_limits<int64_t>::max() / 4;

  MinimumCut() : first_(2, -1) {}

  // Adds a vertex and returns its number.
  int AddVertex();
  // Adds an edge, which costs `capacity` if `from` is on the side of the source and `to` on that of the sink.
  void AddEdge(int from, int to, int64_t capacity);

  // Returns, by vertex, whether it is on the side of the source, in the cut of the lowest cost with the fewest vertices
  // on that side. Nothing if that takes more than `most_steps` visits of edges.
  std::optional<std::vector<bool>> Find(int64_t most_steps);

 private:
  struct Edge {
    int to;
    int next;  // The next edge of the same vertex; -1 for none. Edge i ^ 1 is the reverse of edge i.
    int64_t capacity;
  };

  bool FindLevels();
  int64_t Augment();

  std::vector<int> first_;  // By vertex.
  std::vector<Edge> edges_;
  std::vector<int> level_, current_;
  int64_t steps_ = 0;
};

}  // namespace permafrost

#endif  // PERMAFROST_GRAPH_BASE_MINIMUM_CUT_H_
