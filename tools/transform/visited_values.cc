// Runs sessions that fetch as many tensors as fit into memory.
#include "tools/transform/visited_values.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "graph/base/status.h"
#include "runtime_check/session.h"

namespace permafrost {

absl::Status VisitValues(const Graph& graph, const ShapeMap& shapes, absl::Span<const TensorRef> tensors,
                         absl::Span<const InputSet> inputs, const SessionOptions& options,
                         absl::FunctionRef<void(size_t i, size_t set, const Tensor& value)> visit) {
  constexpr int64_t kMostFetchedBytes = int64_t{512} << 20;
  std::vector<std::string> feeds;
  for (const Endpoint& input : graph.inputs()) feeds.push_back(input.text);
  for (size_t begin = 0; begin < tensors.size();) {
    std::vector<std::string> fetches;
    int64_t bytes = 0;
    size_t end = begin;
    while (end < tensors.size() && (end == begin || bytes < kMostFetchedBytes)) {
      const Shape shape = shapes.Of(tensors[end]);
      int64_t elements = 1;
      for (int i = 0; shape.has_rank() && i < shape.rank(); ++i) elements *= std::max<int64_t>(1, shape.dim(i));
      bytes += elements * static_cast<int64_t>(sizeof(float));
      fetches.push_back(tensors[end++].ToString());
    }
    PF_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session, Session::Create(graph, feeds, fetches, options));
    for (size_t set = 0; set < inputs.size(); ++set) {
      PF_ASSIGN_OR_RETURN(const std::vector<Tensor> values, session->Run(inputs[set]));
      for (size_t i = 0; i < values.size(); ++i) visit(begin + i, set, values[i]);
    }
    begin = end;
  }
  return absl::OkStatus();
}

}  // namespace permafrost
