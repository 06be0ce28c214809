// Dinic's algorithm: shortest augmenting paths, level by level, without recursion.
#include "graph/base/minimum_cut.h"

#include <algorithm>

namespace permafrost {

int MinimumCut::AddVertex() {
  first_.push_back(-1);
  return static_cast<int>(first_.size()) - 1;
}

void MinimumCut::AddEdge(int from, int to, int64_t capacity) {
  edges_.push_back({to, first_[from], capacity});
  first_[from] = static_cast<int>(edges_.size()) - 1;
  edges_.push_back({from, first_[to], 0});
  first_[to] = static_cast<int>(edges_.size()) - 1;
}

bool MinimumCut::FindLevels() {
  level_.assign(first_.size(), -1);
  std::vector<int> queue = {kSource};
  level_[kSource] = 0;
  for (size_t i = 0; i < queue.size(); ++i) {
    for (int edge = first_[queue[i]]; edge >= 0; edge = edges_[edge].next) {
      ++steps_;
      const Edge& each = edges_[edge];
      if (each.capacity == 0 || level_[each.to] >= 0) continue;
      level_[each.to] = level_[queue[i]] + 1;
      queue.push_back(each.to);
    }
  }
  return level_[kSink] >= 0;
}

// Sends flow along one path of the levels. Returns 0 if there is none left.
int64_t MinimumCut::Augment() {
  std::vector<int> path;
  int at = kSource;
  while (at != kSink) {
    ++steps_;
    int& edge = current_[at];
    if (edge < 0) {
      if (path.empty()) return 0;
      // A dead end: goes back by one edge, and skips it.
      level_[at] = -1;
      at = edges_[path.back() ^ 1].to;
      path.pop_back();
      current_[at] = edges_[current_[at]].next;
      continue;
    }
    const Edge& each = edges_[edge];
    if (each.capacity > 0 && level_[each.to] == level_[at] + 1) {
      path.push_back(edge);
      at = each.to;
    } else {
      edge = each.next;
    }
  }
  int64_t flow = kInfinite;
  for (const int edge : path) flow = std::min(flow, edges_[edge].capacity);
  for (const int edge : path) {
    edges_[edge].capacity -= flow;
    edges_[edge ^ 1].capacity = std::min(kInfinite, edges_[edge ^ 1].capacity + flow);
  }
  return flow;
}

std::optional<std::vector<bool>> MinimumCut::Find(int64_t most_steps) {
  steps_ = 0;
  while (FindLevels()) {
    current_ = first_;
    while (Augment() > 0) {
      if (steps_ > most_steps) return std::nullopt;
    }
    if (steps_ > most_steps) return std::nullopt;
  }
  std::vector<bool> is_source(first_.size());
  for (size_t i = 0; i < first_.size(); ++i) is_source[i] = level_[i] >= 0;
  return is_source;
}

}  // namespace permafrost
