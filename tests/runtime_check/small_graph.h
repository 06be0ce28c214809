// Builds small graphs for tests, line by line.
#ifndef PERMAFROST_TESTS_RUNTIME_CHECK_SMALL_GRAPH_H_
#define PERMAFROST_TESTS_RUNTIME_CHECK_SMALL_GRAPH_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "graph/graph.h"
#include "gtest/gtest.h"

namespace permafrost {

class SmallGraph {
 public:
  const Graph& graph() const { return graph_; }
  Graph& mutable_graph() { return graph_; }

  // Adds a node. `inputs` are written as in a file: "a", "a:1", "^a". Each must exist.
  Node* Add(const std::string& name, const std::string& op, const std::vector<std::string>& inputs,
            const std::vector<std::pair<std::string, AttrValue>>& attrs) {
    Node* node = *graph_.AddNode(name, Op::Named(op));
    for (const std::string& input : inputs) {
      if (input[0] == '^') {
        graph_.AddControlInput(node, graph_.Find(input.substr(1)));
        continue;
      }
      const std::pair<std::string, std::string> parts = absl::StrSplit(input, absl::MaxSplits(':', 1));
      int port = 0;
      EXPECT_TRUE(parts.second.empty() || absl::SimpleAtoi(parts.second, &port)) << input;
      graph_.AddInput(node, {graph_.Find(parts.first), port});
    }
    for (const auto& [key, value] : attrs) node->SetAttr(key, value);
    return node;
  }
  // Adds a node with attribute T = float.
  Node* Float(const std::string& name, const std::string& op, const std::vector<std::string>& inputs) {
    return Add(name, op, inputs, {{"T", AttrValue::Type(DType::kFloat)}});
  }
  Node* Placeholder(const std::string& name, DType dtype, const Shape& shape) {
    return Add(name, "Placeholder", {}, {{"dtype", AttrValue::Type(dtype)}, {"shape", AttrValue::OfShape(shape)}});
  }
  Node* Const(const std::string& name, Tensor value) { return *graph_.AddConst(name, std::move(value)); }

 private:
  Graph graph_;
};

inline Tensor Floats(const Shape& shape, std::vector<float> values) {
  return Tensor::FromVector<float>(shape, std::move(values));
}

inline std::vector<float> ToVector(const Tensor& tensor) {
  std::vector<float> values;
  const auto elements = tensor.elements<float>();
  for (size_t i = 0; i < elements.size(); ++i) values.push_back(elements[i]);
  return values;
}

}  // namespace permafrost

#endif  // PERMAFROST_TESTS_RUNTIME_CHECK_SMALL_GRAPH_H_
