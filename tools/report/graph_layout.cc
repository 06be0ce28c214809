// Layered layout: ranks, then order within layers, then positions.
#include "tools/report/graph_layout.h"

#include <algorithm>
#include <cstddef>
#include <numeric>

namespace permafrost {
namespace {

constexpr int kOrderSweeps = 10;
constexpr int kPlaceSweeps = 12;
constexpr float kGapX = 24, kGapY = 44;
// Width of the position of an edge that passes a layer.
constexpr float kPassWidth = 12;
// An edge over more layers than this is drawn straight: bends on such a long way do not make it clearer.
constexpr int32_t kMostPassed = 60;
// Maximum number of positions for passing edges per node: more would make the layout of a dense graph slow.
constexpr size_t kMostPassesPerNode = 8;

class Layout {
 public:
  Layout(int32_t num_nodes, const std::vector<std::pair<int32_t, int32_t>>& edges)
      : num_nodes_(static_cast<size_t>(num_nodes)), edges_(edges) {}

  GraphLayout Make() {
    Rank();
    AddPasses();
    Order();
    Place();
    return Result();
  }

 private:
  // Kahn's algorithm. Nodes in a cycle are released in the order of their numbers, which reverses an edge.
  void Rank() {
    std::vector<std::vector<int32_t>> readers(num_nodes_);
    std::vector<int32_t> missing(num_nodes_, 0);
    for (const auto& [from, to] : edges_) {
      if (from == to) continue;
      readers[static_cast<size_t>(from)].push_back(to);
      ++missing[static_cast<size_t>(to)];
    }
    rank_.assign(num_nodes_, 0);
    std::vector<bool> done(num_nodes_, false);
    std::vector<int32_t> ready;
    for (size_t i = 0; i < num_nodes_; ++i) {
      if (missing[i] == 0) ready.push_back(static_cast<int32_t>(i));
    }
    size_t next_stuck = 0;
    for (;;) {
      if (ready.empty()) {
        while (next_stuck < num_nodes_ && done[next_stuck]) ++next_stuck;
        if (next_stuck == num_nodes_) break;
        ready.push_back(static_cast<int32_t>(next_stuck));
      }
      const auto node = static_cast<size_t>(ready.back());
      ready.pop_back();
      if (done[node]) continue;
      done[node] = true;
      for (const int32_t reader : readers[node]) {
        const auto to = static_cast<size_t>(reader);
        if (done[to]) continue;
        rank_[to] = std::max(rank_[to], rank_[node] + 1);
        if (--missing[to] == 0) ready.push_back(reader);
      }
    }
    // A source is placed directly above its first reader.
    std::vector<bool> has_inputs(num_nodes_, false);
    for (const auto& [from, to] : edges_) {
      if (from != to) has_inputs[static_cast<size_t>(to)] = true;
    }
    for (size_t i = 0; i < num_nodes_; ++i) {
      if (has_inputs[i] || readers[i].empty()) continue;
      int32_t first = rank_[static_cast<size_t>(readers[i][0])];
      for (const int32_t reader : readers[i]) first = std::min(first, rank_[static_cast<size_t>(reader)]);
      rank_[i] = std::max(0, first - 1);
    }
  }

  // Gives an edge over several layers a position in each layer between.
  void AddPasses() {
    size_t budget = num_nodes_ * kMostPassesPerNode + 1000;
    above_.resize(num_nodes_);
    below_.resize(num_nodes_);
    passes_.resize(edges_.size());
    for (size_t e = 0; e < edges_.size(); ++e) {
      auto [from, to] = edges_[e];
      if (from == to) continue;
      if (rank_[static_cast<size_t>(from)] > rank_[static_cast<size_t>(to)]) std::swap(from, to);
      const int32_t low = rank_[static_cast<size_t>(from)], high = rank_[static_cast<size_t>(to)];
      if (low == high) continue;
      const int32_t between = high - low - 1;
      if (between > kMostPassed || static_cast<size_t>(between) > budget) continue;
      budget -= static_cast<size_t>(between);
      int32_t last = from;
      for (int32_t rank = low + 1; rank < high; ++rank) {
        const auto pass = static_cast<int32_t>(rank_.size());
        rank_.push_back(rank);
        above_.emplace_back();
        below_.emplace_back();
        passes_[e].push_back(pass);
        Join(last, pass);
        last = pass;
      }
      Join(last, to);
    }
  }

  void Join(int32_t above, int32_t below) {
    below_[static_cast<size_t>(above)].push_back(below);
    above_[static_cast<size_t>(below)].push_back(above);
  }

  void Order() {
    const int32_t num_ranks = rank_.empty() ? 0 : *std::max_element(rank_.begin(), rank_.end()) + 1;
    layers_.resize(static_cast<size_t>(num_ranks));
    place_.assign(rank_.size(), 0);
    // The initial order is that of a walk from the sources, which keeps branches together.
    std::vector<bool> seen(rank_.size(), false);
    std::vector<int32_t> stack;
    for (size_t root = 0; root < rank_.size(); ++root) {
      if (seen[root] || !above_[root].empty()) continue;
      stack.push_back(static_cast<int32_t>(root));
      while (!stack.empty()) {
        const auto node = static_cast<size_t>(stack.back());
        stack.pop_back();
        if (seen[node]) continue;
        seen[node] = true;
        layers_[static_cast<size_t>(rank_[node])].push_back(static_cast<int32_t>(node));
        for (auto below = below_[node].rbegin(); below != below_[node].rend(); ++below) {
          if (!seen[static_cast<size_t>(*below)]) stack.push_back(*below);
        }
      }
    }
    for (const std::vector<int32_t>& layer : layers_) Number(layer);
    std::vector<float> wanted(rank_.size(), 0);
    for (int sweep = 0; sweep < kOrderSweeps; ++sweep) {
      const bool down = sweep % 2 == 0;
      for (size_t i = 0; i < layers_.size(); ++i) {
        std::vector<int32_t>& layer = layers_[down ? i : layers_.size() - 1 - i];
        for (const int32_t node : layer)
          wanted[static_cast<size_t>(node)] = Barycentre(static_cast<size_t>(node), down);
        std::stable_sort(layer.begin(), layer.end(), [&](int32_t a, int32_t b) {
          return wanted[static_cast<size_t>(a)] < wanted[static_cast<size_t>(b)];
        });
        Number(layer);
      }
    }
  }

  void Number(const std::vector<int32_t>& layer) {
    for (size_t i = 0; i < layer.size(); ++i) place_[static_cast<size_t>(layer[i])] = static_cast<float>(i);
  }

  // Returns the mean position of the neighbours in the layer above or below, or the node's own position if it has none.
  float Barycentre(size_t node, bool above) const {
    const std::vector<int32_t>& neighbours = above ? above_[node] : below_[node];
    if (neighbours.empty()) return place_[node];
    float sum = 0;
    for (const int32_t neighbour : neighbours) sum += place_[static_cast<size_t>(neighbour)];
    return sum / static_cast<float>(neighbours.size());
  }

  float WidthOf(int32_t node) const { return static_cast<size_t>(node) < num_nodes_ ? kDrawnNodeWidth : kPassWidth; }

  void Place() {
    for (const std::vector<int32_t>& layer : layers_) {
      float total = 0;
      for (const int32_t node : layer) total += WidthOf(node) + kGapX;
      float x = -total / 2;
      for (const int32_t node : layer) {
        place_[static_cast<size_t>(node)] = x + WidthOf(node) / 2;
        x += WidthOf(node) + kGapX;
      }
    }
    for (int sweep = 0; sweep < kPlaceSweeps; ++sweep) {
      const bool down = sweep % 2 == 0;
      for (size_t i = 0; i < layers_.size(); ++i) Settle(layers_[down ? i : layers_.size() - 1 - i], down);
    }
  }

  // Moves the nodes of a layer as near to their neighbours as their widths allow: least squares under an order
  // constraint, which pools adjacent nodes that would overlap. Passing edges have a larger weight, so that long edges
  // are straight.
  void Settle(const std::vector<int32_t>& layer, bool above) {
    struct Pool {
      double sum, weight;
      size_t count;
    };
    std::vector<Pool> pools;
    std::vector<double> offsets;
    double offset = 0;
    for (size_t i = 0; i < layer.size(); ++i) {
      if (i > 0) offset += (WidthOf(layer[i - 1]) + WidthOf(layer[i])) / 2 + kGapX;
      offsets.push_back(offset);
      const auto node = static_cast<size_t>(layer[i]);
      const bool is_pass = node >= num_nodes_;
      const bool is_free = (above ? above_[node] : below_[node]).empty();
      const double weight = is_pass ? 4 : is_free ? 0.2 : 1;
      pools.push_back({(Barycentre(node, above) - offset) * weight, weight, 1});
      while (pools.size() > 1) {
        const Pool& last = pools.back();
        Pool& before = pools[pools.size() - 2];
        if (before.sum / before.weight <= last.sum / last.weight) break;
        before = {before.sum + last.sum, before.weight + last.weight, before.count + last.count};
        pools.pop_back();
      }
    }
    size_t i = 0;
    for (const Pool& pool : pools) {
      for (size_t k = 0; k < pool.count; ++k, ++i) {
        place_[static_cast<size_t>(layer[i])] = static_cast<float>(pool.sum / pool.weight + offsets[i]);
      }
    }
  }

  GraphLayout Result() const {
    GraphLayout layout;
    float left = 0, right = 0;
    for (size_t i = 0; i < rank_.size(); ++i) {
      const float half = WidthOf(static_cast<int32_t>(i)) / 2;
      left = i == 0 ? place_[i] - half : std::min(left, place_[i] - half);
      right = i == 0 ? place_[i] + half : std::max(right, place_[i] + half);
    }
    const auto point = [&](size_t i) {
      return Point{place_[i] - left, static_cast<float>(rank_[i]) * (kDrawnNodeHeight + kGapY) + kDrawnNodeHeight / 2};
    };
    for (size_t i = 0; i < num_nodes_; ++i) layout.nodes.push_back(point(i));
    layout.bends.resize(edges_.size());
    for (size_t e = 0; e < edges_.size(); ++e) {
      for (const int32_t pass : passes_[e]) layout.bends[e].push_back(point(static_cast<size_t>(pass)));
    }
    layout.width = right - left;
    layout.height = layers_.empty() ? 0 : static_cast<float>(layers_.size()) * (kDrawnNodeHeight + kGapY) - kGapY;
    return layout;
  }

  const size_t num_nodes_;
  const std::vector<std::pair<int32_t, int32_t>>& edges_;
  // The nodes, followed by the positions of passing edges.
  std::vector<int32_t> rank_;
  std::vector<float> place_;  // Index in the layer; later the x of the centre.
  std::vector<std::vector<int32_t>> above_, below_;
  std::vector<std::vector<int32_t>> passes_;  // By edge.
  std::vector<std::vector<int32_t>> layers_;
};

}  // namespace

GraphLayout LayOut(int32_t num_nodes, const std::vector<std::pair<int32_t, int32_t>>& edges) {
  return Layout(num_nodes, edges).Make();
}

}  // namespace permafrost
